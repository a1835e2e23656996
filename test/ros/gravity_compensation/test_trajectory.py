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

from xml.etree import ElementTree

from biped_com_ros.core.model.robot import RobotModel
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from sensor_msgs.msg import JointState
from support.trajectory_controller import JointTrajectoryControllerState
from support.trajectory_rig import ELBOW, trajectory, TrajectoryRig
from trajectory_msgs.msg import JointTrajectory

needs_state = pytest.mark.skipif(
    not JointTrajectoryControllerState, reason='no message of the state of the controller')


@pytest.fixture(scope='module')
def shared(talos, closing_later):
    return closing_later(TrajectoryRig(talos))


@pytest.fixture
def robot(shared):
    return shared.begin()


@pytest.fixture
def make(talos, closing):
    """Return a function that makes a rig with other parameters."""
    return lambda *arguments, **values: closing(TrajectoryRig(talos, *arguments, **values))


def test_a_trajectory_moves_the_joint_while_efforts_follow_the_posture(robot):
    start, sent = robot.at(ELBOW), robot.controller.now()
    robot.send(trajectory(ELBOW, (0.5, start - 0.2, -0.4), (1.0, start - 0.3, 0.0)))
    robot.reach(ELBOW, start - 0.3)
    robot.until(robot.is_balanced, 'efforts of the new posture')
    np.testing.assert_allclose(
        robot.controller.efforts, robot.expected().efforts[robot.index], atol=0.02)
    assert not robot.controller.refused
    # The controller follows the trajectory as if it had got it itself.
    times, positions = robot.column(ELBOW)
    spline = CubicHermiteSpline([0.0, 0.5, 1.0], start - np.array([0.0, 0.2, 0.3]),
                                [0.0, -0.4, 0.0])
    reference = np.array([spline(np.clip(times - sent - delay, 0.0, 1.0))
                          for delay in np.arange(0.0, 0.2, 0.002)])
    assert np.abs(reference - positions).max(axis=1).min() < 0.015
    assert robot.largest_motion(*(set(robot.joints) - {ELBOW})) < 1e-9


def test_positions_move_joints_no_faster_than_they_may(robot, talos):
    start, pin = robot.at(ELBOW), talos.pin_model
    robot.send(JointState(name=[ELBOW], position=[start - 0.5]))
    robot.reach(ELBOW, start - 0.5)
    times, positions = robot.column(ELBOW)
    limit = pin.velocityLimit[pin.joints[pin.getJointId(ELBOW)].idx_v]
    moving = np.abs(np.diff(positions)) > 1e-6
    assert np.ptp(times[:-1][moving]) > 0.8 * 0.5 / limit


def test_joints_without_a_velocity_limit_are_named(talos, tmp_path, closing):
    """Something limits them nevertheless, and that is no secret."""
    description = ElementTree.fromstring(talos.urdf)
    description.find(f"joint[@name='{ELBOW}']/limit").set('velocity', '0')
    path = tmp_path / 'robot.urdf'
    path.write_text(ElementTree.tostring(description, encoding='unicode'))
    robot = closing(TrajectoryRig(RobotModel(talos.config, path.read_text()), urdf=str(path)))
    arrays = robot.collect(DiagnosticArray, '/diagnostics')
    robot.begin().until(lambda: any(
        value.key == 'limits' and value.value.startswith(f'{ELBOW}: no velocity limit')
        for array in arrays for status in array.status for value in status.values), 'the limit')


def test_an_invalid_trajectory_is_refused_with_its_reason(robot):
    robot.send(trajectory(ELBOW, (0.5, 9.0, 0.0)))
    robot.reports("'~/reference_trajectory'", 'beyond its limits')
    assert robot.largest_motion() < 1e-9


def test_the_controller_stops_the_joints_when_the_node_sends_no_more(robot):
    start = robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (0.5, start - 0.15, -0.3), (1.5, start - 0.45, -0.3),
                          (2.0, start - 0.5, 0.0)))
    robot.until(lambda: robot.at(ELBOW) < start - 0.2, 'the motion')
    robot.executor.remove_node(robot.node)  # as if it had ended
    now = robot.controller.now()
    robot.spin(0.6)
    _, positions = robot.column(ELBOW, since=now + 0.4)
    assert np.ptp(positions) < 1e-9
    assert positions[-1] > start - 0.4
    steps = np.diff(robot.column(ELBOW, since=now - 0.2)[1])
    assert np.abs(steps).max() < 0.02  # and it does so without a jump
    robot.executor.add_node(robot.node)


def sums_of(messages):
    return [np.abs(message.points[0].effort).sum() for message in messages]


@pytest.mark.thorough
def test_a_deactivated_controller_is_taken_up_where_the_joints_are_then(robot):
    start = robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (3.0, start - 0.5, 0.0)))
    robot.until(lambda: robot.at(ELBOW) < start - 0.1, 'the motion')
    robot.controller.switch(on=False)
    robot.reports('is inactive')
    count = len(robot.controller.received)
    robot.play(0.3)
    assert len(robot.controller.received) == count
    robot.move([ELBOW], start - 0.4, None)  # somebody moves the arm
    robot.play(0.1)
    sent = robot.controller.now()
    robot.controller.switch(on=True)
    robot.until(lambda: len(robot.controller.received) > count + 20, 'commands again')
    robot.until(robot.is_balanced, 'efforts')
    assert np.abs(robot.column(ELBOW, since=sent + 0.05)[1] - start + 0.4).max() < 1e-6
    # Efforts begin at zero: in the first messages there is a small part of them.
    sums = sums_of(robot.controller.received[count:])
    assert sums[0] < 0.2 * sums[-1] and sums[1] < 0.5 * sums[-1]


COMPLIANCE = 2e-4  # rad/(N m): the heaviest joint hangs 0.02 rad below its command


@pytest.mark.parametrize('publishes_state', [
    pytest.param(True, marks=needs_state), pytest.param(False, marks=pytest.mark.thorough)])
def test_joints_that_hang_below_their_commands_do_not_give_way(make, publishes_state):
    """It goes on from where the controller commands them, or else, once, from where they are."""
    robot = make(COMPLIANCE, controller={'publishes_state': publishes_state}).begin()
    controller = robot.controller
    robot.play(0.3)
    assert robot.change(Transition.TRANSITION_DEACTIVATE)
    robot.until(lambda: robot.is_zero() and not controller.efforts.any(), 'the ramp')
    robot.play(0.1)
    commanded, hanging = controller.desired.copy(), robot.measured(robot.joints)
    assert np.abs(hanging - commanded).max() > 0.01
    controller.history.clear()
    assert robot.change(Transition.TRANSITION_ACTIVATE)
    robot.until(lambda: robot.is_balanced() and controller.efforts.any(), 'efforts')
    robot.play(0.3)
    expected = commanded if publishes_state else hanging
    np.testing.assert_allclose(controller.desired, expected, atol=1e-6)
    positions = np.array([q for _, q, _ in controller.history])
    assert (np.abs(positions - commanded).max() < 1e-6) == publishes_state
    # Efforts have lifted the joints to their commands, or to where they hung before.
    np.testing.assert_allclose(robot.measured(robot.joints), expected, atol=2e-3)


@needs_state
def test_a_controller_of_positions_and_efforts_goes_on_where_it_commands(make):
    """Inactive it leaves positions to the drives, whose joints then hang for want of efforts."""
    robot = make(COMPLIANCE, controller={'interfaces': ('position', 'effort')}).begin()
    controller, start = robot.controller, robot.at(ELBOW)
    robot.send(trajectory(ELBOW, (0.3, start - 0.1, 0.0)))
    robot.reach(ELBOW, start - 0.1)
    robot.play(0.3)
    commanded = controller.desired.copy()
    controller.switch(on=False)
    robot.reports('is inactive')
    assert np.abs(robot.measured(robot.joints) - commanded).max() > 0.01
    controller.history.clear()
    controller.received.clear()
    controller.switch(on=True)
    robot.until(lambda: controller.received and robot.is_balanced(), 'efforts')
    positions = np.array([q for _, q, _ in controller.history])
    assert np.abs(positions - commanded).max() < 1e-6
    sums = sums_of(controller.received)
    assert sums[0] < 0.2 * sums[-1]  # they begin at zero


def test_another_publisher_of_trajectories_is_reported(robot):
    other = robot.peer.create_publisher(
        JointTrajectory, 'joint_trajectory_controller/joint_trajectory', 10)
    robot.reports('1 other publisher', '/joint_trajectory_controller/joint_trajectory',
                  'gravity_compensation/reference_trajectory')
    robot.peer.destroy_publisher(other)
    robot.until(lambda: 'other publisher' not in robot.status()[1], 'its end')


@pytest.mark.parametrize(('options', 'text'), [
    ({'controlled': -1}, 'differ by leg_left_1_joint'),
    pytest.param({'controller': {'from_desired': False}}, 'interpolate_from_desired_state',
                 marks=pytest.mark.thorough),
    pytest.param({'controller': {'interfaces': ('position', 'velocity')}},
                 'commands position, velocity only', marks=pytest.mark.thorough)])
def test_a_controller_that_could_not_follow_gets_nothing(make, options, text):
    robot = make(**options)
    robot.reports(text)
    robot.controller.received.clear()
    robot.play(0.5)
    assert not robot.controller.received
