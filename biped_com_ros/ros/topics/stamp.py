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
"""Stamps that are compared as integers and copied as bytes."""

from __future__ import annotations

import struct
from typing import Any

_STAMP = struct.Struct('<iI')
_BILLION = 1_000_000_000


class Stamp:
    """
    A time stamp that can be compared as an integer and copied as bytes.

    Attributes
    ----------
    ns : int
        Nanoseconds since the epoch of the clock that wrote it.
    raw : bytes
        The same as a serialized ``builtin_interfaces/Time``: 8 bytes, little endian.

    """

    __slots__ = ('ns', 'raw')

    ns: int
    raw: bytes

    def __init__(self, ns: int, raw: bytes) -> None:
        self.ns = ns
        self.raw = raw

    @classmethod
    def from_ns(cls, ns: int) -> Stamp:
        """Stamp of a time in nanoseconds."""
        return cls(ns, _STAMP.pack(*divmod(ns, _BILLION)))

    @classmethod
    def from_raw(cls, raw: bytes, offset: int = 0) -> Stamp:
        """Stamp of 8 serialized bytes that begin at `offset`."""
        seconds, nanoseconds = _STAMP.unpack_from(raw, offset)
        return cls(seconds * _BILLION + nanoseconds, raw[offset:offset + 8])

    @classmethod
    def from_msg(cls, message: Any) -> Stamp:
        """Stamp of a ``builtin_interfaces/Time``."""
        return cls(message.sec * _BILLION + message.nanosec,
                   _STAMP.pack(message.sec, message.nanosec))

    @classmethod
    def now(cls, node: Any) -> Stamp:
        """Return the time of the node's clock, which may be simulated."""
        return cls.from_ns(now_ns(node.get_clock()))

    def to_msg(self) -> Any:
        """Return a ``builtin_interfaces/Time``."""
        from builtin_interfaces.msg import Time
        seconds, nanoseconds = _STAMP.unpack(self.raw)
        return Time(sec=seconds, nanosec=nanoseconds)

    @property
    def seconds(self) -> float:
        """Return seconds since the epoch (loses nanoseconds for wall-clock times)."""
        return self.ns * 1e-9

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stamp) and self.ns == other.ns

    def __hash__(self) -> int:
        return hash(self.ns)

    def __repr__(self) -> str:
        return f'Stamp({self.ns / 1e9:.9f} s)'


def now_ns(clock: Any) -> int:
    """Return the time of an rclpy clock, ns; a fourth of what ``clock.now()`` costs."""
    handle = clock.handle
    with handle:
        nanoseconds: int = handle.get_now().nanoseconds
    return nanoseconds


def nanoseconds_of(time: Any) -> int:
    """Nanoseconds of a Stamp, a ``builtin_interfaces/Time``, an rclpy Time or an integer."""
    if isinstance(time, int):
        return time
    if isinstance(time, Stamp):
        return time.ns
    if hasattr(time, 'nanoseconds'):
        return int(time.nanoseconds)
    return Stamp.from_msg(time).ns
