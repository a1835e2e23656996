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
"""Feedback of gait_player over DDS, from IMU and wrenches to trajectories: steps, ~/balance."""

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.gait_rig import SPEED
from support.slope_rig import SLOPE, SlopeRig


@pytest.fixture
def rig(make):
    """Return a rig with feedback, which may walk."""
    return make(SlopeRig, is_stiff=False, feedback=True).until_it_may()


def begin(rig):
    assert rig.balance(True).success
    rig.pass_states('balancing')
    rig.until(lambda: abs(rig.lean) < 0.005, what='a robot that is upright')


def is_in_posture(rig):
    rig.until(lambda: rig.lean == pytest.approx(SLOPE, abs=1e-3), what='the posture')


@pytest.mark.parametrize('feedback', (True, False))
def test_feedback_turns_the_soles_to_the_slope_and_ends_where_the_plan_ends(make, feedback):
    rig = make(SlopeRig, feedback=feedback).until_it_may()
    rig.begin('single_step', 'walking')
    rig.pace = 1.0
    if feedback:
        rig.until(lambda: len(rig.trajectories) > 3 and rig.pitches(
            rig.trajectories[-1])[0] > 0.02, what='soles that are turned to the ground')
        assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(0.0, abs=1e-6)
    else:
        rig.until(lambda: rig.progress[-1] > 0.3, what='progress')
        trajectory, = rig.trajectories
        assert rig.pitches(trajectory) == pytest.approx(0.0, abs=1e-6)


def test_a_robot_on_a_slope_comes_upright_walks_and_returns_to_its_posture(rig):
    assert rig.lean == pytest.approx(SLOPE)
    begin(rig)
    assert rig.states[-2] == 'planning'
    # If the node ended now, the robot would stay upright.
    assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(SLOPE, abs=0.01)
    rig.begin('single_step', 'walking', 'balancing')
    assert abs(rig.lean) < 0.01
    # The tilt comes to rest after the step.
    rig.until(lambda: rig.value('tilt of the ground [deg]').endswith(
        f'pitch {np.degrees(SLOPE):.1f}'), what='the tilt of the ground')
    response = rig.balance(False)
    assert response.success and response.message == 'standing without feedback'
    rig.pass_states('standing')
    is_in_posture(rig)
    assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.thorough
def test_without_inputs_the_posture_is_kept_and_they_are_named(make):
    rig = make(SlopeRig, is_stiff=False, feedback=True, feedback_timeout=2.0).until_it_may()
    begin(rig)
    rig.silent.add('wrenches')
    rig.warns('posture is kept')
    status, before = rig.lines['gait'], len(rig.trajectories)
    assert status.level == DiagnosticStatus.WARN
    assert 'wrench_aggregator/left/wrench' in status.message
    rig.pass_time(4.0)
    assert len(rig.trajectories) <= before + 1 and abs(rig.lean) < 0.005
    rig.silent.clear()
    rig.until(lambda: len(rig.trajectories) > before + 2, what='trajectories')
    rig.until(lambda: rig.lines['gait'].message == 'balancing', what='no warning')


def test_a_fall_ends_it(rig):
    begin(rig)
    rig.report(DiagnosticStatus.ERROR, 'the robot has fallen', 'FALLEN')
    rig.pass_states('halted')
    before = len(rig.trajectories)
    rig.pass_time(2.0)
    assert len(rig.trajectories) == before
    rig.warns('the robot has fallen')


def test_shifts_wait_and_a_second_request_changes_nothing(rig):
    begin(rig)
    assert rig.balance(True).message == 'the robot balances already'
    refused = rig.request('shift_com')
    assert not refused.success and 'the robot balances' in refused.message
    assert '/balance with data: false' in refused.message
    assert '/balance with data: false' in rig.request('stop').message
    assert rig.states[-1] == 'balancing'


def test_without_feedback_it_is_refused_and_the_parameter_ends_it(rig):
    begin(rig)
    assert not rig.set_parameters(feedback=False)
    rig.pass_states('standing')
    is_in_posture(rig)
    refused = rig.balance(True)
    assert not refused.success and "parameter 'feedback' to true" in refused.message


def test_without_foot_wrenches_it_does_not_begin_and_they_are_named(rig):
    rig.silent.add('wrenches')
    assert rig.balance(True).success
    rig.warns('cannot balance')
    assert 'wrench_aggregator/right/wrench' in rig.lines['gait'].message
    assert rig.states[-1] == 'standing' and not rig.trajectories
    rig.silent.clear()
    begin(rig)


@pytest.mark.parametrize('moment', (
    'stop', pytest.param('request', marks=pytest.mark.thorough),
    pytest.param('planning', marks=pytest.mark.thorough)))
def test_a_request_that_is_taken_back_does_not_begin(rig, moment):
    if moment == 'stop':
        rig.pace = 0.0  # inputs do not settle
    assert rig.balance(True).success
    if moment == 'planning':
        rig.until(lambda: rig.node.balance.is_requested is False, what='planning')
    if moment == 'stop':
        rig.pass_states('planning')
        assert rig.request('stop').message == 'planning is cancelled'
        rig.pace = SPEED
    else:
        assert rig.balance(False).success
    rig.pass_states('standing')
    rig.pass_time(8.0)
    assert rig.states[-1] == 'standing'
    if moment != 'planning':
        assert 'balancing' not in rig.states and not rig.trajectories
    begin(rig)  # it can be requested again


def test_a_walk_that_is_planned_when_it_ends_goes_on_or_names_why(rig):
    begin(rig)
    assert rig.request('single_step').success
    assert rig.balance(False).message == 'standing without feedback'
    rig.until(lambda: rig.states[-1] in ('walking', 'standing'), what='an end of planning')
    if rig.states[-1] == 'standing':
        assert 'cannot walk' in rig.node.session.problem or 'stand' in rig.node.session.problem
    else:
        rig.pass_states('standing')
