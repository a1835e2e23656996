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
"""
A stand-in for joint_trajectory_controller with effort interfaces, alone or beside positions.

As read in ros2_controllers (joint_trajectory_controller.cpp, trajectory.cpp and
validate_jtc_parameters.hpp, 4.42.1 and 6.9):

- ``command_interfaces`` may be ``[effort]`` or ``[position, effort]``. The former closes the
  position loop itself and adds the efforts of the trajectory; the latter passes positions and
  efforts on to drives that close it.

- ``topic_callback`` and ``goal_accepted_callback`` both replace the trajectory that is followed;
  a topic does not end the goal that is active.
- ``validate_trajectory_msg`` refuses joints that are not its own, fewer than its own
  (``allow_partial_joints_goal`` false), a velocity in the end, and efforts if ``effort`` is none
  of its ``command_interfaces``.
- ``update``, with ``interpolate_from_desired_state``: cubic from the last commanded state to the
  first point, if that is still to come, and between points; efforts are linear, and zero without
  any in the points. A trajectory starts at its stamp, or at once where that is 0; one that has
  ended already is refused.
- A goal whose tolerances are 0, the default, is reached when the trajectory that is followed then
  has ended, wherever the joints are.
- ``goal_cancelled_callback`` cancels and holds the position; ``preempt_active_goal`` aborts a goal
  for a new one; ``goal_received_callback`` rejects all while it is inactive.
- ``on_deactivate`` aborts the active goal as invalid, sets efforts to zero and leaves positions as
  they were commanded.
- ``on_activate`` holds the position, without efforts: the one that is commanded already, if there
  is a position interface with a value
  (``set_last_command_interface_value_as_state_on_activation``), else the measured one.
- ``publish_state``: while it is active, each update publishes what it commands as ``reference`` on
  ``~/controller_state``.
- It subscribes when it is configured and announces transitions on ``~/transition_event``, the
  intermediate state ``activating`` or ``deactivating`` first (see `effort_controller`).
"""

from lifecycle_msgs.msg import State, TransitionEvent
import numpy as np
from rclpy.node import Node
from rclpy.task import Future
from scipy.interpolate import CubicHermiteSpline, interp1d
from trajectory_msgs.msg import JointTrajectory

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

PERIOD = 0.005
"""Between two updates, s."""

NAME = 'joint_trajectory_controller'


class TrajectoryController:
    """
    The stand-in, inactive.

    Parameters
    ----------
    rig
        Where it runs. After each update, its `move` gets positions and efforts of the drives;
        while the controller is inactive that is nothing, or positions, if it commands them.
    joints
        Names.
    interfaces
        What it commands.
    from_desired
        Its parameter interpolate_from_desired_state.
    publishes_state
        As it does, if control_msgs is installed.

    Attributes
    ----------
    desired, efforts
        What it commands.
    received, refused
        Trajectories from its topic.
    history
        (time, desired, efforts) of each update.

    """

    def __init__(self, rig, joints, interfaces=('effort',), from_desired=True,
                 publishes_state=True):
        self._rig, self.joints, self.is_active = rig, list(joints), False
        self._takes_efforts, self._has_positions = 'effort' in interfaces, 'position' in interfaces
        self.desired = rig.measured(self.joints)
        self.received, self.refused, self.history = [], [], []
        self._goal, self._ended = None, {}
        self._hold()
        self.node = Node(NAME, namespace=rig.namespace)
        self.node.declare_parameter('joints', self.joints)
        self.node.declare_parameter('interpolate_from_desired_state', from_desired)
        self.node.declare_parameter('command_interfaces', list(interfaces))
        self._events = self.node.create_publisher(
            TransitionEvent, f'{NAME}/transition_event', 10)
        self.node.create_subscription(
            JointTrajectory, f'{NAME}/joint_trajectory', self._on_trajectory, 10)
        self._state = None
        if publishes_state and JointTrajectoryControllerState:
            self._state = JointTrajectoryControllerState(joint_names=self.joints)
            self._states = self.node.create_publisher(
                JointTrajectoryControllerState, f'{NAME}/controller_state', 10)
        self.node.create_timer(PERIOD, self._update)
        rig.executor.add_node(self.node)

    def serve_action(self):
        """Offer the action; needs control_msgs."""
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionServer, CancelResponse, GoalResponse
        self._result = FollowJointTrajectory.Result
        self._server = ActionServer(
            self.node, FollowJointTrajectory, f'{NAME}/follow_joint_trajectory', self._execute,
            handle_accepted_callback=self._on_accepted,
            goal_callback=lambda _: (
                GoalResponse.ACCEPT if self.is_active else GoalResponse.REJECT),
            cancel_callback=lambda _: CancelResponse.ACCEPT)

    def switch(self, on):
        """Activate or deactivate it."""
        self._announce(State.TRANSITION_STATE_ACTIVATING if on
                       else State.TRANSITION_STATE_DEACTIVATING)
        self.is_active = on
        if on and not self._has_positions:
            self.desired = self._rig.measured(self.joints)
        self._hold()
        self._end_goal(is_aborted=True)
        self._announce(State.PRIMARY_STATE_ACTIVE if on else State.PRIMARY_STATE_INACTIVE)

    def _hold(self):
        self._follow = None
        self.velocities, self.efforts = 0.0 * self.desired, 0.0 * self.desired

    def _announce(self, state):
        self._events.publish(TransitionEvent(goal_state=State(id=state)))

    def close(self):
        self._rig.executor.remove_node(self.node)
        self.node.destroy_node()

    def _on_trajectory(self, message):
        self.received.append(message)
        ends_moving = any(message.points[-1].velocities)
        has_efforts = any(len(point.effort) for point in message.points)
        start, end = seconds(message.header.stamp), seconds(message.points[-1].time_from_start)
        if (set(message.joint_names) != set(self.joints) or ends_moving
                or (has_efforts and not self._takes_efforts)
                or (start and start + end < self.now())):
            self.refused.append(message)
        elif self.is_active:
            self._set(message)

    def _set(self, message):
        order = [list(message.joint_names).index(name) for name in self.joints]

        def row(values):
            return np.array(values)[order] if len(values) else np.zeros(len(order))
        has_velocities = all(len(point.velocities) for point in message.points)
        times = [seconds(point.time_from_start) for point in message.points]
        self._start = seconds(message.header.stamp) or self.now()
        elapsed = max(self.now() - self._start, 0.0)
        points = [(row(p.positions), row(p.velocities), row(p.effort)) for p in message.points]
        if times[0] > elapsed:
            times.insert(0, elapsed)
            points.insert(0, (self.desired.copy(), self.velocities.copy(), self.efforts.copy()))
        q, v, tau = (np.array(values) for values in zip(*points))
        self._follow = np.array(times), q, v if has_velocities else None, tau

    def now(self):
        """Return its time, s."""
        return self.node.get_clock().now().nanoseconds * 1e-9

    def _update(self):
        if self._follow is not None and self.is_active:
            times, q, v, tau = self._follow
            t = min(self.now() - self._start, times[-1])
            if len(times) == 1 or t >= times[-1]:
                self.desired, self.velocities, self.efforts = q[-1], 0.0 * q[-1], tau[-1]
                self._end_goal()
            else:
                self.efforts = _linear(times, tau, t)
                if v is None:
                    self.desired = _linear(times, q, t)
                else:
                    spline = CubicHermiteSpline(times, q, v)
                    self.desired, self.velocities = spline(t), spline(t, 1)
        if self._state is not None and self.is_active:
            self._state.reference.positions = self.desired.tolist()
            self._states.publish(self._state)
        if self._goal is not None and self._goal[0].is_cancel_requested:
            self._hold()
            self._end_goal()
        self.history.append((self.now(), self.desired.copy(), self.efforts.copy()))
        if self.is_active or self._has_positions:
            self._rig.move(self.joints, self.desired, self.efforts)

    def _on_accepted(self, handle):
        self._end_goal(is_aborted=True)
        self._goal = handle, Future()
        self._ended[bytes(handle.goal_id.uuid)] = self._goal[1]
        self._set(handle.request.trajectory)
        handle.execute()

    def _end_goal(self, is_aborted=False):
        if self._goal is not None:
            self._goal[1].set_result(is_aborted)
            self._goal = None

    async def _execute(self, handle):
        if await self._ended.pop(bytes(handle.goal_id.uuid)):
            handle.abort()
            return self._result(error_code=self._result.INVALID_GOAL)
        if handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.succeed()
        return self._result()


def seconds(time):
    return time.sec + 1e-9 * time.nanosec


def _linear(times, values, t):
    return interp1d(times, values, axis=0, bounds_error=False,
                    fill_value=(values[0], values[-1]))(t)
