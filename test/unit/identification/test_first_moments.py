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
"""Equations of rest against MuJoCo's inverse statics and Pinocchio, and what can be known."""

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.captures.capture import MotorConstants, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.legs.keyframes import HipShift
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest
from support.statics_data import TrueRobot

ROBOTS = ('three_link', 'sabian', 'talos', 'g1', 'icub')
FEET = (('left',), ('right',), ('left', 'right'))


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    """Return a robot with hidden errors, and its equations."""
    true = TrueRobot(request.param, seed=3)
    return true, StaticsRegressor(true.model)


@pytest.mark.parametrize('standing', FEET)
def test_the_truth_solves_the_equations_on_sloping_ground(robot, standing):
    true, regressor = robot
    for tilt in ((0.0, 0.0), (0.1, -0.07)):
        if len(standing) > 1 and true.model.config.name == 'three_link':
            q = true.model.posture('b')
        else:
            q = true.positions(standing)
        equations = regressor.equations(true.capture(standing, None, q, tilt), true.theta)
        np.testing.assert_allclose(equations.residual(true.theta), 0.0, atol=1e-6)
        assert np.abs(equations.residual(parameters_of(true.model))).max() > 0.1
        n, sensors = len(true.model.joint_names), len(true.model.config.wrench_sensors)
        assert equations.A.shape == (len(equations.rows), 4 * len(true.model.link_names))
        assert equations.J_position.shape[1] == n
        assert equations.J_reading.shape[1] == 6 * sensors


def test_com_and_torques_against_pinocchio(robot):
    true, regressor = robot
    model, theta = true.model, parameters_of(true.model).ravel()
    q = true.positions(('left',))
    np.testing.assert_allclose(
        regressor.com_matrix(q) @ theta / model.mass, model.state(q).com_in_base, atol=1e-12)
    up = np.array((0.36, -0.48, 0.8))
    copy = model.pin_model.copy()
    copy.gravity.linear = -9.81 * up
    expected = pin.computeGeneralizedGravity(copy, copy.createData(), model.configuration(q))[6:]
    for i, name in enumerate(model.joint_names):
        followers = model.velocity(np.eye(len(model.joint_names))[i])[6:]
        assert (regressor.torque_matrix(q, up) @ theta)[i] == pytest.approx(
            followers @ expected, abs=1e-9), name


def test_noise_covariance_is_that_of_samples():
    """Encoders, inclination, wrenches and torques, with all their correlations."""
    true, noise = TrueRobot('sabian'), SensorNoise(encoder=2e-3, tilt=1e-3)
    regressor = StaticsRegressor(true.model)
    q = true.positions(('left',))
    exact = true.capture(('left',), None, q)
    expected = regressor.equations(exact, true.theta, noise).covariance
    samples = [regressor.residual(true.capture(('left',), noise, q), true.theta)[1]
               for _ in range(1000)]
    L = np.linalg.cholesky(expected)
    white = np.linalg.solve(L, np.array(samples).T)
    values = np.linalg.eigvalsh(np.cov(white))
    assert values[0] > 0.6 and values[-1] < 1.5
    correlation = expected / np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(correlation - np.diag(np.diag(correlation))).max() > 0.5


def rows_of(regressor, q, kind):
    """Return the rows of a pose on the left foot that hold first moments."""
    model = regressor.model
    sole = model.state(q).pose_in_base(model.config.feet['left'].sole).rotation
    com = sole.T @ regressor.com_matrix(q)
    rows = {'com': com, 'cop': com[:2], 'cop and torques': np.concatenate(
        (com[:2], regressor.torque_matrix(q, sole[:, 2]) / 9.81))}[kind]
    return rows[:, np.arange(rows.shape[1]) % 4 > 0]


@pytest.mark.parametrize(('kind', 'poses', 'rank'), [
    ('com', 21, 61), ('com', 30, 61), ('com', 20, 60), ('cop', 30, 60), ('cop', 38, 60),
    ('cop and torques', 2, 60), ('cop and torques', 8, 60)])
def test_rank_of_poses_on_one_foot(kind, poses, rank):
    """With n = 29 joints 2 n + 3 by x, y, z; 2 n + 2 by x, y (the paper's k), or with torques."""
    model, rng = RobotModel.load('g1'), np.random.default_rng(1)
    regressor, n = StaticsRegressor(model), len(model.joint_names)
    A = np.concatenate([
        rows_of(regressor, rng.uniform(-0.8, 0.8, n), kind) for _ in range(poses)])
    assert np.linalg.matrix_rank(A, tol=1e-9 * np.linalg.norm(A, 2)) == rank


def test_the_hips_turn_over_standing_feet():
    """Soles under a rotated HipShift: they stay where they are with respect to each other."""
    model = RobotModel.load('g1')
    turn = Pose.from_rpy((0.1, -0.15, 0.2), np.array((0.02, -0.01, -0.03)))
    stand = model.posture('stand')
    q = HipShift(model, stand).positions(turn.position, turn.rotation)
    for foot in model.config.feet.values():
        before = model.state(stand).pose_in_base(foot.sole)
        after = turn @ model.state(q).pose_in_base(foot.sole)
        np.testing.assert_allclose(after.position, before.position, atol=1e-6)
        np.testing.assert_allclose(after.rotation, before.rotation, atol=1e-6)


@pytest.mark.parametrize(('match', 'change'), [
    ("positions of capture 'seven' must have shape", lambda c: {'positions': c.positions[1:]}),
    ('are not finite', lambda c: {'up': np.array((0.0, np.nan, 1.0))}),
    ('unit vector', lambda c: {'up': np.zeros(3)}),
    ("'right' of capture 'seven' is marked as standing", lambda c: {
        'in_contact': np.array([True, True]), 'wrenches': c.wrenches * [[1], [0], [1], [1]]}),
    ('was not measured', lambda c: {'wrenches': np.where(
        np.arange(24).reshape(4, 6) == 2, np.nan, c.wrenches)})])
def test_bad_captures_are_refused_by_name(match, change):
    true = TrueRobot('talos')
    good = true.capture(('left',), name='seven')
    with pytest.raises(InputError, match=match):
        StaticsRegressor(true.model).equations(replace(good, **change(good)), true.theta)


def test_motor_currents():
    model = RobotModel.load('three_link')
    torques = MotorConstants({'l_knee': 2.5}).torques(model, np.array((3.0, 4.0, 5.0, 6.0)))
    knee = model.joint_names.index('l_knee')
    assert torques[knee] == pytest.approx(2.5 * (3.0, 4.0, 5.0, 6.0)[knee])
    assert np.isnan(np.delete(torques, knee)).all()
    with pytest.raises(UnknownNameError, match='l_kne'):
        MotorConstants({'l_kne': 1.0}).torques(model, np.zeros(4))
    with pytest.raises(ConfigurationError, match='the noise: force must be positive'):
        SensorNoise(force=0.0)


def test_the_derivative_of_the_centre_of_mass_is_that_of_finite_differences():
    model, step = RobotModel.load('talos'), 1e-6
    regressor, theta, q = StaticsRegressor(model), parameters_of(model), model.posture('stand')

    def com(values):
        return regressor.com_matrix(q) @ values.ravel() / values[:, 0].sum()

    change = step * np.random.default_rng(0).normal(size=theta.shape)
    np.testing.assert_allclose(
        (com(theta + change) - com(theta - change)) / 2.0,
        regressor.com_derivative(q, theta) @ change.ravel(), rtol=1e-6, atol=1e-15)
