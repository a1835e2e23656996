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
"""Who publishes a topic on which nothing arrives, and why it is silent."""

from __future__ import annotations

from functools import partial
from typing import Any
import weakref

from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.controller_states import ControllerStates
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from rclpy.client import Client
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future

#: The graph is read, and states are requested, at most once in this time, s.
_PERIOD = 0.5
#: Largest number of publishers that are named.
_NAMED = 3
#: What rmw gives as the name of an endpoint that belongs to no node of ROS.
_NO_NODE = '_NODE_NAME_UNKNOWN_'
_CONTROLLER_MANAGER = 'controller_manager/list_controllers'


class NodeStates:
    """
    What other nodes responded when their lifecycle state was requested.

    Lifecycle nodes have a service for that. Controllers of ros2_control have not (their nodes are
    made without, controller_interface_base.cpp): their controller manager is called.

    Parameters
    ----------
    node
        The node that subscribes.

    """

    def __init__(self, node: Node) -> None:
        self._node = weakref.ref(node)
        self._clients: dict[str, Client | None] = {}
        self._states: dict[str, str] = {}
        self._controllers: ControllerStates | None = None

    def problem(self, name: str) -> str:
        """
        Return why a node publishes nothing, with a remedy; '' if it does, or none is known.

        Also requests it again; the response is used by the next call.
        """
        node = self._node()
        if node is None:
            return ''
        services = {service for service, _ in node.get_service_names_and_types()}
        if f'{name}/get_state' in services:
            self._query_node(node, name)
            verb = 'configure' if self._states.get(name) == 'unconfigured' else 'activate'
            remedy = f'ros2 lifecycle set {name} {verb}'
        elif f'{_namespace(name)}/{_CONTROLLER_MANAGER}' in services:
            self._query_manager(node, name)
            remedy = f'ros2 control switch_controllers --activate {name.rpartition("/")[2]}'
        else:
            return ''
        state = self._states.get(name, '')
        return f'but is {state}: {remedy}' if state else ''

    def _query_node(self, node: Node, name: str) -> None:
        if name not in self._clients:
            try:
                self._clients[name] = node.create_client(GetState, f'{name}/get_state')
            except RuntimeError:  # a policy of SROS2 does not permit it
                self._clients[name] = None
        client = self._clients[name]
        if client is not None and client.service_is_ready():
            client.call_async(GetState.Request()).add_done_callback(
                partial(self._on_response, name))

    def _on_response(self, name: str, future: Future) -> None:
        response: Any = future.result()
        state = response.current_state
        self._states[name] = '' if state.id == State.PRIMARY_STATE_ACTIVE else state.label

    def _query_manager(self, node: Node, name: str) -> None:
        try:
            if self._controllers is None:
                self._controllers = ControllerStates(node, self._on_controller)
            self._controllers.request(name)
        except RuntimeError:  # a policy of SROS2 does not permit it
            pass

    def _on_controller(self, name: str, is_active: bool) -> None:
        self._states[name] = '' if is_active else 'an inactive controller'


class NoDataReason:
    """
    Finds why nothing arrives from the publishers of a topic.

    Parameters
    ----------
    node
        The node that subscribes.

    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._last_reason: tuple[tuple[str, int], float, str] | None = None

    def reason(self, topic: str, publishers: int, qos: QoSProfile) -> str:
        """
        Return who publishes a topic, and why that does not arrive.

        Parameters
        ----------
        topic
            Its full name.
        publishers
            How many it has.
        qos
            Of the subscription.

        """
        now = steady_time()
        key = topic, publishers
        last = self._last_reason
        if last is None or last[0] != key or now - last[1] > _PERIOD:
            last = self._last_reason = key, now, self._find(topic, qos)
        return last[2]

    def _find(self, topic: str, qos: QoSProfile) -> str:
        states = _node_states(self._node)
        reasons: dict[str, str] = {}
        for info in self._node.get_publishers_info_by_topic(topic):
            name = _name(info)
            reasons[name] = _mismatch(topic, info.qos_profile, qos) or (
                states.problem(name) if info.node_name != _NO_NODE else '')
        more = [f'{len(reasons) - _NAMED} more'] if len(reasons) > _NAMED else []
        named = list(reasons.items())[:_NAMED]
        if any(reasons.values()):
            return '; '.join([f'{name} publishes it {reason}'.rstrip()
                              for name, reason in named] + more)
        names = ', '.join([name for name, _ in named] + more)
        publish, its = ('publishes', 'its log') if len(reasons) == 1 else ('publish', 'their logs')
        return (f'{names} {publish} this topic, but nothing arrives; see {its}, and try ros2 '
                f'topic hz {topic}')


_states_of: weakref.WeakKeyDictionary[Node, NodeStates] = weakref.WeakKeyDictionary()


def _node_states(node: Node) -> NodeStates:
    return _states_of.setdefault(node, NodeStates(node))


def publisher_names(node: Node, topic: str) -> list[str]:
    """Return who publishes a topic, each node once."""
    return sorted({_name(info) for info in node.get_publishers_info_by_topic(topic)})


def _name(info: Any) -> str:  # its class is in another module of rclpy from Lyrical on
    if info.node_name == _NO_NODE:
        return 'a program without a ROS node'
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def _namespace(name: str) -> str:
    return name.rpartition('/')[0]


def _mismatch(topic: str, published: QoSProfile, ours: QoSProfile) -> str:
    """Return which quality of service keeps a publisher from this subscription; '' if none."""
    parameter = f"set 'qos_overrides.{topic}.subscription"
    if (published.reliability == ReliabilityPolicy.BEST_EFFORT
            and ours.reliability == ReliabilityPolicy.RELIABLE):
        return ('as best effort, which a reliable subscription does not receive: '
                f"{parameter}.reliability' to 'best_effort'")
    if (published.durability == DurabilityPolicy.VOLATILE
            and ours.durability == DurabilityPolicy.TRANSIENT_LOCAL):
        return ('as volatile, which a transient local subscription does not receive: '
                f"{parameter}.durability' to 'volatile'")
    return ''
