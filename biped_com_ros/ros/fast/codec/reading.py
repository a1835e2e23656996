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
    size
        Least size of a message, bytes.
    structure_of
        Returns the parts of a message of at least `size` bytes that determine its structure.
    structure
        Their values for this structure, except for padding.
    values_of
        Returns the selected values of a message as a tuple: for few of them.
    stamp_of
        Returns seconds and nanoseconds of a message that begins with a header.

    """

    __slots__ = ('data', 'size', 'structure_of', 'structure', 'values_of', '_positions',
                 '_reference', '_offset', '_count', '_indices', '_scratch')

    stamp_of = staticmethod(_STAMP.unpack_from)

    def __init__(self, raw: bytes, layout: Layout, selection: Selection) -> None:
        offsets = _element_offsets(layout, selection.paths)
        self.data = selection.data
        parts = _structure(layout)
        self.structure_of = parts.unpack_from
        self.size, self.structure = layout.size, parts.unpack_from(raw)
        self._positions = np.concatenate(
            [np.arange(*span) for span in layout.structure] or [np.arange(0)])
        self._reference = np.frombuffer(raw, np.uint8)[self._positions].tobytes()
        self._offset = int(offsets.min()) if len(offsets) else ENCAPSULATION
        self._count = (int(offsets.max()) - self._offset) // 8 + 1 if len(offsets) else 0
        indices = (offsets - self._offset) // 8
        self.values_of = _unpacker(offsets.tolist())
        self._scratch = np.empty(self._count)
        self._indices = None if np.array_equal(indices, np.arange(self._count)) else indices

    def matches(self, raw: bytes) -> bool:
        """Return whether a message has this structure; may be False if only padding differs."""
        return len(raw) >= self.size and self.structure_of(raw) == self.structure

    def matches_despite_padding(self, raw: bytes) -> bool:
        """Return the same whatever the padding holds; slower."""
        if not raw.startswith(LITTLE_ENDIAN_CDR) or len(raw) < self.size:
            return False
        return np.frombuffer(raw, np.uint8)[self._positions].tobytes() == self._reference

    def gather(self, raw: bytes, out: np.ndarray) -> None:
        """Write the selected values into `out` (k,), float64."""
        if self._indices is None:
            out[...] = np.frombuffer(raw, FLOAT64, self._count, self._offset)
            return
        # The bytes are not aligned: `take` would copy them first, more slowly.
        self._scratch[...] = np.frombuffer(raw, FLOAT64, self._count, self._offset)
        self._scratch.take(self._indices, None, out, 'clip')


class PlainPlan:
    """The same through rclpy's own conversion, valid for one message."""

    __slots__ = ('data', '_values', '_stamp')

    def __init__(self, message: Any, selection: Selection) -> None:
        self.data = selection.data
        self._values = np.array([value_at(message, path) for path in selection.paths], float)
        header = getattr(message, 'header', None)
        self._stamp = (0, 0) if header is None else (header.stamp.sec, header.stamp.nanosec)

    def stamp_of(self, raw: bytes) -> tuple[int, int]:
        """Return seconds and nanoseconds of the header's stamp, in whichever byte order."""
        return self._stamp

    def values_of(self, raw: bytes) -> tuple[float, ...]:
        """Return the selected values."""
        return tuple(self._values.tolist())

    def matches(self, raw: bytes) -> bool:
        """Return False: another message has to be converted again."""
        return False

    def gather(self, raw: bytes, out: np.ndarray) -> None:
        """Write the selected values into `out` (k,), float64."""
        out[...] = self._values


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
    >>> plan.gather(raw, out)

    """

    def __init__(self, message_type: Any, select: Callable[[Any], Selection],
                 plain: bool | None = None) -> None:
        self._message_type = message_type
        self._select = select
        self._plans: list[Plan] = []
        #: The plan of the newest message of each length: parts of a robot that share a topic
        #: differ in it.
        self._newest: dict[int, Plan] = {}
        self.plain = plain_by_default() if plain is None else plain
        #: Why rclpy converts messages although bytes were to be used; None while it does not.
        self.plain_reason: str | None = None

    def plan_for(self, raw: bytes) -> AnyPlan:
        """
        Return how to read this message, and others of its structure.

        Raises
        ------
        DecodeError
            If rclpy cannot convert it.

        """
        plan = self._newest.get(len(raw))
        if plan is not None and plan.structure_of(raw) == plan.structure:
            return plan
        if len(raw) > LONGEST_MESSAGE:
            raise DecodeError(f'it has {len(raw)} bytes; limit {LONGEST_MESSAGE}')
        found = self._known(raw) or self._new(raw)
        if isinstance(found, Plan):
            if len(self._newest) >= _MAX_PLANS:
                self._newest.clear()
            self._newest[len(raw)] = found
        return found

    def _known(self, raw: bytes) -> Plan | None:
        for plan in self._plans:
            if plan.matches(raw):
                return plan
        for plan in self._plans:
            if plan.matches_despite_padding(raw):
                return plan
        return None

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
        if self.plain or not raw.startswith(LITTLE_ENDIAN_CDR):
            return plain
        plan = self._checked(raw, message, selection)
        if plan is None:
            return plain
        self._plans.insert(0, plan)
        del self._plans[_MAX_PLANS:]
        return plan

    def _checked(self, raw: bytes, message: Any, selection: Selection) -> Plan | None:
        try:
            layout = Layout(message)
            if len(layout.structure) > _MOST_PARTS:
                return None
            plan = Plan(raw, layout, selection)
            if not plan.matches_despite_padding(serialize_message(message)):
                # As with NUL inside a string: rclpy reads such a message in its own way.
                return None
            ours = np.empty(len(selection.paths))
            plan.gather(raw, ours)
            unpacked = plan.values_of(raw)
        except (LayoutError, ValueError, IndexError) as error:
            self._use_rclpy(str(error))
            return None
        theirs = [value_at(message, path) for path in selection.paths]
        if not all(np.array_equal(values, theirs, equal_nan=True) for values in (ours, unpacked)):
            self._use_rclpy('values differ from those rclpy reads')
            return None
        return plan

    def _use_rclpy(self, reason: str) -> None:
        self.plain, self.plain_reason = True, reason


def _structure(layout: Layout) -> Struct:
    """Return what unpacks the structure: neighbouring parts at once, few long ones are cheaper."""
    merged = [[0, len(LITTLE_ENDIAN_CDR)]]
    for start, end in layout.structure:
        if start - merged[-1][1] < 4:  # nothing but padding between
            merged[-1][1] = end
        else:
            merged.append([start, end])
    ends = [0, *(end for _, end in merged)]
    return Struct('<' + ''.join(f'{start - before}x{end - start}s' for (start, end), before in zip(
        merged, ends)))


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


def _element_offsets(layout: Layout, paths: Iterable[Path]) -> np.ndarray:
    leaves = {leaf.path: leaf for leaf in layout.leaves if leaf.dtype == FLOAT64}
    return np.array([_element_offset(leaves, path) for path in paths], np.intp)


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
