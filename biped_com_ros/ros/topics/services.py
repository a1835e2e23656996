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
"""Services whose response has the error message of a failed request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.node.callback_errors import log_exception
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import SetBool, Trigger


def trigger_service(node: Node, name: str, action: Callable[[], str | None]) -> Service:
    """
    Offer a ``std_srvs/Trigger``.

    Parameters
    ----------
    node, name
        The node, and the name of the service; ``~/tare`` is relative to the node.
    action
        Called on each request; returns the message of the response. A BipedComError becomes
        ``success: false`` with its message, and is logged.

    """
    return node.create_service(
        Trigger, name, lambda request, response: _respond(node, response, action))


def switch_service(node: Node, name: str, action: Callable[[bool], str | None]) -> Service:
    """Offer a ``std_srvs/SetBool``; `action` gets its value. See `trigger_service`."""
    def respond(request: Any, response: Any) -> Any:
        return _respond(node, response, lambda: action(request.data))
    return node.create_service(SetBool, name, respond)


def _respond(node: Node, response: Any, action: Callable[[], str | None]) -> Any:
    try:
        response.message = action() or ''
        response.success = True
    except BipedComError as error:
        response.message, response.success = str(error), False
        node.get_logger().error(str(error))
    except Exception as error:  # noqa: B902 - the client gets a response
        response.message, response.success = f'failed; see the log of {node.get_name()}', False
        log_exception(node, error)
    return response
