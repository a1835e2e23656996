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
"""Asks a ros2_control controller for the joints it commands, before anything is sent to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters

_REQUEST = GetParameters.Request(names=['joints'])


class ControllerCheck:
    """
    Compares the order of commands with the parameter ``joints`` of a controller.

    Parameters
    ----------
    node
        Who asks.
    controller
        Name of the controller's node, relative to the node's namespace; empty: nothing is
        compared.
    joints
        The order of commands.

    Attributes
    ----------
    problem
        Why nothing may be sent; '' if it may.
    state
        In words, for diagnostics.

    """

    def __init__(self, node: Any, controller: str, joints: Sequence[str]) -> None:
        self._node, self._name, self._joints = node, controller, list(joints)
        self._client: Any = None
        self._timer: Any = None
        self.problem, self.state = '', 'not compared'
        if controller:
            self._client = node.create_client(GetParameters, f'{controller}/get_parameters')
            self.problem = self.state = f"the joints of controller '{controller}' are not known"

    def ask(self) -> None:
        """Ask, and again each second until there is an answer."""
        if self._client is None:
            return
        self.problem = self.state = f"the joints of controller '{self._name}' are not known yet"
        if self._timer is None:
            self._timer = self._node.create_timer(1.0, self._try)
        self._try()

    def destroy(self) -> None:
        """Stop asking."""
        self._stop_asking()
        if self._client is not None:
            self._node.destroy_client(self._client)
            self._client = None

    def _try(self) -> None:
        if self._client is None:
            return
        if not self._client.service_is_ready():
            self.problem = self.state = (
                f"controller '{self._name}' does not run, so the order of its joints is not known")
            return
        # Whoever was asked before may have ended meanwhile.
        self._client.call_async(_REQUEST).add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        values = future.result().values
        theirs = list(values[0].string_array_value) if values else []
        if not theirs:
            self.problem = self.state = (
                f"controller '{self._name}' has no parameter 'joints'; give the name of an effort "
                'controller, or none')
            return
        self._stop_asking()
        self.problem = _difference(self._name, theirs, self._joints)
        self.state = self.problem or f"as in controller '{self._name}'"

    def _stop_asking(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None


def _difference(name: str, theirs: list[str], ours: list[str]) -> str:
    if theirs == ours:
        return ''
    for i, (their, our) in enumerate(zip(theirs, ours)):
        if their != our:
            return (f"controller '{name}' expects '{their}' at place {i} of its commands, "
                    f"command_joints has '{our}': set command_joints to its parameter 'joints'")
    return (f"controller '{name}' commands {len(theirs)} joints, command_joints has {len(ours)}: "
            "set command_joints to its parameter 'joints'")
