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

from __future__ import annotations

from lifecycle_msgs.msg import State, TransitionEvent
import numpy as np
from rclpy.node import Node
from rclpy.task import Future
from scipy.interpolate import CubicHermiteSpline
from trajectory_msgs.msg import JointTrajectory

PERIOD = 0.005
"""Between two updates, s."""


class TrajectoryController:
    """
    The stand-in.

    Parameters
    ----------
    executor, namespace
        Where it runs.
    joints
        Names.
    positions
        Of the joints at the start, rad.
    on_update
        Called with positions and efforts that the drives get after each update. While it is
        inactive that is nothing, or positions, if it commands them.
    measured
        Returns positions of the joints; by default, they follow what is commanded.

    Attributes
    ----------
    desired, efforts
        What it commands.
    received, refused
        Trajectories from its topic.

    """

    def __init__(self, executor, namespace, joints, positions, on_update=lambda q, tau: None,
                 from_desired=True, publishes_state=True, interfaces=('effort',), measured=None):
        self._takes_efforts, self._has_positions = 'effort' in interfaces, 'position' in interfaces
        self._measured = measured or (lambda: self.desired)
        self.joints, self.is_active = list(joints), False
        self.desired, self.velocities = np.array(positions), np.zeros(len(joints))
        self.efforts, self._last_efforts = np.zeros(len(joints)), np.zeros(len(joints))
        self.received, self.refused, self.history = [], [], []
        self._follow, self._goal, self._on_update = None, None, on_update
        name = 'joint_trajectory_controller'
        self.node, self._executor = Node(name, namespace=namespace), executor
        self.node.declare_parameter('joints', self.joints)
        self.node.declare_parameter('interpolate_from_desired_state', from_desired)
        self.node.declare_parameter('command_interfaces', list(interfaces))
        self._events = self.node.create_publisher(
            TransitionEvent, f'{name}/transition_event', 10)
        self.node.create_subscription(
            JointTrajectory, f'{name}/joint_trajectory', self._on_trajectory, 10)
        self._state = None
        if publishes_state:
            self._make_state()
        self.node.create_timer(PERIOD, self._update)
        self.goals, self._ended = [], {}
        executor.add_node(self.node)

    def _make_state(self):
        try:
            from control_msgs.msg import JointTrajectoryControllerState
        except ImportError:
            return
        self._state = JointTrajectoryControllerState(joint_names=self.joints)
        self._states = self.node.create_publisher(
            JointTrajectoryControllerState, f'{self.node.get_name()}/controller_state', 10)

    def serve_action(self):
        """Offer the action; needs control_msgs."""
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionServer, CancelResponse, GoalResponse
        self._result = FollowJointTrajectory.Result
        self._server = ActionServer(
            self.node, FollowJointTrajectory,
            'joint_trajectory_controller/follow_joint_trajectory', self._execute,
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
            self.desired = self._measured().copy()
        self._hold()
        self._end_goal(is_aborted=True)
        self._announce(State.PRIMARY_STATE_ACTIVE if on else State.PRIMARY_STATE_INACTIVE)

    def _hold(self):
        self._follow = None
        self.velocities, self.efforts = 0.0 * self.desired, 0.0 * self.desired

    def _announce(self, state):
        self._events.publish(TransitionEvent(goal_state=State(id=state)))

    def close(self):
        self._executor.remove_node(self.node)
        self.node.destroy_node()

    def _on_trajectory(self, message):
        self.received.append(message)
        ends_moving = any(message.points[-1].velocities)
        has_efforts = any(len(point.effort) for point in message.points)
        start, end = _seconds(message.header.stamp), _seconds(message.points[-1].time_from_start)
        if (set(message.joint_names) != set(self.joints) or ends_moving
                or (has_efforts and not self._takes_efforts)
                or (start and start + end < self._now())):
            self.refused.append(message)
        elif self.is_active:
            self._set(message)

    def _set(self, message):
        order = [list(message.joint_names).index(name) for name in self.joints]
        zeros = np.zeros(len(order))

        def row(values):
            return np.array(values)[order] if len(values) else zeros
        has_velocities = all(len(point.velocities) for point in message.points)
        times = [_seconds(point.time_from_start) for point in message.points]
        self._start = _seconds(message.header.stamp) or self._now()
        elapsed = max(self._now() - self._start, 0.0)
        points = [(row(p.positions), row(p.velocities), row(p.effort)) for p in message.points]
        if times[0] > elapsed:
            times.insert(0, elapsed)
            points.insert(0, (self.desired.copy(), self.velocities.copy(), self.efforts.copy()))
        q, v, tau = (np.array(values) for values in zip(*points))
        if not has_velocities:
            v = None
        self._follow = np.array(times), q, v, tau

    def _now(self):
        return self.node.get_clock().now().nanoseconds * 1e-9

    def _update(self):
        if self._follow is not None and self.is_active:
            times, q, v, tau = self._follow
            t = min(self._now() - self._start, times[-1])
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
        self.history.append((self._now(), self.desired.copy(), self.efforts.copy()))
        if self.is_active or self._has_positions:
            self._on_update(self.desired, self.efforts)

    def _on_accepted(self, handle):
        self._end_goal(is_aborted=True)
        self.goals.append(handle)
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


def _seconds(time):
    return time.sec + 1e-9 * time.nanosec


def _linear(times, values, t):
    return np.array([np.interp(t, times, column) for column in values.T])
