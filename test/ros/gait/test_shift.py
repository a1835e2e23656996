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
"""Shifts of the centre of mass by gait_player, over DDS."""

import re

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.gait_rig import seconds


def com_from_ankle(model, foot, positions):
    """Return the centre of mass from the ankle in the axes of the sole, (3,), m."""
    state, config = model.state(positions), model.config.feet[foot]
    sole, ankle = state.pose_in_base(config.sole), state.pose_in_base(config.ankle)
    return sole.rotation.T @ (state.com_in_base - ankle.position)


def test_the_centre_of_mass_moves_over_a_foot_and_back_with_standing_soles(make, model):
    rig = make(shift_foot='right').until_it_may()
    response = rig.request('shift_com')
    assert response.success and "over 'right'" in response.message
    rig.pass_states('shifting', 'standing')
    there, = rig.trajectories
    assert seconds(there)[-1] == pytest.approx(2.0)
    assert not any(there.points[0].velocities) and not any(there.points[-1].velocities)
    feet = np.diff(rig.soles(model.posture()), axis=0)
    for positions in rig.postures(there):
        assert np.diff(rig.soles(positions), axis=0) == pytest.approx(feet, abs=1e-6)
    rig.is_at(rig.last_pose(), 1e-9)
    assert com_from_ankle(model, 'right', rig.positions)[:2] == pytest.approx(0.0, abs=1e-5)
    assert abs(com_from_ankle(model, 'left', rig.positions)[1]) > 0.05

    refused = rig.request('walk')
    assert not refused.success and 'shift_back' in refused.message
    rig.begin('shift_back', 'shifting', 'standing')
    assert len(rig.trajectories) == 2
    rig.is_at(model.posture())
    assert 'not shifted' in rig.request('shift_back').message
    assert rig.request('single_step').success


def test_on_a_slope_the_centre_of_mass_gets_vertically_over_the_ankle(make, model):
    rig = make(shift_foot='left').until_it_may()
    tilt = Rotation.from_euler('xy', (0.06, -0.1))
    rig.attitude = lambda: (Rotation.from_euler('z', 0.6) * tilt).as_quat()
    rig.begin('shift_com', 'planning', 'shifting', 'standing')
    positions, up = rig.last_pose(), tilt.inv().apply((0.0, 0.0, 1.0))
    sole = model.state(positions).pose_in_base(model.config.feet['left'].sole)
    com = com_from_ankle(model, 'left', positions)
    ankle = model.state(positions).pose_in_base(model.config.feet['left'].ankle)
    com[2] += (sole.rotation.T @ (ankle.position - sole.position))[2]  # above the ground
    up = sole.rotation.T @ up
    assert com[:2] - com[2] / up[2] * up[:2] == pytest.approx(0.0, abs=1e-4)
    assert abs(com[:2]).max() > 0.03


def test_a_shift_that_waits_for_the_imu_can_be_stopped(make):
    rig = make(settling_time=10.0).until_it_may()
    rig.begin('shift_com', 'planning')
    assert 'cancelled' in rig.request('stop').message
    rig.pass_states('standing')
    rig.pass_time(12.0)
    assert not rig.trajectories


def test_joints_that_do_not_get_to_the_end_of_a_shift_are_named(make, model):
    rig = make().until_it_may()
    rig.is_stuck = True
    rig.begin('shift_com', 'shifting', 'standing')
    rig.warns('rad from the end of the shift')
    motion, = rig.trajectories
    errors = np.abs(rig.postures(motion)[-1] - rig.positions)
    assert model.joint_names[int(errors.argmax())] in rig.lines['gait'].message
    assert f'{errors.max():.3f} rad' in rig.lines['gait'].message
    rig.is_stuck = False  # and where they follow, the next one is without a problem
    rig.begin('shift_back', 'shifting', 'standing')
    rig.pass_time(2.0)
    rig.until(lambda: rig.lines['gait'].level == DiagnosticStatus.OK, what='OK')


def test_a_shift_that_the_monitor_interrupts_holds_and_leads_back(make, model):
    rig = make(shift_time=8.0).until_it_may()
    rig.begin('shift_com', 'shifting')
    rig.pass_time(4.0)
    rig.report(DiagnosticStatus.ERROR, 'stability lost: the DCM is outside', 'UNSTABLE')
    rig.pass_states('standing')
    rig.until(lambda: len(rig.trajectories) == 2, what='a trajectory to hold')
    begin, end, held = (com_from_ankle(model, 'left', positions)[1] for positions in (
        model.posture(), rig.postures(rig.trajectories[0])[-1], rig.last_pose()))
    assert min(begin, end) < held < max(begin, end)
    assert 'the DCM is outside' in rig.request('shift_back').message
    rig.report(DiagnosticStatus.OK, 'recovered, now stable', 'STABLE')
    rig.until(lambda: rig.request('shift_back').success, what='the way back')
    rig.is_at(model.posture())


def test_a_hand_that_holds_on_stays_and_the_centre_of_mass_moves_below_it(make, model):
    arms = [model.joint_names[i] for side in ('left', 'right')
            for group in ('leg', 'arm') for i in model.group_index(f'{side}_{group}')]
    rig = make(shift_foot='left_hand', shift_holding=['left'], shift_share=0.3,
               joints=arms).until_it_may()

    def in_sole(point_of):
        state = model.state(rig.positions)
        return state.pose_in_base('r_sole').inverse().apply(point_of(state))

    def hand(state):
        return state.pose_in_base('l_gripper').position

    def com(state):
        return state.com_in_base
    before, hand_before = in_sole(com), in_sole(hand)
    rig.progress.clear()
    rig.begin('shift_com', 'shifting', 'standing')
    rig.is_at(rig.last_pose(), 1e-9)
    assert in_sole(hand) == pytest.approx(hand_before, abs=1e-6)
    moved = (in_sole(com) - before)[:2]
    assert moved == pytest.approx(0.3 * (hand_before - before)[:2], abs=1e-5)
    assert abs(moved[1]) > 0.02
    assert len([p for p in rig.progress if 0.0 < p < 1.0]) > 3 and rig.progress == sorted(
        rig.progress)


@pytest.mark.parametrize('parameters, message', (
    ({'shift_foot': 'middle'}, "no foot 'middle'; valid: left, right"),
    ({'shift_foot': 'left_hand'}, 'hands only if they are in shift_holding'),
    ({'shift_holding': ['lft']}, "hand 'lft'"),
    ({'shift_holding': ['left']}, "l_shoulder_pitch.* would have to move; .* parameter 'joints'")))
def test_what_a_shift_needs_is_named(make, parameters, message):
    rig = make(**parameters).until_it_may()
    response = rig.request('shift_com')
    text = response.message
    if response.success:  # it is planned in the background
        rig.until(lambda: re.search(message, rig.lines['gait'].message), what='the reason')
        text = rig.lines['gait'].message
    assert re.search(message, text)
    assert not rig.trajectories
