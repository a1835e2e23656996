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
Hands what a node publishes straight to who reads it in the same process.

To bring a message from a node to another one costs both of them as much as to deal with it. Where
nobody but nodes of the process listens, nothing is given to the middleware: the bytes wait until
the callback that published them has ended, and go then to the readings of that topic (see
`sharing`), in the order in which they were published. Else nothing changes: publisher and
subscription are there to be seen; who listens from outside is found within 0.1 s and gets, as do
the nodes of the process, what the middleware brings; who publishes from outside is heard as ever.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Any, Protocol

from biped_com_ros.ros.fast.codec import raw_publish
from rclpy.qos import qos_check_compatible, QoSCompatibility, QoSProfile

_ASK_EVERY = 0.1  # s


class Decoder(Protocol):
    """A subscription of the process, and its readings."""

    subscription: Any
    readings: tuple[Any, ...]


class Desk:
    """
    Where messages are read, those that nodes of the process publish meanwhile after one another.

    Attributes
    ----------
    serving
        Whether a message is being read.
    waiting
        What was published meanwhile, and who reads it.

    """

    def __init__(self) -> None:
        self.serving = False
        self.waiting: deque[tuple[Decoder, bytes]] = deque()

    def serve(self, reader: Decoder, raw: bytes) -> None:
        """Let a message be read, and then what was published meanwhile."""
        self.serving, waiting = True, self.waiting
        while True:
            for reading in reader.readings:
                reading.receive(raw)
            if not waiting:
                break
            reader, raw = waiting.popleft()
        self.serving = False


class Route:
    """
    The way of what a publisher sends to readers of the process.

    Parameters
    ----------
    desk
        Of the process.
    publisher
        The rclpy publisher, which keeps nothing for later subscribers.
    readers
        All of the process that get what it publishes.

    """

    def __init__(self, desk: Desk, publisher: Any, readers: tuple[Decoder, ...]) -> None:
        self._desk, self._publisher, self._readers = desk, publisher, readers
        self._send = raw_publish(publisher)
        self._straight, self._behind, self._ask_again = False, True, 0.0

    def send(self, raw: bytes) -> None:
        """Send a serialized message."""
        now, desk = monotonic(), self._desk
        if now > self._ask_again:
            self._ask_again = now + _ASK_EVERY
            self._straight = self._publisher.get_subscription_count() == len(self._readers)
        # What is published otherwise than on a message, say by a timer, wakes the executor.
        if not (self._straight and desk.serving):
            self._behind = True
            self._send(raw)
            return
        if self._behind:
            self._catch_up()
        for reader in self._readers:
            desk.waiting.append((reader, raw))

    def _catch_up(self) -> None:
        """Take first what the middleware still has."""
        self._behind = False
        for reader in self._readers:
            subscription = reader.subscription
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, True):
                    self._desk.waiting.append((reader, taken[0]))


def fits(publisher: QoSProfile, subscription: QoSProfile) -> bool:
    """Tell whether a subscription gets what is published."""
    return bool(qos_check_compatible(publisher, subscription)[0] != QoSCompatibility.ERROR)
