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
The action FollowJointTrajectory in place of the controller's, which it behaves as.

From joint_trajectory_controller (ros2_controllers, joint_trajectory_controller.cpp): a goal is
rejected where its trajectory is invalid; a new one takes the place of the one before, which is
aborted; a cancelled one stops the joints, and one that leaves its tolerances holds them where they
are; tolerances of 0 are the defaults, negative ones none.
Unlike there, also a trajectory from a topic aborts the goal whose joints it takes, a goal succeeds
only when its joints are where they should be, and one for other joints does not disturb it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import os
from typing import Any

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.reference import (
    GoalCheck, Motion, Outcome, PositionReference, Tolerance, tolerances)
from biped_com_ros.nodes.gravity_compensation.parameters import GravityCompensationParameters
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.topics.whole_messages import installed_type
from builtin_interfaces.msg import Duration
import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future

#: Rate of feedback, as the controller's action_monitor_rate, Hz.
_FEEDBACK_RATE = 20.0
#: Time in which the joints of a cancelled goal come to rest, s.
_BRAKE_TIME = 0.2


class _Goal:
    """A goal that is followed."""

    def __init__(self, handle: Any, check: GoalCheck) -> None:
        self.server_goal, self.check, self.joints = handle, check, check.motion.trajectory.joints
        self.outcome, self.ended, self.next_feedback = Outcome.RUNNING, Future(), 0.0
        # Where the present reference was put before its points, they are the last ones.
        self._times = check.motion.trajectory.times[-len(handle.request.trajectory.points):]

    def next_point(self, elapsed: float) -> int:
        """Return the index of the goal's point that is moved to, s after the motion's start."""
        return min(int(np.searchsorted(self._times, elapsed, side='right')), len(self._times) - 1)


class TrajectoryGoals:
    """
    Serves the action ``~/follow_joint_trajectory``, if control_msgs is installed.

    Parameters
    ----------
    node, params
        The rclpy node, and its parameters.
    joints
        Names of all joints.
    follow
        Follows a JointTrajectory, or only checks it.

    """

    def __init__(self, node: Node, params: GravityCompensationParameters, joints: Sequence[str],
                 follow: Callable[[Any, bool], Motion | None]) -> None:
        self._node, self._params, self._follow = node, params, follow
        self._column = {name: i for i, name in enumerate(joints)}
        self._goals: list[_Goal] = []
        self._server, name = None, '~/follow_joint_trajectory'
        self._type = installed_type('control_msgs.action', 'FollowJointTrajectory')
        if self._type is None:
            distribution = os.environ.get('ROS_DISTRO', '<distro>')
            node.get_logger().warning(
                f'there is no action {name}, because control_msgs is missing: install '
                f'ros-{distribution}-control-msgs, or publish to ~/reference_trajectory')
            return
        self._server = ActionServer(
            node, self._type, name, self._execute, goal_callback=self._on_goal,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            handle_accepted_callback=self._on_accepted)

    # -- the action

    def _on_goal(self, goal: Any) -> GoalResponse:
        try:
            self._check(goal)
            self._follow(goal.trajectory, True)
        except BipedComError as error:
            self._node.get_logger().error(f'goal rejected: {error}')
            return GoalResponse.REJECT
        except Exception as error:  # noqa: B902 - the client waits for a response
            log_exception(self._node, error)
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _check(self, goal: Any) -> tuple[Array, Array]:
        """Return path and goal tolerances, (2, j) each; raise InputError if one is invalid."""
        others = (goal.multi_dof_trajectory.points, goal.component_path_tolerance,
                  goal.component_goal_tolerance)
        if any(map(len, others)):
            raise InputError('joints of several degrees of freedom cannot be moved: leave '
                             'multi_dof_trajectory and component tolerances empty')
        joints, params = goal.trajectory.joint_names, self._params

        def given(messages: Any) -> list[Tolerance]:
            return [Tolerance(m.name, m.position, m.velocity) for m in messages]
        return (tolerances(joints, params.path_tolerance, given(goal.path_tolerance)),
                tolerances(joints, params.goal_tolerance, given(goal.goal_tolerance)))

    def _on_accepted(self, handle: Any) -> None:
        try:
            self._begin(handle)
        except Exception as error:  # noqa: B902 - the client waits for a result
            log_exception(self._node, error)
        handle.execute()

    def _begin(self, handle: Any) -> None:
        goal = handle.request
        time = goal.goal_time_tolerance.sec + goal.goal_time_tolerance.nanosec / SECOND_NS
        motion = self._follow(goal.trajectory, False)
        assert motion is not None
        self._goals.append(_Goal(handle, GoalCheck(
            motion, *self._check(goal), time or self._params.goal_time)))

    async def _execute(self, handle: Any) -> Any:
        """Wait for the end of a goal, and return its result."""
        goal = next((goal for goal in self._goals if goal.server_goal is handle), None)
        if goal is None:  # it ended before
            handle.abort()
            return self._type.Result(error_code=self._type.Result.INVALID_GOAL)
        await goal.ended
        result = self._type.Result(error_string=goal.check.reason)
        was_cancelled = handle.is_cancel_requested  # no longer, once its state has changed
        if goal.outcome is Outcome.REACHED:
            handle.succeed()
            result.error_string = ''
        elif was_cancelled:
            handle.canceled()
        else:
            handle.abort()
            self._node.get_logger().warning(f'goal aborted: {result.error_string}')
        result.error_code = {
            Outcome.REACHED: result.SUCCESSFUL, Outcome.OFF_PATH: result.PATH_TOLERANCE_VIOLATED,
            Outcome.NOT_REACHED: result.GOAL_TOLERANCE_VIOLATED,
        }.get(goal.outcome, result.SUCCESSFUL if was_cancelled else result.INVALID_GOAL)
        return result

    # -- while goals are followed

    @property
    def are_active(self) -> bool:
        """Whether there is a goal."""
        return bool(self._goals)

    def update(self, now: float, reference: PositionReference, positions: Array,
               velocities: Array) -> None:
        """
        Compare the joints with the goals, and publish feedback.

        Parameters
        ----------
        now
            The present time, s.
        reference
            What is commanded.
        positions, velocities
            Measured ones of all joints, (n,) each.

        """
        desired, actual = np.stack(reference.at(now)), np.stack((positions, velocities))
        for goal in list(self._goals):
            index = [self._column[name] for name in goal.joints]
            outcome = self._update(goal, now, desired[:, index], actual[:, index])
            if outcome in (Outcome.OFF_PATH, Outcome.NOT_REACHED):
                reference.stay(goal.joints, actual[0, index])

    def _update(self, goal: _Goal, now: float, desired: Array, actual: Array) -> Outcome:
        outcome = goal.check.check(now, desired, actual)
        if outcome is Outcome.RUNNING and goal.server_goal.is_cancel_requested:
            goal.check.motion.brake(now, _BRAKE_TIME)
            outcome = Outcome.REPLACED
        if outcome is not Outcome.RUNNING:
            self._end(goal, outcome)
        elif not goal.next_feedback - 1.0 < now < goal.next_feedback:
            goal.next_feedback = now + 1.0 / _FEEDBACK_RATE
            goal.server_goal.publish_feedback(self._feedback(goal, now, desired, actual))
        return outcome

    def _feedback(self, goal: _Goal, now: float, desired: Array, actual: Array) -> Any:
        feedback = self._type.Feedback(joint_names=list(goal.joints))
        feedback.header.stamp = self._node.get_clock().now().to_msg()
        elapsed = max(now - goal.check.motion.start, 0.0)
        if hasattr(feedback, 'index'):  # control_msgs has it from Lyrical on
            feedback.index = goal.next_point(elapsed)
        for point, (positions, velocities) in (
                (feedback.desired, desired), (feedback.actual, actual),
                (feedback.error, desired - actual)):
            point.positions, point.velocities = positions.tolist(), velocities.tolist()
            point.time_from_start = Duration(
                sec=int(elapsed), nanosec=int(elapsed % 1.0 * SECOND_NS))
        return feedback

    def abort(self, reason: str) -> None:
        """Abort all goals."""
        for goal in list(self._goals):
            goal.check.reason = reason
            self._end(goal, Outcome.REPLACED)

    def _end(self, goal: _Goal, outcome: Outcome) -> None:
        self._goals.remove(goal)
        goal.outcome = outcome
        goal.ended.set_result(None)

    def destroy(self) -> None:
        """Destroy the action."""
        self.abort('gravity_compensation was cleaned up')
        if self._server is not None:
            self._server.destroy()
