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

"""The linear equations of poses: foot wrenches, torques and measured centres of mass."""

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.captures.capture import MotorConstants, SensorNoise
from biped_com_ros.core.identification.equations.com_measurements import (
    com_rows, ComMeasurement, read_com_measurements)
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.moments_from_com import (
    describe_poses, moments_from_com, rank_of)
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest
from support.statics_data import PERFECT, total_com, TrueRobot, without_torques

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
        assert equations.J.shape == (
            len(equations.rows), 2 * n + 3 + 6 * sensors + 3 * len(true.model.config.feet))


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


def test_rank_of_double_support():
    """2 n + 1, with feet put down here and there."""
    model, rng = RobotModel.load('g1'), np.random.default_rng(1)
    regressor, ik = StaticsRegressor(model), PostureIk(model, model.posture('stand'))
    n, rows, (first, second) = len(model.joint_names), [], ik.ends
    while len(rows) < 70:
        left = Pose.from_rpy((0.0, 0.0, rng.uniform(-0.3, 0.3)),
                             np.array((*rng.uniform(-0.08, 0.08, 2), 0.0)))
        turn = Pose.from_rpy(rng.uniform(-0.2, 0.2, 3), np.zeros(3)).rotation
        q = rng.uniform(-0.8, 0.8, n)
        try:
            legs = ik.positions(Pose(turn, rng.uniform(-0.05, 0.05, 3)), [Pose(
                left.rotation @ first.rotation, left.position + first.position), second])
        except InputError:
            continue
        q[ik.joints] = legs[ik.joints]
        rows.append(rows_of(regressor, q, 'cop'))
    A = np.concatenate(rows)
    assert np.linalg.matrix_rank(A, tol=1e-9 * np.linalg.norm(A, 2)) == 2 * n + 1


def test_the_hips_turn_over_standing_feet():
    """Soles under a base that turns: they stay where they are with respect to each other."""
    model = RobotModel.load('g1')
    turn = Pose.from_rpy((0.1, -0.15, 0.2), np.array((0.02, -0.01, -0.03)))
    stand = model.posture('stand')
    q = PostureIk(model, stand).positions(turn)
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
    with pytest.raises(ConfigurationError, match="'force' is 0.0; it must be"):
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


NOISE = SensorNoise(**PERFECT)
EXACT = SensorNoise.exact()


def test_exact_sensors_have_no_errors_but_those_that_are_given():
    sizes = vars(SensorNoise.exact())
    assert max(sizes.values()) <= 1e-6
    assert {name for name, size in sizes.items() if size == 0.0} == set(PERFECT)
    given = SensorNoise.exact(force=0.5, friction=0.1)
    assert given == replace(SensorNoise.exact(), force=0.5, friction=0.1)


def true_com(true, q, frame=''):
    """Return the true total centre of mass in a frame, m."""
    com = total_com(StaticsRegressor(true.model), true.theta, q)
    return true.model.state(q).pose_in_base(frame).inverse().apply(com) if frame else com


def measured(true, q, sd=1e-4, rng=None, frame='', known=(True, True, True)):
    """Return a measurement of the total centre of mass."""
    noise = rng.normal(size=3) * sd if rng else 0.0
    com = np.where(known, true_com(true, q, frame) + noise, np.nan)
    return ComMeasurement(q, com, sd ** 2 * np.eye(3), frame, 'scale')


@pytest.fixture(scope='module')
def three_link():
    """Return the paper's robot with wrong centres of mass but known masses."""
    true = TrueRobot('three_link', seed=3, extra=0.0, com_sigma=0.02)
    return true, StaticsRegressor(true.model)


@pytest.mark.parametrize('frame', ('', 'l_foot'))
def test_rows_are_those_of_the_total_centre_of_mass(three_link, frame):
    true, regressor = three_link
    q = true.positions(('left',))
    rows = com_rows(regressor, measured(true, q, frame=frame), true.theta)
    np.testing.assert_allclose(rows.A @ true.theta.ravel(), 0.0, atol=1e-12)
    moved, step = true.theta.copy(), np.array((0.3, -0.2, 0.1))
    mass = true.theta[:, 0].sum()
    m = measured(true, q, frame=frame)
    beside = com_rows(regressor, replace(m, com=m.com + step), moved)
    np.testing.assert_allclose(beside.A @ moved.ravel(), -mass * step, atol=1e-10)
    np.testing.assert_allclose(rows.covariance, (1e-4 * mass) ** 2 * np.eye(3), rtol=1e-9)


@pytest.mark.parametrize('by', ('wrenches', 'known'))
def test_n_plus_1_poses_with_exact_sensors(three_link, by):
    """Every pose on that foot is right to rounding, the height of single links is not claimed."""
    true, regressor = three_link
    n = len(true.model.joint_names)
    # All joints of this robot pitch, so that wrenches give one equation per pose, not two.
    count = n + 1 if by == 'known' else 2 * n + 2
    poses = [true.positions(('left',)) for _ in range(count)]
    captures = [true.capture(('left',), positions=q) for q in poses] if by == 'wrenches' else []
    known = [measured(true, q, 1e-6) for q in poses] if by == 'known' else []
    found = moments_from_com(regressor, captures, EXACT, known, true.theta[:, 0])
    assert len(found.determined) >= 2 * n + 2 and found.misfit < 1e-6
    for _ in range(5):
        q = true.positions(('left',))
        by_urdf = regressor.model.state(q).com_in_base
        sole = true.model.state(q).pose_in_base(true.model.config.feet['left'].sole).rotation
        apart = sole.T @ (found.com(regressor, q)[0] - true_com(true, q))
        np.testing.assert_allclose(apart[:2], 0.0, atol=1e-8)
        assert np.linalg.norm((sole.T @ (by_urdf - true_com(true, q)))[:2]) > 5e-4


def with_noise(capture, noise, rng):
    """Return a capture with noise in wrenches and inclination."""
    sigma = [noise.force] * 3 + [noise.moment] * 3
    return replace(capture, wrenches=capture.wrenches + sigma * rng.normal(size=(2, 6)),
                   up=capture.up + np.cross(noise.tilt * rng.normal(size=3), capture.up))


def test_noise_of_the_poses_is_as_predicted(three_link):
    true, regressor = three_link
    noise = replace(NOISE, encoder=0.0, slide=0.0)
    exact = [true.capture(('left',)) for _ in range(12)]
    tests = [true.positions(('left',)) for _ in range(4)]
    squares, misfits = [], []
    for _ in range(25):
        captures = [with_noise(c, noise, true.rng) for c in exact]
        found = moments_from_com(regressor, captures, noise, (), true.theta[:, 0])
        misfits.append(found.misfit)
        for q in tests:
            com, covariance = found.com(regressor, q)
            level = true.model.state(q).pose_in_base(
                true.model.config.feet['left'].sole).rotation.T[:2]
            apart = level @ (com - true_com(true, q))
            squares.append(apart @ np.linalg.solve(level @ covariance @ level.T, apart))
    assert 0.75 < np.mean(squares) / 2.0 < 1.3, np.mean(squares)
    assert 0.8 < np.mean(misfits) < 1.25


def test_what_is_not_distinguished_is_named_and_a_joint_that_helps():
    """The elbow was never moved: forearm and upper arm are one body to all poses."""
    true = TrueRobot('sabian', seed=1)
    model, regressor = true.model, StaticsRegressor(true.model)
    elbow = model.joint_names.index('l_elbow')

    def captures(bends):
        for i in range(36):
            q = true.positions(('left',))
            q[elbow] = 0.3 * bends * (i % 3)
            yield true.capture(('left',), positions=q)
    stiff, all_moved = (rank_of(regressor, list(captures(bends))) for bends in (0, 1))
    assert stiff.possible == all_moved.possible > stiff.rank
    assert all_moved.rank > stiff.rank == stiff.possible - len(stiff.confounded)
    assert stiff.joints[0] == 'l_elbow' and 'l_elbow' not in all_moved.joints
    child = next(link for link in model.link_names if link.startswith('l_forearm'))
    assert any(child in text for text in stiff.confounded), stiff.confounded
    assert 'move l_elbow' in stiff.describe() and 'confounded' in stiff.describe()


def test_a_change_that_is_not_observable_changes_no_measurement(three_link):
    """What is named is true: adding it to the robot moves no measured centre of mass."""
    true, regressor = three_link
    q = true.positions(('left',))
    captures = [true.capture(('left',), positions=q), true.capture(('left',), positions=0.9 * q)]
    report = rank_of(regressor, captures)
    assert report.rank == 3  # x twice; its joints pitch only: y of the whole once
    assert len(report.confounded) == report.possible - 3
    whole = describe_poses(regressor, captures, NOISE)
    assert 'poses determine 3 of' in whole and 'in the base' in whole


def test_a_known_height_enters_the_estimate():
    """Foot wrenches hardly see the height; a balance on a board does, in any frame."""
    true = TrueRobot('three_link', seed=5, extra=1.0)
    rng, stand = np.random.default_rng(2), true.model.posture('stand')
    captures = without_torques([true.capture(('left', 'right'), NOISE, stand + angle)
                                for angle in (-0.02, -0.01, 0.0, 0.01, 0.02)])
    heights = [measured(true, stand, 2e-4, rng, frame='l_foot', known=(False, False, True))]
    estimator = Estimator(true.model, NOISE)
    without, found = estimator.solve(captures), estimator.solve(captures, known=heights)
    sd = [f.com_std(estimator.regressor, stand)[2] for f in (without, found)]
    error = [abs(total_com(estimator.regressor, f.parameters, stand) - true_com(true, stand))[2]
             for f in (without, found)]
    assert sd[1] < 0.3 * sd[0] and sd[1] < 1e-3, sd
    assert error[1] < 3.0 * sd[1] and error[1] < 0.5 * error[0]


def test_measurements_in_a_file(tmp_path, three_link):
    true, _ = three_link
    joint = true.model.joint_names[0]
    path = tmp_path / 'known.yaml'
    path.write_text(
        f'- {{com: [0.01, null, 0.3], sd: [0.001, 1, 0.002], positions: {{{joint}: 0.1}}}}\n'
        '- {com: [0, 0, 0.3], covariance: [[1.0e-6, 0, 0], [0, 1.0e-6, 0], [0, 0, 1.0e-6]],\n'
        '   capture: a, frame: l_foot}\n')
    capture = replace(true.capture(('left',)), name='a')
    first, second = read_com_measurements(path, true.model, [capture])
    assert first.positions[0] == 0.1 and np.isnan(first.com[1])
    assert first.covariance[2, 2] == pytest.approx(4e-6)
    assert second.frame == 'l_foot' and (second.positions == capture.positions).all()


@pytest.mark.parametrize(('text', 'problem'), [
    ('{}', 'must hold a list'), ('- 3', 'must have the keys'),
    ('- {com: [0, 0, 1], positions: {}}', 'exactly one of sd and covariance'),
    ('- {com: [0, 0], sd: 0.1, positions: {}}', 'must have shape'),
    ('- {com: [null, null, null], sd: 0.1, positions: {}}', 'at least one axis'),
    ('- {com: [0, 0, 1], sd: 0, positions: {}}', 'symmetric and positive'),
    ('- {com: [0, 0, 1], sd: 0.1, capture: b}', "no capture 'b'"),
    ('- {com: [0, 0, x], sd: 0.1, positions: {}}', 'could not convert'),
    ('- {com: [0, 0, 1], sd: 0.1, positions: {knee_of_nobody: 1}}', 'knee_of_nobody'),
    ('- {com: [0, 0, 1], sd: 0.1, positions: {}, frame: nothing}', 'nothing')])
def test_files_that_cannot_be_used(tmp_path, three_link, text, problem):
    path = tmp_path / 'known.yaml'
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        read_com_measurements(path, three_link[0].model)


def test_nothing_measured(three_link):
    with pytest.raises(InputError, match='no foot stands in any pose, and no centre of mass'):
        moments_from_com(three_link[1], [], NOISE)
