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
"""Planned poses: safe by an independent look, on safe ways, and better than random ones."""

from dataclasses import replace
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import (
    predict_capture, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.poses.pose_design import PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions, SelfCollision
from biped_com_ros.core.identification.poses.stances import Stances
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import bend_and_direction
from examples.static_robot import StaticRobot
import numpy as np
import pytest
from support.statics_data import NOISE, PERFECT, TrueRobot

OPTIONS = DesignOptions(count=8, candidates=40, seed=3)
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
    """Whether the centre of mass is inside, by half planes through all pairs of corners."""
    stance = standing[0]
    corners = np.concatenate(
        [foot_polygon(model, positions, foot, stance)[:, :2] for foot in standing])
    to_stance = model.state(positions).pose_in_base(model.config.feet[stance].sole).inverse()
    com = to_stance.apply(model.state(positions).com_in_base)[:2]
    for a in corners:
        for b in corners:
            normal = np.array((a[1] - b[1], b[0] - a[0]))
            if ((corners - a) @ normal >= -1e-12).all() and (com - a) @ normal < 0.0:
                return False
    return True


def test_poses_are_safe(designed):
    model, design, _ = designed
    static = StaticRobot(model.config, model.urdf, {}, model.joint_names)
    limits = model.pin_model.lowerPositionLimit[7:], model.pin_model.upperPositionLimit[7:]
    assert len(design.poses) == 8
    for pose in design.poses:
        assert is_stable(model, pose.positions, pose.standing)
        assert pose.margin >= OPTIONS.margin and pose.torque_share <= OPTIONS.torque_share
        assert ((pose.positions >= limits[0]) & (pose.positions <= limits[1])).all()
        torques = static.read(pose.positions, pose.standing).torques
        effort = {name: model.pin_model.effortLimit[model.pin_model.joints[
            model.pin_model.getJointId(name)].idx_v] for name in model.actuated_joint_names}
        for name, limit in effort.items():
            assert abs(torques[model.joint_names.index(name)]) <= 0.81 * limit
        in_air = [foot for foot in FEET if foot not in pose.standing]
        for foot in in_air:
            assert foot_polygon(model, pose.positions, foot, pose.standing[0])[:, 2].min() > 0.009
        if not in_air:
            corners = foot_polygon(model, pose.positions, 'right', 'left')
            np.testing.assert_allclose(corners[:, 2], 0.0, atol=1e-5)


def test_ways_are_small_steps_from_pose_to_pose(designed):
    model, design, _ = designed
    at = Stances(model).positions(Stances(model).home(FEET))
    collision = SelfCollision(model, [model.posture(name) for name in model.config.postures])
    for pose in design.poses:
        way = np.concatenate((at[np.newaxis], pose.path))
        assert np.abs(np.diff(way, axis=0)).max() < 2.5 * OPTIONS.step
        np.testing.assert_allclose(way[-1], pose.positions, atol=1e-9)
        for q in pose.path:
            assert collision.touching(q) is None
            # Weight shifts between feet happen on the way: one of the supports holds.
            assert any(is_stable(model, q, standing) for standing in (
                pose.standing, ('left',), ('right',), FEET))
        at = pose.positions


def test_better_than_random(designed):
    _, design, _ = designed
    assert design.information > design.random_information
    assert design.com_std < design.random_com_std
    assert '8 poses' in design.summary() and '% better' in design.summary()


def test_progress_is_reported(designed):
    _, _, reports = designed
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


def test_never_lifting_a_foot():
    options = replace(OPTIONS, count=3, candidates=6, double_support=1.0)
    design = PoseDesigner(RobotModel.load('sabian'), options).design()
    assert all(pose.standing == FEET for pose in design.poses)


@pytest.fixture(scope='module')
def hoisted():
    """Return a designer and poses, two of them hanging, the torso bent."""
    designer = PoseDesigner(RobotModel.load('sabian'), replace(
        OPTIONS, count=5, candidates=10, double_support=1.0, hoisted=2))
    return designer, designer.design()


def test_hanging_comes_first_and_weighs_the_feet(hoisted):
    designer, design = hoisted
    assert [bool(pose.standing) for pose in design.poses] == [False, False, True, True, True]
    assert design.poses[0].support == 'hoisted' and design.poses[0].margin == np.inf
    assert design.com_std < 0.9 * design.grounded_com_std
    # It is lifted and let down in one posture, where ways to hanging and to standing begin.
    home = Stances(designer.model).positions(Stances(designer.model).home(FEET))
    for pose in (design.poses[0], design.poses[2]):
        assert np.abs(pose.path[0] - home).max() < 2.5 * OPTIONS.step
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


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(ConfigurationError, match='at least one stands'):
        DesignOptions(count=2, hoisted=2)
    with pytest.raises(ConfigurationError, match='cannot be chosen from'):
        DesignOptions(count=10, candidates=5)
    with pytest.raises(InputError, match=r'only 0 of 2 safe poses .*legs do not reach'):
        PoseDesigner(RobotModel.load('three_link'),
                     DesignOptions(count=2, candidates=5)).design()


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


def test_a_joint_that_keeps_the_weight_from_going_over_a_foot_is_named(designed):
    model, _, _ = designed
    roll = re.search(r'<joint name="r_ankle_roll".*?</joint>', model.urdf, re.DOTALL).group()
    stiff = re.sub(r'(lower|upper)="[^"]*"', r'\1="0"', roll).replace(
        'lower="0"', 'lower="-0.05"').replace('upper="0"', 'upper="0.05"')
    robot = RobotModel(model.config, model.urdf.replace(roll, stiff))
    with pytest.raises(InputError, match="alone: joint 'r_ankle_roll' .* double_support"):
        PoseDesigner(robot, OPTIONS).design()
    PoseDesigner(robot, replace(
        OPTIONS, count=3, candidates=6, double_support=1.0)).design()


def test_a_robot_with_little_room_gets_a_plan_and_the_joints_that_limit_it():
    """Hips that hardly roll: fewer safe postures than asked for are no error."""
    model = RobotModel.load('sabian')
    urdf = ElementTree.fromstring(model.urdf)
    for name in ('l_hip_roll', 'r_hip_roll', 'l_ankle_roll', 'r_ankle_roll'):
        limit = urdf.find(f"joint[@name='{name}']/limit")
        limit.set('lower', '-0.02')
        limit.set('upper', '0.02')
    narrow = RobotModel(model.config, ElementTree.tostring(urdf, encoding='unicode'))
    options = DesignOptions(count=5, candidates=60, double_support=1.0)
    plan = PoseDesigner(narrow, options).design()
    assert len(plan.poses) == 5 and plan.candidates < 60
    assert "limit of joint '" in plan.summary() and '_roll' in plan.limits
