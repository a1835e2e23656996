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
Writes numbers into messages that were serialized once.

Layout of a template's buffer::

    byte   0             4              8
           4 of padding  4, CDR header  body: the fields

CDR aligns fields relative to the body, which the padding puts at a multiple of 8, so that NumPy's
views of float64 are aligned. Offsets of :class:`Layout` count from the CDR header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import math
import re
from typing import Any

from biped_com_ros.ros.fast.codec.layout import (
    HEADER_STAMP, Layout, Leaf, LITTLE_ENDIAN_CDR, Path, plain_by_default, set_value_at, value_at)
from biped_com_ros.ros.topics.stamp import ns_of_msg, pack_stamp, stamp_to_msg
import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

#: First bytes of the serialized message and of its body in the buffer, see above.
_MESSAGE, _BODY = 4, 8
_STAMP = slice(_MESSAGE + HEADER_STAMP.start, _MESSAGE + HEADER_STAMP.stop)


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
        parts = [leaf.offset + leaf.dtype.itemsize * np.arange(leaf.count) for leaf in self.leaves]
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
        Use rclpy's own conversion; default: by `BIPED_COM_PLAIN`.

    Attributes
    ----------
    fields : dict of str to array
        Assign with ``fields['point'][...] = value`` or ``fields['position'][3] = value``.

    Raises
    ------
    KeyError
        If a pattern selects nothing.

    """

    def __init__(self, prototype: Any, fields: dict[str, str], plain: bool | None = None) -> None:
        self.prototype = prototype
        self.plain_reason: str | None = None
        self.plain = plain_by_default() if plain is None else plain
        leaves = Layout(prototype).leaves
        self._selected = {name: _select(leaves, pattern) for name, pattern in fields.items()}
        self._stamp_paths = _stamp_paths(leaves)
        if not self.plain:
            self._use_bytes(leaves)
        if self.plain:
            self._use_messages()

    def serialize(self, stamp_ns: int | None = None) -> bytes:
        """Return the message as bytes, with this stamp in its header and its elements' headers."""
        if self.plain:
            return bytes(serialize_message(self.message(stamp_ns)))
        if stamp_ns is not None:
            if self._has_header_stamp_only:
                self._buffer[_STAMP] = pack_stamp(stamp_ns)
            elif self._stamps is not None:
                self._stamps[...] = np.frombuffer(pack_stamp(stamp_ns), np.uint32)
        return self._memory.tobytes()

    def message(self, stamp_ns: int | None = None) -> Any:
        """Return the message with the present values of the fields; slow."""
        if not self.plain:
            return deserialize_message(self.serialize(stamp_ns), type(self.prototype))
        for name, field in self._selected.items():
            _set_numbers(self.prototype, field, self.fields[name])
        if stamp_ns is not None:
            for path in self._stamp_paths:
                set_value_at(self.prototype, path, stamp_to_msg(stamp_ns))
        return self.prototype

    # -- bytes

    def _use_bytes(self, leaves: Sequence[Leaf]) -> None:
        raw = bytes(serialize_message(self.prototype))
        self._buffer = bytearray(_MESSAGE) + bytearray(raw)
        self._memory = memoryview(self._buffer)[_MESSAGE:]
        self.fields: dict[str, Any] = {
            name: _view(self._buffer, _MESSAGE + field.offsets(), field.dtype)
            for name, field in self._selected.items()}
        stamps = {(*path, 'sec') for path in self._stamp_paths}
        offsets = [leaf.offset for leaf in leaves if leaf.path in stamps]
        self._has_header_stamp_only = offsets == [HEADER_STAMP.start]
        self._stamps = _view(
            self._buffer, _MESSAGE + np.array([[offset, offset + 4] for offset in offsets]),
            np.dtype(np.uint32)) if offsets else None
        if not raw.startswith(LITTLE_ENDIAN_CDR) or not self._is_read_as_written():
            self.plain, self.plain_reason = True, 'values differ from those rclpy reads'

    def _is_read_as_written(self) -> bool:
        """Return whether rclpy reads distinct values of all fields as they are written here."""
        original, counter = bytes(self._buffer), 1
        for name, target in self.fields.items():
            size = math.prod(target.shape)
            target[...] = _test_values(
                counter, size, self._selected[name].dtype).reshape(target.shape)
            counter += size
        stamp_ns = 1_234_567_890_123_456_789 if self._stamp_paths else 0
        message = deserialize_message(self.serialize(stamp_ns), type(self.prototype))
        is_right = all(
            np.array_equal(_numbers(message, field), np.ravel(self.fields[name][...]))
            for name, field in self._selected.items()) and all(
            ns_of_msg(value_at(message, path)) == stamp_ns for path in self._stamp_paths)
        self._buffer[:] = original
        return is_right

    # -- messages

    def _use_messages(self) -> None:
        # A copy without shared parts: prototypes are often written like [Point()] * 3.
        self.prototype = deserialize_message(
            serialize_message(self.prototype), type(self.prototype))
        self.fields = {
            name: _numbers(self.prototype, field).reshape(field.shape).astype(field.dtype)
            for name, field in self._selected.items()}


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
    # Counted from the body, offsets are multiples of the size of their type.
    values = np.frombuffer(buffer, dtype, (len(buffer) - _BODY) // dtype.itemsize, _BODY)
    return Scatter(values, (offsets - _BODY) // dtype.itemsize)


def _stamp_paths(leaves: Iterable[Leaf]) -> list[Path]:
    """Paths of the stamps in the message's own header and in those of its elements."""
    return [leaf.path[:-1] for leaf in leaves if leaf.path[-3:] == ('header', 'stamp', 'sec')
            and (len(leaf.path) == 3 or isinstance(leaf.path[-4], int))]


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
    """Return values that are distinct, as far as their type has so many."""
    values = np.arange(start, start + size)
    if dtype == np.bool_:
        return values % 2 == 0
    if dtype.itemsize < 4:
        values %= 100
    return values.astype(dtype)
