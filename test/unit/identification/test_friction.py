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
"""Friction of unknown sign: one joint whose torques measure one unknown beside other data."""

from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.friction import UnknownFriction
import numpy as np
import pytest

COUNT, NOISE, ASSUMED = 60, 0.3, 2.0


def captures(side=None):
    return [Capture(
        positions=np.zeros(1), wrenches=np.zeros((0, 6)), in_contact=np.zeros(0, dtype=bool),
        up=np.eye(3)[2], up_frame='', torques=np.zeros(1), approach=side) for _ in range(COUNT)]


def learn(error, known, passes=6):
    """
    Let the errors be learned, (COUNT,), of each of which other data say `known` +- its sd.

    Returns the means, and the variances, that stand for the mixture.
    """
    friction = UnknownFriction(captures(), np.array([ASSUMED]))
    rng, nominal = np.random.default_rng(1), np.full((COUNT, 1), NOISE ** 2)
    estimates = (error + known * rng.normal(size=COUNT))[:, np.newaxis]
    variances = nominal + ASSUMED ** 2
    for _ in range(passes):
        share = variances / (variances + known ** 2)
        errors = share * (estimates - friction.means) / np.sqrt(variances)
        friction.update(errors, share, variances, nominal)
        variances = np.array([
            friction.variances(k, v + ASSUMED ** 2) for k, v in enumerate(nominal)])
    return friction, friction.means[:, 0], variances[:, 0]


def test_friction_is_subtracted_where_its_sign_is_evident():
    rng = np.random.default_rng(0)
    error = 3.0 * rng.choice((-1.0, 1.0), COUNT) + NOISE * rng.normal(size=COUNT)
    friction, means, variances = learn(error, 0.5)
    assert friction.learned.all() and (np.sign(means) == np.sign(error)).all()
    np.testing.assert_allclose(np.abs(means), 3.0, rtol=0.15)
    assert np.sqrt(variances).max() < 0.8
    # The friction is larger than assumed, and that is said.
    assert friction.ratio[0] == pytest.approx(3.0 ** 2 / ASSUMED ** 2, rel=0.3)


def test_friction_is_noise_where_its_sign_is_open():
    rng = np.random.default_rng(0)
    _, means, variances = learn(2.0 * rng.choice((-1.0, 1.0), COUNT), 8.0)
    assert np.abs(means).max() < 0.3 and np.sqrt(variances).min() > 1.0


@pytest.mark.parametrize('known', (0.2, 1.0, 3.0))
def test_friction_anywhere_between_both_sides_is_not_trusted_too_much(known):
    """Of errors that fill the interval, nine in ten are within two standard deviations."""
    rng = np.random.default_rng(0)
    error = rng.uniform(-4.0, 4.0, COUNT)
    _, means, variances = learn(error, known)
    z = (error - means) / np.sqrt(variances)
    assert (np.abs(z) < 2.0).mean() > 0.9 and np.sqrt(np.mean(z ** 2)) < 1.3


def test_known_sides_are_left_to_the_estimate_of_friction():
    friction = UnknownFriction(captures(np.ones(1)), np.array([ASSUMED]))
    nominal = np.full((COUNT, 1), NOISE ** 2)
    assert friction.update(nominal, 0.5 * np.ones((COUNT, 1)), nominal, nominal) == 0.0
    assert not friction.learned.any() and not friction.means.any()
    np.testing.assert_array_equal(friction.variances(0, nominal[0]), nominal[0])
