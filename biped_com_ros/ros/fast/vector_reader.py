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
Readers of messages with few numbers: stamped vectors, bools, arrays.

Vectors are unpacked, checked and packed as Python floats: for ten numbers that takes less time
than one operation of NumPy on them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import cos, hypot, isfinite, sin
import struct
from typing import Any

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import brief
from biped_com_ros.core.signals.filters import TiltFilter
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.credible import limit_of_field
from biped_com_ros.ros.fast.message_reader import (
    MessageReader, read_only, ReadSpec, RefusedMessage, StampedReader, Structure)
import numpy as np
import pinocchio as pin

_MAX_STRUCTURES = 32
#: Of the values of an Imu, the first number of the covariance of its orientation.
_COVARIANCE = 10
#: How far the length of a unit quaternion may be from 1.
_UNIT = 0.01
#: How many numbers of an array are its stamp: seconds and nanoseconds.
STAMP_NUMBERS = 2
#: Seconds above which a stamp is none: those of a message have 31 bits.
_LATEST = 2.0 ** 31


class VectorReader(StampedReader):
    """
    Reads stamped float64 values of one message type as one vector.

    The options are the paths of the values, and the frame_id that the header has to have, if any.
    """

    def __init__(self, spec: ReadSpec) -> None:
        self._fields, self._frame_id = spec.options[:2]
        self.frame: str = self._frame_id
        self._values: Any = np.zeros(len(self._fields))
        self.values = read_only(self._values)
        self._pack = struct.Struct(f'{len(self._fields)}d').pack_into
        self._paths = [_path(field) for field in self._fields]
        self._limits = [limit_of_field(field, spec.largest) for field in self._fields]
        #: No value is beyond its limit where the norm of all of them is below this.
        self._least_limit = min(limit.largest for limit in self._limits)
        self._structures: dict[tuple[str, ...], Structure] = {}
        super().__init__(spec)
        self.arguments = self._parts(self.values)

    def continue_from(self, other: Any) -> None:
        """Take over the last values, and their frame."""
        self._values[...], self.frame = other.values, other.frame

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the values as callbacks get them."""
        return (values,)

    def _frames_of(self, message: Any) -> tuple[str, ...]:
        return (message.header.frame_id.removeprefix(self.spec.frame_prefix),)

    def _problem_of(self, frames: tuple[str, ...]) -> tuple[str, str] | None:
        """Return why messages in these frames cannot be used."""
        return _frame_problem('frame_id', frames[0], self._frame_id)

    def _select(self, message: Any) -> codec.Selection:
        frames = self._frames_of(message)
        if len(self._structures) >= _MAX_STRUCTURES:
            self._structures.clear()
        structure = self._structures.setdefault(
            frames, Structure(self._problem_of(frames), frames))
        return codec.Selection(self._paths, structure)

    def _accept(self, plan: codec.AnyPlan, raw: bytes, ns: int) -> bool:
        values = plan.values_of(raw)
        structure: Structure = plan.data
        if not hypot(*values) < self._least_limit:  # NaN and infinity fail it, too
            values = self._checked(values)
        structure.last_ns = ns
        self._pack(self._values, 0, *self._oriented(ns, values))
        self.frame = structure.data[0]
        return True

    def _unused(self, values: Sequence[float]) -> Collection[int]:
        """Return the indices of values that nobody uses; not finite ones become zero."""
        return ()

    def _checked(self, values: Sequence[float]) -> tuple[float, ...]:
        """Return values that can be used; RefusedMessage if some are not finite, or too large."""
        unused = self._unused(values)
        bad = [f'{field} = {value}' for i, (field, value) in enumerate(zip(self._fields, values))
               if not isfinite(value) and i not in unused]
        if bad:
            raise RefusedMessage('not finite', ', '.join(bad))
        known = tuple([value if isfinite(value) else 0.0 for value in values])
        for field, value, limit in zip(self._fields, known, self._limits):
            if abs(value) > limit.largest:
                raise RefusedMessage('too large', (
                    f'{field} = {value:g} is implausible (limit {limit}): check its unit, and '
                    'the sensor'))
        return known

    def _oriented(self, ns: int, values: Sequence[float]) -> Sequence[float]:
        """Return the values at a time; RefusedMessage if a quaternion is no rotation."""
        return values


class WrenchReader(VectorReader):
    """
    Reads WrenchStamped, or its vertical force alone.

    The third option are the factors by which the values will be multiplied to be N and N m: what
    is implausible is so in these units. The other values of a sensor of the vertical force are not
    read, since they may be anything, and are zero.
    """

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        self._limits = [limit.of_raw(factor)
                        for limit, factor in zip(self._limits, spec.options[2])]
        self._least_limit = min(limit.largest for limit in self._limits)
        if len(self._fields) == 1:
            wrench = np.zeros(6)
            self._values = wrench[2:3]  # the same memory
            self.values, self.arguments = read_only(self._values), (read_only(wrench),)


class ImuReader(VectorReader):
    """
    Reads Imu.

    The third option is whether an orientation is needed, the fourth the tilt to undo, the fifth
    whether the acceleration is used even if there is an orientation. One that is needed and not
    there is found by gyroscope and accelerometer.
    """

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        self._tilt_filter = TiltFilter()
        tilt = spec.options[3]
        if tilt is not None and any(tilt):
            angle = hypot(*tilt)
            self._tilt = (*(sin(0.5 * angle) / angle * x for x in tilt), cos(0.5 * angle))
            self._pack_measured, self._pack = self._pack, self._pack_turned

    def continue_from(self, other: Any) -> None:
        """Take over the last values, their frame, and the orientation that was found."""
        super().continue_from(other)
        self._tilt_filter = other._tilt_filter

    def _pack_turned(self, buffer: Any, offset: int, /, *values: Any) -> None:
        """Pack values as a sensor without the tilt would have measured them."""
        self._pack_measured(
            buffer, offset, *_product(values[:4], self._tilt),
            *_turned_back(self._tilt, values[4:7]), *_turned_back(self._tilt, values[7:10]),
            *values[10:])

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values[:4], values[4:7], values[7:10]

    def _unused(self, values: Sequence[float]) -> Collection[int]:
        need_orientation, _, need_acceleration = self.spec.options[2:]
        oriented = has_orientation(values)
        is_read = oriented or (need_orientation and values[_COVARIANCE] != -1.0)
        return {_COVARIANCE, *(() if is_read else range(4)),
                *(() if need_acceleration or not oriented else range(7, 10))}

    def _oriented(self, ns: int, values: Sequence[float]) -> Sequence[float]:
        if not self.spec.options[2]:
            return values
        if values[_COVARIANCE] != -1.0 and any(values[:4]):
            _check_unit(values[:4])
            return values
        R_world_imu = self._tilt_filter.update(ns, np.array(values[4:7]), np.array(values[7:10]))
        if R_world_imu is None:
            raise RefusedMessage('no orientation', (
                'it has no orientation (orientation_covariance[0] is -1, or the quaternion zero), '
                f'and {self._tilt_filter.problem}'))
        return *pin.Quaternion(R_world_imu).coeffs().tolist(), *values[4:10], -1.0


def has_orientation(values: Sequence[float]) -> bool:
    """Return whether the values of an Imu have an orientation (REP-145)."""
    return values[_COVARIANCE] != -1.0 and abs(hypot(*values[:4]) - 1.0) < _UNIT


def _turned_back(quaternion: Sequence[float], vector: Sequence[float]) -> tuple[float, ...]:
    """Return a vector turned by the inverse of a quaternion xyzw."""
    x, y, z, w = quaternion
    back = (-x, -y, -z, w)
    return _product(_product(back, (*vector, 0.0)), quaternion)[:3]


def _product(p: Sequence[float], q: Sequence[float]) -> tuple[float, ...]:
    """Return the product of two quaternions xyzw."""
    a, b, c, d = p
    x, y, z, w = q
    return (d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x,
            d * z + a * y - b * x + c * w, d * w - a * x - b * y - c * z)


class OdometryReader(VectorReader):
    """
    Reads Odometry.

    The third option is the child_frame_id that it has to have, if any, the fourth whether the
    twist is used.
    """

    def _unused(self, values: Sequence[float]) -> Collection[int]:
        return () if self.spec.options[3] else range(7, 13)

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values[:3], values[3:7], values[7:13]

    def _frames_of(self, message: Any) -> tuple[str, ...]:
        return (*super()._frames_of(message),
                message.child_frame_id.removeprefix(self.spec.frame_prefix))

    def _problem_of(self, frames: tuple[str, ...]) -> tuple[str, str] | None:
        return super()._problem_of(frames) or _frame_problem(
            'child_frame_id', frames[1], self.spec.options[2])

    def _oriented(self, ns: int, values: Sequence[float]) -> Sequence[float]:
        _check_unit(values[3:7])
        return values


def _frame_problem(field: str, frame: str, valid: str) -> tuple[str, str] | None:
    if not valid or frame == valid:
        return None
    prefix = frame.removesuffix(valid)
    remedy = f"; set the parameter frame_prefix to '{brief(prefix)}'" if prefix != frame else ''
    return 'wrong frame', f"its {field} is '{brief(frame)}'; valid: '{valid}'{remedy}"


def _check_unit(quaternion: Sequence[float]) -> None:
    length = hypot(*quaternion)
    if not abs(length - 1.0) < _UNIT:
        raise RefusedMessage('not a unit quaternion', (
            f'orientation {list(quaternion)} (x, y, z, w) has length {length:.4g}; valid: 1'))


def _path(field: str) -> codec.Path:
    return tuple(int(step) if step.isdigit() else step for step in field.split('.'))


class BoolReader(MessageReader):
    """Reads Bool, stamped on arrival."""

    def _read(self, raw: bytes) -> int:
        self.arguments = (codec.read_bool(raw),)
        return self._now()


class ArrayReader(MessageReader):
    """Reads Float64MultiArray, stamped on arrival; the option is its length, None for any."""

    def _select(self, message: Any) -> codec.Selection:
        n = len(message.data)
        if self.spec.options[0] not in (n, None):
            raise RefusedMessage(
                'wrong length', f'it has {n} values; valid: {self.spec.options[0]}')
        return codec.Selection([('data', i) for i in range(n)], np.zeros(n))

    def _read(self, raw: bytes) -> int:
        plan = self._decoder.plan_for(raw)
        values = plan.data
        values[:] = plan.array_of(raw)
        _check_array(values, self.spec.largest)
        self.arguments = (read_only(values),)
        return self._now()


class StampedArrayReader(StampedReader):
    """
    Reads Float64MultiArray whose stamp, seconds and nanoseconds, stands before its n values.

    A message has one `data_offset`, 2: a reader of the layout skips the stamp. The option is n.
    """

    def __init__(self, spec: ReadSpec) -> None:
        # One for all messages, since stamps must increase from one to the next.
        self._structure = Structure(data=np.zeros(spec.options[0] + STAMP_NUMBERS))
        super().__init__(spec)

    def _select(self, message: Any) -> codec.Selection:
        n, offset = len(self._structure.data), message.layout.data_offset
        if (len(message.data), offset) != (n, STAMP_NUMBERS):
            raise RefusedMessage('wrong length', (
                f'it has {len(message.data)} numbers and data_offset {offset}; valid: {n} and '
                f'{STAMP_NUMBERS}'))
        return codec.Selection([('data', i) for i in range(n)], self._structure)

    def _read(self, raw: bytes) -> int:
        structure = self._structure
        values = structure.data
        values[:] = self._decoder.plan_for(raw).array_of(raw)
        seconds, nanoseconds = values[:STAMP_NUMBERS].tolist()
        if not (0.0 <= seconds < _LATEST and 0.0 <= nanoseconds < SECOND_NS):
            raise RefusedMessage('malformed', f'its stamp is {seconds} s and {nanoseconds} ns')
        ns = int(seconds) * SECOND_NS + int(nanoseconds)
        self._check_stamp(ns, structure)
        _check_array(values[STAMP_NUMBERS:], self.spec.largest, STAMP_NUMBERS)
        structure.last_ns = ns
        self.arguments = (read_only(values[STAMP_NUMBERS:]),)
        return ns


def _check_array(values: np.ndarray, largest: float, first: int = 0) -> None:
    """Raise RefusedMessage if a value, from ``data[first]`` on, is not finite, or too large."""
    is_credible = np.abs(values) <= largest  # NaN is not
    if is_credible.all():
        return
    index = int(is_credible.argmin())
    name, value = f'data[{first + index}]', values[index]
    if not isfinite(value):
        raise RefusedMessage('not finite', f'{name} = {value}')
    raise RefusedMessage('too large', (
        f'{name} = {value:g} is implausible (limit {largest:g}): check its unit'))
