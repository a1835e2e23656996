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
Goals that others send to the same controller.

joint_trajectory_controller follows the trajectory that arrived last, from its topic or its action.
When a message replaces the trajectory of a goal, the goal stays active, and is reported as
succeeded at the end of the new trajectory although its own was never executed (``topic_callback``
and ``update`` in joint_trajectory_controller.cpp of ros2_controllers). Therefore it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from biped_com_ros.ros.node.clock import steady_time
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default

_TOPIC, _ACTION = '/joint_trajectory', '/follow_joint_trajectory'
_RUNNING = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
#: Time that a cancelled goal stays in diagnostics, s.
_REPORT_TIME = 5.0


class OtherGoals:
    """
    Watches a controller's action server, and cancels the goals of other clients.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic; the action of a topic ``c/joint_trajectory`` is
        ``c/follow_joint_trajectory``.
    is_commanding
        Returns whether this node commands efforts, so that goals of others have to end. Else they
        are left alone: this node may be inactive.
    on_cancelled
        Called when goals were found and are cancelled.

    """

    def __init__(self, node: Node, topic: str, is_commanding: Callable[[], bool],
                 on_cancelled: Callable[[], None]) -> None:
        self._node, self._is_commanding, self._on_cancelled = node, is_commanding, on_cancelled
        self._action = topic.removesuffix(_TOPIC) + _ACTION
        self._cancelled_at = -_REPORT_TIME
        self._goals: dict[bytes, GoalInfo] = {}
        self._subscription, self._client = None, None
        is_own = self._action == self._own('follow_joint_trajectory')
        if topic.endswith(_TOPIC) and not is_own:
            self._subscription = node.create_subscription(
                GoalStatusArray, f'{self._action}/_action/status', self._on_status,
                qos_profile_action_status_default)
            self._client = node.create_client(CancelGoal, f'{self._action}/_action/cancel_goal')

    @property
    def problem(self) -> str:
        """Describe the goal that the controller follows now; '' if there is none."""
        return f"a goal of '{self._action}' is running{self._remedy}" if self._goals else ''

    @property
    def recent(self) -> str:
        """Describe what was cancelled in the last seconds; '' if nothing."""
        is_recent = steady_time() - self._cancelled_at <= _REPORT_TIME
        return f"a goal of '{self._action}' was cancelled{self._remedy}" if is_recent else ''

    @property
    def _remedy(self) -> str:
        return (': the trajectories of this node would replace its own; send goals to '
                f"'{self._own('follow_joint_trajectory')}' instead")

    def _own(self, name: str) -> str:
        return f'{self._node.get_fully_qualified_name()}/{name}'

    def cancel(self) -> None:
        """Cancel the goals that are running, if this node commands efforts."""
        if not self._goals or not self._is_commanding():
            return
        client: Any = self._client
        for goal in self._goals.values():
            client.call_async(CancelGoal.Request(goal_info=GoalInfo(goal_id=goal.goal_id)))
        self._cancelled_at, self._goals = steady_time(), {}
        self._node.get_logger().error(self.recent)
        self._on_cancelled()

    def destroy(self) -> None:
        """Destroy subscription and client."""
        if self._subscription is not None and self._client is not None:
            self._node.destroy_subscription(self._subscription)
            self._node.destroy_client(self._client)

    def _on_status(self, message: GoalStatusArray) -> None:
        self._goals = {bytes(status.goal_info.goal_id.uuid): status.goal_info
                       for status in message.status_list if status.status in _RUNNING}
        self.cancel()
