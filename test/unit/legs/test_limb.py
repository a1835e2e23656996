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
"""Numeric inverse kinematics against the closed form, for legs without one, and at its limits."""

from copy import copy
from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.gait import GaitOptions, QUICK, walk
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.legs.kinematics import RobotLeg
from biped_com_ros.core.legs.limb import NumericLimb
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
import pinocchio as pin
import pytest
from support.same_names import links_named_like_joints

LEGS = ('biped', 'left'), ('talos', 'right'), ('g1', 'left'), ('g1', 'right'), ('icub', 'right')


def numeric_leg(model, foot):
    return NumericLimb(f'the {foot} leg', model, model.soles, model.foot_index(foot),
                       model.posture())


@pytest.fixture(scope='module', params=LEGS, ids=':'.join)
def leg(request):
    return numeric_leg(RobotModel.load(request.param[0]), request.param[1])


def near_standing(leg, rng, spread=0.3):
    """Return joint positions within the limits."""
    return np.clip(leg.rest + rng.uniform(-spread, spread, 6), leg.lower, leg.upper)


@pytest.mark.parametrize(('robot', 'foot'), (('biped', 'left'), ('talos', 'right')))
def test_it_is_the_closed_form_where_there_is_one(robot, foot):
    model = RobotModel.load(robot)
    closed, numeric = RobotLeg(model, foot), numeric_leg(model, foot)
    assert numeric.joint_names == closed.joint_names
    assert numeric.index == pytest.approx(closed.index)
    assert numeric.length == pytest.approx(closed.length, rel=1e-9)
    assert {type(leg) for leg in legs_of(model).values()} == {RobotLeg}  # which is preferred
    rng = np.random.default_rng(1)
    for _ in range(50):
        positions = near_standing(numeric, rng)
        positions[3] = max(positions[3], 0.1)  # the knee is bent forward
        sole = closed.pose(positions)
        assert numeric.pose(positions).position == pytest.approx(sole.position, abs=1e-12)
        assert numeric.pose(positions).rotation == pytest.approx(sole.rotation, abs=1e-12)
        assert numeric.inverse(sole).positions == pytest.approx(
            closed.inverse(sole).positions, abs=1e-9)


def test_links_and_joints_may_have_the_same_names():
    """As in the URDFs of NAO and T1."""
    config = load_robot_config('biped')
    ours = RobotModel(config, load_urdf(config))
    same = RobotModel(*links_named_like_joints(config, ours.urdf))
    assert set(same.joint_names) & set(same.link_names)
    for foot in config.feet:
        one, other = numeric_leg(ours, foot), numeric_leg(same, foot)
        positions = near_standing(one, np.random.default_rng(8))
        assert other.pose(positions).position == pytest.approx(one.pose(positions).position)
        assert other.jacobian_in_sole(positions) == pytest.approx(one.jacobian_in_sole(positions))


def test_poses_are_reached_to_rounding(leg):
    rng = np.random.default_rng(2)
    for _ in range(100):
        sole = leg.pose(near_standing(leg, rng))
        solution = leg.inverse(sole)
        assert solution.is_reachable
        found = leg.pose(solution.positions)
        assert found.position == pytest.approx(sole.position, abs=1e-12)
        assert found.rotation == pytest.approx(sole.rotation, abs=1e-12)


def test_the_jacobian_is_that_of_finite_differences(leg):
    positions, h = near_standing(leg, np.random.default_rng(3)), 1e-6
    at = leg.pose(positions)
    columns = []
    for step in h * np.eye(6):
        ahead, behind = leg.pose(positions + step), leg.pose(positions - step)
        velocity = at.rotation.T @ (ahead.position - behind.position)
        spin = pin.log3(behind.rotation.T @ ahead.rotation)
        columns.append(np.concatenate((velocity, spin)) / (2.0 * h))
    assert leg.jacobian_in_sole(positions) == pytest.approx(np.array(columns).T, abs=1e-8)


def test_a_motion_stays_on_its_branch(leg):
    """Along a smooth motion the solution is the motion itself, not another one of sixteen."""
    ahead = near_standing(leg, np.random.default_rng(4))
    for share in np.linspace(0.0, 1.0, 40):
        positions = (1.0 - share) * leg.rest + share * ahead
        assert leg.inverse(leg.pose(positions)).positions == pytest.approx(positions, abs=1e-8)


def test_it_reports_how_far_it_does_not_reach_and_reaches_afterwards(leg):
    stands = leg.pose(leg.rest)
    far = Pose(stands.rotation, stands.position - (0.0, 0.0, leg.length))
    solution = leg.inverse(far)
    assert not solution.is_reachable and solution.singular == ('knee',)
    # No nearer than the stretched leg can be, which is at least half of the way off.
    assert 0.3 * leg.length < solution.excess < 1.1 * leg.length
    with pytest.raises(InputError, match='m are left with the limb stretched; lower the hips'):
        leg.positions(far)
    assert leg.positions(stands) == pytest.approx(leg.rest, abs=1e-9)
    positions = leg.rest.copy()
    positions[5] = leg.upper[5] + 0.05
    with pytest.raises(InputError, match=rf'{leg.joint_names[5]} at {positions[5]:.4f} rad'):
        leg.positions(leg.pose(positions))


@pytest.mark.parametrize(('axis', 'remedy'), [*enumerate((
    'the way to the side is too wide', 'lower the hips less', 'turn less with each step'))])
def test_what_helps_depends_on_the_axis_of_the_joint_beyond_its_limits(leg, axis, remedy):
    """Neither shorter steps nor higher hips help a hip that hardly turns inwards."""
    stiff, target = copy(leg), leg.pose(leg.rest)
    joint = int(np.abs(leg.jacobian_in_sole(leg.rest)[3 + axis, :3]).argmax())
    stiff.set_limits(np.where(np.arange(6) == joint, leg.rest + 0.05, leg.lower), leg.upper)
    with pytest.raises(InputError, match=remedy):
        stiff.positions(target)


def test_legs_that_cannot_place_a_sole_are_refused():
    with pytest.raises(ConfigurationError, match='it has 2 motors .*; six are needed'):
        legs_of(RobotModel.load('three_link'))
    config = replace(
        load_robot_config('g1'), locked_joints={'left_knee_joint': 0.3}, postures={})
    with pytest.raises(ConfigurationError, match='left leg of g1 cannot step: it has 5 motors'):
        legs_of(RobotModel(config, load_urdf(config)))


def test_a_gait_names_the_joint_at_its_limit():
    """With the hips too low, iCub's ankles are at the end of their range."""
    with pytest.raises(InputError, match=r'_ankle_pitch at -0\.61\d+ rad \(limits -0\.6109'):
        walk(RobotModel.load('icub'), 1, 0.05, options=GaitOptions(crouch=0.12, dt=0.05))


def test_the_crouch_is_that_of_the_robots_file_unless_given():
    model = RobotModel.load('icub')
    crouch = model.config.walking.crouch
    assert 0.0 < crouch < 0.08
    options = replace(QUICK, dt=0.05, compensations=0)
    lowest = [walk(model, 1, 0.02, options=replace(options, crouch=given)).base[:, 2].min()
              for given in (None, crouch, 0.5 * crouch)]
    assert lowest[0] == lowest[1]
    length = next(iter(legs_of(model).values())).length
    assert lowest[2] - lowest[0] == pytest.approx(0.5 * crouch * length, rel=1e-6)
