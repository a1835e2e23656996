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
"""Sending messages to an input, one by one."""

import struct

from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.stamp import ns_of_msg, stamp_to_msg
import numpy as np
from rclpy.serialization import serialize_message


class Feed:
    """
    Sends messages to an input and waits until each was accepted or refused.

    Parameters
    ----------
    rig
        Whose node has the input.
    make, arguments, options
        The class of the input, and its parameters without node and callback.
    callback
        Is called by the input; by default what it gets is kept in `received`.

    """

    def __init__(self, rig, make, *arguments, callback=None, **options):
        self.rig, self.received = rig, []
        self.source = make(rig.node, *arguments, callback=callback or self._keep, **options)
        self.publisher = rig.publisher(self.source.subscription.msg_type, self.source.topic)

    def _keep(self, stamp, *values):
        self.received.append((stamp, *map(np.copy, values)))

    def send(self, message, shift=0.0, stamp=None):
        """Stamp a message (with now, shifted by seconds), send it, wait until it was processed."""
        self.rig.time.advance(1e-3)  # no two messages have the same stamp
        if hasattr(message, 'header'):
            ns = self.now + int(shift * 1e9)
            message.header.stamp = stamp_to_msg(ns if stamp is None else stamp)
        self._publish(message)
        return message

    def send_raw(self, raw):
        """Send the bytes of a message; the callbacks must not raise."""
        self._publish(bytes(raw))
        assert callback_errors(self.rig.node).count == 0

    def bytes_of(self, message, seconds=None, nanoseconds=None):
        """Return the bytes of a message with the stamp of now, or with parts of another one."""
        raw = bytearray(serialize_message(message))
        struct.pack_into('<iI', raw, 4, *(
            now_part if part is None else part
            for part, now_part in zip((seconds, nanoseconds), divmod(self.now, 10 ** 9))))
        return raw

    def _publish(self, message):
        before = self._processed()
        self.publisher.publish(message)
        self.rig.until(lambda: self._processed() > before, what='the message')

    def _processed(self):
        return self.source.count + sum(self.source.refused.values())

    @property
    def now(self):
        """Time of the nodes, ns."""
        return self.rig.peer.get_clock().now().nanoseconds


def stamp_of(message):
    """Return the stamp of a message, ns."""
    return ns_of_msg(message.header.stamp)
