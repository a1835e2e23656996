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

from __future__ import annotations

from biped_com_ros.ros.topics.stamp import ns_of_msg, stamp_to_msg
import numpy as np


class Feed:
    """Sends messages to an input and waits until each was accepted or refused."""

    def __init__(self, rig, source, message_type, received):
        self.rig, self.source, self.received = rig, source, received
        self.publisher = rig.publisher(message_type, source.topic)

    def send(self, message, shift=0.0, stamp=None):
        """Stamp a message (with now, shifted by seconds), send it, wait until it was processed."""
        self.rig.time.advance(1e-3)  # no two messages have the same stamp
        before = self.processed()
        if hasattr(message, 'header'):
            ns = self.rig.peer.get_clock().now().nanoseconds + int(shift * 1e9)
            message.header.stamp = stamp_to_msg(ns if stamp is None else stamp)
        self.publisher.publish(message)
        self.rig.until(lambda: self.processed() > before, what='the message')
        return message

    def processed(self):
        return self.source.count + sum(self.source.refused.values())


def stamp_of(message):
    """Return the stamp of a message, ns."""
    return ns_of_msg(message.header.stamp)


def keep(received):
    """Return a callback that keeps copies."""
    return lambda stamp, *arrays: received.append((stamp, *(np.copy(a) for a in arrays)))
