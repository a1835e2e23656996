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
Who subscribes to the commands, since when, and whether it may be a controller.

A subscription is discovered before the node that it belongs to (its name is unknown for up to a
few seconds), and that node before its parameter services. Until then any subscriber may be a
controller that applies the commands already.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from biped_com_ros.ros.node.clock import steady_time
from rclpy.node import Node

#: Time after which a subscriber without a node with parameters is no controller, s.
_RECOGNITION_TIME = 2.0


class CommandSubscribers:
    """
    Follows the subscriptions to a topic of commands.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic of commands.
    is_near_zero
        Returns whether a subscriber that begins with the present commands makes no step.

    Attributes
    ----------
    ids
        Of all subscriptions, as far as discovered.
    unrecognised
        Ids of those that came lately, and may turn out to be those of a controller.

    """

    def __init__(self, node: Node, topic: str, is_near_zero: Callable[[], bool]) -> None:
        self._node, self._topic, self._is_near_zero = node, topic, is_near_zero
        self.ids: set[bytes] = set()
        self.unrecognised: set[bytes] = set()
        self._came_at: dict[bytes, float] = {}
        self._predating: frozenset[bytes] = frozenset()
        self._in_step: set[bytes] = set()  # got all commands since they were near zero

    def find(self, required: str) -> dict[str, set[bytes]]:
        """
        Find the nodes that may be controllers.

        Parameters
        ----------
        required
            Full name of a controller that has to be there; empty: none.

        Returns
        -------
        dict
            The full names of nodes that have parameters, and of the required one, with the ids
            of their subscriptions.

        """
        found: dict[str, set[bytes]] = {required: set()} if required else {}
        infos = self._node.get_subscriptions_info_by_topic(self._topic)
        self._note({bytes(info.endpoint_gid) for info in infos})
        for info in infos:
            name = f"{info.node_namespace.rstrip('/')}/{info.node_name}"
            if name in found or self._has_parameters(info.node_name, info.node_namespace):
                found.setdefault(name, set()).add(bytes(info.endpoint_gid))
        recent = steady_time() - _RECOGNITION_TIME
        self.unrecognised = {gid for gid in self.ids.difference(*found.values())
                             if self._came_at[gid] > recent}
        return found

    def came_at(self, ids: Set[bytes]) -> float:
        """Return when the first of these was discovered, s of the monotonic clock."""
        if ids & self._predating:
            return float('-inf')
        return min((self._came_at[gid] for gid in ids), default=steady_time())

    def note_predating(self, ids: frozenset[bytes]) -> None:
        """Note that these were there before this node, however late they are discovered."""
        self._predating = ids

    def begin(self, ids: Set[bytes] | None = None) -> None:
        """Note that these, by default all, make no step from now on."""
        self._in_step |= self.ids if ids is None else ids

    def any_in_step(self, ids: Set[bytes]) -> bool:
        """Return whether one of these has got all commands since they were near zero."""
        return not self._in_step.isdisjoint(ids)

    def _note(self, present: set[bytes]) -> None:
        if self._is_near_zero():
            self._in_step |= present - self.ids
        now = steady_time()
        self._came_at = {gid: self._came_at.get(gid, now) for gid in present}
        self.ids = present

    def _has_parameters(self, name: str, namespace: str) -> bool:
        try:
            services = self._node.get_service_names_and_types_by_node(name, namespace)
        except RuntimeError:  # not discovered, or gone: a later check finds it
            return False
        return any(service.endswith(f'/{name}/get_parameters') for service, _ in services)
