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
"""The fused CoM, against simulated robots that differ from the URDF, and laws of its equation."""

import math
from types import SimpleNamespace

from biped_com_ros.core.com.fused import FusedComEstimator, FusedComSettings, trunk
from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Stance, Twist
from examples.com_filter import NOISE, PUSH, PUSH_AT, Rig
import numpy as np
import pytest
from support.small_robot import small_robot

LEVEL, UP, C, V = slice(0, 2), slice(2, 3), slice(0, 3), slice(3, 6)


def ran(world, motion='sway', seconds=4.0, **options):
    return Rig(sensors=NOISE, world=world, dt=0.005, **options).run(motion, seconds)


def test_a_hidden_load_is_found_by_a_robot_that_sways():
    """Of 8 % of the mass, 20 mm off the middle of the torso, though links and sensors may err."""
    rig = Rig(sensors=NOISE, world='load', dt=0.005)
    found = rig.run('sway', 5.0)
    assert found.rms('kinematic', LEVEL) > 4e-3 and found.rms('kinematic', UP) > 0.02
    assert found.rms('fused', LEVEL) < 0.3 * found.rms('kinematic', LEVEL)
    assert found.rms('fused', UP) < 0.4 * found.rms('kinematic', UP)
    assert rig.fusion.load_probability > 0.7
    assert rig.fusion.mass == pytest.approx(rig.model.mass + 0.288, rel=0.02)
    assert found.mean_nees()[0] < 5.0


@pytest.mark.parametrize('world', ('links', 'load'))
def test_sensors_without_errors_leave_what_they_show_to_the_links_and_the_load(world):
    """Sensors that may be as wrong as usual take half of it: 0.7 and 0.3 mm of 1.1 and 5.4."""
    found = ran(world, seconds=4.5)
    assert found.rms('fused', LEVEL) < (0.35 if world == 'links' else 0.08) * found.rms(
        'kinematic', LEVEL)
    assert found.mean_nees()[0] < 4.0


@pytest.mark.thorough
@pytest.mark.parametrize(('world', 'level', 'height'), [
    ('links', 0.8, 0.95), ('real', 1.1, 0.8), ('all', 1.2, 1.2)])
def test_it_is_no_worse_than_the_urdf_where_sensors_are_wrong_too(world, level, height):
    """Pooled over four robots, with the same defaults in each world; standard errors are 15 %."""
    runs = [ran(world, seed=seed, seconds=4.5) for seed in range(4)]
    for axes, largest in ((LEVEL, level), (UP, height)):
        fused, kinematic = (math.sqrt(np.mean([run.rms(which, axes) ** 2 for run in runs]))
                            for which in ('fused', 'kinematic'))
        assert fused < largest * kinematic
    nees = np.mean([run.mean_nees()[0] for run in runs])
    assert nees < 4.0
    assert np.mean([run.covered()[:3] for run in runs], axis=0).min() > 0.88


def test_links_that_were_calibrated_are_doubted_less(tmp_path):
    """Sensors are as wrong as before, links a tenth: it is no reason to doubt these."""
    robot = tmp_path / 'calibrated.yaml'
    robot.write_text('extends: biped\nname: calibrated\n'
                     'instruments: {deviations: {link_mass: 0.008, link_com: 5.0e-4}}\n')
    rms = {name: [] for name in ('kinematic', 'biped', str(robot))}
    for seed in range(2):
        for name in ('biped', str(robot)):
            found = ran('real', robot=name, seed=seed, left=0.1)
            rms[name].append(found.rms('fused', C))
        rms['kinematic'].append(found.rms('kinematic', C))
        assert found.covered()[:3].min() > 0.88
    by_urdf, doubted, kept = (math.sqrt(np.mean(np.square(each))) for each in rms.values())
    assert kept < 0.6 * doubted and kept < by_urdf + 3e-4


def test_the_velocity_is_better_than_by_kinematics_alone():
    found = ran('real')
    assert found.rms('fused', V) < 0.6 * found.rms('kinematic', V) and found.rms('fused', V) < 3e-3


def test_a_push_is_an_external_force_and_no_load():
    rig = Rig(sensors=NOISE, world='load', dt=0.005)
    found = rig.run('push', 5.5)
    forces, times = np.array(found.forces), np.array(found.times)
    pushed = forces[(times > PUSH_AT + 0.15) & (times < PUSH_AT + 0.45)].mean(axis=0)
    before = forces[(times > 3.0) & (times < PUSH_AT)].mean(axis=0)
    np.testing.assert_allclose(pushed, PUSH, atol=0.25)
    assert np.linalg.norm(before) < 0.25
    assert found.rms('fused', LEVEL) < 0.4 * found.rms('kinematic', LEVEL)


def still(model, seconds, loads=None, since=0.0, dt=0.01, twist=True, noise=(0.05, 0.002)):
    """Return instants of a robot at rest; `loads` are masses on its trunk at a time, kg."""
    rng, state = np.random.default_rng(0), model.state(model.posture())
    soles = state.placements_in_base(model.soles)
    state = state.in_world(Pose(np.eye(3), np.array((0.0, 0.0, -soles[:, 3, 2].min()))))
    soles, weight = state.sole_placements_in_world, 9.81 * model.mass
    com = state.com_in_world
    at = state.in_world(state.base).pose_in_base(trunk(model)).position + state.base.position
    rest = Twist(np.zeros(3), np.zeros(3))
    for k in range(round(seconds / dt)):
        t = since + k * dt
        load = 9.81 * (loads(t) if loads else 0.0)
        zmp = (weight * com[:2] + load * at[:2]) / (weight + load)
        share = (zmp[1] - soles[1, 3, 1]) / (soles[0, 3, 1] - soles[1, 3, 1])
        wrenches = []
        for sole, part in zip(soles, (share, 1.0 - share)):
            force = part * (weight + load)
            moment = np.cross(
                np.array((*zmp, 0.0)) * (1.0, 0.0, 0.0) - sole[3] * (1.0, 0.0, 1.0),
                (0.0, 0.0, force))
            wrench = np.concatenate(((0.0, 0.0, force), sole[:3] @ moment))
            wrenches.append((wrench + rng.normal(size=6) * np.repeat(noise, 3)).tolist())
        yield LocatedState(round(1e9 * t), state, Stance(soles[:, 3], (True, True)), True,
                           lambda _: rest if twist else None, wrenches=wrenches)


def follow(estimator, instants, dt=0.01):
    for located in instants:
        estimator.update(dt, located)
    return estimator


def test_three_kilograms_taken_up_and_put_down_are_found_within_three_seconds():
    model = RobotModel.load('talos')
    estimator = FusedComEstimator(model)
    follow(estimator, still(model, 4.0))
    assert abs(estimator.mass - model.mass) < 1.0 and estimator.unexplained == 0
    follow(estimator, still(model, 3.0, lambda t: 3.0, since=4.0))
    assert estimator.mass - model.mass == pytest.approx(3.0, abs=0.5)
    assert estimator.changes == 1 and estimator.unexplained >= 3
    assert 4e9 < estimator.unexplained_ns < 7e9
    follow(estimator, still(model, 3.0, since=7.0))
    assert abs(estimator.mass - model.mass) < 1.0


@pytest.mark.thorough
def test_noise_of_a_robot_that_stands_for_minutes_moves_nothing():
    """Columns that contain the noise of their rows would explain it, by gains and a load."""
    model = RobotModel.load('biped')
    estimator = follow(FusedComEstimator(model), still(model, 120.0, noise=(0.3, 0.01)))
    assert abs(estimator.mass - model.mass) < 0.01 * model.mass
    assert np.abs(estimator.bias).max() < 2e-3 and abs(estimator.x[-1]) < 1e-4


def test_without_wrenches_or_contacts_it_goes_on_by_kinematics_and_keeps_its_constants():
    model = small_robot()
    estimator = follow(FusedComEstimator(model), still(model, 2.0))
    mass, before = estimator.mass, estimator.now()[0]
    for located in still(model, 1.0, since=2.0):
        located.wrenches = None
        estimator.update(0.01, located)
    assert estimator.mass == mass
    np.testing.assert_allclose(estimator.now()[0], before, atol=1e-6)
    # A gap, and a hoisted robot whose feet carry nothing.
    for located in still(model, 1.0, since=60.0):
        located.wrenches = [[0.0] * 6] * 2
        estimator.update(0.01 if located.stamp_ns > 60_000_000_000 else 57.0, located)
    assert estimator.mass == mass and estimator.is_credible
    np.testing.assert_allclose(estimator.now()[0], before, atol=1e-6)


@pytest.mark.parametrize(('fault', 'largest'), [
    (lambda t, w: 0.0 * w, 1e-3), (lambda t, w: w * [[0.0], [1.0]], 1e-3),
    (lambda t, w: w * max(0.58, 1.0 - 0.05 * t), 0.08),
    (lambda t, w: w + [[0.0, 0.0, 500.0, 0.0, 0.0, 0.0], 6 * [0.0]], 0.2),
    (lambda t, w: 0.0 * w + 1e3, 1e-3), (lambda t, w: w + 2e4 * np.eye(6)[:2], 1e-3)],
    ids=['nothing', 'left dead', 'drifts', '500 N too much', 'nonsense', 'level'])
def test_sensors_that_fail_do_not_take_the_com_along(fault, largest):
    """It stays where it was, or is not credible; sabian is 1.5 m high."""
    model = RobotModel.load('sabian')
    estimator = follow(FusedComEstimator(model), still(model, 2.0))
    before = estimator.bias
    for located in still(model, 12.0, since=2.0):
        located.wrenches = fault(
            1e-9 * located.stamp_ns - 2.0, np.array(located.wrenches)).tolist()
        estimator.update(0.01, located)
        if estimator.is_credible:
            assert math.dist(estimator.bias, before) < largest


@pytest.mark.parametrize(('height', 'credible'), [
    (0.1, True), (-0.5, False), (-315.0, False), (math.nan, False)])
def test_a_com_that_no_load_explains_is_not_credible(height, credible):
    model = RobotModel.load('sabian')
    estimator = follow(FusedComEstimator(model), still(model, 1.0))
    first_moments = estimator._x[:, 3:4 * len(model.joint_names):4]  # all frames are upright
    first_moments += height * model.mass / first_moments.shape[1]
    follow(estimator, still(model, 0.06, since=1.0))
    assert estimator.is_credible is credible


def test_where_nothing_may_be_wrong_it_is_the_urdf():
    zero = {name: 0.0 for name in vars(FusedComSettings()) if name not in (
        'gravity', 'wrench_delay')}
    model = small_robot()
    estimator = follow(FusedComEstimator(model, FusedComSettings(**zero)),
                       still(model, 2.0, lambda t: 5.0))
    assert estimator.mass == pytest.approx(model.mass)
    np.testing.assert_allclose(estimator.bias, np.zeros(3), atol=1e-9)


def test_covariances_in_the_world_contain_those_of_a_filtered_base():
    """A sample of bases with these errors, each turned and moved with the robot on it."""
    model, rng = small_robot(), np.random.default_rng(0)
    root = 0.01 * rng.normal(size=(6, 6))
    twist = Twist(np.array((0.4, -0.2, 0.1)), np.zeros(3))
    state = next(still(model, 0.1)).state
    located = LocatedState(
        0, state, Stance(state.soles_in_world, (True, True)), True, lambda _: twist,
        filtered=SimpleNamespace(pose_covariance=root @ root.T, twist_covariance=root.T @ root))
    estimator = FusedComEstimator(model)
    estimator.update(0.01, located)
    (com, v), R = estimator.now(), state.base.rotation
    arm, errors = com - state.base.position, root @ rng.normal(size=(6, 100_000))
    moved = errors[:3].T + np.cross(errors[3:].T, arm)
    np.testing.assert_allclose(estimator.position_covariance - estimator.com_covariance,
                               np.cov(moved.T), atol=0.03 * np.cov(moved.T).max())
    twists = root.T @ rng.normal(size=(6, 100_000))
    moving = twists[:3].T + np.cross(twists[3:].T, R.T @ arm)
    moving = moving @ R.T + np.cross(errors[3:].T, v)
    np.testing.assert_allclose(estimator.velocity_covariance, np.cov(moving.T),
                               atol=0.03 * np.cov(moving.T).max())


def test_a_link_that_carries_must_exist():
    with pytest.raises(UnknownNameError, match='tors'):
        FusedComEstimator(RobotModel.load('biped'), load_link='tors')
