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
import os
import sys
from typing import Any

import numpy as np
from rosidl_parser.definition import (
    AbstractSequence, AbstractString, Array, BasicType, NamespacedType)

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


@cache
def fields_of(message_type: Any) -> tuple[tuple[str, Any], ...]:
    """Return name and type of each field; asked of rclpy for every message, it takes longer."""
    return tuple(zip(message_type.get_fields_and_field_types(), message_type.SLOT_TYPES))


class LayoutError(Exception):
    """A message whose bytes are not understood here; use the plain path."""


def plain_messages_wanted() -> bool:
    """Tell whether the environment asks for rclpy's own conversion everywhere."""
    return (os.environ.get('BIPED_COM_PLAIN_MESSAGES', '') not in ('', '0')
            or sys.byteorder != 'little')


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
        fields = fields_of(message.__class__)
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
        dtype = DTYPES.get(basic_type.typename)
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
