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
"""The centre of mass over a foot, feet where they were; limits and stretched knees."""

from __future__ import annotations

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs import com_shift
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest


def soles_in_first_sole(model, positions):
    """Poses of all soles relative to the first one."""
    rows = model.state(positions).placements_in_base(model.soles)
    return [(rows[0, :3] @ row[:3].T, rows[0, :3] @ (row[3] - rows[0, 3])) for row in rows]


def com_in_sole(model, positions, foot=0):
    """Centre of mass in a sole's frame."""
    state = model.state(positions)
    row = state.placements_in_base(model.soles)[foot]
    return row[:3] @ (state.com_in_base - row[3])


def assert_feet_stay(model, found, start):
    for (R, p), (R0, p0) in zip(soles_in_first_sole(model, found),
                                soles_in_first_sole(model, start)):
        np.testing.assert_allclose(R, R0, atol=1e-8)
        np.testing.assert_allclose(p, p0, atol=1e-8)


@pytest.mark.parametrize('foot', (0, 1))
def test_gets_over_a_foot_without_moving_the_feet(robot, foot):
    start = robot.posture()
    found = ComShift(robot, start).over(tuple(robot.config.feet)[foot], (0.01, 0.0))
    np.testing.assert_allclose(com_in_sole(robot, found, foot)[:2], [0.01, 0.0], atol=1e-6)
    assert_feet_stay(robot, found, start)
    assert (np.abs(found - start) > 1e-12)[robot.group_index('left_leg')].any()
    arms = robot.group_index('left_arm')
    np.testing.assert_array_equal(found[arms], start[arms])


def hands_in_first_sole(model, positions):
    """Positions of all hands relative to the first sole."""
    state = model.state(positions)
    sole = state.placements_in_base(model.soles)[0]
    return [sole[:3] @ (state.pose_in_base(hand.frame).position - sole[3])
            for hand in model.config.hands.values()]


def test_a_hand_that_holds_on_stays_where_it_is(robot):
    """Beyond the toes; the other hand moves with the robot."""
    start, (holding, free) = robot.posture(), robot.config.hands
    reach = max(x for x, _ in robot.config.feet['left'].polygon)
    shift = ComShift(robot, start, holding=[holding])
    path = shift.path_beyond_toes(0.01, 30)
    expected = reach + 0.01, com_in_sole(robot, start)[1]
    assert com_in_sole(robot, path[-1])[:2] == pytest.approx(expected, abs=1e-5)
    before, after = (hands_in_first_sole(robot, p) for p in (start, path[-1]))
    for positions in path:
        assert hands_in_first_sole(robot, positions)[0] == pytest.approx(before[0], abs=1e-8)
    assert after[1][0] - before[1][0] > 0.02
    assert_feet_stay(robot, path[-1], start)
    still = np.setdiff1d(np.arange(len(start)), shift.joints)
    np.testing.assert_array_equal(path[-1][still], start[still])
    assert not set(robot.group_index(f'{free}_arm')) & set(shift.joints.tolist())


def test_a_part_of_the_way_below_a_hand(robot):
    start, hand = robot.posture(), tuple(robot.config.hands)[1]
    shift, label = ComShift(robot, start, holding=[hand]), robot.config.hand_label(hand)
    whole, sole = shift.offset_from(label), robot.state(start).placements_in_base(robot.soles)[0]
    expected = hands_in_first_sole(robot, start)[1] - com_in_sole(robot, start)
    np.testing.assert_allclose((sole[:3] @ whole)[:2], expected[:2], atol=1e-9)
    path = shift.path(label, 20, share=0.2)
    moved = com_in_sole(robot, path[-1]) - com_in_sole(robot, start)
    np.testing.assert_allclose(moved[:2], 0.2 * expected[:2], atol=1e-5)


@pytest.mark.parametrize('hand, goal, error, words', (
    ('lft', (), UnknownNameError, "hand 'lft'.*did you mean 'left'"),
    ('left', ('right_hand',), UnknownNameError, "hand 'right_hand'.*valid: left, left_hand"),
    ('left', ('left_hand', (0.0, 0.0)), InputError,
     "'left_hand' is a hand; only soles have points"),
    ('left', ('left_hand',), InputError, "over 'left_hand': the left leg.*limits: l_hip_roll at"),
    ('left', ('middle',), UnknownNameError, 'left, left_hand, right')))
def test_what_does_not_exist_or_does_not_hold_on_is_named(model, hand, goal, error, words):
    with pytest.raises(error, match=words):
        ComShift(model, model.posture(), holding=[hand]).over(*goal)


def test_default_is_below_the_ankle(model):
    found = ComShift(model, model.posture()).over('right')
    state = model.state(found)
    ankle = state.pose_in_base(model.config.feet['right'].ankle).position
    sole = state.placements_in_base(model.soles)[1]
    np.testing.assert_allclose(
        com_in_sole(model, found, 1)[:2], (sole[:3] @ (ankle - sole[3]))[:2], atol=1e-6)


@pytest.mark.parametrize('name', ('talos', 'g1'))
def test_path_is_smooth_and_ends_there_with_knees_no_more_bent(name, monkeypatch):
    model = RobotModel.load(name)
    start = model.posture()
    shift, whole = (ComShift(model, start) for _ in range(2))
    path, there = shift.path('left', 101), whole.over('left')
    np.testing.assert_allclose(path[0], start, atol=1e-9)
    y = [com_in_sole(model, row)[1] for row in path]
    assert y[-1] == pytest.approx(com_in_sole(model, there)[1], abs=1e-5)
    assert (np.diff(y) > -1e-9).all() or (np.diff(y) < 1e-9).all()
    speeds = np.abs(np.diff(path, axis=0)).max(axis=1)
    assert speeds[0] < 0.05 * speeds.max() and speeds[-1] < 0.05 * speeds.max()
    assert shift.lowered == pytest.approx(whole.lowered)
    if name == 'g1':
        assert shift.lowered > 0.0
        monkeypatch.setattr(com_shift, '_MAX_LOWERING', 0.0)
        with pytest.raises(InputError, match='joint|leg'):
            ComShift(model, start).path('left', 20)


def test_a_limit_in_the_way_is_named_and_nothing_moves(talos):
    shift = ComShift(talos, talos.posture())
    with pytest.raises(InputError, match=r"over 'left': the \w+ leg of talos.*more bent knees"):
        shift.over('left', (0.5, 0.0))
    np.testing.assert_array_equal(shift.positions, talos.posture())


def test_stretched_legs_do_not_run_wild(talos):
    """Straight knees are at their limit, from which a distance is kept."""
    shift = ComShift(talos, talos.positions({}))
    with pytest.raises(InputError, match='leg_left_4_joint at'):
        shift.path('left', 20)
    np.testing.assert_array_equal(shift.positions, talos.positions({}))


@pytest.mark.parametrize('tilt', ((0.0, 0.06), (-0.08, 0.0)))
def test_on_a_slope_the_centre_of_mass_is_vertically_over_the_point(model, tilt):
    """Roll and pitch of the floor, rad: uphill of the point along the normal of the sole."""
    up = Pose.from_rpy((*tilt, 0.0), np.zeros(3)).rotation.T[:, 2]
    found = ComShift(model, model.posture(), up=up).over('left', (0.01, 0.0))
    row = model.state(found).placements_in_base(model.soles)[0]
    com = com_in_sole(model, found)
    vertical = com - com[2] / (row[:3] @ up)[2] * (row[:3] @ up)
    np.testing.assert_allclose(vertical, [0.01, 0.0, 0.0], atol=1e-9)
    assert abs(com[:2] - (0.01, 0.0)).max() > 0.02
    assert_feet_stay(model, found, model.posture())
