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

What the nodes publish for one another goes straight to their readings (see `delivery`), and one
subscription to /clock sets all their clocks (see `shared_clock`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
import weakref

from biped_com_ros.ros.fast.codec import raw_publish
from biped_com_ros.ros.fast.delivery import Desk, fits, Route
from biped_com_ros.ros.fast.message_reader import ReadSpec, MessageReader
from biped_com_ros.ros.fast.shared_clock import SharedClock
from biped_com_ros.ros.topics.qos import overridden
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
    desk
        Where what is published meanwhile waits.

    """

    def __init__(self, node: Any, message_type: Any, topic: str, qos: QoSProfile,
                 desk: Desk) -> None:
        self._wish = message_type, topic, qos
        self.readings: tuple[MessageReader, ...] = ()
        self._receive = partial(desk.serve, self)
        self.subscription = node.create_subscription(
            message_type, topic, self._receive, qos, raw=True)

    def serves(self, message_type: Any, topic: str, qos: QoSProfile) -> bool:
        """Tell whether this is what one wants to subscribe to."""
        return (self._wish == (message_type, topic, qos)
                and qos.durability == DurabilityPolicy.VOLATILE)

    def gets(self, message_type: Any, topic: str, qos: QoSProfile) -> bool:
        """Tell whether what is published so gets here."""
        return self._wish[:2] == (message_type, topic) and fits(qos, self._wish[2])

    def reading(self, order: ReadSpec) -> MessageReader:
        """Return what reads as ordered."""
        for reading in self.readings:
            if reading.order == order:
                return reading
        self.readings = (*self.readings, order.make())
        return self.readings[-1]

    def clear(self) -> None:
        """Cease to read what nobody takes."""
        self.readings = tuple(reading for reading in self.readings if reading.takers)


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
        self._desk, self._clock = Desk(), SharedClock(node)
        self._outputs: weakref.WeakSet[Any] = weakref.WeakSet()

    def adopt(self, node: Any) -> None:
        """Let the inputs that a node will create share, too."""
        if _exchanges.get(node) is not self:
            _exchanges[node] = self
            self._clock.adopt(node)

    def sender(self, output: Any) -> Callable[[bytes], None]:
        """Return the function that sends the bytes of an output, until `find_way` is called."""
        publisher, kind = output.publisher, type(output.prototype)
        self._outputs.add(output)
        readers = tuple(feed for feed in self._feeds if feed.gets(
            kind, publisher.topic_name, publisher.qos_profile))
        if not readers or publisher.qos_profile.durability != DurabilityPolicy.VOLATILE:
            return raw_publish(publisher)
        return Route(self._desk, publisher, readers).send

    def join(self, node: Any, topic: str, qos: QoSProfile,
             order: ReadSpec) -> tuple[MessageReader, Any]:
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
            feed = Feed(self._node, *wish, self._desk)
            self._feeds.append(feed)
            self._find_ways()
        return feed.reading(order), feed.subscription

    def clear(self) -> None:
        """Give up what nobody takes."""
        for feed in self._feeds:
            feed.clear()
            if not feed.readings:
                self._node.destroy_subscription(feed.subscription)
        if not all(feed.readings for feed in self._feeds):
            self._feeds = [feed for feed in self._feeds if feed.readings]
            self._find_ways()

    def _find_ways(self) -> None:
        for output in self._outputs:
            output.find_way()


_exchange: Exchange | None = None
_exchanges: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()


def exchange_of(node: Any) -> Exchange | None:
    """Return where a node's inputs are shared; None if it has them for itself."""
    if _exchange is not None:
        _exchange.adopt(node)
    return _exchanges.get(node)


def sender_of(node: Any, output: Any) -> Callable[[bytes], None]:
    """
    Return the function that sends the bytes of an output of a node.

    Parameters
    ----------
    node
        The rclpy node.
    output
        Has `publisher`, `prototype`, and `find_way`, which is called when it has to ask again.

    """
    exchange = exchange_of(node)
    return raw_publish(output.publisher) if exchange is None else exchange.sender(output)


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
