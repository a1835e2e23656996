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
"""The action ``~/shift`` of gait_player, over DDS."""

import re

from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Transform, Vector3
import numpy as np
import pytest
from support.goal_client import GoalClient, STATUS
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

pytest.importorskip('control_msgs')
TOLERANCE_VIOLATED, INVALID = -5, -1


@pytest.fixture
def client(rig, closing):
    return closing(GoalClient(rig, 'gait_player/shift'))


def shift(frame, *transforms, seconds=3, joints=('com',)):
    """Return a goal with one point."""
    goal = MultiDOFJointTrajectory(joint_names=list(joints), points=[MultiDOFJointTrajectoryPoint(
        transforms=[Transform(translation=Vector3(x=x, y=y, z=z)) for x, y, z in transforms],
        time_from_start=Duration(sec=seconds))])
    goal.header.frame_id = frame
    return goal


def back():
    """Return the goal to go back."""
    return MultiDOFJointTrajectory(joint_names=['com'])


def com_in_sole(model, foot, positions):
    """Return the centre of mass in the frame of a sole, by the poses of links, (3,), m."""
    state = model.state(positions)
    return state.pose_in_base(model.config.feet[foot].sole).inverse().apply(state.com_in_base)


def outcome(done):
    """Return the status of a result and its error code."""
    return done.status, done.result.error_code


def values(points):
    """Return the translations of feedback, (n, 3)."""
    return np.array([[getattr(point.transforms[0].translation, axis) for axis in 'xyz']
                     for point in points])


def test_the_centre_of_mass_goes_to_a_point_in_a_sole_and_back(rig, client, model):
    begin = com_in_sole(model, 'right', model.posture())
    goal = client.send_frame(shift('right', (0.012, -0.007, 0.0)))
    done = goal.wait()
    assert outcome(done) == (STATUS.STATUS_SUCCEEDED, 0)
    rig.is_at(rig.last_pose(), 1e-9)
    end = com_in_sole(model, 'right', rig.positions)
    assert end[:2] == pytest.approx((0.012, -0.007), abs=1e-5)

    feedback = goal.feedback
    assert {tuple(f.multi_dof_joint_names) for f in feedback} == {('com',)}
    assert {f.header.frame_id for f in feedback} == {model.config.sole_frame('right')}
    desired, actual = (values([getattr(f, f'multi_dof_{name}') for f in feedback])
                       for name in ('desired', 'actual'))
    np.testing.assert_allclose(
        values([f.multi_dof_error for f in feedback]), desired - actual, atol=1e-12)
    # The robot of this test follows exactly; joints and feedback are up to two samples apart.
    assert np.abs(desired - actual).max() < 0.008
    assert desired[0] == pytest.approx(begin, abs=0.01)
    assert actual[-1] == pytest.approx(end, abs=0.01)
    assert abs(desired[-1] - desired[0])[1] > 0.03
    times = [f.multi_dof_actual.time_from_start for f in feedback]
    times = [t.sec + 1e-9 * t.nanosec for t in times]
    assert times == sorted(times) and times[0] < 1.0 and 2.0 < times[-1] <= 3.0

    assert client.send_frame(shift('left')) is None  # it has to go back first
    goal = client.send_frame(back())
    assert goal.wait().status == STATUS.STATUS_SUCCEEDED
    rig.is_at(model.posture())
    assert {f.header.frame_id for f in goal.feedback} == {model.config.sole_frame('right')}
    assert client.send_frame(back()) is None  # it is there


def test_a_cancelled_shift_holds_and_leads_back(rig, client, model):
    goal = client.send_frame(shift(model.config.sole_frame('left'), seconds=8))
    rig.pass_states('shifting')
    rig.pass_time(4.0)
    assert client.send_frame(shift('left')) is None  # one at a time
    done = goal.cancel()
    assert outcome(done) == (STATUS.STATUS_CANCELED, 0)
    rig.until(lambda: len(rig.trajectories) == 2, what='a trajectory to hold')
    begin, held = (com_in_sole(model, 'left', p)[1] for p in (model.posture(), rig.last_pose()))
    assert 0.1 * abs(begin) < abs(held) < 0.95 * abs(begin)
    rig.pass_states('standing')
    assert client.send_frame(back()).wait().status == STATUS.STATUS_SUCCEEDED


@pytest.mark.parametrize('stop', ('monitor', 'service'))
def test_a_shift_that_is_stopped_is_aborted_with_the_reason(rig, client, stop):
    goal = client.send_frame(shift('left', seconds=20))
    rig.pass_states('shifting')
    if stop == 'monitor':
        rig.report(DiagnosticStatus.ERROR, 'stability lost: the DCM is outside', 'UNSTABLE')
    else:
        assert rig.request('stop').success
    done = goal.wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, INVALID)
    assert ('DCM is outside' if stop == 'monitor' else 'stopped') in done.result.error_string


def test_joints_that_do_not_get_there_are_named(rig, client):
    rig.is_stuck = True
    goal = client.send_frame(shift('left', seconds=2))
    # Until its goal is given up, the robot takes no other one.
    rig.pass_states('shifting', 'standing')
    assert client.send_frame(back()) is None
    assert 'goal of ~/shift is not reached yet' in rig.request('shift_back').message
    done = goal.wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, TOLERANCE_VIOLATED)
    assert re.search(r"joint '[lr]_\w+' is 0\.\d+ rad from the end", done.result.error_string)


def test_what_cannot_be_reached_is_aborted_with_the_reason(rig, client):
    done = client.send_frame(shift('left', (3.0, 0.0, 0.0))).wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, INVALID)
    assert re.search("limit|stretched|cannot be moved over 'left'", done.result.error_string)
    assert client.send_frame(shift('left')).wait().status == STATUS.STATUS_SUCCEEDED


def test_goals_that_make_no_sense_are_rejected(rig, client):
    for goal in (
            shift('middle'), shift('left_hand'), shift('left', joints=('base',)),
            shift('left', joints=()), shift('left', (0.0, 0.0, 0.1)),
            shift('left', (np.nan, 0.0, 0.0)), shift('left', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
            shift('left', seconds=100000), shift('left', seconds=-2), back(),
            MultiDOFJointTrajectory(
                joint_names=['com'], points=[MultiDOFJointTrajectoryPoint()] * 2)):
        assert client.send_frame(goal) is None, goal
        rig.spin(0.3)
        assert not rig.trajectories and 'planning' not in rig.states


@pytest.mark.parametrize('phase', ('planning', 'moving', 'waiting'))
def test_a_goal_ends_where_joint_states_stop(rig, client, phase):
    rig.is_stuck = phase == 'waiting'
    if phase == 'planning':
        rig.silent.add('joints')
    goal = client.send_frame(shift('left', seconds=4), patience=120)
    if phase != 'planning':
        rig.pass_states('shifting')
    if phase == 'waiting':
        rig.pass_states('standing')
    rig.silent.add('joints')
    done = goal.wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, INVALID)
    assert 'joint states are stale' in done.result.error_string
    rig.silent.clear()
    rig.is_stuck = False
    rig.until_it_may()


def test_what_is_cancelled_while_it_is_planned_does_not_move(rig, client):
    rig.silent.add('joints')  # plans are begun when joint states arrive
    goal = client.send_frame(shift('left'))
    rig.until(lambda: 'planning' in rig.states, what='planning')
    assert goal.cancel().status == STATUS.STATUS_CANCELED
    rig.silent.clear()
    rig.pass_states('standing')
    rig.pass_time(2.0)
    assert not rig.trajectories


def test_a_clock_that_is_set_back_ends_a_goal(rig, client):
    goal = client.send_frame(shift('left', seconds=8))
    rig.pass_states('shifting')
    rig.pass_time(2.0)
    rig.now = 20.0
    done = goal.wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, INVALID)
    assert 'set back' in done.result.error_string


def test_a_plan_that_fails_for_any_reason_ends_the_goal(rig, client, monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError('singular')
    monkeypatch.setattr('biped_com_ros.core.legs.com_shift.ComShift.path', fail)
    done = client.send_frame(shift('left')).wait()
    assert outcome(done) == (STATUS.STATUS_ABORTED, INVALID)
    assert 'see the log' in done.result.error_string
