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
"""The fused CoM: where the model is wrong, when pushed, in the air, after losing its sensors."""

from benchmarks.com_filter import NOISE, PUSH, push_estimate, Rig
from biped_com_ros.core.com_filter import B, ComFilter, ComFilterSettings, V
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.zmp import Comparison
import numpy as np
import pytest

DT, MASS, G = 0.002, 50.0, 9.81
X = np.array((1.0, 0.0, 0.0))
BIAS = np.array((0.012, -0.008, 0.0))


class Robot:
    """
    A point mass that is `extra` kg heavier than believed and whose kinematic CoM is off.

    It accelerates as it likes; the feet feel what that takes.
    """

    def __init__(self, extra=3.0, heading=0.0):
        self.filter = ComFilter(MASS)
        self.mass, self.t = MASS + extra, 0.0
        c, s = np.cos(heading), np.sin(heading)
        self.turn = np.array(((c, -s, 0), (s, c, 0), (0, 0, 1.0)))

    def com(self):
        return np.array((5.0 + 0.04 * np.sin(5 * self.t), -3.0 + 0.03 * np.cos(4 * self.t), 1.0))

    def velocity(self):
        return np.array((0.2 * np.cos(5 * self.t), -0.12 * np.sin(4 * self.t), 0.0))

    def step(self, external=(0.0, 0.0, 0.0), dt=DT, feels=True, sees=True):
        """Let time pass; the external force acts through the CoM."""
        self.t += dt
        acceleration = np.array((-np.sin(5 * self.t), -0.48 * np.cos(4 * self.t), G))
        force = self.mass * acceleration - external
        wrench = np.concatenate((force, np.cross(self.com(), force)))
        kinematic = self.com() + self.turn @ BIAS
        # No angular momentum: the model's wrench goes through its own CoM.
        model = np.concatenate((force, np.cross(kinematic, force)))
        self.filter.update(
            dt, kinematic if sees else None, self.velocity() if sees else None, self.turn @ X,
            force if feels else None,
            Comparison(model, wrench, kinematic) if feels and sees else None)

    def run(self, seconds, **options):
        for _ in range(round(seconds / DT)):
            self.step(**options)


@pytest.mark.parametrize('heading', [0.0, 2.2])
def test_the_bias_is_found_along_the_axes_of_the_base(heading):
    robot = Robot(heading=heading)
    robot.run(4.0)
    np.testing.assert_allclose(robot.filter.bias[:2], BIAS[:2], atol=5e-4)
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 5e-4
    assert robot.filter.mass == pytest.approx(53.0, abs=0.05)
    assert np.linalg.norm(robot.filter.external_force) < 1.0


def test_a_push_is_felt_and_let_go():
    robot = Robot()
    robot.run(3.0)
    push = np.array((40.0, -25.0, 0.0))
    robot.run(0.3, external=push)
    np.testing.assert_allclose(
        robot.filter.external_force, push, atol=0.1 * np.linalg.norm(push))
    robot.run(0.5)
    assert np.linalg.norm(robot.filter.external_force) < 3.0
    np.testing.assert_allclose(robot.filter.bias[:2], BIAS[:2], atol=1e-3)


def test_without_foot_forces_the_known_bias_still_helps():
    robot = Robot()
    robot.run(3.0)
    robot.run(1.0, feels=False)
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 2e-3
    before = np.trace(robot.filter.covariance[V, V])
    robot.run(0.2)
    assert np.trace(robot.filter.covariance[V, V]) < before


def test_in_the_air_it_flies():
    robot = Robot(extra=0.0)
    robot.run(2.0)
    found = robot.filter
    com, velocity = found.com.copy(), found.velocity.copy()
    for _ in range(100):
        found.update(DT, None, None, X, np.zeros(3))
    np.testing.assert_allclose(found.velocity - velocity, (0, 0, -0.2 * G), atol=0.02)
    fallen = com + 0.2 * velocity - (0, 0, 0.5 * G * 0.04)
    np.testing.assert_allclose(found.com, fallen, atol=5e-3)


def test_after_a_long_silence_it_begins_anew_but_keeps_the_bias():
    robot = Robot()
    robot.run(4.0)
    bias = robot.filter.bias.copy()
    robot.t += 3.0
    robot.step(dt=3.0)
    np.testing.assert_allclose(robot.filter.bias, bias, atol=1e-3)
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 2e-3
    robot.filter.reset()
    assert not robot.filter.is_started and not robot.filter.state.any()
    assert robot.filter.covariance[B, B][0, 0] == pytest.approx(0.015 ** 2)


def test_the_covariance_stays_symmetric_and_positive():
    robot = Robot()
    for i in range(3000):
        robot.step(external=np.array((30.0, 0, 0)) * (i % 700 < 100), feels=i % 500 > 30)
    P = robot.filter.covariance
    np.testing.assert_array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0.0


def test_nothing_is_estimated_before_kinematics_tell():
    found = ComFilter(MASS)
    found.update(DT, None, None, X, np.array((0.0, 0.0, MASS * G)))
    assert not found.is_started


def test_settings_that_make_no_sense():
    with pytest.raises(ConfigurationError, match='moment of the CoM filter is -1'):
        ComFilterSettings(moment=-1)


@pytest.fixture(scope='module')
def swayed():
    return Rig(sensors=NOISE).run('sway', 4.5)


def test_level_error_of_a_swaying_robot_with_a_hidden_load(swayed):
    """Eight per cent more mass, noisy sensors: at most a fifth of the kinematic error."""
    level = slice(0, 2)
    assert swayed.rms('kinematic', level) > 4e-3
    assert swayed.rms('fused', level) < 0.2 * swayed.rms('kinematic', level)
    assert swayed.rms('fused', V) < 0.5 * swayed.rms('kinematic', V)


def test_it_is_as_uncertain_as_it_is_wrong(swayed):
    nees = np.array(swayed.nees)[np.array(swayed.times) > 1.5].mean(axis=0)
    assert (nees > 0.02).all() and (nees < 7.81).all(), 'below the 95 % bound of three axes'


def test_a_push_of_the_simulated_robot_is_found_within_a_tenth():
    result = Rig(sensors=NOISE).run('push', 2.9)
    found = push_estimate(result, 0.3)
    assert np.linalg.norm(found - PUSH) < 0.1 * np.linalg.norm(PUSH)
    level = slice(0, 2)
    assert result.rms('fused', level) < 0.2 * result.rms('kinematic', level)
