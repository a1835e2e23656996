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
"""Server of the action FollowJointTrajectory of control_msgs, which may be missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
import os
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.topics.whole_messages import installed_type
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node


class GoalServer:
    """
    Serves an action of type FollowJointTrajectory, if control_msgs is installed.

    Parameters
    ----------
    node, name
        The node, and the name of the action; ``~/follow`` is relative to the node.
    check
        Called with each goal; a goal for which it raises a BipedComError is rejected, and that
        is logged.
    on_accepted
        Called with the handle of an accepted goal; what it raises is logged.
    execute
        Awaited then, in any case; sets the goal's state and returns the result.

    Attributes
    ----------
    type
        The type of the action; None if control_msgs is missing, see :attr:`problem`.

    """

    def __init__(self, node: Node, name: str, check: Callable[[Any], object],
                 on_accepted: Callable[[Any], None],
                 execute: Callable[[Any], Awaitable[Any]]) -> None:
        self._node, self._name, self._check = node, name, check
        self._accept = on_accepted
        self.type = installed_type('control_msgs.action', 'FollowJointTrajectory')
        self._server = None if self.type is None else ActionServer(
            node, self.type, name, execute, goal_callback=self._on_goal,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            handle_accepted_callback=self._on_accepted)

    @property
    def problem(self) -> str:
        """Describe why there is no server, and the remedy; '' if there is one."""
        if self._server is not None:
            return ''
        distribution = os.environ.get('ROS_DISTRO', '<distro>')
        return (f'there is no action {self._name}, because control_msgs is missing: install '
                f'ros-{distribution}-control-msgs')

    def _on_goal(self, goal: Any) -> GoalResponse:
        try:
            self._check(goal)
        except BipedComError as error:
            self._node.get_logger().error(f'goal rejected: {error}')
            return GoalResponse.REJECT
        except Exception as error:  # noqa: B902 - the client waits for a response
            log_exception(self._node, error)
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        try:
            self._accept(handle)
        except Exception as error:  # noqa: B902 - the client waits for a result
            log_exception(self._node, error)
        handle.execute()

    def destroy(self) -> None:
        """Destroy the server."""
        if self._server is not None:
            self._server.destroy()
