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
"""Time stamps as integers: nanoseconds since the epoch of the clock that wrote them."""

from __future__ import annotations

from functools import lru_cache
import struct

from biped_com_ros.core.constants import SECOND_NS
from builtin_interfaces.msg import Time
from rclpy.clock import Clock
from rclpy.node import Node

_STAMP = struct.Struct('<iI')


@lru_cache(maxsize=8)  # the outputs of one update have the same stamp
def pack_stamp(ns: int) -> bytes:
    """Return a stamp as a serialized ``builtin_interfaces/Time``: 8 bytes, little endian."""
    return _STAMP.pack(*divmod(ns, SECOND_NS))


def unpack_stamp(raw: bytes, offset: int = 0) -> int:
    """Return the stamp whose 8 serialized bytes begin at `offset`, ns."""
    seconds, nanoseconds = _STAMP.unpack_from(raw, offset)
    return seconds * SECOND_NS + nanoseconds


def stamp_to_msg(ns: int) -> Time:
    """Return a stamp as a ``builtin_interfaces/Time``."""
    seconds, nanoseconds = divmod(ns, SECOND_NS)
    return Time(sec=seconds, nanosec=nanoseconds)


def ns_of_msg(message: Time) -> int:
    """Return the nanoseconds of a ``builtin_interfaces/Time``."""
    return int(message.sec * SECOND_NS + message.nanosec)


def is_time_simulated(node: Node) -> bool:
    """Return whether a node's time is that of ``/clock``."""
    return bool(node.get_parameter('use_sim_time').value)


def now_ns(source: Node | Clock) -> int:
    """Return the time of a node or an rclpy clock, which may be simulated, ns."""
    clock = source.get_clock() if isinstance(source, Node) else source
    return int(clock.now().nanoseconds)
