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
Which node may command a controller: one at a time, starting from the efforts of a killed one.

A node that was killed is still discovered for up to 20 s, and its controller still applies its
last command. Both are known from its :class:`CommandRecord`, on the same computer.
"""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.nodes.gravity_compensation.command_record import CommandRecord
from biped_com_ros.nodes.gravity_compensation.controller_watch import DISCOVERY_TIME
from biped_com_ros.ros.node.clock import steady_time
from rclpy.node import Node


class CommandTakeover:
    """
    Decides whether this node may command, and where it begins.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic of commands.
    joints
        Of the commands, in their order.
    remedy
        What other publishers of the topic do, and what to do about it.

    Attributes
    ----------
    record
        Where commands are noted; its `efforts` are written with each command.

    """

    def __init__(self, node: Node, topic: str, joints: Sequence[str], remedy: str) -> None:
        self._node, self._topic, self._remedy = node, topic, remedy
        self.record = CommandRecord(
            f'{node.context.get_domain_id()} {topic}', joints)
        self._ended: set[bytes] = set()  # publishers of processes that were killed
        self._noted: set[bytes] | None = None
        self._is_pending, self._pending_since = False, 0.0

    def start(self) -> None:
        """Request to command from now on."""
        self._acquire()
        if self.record.problem:
            self._node.get_logger().warning(
                'if this node is killed, its commands cannot be continued by the next one: '
                f'{self.record.problem}; check permissions and free space')

    def end(self) -> None:
        """Let others command."""
        self.record.release()
        self._is_pending = False

    destroy = end

    @property
    def is_pending(self) -> bool:
        """Whether a predecessor was killed, and it is not known yet who applies its commands."""
        return self._is_pending

    def conflict(self) -> str:
        """Return the problem if another node commands, or may do so; '' if not."""
        if not self._acquire():
            return (f"another node of this computer commands '{self._topic}': stop one of them")
        others = self._node.count_publishers(self._topic) - 1
        if others < 1 and self.record.publisher:
            return ''
        gids = self._publishers()
        if len(gids) == 1:
            self.record.publisher = gids.pop()
            return ''
        others = len(gids) - 1
        return '' if others < 1 else (
            f"{others} other publisher(s) on '{self._topic}': {self._remedy}")

    def take_efforts(self, subscribers: set[bytes]) -> Array | None:
        """
        Return what a killed predecessor commanded, once its controllers are discovered.

        Parameters
        ----------
        subscribers
            Ids of the present subscribers of the commands.

        Returns
        -------
        numpy.ndarray or None
            In the order of the commands, N m or N; None while that is not known, or for good if
            the controllers are others now, which apply nothing.

        """
        if not self._is_pending:
            return None
        if self.record.subscribers <= subscribers:
            self._is_pending = False
            return self.record.efforts.copy()
        if subscribers and steady_time() > self._pending_since + DISCOVERY_TIME:
            self._is_pending = False
            self.record.clear()
        return None

    def note_subscribers(self, subscribers: set[bytes]) -> None:
        """Note who applies the commands; a set that was noted already costs nothing."""
        if subscribers is not self._noted:
            self._noted = self.record.subscribers = subscribers

    def _acquire(self) -> bool:
        """Take the record, with what a predecessor has left in it; return whether it is held."""
        record = self.record
        if record.is_held:
            return True
        if not record.acquire():
            return False
        self._noted, self._pending_since = None, steady_time()
        if record.publisher:
            self._ended.add(record.publisher)
            record.publisher = b''
        self._is_pending = bool(record.efforts.any() and record.subscribers)
        if not self._is_pending:
            record.clear()
        return True

    def _publishers(self) -> set[bytes]:
        found = self._node.get_publishers_info_by_topic(self._topic)
        return {bytes(info.endpoint_gid) for info in found} - self._ended
