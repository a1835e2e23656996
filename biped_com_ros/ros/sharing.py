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
What nodes of one process share of their inputs: what they all take comes and is read once.

Each delivery of a message by the middleware costs as much as most of what a node does with it. So
the subscriptions of a suite are those of one more node, the *exchange*; equal wishes are served by
one subscription, and what is to be read in the same way is read once, whatever the nodes call it.
A node's inputs keep their own callbacks and accounts, and come and go as they like.

Nothing is shared where the (overridden) quality of service differs, nor latched topics: who comes
later has to get the last message, too. Where only the limits differ, or the joints that are
wanted, the subscription is shared and each reads for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
import weakref

from biped_com_ros.ros.qos import overridden
from biped_com_ros.ros.readings import Order, Reading
from rclpy.qos import DurabilityPolicy, QoSProfile


class Feed:
    """
    One subscription and those who read what it brings.

    Parameters
    ----------
    node
        Whose subscription it is.
    message_type, topic, qos
        What to subscribe to; the topic by its full name.

    """

    def __init__(self, node: Any, message_type: Any, topic: str, qos: QoSProfile) -> None:
        self._wish = message_type, topic, qos
        self.readings: tuple[Reading, ...] = ()
        self.subscription = node.create_subscription(
            message_type, topic, self._receive, qos, raw=True)

    def serves(self, message_type: Any, topic: str, qos: QoSProfile) -> bool:
        """Tell whether this is what one wants to subscribe to."""
        return (self._wish == (message_type, topic, qos)
                and qos.durability == DurabilityPolicy.VOLATILE)

    def reading(self, order: Order) -> Reading:
        """Return what reads as ordered."""
        for reading in self.readings:
            if reading.order == order:
                return reading
        self.readings = (*self.readings, order.make())
        return self.readings[-1]

    def clear(self) -> None:
        """Cease to read what nobody takes."""
        self.readings = tuple(reading for reading in self.readings if reading.takers)

    def _receive(self, raw: bytes) -> None:
        for reading in self.readings:
            reading.receive(raw)


class Exchange:
    """
    The subscriptions that nodes of one process share.

    Parameters
    ----------
    node
        A node that has them; it must not remap names, which are those that the others resolved.

    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._feeds: list[Feed] = []

    def adopt(self, node: Any) -> None:
        """Let the inputs that a node will create share, too."""
        _exchanges[node] = self

    def join(self, node: Any, topic: str, qos: QoSProfile, order: Order) -> tuple[Reading, Any]:
        """
        Return what reads a topic as a node wants it, and the subscription.

        Parameters
        ----------
        node
            The node, whose remappings and ``qos_overrides`` count.
        topic, qos
            What to subscribe to.
        order
            How to read it.

        """
        wish = (order.message_type, *overridden(node, topic, qos))
        feed = next((feed for feed in self._feeds if feed.serves(*wish)), None)
        if feed is None:
            feed = Feed(self._node, *wish)
            self._feeds.append(feed)
        return feed.reading(order), feed.subscription

    def clear(self) -> None:
        """Give up what nobody takes."""
        for feed in self._feeds:
            feed.clear()
            if not feed.readings:
                self._node.destroy_subscription(feed.subscription)
        self._feeds = [feed for feed in self._feeds if feed.readings]


_exchange: Exchange | None = None
_exchanges: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()


def exchange_of(node: Any) -> Exchange | None:
    """Return where a node's inputs are shared; None if it has them for itself."""
    if _exchange is not None:
        _exchange.adopt(node)
    return _exchanges.get(node)


@contextmanager
def shared_inputs(exchange: Exchange) -> Iterator[Exchange]:
    """
    Let the nodes that are created meanwhile share their inputs, those of later times too.

    For nodes on one executor of one thread.
    """
    global _exchange
    before, _exchange = _exchange, exchange
    try:
        yield exchange
    finally:
        _exchange = before
