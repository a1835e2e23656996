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
One subscription per topic and process, for all nodes of a suite that read the topic.

Saves half: an Imu message that five inputs of one process read takes 16 us of CPU with one
subscription and 31 us with five (least of five runs at 1 kHz). Five nodes of a robot read nine
topics 23 times per update.

The pool owns a node that has the subscriptions. Inputs with equal `ReadSpec` also share the
reader, so that a message is decoded and checked once; every input keeps its own callback and
counters. Subscriptions are not shared if their quality of service differs, or on latched topics,
where each subscriber has to get the last message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
import weakref

from biped_com_ros.ros.fast.compat import plain_requested
from biped_com_ros.ros.fast.message_reader import MessageReader, ReadSpec
from biped_com_ros.ros.topics.qos import overridden
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription


class SharedSubscription:
    """
    A subscription and the readers of its messages.

    Parameters
    ----------
    node
        The node that has the subscription.
    message_type, topic, qos
        What to subscribe to; the topic by its full name.

    """

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._key = message_type, topic, qos
        self.readers: tuple[MessageReader, ...] = ()
        self.subscription: Subscription = node.create_subscription(
            message_type, topic, self._receive, qos, raw=True)

    def matches(self, message_type: type, topic: str, qos: QoSProfile) -> bool:
        """Return whether this subscription can be used for such a request."""
        return (self._key == (message_type, topic, qos)
                and qos.durability == DurabilityPolicy.VOLATILE)

    def reader(self, spec: ReadSpec) -> MessageReader:
        """Return the reader of this specification, a new one if there is none."""
        for reader in self.readers:
            if reader.spec == spec:
                return reader
        self.readers = (*self.readers, spec.make())
        return self.readers[-1]

    def remove_unused_readers(self) -> None:
        """Remove the readers that no input uses any more."""
        self.readers = tuple(reader for reader in self.readers if reader.inputs)

    def _receive(self, raw: bytes) -> None:
        for reader in self.readers:
            reader.receive(raw)


class SubscriptionPool:
    """
    The subscriptions that nodes of one process share; the nodes need one single-threaded executor.

    Parameters
    ----------
    node
        The node that has them. It must not remap names: it gets those that other nodes resolved.

    Attributes
    ----------
    states
        Those who get located states in these nodes; see `located_states`.

    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self.states: list[Any] = []
        self._subscriptions: list[SharedSubscription] = []

    def add_node(self, node: Node) -> None:
        """Let inputs that this node creates from now on share subscriptions."""
        _pools[node] = self

    def subscribe(self, node: Node, topic: str, qos: QoSProfile,
                  spec: ReadSpec) -> tuple[MessageReader, Subscription]:
        """
        Return a reader of a topic, and the subscription that feeds it.

        Parameters
        ----------
        node
            The node that reads: its remappings and ``qos_overrides`` apply.
        topic, qos
            What to subscribe to.
        spec
            How to read the messages.

        """
        key = (spec.message_type, *overridden(node, topic, qos))
        shared = next((found for found in self._subscriptions if found.matches(*key)), None)
        if shared is None:
            shared = SharedSubscription(self._node, *key)
            self._subscriptions.append(shared)
        return shared.reader(spec), shared.subscription

    def remove_unused(self) -> None:
        """Remove the readers and subscriptions that no input uses any more."""
        for shared in self._subscriptions:
            shared.remove_unused_readers()
            if not shared.readers:
                self._node.destroy_subscription(shared.subscription)
        self._subscriptions = [shared for shared in self._subscriptions if shared.readers]


_current: SubscriptionPool | None = None
_pools: weakref.WeakKeyDictionary[Node, SubscriptionPool] = weakref.WeakKeyDictionary()


def pool_of(node: Node) -> SubscriptionPool | None:
    """Return the pool that a node shares its subscriptions in, None if it has its own."""
    if plain_requested():
        return None
    if _current is not None:
        _current.add_node(node)
    return _pools.get(node)


@contextmanager
def shared_subscriptions(pool: SubscriptionPool) -> Iterator[None]:
    """Let nodes that create inputs meanwhile share their subscriptions, later ones too."""
    global _current
    before, _current = _current, pool
    try:
        yield
    finally:
        _current = before
