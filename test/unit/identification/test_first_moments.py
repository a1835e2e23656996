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

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.captures.capture import Capture, MotorConstants, SensorNoise
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


def test_a_foot_in_the_air_is_weighed_by_its_own_sensor():
    """All of the standing foot below its sensor drops out; the other foot's six rows stay."""
    true = TrueRobot('talos')
    regressor, names = StaticsRegressor(true.model), true.model.link_names
    equations = regressor.equations(true.capture(('left',)), true.theta)
    n, own = len(true.model.joint_names), 4 * names.index('leg_left_6_link')
    assert not equations.A[:, own:own + 4].any()
    right = list(true.model.config.wrench_sensors).index('right_foot')
    rows = [np.flatnonzero(equations.rows == 6 + n + 6 * right + i)[0] for i in range(6)]
    column = 4 * names.index('leg_right_6_link')
    assert np.linalg.norm(equations.A[rows, column]) > 9.0
    both = regressor.equations(true.capture(('left', 'right')), true.theta)
    assert len(both.rows) == len(equations.rows) - 6


def test_noise_covariance_is_that_of_samples():
    """Encoders, inclination, wrenches and torques, with all their correlations."""
    true, noise = TrueRobot('sabian'), SensorNoise(encoder=2e-3, tilt=1e-3)
    regressor = StaticsRegressor(true.model)
    q = true.positions(('left',))
    exact = true.capture(('left',), None, q)
    expected = regressor.equations(exact, true.theta, noise).covariance
    samples = [regressor.residual(true.capture(('left',), noise, q), true.theta)[1]
               for _ in range(1500)]
    L = np.linalg.cholesky(expected)
    white = np.linalg.solve(L, np.array(samples).T)
    values = np.linalg.eigvalsh(np.cov(white))
    assert values[0] > 0.6 and values[-1] < 1.5
    correlation = expected / np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(correlation - np.diag(np.diag(correlation))).max() > 0.5


@pytest.fixture(scope='module')
def g1():
    """Return a robot whose 29 joints all turn and are all measured."""
    return Poses('g1')


class Poses:
    """Random poses of one robot, and the first moments' columns of their equations."""

    def __init__(self, name):
        self.model = RobotModel.load(name)
        self.n, self.regressor = len(self.model.joint_names), StaticsRegressor(self.model)
        self.rng = np.random.default_rng(1)
        self.hips = HipShift(self.model, self.model.posture('stand'))
        self._moments = np.arange(4 * len(self.model.link_names)) % 4 > 0

    def free(self):
        return self.rng.uniform(-0.8, 0.8, self.n)

    def over_both_feet(self):
        """Both soles level, the left one somewhere else each time, the base anywhere."""
        rng, q = self.rng, self.free()
        while True:
            yaw = Pose.from_rpy((0.0, 0.0, rng.uniform(-0.3, 0.3)), np.zeros(3)).rotation
            left = Pose(yaw, np.array((*rng.uniform(-0.08, 0.08, 2), 0.0)))
            turn = Pose.from_rpy(rng.uniform(-0.2, 0.2, 3), np.zeros(3)).rotation
            try:
                legs = self.hips.positions(rng.uniform(-0.05, 0.05, 3), turn, {0: left})
            except InputError:
                continue
            q[self.hips.leg_joints] = legs[self.hips.leg_joints]
            return q

    def com_rows(self, q, foot, axes):
        sole = self.model.state(q).pose_in_base(self.model.config.feet[foot].sole)
        rows = sole.rotation.T @ self.regressor.com_matrix(q)
        return rows[:axes, self._moments]

    def torque_rows(self, q, foot):
        sole = self.model.state(q).pose_in_base(self.model.config.feet[foot].sole)
        rows = self.regressor.torque_matrix(q, sole.rotation[:, 2]) / 9.81
        return rows[:, self._moments]


def rank(rows):
    """Rank of stacked rows."""
    A = np.concatenate(rows)
    return int(np.linalg.matrix_rank(A, tol=1e-9 * np.linalg.norm(A, 2)))


def test_rank_of_com_xyz(g1):
    """2 n + 3, from ceil((2 n + 3) / 3) poses."""
    poses = -(-(2 * g1.n + 3) // 3)
    assert rank([g1.com_rows(g1.free(), 'left', 3) for _ in range(poses)]) == 2 * g1.n + 3
    assert rank([g1.com_rows(g1.free(), 'left', 3) for _ in range(poses + 9)]) == 2 * g1.n + 3
    assert rank([g1.com_rows(g1.free(), 'left', 3) for _ in range(poses - 1)]) < 2 * g1.n + 3


def test_rank_of_cop_of_one_foot(g1):
    """2 n + 2, from n + 1 poses: the paper's k."""
    assert rank([g1.com_rows(g1.free(), 'left', 2) for _ in range(g1.n + 1)]) == 2 * g1.n + 2
    assert rank([g1.com_rows(g1.free(), 'left', 2) for _ in range(g1.n + 9)]) == 2 * g1.n + 2


def test_rank_of_cop_and_torques(g1):
    """2 n + 2, from two poses."""
    def rows(q):
        return np.concatenate((g1.com_rows(q, 'left', 2), g1.torque_rows(q, 'left')))

    assert rank([rows(g1.free()) for _ in range(2)]) == 2 * g1.n + 2
    assert rank([rows(g1.free()) for _ in range(8)]) == 2 * g1.n + 2


def test_rank_of_double_support(g1):
    """2 n + 1, with feet put down here and there."""
    rows = [g1.com_rows(g1.over_both_feet(), 'left', 2) for _ in range(80)]
    assert rank(rows) == 2 * g1.n + 1


def test_rank_of_both_single_supports(g1):
    rows = [g1.com_rows(g1.free(), foot, 2) for foot in ('left', 'right') for _ in range(50)]
    assert rank(rows) == 2 * g1.n + 3


def test_the_hips_turn_over_standing_feet(g1):
    """Soles under a rotated HipShift: they stay where they are with respect to each other."""
    hips = HipShift(g1.model, g1.model.posture('stand'))
    turn = Pose.from_rpy((0.1, -0.15, 0.2), np.array((0.02, -0.01, -0.03)))
    q = hips.positions(turn.position, turn.rotation)
    for foot in ('left', 'right'):
        sole = g1.model.config.feet[foot].sole
        before = g1.model.state(g1.model.posture('stand')).pose_in_base(sole)
        after = turn @ g1.model.state(q).pose_in_base(sole)
        np.testing.assert_allclose(after.position, before.position, atol=1e-6)
        np.testing.assert_allclose(after.rotation, before.rotation, atol=1e-6)


def test_bad_captures_are_refused_by_name():
    true = TrueRobot('talos')
    regressor, theta = StaticsRegressor(true.model), true.theta
    good = true.capture(('left',), name='seven')

    def refused(match, **changes):
        with pytest.raises(InputError, match=match):
            regressor.equations(Capture(**{**vars(good), **changes}), theta)

    refused("positions of capture 'seven' must have shape", positions=good.positions[1:])
    refused('are not finite', up=np.array((0.0, np.nan, 1.0)))
    refused('unit vector', up=np.zeros(3))
    refused("'right' of capture 'seven' is marked as standing", in_contact=np.array([True, True]),
            wrenches=good.wrenches * [[1.0], [0.0], [1.0], [1.0]])
    broken = good.wrenches.copy()
    broken[0, 2] = np.nan
    refused('was not measured', wrenches=broken)


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
