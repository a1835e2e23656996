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
"""``~/balance`` of gait_player over DDS: feedback while the robot stands."""

from __future__ import annotations

from biped_com_ros.core.model.robot import RobotModel
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from support.slope_rig import SLOPE, SlopeRig


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


def rig_of(model, **parameters):
    rig = SlopeRig(model, is_stiff=False, **{'feedback': True, **parameters})
    rig.stand()
    return rig.until_it_may()


@pytest.fixture
def rig(model):
    rig = rig_of(model)
    yield rig
    rig.close()


def begin(rig):
    assert rig.balance(True).success
    rig.state_is('balancing')
    rig.until(lambda: abs(rig.lean) < 0.005, 40.0, 'a robot that is upright')


def ground_tilt(rig):
    return {value.key: value.value for value in rig.lines['gait'].values}[
        'tilt of the ground [deg]']


def test_a_robot_on_a_slope_comes_upright_walks_and_returns_to_its_posture(rig, model):
    assert rig.lean == pytest.approx(SLOPE)
    begin(rig)
    assert rig.states[-2] == 'planning'
    # If the node ended now, the robot would stay upright.
    assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(SLOPE, abs=0.01)
    assert rig.request('single_step').success
    rig.state_is('walking')
    rig.state_is('balancing')
    assert abs(rig.lean) < 0.01
    # The line is up to a second old, and the tilt comes to rest after the step.
    rig.until(lambda: ground_tilt(rig).endswith(f'pitch {np.degrees(SLOPE):.1f}'), 20.0,
              'the tilt of the ground')
    response = rig.balance(False)
    assert response.success and response.message == 'standing without feedback'
    rig.state_is('standing')
    rig.until(lambda: rig.lean == pytest.approx(SLOPE, abs=1e-3), 40.0, 'the posture')
    assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(0.0, abs=1e-6)


def test_without_inputs_the_posture_is_kept_and_they_are_named(model):
    rig = rig_of(model, feedback_timeout=2.0)
    try:
        begin(rig)
        rig.silent.add('wrenches')
        rig.until(lambda: 'posture is kept' in rig.lines['gait'].message, 20.0, 'a warning')
        status, before = rig.lines['gait'], len(rig.trajectories)
        assert status.level == DiagnosticStatus.WARN
        assert 'wrench_aggregator/left/wrench' in status.message
        rig.pass_time(4.0)
        assert len(rig.trajectories) <= before + 1 and abs(rig.lean) < 0.005
        rig.silent.clear()
        rig.until(lambda: len(rig.trajectories) > before + 2, 20.0, 'trajectories')
        rig.until(lambda: rig.lines['gait'].message == 'balancing', 20.0, 'no warning')
    finally:
        rig.close()


def test_a_fall_ends_it(rig):
    begin(rig)
    rig.report(DiagnosticStatus.ERROR, 'the robot has fallen', 'FALLEN')
    rig.state_is('halted')
    before = len(rig.trajectories)
    rig.pass_time(2.0)
    assert len(rig.trajectories) == before
    assert 'the robot has fallen' in rig.lines['gait'].message


def test_shifts_wait_and_a_second_request_changes_nothing(rig):
    begin(rig)
    assert rig.balance(True).message == 'the robot balances already'
    refused = rig.request('shift_com')
    assert not refused.success and 'the robot balances' in refused.message
    assert '/balance with data: false' in refused.message
    assert '/balance with data: false' in rig.request('stop').message
    assert rig.states[-1] == 'balancing'


def test_without_feedback_it_is_refused_and_the_parameter_ends_it(rig, model):
    begin(rig)
    client = rig.peer.create_client(SetParameters, 'gait_player/set_parameters')
    rig.call(client, SetParameters.Request(parameters=[
        Parameter('feedback', value=False).to_parameter_msg()]))
    rig.state_is('standing')
    rig.until(lambda: rig.lean == pytest.approx(SLOPE, abs=1e-3), 40.0, 'the posture')
    refused = rig.balance(True)
    assert not refused.success and "parameter 'feedback' to true" in refused.message


def test_without_foot_wrenches_it_does_not_begin_and_they_are_named(rig):
    rig.silent.add('wrenches')
    assert rig.balance(True).success
    rig.until(lambda: 'cannot balance' in rig.lines['gait'].message, 20.0, 'an error')
    assert 'wrench_aggregator/right/wrench' in rig.lines['gait'].message
    assert rig.states[-1] == 'standing' and not rig.trajectories
    rig.silent.clear()
    begin(rig)


def test_stop_cancels_a_request(rig):
    rig.freeze(True)  # inputs do not settle
    assert rig.balance(True).success
    rig.state_is('planning')
    assert rig.request('stop').message == 'planning is cancelled'
    rig.freeze(False)
    rig.state_is('standing')
    rig.pass_time(8.0)
    assert 'balancing' not in rig.states and not rig.trajectories


@pytest.mark.parametrize('moment', ('request', 'planning'))
def test_a_request_that_is_taken_back_does_not_begin(rig, moment):
    assert rig.balance(True).success
    if moment == 'planning':
        rig.until(lambda: rig.node.balance.is_requested is False, 20.0, 'planning')
    assert rig.balance(False).success
    rig.state_is('standing')
    rig.pass_time(8.0)
    assert rig.states[-1] == 'standing'
    if moment == 'request':
        assert 'balancing' not in rig.states and not rig.trajectories
    begin(rig)  # it can be requested again


def test_a_walk_that_is_planned_when_it_ends_goes_on_or_names_why(rig):
    begin(rig)
    assert rig.request('single_step').success
    assert rig.balance(False).message == 'standing without feedback'
    rig.until(lambda: rig.states[-1] in ('walking', 'standing'), 40.0, 'an end of planning')
    if rig.states[-1] == 'standing':
        assert 'cannot walk' in rig.node.session.problem or 'stand' in rig.node.session.problem
    else:
        rig.state_is('standing')
