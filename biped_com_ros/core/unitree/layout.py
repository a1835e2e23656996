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
aligns each number to its own size, counted from behind the four bytes of the encapsulation header:
it is a struct of all these numbers one after the other. The struct of C++ aligns nested structs to
their largest number as well, and fills them up to a multiple of it; Unitree's checksum is that of
this struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from biped_com_ros.core.geometry.pose import IndexArray
import numpy as np

HEADER = 4
"""Bytes of the encapsulation header before a message."""

Fields = list[tuple[Any, ...]]
"""Fields of a message: name as in the .msg file, NumPy type or nested fields, size of an array."""


@dataclass(frozen=True)
class Number:
    """Numbers of one field that follow each other: NumPy type, count, and both offsets."""

    kind: np.dtype[Any]
    count: int
    cdr: int
    native: int

    @property
    def span(self) -> IndexArray:
        """Return the bytes that they take, counted from the first."""
        return np.arange(self.count * self.kind.itemsize)


class MessageLayout:
    """
    Offsets of all numbers of a message.

    Parameters
    ----------
    fields
        Of the message.

    Attributes
    ----------
    numbers
        Where they are; elements of nested arrays are ``motor_state.3.q``.
    size, native_size
        Of the CDR without its header and of the struct, bytes.

    """

    def __init__(self, fields: Fields) -> None:
        struct = np.dtype(fields, align=True)
        found = list(_numbers(struct, '', 0))
        cdr: Any = np.dtype([(path, kind) for path, kind, _ in found], align=True).fields
        self.numbers = {
            path: Number(kind.base, int(np.prod(kind.shape)), int(cdr[path][1]), native)
            for path, kind, native in found}
        last = self.numbers[found[-1][0]]
        self.size, self.native_size = last.cdr + len(last.span), struct.itemsize

    def offsets(self, path: str) -> IndexArray:
        """Return the offsets in the CDR of a number in each element: ``motor_state.*.q``."""
        if '*' not in path:
            number = self.numbers[path]
            return number.cdr + number.kind.itemsize * np.arange(number.count)
        found: list[IndexArray] = []
        while (name := path.replace('*', str(len(found)))) in self.numbers:
            found.append(self.offsets(name))
        return np.concatenate(found)

    def native_bytes(self) -> IndexArray:
        """Return for each byte of the struct its index in the CDR; `size` where it is padding."""
        index = np.full(self.native_size, self.size)
        for number in self.numbers.values():
            index[number.native + number.span] = number.cdr + number.span
        return index


def _numbers(kind: Any, path: str, offset: int) -> Iterator[tuple[str, np.dtype[Any], int]]:
    """Yield path, type and offset of the numbers of a struct, an array of these, or a number."""
    base = kind.base
    if base.names is None:
        yield path.lstrip('.'), kind, offset
    elif kind.shape:
        for i in range(kind.shape[0]):
            yield from _numbers(base, f'{path}.{i}', offset + i * base.itemsize)
    else:
        for name in base.names:
            field, inside = base.fields[name]
            yield from _numbers(field, f'{path}.{name}', offset + inside)
