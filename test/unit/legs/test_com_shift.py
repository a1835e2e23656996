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
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.legs.keyframes import LegChain
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest

ROBOTS = ('biped', 'talos', 'g1', 'icub')


def soles_in_first_sole(model, positions):
    """Poses of all soles relative to the first one."""
    rows = model.state(positions).placements_in_base(model.soles)
    return [(rows[0, :3] @ row[:3].T, rows[0, :3] @ (row[3] - rows[0, 3])) for row in rows]


def com_in_sole(model, positions, foot):
    """Centre of mass in a sole's frame."""
    state = model.state(positions)
    row = state.placements_in_base(model.soles)[foot]
    return row[:3] @ (state.com_in_base - row[3])


@pytest.mark.parametrize('robot', ROBOTS)
@pytest.mark.parametrize('foot', (0, 1))
def test_gets_over_a_foot_without_moving_the_feet(robot, foot):
    model = RobotModel.load(robot)
    start = model.posture()
    shift = ComShift(model, start)
    found = shift.over(tuple(model.config.feet)[foot], (0.01, 0.0))
    np.testing.assert_allclose(com_in_sole(model, found, foot)[:2], [0.01, 0.0], atol=1e-6)
    for (R, p), (R0, p0) in zip(soles_in_first_sole(model, found),
                                soles_in_first_sole(model, start)):
        np.testing.assert_allclose(R, R0, atol=1e-8)
        np.testing.assert_allclose(p, p0, atol=1e-8)
    legs = np.abs(found - start) > 1e-12
    assert legs[model.group_index('left_leg')].any()
    arms = model.group_index('left_arm')
    np.testing.assert_array_equal(found[arms], start[arms])


def hands_in_first_sole(model, positions):
    """Positions of all hands relative to the first sole."""
    state = model.state(positions)
    sole = state.placements_in_base(model.soles)[0]
    return [sole[:3] @ (state.pose_in_base(hand.frame).position - sole[3])
            for hand in model.config.hands.values()]


@pytest.mark.parametrize('robot', ROBOTS)
def test_a_hand_that_holds_on_stays_where_it_is(robot):
    """Beyond the toes; the other hand moves with the robot."""
    model = RobotModel.load(robot)
    start, (holding, free) = model.posture(), model.config.hands
    reach = max(x for x, _ in model.config.feet['left'].polygon)
    shift = ComShift(model, start, holding=[holding])
    path = shift.path_beyond_toes(0.01, 30)
    expected = reach + 0.01, com_in_sole(model, start, 0)[1]
    assert com_in_sole(model, path[-1], 0)[:2] == pytest.approx(expected, abs=1e-5)
    before, after = (hands_in_first_sole(model, p) for p in (start, path[-1]))
    for positions in path:
        assert hands_in_first_sole(model, positions)[0] == pytest.approx(before[0], abs=1e-8)
    assert after[1][0] - before[1][0] > 0.02
    for (R, p), (R0, p0) in zip(soles_in_first_sole(model, path[-1]),
                                soles_in_first_sole(model, start)):
        np.testing.assert_allclose(R, R0, atol=1e-8)
        np.testing.assert_allclose(p, p0, atol=1e-8)
    still = np.setdiff1d(np.arange(len(start)), shift.joints)
    np.testing.assert_array_equal(path[-1][still], start[still])
    assert not set(model.group_index(f'{free}_arm')) & set(shift.joints.tolist())


@pytest.mark.parametrize('robot', ROBOTS)
def test_a_part_of_the_way_below_a_hand(robot):
    model = RobotModel.load(robot)
    start, hand = model.posture(), tuple(model.config.hands)[1]
    shift = ComShift(model, start, holding=[hand])
    label = model.config.hand_label(hand)
    whole = shift.offset_from(label)
    hand_in_sole = hands_in_first_sole(model, start)[1]
    expected = hand_in_sole - com_in_sole(model, start, 0)
    sole = model.state(start).placements_in_base(model.soles)[0, :3]
    np.testing.assert_allclose((sole @ whole)[:2], expected[:2], atol=1e-9)
    path = shift.path(label, 20, share=0.2)
    moved = com_in_sole(model, path[-1], 0) - com_in_sole(model, start, 0)
    np.testing.assert_allclose(moved[:2], 0.2 * expected[:2], atol=1e-5)


def test_increment_with_a_held_hand_moves_by_the_requested_vector_to_first_order():
    model = RobotModel.load('talos')
    shift = ComShift(model, model.posture(), holding=['left', 'right'])
    before = com_in_sole(model, shift.positions, 0)
    shift.increment(np.array([1e-5, -2e-5, 0.0]))
    sole = model.state(shift.positions).placements_in_base(model.soles)[0, :3]
    moved = sole.T @ (com_in_sole(model, shift.positions, 0) - before)
    np.testing.assert_allclose(moved[:2], [1e-5, -2e-5], atol=1e-8)


def test_hands_that_do_not_exist_or_do_not_hold_on_are_named():
    model = RobotModel.load('biped')
    with pytest.raises(UnknownNameError, match="hand 'lft'.*did you mean 'left'"):
        ComShift(model, model.posture(), holding=['lft'])
    with pytest.raises(UnknownNameError, match="hand 'right_hand'.*valid: left, left_hand"):
        ComShift(model, model.posture(), holding=['left']).over('right_hand')
    with pytest.raises(InputError, match="'left_hand' is a hand; only soles have points"):
        ComShift(model, model.posture(), holding=['left']).over('left_hand', (0.0, 0.0))
    with pytest.raises(InputError, match="the arm of 'l_gripper'|joint 'l_"):
        ComShift(model, model.posture(), holding=['left']).over('left_hand')


def test_increment_moves_by_the_requested_vector_to_first_order():
    model = RobotModel.load('talos')
    shift = ComShift(model, model.posture())
    before = com_in_sole(model, shift.positions, 0)
    shift.increment(np.array([1e-5, -2e-5, -3e-5]))
    after = com_in_sole(model, shift.positions, 0)
    sole = model.state(shift.positions).placements_in_base(model.soles)[0, :3]
    moved = sole.T @ (after - before)
    np.testing.assert_allclose(moved[:2], [1e-5, -2e-5], atol=1e-8)
    assert moved[2] < -1e-5  # the base went down by 3e-5, the legs stay behind


@pytest.mark.parametrize('foot', (0, 1))
def test_the_jacobian_of_a_leg_is_that_of_finite_differences(foot):
    model = RobotModel.load('talos')
    start, h = model.posture(), 1e-6
    leg, data = LegChain(model, foot), pin.Data(model.pin_model)
    pin.computeJointJacobians(model.pin_model, data, model.configuration(start))
    for joint, column in zip(leg.joints, leg.jacobian(data).T):
        before, after = (model.state(start + h * k * np.eye(len(start))[joint]).placements_in_base(
            model.soles)[foot] for k in (-1.0, 1.0))
        np.testing.assert_allclose(column[:3], (after[3] - before[3]) / (2.0 * h), atol=1e-8)
        turn = after[:3].T @ before[:3]
        np.testing.assert_allclose(
            column[3:], np.array((turn[2, 1], turn[0, 2], turn[1, 0])) / (2.0 * h), atol=1e-8)


def test_default_is_below_the_ankle():
    model = RobotModel.load('biped')
    found = ComShift(model, model.posture()).over('right')
    state = model.state(found)
    ankle = state.pose_in_base(model.config.feet['right'].ankle).position
    sole = state.placements_in_base(model.soles)[1]
    np.testing.assert_allclose(
        com_in_sole(model, found, 1)[:2], (sole[:3] @ (ankle - sole[3]))[:2], atol=1e-6)


def test_path_is_smooth_and_ends_there():
    model = RobotModel.load('talos')
    shift = ComShift(model, model.posture())
    path = shift.path('left', 101)
    np.testing.assert_allclose(path[0], model.posture(), atol=1e-9)
    np.testing.assert_allclose(com_in_sole(model, path[-1], 0)[1],
                               com_in_sole(model, ComShift(model, model.posture()).over('left'),
                                           0)[1], atol=1e-5)
    speeds = np.abs(np.diff(path, axis=0)).max(axis=1)
    assert speeds[0] < 0.05 * speeds.max() and speeds[-1] < 0.05 * speeds.max()
    y = [com_in_sole(model, row, 0)[1] for row in path]
    assert (np.diff(y) > -1e-9).all() or (np.diff(y) < 1e-9).all()


def test_a_path_bends_the_knees_no_further_than_it_may():
    model = RobotModel.load('g1')
    whole, path = (ComShift(model, model.posture()) for _ in range(2))
    whole.over('left')
    path.path('left', 20)
    assert path.lowered == pytest.approx(whole.lowered) and path.lowered > 0.0
    with pytest.raises(InputError, match='joint|leg'):
        ComShift(model, model.posture(), 0.0).path('left', 20)


def test_a_limit_in_the_way_is_named_and_nothing_moves():
    model = RobotModel.load('talos')
    shift = ComShift(model, model.posture())
    with pytest.raises(InputError, match='joint|leg'):
        shift.over('left', (0.5, 0.0))
    before = shift.positions.copy()
    offset = shift.offset_from('left', (0.5, 0.0))
    with pytest.raises(InputError):
        shift.increment(offset)
    np.testing.assert_array_equal(shift.positions, before)


def test_stretched_legs_do_not_run_wild():
    model = RobotModel.load('talos')
    straight = model.positions({})
    shift = ComShift(model, straight)
    assert shift.least_singular_value < 0.02
    try:
        for _ in range(20):
            before = shift.positions.copy()
            shift.increment(np.array([0.0, 0.002, 0.0]))
            assert np.abs(shift.positions - before).max() < 0.2
    except InputError as error:
        assert 'stretched' in str(error) or 'limits' in str(error)
    assert np.isfinite(shift.positions).all()


def test_unknown_foot_is_named():
    model = RobotModel.load('talos')
    with pytest.raises(UnknownNameError, match='left, right'):
        ComShift(model, model.posture()).over('middle')
