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
"""Motion through the node, to a stand-in of joint_trajectory_controller that follows it."""

from __future__ import annotations

import time

from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.trajectory_controller import TrajectoryController
from support.trajectory_rig import ELBOW, HIP, trajectory, TrajectoryRig
from trajectory_msgs.msg import JointTrajectory


@pytest.fixture
def robot(make, talos):
    robot = TrajectoryRig(make, talos, input_timeout=1.0, hold_time=1.0)
    yield robot.begin()
    robot.controller.close()


def test_a_trajectory_moves_the_joint_while_efforts_follow_the_posture(robot, talos):
    start = robot.at(ELBOW)
    sent = time.time()
    robot.send(trajectory(ELBOW, (0.5, start - 0.2, -0.4), (1.0, start - 0.3, 0.0)))
    robot.rig.until(lambda: abs(robot.at(ELBOW) - start + 0.3) < 1e-6, 'the motion')
    robot.rig.until(robot.rig.is_balanced, 'efforts of the new posture')
    np.testing.assert_allclose(
        robot.controller.efforts, robot.rig.expected().efforts[robot.index], atol=0.02)
    assert not robot.controller.refused
    # The controller follows the trajectory as if it had got it itself.
    times, positions = robot.column(ELBOW, since=sent)
    reference = np.array([[_cubic(t - sent - delay, start) for t in times]
                          for delay in np.arange(0.0, 0.2, 0.002)])
    assert np.abs(reference - positions).max(axis=1).min() < 0.015
    others = [j for j in robot.joints if j != ELBOW]
    assert max(np.ptp(robot.column(j, since=sent)[1]) for j in others) < 1e-9


def _cubic(t, start):
    """Return the elbow of the trajectory above."""
    from scipy.interpolate import CubicHermiteSpline
    spline = CubicHermiteSpline([0.0, 0.5, 1.0], [start, start - 0.2, start - 0.3],
                                [0.0, -0.4, 0.0])
    return float(spline(np.clip(t, 0.0, 1.0)))


def test_positions_move_joints_no_faster_than_they_may(robot, talos):
    start = robot.at(ELBOW)
    sent = time.time()
    robot.send(JointState(name=[ELBOW], position=[start - 0.5]))
    robot.rig.until(lambda: abs(robot.at(ELBOW) - start + 0.5) < 1e-6, 'the motion')
    times, positions = robot.column(ELBOW, since=sent)
    pin = talos.pin_model
    limit = pin.velocityLimit[pin.joints[pin.getJointId(ELBOW)].idx_v]
    moving = np.abs(np.diff(positions)) > 1e-6
    duration = times[:-1][moving][-1] - times[:-1][moving][0]
    assert duration > 0.8 * 0.5 / limit


def test_joints_that_are_not_named_go_on(robot):
    elbow, hip = robot.at(ELBOW), robot.at(HIP)
    robot.send(trajectory(ELBOW, (1.0, elbow - 0.3, 0.0)))
    robot.rig.play(0.3)
    robot.send(trajectory(HIP, (0.3, hip - 0.05, 0.0)))
    robot.rig.until(lambda: abs(robot.at(HIP) - hip + 0.05) < 1e-6, 'the hip')
    assert abs(robot.at(ELBOW) - elbow + 0.3) > 1e-3
    robot.rig.until(lambda: abs(robot.at(ELBOW) - elbow + 0.3) < 1e-6, 'the elbow')


@pytest.mark.parametrize('change, text', [
    (lambda m: m.joint_names.__setitem__(0, 'elbow'), "unknown joint 'elbow'"),
    (lambda m: m.points[0].positions.__setitem__(0, 9.0), 'beyond its limits'),
    (lambda m: setattr(m.points[0], 'effort', [1.0]), 'leave effort empty'),
    (lambda m: m.points[0].velocities.__setitem__(0, 0.1), 'last point'),
])
def test_an_invalid_trajectory_is_refused_with_its_reason(robot, change, text):
    message = trajectory(ELBOW, (0.5, robot.at(ELBOW) - 0.1, 0.0))
    change(message)
    sent = time.time()
    robot.send(message)
    robot.rig.until(lambda: robot.rig.has_error("'~/reference_trajectory'", text), 'diagnostics')
    assert max(np.ptp(robot.column(j, since=sent)[1]) for j in robot.joints) < 1e-9


def test_the_controller_stops_the_joints_when_the_node_sends_no_more(robot):
    start = robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (0.5, start - 0.15, -0.3), (1.5, start - 0.45, -0.3),
                          (2.0, start - 0.5, 0.0)))
    robot.rig.until(lambda: robot.at(ELBOW) < start - 0.2, 'the motion')
    robot.rig.executor.remove_node(robot.rig.node)  # as if it had ended
    now = time.time()
    robot.rig.spin(0.6)
    times, positions = robot.column(ELBOW, since=now + 0.4)
    assert np.ptp(positions) < 1e-9
    assert positions[-1] > start - 0.4
    steps = np.diff(robot.column(ELBOW, since=now - 0.2)[1])
    assert np.abs(steps).max() < 0.02  # and it does so without a jump


def test_a_deactivated_controller_is_taken_up_where_the_joints_are_then(robot):
    start = robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (3.0, start - 0.5, 0.0)))
    robot.rig.until(lambda: robot.at(ELBOW) < start - 0.1, 'the motion')
    robot.controller.switch(on=False)
    robot.rig.until(lambda: robot.rig.has_error('is inactive'), 'diagnostics')
    count = len(robot.controller.received)
    robot.rig.play(0.3)
    assert len(robot.controller.received) == count
    moved = robot.joints.index(ELBOW)
    robot.rig.positions[robot.index[moved]] = start - 0.4  # somebody moves the arm
    robot.rig.play(0.1)
    sent = time.time()
    robot.controller.switch(on=True)
    robot.rig.until(lambda: len(robot.controller.received) > count + 20, 'commands again')
    robot.rig.until(robot.rig.is_balanced, 'efforts')
    assert np.abs(robot.column(ELBOW, since=sent + 0.05)[1] - start + 0.4).max() < 1e-6
    # Efforts begin at zero: in the first messages there is a small part of them.
    sums = [np.abs(message.points[0].effort).sum()
            for message in robot.controller.received[count:]]
    assert sums[0] < 0.2 * sums[-1] and sums[1] < 0.5 * sums[-1]


COMPLIANCE = 2e-4  # rad/(N m): the heaviest joint hangs 0.02 rad below its command


@pytest.mark.parametrize('publishes_state', [True, False])
def test_joints_that_hang_below_their_commands_do_not_give_way(make, talos, publishes_state):
    """It goes on from where the controller commands them, or else, once, from where they are."""
    if publishes_state and not hasattr(
            pytest.importorskip('control_msgs.msg'), 'JointTrajectoryControllerState'):
        pytest.skip('this control_msgs has no state of the controller')
    robot = TrajectoryRig(
        make, talos, COMPLIANCE, publishes_state, input_timeout=1.0, hold_time=1.0)
    controller = robot.begin().controller
    robot.rig.play(0.3)
    assert robot.rig.change(Transition.TRANSITION_DEACTIVATE)
    robot.rig.until(lambda: robot.rig.is_zero() and not controller.efforts.any(), 'the ramp')
    robot.rig.play(0.1)
    commanded, hanging = controller.desired.copy(), robot.rig.positions[robot.index].copy()
    assert np.abs(hanging - commanded).max() > 0.01
    since = time.time()
    assert robot.rig.change(Transition.TRANSITION_ACTIVATE)
    robot.rig.until(lambda: robot.rig.is_balanced() and controller.efforts.any(), 'efforts')
    robot.rig.play(0.3)
    expected = commanded if publishes_state else hanging
    np.testing.assert_allclose(controller.desired, expected, atol=1e-6)
    positions = np.array([q for t, q, _ in controller.history if t > since])
    assert (np.abs(positions - commanded).max() < 1e-6) == publishes_state
    # Efforts have lifted the joints to their commands, or to where they hung before.
    np.testing.assert_allclose(robot.rig.positions[robot.index], expected, atol=2e-3)
    controller.close()


def test_a_controller_of_positions_and_efforts_goes_on_where_it_commands(make, talos):
    """Inactive it leaves positions to the drives, whose joints then hang for want of efforts."""
    if not hasattr(pytest.importorskip('control_msgs.msg'), 'JointTrajectoryControllerState'):
        pytest.skip('this control_msgs has no state of the controller')
    robot = TrajectoryRig(make, talos, COMPLIANCE, interfaces=('position', 'effort'),
                          input_timeout=1.0, hold_time=1.0)
    controller = robot.begin().controller
    start = robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (0.3, start - 0.1, 0.0)))
    robot.rig.until(lambda: abs(robot.at(ELBOW) - start + 0.1) < 1e-6, 'the motion')
    robot.rig.play(0.3)
    commanded = controller.desired.copy()
    controller.switch(on=False)
    robot.rig.until(lambda: robot.rig.has_error('is inactive'), 'diagnostics')
    hanging = robot.rig.positions[robot.index]
    assert np.abs(hanging - commanded).max() > 0.01
    since, count = time.time(), len(controller.received)
    controller.switch(on=True)
    robot.rig.until(lambda: len(controller.received) > count and robot.rig.is_balanced(),
                    'efforts')
    positions = np.array([q for t, q, _ in controller.history if t > since])
    assert np.abs(positions - commanded).max() < 1e-6
    sums = [np.abs(message.points[0].effort).sum() for message in controller.received[count:]]
    assert sums[0] < 0.2 * sums[-1]  # they begin at zero
    controller.close()


def test_another_publisher_of_trajectories_is_reported(robot):
    other = robot.rig.peer.create_publisher(
        JointTrajectory, 'joint_trajectory_controller/joint_trajectory', 10)
    robot.rig.until(lambda: robot.rig.has_error(
        '1 other publisher', '/joint_trajectory_controller/joint_trajectory',
        'gravity_compensation/reference_trajectory'), 'diagnostics')
    robot.rig.peer.destroy_publisher(other)
    robot.rig.until(lambda: 'other publisher' not in robot.rig.status()[1], 'its end')


def test_a_controller_of_other_joints_gets_nothing(make, talos):
    robot = TrajectoryRig(make, talos)
    robot.controller.close()
    robot.controller = TrajectoryController(
        robot.rig.executor, robot.rig.namespace, robot.joints[:-1],
        robot.rig.positions[robot.index][:-1])
    robot.controller.switch(on=True)
    robot.rig.until(lambda: robot.rig.has_error(f'differ by {robot.joints[-1]}'), 'diagnostics')
    robot.controller.close()


@pytest.mark.parametrize(('options', 'text'), [
    ({'from_desired': False}, 'interpolate_from_desired_state'),
    ({'interfaces': ['position', 'velocity']}, 'commands position, velocity only')])
def test_a_controller_that_could_not_follow_gets_nothing(make, talos, options, text):
    robot = TrajectoryRig(make, talos)
    robot.controller.close()
    robot.controller = TrajectoryController(
        robot.rig.executor, robot.rig.namespace, robot.joints,
        robot.rig.positions[robot.index], **options)
    robot.controller.switch(on=True)
    robot.rig.until(lambda: robot.rig.has_error(text), 'diagnostics')
    robot.controller.received.clear()
    robot.rig.play(0.5)
    assert not robot.controller.received
    robot.controller.close()
