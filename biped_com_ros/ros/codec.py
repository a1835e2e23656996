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
The one module that knows the bytes of serialized ROS messages.

rclpy turns messages into Python objects field by field, which costs more than all mathematics
of a node together. Here the numbers are read from, and written into, the serialized bytes:

* `Layout` walks a message along its type description and finds where each value lies in its
  XCDR1 little-endian serialization (4 bytes of encapsulation, then a body in which each value
  is aligned to its size).
* `Reader` keeps a `Plan` per *structure* (all strings and sequence lengths) that it has met:
  where the structure's bytes are the same, so are the offsets, and reading is one
  ``np.frombuffer`` and one ``take``. A structure that is new goes once through rclpy, and the
  numbers of both ways are compared.
* `Template` keeps one serialized message whose numbers are NumPy views into the bytes.

Each of the three has a plain path through rclpy's own conversion, taken where bytes are not
understood (big endian, XCDR2, wide strings), where a comparison fails, or where the environment
variable ``BIPED_COM_PLAIN_MESSAGES=1`` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
import math
import os
import re
import sys
from typing import Any
import weakref

from biped_com_ros.ros.conversions import Stamp
import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from rosidl_parser.definition import (
    AbstractSequence, AbstractString, Array, BasicType, NamespacedType)

Path = tuple[Any, ...]

#: First two bytes of a serialized message: plain CDR, little endian.
LITTLE_ENDIAN_CDR = b'\x00\x01'
#: Bytes before the body; offsets in this module count from the message's first byte.
ENCAPSULATION = 4
#: Where a message that begins with a header has its stamp, and where the rest begins.
HEADER_STAMP, AFTER_STAMP = 4, 12

_FLOAT64 = np.dtype(np.float64)
_DTYPES = {
    'boolean': np.dtype(np.bool_), 'octet': np.dtype(np.uint8), 'char': np.dtype(np.uint8),
    'int8': np.dtype(np.int8), 'uint8': np.dtype(np.uint8),
    'int16': np.dtype(np.int16), 'uint16': np.dtype(np.uint16),
    'int32': np.dtype(np.int32), 'uint32': np.dtype(np.uint32),
    'int64': np.dtype(np.int64), 'uint64': np.dtype(np.uint64),
    'float': np.dtype(np.float32), 'double': _FLOAT64}
_MAX_PLANS = 32
_MAX_RUNS = 6


@cache
def _fields_of(message_type: Any) -> tuple[tuple[str, Any], ...]:
    """Return name and type of each field; asked of rclpy for every message, it takes longer."""
    return tuple(zip(message_type.get_fields_and_field_types(), message_type.SLOT_TYPES))


class LayoutError(Exception):
    """A message whose bytes this module does not understand; use the plain path."""


def plain_messages_wanted() -> bool:
    """Tell whether the environment asks for rclpy's own conversion everywhere."""
    return (os.environ.get('BIPED_COM_PLAIN_MESSAGES', '') not in ('', '0')
            or sys.byteorder != 'little')


# ---------------------------------------------------------------------------------------------
# Layout


@dataclass(slots=True)
class Leaf:
    """
    A number, or an array of numbers, inside a serialized message.

    Attributes
    ----------
    path
        Field names and sequence indices, e.g. ``('poses', 3, 'position', 'x')``.
    offset
        Bytes from the first byte of the serialized message.
    dtype, count
        Type and number of the values; `is_array` tells ``double[1]`` from ``double``.

    """

    path: Path
    offset: int
    dtype: np.dtype
    count: int
    is_array: bool


class Layout:
    """
    Where everything lies in the serialization of one message.

    Attributes
    ----------
    leaves : list of Leaf
        The numbers, in order.
    structure : list of (int, int)
        Byte ranges (start, end) of the strings and sequence lengths: while these bytes stay,
        all offsets stay.
    size : int
        Bytes up to the last value.

    """

    def __init__(self, message: Any) -> None:
        self.leaves: list[Leaf] = []
        self.structure: list[tuple[int, int]] = []
        self._position = 0
        self._message(message, ())
        self.size = ENCAPSULATION + self._position

    def _message(self, message: Any, path: Path) -> None:
        fields = _fields_of(message.__class__)
        if not fields:
            self._position += 1  # an empty struct is serialized as one byte
        for name, slot_type in fields:
            self._value(getattr(message, name), slot_type, path + (name,))

    def _value(self, value: Any, slot_type: Any, path: Path) -> None:
        if isinstance(slot_type, BasicType):
            self._numbers(slot_type, 1, path, is_array=False)
        elif isinstance(slot_type, NamespacedType):
            self._message(value, path)
        elif isinstance(slot_type, AbstractString):
            self._structure(5 + len(value.encode()))
        elif isinstance(slot_type, AbstractSequence):
            self._structure(4)
            self._elements(value, slot_type.value_type, path)
        elif isinstance(slot_type, Array):
            self._elements(value, slot_type.value_type, path)
        else:
            raise LayoutError(f'{path}: cannot tell where a {slot_type} lies')

    def _elements(self, values: Any, element_type: Any, path: Path) -> None:
        if isinstance(element_type, BasicType):
            if len(values):
                self._numbers(element_type, len(values), path, is_array=True)
            return
        for index, value in enumerate(values):
            self._value(value, element_type, path + (index,))

    def _numbers(self, basic_type: Any, count: int, path: Path, is_array: bool) -> None:
        dtype = _DTYPES.get(basic_type.typename)
        if dtype is None:
            raise LayoutError(f'{path}: cannot tell where a {basic_type.typename} lies')
        self._align(dtype.itemsize)
        self.leaves.append(
            Leaf(path, ENCAPSULATION + self._position, dtype, count, is_array))
        self._position += count * dtype.itemsize

    def _structure(self, size: int) -> None:
        self._align(4)
        start = ENCAPSULATION + self._position
        self.structure.append((start, start + size))
        self._position += size

    def _align(self, size: int) -> None:
        self._position += -self._position % size


def value_at(message: Any, path: Path) -> Any:
    """Return a field's value; its path is like ``('poses', 3, 'position', 'x')``."""
    for step in path:
        message = message[step] if isinstance(step, int) else getattr(message, step)
    return message


def set_value_at(message: Any, path: Path, value: Any) -> None:
    """Set a message's field; the counterpart of `value_at`."""
    parent, last = value_at(message, path[:-1]), path[-1]
    if isinstance(last, int):
        parent[last] = value
    else:
        setattr(parent, last, value)


# ---------------------------------------------------------------------------------------------
# Reading


@dataclass
class Selection:
    """
    What a node wants from messages of one structure.

    Attributes
    ----------
    paths
        The float64 values to read, e.g. ``[('position', 3), ('position', 0)]``.
    data
        Anything the node derived from the structure (names, frame, a refusal).

    """

    paths: Sequence[Path]
    data: Any = None


class Latest:
    """
    The message that was read last by plans that read the same: others need not read it again.

    Attributes
    ----------
    raw
        The message; None while there is none, or one with values that are not finite.
    values
        Its selected values (k,).
    stamp
        Its stamp.

    """

    __slots__ = ('raw', 'values', 'stamp', '__weakref__')

    def __init__(self) -> None:
        self.raw: bytes | None = None
        self.values: Any = None
        self.stamp: Any = None


_latest: weakref.WeakValueDictionary[Any, Latest] = weakref.WeakValueDictionary()


class Plan:
    """How to read the selected values of all messages that share one structure."""

    __slots__ = ('data', 'segments', 'latest', '_structure', '_reference', '_offset', '_count',
                 '_indices', '_scratch')

    def __init__(self, raw: bytes, layout: Layout, selection: Selection) -> None:
        offsets = _element_offsets(layout, selection.paths)
        self.data = selection.data
        #: (bytes, offset) that a message of this structure has, except for padding.
        self.segments = _segments(raw, layout)
        #: Shared by all plans of this process that read the same from messages built the same.
        self.latest = _latest.setdefault((self.segments, offsets.tobytes()), Latest())
        self._structure = np.concatenate(
            [np.arange(*span) for span in layout.structure] or [np.arange(0)])
        self._reference = np.frombuffer(raw, np.uint8)[self._structure].tobytes()
        self._offset = int(offsets.min()) if len(offsets) else ENCAPSULATION
        self._count = (int(offsets.max()) - self._offset) // 8 + 1 if len(offsets) else 0
        indices = (offsets - self._offset) // 8
        self._scratch = np.empty(self._count)
        self._indices = None if np.array_equal(indices, np.arange(self._count)) else indices

    def matches(self, raw: bytes) -> bool:
        """Tell whether a message has this structure (may deny it where only padding differs)."""
        for segment, offset in self.segments:
            if not raw.startswith(segment, offset):
                return False
        return True

    def matches_despite_padding(self, raw: bytes) -> bool:
        """Tell the same from the structure's bytes alone: slower; padding may hold anything."""
        if (not raw.startswith(LITTLE_ENDIAN_CDR)
                or len(raw) <= (self._structure[-1] if len(self._structure) else 0)):
            return False
        return np.frombuffer(raw, np.uint8)[self._structure].tobytes() == self._reference

    def gather(self, raw: bytes, out: np.ndarray) -> None:
        """Write the selected values into `out` (k,), float64."""
        if self._indices is None:
            out[...] = np.frombuffer(raw, _FLOAT64, self._count, self._offset)
            return
        # The bytes are not aligned, of which `take` would make a copy of its own, only slower.
        self._scratch[...] = np.frombuffer(raw, _FLOAT64, self._count, self._offset)
        self._scratch.take(self._indices, None, out, 'clip')


class PlainPlan:
    """The same through rclpy's own conversion, valid for one message."""

    __slots__ = ('data', 'latest', '_values')
    segments = ()

    def __init__(self, message: Any, selection: Selection) -> None:
        self.data, self.latest = selection.data, Latest()
        self._values = np.array([value_at(message, path) for path in selection.paths], float)

    def matches(self, raw: bytes) -> bool:
        """Return False: another message has to be converted again."""
        return False

    def gather(self, raw: bytes, out: np.ndarray) -> None:
        """Write the selected values into `out` (k,), float64."""
        out[...] = self._values


class _NoPlan:
    """Matches nothing."""

    segments = ((b'no message begins like this', 0),)
    latest = Latest()


NO_PLAN = _NoPlan()


class Reader:
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
        Use rclpy's own conversion; default: as the environment says.

    Examples
    --------
    >>> plan = reader.plan_for(raw)
    >>> plan.gather(raw, out)

    """

    def __init__(self, message_type: Any, select: Callable[[Any], Selection],
                 plain: bool | None = None) -> None:
        self._message_type = message_type
        self._select = select
        self._plans: list[Plan] = []
        self.plain = plain_messages_wanted() if plain is None else plain
        #: Why the plain path was taken although not asked for; None while it was not.
        self.plain_reason: str | None = None

    def plan_for(self, raw: bytes) -> Plan | PlainPlan:
        """
        Return how to read this message; remembers it for those that are built the same.

        Raises
        ------
        Exception
            Whatever rclpy raises for bytes that are no such message.

        """
        plan = self._known(raw)
        if plan is None:
            return self._new(raw)
        if plan is not self._plans[0]:
            self._plans.remove(plan)
            self._plans.insert(0, plan)
        return plan

    def _known(self, raw: bytes) -> Plan | None:
        for plan in self._plans:
            if plan.matches(raw):
                return plan
        for plan in self._plans:
            if plan.matches_despite_padding(raw):
                return plan
        return None

    def _new(self, raw: bytes) -> Plan | PlainPlan:
        message = deserialize_message(raw, self._message_type)
        selection = self._select(message)
        plain = PlainPlan(message, selection)
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
            plan = Plan(raw, Layout(message), selection)
            ours = np.empty(len(selection.paths))
            plan.gather(raw, ours)
        except (LayoutError, ValueError, IndexError) as error:
            self._give_up(str(error))
            return None
        theirs = [value_at(message, path) for path in selection.paths]
        if not np.array_equal(ours, theirs, equal_nan=True):
            self._give_up('values differ from those rclpy reads')
            return None
        return plan

    def _give_up(self, reason: str) -> None:
        self.plain, self.plain_reason = True, reason


def _segments(raw: bytes, layout: Layout) -> tuple[tuple[bytes, int], ...]:
    """Merge neighbouring structure ranges: few long comparisons are cheaper than many."""
    merged: list[list[int]] = []
    for start, end in layout.structure:
        if merged and start - merged[-1][1] < 4:  # nothing but padding between
            merged[-1][1] = end
        else:
            merged.append([start, end])
    return ((LITTLE_ENDIAN_CDR, 0),) + tuple((raw[a:b], a) for a, b in merged)


def _element_offsets(layout: Layout, paths: Iterable[Path]) -> np.ndarray:
    leaves = {leaf.path: leaf for leaf in layout.leaves if leaf.dtype == _FLOAT64}
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
    """Value of a serialized ``std_msgs/Bool``, which is the same in every byte order."""
    return raw[ENCAPSULATION] != 0


# ---------------------------------------------------------------------------------------------
# Writing


def raw_publish(publisher: Any) -> Callable[[bytes], None]:
    """
    Return the function that sends bytes through an rclpy publisher, at half the cost.

    ``Publisher.publish`` only guards the handle against being destroyed meanwhile and looks at
    the type. A publisher that was destroyed before raises either way.
    """
    send: Callable[[bytes], None] = getattr(publisher.handle, 'publish_raw', publisher.publish)
    return send


class Scatter:
    """Assigns an array to values that lie irregularly in a buffer, as ``scatter[...] = x``."""

    __slots__ = ('_values', '_indices', 'shape')

    def __init__(self, values: np.ndarray, indices: np.ndarray) -> None:
        self._values = values
        self._indices = indices
        self.shape = indices.shape

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[self._indices[key]] = value

    def __getitem__(self, key: Any) -> np.ndarray:
        return self._values[self._indices[key]]


@dataclass
class _Field:
    """Numbers of a template that are set together, as the path pattern selects them."""

    leaves: list[Leaf]
    shape: tuple[int, ...]

    def offsets(self) -> np.ndarray:
        parts = [leaf.offset + leaf.dtype.itemsize * np.arange(leaf.count)
                 for leaf in self.leaves]
        return np.concatenate(parts).reshape(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.leaves[0].dtype


class Template:
    """
    A message serialized once, whose numbers are patched in place.

    Parameters
    ----------
    prototype
        The message, with all strings set and all sequences at their length.
    fields
        Name -> path pattern of the numbers to set. ``'point'`` means all numbers below
        ``point``; ``'poses[*].position'`` those of all poses, shape (n, 3);
        ``'markers[2].points'`` those of one marker, shape (k, 3).
    plain
        Use rclpy's own conversion; default: as the environment says.

    Attributes
    ----------
    fields : dict of str to array
        Assign with ``fields['point'][...] = value`` or ``fields['position'][3] = value``.

    Raises
    ------
    KeyError
        If a pattern selects nothing.

    """

    def __init__(self, prototype: Any, fields: dict[str, str],
                 plain: bool | None = None) -> None:
        self.prototype = prototype
        self._patterns = dict(fields)
        self.plain_reason: str | None = None
        self.plain = plain_messages_wanted() if plain is None else plain
        if not self.plain:
            self._try_bytes()
        if self.plain:
            self._use_messages()

    def serialize(self, stamp: Stamp | None = None) -> bytes:
        """
        Return the message as bytes, with `stamp` in its header and those of its elements.

        The plain path does the same by setting the prototype's fields.
        """
        if self.plain:
            return bytes(serialize_message(self.message(stamp)))
        if stamp is not None:
            self._write_stamp(stamp)
        return self._memory.tobytes()

    def message(self, stamp: Stamp | None = None) -> Any:
        """Return the message with the fields' present values (slow; the prototype itself)."""
        if not self.plain:
            return deserialize_message(self.serialize(stamp), type(self.prototype))
        for name, field in self._selected.items():
            _set_numbers(self.prototype, field, self.fields[name])
        if stamp is not None:
            for path in self._stamp_paths:
                set_value_at(self.prototype, path, stamp.to_msg())
        return self.prototype

    # -- bytes

    def _try_bytes(self) -> None:
        try:
            raw = bytes(serialize_message(self.prototype))
            layout = Layout(self.prototype)
            if not raw.startswith(LITTLE_ENDIAN_CDR) or len(raw) < layout.size:
                raise LayoutError('serialized bytes are not as expected')
        except LayoutError as error:
            self._give_up(str(error))
            return
        self._build(raw, layout)
        self._check()

    def _build(self, raw: bytes, layout: Layout) -> None:
        # The body begins 4 bytes after a multiple of 8, so that its float64 are aligned.
        self._buffer = bytearray(4) + bytearray(raw)
        self._memory = memoryview(self._buffer)[4:]
        self._selected = {name: _select(layout.leaves, pattern)
                          for name, pattern in self._patterns.items()}
        self.fields: dict[str, Any] = {
            name: _view(self._buffer, 4 + field.offsets(), field.dtype)
            for name, field in self._selected.items()}
        self._stamp_paths, offsets = _stamps(layout)
        self._single_stamp = offsets == [HEADER_STAMP]
        self._stamps = _stamp_targets(self._buffer, [4 + offset for offset in offsets])

    def _write_stamp(self, stamp: Stamp) -> None:
        if self._single_stamp:
            self._memory[4:12] = stamp.raw
        elif self._stamps:
            value = np.frombuffer(stamp.raw, np.uint32)
            for stamps in self._stamps:
                stamps[...] = value

    def _check(self) -> None:
        """Write unlike values everywhere and compare with what rclpy reads."""
        original = bytes(self._buffer)
        counter = 1
        expected = {}
        for name, target in self.fields.items():
            size = math.prod(target.shape)
            expected[name] = _test_values(counter, size, self._selected[name].dtype)
            target[...] = expected[name].reshape(target.shape)
            counter += size
        stamp = Stamp.from_ns(1_234_567_890_123_456_789 if self._stamp_paths else 0)
        message = deserialize_message(self.serialize(stamp), type(self.prototype))
        right = all(np.array_equal(_numbers(message, self._selected[name]), values)
                    for name, values in expected.items() if len(self._overlapping(name)) == 0)
        right = right and all(
            Stamp.from_msg(value_at(message, path)) == stamp for path in self._stamp_paths)
        self._buffer[:] = original
        if not right:
            self._give_up('values differ from those rclpy reads')

    def _overlapping(self, name: str) -> set[str]:
        """Names of later fields that overwrite some numbers of this one."""
        mine = {leaf.path for leaf in self._selected[name].leaves}
        names = list(self._selected)
        return {other for other in names[names.index(name) + 1:]
                if mine & {leaf.path for leaf in self._selected[other].leaves}}

    # -- messages

    def _give_up(self, reason: str) -> None:
        self.plain, self.plain_reason = True, reason

    def _use_messages(self) -> None:
        # A copy without shared parts: prototypes are often written like [Point()] * 3.
        self.prototype = deserialize_message(
            serialize_message(self.prototype), type(self.prototype))
        leaves = list(_leaves_without_layout(self.prototype, ()))
        self._selected = {name: _select(leaves, pattern)
                          for name, pattern in self._patterns.items()}
        self.fields = {
            name: _numbers(self.prototype, field).reshape(field.shape).astype(field.dtype)
            for name, field in self._selected.items()}
        self._stamp_paths = _stamp_paths(leaves)


def _select(leaves: Sequence[Leaf], pattern: str) -> _Field:
    """Leaves at or below the paths that a pattern selects, and the shape they form."""
    steps = [int(step) if step.isdigit() else step for step in re.findall(r'\w+|\*', pattern)]
    chosen = [leaf for leaf in leaves if _lies_below(leaf.path, steps)]
    if not chosen:
        raise KeyError(f"'{pattern}' selects no number of this message")
    if len({leaf.dtype for leaf in chosen}) > 1:
        raise KeyError(f"'{pattern}' selects numbers of several types")
    return _Field(chosen, _shape(chosen, steps))


def _lies_below(path: Path, steps: Sequence[Any]) -> bool:
    if len(path) < len(steps):
        return False
    for actual, step in zip(path, steps):  # thousands of times per start: no generator
        if actual != step and not (step == '*' and isinstance(actual, int)):
            return False
    return True


def _shape(leaves: Sequence[Leaf], steps: Sequence[Any]) -> tuple[int, ...]:
    """
    Shape of a selection: an axis per wildcard and per sequence below, then one for the numbers.

    Where elements are unlike (lines with different numbers of points), it is flat.
    """
    sizes: dict[Path, int] = {}
    for leaf in leaves:
        indices = tuple(step for depth, step in enumerate(leaf.path) if isinstance(step, int)
                        and (depth >= len(steps) or steps[depth] == '*'))
        sizes[indices] = sizes.get(indices, 0) + leaf.count
    total, inner = sum(sizes.values()), next(iter(sizes.values()))
    if len({(len(indices), size) for indices, size in sizes.items()}) > 1:
        return (total,)
    outer = tuple(len(set(axis)) for axis in zip(*sizes))
    if math.prod(outer) * inner != total:
        return (total,)
    is_scalar = len(leaves[0].path) == len(steps) and not leaves[0].is_array
    return outer if is_scalar and outer else (*outer, inner)


def _view(buffer: bytearray, offsets: np.ndarray, dtype: np.dtype) -> Any:
    """Return a strided view where the offsets are evenly spaced, else a Scatter."""
    strides = tuple(
        int(np.take(offsets, 1, axis).flat[0] - offsets.flat[0]) if n > 1 else dtype.itemsize
        for axis, n in enumerate(offsets.shape))
    even = offsets.flat[0] + sum(
        np.arange(n).reshape([-1 if i == axis else 1 for i in range(offsets.ndim)]) * stride
        for axis, (n, stride) in enumerate(zip(offsets.shape, strides)))
    if np.array_equal(even, offsets):
        return np.ndarray(offsets.shape, dtype, buffer, int(offsets.flat[0]), strides)
    # Offset 8 is the body's first byte, so that offsets divide by the size of their type.
    values = np.frombuffer(buffer, dtype, (len(buffer) - 8) // dtype.itemsize, 8)
    return Scatter(values, (offsets - 8) // dtype.itemsize)


def _stamp_targets(buffer: bytearray, offsets: Sequence[int]) -> list[Any]:
    """Return what to assign a stamp to as two uint32: few strided views, or one Scatter."""
    runs = _even_runs(offsets)
    if len(runs) > _MAX_RUNS:
        runs = [list(offsets)]
    return [_view(buffer, np.array([[offset, offset + 4] for offset in run]),
                  np.dtype(np.uint32)) for run in runs]


def _even_runs(offsets: Sequence[int]) -> list[list[int]]:
    """Split into runs of equal steps; in an array of structs only the first step may differ."""
    runs: list[list[int]] = []
    for offset in offsets:
        run = runs[-1] if runs else None
        if run is not None and (len(run) == 1 or offset - run[-1] == run[1] - run[0]):
            run.append(offset)
        else:
            runs.append([offset])
    return runs


def _stamps(layout: Layout) -> tuple[list[Path], list[int]]:
    paths = _stamp_paths(layout.leaves)
    offsets = {leaf.path: leaf.offset for leaf in layout.leaves}
    return paths, [offsets[path + ('sec',)] for path in paths]


def _stamp_paths(leaves: Iterable[Leaf]) -> list[Path]:
    """Paths of the stamps in the message's own header and in those of its elements."""
    return [leaf.path[:-1] for leaf in leaves if leaf.path[-3:] == ('header', 'stamp', 'sec')
            and (len(leaf.path) == 3 or isinstance(leaf.path[-4], int))]


def _leaves_without_layout(message: Any, path: Path) -> Iterator[Leaf]:
    """Numbers of a message, found without a thought for bytes."""
    for name, slot_type in _fields_of(message.__class__):
        yield from _leaves_of_value(getattr(message, name), slot_type, path + (name,))


def _leaves_of_value(value: Any, slot_type: Any, path: Path) -> Iterator[Leaf]:
    element_type = getattr(slot_type, 'value_type', None)
    if isinstance(slot_type, BasicType):
        yield Leaf(path, 0, _DTYPES.get(slot_type.typename, _FLOAT64), 1, False)
    elif isinstance(slot_type, NamespacedType):
        yield from _leaves_without_layout(value, path)
    elif isinstance(element_type, BasicType):
        if len(value):
            dtype = _DTYPES.get(element_type.typename, _FLOAT64)
            yield Leaf(path, 0, dtype, len(value), True)
    elif element_type is not None:
        for index, element in enumerate(value):
            yield from _leaves_of_value(element, element_type, path + (index,))


def _numbers(message: Any, field: _Field) -> np.ndarray:
    """Present values of a field, flat, read from the message object."""
    values: list[Any] = []
    for leaf in field.leaves:
        value = value_at(message, leaf.path)
        if isinstance(value, bytes):
            value = value[0]
        values.extend(value if leaf.is_array else [value])
    return np.array([v[0] if isinstance(v, bytes) else v for v in values], field.dtype)


def _set_numbers(message: Any, field: _Field, values: np.ndarray) -> None:
    flat = np.asarray(values).reshape(-1)
    start = 0
    for leaf in field.leaves:
        part = flat[start:start + leaf.count]
        start += leaf.count
        old = value_at(message, leaf.path)
        if leaf.is_array:
            new: Any = part if isinstance(old, np.ndarray) else part.tolist()
        else:
            new = part[0].item()
        set_value_at(message, leaf.path, bytes([new]) if isinstance(old, bytes) else new)


def _test_values(start: int, size: int, dtype: np.dtype) -> np.ndarray:
    values = np.arange(start, start + size)
    if dtype == np.bool_:
        return values % 2 == 0
    if dtype.itemsize == 1:
        return (values % 100).astype(dtype)
    if dtype.itemsize == 2:
        return (values % 30000).astype(dtype)
    return values.astype(dtype)
