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
Where each value lies in the serialization of a message.

XCDR1, little endian: 4 bytes of encapsulation, then a body in which each value is aligned to its
size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
import re
import sys
from typing import Any

from biped_com_ros.ros.fast.compat import plain_requested
import numpy as np

Path = tuple[Any, ...]

#: First two bytes of a serialized message: plain CDR, little endian.
LITTLE_ENDIAN_CDR = b'\x00\x01'
#: Bytes before the body; offsets count from the message's first byte.
ENCAPSULATION = 4
#: Where a message that begins with a header has its stamp.
HEADER_STAMP = slice(4, 12)

FLOAT64 = np.dtype(np.float64)
DTYPES = {
    'boolean': np.dtype(np.bool_), 'octet': np.dtype(np.uint8), 'char': np.dtype(np.uint8),
    'int8': np.dtype(np.int8), 'uint8': np.dtype(np.uint8),
    'int16': np.dtype(np.int16), 'uint16': np.dtype(np.uint16),
    'int32': np.dtype(np.int32), 'uint32': np.dtype(np.uint32),
    'int64': np.dtype(np.int64), 'uint64': np.dtype(np.uint64),
    'float': np.dtype(np.float32), 'double': FLOAT64}


_TYPE = re.compile(r'(?P<sequence>sequence<)?(?P<element>[\w/]+)(<\d+>)?(, \d+)?>?'
                   r'(?P<array>\[\d+\])?')


@dataclass(frozen=True)
class FieldType:
    """
    Type of a message's field.

    Attributes
    ----------
    element
        Type of the value, or of each element of a sequence or array.
    is_sequence, is_single
        Whether there are values in any number; whether there is one value only.
    is_message
        Whether values are messages themselves.
    dtype
        NumPy's type of the values; None if they are no numbers.

    """

    element: str
    is_sequence: bool
    is_single: bool
    is_message: bool
    dtype: np.dtype | None

    @classmethod
    def parse(cls, text: str) -> FieldType:
        """Return the type of a text such as ``sequence<double, 3>``, ``pkg/Name[4]``, ``int8``."""
        match = _TYPE.fullmatch(text)
        element = text if match is None else match['element']
        is_sequence = match is not None and match['sequence'] is not None
        is_array = match is not None and match['array'] is not None
        return cls(element, is_sequence, not (is_sequence or is_array), '/' in element,
                   DTYPES.get(element))


@cache
def fields_of(message_type: Any) -> tuple[tuple[str, FieldType], ...]:
    """Return name and type of each field of a message class."""
    return tuple((name, FieldType.parse(text))
                 for name, text in message_type.get_fields_and_field_types().items())


class LayoutError(Exception):
    """A message whose bytes are not understood here; use rclpy's own conversion."""


def plain_by_default() -> bool:
    """Return whether to use rclpy's own conversion everywhere."""
    return plain_requested() or sys.byteorder != 'little'


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
        Type and number of the values; `is_array` distinguishes ``double[1]`` from ``double``.

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
        fields = fields_of(message.__class__)
        if not fields:
            self._position += 1  # an empty struct is serialized as one byte
        for name, kind in fields:
            self._field(getattr(message, name), kind, path + (name,))

    def _field(self, value: Any, kind: FieldType, path: Path) -> None:
        if kind.is_sequence:
            self._structure(4)
        if kind.dtype is not None:
            self._numbers(kind.dtype, 1 if kind.is_single else len(value), path, kind.is_single)
        elif kind.is_single:
            self._element(value, kind, path)
        else:
            for index, element in enumerate(value):
                self._element(element, kind, path + (index,))

    def _element(self, value: Any, kind: FieldType, path: Path) -> None:
        if kind.is_message:
            self._message(value, path)
        elif kind.element == 'string':
            self._structure(5 + len(value.encode()))
        else:
            raise LayoutError(f'{path}: the serialization of {kind.element} is not known')

    def _numbers(self, dtype: np.dtype, count: int, path: Path, is_single: bool) -> None:
        if not count:
            return
        self._align(dtype.itemsize)
        self.leaves.append(Leaf(path, ENCAPSULATION + self._position, dtype, count, not is_single))
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
