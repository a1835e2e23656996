# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Gain, friction and offset of drives, found beside wrenches that are unknown."""

from biped_com_ros.core.wrench.drive_errors import DriveErrors
import numpy as np
from numpy.testing import assert_allclose
import pytest

BOTH = np.array([True, True])
#: Gain, friction and offset of two joints.
TRUE = np.array([[0.12, 0.3, -0.1], [-0.08, 0.05, 0.2]])


def drives(learns=BOTH):
    return DriveErrors(np.full((2, 2), 0.5), 1e4, learns)


def learn(errors, instants, true=TRUE, sign=1.0, information=None, seed=0):
    """Let a known robot move: what the joints lack is what the drives add, and 0.05 N m noise."""
    random = np.random.default_rng(seed)
    information = np.diag([400.0, 400.0]) if information is None else information
    for _ in range(instants):
        speeds, needed = random.uniform(-2.0, 2.0, 2), random.uniform(-3.0, 3.0, 2)
        measured = (needed + true[:, 1] * np.tanh(speeds / 0.05) + true[:, 2]) / (1.0 - true[:, 0])
        errors.update(0.002, speeds, measured)
        force = needed - measured + 0.05 * random.standard_normal(2)
        errors.learn(information, information @ (sign * force + errors.torques), 0.008)
    return errors


def test_constants_are_found_and_stated_as_certain_as_they_are():
    found = learn(drives(), 300)
    assert_allclose(found.coefficients, TRUE, atol=0.02)
    found.update(0.002, np.array([1.0, -1.0]), np.array([2.0, -2.0]))
    true = TRUE @ [2.0, 1.0, 0.0] * [1.0, -1.0] + TRUE[:, 2]
    assert (np.sqrt(found.variance) < 0.02).all()
    assert (np.abs(found.torques - true) < 4.0 * np.sqrt(found.variance)).all()
    wrong = learn(drives(), 300, sign=-1.0)
    assert np.abs(wrong.coefficients - TRUE).max() > 0.2


def test_what_is_unlearnt_is_as_uncertain_as_drives_that_are_drawn():
    errors = learn(drives(), 300)
    errors.update(0.002, np.zeros(2), np.array([2.0, -1.0]))
    gain, friction, offset = np.random.default_rng(1).standard_normal((3, 40000, 2))
    torques = 0.1 * gain * [2.0, -1.0] + 0.5 * friction + 0.5 * offset
    assert_allclose(errors.unlearnt_variance, torques.var(axis=0), rtol=0.05)
    before = errors.learnt()
    errors.restore(learn(drives(), 3, seed=1).learnt())
    assert (errors.coefficients != before[0]).all()
    errors.restore(before)
    assert_allclose(errors.torques_by(before[0]), errors.torques, atol=1e-12)


def test_before_anything_is_learnt_the_prior_is_stated():
    errors = drives()
    errors.update(0.002, np.array([3.0, 0.0]), np.array([2.0, 0.0]))
    assert_allclose(errors.torques, 0.0, atol=1e-12)
    # Friction may act with either sign at rest; a gain without torque does nothing.
    assert_allclose(errors.variance, [0.2 ** 2 + 2 * 0.5 ** 2, 2 * 0.5 ** 2], rtol=1e-6)


def test_friction_of_a_joint_that_may_stick_is_uncertain():
    errors = drives()
    errors.coefficients[:, 1] = 2.0
    errors.update(0.002, np.array([-3.0, 0.0]), np.zeros(2))
    assert_allclose(errors.torques, [-2.0, 0.0], atol=1e-9)
    assert_allclose(errors.variance, [0.5, 4.5], atol=1e-9)


def test_what_may_be_a_wrench_as_well_teaches_nothing():
    """A force that moves both joints alike is unknown: only their difference is learnt."""
    apart = np.array([1.0, -1.0]) / np.sqrt(2.0)
    same = np.tile([0.0, 0.0, 0.2], (2, 1))
    found = learn(drives(), 100, same, information=400.0 * np.outer(apart, apart))
    assert_allclose(found.coefficients, 0.0, atol=0.03)
    learns = learn(drives(np.array([True, False])), 100)
    assert learns.coefficients[0, 2] == pytest.approx(-0.1, abs=0.03)
    assert not learns.coefficients[1].any()


def test_without_information_the_prior_returns():
    found = learn(drives(), 300)
    for _ in range(200):
        found.learn(np.zeros((2, 2)), np.zeros(2), 2.0)
    found.update(0.002, np.zeros(2), np.zeros(2))
    assert np.abs(found.coefficients).max() < 0.05
    assert found.variance.min() > 0.3
