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

"""Poses, and the ways to them."""

from dataclasses import replace
import math
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    predict_capture, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.poses.pose_design import PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import (
    DesignOptions, PoseSafety, SelfCollision, STEP)
from biped_com_ros.core.identification.poses.stances import Stances
from biped_com_ros.core.identification.poses.transfer import travel
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import bend_and_direction
from examples.static_robot import StaticRobot
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
import shapely
from support.statics_data import NOISE, PERFECT, TrueRobot


def options_of(**changes):
    """Return options of a quick design, with these changes."""
    return DesignOptions(**{
        'hoisted': 0, 'approach': 'shortest', 'margin': 0.015, 'torso_bend': 0.2, **changes})


OPTIONS = options_of(count=8, candidates=40, seed=3)
FEET = ('left', 'right')


@pytest.fixture(scope='module')
def designed():
    """Return a robot and poses for it."""
    model = RobotModel.load('sabian')
    reports = []
    design = PoseDesigner(model, OPTIONS).design(lambda *report: reports.append(report))
    return model, design, reports


def foot_polygon(model, positions, foot, stance):
    """Corners of a sole in the frame of the stance sole."""
    state = model.state(positions)
    to_stance = state.pose_in_base(model.config.feet[stance].sole).inverse()
    sole = to_stance @ state.pose_in_base(model.config.feet[foot].sole)
    corners = np.array([(x, y, 0.0) for x, y in model.config.feet[foot].polygon])
    return sole.apply(corners)


def is_stable(model, positions, standing):
    """Whether the centre of mass is inside the convex hull of all soles' corners."""
    stance = standing[0]
    corners = np.concatenate([foot_polygon(model, positions, foot, stance) for foot in standing])
    to_stance = model.state(positions).pose_in_base(model.config.feet[stance].sole).inverse()
    com = to_stance.apply(model.state(positions).com_in_base)
    return shapely.MultiPoint(corners[:, :2]).convex_hull.covers(shapely.Point(com[:2]))


def test_poses_are_safe(designed):
    model, design, _ = designed
    static = StaticRobot(model.config, model.urdf, {}, model.joint_names)
    pin_model, actuated = model.pin_model, list(model.actuated_joint_names)
    efforts = [pin_model.effortLimit[pin_model.joints[pin_model.getJointId(name)].idx_v]
               for name in actuated]
    assert len(design.poses) == 8
    for pose in design.poses:
        assert is_stable(model, pose.positions, pose.standing)
        assert pose.margin >= OPTIONS.margin and pose.torque_share <= OPTIONS.torque_share
        assert (pose.positions >= pin_model.lowerPositionLimit[7:]).all()
        assert (pose.positions <= pin_model.upperPositionLimit[7:]).all()
        torques = static.read(pose.positions, pose.standing).torques
        assert (np.abs(torques[model.joint_index(actuated)]) <= 0.81 * np.array(efforts)).all()
        for foot in set(FEET) - set(pose.standing):
            assert foot_polygon(model, pose.positions, foot, pose.standing[0])[:, 2].min() > 0.009
        if pose.standing == FEET:
            corners = foot_polygon(model, pose.positions, 'right', 'left')
            np.testing.assert_allclose(corners[:, 2], 0.0, atol=1e-5)


def test_ways_are_small_steps_from_pose_to_pose(designed):
    model, design, _ = designed
    at = Stances(model).positions(Stances(model).home(FEET))
    collision = SelfCollision(model, [model.posture(name) for name in model.config.postures])
    for pose in design.poses:
        way = np.concatenate((at[np.newaxis], pose.path))
        assert np.abs(np.diff(way, axis=0)).max() < 2.5 * STEP
        np.testing.assert_allclose(way[-1], pose.positions, atol=1e-9)
        for q in pose.path:
            assert collision.touching(q) is None
            # Weight shifts between feet happen on the way: one of the supports holds.
            assert any(is_stable(model, q, standing) for standing in (
                pose.standing, ('left',), ('right',), FEET))
        at = pose.positions


def test_better_than_random(designed):
    _, design, reports = designed
    assert design.information > design.random_information
    assert design.com_std < design.random_com_std
    assert '8 poses' in design.summary() and '% better' in design.summary()
    stages = {what for what, _, _ in reports}
    assert {'looking for safe poses', 'choosing', 'exchanging', 'finding paths'} <= stages
    assert all(0 < done <= total for _, done, total in reports)


def test_information_is_what_the_estimate_gains(designed):
    """Predicted uncertainty against that of an estimate from such poses."""
    model, design, _ = designed
    true = TrueRobot('sabian', seed=5)
    captures = [true.capture(pose.standing, NOISE, pose.positions) for pose in design.poses]
    estimator = Estimator(model, SensorNoise(**PERFECT))
    found = estimator.solve(captures)
    stds = [found.com_std(estimator.regressor, pose.positions)[:2] for pose in design.poses]
    rows = [estimator.rows(capture) for capture in captures]
    predicted = estimator.predicted_com_std(
        np.eye(estimator.dimension) + sum(A.T @ A for A in rows),
        [pose.positions for pose in design.poses])
    assert 0.4 < np.sqrt(np.mean(np.square(stds))) / predicted < 2.0
    # The plan does not trust the instruments.
    assert design.com_std > predicted


@pytest.mark.parametrize('name', ('talos', 'g1', 'icub'))
def test_predictions_are_mujocos(name):
    """Sensors in the air, nested and loaded, and torques; on one foot, on two, and hanging."""
    true = TrueRobot(name, seed=1)
    regressor = StaticsRegressor(true.model)
    for standing in (('left',), ('right',), FEET, ()):
        q = true.positions(standing)
        expected, found = (true.static.read(q, standing),
                           predict_capture(regressor, q, standing, true.theta))
        np.testing.assert_allclose(found.wrenches, expected.wrenches, atol=1e-6)
        np.testing.assert_allclose(found.torques, expected.torques, atol=1e-6)


def test_self_collision_is_found():
    model = RobotModel.load('sabian')
    collision = SelfCollision(model, [model.posture('stand')])
    assert collision.pair_count > 100
    assert collision.touching(model.posture('stand')) is None
    inward = model.positions({'l_shoulder_roll': -0.2, 'l_elbow': -1.2, 'l_shoulder_yaw': -1.0})
    into = model.positions({'l_hip_roll': -0.5, 'r_hip_roll': 0.5})
    assert collision.touching(into) is not None or collision.touching(inward) is not None


@pytest.fixture(scope='module')
def hoisted():
    """Return a designer and poses, two of them hanging, the torso bent."""
    designer = PoseDesigner(RobotModel.load('sabian'), replace(
        OPTIONS, count=5, candidates=10, double_support=1.0, hoisted=2))
    return designer, designer.design()


def test_hanging_comes_first_and_weighs_the_feet(hoisted):
    designer, design = hoisted
    assert [pose.standing for pose in design.poses] == [(), (), FEET, FEET, FEET]
    assert design.poses[0].support == 'hoisted' and design.poses[0].margin == np.inf
    assert design.com_std < 0.9 * design.grounded_com_std
    # It is lifted and let down in one posture, where ways to hanging and to standing begin.
    home = Stances(designer.model).positions(Stances(designer.model).home(FEET))
    for pose in (design.poses[0], design.poses[2]):
        assert np.abs(pose.path[0] - home).max() < 2.5 * STEP
    np.testing.assert_allclose(designer.way_home(design.poses[1])[-1], home, atol=1e-9)


def test_a_tendon_torso_goes_where_tendons_bring_it(hoisted):
    designer, design = hoisted
    body = TorsoBody(designer.model)
    index = designer.model.joint_index(body.joint_names)
    bends = [bend_and_direction(body.shape(pose.positions[index]))[0] for pose in design.poses]
    assert 0.05 < max(bends) <= 0.2 + 1e-9
    for pose in design.poses:
        shape = body.shape(pose.positions[index])
        np.testing.assert_allclose(body.joint_positions(shape), pose.positions[index], atol=1e-6)


def test_the_pose_of_the_robot_is_located(hoisted):
    designer, design = hoisted
    assert designer.locate(design, designer.model.posture('stand'), 0.1) is None
    near = design.poses[3].positions + 0.03
    assert designer.locate(design, near, 0.1) is design.poses[3]
    lost = designer.model.posture('stand') + 0.8
    with pytest.raises(InputError, match='bring it to posture stand'):
        designer.locate(design, lost, 0.1)


@pytest.mark.parametrize(('options', 'error', 'problem'), [
    ({'approach': 'boht'}, ConfigurationError, "'approach' is boht; it must be one of 'both'"),
    pytest.param({'count': 2, 'candidates': 5}, InputError, 'only 0 of 2 safe poses .*legs do not '
                 'reach', marks=pytest.mark.thorough)])
def test_what_cannot_be_planned_is_refused(options, error, problem):
    with pytest.raises(error, match=problem):
        PoseDesigner(RobotModel.load('three_link'), options_of(**options)).design()


@pytest.mark.parametrize('foot', FEET)
def test_weight_goes_over_a_foot_as_by_increments(designed, foot):
    # Two ways to the same posture: legs solved for a placement, and increments by Jacobians.
    model, _, _ = designed
    stances = Stances(model)
    home, plain = stances.home((foot,)), stances.home(FEET)
    solved = stances.positions(replace(plain, height=home.height, com_target=home.com_target))
    moved = ComShift(model, stances.positions(plain)).over(foot, stances.target_on(foot))
    assert np.abs(moved - stances.positions(plain)).max() > 0.1
    np.testing.assert_allclose(moved, solved, atol=2e-3)


def with_limits(model, limit, *joints):
    """Return a robot some of whose joints hardly move."""
    urdf = ElementTree.fromstring(model.urdf)
    for name in joints:
        urdf.find(f"joint[@name='{name}']/limit").attrib.update(
            lower=f'-{limit}', upper=f'{limit}')
    return RobotModel(model.config, ElementTree.tostring(urdf, encoding='unicode'))


def test_a_joint_that_keeps_the_weight_from_going_over_a_foot_is_named(designed):
    robot = with_limits(designed[0], 0.05, 'r_ankle_roll')
    with pytest.raises(InputError, match='alone: .*limits: r_ankle_roll at .* double_support'):
        PoseDesigner(robot, OPTIONS).design()
    PoseDesigner(robot, replace(
        OPTIONS, count=3, candidates=6, double_support=1.0)).design()


@pytest.mark.thorough
def test_a_robot_with_little_room_gets_a_plan_and_the_joints_that_limit_it(designed):
    """Hips that hardly roll: fewer safe postures than asked for are no error."""
    narrow = with_limits(
        designed[0], 0.02, 'l_hip_roll', 'r_hip_roll', 'l_ankle_roll', 'r_ankle_roll')
    plan = PoseDesigner(narrow, options_of(
        count=3, candidates=16, double_support=1.0)).design()
    assert len(plan.poses) == 3 and plan.candidates < 16
    assert "limit of joint '" in plan.summary() and '_roll' in plan.limits


def test_a_tilted_floor_needs_a_margin_that_grows_with_the_height():
    """The weight's line leans by the tilt: at the height of the CoM that is so many mm."""
    model = RobotModel.load('talos')
    stances, stand = Stances(model), model.posture('stand')
    state = model.state(stand)
    height = state.com_in_base[2] - state.placements_in_base(model.soles)[:, 3, 2].mean()
    there = stances.stability_margin(stand, FEET)
    gentle, hard, steep = (PoseSafety(StaticsRegressor(model), stances, options_of(
        margin=0.03, floor_tilt=math.atan(leaning / height)))
        for leaning in (0.98 * (there - 0.03), 1.02 * (there - 0.03), there - 0.014))
    assert gentle.check(stand, FEET)[1] == pytest.approx(there)
    with pytest.raises(InputError, match='too near the edge'):
        hard.check(stand, FEET)
    # On the way half of the margin is enough, but all of the tilt.
    assert gentle.is_safe_on_path(stand, FEET) and hard.is_safe_on_path(stand, FEET)
    assert not steep.is_safe_on_path(stand, FEET)


ANGLE = 0.05


@pytest.fixture(scope='module', params=[
    pytest.param(name, marks=pytest.mark.thorough) for name in ('sabian', 'talos')])
def approached(request):
    """Return a designer that approaches from both sides, its design and all visits."""
    designer = PoseDesigner(RobotModel.load(request.param), options_of(
        count=4, candidates=12, hoisted=1, double_support=1.0, torso_bend=0.0, margin=0.02,
        approach='both', approach_angle=ANGLE))
    design = designer.design()
    return designer, design, designer.remaining(design, ())


def last_moves(visit):
    """Return the directions of the joints' last moves on a path, and how far these went."""
    steps = np.diff(visit.path, axis=0)
    ends = visit.path[-1] - visit.path
    moved = np.zeros(len(visit.positions))
    for joint in range(len(moved)):
        turns = np.flatnonzero(steps[:, joint] * steps[-1, joint] <= 0.0)
        moved[joint] = ends[turns[-1] + 1 if len(turns) else 0, joint]
    return moved


def test_joints_come_to_rest_from_opposite_sides(approached):
    designer, design, visits = approached
    model = designer.model
    motors = model.joint_index([
        name for name in model.actuated_joint_names if 'gripper' not in name])
    assert [visit.name for visit in visits] == [
        name for pose in design.poses for name in (pose.name, f'{pose.name} again')]
    assert all(0 < visit.slow_steps < len(visit.path) for visit in visits)
    shares = []
    for one, other, pose in zip(visits[::2], visits[1::2], design.poses):
        np.testing.assert_array_equal(one.path[-1], pose.positions)
        np.testing.assert_array_equal(other.path[-1], pose.positions)
        moves = [last_moves(visit)[motors] for visit in (one, other)]
        opposite = (moves[0] > 0.0) != (moves[1] > 0.0)
        far = np.minimum(*np.abs(moves)) >= 0.25 * ANGLE
        shares.append(np.mean(opposite & far))
    assert min(shares) > 0.75 and np.mean(shares) > 0.9


def test_the_second_visit_stays_beside_the_pose(approached):
    """Arms by the angle, legs by little more: a few degrees, not another pose."""
    _, _, visits = approached
    for visit in visits[1::2]:
        assert np.abs(visit.path - visit.positions).max() < 4.0 * ANGLE


def test_every_step_is_safe(approached):
    designer, _, visits = approached
    safety = PoseSafety(designer._estimator.regressor, designer._stances, designer.options)
    for visit in visits:
        standing = visit.standing
        assert all(safety.is_safe_on_path(q, standing) for q in visit.path)


def test_a_visit_that_is_done_is_not_planned_again(approached):
    designer, design, _ = approached
    done = {'pose 1', 'pose 1 again', 'pose 2'}
    left = [visit.name for visit in designer.remaining(design, done)]
    assert left == ['pose 2 again', 'pose 3', 'pose 3 again', 'pose 4', 'pose 4 again']


def test_shortest_paths_visit_once(approached):
    designer, design, _ = approached
    shortest = PoseDesigner(designer.model, replace(designer.options, approach='shortest'))
    visits = shortest.remaining(design, ())
    assert [visit.name for visit in visits] == [pose.name for pose in design.poses]
    assert shortest.options.visits == 4 and not any(visit.slow_steps for visit in visits)


LINE = np.linspace(0.0, 1.0, 11)[1:, np.newaxis] * np.array(((1.0, -0.5),))
START = np.zeros(2)


def finely(way, start):
    """Positions and velocities every 2 ms, joined as a joint trajectory controller does."""
    times = np.concatenate(((0.0,), way.times))
    spline = CubicHermiteSpline(
        times, np.concatenate((start[np.newaxis], way.positions)),
        np.concatenate((np.zeros((1, way.positions.shape[1])), way.velocities)))
    t = np.arange(0.0, way.duration, 0.002)
    return t, spline(t), spline(t, 1)


def test_it_starts_and_ends_at_rest_and_keeps_the_speed():
    way = travel(START, LINE, 0.4, ramp=1.0)
    _, positions, velocities = finely(way, START)
    np.testing.assert_allclose(way.positions[-1], LINE[-1], atol=1e-12)
    np.testing.assert_allclose(way.velocities[-1], 0.0, atol=1e-12)
    assert 0.39 < np.abs(velocities).max() < 0.41
    assert way.duration == pytest.approx(1.0 / 0.4 + 1.0)
    # On the line all the time.
    np.testing.assert_allclose(positions[:, 1], -0.5 * positions[:, 0], atol=1e-9)


@pytest.mark.parametrize('seed', range(20))
def test_rounded_bends_keep_the_speed_too(seed):
    random = np.random.default_rng(seed)
    joints, speed = int(random.integers(1, 8)), random.uniform(0.05, 2.0)
    start = random.uniform(-1.0, 1.0, joints)
    steps = random.normal(0.0, random.choice((0.001, 0.02, 0.1)), (12, joints))
    way = travel(start, start + np.cumsum(steps, axis=0), speed, random.uniform(0.05, 3.0))
    _, positions, velocities = finely(way, start)
    assert np.abs(velocities).max() <= speed * (1.0 + 1e-9)
    np.testing.assert_allclose(way.positions[-1], start + steps.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(way.velocities[-1], 0.0, atol=1e-12)


def test_it_does_not_jerk():
    """A raised cosine accelerates by at most pi / 2 times speed over ramp."""
    t, _, velocities = finely(travel(START, LINE, 0.4, ramp=1.0), START)
    acceleration = np.abs(np.diff(velocities, axis=0)) / (t[1] - t[0])
    assert acceleration.max() < 1.3 * 0.5 * np.pi * 0.4


def test_it_stops_at_corners():
    there_and_back = np.concatenate((LINE, LINE[-2::-1], START[np.newaxis]))
    way = travel(START, there_and_back, 0.4)
    corner = int(np.argmax(way.positions[:, 0]))
    np.testing.assert_allclose(way.positions[corner], LINE[-1], atol=1e-12)
    np.testing.assert_allclose(way.velocities[corner], 0.0, atol=1e-12)
    assert (np.diff(way.times) > 0.0).all()


def test_short_ways_never_get_fast():
    way = travel(START, np.array(((0.01, 0.0),)), 0.4, ramp=1.0)
    assert np.abs(way.velocities).max() < 0.08
    np.testing.assert_allclose(way.positions[-1], (0.01, 0.0), atol=1e-12)


def test_a_way_to_where_it_is_stays_there():
    way = travel(START, np.zeros((3, 2)), 0.4)
    np.testing.assert_array_equal(way.positions, np.zeros((1, 2)))
    assert way.duration > 0.0


def test_nonsense_is_refused():
    with pytest.raises(ConfigurationError, match='above zero'):
        travel(START, LINE, 0.0)
