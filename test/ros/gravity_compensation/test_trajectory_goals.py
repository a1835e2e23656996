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
"""The action FollowJointTrajectory of the node, and goals that others send to the controller."""

from builtin_interfaces.msg import Duration
import numpy as np
import pytest
from support.goal_client import GoalClient, STATUS
from support.trajectory_rig import ELBOW, OTHER, trajectory, TrajectoryRig

FollowJointTrajectory = pytest.importorskip('control_msgs.action').FollowJointTrajectory
FOREIGN = 'joint_trajectory_controller/follow_joint_trajectory'


@pytest.fixture(scope='module')
def shared(talos, closing_later):
    """Return a rig, a client of its action, and one of the action of its controller."""
    rig = closing_later(TrajectoryRig(talos, goal_time=0.3))
    rig.controller.serve_action()
    return rig, *(GoalClient(rig, name) for name in (
        'gravity_compensation/follow_joint_trajectory', FOREIGN))


@pytest.fixture
def robot(shared):
    return shared[0].begin()


@pytest.fixture
def client(shared):
    return shared[1]


@pytest.fixture
def foreign(shared):
    return shared[2]


def errors(robot):
    """Return by how much the elbow is off its command, rad."""
    return abs(robot.at(ELBOW) - robot.measured([ELBOW])[0])


def test_a_goal_is_reached_when_the_joint_is_there(robot, client):
    start = robot.at(ELBOW)
    goal = client.send(trajectory(ELBOW, (0.6, start - 0.2, 0.0)))
    robot.until(lambda: goal.feedback and goal.feedback[-1].error.positions, 'feedback')
    robot.until(lambda: client.status_of(goal) == STATUS.STATUS_EXECUTING, 'status')
    result = goal.wait()
    assert (result.status, result.result.error_code) == (STATUS.STATUS_SUCCEEDED, 0)
    assert abs(robot.measured([ELBOW])[0] - start + 0.2) < 0.1
    feedback = goal.feedback[-1]
    assert feedback.joint_names == [ELBOW]
    np.testing.assert_allclose(
        np.array(feedback.error.positions),
        np.array(feedback.desired.positions) - np.array(feedback.actual.positions))
    times = [f.desired.time_from_start.sec + 1e-9 * f.desired.time_from_start.nanosec
             for f in goal.feedback]
    assert times == sorted(times) and 3 <= len(times) <= 14  # 20 Hz


def test_feedback_has_the_index_of_the_next_point_where_its_type_has_one(
        robot, client, monkeypatch):
    """As that of Lyrical; the index counts the points of the goal, which begins where it is."""
    indices = []
    base = FollowJointTrajectory.Feedback

    class Feedback(base):
        index = property(lambda self: indices[-1], lambda self, value: indices.append(value))

    Feedback.__name__, Feedback.__module__ = base.__name__, base.__module__
    monkeypatch.setattr(FollowJointTrajectory, 'Feedback', Feedback)
    indices.append(0)
    start = robot.at(ELBOW)
    client.send(trajectory(ELBOW, *(
        (0.3 * (i + 1), start - 0.04 * (i + 1), 0.0) for i in range(3)))).wait()
    assert sorted(set(indices)) == [0, 1, 2] and indices == sorted(indices)
    assert indices[1:6] == [0] * 5  # for 0.3 s at 20 Hz


def test_a_joint_that_does_not_move_aborts_the_goal(robot, client):
    robot.is_blocked = True
    result = client.send(trajectory(ELBOW, (0.4, robot.at(ELBOW) - 0.2, 0.0))).wait()
    assert result.status == STATUS.STATUS_ABORTED
    assert result.result.error_code == result.result.GOAL_TOLERANCE_VIOLATED
    assert f"'{ELBOW}' is 0.2, tolerance 0.1" in result.result.error_string
    # It stays where it is, and does not press on.
    robot.until(lambda: errors(robot) < 1e-6, 'rest')
    result = client.send(trajectory(ELBOW, (4.0, robot.at(ELBOW) - 0.4, 0.0)),
                         path=((ELBOW, 0.02),)).wait()
    assert result.result.error_code == result.result.PATH_TOLERANCE_VIOLATED


def test_a_cancelled_goal_brakes(robot, client):
    start = robot.at(ELBOW)
    goal = client.send(trajectory(ELBOW, (1.0, start - 0.3, -0.3), (2.0, start - 0.5, 0.0)))
    robot.until(lambda: robot.at(ELBOW) < start - 0.15, 'the motion')
    result = goal.cancel()
    assert result.status == STATUS.STATUS_CANCELED
    assert result.result.error_code == result.result.SUCCESSFUL  # as of the controller itself
    robot.play(0.4)
    rest = robot.at(ELBOW)
    robot.play(0.3)
    assert robot.at(ELBOW) == pytest.approx(rest) and rest > start - 0.45


def test_a_new_goal_takes_the_place_of_the_one_before(robot, client):
    start = robot.at(ELBOW)
    first = client.send(trajectory(ELBOW, (3.0, start - 0.5, 0.0)))
    other = client.send(trajectory(OTHER, (0.6, robot.at(OTHER) - 0.05, 0.0)))
    robot.play(0.2)
    second = client.send(trajectory(ELBOW, (0.4, start + 0.1, 0.0)))
    result = first.wait()
    assert result.status == STATUS.STATUS_ABORTED
    assert 'another trajectory' in result.result.error_string
    assert second.wait().status == STATUS.STATUS_SUCCEEDED
    assert other.wait().status == STATUS.STATUS_SUCCEEDED


def test_a_topic_that_takes_a_joint_aborts_its_goal(robot, client):
    goal = client.send(trajectory(ELBOW, (3.0, robot.at(ELBOW) - 0.5, 0.0)))
    robot.send(trajectory(ELBOW, (0.5, robot.at(ELBOW), 0.0)))
    assert goal.wait().status == STATUS.STATUS_ABORTED


def test_what_cannot_be_followed_is_rejected_and_deactivation_aborts(robot, client):
    start = robot.at(ELBOW)
    late = trajectory(ELBOW, (1.0, start, 0.0))
    late.header.stamp.sec = 5
    for goal in (late, trajectory('elbow', (1.0, start, 0.0)),
                 trajectory(ELBOW, (1.0, start, 0.3)), trajectory(ELBOW, (1.0, 9.0, 0.0))):
        assert client.send(goal) is None
    assert client.send(trajectory(ELBOW, (1.0, start, 0.0)), path=((OTHER, 0.1),)) is None
    goal = client.send(trajectory(ELBOW, (3.0, start - 0.5, 0.0)))
    robot.node.trigger_deactivate()
    assert client.send(trajectory(ELBOW, (1.0, start, 0.0))) is None
    result = goal.wait()
    assert result.status == STATUS.STATUS_ABORTED and 'not active' in result.result.error_string


def test_a_goal_that_goes_past_the_node_is_cancelled_and_never_succeeds(robot, foreign, capfd):
    result = foreign.send(whole(robot, -0.3)).wait()
    assert result.status == STATUS.STATUS_CANCELED
    assert f"/{FOREIGN}' was cancelled: the trajectories of this node" in capfd.readouterr().err
    robot.reports('was cancelled', 'gravity_compensation/follow_joint_trajectory')
    robot.until(robot.is_balanced, 'efforts')
    full = robot.expected().efforts[robot.index]
    robot.until(lambda: np.allclose(robot.controller.efforts, full, atol=0.02),
                'efforts of the controller, which interpolates')
    # The goal has no efforts, so there was a gap; beside it they were never others than before.
    efforts = np.array([tau for _, _, tau in robot.controller.history])
    assert not efforts.any(axis=1).all()
    low, high = np.minimum(full, 0.0) - 0.02, np.maximum(full, 0.0) + 0.02
    assert ((low <= efforts) & (efforts <= high)).all()


def test_efforts_wait_for_a_goal_of_the_controller_which_ends_with_its_deactivation(
        robot, foreign):
    robot.node.trigger_deactivate()
    robot.until(lambda: robot.is_zero() and not robot.controller.efforts.any(), 'the ramp')
    goal = foreign.send(whole(robot, -0.3, duration=60))
    robot.play(0.5)  # until the node has received its status
    robot.node.trigger_activate()
    robot.reports(FOREIGN, 'is running')
    assert not robot.controller.efforts.any()
    robot.controller.switch(on=False)
    result = goal.wait()
    assert result.status == STATUS.STATUS_ABORTED
    assert result.result.error_code == result.result.INVALID_GOAL
    assert foreign.send(whole(robot, 0.0)) is None
    robot.controller.switch(on=True)
    robot.until(lambda: robot.controller.efforts.any() and robot.is_balanced(), 'efforts')


def whole(robot, change, duration=1):
    """Return a trajectory of all joints that moves the elbow, as the controller wants it."""
    message = trajectory(ELBOW, (0.0, 0.0, 0.0))
    point, = message.points
    message.joint_names, positions = robot.joints, robot.controller.desired.copy()
    positions[robot.joints.index(ELBOW)] += change
    point.positions, point.velocities = positions.tolist(), [0.0] * len(positions)
    point.time_from_start = Duration(sec=duration)
    return message
