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
"""The fused CoM over gaps and restarts of the base."""

from dataclasses import replace
import math

from biped_com_ros.core.com.standing import StandingComEstimator
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.testing import assert_allclose
import pytest

STILL = Twist(np.zeros(3), np.zeros(3))


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


class StandingModel:
    """A robot at rest on both feet, and the fusion."""

    def __init__(self, model, stands=None):
        self.model, self.fused = model, StandingComEstimator(model)
        self.state = model.state(model.posture() if stands is None else stands)
        self.weight, self.wrenches = 9.81 * model.mass, np.zeros((2, 6))
        self.wrenches[:, 2] = 0.5 * self.weight
        self.filter = self.fused.filter

    def update(self, dt=0.002, twist=STILL, covariance=None):
        self.fused.update(dt, self.state, twist, self.wrenches, covariance)


@pytest.mark.parametrize('gap', [math.inf, 1.7e9, 0.0])
def test_a_restart_of_the_base_leaves_no_values_that_are_not_finite(model, gap):
    robot = StandingModel(model)
    for dt in (gap, *[0.002] * 30, gap, *[0.002] * 30):
        robot.update(dt)
        assert np.isfinite(robot.fused.now()).all()
    covariance = robot.filter.covariance
    assert np.isfinite(covariance).all() and (covariance.diagonal() >= 0.0).all()
    assert_allclose(robot.filter.state[:3], robot.state.com_in_base, atol=0.01)
    assert robot.filter.mass == pytest.approx(model.mass, rel=0.01)


def test_a_robot_without_posture_stand_has_a_fused_com(model):
    without = RobotModel(replace(model.config, postures={}), model.urdf)
    assert not without.usual_posture().any()
    robots = [StandingModel(each, model.posture()) for each in (without, model)]
    for robot in robots:
        for _ in range(100):
            robot.update()
    # Which links are negligible follows from the posture; the estimate hardly depends on it.
    assert_allclose(robots[0].fused.now()[0], robots[1].fused.now()[0], atol=1e-4)
    assert np.isfinite(robots[0].filter.covariance).all()


def test_an_estimate_that_is_not_finite_is_recognised(model):
    robot = StandingModel(model)
    for i in range(60):
        robot.update(twist=Twist(np.zeros(3), np.full(3, math.nan if i == 30 else 0.0)))
        assert i < 30 or not robot.fused.is_credible or np.isfinite(robot.fused.now()).all()
        assert i >= 30 or robot.fused.is_credible
    assert not robot.fused.is_credible


@pytest.mark.parametrize('seed', [1, 2, 5, 6])
def test_an_estimate_recovers_from_readings_that_are_wrong_but_possible(model, seed):
    """
    It is recognised by its mass, begins anew as in the node, and is right in 2 s but in height.

    That shows only when the robot moves. (Where readings leave a mass that can be true, as with
    seed 4, an external force explains the weight at first, and the mass is found in 20 s.)
    """
    rng, robot = np.random.default_rng(seed), StandingModel(model)
    fused, restarts = robot.fused, 0
    for _ in range(40):
        state = model.state(model.posture() + rng.uniform(-0.3, 0.3, len(model.joint_names)))
        fused.update(0.01, state, Twist(rng.normal(0.0, 3.0, 3), rng.normal(0.0, 3.0, 3)),
                     model.mass * rng.uniform(-300.0, 1000.0, (2, 6)))
    for _ in range(1000):
        robot.update()
        if not fused.is_credible:
            fused.reset()
            restarts += 1
    assert 1 <= restarts <= 5
    assert_allclose(fused.now()[0][:2], robot.state.com_in_world[:2], atol=0.02)
    assert fused.filter.mass == pytest.approx(model.mass, rel=0.1)


@pytest.mark.parametrize('is_stated', [True, False])
def test_the_velocity_is_as_uncertain_as_the_forces(model, is_stated):
    """Wrenches from joint torques push a robot at rest by 2 % of its weight, for a second."""
    robot, worst = StandingModel(model), 0.0
    covariance = (0.02 * robot.weight) ** 2 * np.eye(12) if is_stated else None
    for i in range(1500):
        robot.wrenches[:, 0] = 0.01 * robot.weight if i > 1000 else 0.0
        robot.update(covariance=covariance)
        if i > 1000:
            deviation = np.sqrt(robot.filter.velocity_covariance[0, 0])
            worst = max(worst, abs(robot.fused.now()[1][0]) / deviation)
    assert (worst < 2.0) == is_stated


@pytest.mark.parametrize('begins_at', [0.002, 0.2, 0.4])
def test_before_the_first_instant_the_robot_did_not_fall(model, begins_at):
    """A simulation begins at 0 s: the first stamp is no time since an instant before."""
    robot = StandingModel(model)
    for dt in (begins_at, *[0.002] * 300):
        robot.update(dt)
        com, velocity = robot.fused.now()
        assert_allclose(velocity, 0.0, atol=0.001)
        assert com[2] == pytest.approx(robot.state.com_in_world[2], abs=0.001)
    assert_allclose(robot.filter.external_force, 0.0, atol=0.01 * robot.weight)
    assert robot.filter.mass == pytest.approx(model.mass, rel=0.001)
