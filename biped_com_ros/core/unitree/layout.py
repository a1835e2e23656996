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
Where the numbers of a message of fixed size are: in its CDR, and in the struct of C++.

Messages without strings and sequences always have the same size. Their CDR (XCDR1, little-endian)
aligns each number to its own size, counted from behind the four bytes of the encapsulation header.
A struct of C++ aligns nested structs to their largest number as well, and fills them up to a
multiple of it; Unitree's checksum is that of the struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from biped_com_ros.core.geometry.pose import IndexArray
import numpy as np

HEADER = 4
"""Bytes of the encapsulation header before a message."""


@dataclass(frozen=True)
class Field:
    """
    A field of a message.

    Attributes
    ----------
    name
        As in the .msg file.
    kind
        Type of its numbers as NumPy writes it (``f4``), or the fields of a nested message.
    count
        How many there are; 0: one, not an array.

    """

    name: str
    kind: str | tuple[Field, ...]
    count: int = 0


@dataclass(frozen=True)
class Number:
    """Numbers of one field that follow each other: path, NumPy type, count, and both offsets."""

    path: str
    kind: str
    count: int
    cdr: int
    native: int


@dataclass(frozen=True)
class MessageLayout:
    """
    Offsets of all numbers of a message.

    Attributes
    ----------
    fields
        Of the message.
    numbers
        Where they are; elements of nested arrays are ``motor_state.3.q``.
    size, native_size
        Of the CDR without its header and of the struct, bytes.

    """

    fields: tuple[Field, ...]
    numbers: dict[str, Number] = field(init=False)
    size: int = field(init=False)
    native_size: int = field(init=False)

    def __post_init__(self) -> None:
        walk = _Walk()
        numbers = {number.path: number for number in walk.through(self.fields, '')}
        object.__setattr__(self, 'numbers', numbers)
        object.__setattr__(self, 'size', walk.cdr)
        object.__setattr__(self, 'native_size', walk.native)

    def offsets(self, path: str) -> IndexArray:
        """Return the offsets in the CDR of a number in each element: ``motor_state.*.q``."""
        if '*' not in path:
            number = self.numbers[path]
            return number.cdr + np.dtype(number.kind).itemsize * np.arange(number.count)
        found: list[IndexArray] = []
        while (name := path.replace('*', str(len(found)))) in self.numbers:
            found.append(self.offsets(name))
        return np.concatenate(found)

    def native_bytes(self) -> IndexArray:
        """Return for each byte of the struct its index in the CDR; `size` where it is padding."""
        index = np.full(self.native_size, self.size)
        for number in self.numbers.values():
            span = np.arange(number.count * np.dtype(number.kind).itemsize)
            index[number.native + span] = number.cdr + span
        return index


class _Walk:
    """Goes through fields, and keeps both offsets."""

    def __init__(self) -> None:
        self.cdr = self.native = 0

    def through(self, fields: tuple[Field, ...], prefix: str) -> Iterator[Number]:
        largest = _alignment(fields)
        self.native = _aligned(self.native, largest)
        for item in fields:
            path = f'{prefix}{item.name}'
            if isinstance(item.kind, str):
                yield self._number(path, item.kind, max(item.count, 1))
            elif item.count:
                for i in range(item.count):
                    yield from self.through(item.kind, f'{path}.{i}.')
            else:
                yield from self.through(item.kind, f'{path}.')
        self.native = _aligned(self.native, largest)

    def _number(self, path: str, kind: str, count: int) -> Number:
        size = np.dtype(kind).itemsize
        self.cdr, self.native = _aligned(self.cdr, size), _aligned(self.native, size)
        number = Number(path, kind, count, self.cdr, self.native)
        self.cdr, self.native = self.cdr + count * size, self.native + count * size
        return number


def _alignment(fields: tuple[Field, ...]) -> int:
    return max(np.dtype(item.kind).itemsize if isinstance(item.kind, str)
               else _alignment(item.kind) for item in fields)


def _aligned(offset: int, size: int) -> int:
    return -(-offset // size) * size
