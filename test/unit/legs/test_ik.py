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
"""Whole postures: base over standing soles, centre of mass over a point, coupled joints."""

from __future__ import annotations


from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.poses.stances import Stances
from biped_com_ros.core.legs.com_shift import com_in_sole, ComShift
from biped_com_ros.core.legs.gait import single_step
from biped_com_ros.core.legs.ik import legs_of, PostureIk
from biped_com_ros.core.legs.limb import NumericLimb
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pytest
from support.double_knee import double_knee, MULTIPLIER, OFFSET

ROBOTS = ('biped', 'talos', 'g1', 'icub', 'double_knee')


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    return double_knee() if request.param == 'double_knee' else RobotModel.load(request.param)


def com_over(model, positions, base):
    return base.apply(model.state(positions).com_in_base)[:2]


def test_the_base_moves_while_the_soles_stay(robot):
    stand, legs = robot.posture(), {*robot.group_index('left_leg'),
                                    *robot.group_index('right_leg')}
    ik, before = PostureIk(robot, stand), robot.state(stand).placements_in_base(robot.soles)
    reach = 0.1 * abs(before[:, 3, 2]).mean()
    for yaw, *direction in ((0.0, 0.3, 0.0, 0.0), (0.0, 0.0, 0.5, 0.0), (0.0, 0.0, 0.0, -1.0),
                            (0.05, 0.1, -0.3, -0.4)):
        base = Pose.from_rpy((0.0, 0.0, yaw), reach * np.array(direction))
        positions = ik.positions(base)
        after = robot.state(positions).placements_in_base(robot.soles)
        np.testing.assert_allclose(after[:, :3] @ base.rotation.T, before[:, :3], atol=1e-9)
        np.testing.assert_allclose(base.apply(after[:, 3]), before[:, 3], atol=1e-9)
        moved = set(np.flatnonzero(positions != stand))
        assert moved <= legs == set(ik.joints)
    assert moved == legs  # in all directions
    with pytest.raises(InputError, match=rf'leg of {robot.config.name} cannot bring its end'):
        ik.positions(Pose.translation((0.0, 0.0, 0.5)))
    np.testing.assert_allclose(ik.positions(Pose.identity()), stand, atol=1e-9)


def test_the_centre_of_mass_gets_over_a_point_with_a_turned_base_and_a_lifted_foot(robot):
    """Other joints are where the caller has them, and limits are kept where they are to be."""
    ik, rng = PostureIk(robot, robot.posture(), margin=0.01), np.random.default_rng(1)
    lower, upper = position_limits(robot)
    crouch = 0.0 if robot.config.name == 'icub' else 0.03  # its ankles do not bend far
    for _ in range(5):
        lift = Pose.from_rpy((0.0, 0.0, rng.uniform(-0.1, 0.1)), np.array((0.0, 0.0, 0.02)))
        ends = [ik.ends[0], lift @ ik.ends[1]]
        height = -crouch * abs(ik.ends[0].position[2])
        upright = Pose.from_rpy(rng.uniform(-0.05, 0.05, 3), np.array((9.0, 9.0, height)))
        posture = robot.posture() + rng.uniform(-0.1, 0.1, len(robot.joint_names))
        goal = com_over(robot, robot.posture(), Pose.identity()) + rng.uniform(-0.02, 0.02, 2)
        positions, base = ik.over(goal, upright, ends, posture)
        assert com_over(robot, positions, base) == pytest.approx(goal, abs=1e-10)
        np.testing.assert_array_equal(base.rotation, upright.rotation)
        assert base.position[2] == height
        rows = robot.state(positions).placements_in_base(robot.soles)
        for row, end in zip(rows, ends):
            assert base.apply(row[3]) == pytest.approx(end.position, abs=1e-9)
            assert base.rotation @ row[:3].T == pytest.approx(end.rotation, abs=1e-9)
        others = np.setdiff1d(np.arange(len(posture)), ik.joints)
        np.testing.assert_array_equal(positions[others], posture[others])
        legs = positions[ik.joints]
        assert (legs > lower[ik.joints]).all() and (legs < upper[ik.joints]).all()


def test_the_base_moves_by_newmans_formula(robot):
    """A d = dc, with the Jacobian of the centre of mass by finite differences of whole IK."""
    ik, h, stand = PostureIk(robot, robot.posture()), 1e-5, robot.posture()
    columns = []
    for direction in np.eye(3)[:2]:
        ahead, behind = (com_over(robot, ik.positions(pose), pose) for pose in (
            Pose.translation(h * direction), Pose.translation(-h * direction)))
        columns.append((ahead - behind) / (2.0 * h))
    change = np.array((2e-5, -1e-5))
    start = com_over(robot, stand, Pose.identity())
    _, base = ik.over(start + change, Pose.identity())
    assert np.array(columns).T @ base.position[:2] == pytest.approx(change, abs=1e-8)


def test_solutions_after_a_restart_do_not_depend_on_earlier_ones(robot):
    ik, com = PostureIk(robot, robot.posture()), com_over(
        robot, robot.posture(), Pose.identity())
    base = Pose.translation((0.0, 0.0, -0.02))
    first = ik.over(com, base)[0]
    ik.over(com + 0.01, Pose.translation((0.0, 0.0, -0.03)))
    ik.restart()
    np.testing.assert_array_equal(ik.over(com, base)[0], first)


def test_knees_of_two_coupled_joints_step_shift_and_are_planned():
    """What a motor moves counts: each knee's second joint has limits and a share of its own."""
    model = double_knee()
    legs, knee = legs_of(model), model.joint_names.index('l_knee')
    assert all(isinstance(leg, NumericLimb) for leg in legs.values())
    assert position_limits(model)[1][knee] == pytest.approx((1.0 - OFFSET) / MULTIPLIER)
    found = ComShift(model, model.posture()).over('left', (0.01, 0.0))
    assert com_in_sole(model, 'left', found)[:2] == pytest.approx((0.01, 0.0), abs=1e-9)
    gait = single_step(model, 0.03)
    assert gait.positions[:, knee].max() > model.posture()[knee] + 0.1
    stances = Stances(model)
    for standing in (('left', 'right'), ('left',), ('right',)):
        positions = stances.positions(stances.home(standing, 0.01))
        assert stances.stability_margin(positions, standing) > 0.01


def test_a_hand_that_does_not_exist_is_named():
    model = RobotModel.load('biped')
    with pytest.raises(UnknownNameError, match="hand 'lft'.*did you mean 'left'"):
        PostureIk(model, model.posture(), ['lft'])
