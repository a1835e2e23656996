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
A trajectory controller as others use it: what it commands at present, and the goals that it has.

joint_trajectory_controller publishes its reference on ``~/controller_state`` in every update in
which it is active (``publish_state`` in joint_trajectory_controller.cpp of ros2_controllers).
A trajectory that starts there moves nothing. From the measured positions, which are below the
reference by the deflection under gravity, joints would sink by that deflection once more.

It follows the trajectory that arrived last, from its topic or its action. When a message replaces
the trajectory of a goal, the goal stays active, and is reported as succeeded at the end of the new
trajectory although its own was never executed (``topic_callback`` and ``update``). Therefore it is
cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.topics.qos import SENSOR_INPUT
from biped_com_ros.ros.topics.whole_messages import installed_type
import numpy as np
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

_COMMANDS, _STATE, _ACTION = '/joint_trajectory', '/controller_state', '/follow_joint_trajectory'
#: An older message may be of a controller that was deactivated since, s.
_LONGEST_AGE = 0.5
#: Longest wait for it, s.
_LONGEST_WAIT = 1.0
_RUNNING = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
#: Time that a cancelled goal stays in diagnostics, s.
_REPORT_TIME = 5.0


class CommandedPositions:
    """
    Reads the reference of a controller; it subscribes only while that is of use.

    Messages come at the rate of the controller: they are kept as bytes, and one is converted.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic of its trajectories; that of its state goes with
        ``c/joint_trajectory`` only.
    joints
        Names of all of its joints.

    """

    def __init__(self, node: Node, topic: str, joints: Sequence[str]) -> None:
        self._node, self._joints = node, list(joints)
        self._type = (installed_type('control_msgs.msg', 'JointTrajectoryControllerState')
                      if topic.endswith(_COMMANDS) else None)
        self._topic = topic.removesuffix(_COMMANDS) + _STATE
        self._subscription: Subscription | None = None
        self.clear()

    def clear(self) -> None:
        """Drop the message received before."""
        self._message, self._received_at = b'', 0.0
        self._waits_since: float | None = None

    def subscribe(self) -> None:
        """Receive messages from now on."""
        if self._type is None or self._subscription is not None:
            return
        try:
            self._subscription = self._node.create_subscription(
                self._type, self._topic, self._on_message, SENSOR_INPUT, raw=True)
        except RuntimeError as error:  # a policy of SROS2 does not permit it
            self._type = None
            self._node.get_logger().warning(
                f"cannot read '{self._topic}', so motions begin at the measured positions: "
                f'{error}')

    def ignore(self) -> None:
        """Receive no messages any more."""
        self.clear()
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def must_wait(self) -> bool:
        """Return whether a message is due soon: something publishes them, and none has come."""
        if self._subscription is None or self._is_recent():
            return False
        now = steady_time()
        if self._waits_since is None:
            self._waits_since = now
        return (now - self._waits_since < _LONGEST_WAIT
                and self._node.count_publishers(self._topic) > 0)

    def positions(self) -> Array | None:
        """Return what the controller commands, shape (n,), in the order of `joints`, or None."""
        if not self._is_recent():
            return None
        state: Any = deserialize_message(self._message, self._type)
        column = dict(zip(state.joint_names, state.reference.positions))
        found = np.array([column.get(name, np.nan) for name in self._joints])
        is_valid = len(column) == len(self._joints) and np.isfinite(found).all()
        return found if is_valid else None

    def _is_recent(self) -> bool:
        return bool(self._message) and steady_time() - self._received_at < _LONGEST_AGE

    def _on_message(self, message: bytes) -> None:
        self._message, self._received_at = message, steady_time()


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
        self._action = topic.removesuffix(_COMMANDS) + _ACTION
        self._cancelled_at = -_REPORT_TIME
        self._goals: dict[bytes, GoalInfo] = {}
        self._subscription, self._client = None, None
        is_own = self._action == self._own('follow_joint_trajectory')
        if topic.endswith(_COMMANDS) and not is_own:
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
