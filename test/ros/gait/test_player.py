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
"""gait_player over DDS, with a robot that follows its trajectories, and one that does not."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pytest
from rclpy.parameter import Parameter
from support.gait_rig import seconds, SPEED, YAW

LOST = (DiagnosticStatus.ERROR, 'stability lost: the DCM is outside', 'UNSTABLE')
RECOVERED = (DiagnosticStatus.OK, 'recovered, now stable', 'STABLE')


def test_a_step_is_sent_to_the_controller_and_made(rig, model):
    assert rig.states == ['standing']
    response = rig.request('single_step')
    assert response.success and '1 step of 50 mm' in response.message
    rig.pass_states('walking')
    rig.until(lambda: rig.trajectories, what='a trajectory')
    trajectory, = rig.trajectories
    legs = [*model.config.groups['left_leg'], *model.config.groups['right_leg']]
    assert sorted(trajectory.joint_names) == sorted(legs)
    times = seconds(trajectory)
    assert times[0] == 0.0 and (np.diff(times) > 0.0).all() and 5.4 < times[-1] < 5.5
    assert not any(trajectory.points[-1].velocities) and not any(trajectory.points[0].velocities)
    rig.pass_states('standing')
    left, right = rig.soles(rig.positions)
    assert right[0] - left[0] == pytest.approx(0.05, abs=1e-6)
    assert rig.states == ['standing', 'planning', 'walking', 'standing']
    rig.until(lambda: rig.progress[-1] == 1.0, what='progress')
    assert all(np.diff(rig.progress[1:]) >= 0.0) and min(rig.progress) < 0.1
    check_reference(rig, model)


def check_reference(rig, model):
    """Check that the reference of a step is where com_estimator has the robot."""
    assert {m.header.frame_id for m in rig.references} == {'odom'}
    found = np.array([(m.point.x, m.point.y, m.point.z) for m in rig.references])
    begin = model.state(model.posture())
    height = -begin.placements_in_base(model.soles)[0, 3, 2]
    ground = 0.4 - begin.com_in_base[2] - height
    assert found[0] == pytest.approx((1.0, 2.0, ground), abs=1e-3)  # below the centre of mass
    # At the end between the soles: half a step ahead, turned as the IMU says.
    ahead = 0.025 * np.array((np.cos(YAW), np.sin(YAW)))
    assert found[-1, :2] == pytest.approx((1.0, 2.0) + ahead, abs=1e-3)
    sideways = (found[:, :2] - (1.0, 2.0)) @ (-np.sin(YAW), np.cos(YAW))
    assert sideways.max() > 0.03 and sideways.min() > -0.002  # over the left foot
    shares = np.array([m.data for m in rig.shares])
    assert shares.sum(axis=1) == pytest.approx(1.0) and shares[:, 0].max() == 1.0


def test_the_measured_centre_of_mass_is_put_over_the_foot(make, model):
    """com_bias is what the kinematic centre of mass is off by, in the world."""
    heading = np.array(((np.cos(YAW), -np.sin(YAW)), (np.sin(YAW), np.cos(YAW))))
    middles = []
    for bias in ((0.0, 0.0), heading @ (0.0, -0.008)):
        rig = make()
        rig.bias[:2] = bias
        rig.until_it_may().request('single_step')
        rig.until(lambda rig=rig: rig.trajectories, what='a trajectory')
        postures = rig.postures(rig.trajectories[0])
        halfway = postures[len(postures) // 2]
        middles.append(model.state(halfway).com_in_base - rig.soles(halfway)[0])
    # The other's is truly 8 mm further left.
    assert middles[1] - middles[0] == pytest.approx((0.0, -0.008, 0.0), abs=1e-3)


@pytest.mark.parametrize('pause', (pytest.param(1.0, marks=pytest.mark.thorough), 2.6))
def test_pause_going_on_and_stop(rig, pause):
    rig.begin('walk', 'walking')
    rig.pass_time(pause)
    rig.begin('pause', 'paused')
    rig.pass_time(0.2)
    assert rig.positions == pytest.approx(rig.last_pose(), abs=1e-9)
    held = rig.positions.copy()
    assert 'nothing to pause' in rig.request('pause').message
    rig.pass_time(1.0)
    assert rig.positions == pytest.approx(held, abs=1e-9)
    rig.begin('resume', 'walking')
    rig.begin('stop', 'standing')
    assert is_on_both_feet(rig, rig.positions)
    height = rig.soles(rig.model.posture())[0, 2]
    assert rig.soles(rig.positions)[0, 2] == pytest.approx(height, abs=1e-6)
    assert rig.request('stop').message == 'the robot is already standing'
    rig.begin('single_step', 'walking')  # from one foot ahead


def is_on_both_feet(rig, positions):
    left, right = rig.soles(positions)[:, 2]
    return left == pytest.approx(right, abs=1e-6)


def test_an_error_of_the_monitor_stops_the_walk_but_not_that_of_another_robot(rig):
    rig.begin('walk', 'walking')
    rig.publish('/diagnostics', report_of_another_robot(DiagnosticStatus.ERROR))
    rig.spin(1.0)
    assert rig.states[-1] == 'walking'
    rig.report(*LOST)
    rig.pass_states('stopping', 'standing')
    assert is_on_both_feet(rig, rig.positions)
    response = rig.request('single_step')
    assert not response.success and 'the DCM is outside' in response.message
    rig.report(*RECOVERED)
    rig.until(lambda: rig.request('single_step').success, what='walking again')


@pytest.fixture
def quick(make):
    """Return a rig that walks quickly."""
    rig = make(pattern='preview', steps=6).until_it_may()
    rig.begin('walk', 'walking')
    rig.until(lambda: rig.peer.count_subscribers('zmp_monitor/dcm_margin'), what='a subscriber')
    return rig


@pytest.mark.thorough
def test_who_walks_quickly_is_not_stopped_by_a_fall_from_foot_to_foot(quick):
    quick.dcm_margin = -0.04
    quick.report(*LOST)
    quick.pass_time(0.15)
    quick.dcm_margin = 0.02
    quick.pass_time(0.3)  # the level stays until the monitor forgives
    quick.report(*RECOVERED)
    quick.pass_time(0.5)
    assert quick.states[-1] == 'walking'


def test_who_falls_for_longer_than_planned_is_stopped(quick):
    quick.dcm_margin = -0.04
    quick.report(*LOST)
    begun = quick.now
    quick.pass_states('stopping')
    assert 0.25 < quick.now - begun < 0.25 + 0.15 * SPEED
    quick.pass_states('standing')
    quick.until(lambda: not quick.peer.count_subscribers('zmp_monitor/dcm_margin'),
                what='the subscription to end')


@pytest.mark.thorough
def test_instability_that_does_not_end_stops_quick_steps_whatever_the_dcm_does(quick):
    quick.report(*LOST)
    quick.pass_time(0.3)
    assert quick.states[-1] == 'walking'
    quick.report(*LOST)
    quick.pass_states('stopping')


def test_a_fallen_robot_halts_at_once(rig):
    rig.begin('walk', 'walking')
    rig.pass_time(2.6)
    rig.report(DiagnosticStatus.ERROR, 'fallen: the base leans by 80 deg', 'FALLEN')
    rig.pass_states('halted')
    rig.warns('fallen')
    assert rig.lines['gait'].level == DiagnosticStatus.ERROR
    assert seconds(rig.trajectories[-1])[-1] < 0.8  # lead and ramp


@pytest.mark.thorough
def test_joint_states_that_fall_silent_stop_the_walk(rig):
    rig.begin('walk', 'walking')
    rig.silent.add('joints')
    rig.pass_states('stopping')
    rig.until(lambda: len(rig.trajectories) > 1, what='a trajectory to rest')
    assert is_on_both_feet(rig, rig.last_pose())
    rig.silent.clear()
    rig.pass_states('standing')


def test_joints_that_do_not_follow_are_left_where_they_are(make):
    rig = make(follow_tolerance=0.05).until_it_may()
    rig.is_stuck = True
    rig.begin('walk', 'halted')
    rig.until(lambda: len(rig.trajectories) == 2, what='a trajectory to hold')
    assert rig.last_pose() == pytest.approx(rig.positions, abs=1e-9)
    rig.warns('do not follow')


@pytest.mark.thorough
def test_joints_that_are_off_at_the_begin_get_the_same_time_to_follow(make, monkeypatch):
    monkeypatch.setattr('biped_com_ros.nodes.gait_player.node.FOLLOW_TIME', 5.0)
    rig = make(follow_tolerance=0.01)
    rig.positions[rig.model.joint_index(rig.model.config.groups['left_leg'][:1])] += 0.03
    rig.until_it_may().is_stuck = True
    rig.begin('walk', 'walking')
    rig.until(lambda: 0.0 < rig.progress[-1] < 1.0, what='the walk going on')
    assert rig.states[-1] == 'walking'


@pytest.mark.parametrize('at_run_time', (pytest.param(False, marks=pytest.mark.thorough), True))
def test_a_silent_monitor_stops_the_walk(make, at_run_time):
    rig = make(monitor_timeout=60.0 if at_run_time else 1.5).until_it_may()
    if at_run_time:
        result, = rig.node.set_parameters([Parameter('monitor_timeout', value=1.5)])
        assert result.successful, result.reason
    rig.begin('walk', 'walking')
    rig.silent.add('monitor')
    rig.pass_states('stopping', 'standing')
    assert 'no reports of zmp_monitor' in rig.request('walk').message


def report_of_another_robot(level):
    return DiagnosticArray(status=[DiagnosticStatus(
        name=f'{owner}: zmp', level=level, message='rate') for owner in (
            'zmp_monitor', 'another_robot/zmp_monitor')])


def test_the_monitor_of_another_robot_does_not_permit_a_walk(make):
    rig = make(monitor_timeout=2.0)
    rig.silent.add('monitor')
    rig.peer.create_timer(0.1, lambda: rig.publish(
        '/diagnostics', report_of_another_robot(DiagnosticStatus.OK)))
    rig.spin(3.0)
    assert 'no reports of zmp_monitor' in rig.request('walk').message


def test_reasons_not_to_walk_are_reported(make, model):
    rig = make()

    def refuses(text):
        rig.until(lambda: text in rig.request('walk').message, what=text)
    rig.silent.add('monitor')
    refuses('no reports of zmp_monitor')
    rig.silent.clear()
    rig.until_it_may()
    rig.stand('single left')
    refuses('single left support')
    assert rig.lines['gait'].level == DiagnosticStatus.OK  # it stands well
    rig.stand()
    rig.positions[model.joint_index(['l_knee'])] += 0.2
    rig.until_it_may()
    assert rig.request('walk').success
    rig.warns("'l_knee' is at")
    rig.pass_states('standing')
    rig.positions[:] = model.posture()
    rig.silent.add('joints')
    refuses('joint states are missing')
    rig.silent.clear()
    rig.until_it_may()
    rig.peer.destroy_subscription(rig.controller)
    refuses('no subscriber of')


def test_parameters_that_make_no_sense_are_refused_with_what_would(rig):
    set_parameters = rig.node.set_parameters
    results = set_parameters([Parameter('steps', value=0), Parameter('pattern', value='run')])
    assert not any(result.successful for result in results)
    assert 'Max: 200' in results[0].reason and 'quasi-static' in results[1].reason
    set_parameters([Parameter('first_foot', value='middle')])
    assert "no foot 'middle'; valid: left, right" in rig.request('walk').message
    set_parameters([Parameter('first_foot', value=''), Parameter('step_length', value=0.9)])
    rig.begin('walk', 'planning', 'standing')
    rig.warns('cannot bring')


def test_a_robot_with_other_legs_is_unable(make):
    rig = make(robot='three_link')
    rig.pass_states('unable')
    for service in ('walk', 'single_step', 'pause', 'resume', 'stop', 'shift_com', 'shift_back'):
        response = rig.request(service)
        assert not response.success and 'cannot walk' in response.message
    rig.warns('this robot cannot walk')
    assert rig.lines['gait'].level == DiagnosticStatus.OK  # nothing is wrong with it
