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

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.gait_player.parameters import GaitPlayerParameters
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pytest
from rclpy.parameter import Parameter
from support.gait_rig import GaitRig, seconds, SPEED, YAW
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'gait_player.yaml'


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.fixture
def make(model):
    rigs = []

    def make_rig(**parameters):
        rigs.append(GaitRig(model, **parameters))
        return rigs[-1]

    yield make_rig
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make):
    rig = make()
    rig.stand()
    return rig.until_it_may()


def test_a_step_is_sent_to_the_controller_and_made(rig, model):
    assert rig.states == ['standing']
    response = rig.request('single_step')
    assert response.success and '1 step of 50 mm' in response.message
    rig.state_is('walking')
    rig.until(lambda: rig.trajectories, what='a trajectory')
    trajectory, = rig.trajectories
    legs = [*model.config.groups['left_leg'], *model.config.groups['right_leg']]
    assert sorted(trajectory.joint_names) == sorted(legs)
    times = seconds(trajectory)
    assert times[0] == 0.0 and (np.diff(times) > 0.0).all() and 5.4 < times[-1] < 5.5
    assert not any(trajectory.points[-1].velocities) and not any(trajectory.points[0].velocities)
    rig.state_is('standing')
    left, right = rig.soles(rig.positions)
    assert right[0] - left[0] == pytest.approx(0.05, abs=1e-6)
    assert rig.states == ['standing', 'planning', 'walking', 'standing']
    rig.until(lambda: rig.progress[-1] == 1.0, what='progress')
    assert all(np.diff(rig.progress[1:]) >= 0.0) and min(rig.progress) < 0.1


def test_the_reference_is_where_com_estimator_has_the_robot(rig, model):
    rig.request('single_step')
    rig.state_is('walking')
    rig.state_is('standing')
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
    middles = [middle_of_step(make(), model, bias)
               for bias in ((0.0, 0.0), heading @ (0.0, -0.008))]
    # The other's is truly 8 mm further left.
    assert middles[1] - middles[0] == pytest.approx((0.0, -0.008, 0.0), abs=1e-3)


def middle_of_step(rig, model, bias):
    """Return where the model's centre of mass is over the left sole in the middle of a step."""
    rig.stand()
    rig.bias[:2] = bias
    rig.until_it_may()
    rig.request('single_step')
    rig.until(lambda: rig.trajectories, what='a trajectory')
    trajectory, positions = rig.trajectories[0], model.posture()
    halfway = trajectory.points[len(trajectory.points) // 2]
    positions[model.joint_index(trajectory.joint_names)] = halfway.positions
    return model.state(positions).com_in_base - rig.soles(positions)[0]


@pytest.mark.parametrize('pause', (1.0, 2.6))
def test_pause_and_going_on(rig, pause):
    rig.request('walk')
    rig.state_is('walking')
    rig.pass_time(pause)
    assert rig.request('pause').success
    rig.state_is('paused')
    rig.pass_time(0.2)
    assert rig.positions == pytest.approx(rig.last_pose(), abs=1e-9)
    held = rig.positions.copy()
    assert 'nothing to pause' in rig.request('pause').message
    rig.pass_time(1.0)
    assert rig.positions == pytest.approx(held, abs=1e-9)
    assert rig.request('resume').success
    rig.state_is('walking')
    rig.request('stop')
    rig.state_is('standing')


def test_stop_ends_on_both_feet_and_stands_up(rig, model):
    rig.request('walk')
    rig.state_is('walking')
    rig.pass_time(2.8)  # a foot is in the air
    assert rig.request('stop').success
    rig.state_is('standing')
    feet = rig.soles(rig.positions)
    assert feet[0, 2] == pytest.approx(feet[1, 2], abs=1e-6)
    assert feet[0, 2] == pytest.approx(rig.soles(model.posture())[0, 2], abs=1e-6)
    assert rig.request('stop').message == 'the robot is already standing'
    assert rig.request('single_step').success  # from one foot ahead
    rig.state_is('walking')


def test_an_error_of_the_monitor_stops_the_walk(rig):
    rig.request('walk')
    rig.state_is('walking')
    rig.report(DiagnosticStatus.ERROR, 'stability lost: the DCM is outside', 'UNSTABLE')
    rig.state_is('stopping')
    rig.state_is('standing')
    feet = rig.soles(rig.positions)
    assert feet[0, 2] == pytest.approx(feet[1, 2], abs=1e-6)
    response = rig.request('single_step')
    assert not response.success and 'the DCM is outside' in response.message
    rig.report(DiagnosticStatus.OK, 'recovered, now stable', 'STABLE')
    rig.until(lambda: rig.request('single_step').success, what='walking again')


LOST = (DiagnosticStatus.ERROR, 'stability lost: the DCM is outside', 'UNSTABLE')


@pytest.fixture
def quick(make):
    """Return a rig that walks quickly."""
    rig = make(pattern='preview', steps=6)
    rig.stand()
    rig.until_it_may()
    rig.request('walk')
    rig.state_is('walking')
    rig.until(lambda: rig.peer.count_subscribers('zmp_monitor/dcm_margin'), what='a subscriber')
    return rig


def test_who_walks_quickly_is_not_stopped_by_a_fall_from_foot_to_foot(quick):
    quick.dcm_margin = -0.04
    quick.report(*LOST)
    quick.pass_time(0.15)
    quick.dcm_margin = 0.02
    quick.pass_time(0.3)  # the level stays until the monitor forgives
    quick.report(DiagnosticStatus.OK, 'recovered, now stable', 'STABLE')
    quick.pass_time(0.5)
    assert quick.states[-1] == 'walking'


def test_who_falls_for_longer_than_planned_is_stopped(quick):
    quick.dcm_margin = -0.04
    quick.report(*LOST)
    begun = quick.now()
    quick.state_is('stopping')
    assert 0.25 < quick.now() - begun < 0.25 + 0.15 * SPEED
    quick.state_is('standing')
    quick.until(lambda: not quick.peer.count_subscribers('zmp_monitor/dcm_margin'),
                what='the subscription to end')


def test_instability_that_does_not_end_stops_quick_steps_whatever_the_dcm_does(quick):
    quick.report(*LOST)
    quick.pass_time(0.3)
    assert quick.states[-1] == 'walking'
    quick.report(*LOST)
    quick.state_is('stopping')


def test_a_fallen_robot_halts_at_once(rig):
    rig.request('walk')
    rig.state_is('walking')
    rig.pass_time(2.6)
    rig.report(DiagnosticStatus.ERROR, 'fallen: the base leans by 80 deg', 'FALLEN')
    rig.state_is('halted')
    rig.until(lambda: rig.lines['gait'].level == DiagnosticStatus.ERROR, what='diagnostics')
    assert 'fallen' in rig.lines['gait'].message
    assert seconds(rig.trajectories[-1])[-1] < 0.8  # lead and ramp


def test_joint_states_that_fall_silent_stop_the_walk(rig):
    rig.request('walk')
    rig.state_is('walking')
    rig.silent.add('joints')
    rig.state_is('stopping')
    rig.until(lambda: len(rig.trajectories) > 1, what='a trajectory to rest')
    feet = rig.soles(rig.last_pose())
    assert feet[0, 2] == pytest.approx(feet[1, 2], abs=1e-6)
    rig.silent.clear()
    rig.state_is('standing')


def test_joints_that_do_not_follow_are_left_where_they_are(make):
    rig = make(follow_tolerance=0.05)
    rig.stand()
    rig.until_it_may()
    rig.is_stuck = True
    rig.request('walk')
    rig.state_is('halted')
    rig.until(lambda: len(rig.trajectories) == 2, what='a trajectory to hold')
    assert rig.last_pose() == pytest.approx(rig.positions, abs=1e-9)
    rig.until(lambda: 'do not follow' in rig.lines['gait'].message, what='diagnostics')


def test_a_robot_that_was_moved_while_a_walk_was_planned_does_not_jump(rig, model):
    rig.request('walk')
    rig.state_is('planning')
    rig.positions = model.posture()
    rig.positions[model.joint_index(['r_knee'])] += 0.1
    rig.state_is('standing')
    assert rig.states == ['standing', 'planning', 'standing'] and not rig.trajectories


def test_joints_that_are_off_at_the_begin_get_the_same_time_to_follow(make):
    rig = make(follow_tolerance=0.01, follow_time=5.0)
    rig.positions[rig.model.joint_index(rig.model.config.groups['left_leg'][:1])] += 0.03
    rig.stand()
    rig.until_it_may()
    rig.is_stuck = True
    rig.request('walk')
    rig.state_is('walking')
    rig.until(lambda: 0.0 < rig.progress[-1] < 1.0, what='the walk going on')
    assert rig.states[-1] == 'walking'


@pytest.mark.parametrize('at_run_time', (False, True))
def test_a_silent_monitor_stops_the_walk(make, at_run_time):
    rig = make(monitor_timeout=60.0 if at_run_time else 1.5)
    rig.stand()
    rig.until_it_may()
    if at_run_time:
        result, = rig.node.set_parameters([Parameter('monitor_timeout', value=1.5)])
        assert result.successful, result.reason
    rig.request('walk')
    rig.state_is('walking')
    rig.silent.add('monitor')
    rig.state_is('stopping')
    rig.state_is('standing')
    assert 'no reports of zmp_monitor' in rig.request('walk').message


def report_of_another_robot(level):
    return DiagnosticArray(status=[DiagnosticStatus(
        name=f'{owner}: zmp', level=level, message='rate') for owner in (
            'zmp_monitor', 'another_robot/zmp_monitor')])


def test_the_monitor_of_another_robot_does_not_permit_a_walk(make):
    rig = make(monitor_timeout=2.0)
    rig.stand()
    rig.silent.add('monitor')
    rig.peer.create_timer(0.1, lambda: rig.diagnostics.publish(
        report_of_another_robot(DiagnosticStatus.OK)))
    rig.spin(3.0)
    assert 'no reports of zmp_monitor' in rig.request('walk').message


def test_the_monitor_of_another_robot_does_not_stop_a_walk(rig):
    rig.request('walk')
    rig.state_is('walking')
    rig.diagnostics.publish(report_of_another_robot(DiagnosticStatus.ERROR))
    rig.spin(1.0)
    assert rig.states[-1] == 'walking'


def test_reasons_not_to_walk_are_reported(make, model):
    rig = make()
    rig.silent.add('monitor')
    rig.until(lambda: 'no reports of zmp_monitor' in rig.request('walk').message,
              what='the monitor')
    rig.silent.clear()
    rig.until_it_may()
    rig.stand('single left')
    rig.until(lambda: 'single left support' in rig.request('walk').message, what='the phase')
    assert rig.lines['gait'].level == DiagnosticStatus.OK  # it stands well
    rig.stand()
    rig.positions[model.joint_index(['l_knee'])] += 0.2
    rig.until_it_may()
    assert rig.request('walk').success
    rig.until(lambda: "'l_knee' is at" in rig.lines['gait'].message, what='the posture')
    rig.state_is('standing')
    rig.positions[:] = model.posture()
    rig.silent.add('joints')
    rig.until(lambda: 'joint states are missing' in rig.request('walk').message, what='silence')
    rig.silent.clear()
    rig.until_it_may()
    rig.peer.destroy_subscription(rig.controller)
    rig.until(lambda: 'no subscriber of' in rig.request('walk').message, what='the controller')


def test_parameters_that_make_no_sense_are_refused_with_what_would(rig):
    set_parameters = rig.node.set_parameters
    results = set_parameters([Parameter('steps', value=0), Parameter('pattern', value='run')])
    assert not any(result.successful for result in results)
    assert 'Max: 200' in results[0].reason and 'quasi-static' in results[1].reason
    set_parameters([Parameter('first_foot', value='middle')])
    assert "no foot 'middle'; valid: left, right" in rig.request('walk').message
    set_parameters([Parameter('first_foot', value=''), Parameter('step_length', value=0.9)])
    assert rig.request('walk').success
    rig.state_is('planning')
    rig.until(lambda: rig.states[-1] == 'standing', what='the end of planning')
    rig.until(lambda: 'cannot bring' in rig.lines['gait'].message, what='why')


def test_a_robot_with_other_legs_is_unable(make):
    rig = make(robot='three_link')
    rig.state_is('unable')
    for service in ('walk', 'single_step', 'pause', 'resume', 'stop', 'shift_com', 'shift_back'):
        response = rig.request(service)
        assert not response.success and 'cannot walk' in response.message
    rig.until(lambda: 'gait' in rig.lines, what='diagnostics')
    # Nothing is wrong with it.
    assert rig.lines['gait'].level == DiagnosticStatus.OK
    assert 'this robot cannot walk' in rig.lines['gait'].message


def test_the_parameter_file_has_every_parameter_with_its_default():
    given = yaml.safe_load(CONFIG.read_text())['/**/gait_player']['ros__parameters']
    defaults = GaitPlayerParameters()
    assert given == {f.name: getattr(defaults, f.name) for f in fields(defaults)}
