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
"""Which controllers are active, from controller_manager."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from biped_com_ros.ros.topics.whole_messages import installed_type
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future

_ACTIVE = 'active'


class ControllerStates:
    """
    Calls ``<namespace>/controller_manager/list_controllers``, where controller_manager_msgs is.

    Parameters
    ----------
    node
        The rclpy node.
    on_state
        Called with the full name of each controller, and whether it is active.

    """

    def __init__(self, node: Node, on_state: Callable[[str, bool], None]) -> None:
        self._node, self._on_state = node, on_state
        self._clients: dict[str, Client] = {}
        self._type = installed_type(  # without ros2_control its events have to do
            'controller_manager_msgs.srv', 'ListControllers')

    def is_service_ready(self, controller: str) -> bool:
        """Return whether there is a controller manager in the namespace of a controller."""
        client = self._client(controller)
        return client is not None and client.service_is_ready()

    def request(self, controller: str) -> None:
        """Request the states of all controllers in the namespace of this one."""
        client = self._client(controller)
        if client is not None and client.service_is_ready():
            client.call_async(self._type.Request()).add_done_callback(
                partial(self._on_response, _namespace(controller)))

    def destroy(self) -> None:
        """Destroy the clients."""
        while self._clients:
            self._node.destroy_client(self._clients.popitem()[1])

    def _client(self, controller: str) -> Client | None:
        if self._type is None:
            return None
        namespace = _namespace(controller)
        if namespace not in self._clients:
            self._clients[namespace] = self._node.create_client(
                self._type, f'{namespace}/controller_manager/list_controllers')
        return self._clients[namespace]

    def _on_response(self, namespace: str, future: Future) -> None:
        response: Any = future.result()
        for controller in response.controller:
            self._on_state(f'{namespace}/{controller.name}', controller.state == _ACTIVE)


def _namespace(controller: str) -> str:
    return controller.rpartition('/')[0]
