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
Reads numbers of serialized messages, by offsets that are found once per structure.

A structure (all strings and sequence lengths) that is new goes once through rclpy, and the numbers
of both ways are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import Struct
from typing import Any

from biped_com_ros.ros.fast.codec.layout import (
    ENCAPSULATION, FLOAT64, Layout, LayoutError, Leaf, LITTLE_ENDIAN_CDR, Path,
    plain_by_default, value_at)
import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

_MAX_PLANS = 32
#: How many messages have to be read by plans for a new one: making it takes ten times as long as
#: a conversion, in vain where no structure comes twice.
_WORTH = 32
#: Longest message of a robot, bytes: 1000 joints take 52 kB. Longer ones are not even converted,
#: which would take seconds of CPU per megabyte.
LONGEST_MESSAGE = 65536
#: Offsets are not kept for messages with more strings and sequences: finding them takes longer
#: than converting such a message, and who sends one hardly sends the same again.
_MOST_PARTS = 2048
#: The stamp of a message that begins with a header: seconds and nanoseconds.
_STAMP = Struct('<4xiI')


@dataclass
class Selection:
    """
    What to read from messages of one structure.

    Attributes
    ----------
    paths
        The float64 values to read, e.g. ``[('position', 3), ('position', 0)]``.
    data
        Anything derived from the structure (names, frame, why it cannot be used).

    """

    paths: Sequence[Path]
    data: Any = None


class Plan:
    """
    How to read the selected values of all messages that share one structure.

    Attributes
    ----------
    data
        That of the selection.
    values_of
        Returns the selected values of a message as a tuple: for few of them.
    stamp_of
        Returns seconds and nanoseconds of a message that begins with a header.

    """

    __slots__ = ('data', 'values_of', '_first', '_indices', '_size', '_structure', '_structure_of')

    stamp_of = staticmethod(_STAMP.unpack_from)

    def __init__(self, raw: bytes, layout: Layout, selection: Selection) -> None:
        self.data = selection.data
        offsets = _element_offsets(layout, selection.paths)
        self.values_of = _unpacker(offsets)
        self._first = min(offsets, default=0)
        self._indices = (np.array(offsets, np.intp) - self._first) // FLOAT64.itemsize
        self._size = layout.size
        self._structure_of = _unpack_spans([(0, len(LITTLE_ENDIAN_CDR)), *layout.structure])
        self._structure = self._structure_of(raw)

    def matches(self, raw: bytes) -> bool:
        """Return whether a message has this structure, whatever its padding holds."""
        return len(raw) >= self._size and self._structure_of(raw) == self._structure

    def array_of(self, raw: bytes) -> np.ndarray:
        """Return the selected values of a message as an array: for many of them."""
        count = (len(raw) - self._first) // FLOAT64.itemsize
        return np.frombuffer(raw, FLOAT64, count, self._first)[self._indices]


class PlainPlan:
    """The same through rclpy's own conversion, valid for one message."""

    __slots__ = ('data', '_values', '_stamp')

    def __init__(self, message: Any, selection: Selection) -> None:
        self.data = selection.data
        self._values = tuple(float(value_at(message, path)) for path in selection.paths)
        header = getattr(message, 'header', None)
        self._stamp = (0, 0) if header is None else (header.stamp.sec, header.stamp.nanosec)

    def stamp_of(self, raw: bytes) -> tuple[int, int]:
        """Return seconds and nanoseconds of the header's stamp, in whichever byte order."""
        return self._stamp

    def values_of(self, raw: bytes) -> tuple[float, ...]:
        """Return the selected values."""
        return self._values

    def array_of(self, raw: bytes) -> np.ndarray:
        """Return the same as an array."""
        return np.array(self._values)


AnyPlan = Plan | PlainPlan


class DecodeError(Exception):
    """Bytes that are no message of the expected type."""


class Decoder:
    """
    Reads selected float64 values of serialized messages of one type.

    Parameters
    ----------
    message_type
        The message class.
    select
        Called with the deserialized message whenever a structure is new (on the plain path:
        for each message); returns the `Selection`.
    plain
        Use rclpy's own conversion; default: by `BIPED_COM_PLAIN`.

    Examples
    --------
    >>> plan = decoder.plan_for(raw)
    >>> out[:] = plan.values_of(raw)

    """

    def __init__(self, message_type: Any, select: Callable[[Any], Selection],
                 plain: bool | None = None) -> None:
        self._message_type = message_type
        self._select = select
        self._plans: list[Plan] = []
        self.plain = plain_by_default() if plain is None else plain
        self._reason: str | None = None
        #: Messages that were read by plans since the last new structure, and what is left of them.
        self._matches, self._credit = 0, _MAX_PLANS * _WORTH

    def plan_for(self, raw: bytes) -> AnyPlan:
        """
        Return how to read this message, and others of its structure.

        Raises
        ------
        DecodeError
            If rclpy cannot convert it.

        """
        for plan in self._plans:
            if plan.matches(raw):
                self._matches += 1
                return plan
        if len(raw) > LONGEST_MESSAGE:
            raise DecodeError(f'it has {len(raw)} bytes; limit {LONGEST_MESSAGE}')
        return self._new(raw)

    def _new(self, raw: bytes) -> AnyPlan:
        try:
            message = deserialize_message(raw, self._message_type)
        except Exception:  # noqa: B902 - rclpy raises various types, which have no more in common
            raise DecodeError(
                f'its {len(raw)} bytes are no {self._message_type.__name__}') from None
        selection = self._select(message)
        try:
            plain = PlainPlan(message, selection)
        except IndexError:
            raise DecodeError('it has fewer elements than expected') from None
        if self.plain or not raw.startswith(LITTLE_ENDIAN_CDR) or not self._is_plan_worth():
            return plain
        plan = self._checked(raw, message, selection, plain)
        if plan is None:
            return plain
        self._plans.insert(0, plan)
        del self._plans[_MAX_PLANS:]
        return plan

    def _is_plan_worth(self) -> bool:
        """Return whether structures are few enough for a plan of a new one."""
        self._credit = min(self._credit + self._matches, _MAX_PLANS * _WORTH)
        self._matches = 0
        if self._credit < _WORTH:
            self._credit += 1
            return False
        self._credit -= _WORTH
        return True

    def _checked(self, raw: bytes, message: Any, selection: Selection,
                 plain: PlainPlan) -> Plan | None:
        """Return the plan for a message; None if it reads it unlike rclpy."""
        try:
            layout = Layout(message)
            if len(layout.structure) > _MOST_PARTS:
                return None
            plan = Plan(raw, layout, selection)
            if not plan.matches(serialize_message(message)):
                # As with NUL inside a string: rclpy reads such a message in its own way.
                return None
            ours = plan.values_of(raw), plan.array_of(raw)
        except (LayoutError, ValueError, IndexError) as error:
            self._use_rclpy(str(error))
            return None
        theirs = plain.values_of(raw)
        if not all(np.array_equal(values, theirs, equal_nan=True) for values in ours):
            self._use_rclpy('values differ from those rclpy reads')
            return None
        return plan

    def _use_rclpy(self, reason: str) -> None:
        self.plain, self._reason = True, reason

    @property
    def plain_reason(self) -> str | None:
        """Why rclpy converts messages although bytes were to be used; None while it does not."""
        if self._credit + self._matches < _WORTH:
            return 'the names in its messages, or their order, change all the time'
        return self._reason


def _unpack_spans(spans: Sequence[tuple[int, int]]) -> Callable[[bytes], tuple[bytes, ...]]:
    """Return what unpacks these ascending ranges of bytes."""
    ends = [0, *(end for _, end in spans)]
    return Struct('<' + ''.join(
        f'{start - before}x{end - start}s'
        for (start, end), before in zip(spans, ends))).unpack_from


def _unpacker(offsets: Sequence[int]) -> Callable[[bytes], tuple[float, ...]]:
    """Return what unpacks the float64 values at these offsets."""
    ascending = sorted(set(offsets))
    ends = [0, *(offset + 8 for offset in ascending)]
    unpack = Struct('<' + ''.join(
        f'{offset - end}xd' for offset, end in zip(ascending, ends))).unpack_from
    if ascending == list(offsets):
        return unpack
    in_order = itemgetter(*map(ascending.index, offsets))
    return lambda raw: in_order(unpack(raw))


def _element_offsets(layout: Layout, paths: Iterable[Path]) -> list[int]:
    leaves = {leaf.path: leaf for leaf in layout.leaves if leaf.dtype == FLOAT64}
    return [_element_offset(leaves, path) for path in paths]


def _element_offset(leaves: dict[Path, Leaf], path: Path) -> int:
    leaf = leaves.get(path)
    if leaf is not None:
        return leaf.offset
    leaf, index = leaves.get(path[:-1]), path[-1]
    if leaf is None or not isinstance(index, int) or not 0 <= index < leaf.count:
        raise LayoutError(f'{path} is no float64 value of this message')
    return leaf.offset + 8 * index


def read_bool(raw: bytes) -> bool:
    """
    Return the value of a serialized ``std_msgs/Bool``, which is the same in every byte order.

    Raises
    ------
    DecodeError
        If it is none.

    """
    if not ENCAPSULATION < len(raw) <= LONGEST_MESSAGE or raw[0] or raw[ENCAPSULATION] > 1:
        raise DecodeError(f'its {len(raw)} bytes are no Bool')
    return raw[ENCAPSULATION] != 0
