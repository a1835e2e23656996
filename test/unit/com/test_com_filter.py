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
"""The filter of the CoM with a point mass: a load, pushes, in the air, without its sensors."""

import copy
import functools

from biped_com_ros.core.com.carrier import Carrier
from biped_com_ros.core.com.com_filter import ComFilter, H, KinematicCom, S
from biped_com_ros.core.com.hidden_load import LoadEquation
from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.errors import ConfigurationError
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pinocchio as pin
import pytest

DT, MASS, G = 0.004, 50.0, 9.81
LOAD, AT = 3.0, np.array((0.10, -0.08, 0.15))
"""kg, and where it is from the carrier's centre of mass, m."""


class PointMassRobot:
    """
    A point mass that carries a load on a swinging link; its kinematics do not know the load.

    It accelerates as it likes; the feet feel what that takes.
    """

    def __init__(self, heading=0.0, uncertainty=0.0):
        self.uncertainty, self.heading, self.t = uncertainty, heading, 0.0
        self.filter = ComFilter(MASS, ComFilterSettings(wrench_delay=0.0))

    def model_com(self, t):
        return np.array((5.0 + 0.04 * np.sin(5 * t), -3.0 + 0.03 * np.cos(4 * t), 1.0))

    def rotation(self, t):
        """Return the orientation of the link, which nods while the robot moves."""
        return pin.rpy.rpyToMatrix(0.0, 0.1 * np.sin(3.0 * t), self.heading)

    def place(self, t):
        return self.model_com(t) + (0.0, 0.02 * np.sin(2.0 * t), 0.3)

    def com(self, t):
        """Return the true centre of mass."""
        load = self.place(t) + self.rotation(t) @ AT
        return (MASS * self.model_com(t) + LOAD * load) / (MASS + LOAD)

    def rate(self, of, h=1e-4):
        """Return the first and second derivative of a function of time at the present."""
        before, now, after = (of(self.t + s) for s in (-h, 0.0, h))
        return (after - before) / (2 * h), (after - 2 * now + before) / h ** 2

    def step(self, external=(0.0, 0.0, 0.0), dt=DT, with_wrenches=True, jolt=0.0):
        """Let time pass; the external force acts somewhere, a jolt makes the moments wrong, m."""
        self.t += dt
        (turning, swings), (speed, lift) = self.rate(self.rotation), self.rate(self.place)
        rotation, point, com = self.rotation(self.t), self.place(self.t), self.model_com(self.t)
        force = (MASS + LOAD) * (self.rate(self.com)[1] + (0, 0, G)) - external
        # The moment of unit loads about the model's CoM, and that of the load.
        arm, pull = point - com, lift + (0, 0, G)
        columns = [np.cross(rotation[:, i], pull) + np.cross(arm, swings[:, i]) for i in range(3)]
        rows = np.column_stack((*columns, np.cross(arm, pull)))[:2] * MASS / force[2]
        equation = LoadEquation(
            rows @ np.append(LOAD * AT, LOAD) / MASS + jolt, rows, rotation[2],
            np.abs(external).max() / force[2], 0.0, np.zeros((2, 3)), dt, 0.1 / dt,
            (rows[:, :3] @ rotation.T)[:, 2], 0.0, 0.0, np.zeros(2), *np.zeros((2, 2, 0)),
            self.uncertainty)
        kinematic = KinematicCom(com, self.rate(self.model_com)[0],
                                 Carrier(rotation, turning, point, speed))
        measured = (force, equation) if with_wrenches else (None, None)
        self.filter.update(dt, kinematic, *measured)

    def run(self, seconds, **options):
        for _ in range(round(seconds / DT)):
            self.step(**options)

    def error(self):
        return np.linalg.norm((self.filter.com - self.com(self.t))[:2])


@functools.cache
def after_4_s(**options):
    robot = PointMassRobot(**options)
    robot.run(4.0)
    return robot


@pytest.fixture
def robot():
    """Return a robot whose filter has run for 4 s."""
    return copy.deepcopy(after_4_s())


@pytest.mark.parametrize('heading', [0.0, 2.2])
def test_the_load_is_found_on_the_link_that_carries_it(heading):
    robot = after_4_s(**({'heading': heading} if heading else {}))
    found = robot.filter
    assert found.mass == pytest.approx(MASS + LOAD, abs=0.02)
    expected = LOAD * AT / (MASS + LOAD)
    assert_allclose(found.state[H][:2], expected[:2], atol=2e-4)
    assert found.state[H][2] == pytest.approx(expected[2], abs=1e-3)
    assert robot.error() < 5e-4
    assert np.linalg.norm(found.velocity - robot.rate(robot.com)[0]) < 2e-3
    assert_allclose(found.bias, robot.model_com(robot.t) - found.com, atol=1e-3)
    assert np.linalg.norm(found.external_force) < 1.0


def test_the_load_is_known_no_better_than_the_wrenches(robot):
    """The ZMP by joint torques is uncertain by 10 mm, from one equation to the next."""
    certain, uncertain = (np.sqrt(each.filter.covariance.diagonal()[H][:2])
                          for each in (robot, after_4_s(uncertainty=1e-4)))
    assert (uncertain > 5.0 * certain).all()


def test_a_push_is_estimated_and_decays(robot):
    push = np.array((40.0, -25.0, 0.0))
    robot.run(0.3, external=push)
    assert_allclose(robot.filter.external_force, push, atol=0.1 * np.linalg.norm(push))
    robot.run(0.5)
    assert np.linalg.norm(robot.filter.external_force) < 3.0
    assert robot.error() < 1e-3


def test_a_jolt_in_the_moments_counts_little(robot):
    """Taken at its word, 8 mm for 0.1 s would move the load by 1.4 to 4 mm."""
    calm = copy.deepcopy(robot)
    robot.run(0.1, jolt=0.008)
    robot.run(0.2)
    calm.run(0.3)
    assert np.abs(robot.filter.state[H] - calm.filter.state[H]).max() < 2e-5


def test_without_foot_forces_the_known_load_still_helps(robot):
    robot.run(1.0, with_wrenches=False)
    assert robot.error() < 2e-3
    before = np.trace(robot.filter.velocity_covariance)
    robot.run(0.2)
    assert np.trace(robot.filter.velocity_covariance) < before


def test_in_the_air_it_flies(robot):
    found = robot.filter
    com, velocity = found.com.copy(), found.velocity.copy()
    for _ in range(50):
        found.update(DT, None, np.zeros(3))
    assert_allclose(found.velocity - velocity, (0, 0, -0.2 * G), atol=0.02)
    assert_allclose(found.com, com + 0.2 * velocity - (0, 0, 0.5 * G * 0.04), atol=2e-3)


def test_after_a_long_silence_it_begins_anew_but_keeps_the_load(robot):
    load = robot.filter.state[[6, 7, 8, S]].copy()
    robot.step(dt=3.0)
    assert_allclose(robot.filter.state[[6, 7, 8, S]], load, atol=1e-3)
    assert robot.error() < 2e-3
    robot.filter.reset()
    assert not robot.filter.is_started and not robot.filter.state.any()
    assert robot.filter.covariance[6, 6] == pytest.approx(0.015 ** 2)


def test_the_covariance_stays_symmetric_and_positive():
    robot = PointMassRobot()
    for i in range(500):
        robot.step(external=np.array((30.0, 0, 0)) * (i % 175 < 25), with_wrenches=i % 125 > 8)
    P = robot.filter.covariance
    assert_array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0.0


def test_nothing_is_estimated_before_kinematics_arrive():
    found = ComFilter(MASS)
    found.update(DT, None, np.array((0.0, 0.0, MASS * G)))
    assert not found.is_started


@pytest.mark.parametrize(('setting', 'problem'), [
    ({'moment': -1}, 'the CoM filter: moment must be positive, not -1'),
    ({'link_mass': -1}, 'link_mass must be positive or zero, not -1')])
def test_settings_that_make_no_sense(setting, problem):
    with pytest.raises(ConfigurationError, match=problem):
        ComFilterSettings(**setting)
