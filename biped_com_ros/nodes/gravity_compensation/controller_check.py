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
"""Compares the joints of ~/commands with those of a ros2_control controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future
from rclpy.timer import Timer

_REQUEST = GetParameters.Request(names=['joints'])


class ControllerCheck:
    """
    Reads the parameter ``joints`` of a controller, once a second until it responds.

    Parameters
    ----------
    node
        The rclpy node.
    controller
        Name of the controller's node, relative to the node's namespace; empty: nothing is
        compared.
    joints
        The order of commands.

    Attributes
    ----------
    problem
        Why no command may be sent; '' if it may.
    state
        For diagnostics.

    """

    def __init__(self, node: Node, controller: str, joints: Sequence[str]) -> None:
        self._node, self._name, self._joints = node, controller, list(joints)
        self._client: Client | None = None
        self._timer: Timer | None = None
        self.problem, self.state = '', 'not compared'
        if controller:
            self._client = node.create_client(GetParameters, f'{controller}/get_parameters')
            self._set(f"the joints of controller '{controller}' are not known yet")

    def start(self) -> None:
        """Compare again; a problem is reported until the result is known."""
        if self._client is None:
            return
        self._set(f"the joints of controller '{self._name}' are not known yet")
        if self._timer is None:
            self._timer = self._node.create_timer(1.0, self._request)
        self._request()

    def destroy(self) -> None:
        """Destroy timer and client."""
        self._stop_timer()
        if self._client is not None:
            self._node.destroy_client(self._client)
            self._client = None

    def _set(self, problem: str) -> None:
        self.problem, self.state = problem, problem or f"as in controller '{self._name}'"

    def _request(self) -> None:
        if self._client is None:
            return
        if not self._client.service_is_ready():
            self._set(f"controller '{self._name}' does not run, so the order of its joints is not "
                      'known: start it, or set controller to an empty string')
            return
        # A request to a controller that has ended meanwhile gets no response: send another one.
        self._client.call_async(_REQUEST).add_done_callback(self._on_response)

    def _on_response(self, future: Future) -> None:
        response: Any = future.result()
        values = response.values
        joints = list(values[0].string_array_value) if values else []
        if not joints:
            self._set(f"controller '{self._name}' has no parameter 'joints': set controller to an "
                      'effort controller, or to an empty string')
            return
        self._stop_timer()
        self._set(_difference(self._name, joints, self._joints))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None


def _difference(name: str, expected: list[str], ours: list[str]) -> str:
    remedy = "set command_joints to its parameter 'joints'"
    for i, (their, our) in enumerate(zip(expected, ours)):
        if their != our:
            return (f"controller '{name}' expects '{their}' at index {i} of its commands, "
                    f"command_joints has '{our}': {remedy}")
    return '' if len(expected) == len(ours) else (
        f"controller '{name}' commands {len(expected)} joints, command_joints has {len(ours)}: "
        f'{remedy}')
