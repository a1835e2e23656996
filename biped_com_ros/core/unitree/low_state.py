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
Unitree's message LowState, decoded from its bytes without Unitree's packages.

``unitree_hg`` is that of G1, H1-2 and later humanoids, ``unitree_go`` that of H1 and the
quadrupeds. The fields are those of *unitree_ros2* (``cyclonedds_ws/src/unitree``). `tick` counts
milliseconds. Accelerometers measure +9.81 upwards at rest, quaternions are (w, x, y, z), torques
are estimates from motor currents at the joint.

Messages without strings and sequences always have the same size. Their CDR (XCDR1, little-endian)
aligns each number to its own size, counted from behind the four bytes of the encapsulation header:
it is a struct of all these numbers one after the other. The struct of C++ aligns nested structs to
their largest number as well, and fills them up to a multiple of it; Unitree's checksum is that of
this struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
import zlib

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray
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


#: Encapsulation headers of little-endian CDR: XCDR1, and XCDR2, which is the same for numbers of
#: at most four bytes.
_LITTLE_ENDIAN = (b'\x00\x01', b'\x00\x07')
#: Each byte with its bits reversed.
_REVERSED_BITS = bytes(int(f'{byte:08b}'[::-1], 2) for byte in range(256))


def _imu(temperature: str) -> Fields:
    return [('quaternion', 'f4', 4), ('gyroscope', 'f4', 3), ('accelerometer', 'f4', 3),
            ('rpy', 'f4', 3), ('temperature', temperature)]


_HG_MOTOR: Fields = [
    ('mode', 'u1'), ('q', 'f4'), ('dq', 'f4'), ('ddq', 'f4'), ('tau_est', 'f4'),
    ('temperature', 'i2', 2), ('vol', 'f4'), ('sensor', 'u4', 2), ('motorstate', 'u4'),
    ('reserve', 'u4', 4)]
_GO_MOTOR: Fields = [
    ('mode', 'u1'), ('q', 'f4'), ('dq', 'f4'), ('ddq', 'f4'), ('tau_est', 'f4'), ('q_raw', 'f4'),
    ('dq_raw', 'f4'), ('ddq_raw', 'f4'), ('temperature', 'i1'), ('lost', 'u4'),
    ('reserve', 'u4', 2)]
_GO_BATTERY: Fields = [
    ('version_high', 'u1'), ('version_low', 'u1'), ('status', 'u1'), ('soc', 'u1'),
    ('current', 'i4'), ('cycle', 'u2'), ('bq_ntc', 'i1', 2), ('mcu_ntc', 'i1', 2),
    ('cell_vol', 'u2', 15)]

FIELDS: Mapping[str, Fields] = {
    'unitree_hg': [
        ('version', 'u4', 2), ('mode_pr', 'u1'), ('mode_machine', 'u1'), ('tick', 'u4'),
        ('imu_state', _imu('i2')), ('motor_state', _HG_MOTOR, 35), ('wireless_remote', 'u1', 40),
        ('reserve', 'u4', 4), ('crc', 'u4')],
    'unitree_go': [
        ('head', 'u1', 2), ('level_flag', 'u1'), ('frame_reserve', 'u1'), ('sn', 'u4', 2),
        ('version', 'u4', 2), ('bandwidth', 'u2'), ('imu_state', _imu('i1')),
        ('motor_state', _GO_MOTOR, 20), ('bms_state', _GO_BATTERY), ('foot_force', 'i2', 4),
        ('foot_force_est', 'i2', 4), ('tick', 'u4'), ('wireless_remote', 'u1', 40),
        ('bit_flag', 'u1'), ('adc_reel', 'f4'), ('temperature_ntc1', 'i1'),
        ('temperature_ntc2', 'i1'), ('power_v', 'f4'), ('power_a', 'f4'),
        ('fan_frequency', 'u2', 4), ('reserve', 'u4'), ('crc', 'u4')]}
"""Fields of LowState by the package of the message."""


@dataclass(frozen=True)
class LowState:
    """
    The values of a message.

    Attributes
    ----------
    tick
        ms, wraps at 2^32.
    crc
        The checksum that the sender computed.
    parallel_mode
        Whether positions of parallel ankles and waist are those of the motors A and B, not pitch
        and roll (``mode_pr`` 1).
    quaternion
        Attitude of the IMU (x, y, z, w).
    angular_velocity, acceleration
        In the frame of the IMU, rad/s and m/s^2.
    positions, velocities, efforts
        Of all motors (M,): rad, rad/s, N m.
    temperatures
        Of all motors (M,), the hotter one of two, deg C.
    errors
        Of all motors (M,): ``motorstate``, or with unitree_go the number of lost packets.

    """

    tick: int
    crc: int
    parallel_mode: bool
    quaternion: Array
    angular_velocity: Array
    acceleration: Array
    positions: Array
    velocities: Array
    efforts: Array
    temperatures: Array
    errors: Array


class LowStateDecoder:
    """
    Decodes messages of one package.

    Parameters
    ----------
    package
        A key of :data:`FIELDS`.

    Attributes
    ----------
    package
        That package.
    layout
        Where its numbers are.
    motors
        Number of motors in a message, M.
    errors_are_counts
        Whether `LowState.errors` counts lost packets instead of reporting errors.

    """

    def __init__(self, package: str) -> None:
        self.package = package
        self.layout = layout = MessageLayout(FIELDS[package])
        self._positions, self._velocities, self._efforts = (
            layout.offsets(f'motor_state.*.{name}') // 4 for name in ('q', 'dq', 'tau_est'))
        self.motors = len(self._positions)
        self._imu = layout.offsets('imu_state.quaternion')[0] // 4
        self._tick, self._crc = (layout.numbers[name].cdr // 4 for name in ('tick', 'crc'))
        self.errors_are_counts = package == 'unitree_go'
        self._errors = layout.offsets(
            'motor_state.*.lost' if self.errors_are_counts else 'motor_state.*.motorstate') // 4
        temperature = layout.numbers['motor_state.0.temperature']
        self._temperature_type = temperature.kind
        self._temperatures = (layout.offsets('motor_state.*.temperature')
                              // temperature.kind.itemsize)
        mode = layout.numbers.get('mode_pr')
        self._mode_at = None if mode is None else HEADER + mode.cdr

    def decode(self, raw: bytes) -> LowState:
        """
        Return the values of a serialized message; `crc` is not checked.

        Raises
        ------
        InputError
            If its size or encoding is another one, as of another message.

        """
        if raw[:2] not in _LITTLE_ENDIAN:
            raise InputError(
                f"a message begins with {bytes(raw[:4]).hex(' ')}, which is not little-endian CDR")
        if not 0 <= len(raw) - HEADER - self.layout.size < 4:
            raise InputError(
                f'a message has {len(raw)} bytes, but LowState of {self.package} has '
                f"{HEADER + self.layout.size}: check low_state.message in the robot's YAML, and "
                'the firmware')
        numbers = np.frombuffer(raw, '<f4', self.layout.size // 4, HEADER)
        words = numbers.view('<u4')
        i, narrow = self._imu, self._temperature_type
        temperatures = np.frombuffer(raw, narrow, self.layout.size // narrow.itemsize, HEADER)
        w, x, y, z = numbers[i:i + 4].tolist()
        return LowState(
            tick=int(words[self._tick]), crc=int(words[self._crc]),
            parallel_mode=self._mode_at is not None and raw[self._mode_at] == 1,
            quaternion=np.array((x, y, z, w)),
            angular_velocity=numbers[i + 4:i + 7].astype(float),
            acceleration=numbers[i + 7:i + 10].astype(float),
            positions=numbers[self._positions].astype(float),
            velocities=numbers[self._velocities].astype(float),
            efforts=numbers[self._efforts].astype(float),
            temperatures=temperatures[self._temperatures].reshape(self.motors, -1).max(1),
            errors=words[self._errors])

    def checksum(self, raw: bytes) -> int:
        """
        Return the checksum of a message, which has to be equal to its `crc`.

        Unitree computes CRC-32 (polynomial 0x04c11db7, from 0xffffffff, most significant bit of
        each 32-bit word first, nothing inverted) over the struct without its last word.
        """
        content = np.frombuffer(raw, np.uint8, self.layout.size, HEADER)
        # zlib's has the bits of each byte and of the result the other way round.
        ordered = np.append(content, np.uint8(0))[self._bytes_of_words].tobytes()
        value = zlib.crc32(ordered.translate(_REVERSED_BITS)) ^ 0xffffffff
        return int.from_bytes(value.to_bytes(4, 'little').translate(_REVERSED_BITS), 'big')

    @cached_property
    def _bytes_of_words(self) -> IndexArray:
        """Return the bytes that go into the checksum, the most significant of each word first."""
        index: IndexArray = self.layout.native_bytes()[:-4].reshape(-1, 4)[:, ::-1].reshape(-1)
        return index
