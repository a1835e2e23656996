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
Subscriptions that hand over good data only.

Messages are taken raw and read with NumPy (see `codec`). Each is examined before its callback
runs: structure (names, frame), stamp, finite numbers. What is refused is counted by reason,
logged at most once per 5 s and reason, and shown in ``/diagnostics``; a silent sensor turns its
line there to ERROR. Arrays passed to callbacks are reused, and those of all nodes that share an
input: they cannot be written to; copy what has to last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot, isfinite
import struct
import time
from typing import Any

from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.message_reader import (
    ReadSpec, read_only, MessageReader, RefusedMessage, Source, StampedReader)
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.topics.input_base import Input
from biped_com_ros.ros.topics.joint_state_input import JointStateInput
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool, Float64MultiArray

__all__ = [
    'ArrayInput', 'BoolInput', 'ImuInput', 'Input', 'JointStateInput', 'OdometryInput',
    'PointInput', 'Vector3Input', 'VectorInput', 'WrenchInput']

_MAX_SOURCES = 32
#: For how long (s), and in how many messages, values that do not change at all are no accident.
_FROZEN_AFTER, _FROZEN_COUNT = 5.0, 50


class _FramedSource(Source):
    """Messages in one frame, or from one to another."""

    def __init__(self, frames: tuple[str, ...]) -> None:
        super().__init__()
        self.frames = frames


class VectorReader(StampedReader):
    """
    Stamped float64 values of one message type, as one vector.

    The order says which: paths of the values, and the frame that the header has to have, if any.
    As few values are unpacked, examined and packed in less time than NumPy takes to begin.
    """

    def __init__(self, spec: ReadSpec) -> None:
        self._fields, self._frame_id = spec.what[:2]
        self.frame, self._with_quaternion = self._frame_id, False
        self._values: Any = np.zeros(len(self._fields))
        #: What inputs show; callbacks get it, or parts of it.
        self.values = read_only(self._values)
        self._pack = struct.Struct(f'{len(self._fields)}d').pack_into
        self._paths = [_path(field) for field in self._fields]
        self._sources: dict[tuple[str, ...], _FramedSource] = {}
        super().__init__(spec)
        self.arguments = self._parts(self.values)

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return (values,)

    def _select(self, message: Any) -> codec.Selection:
        frames = self._frames_of(message)
        if len(self._sources) >= _MAX_SOURCES:
            self._sources.clear()
        source = self._sources.setdefault(frames, _FramedSource(frames))
        return codec.Selection(self._paths, source)

    def _frames_of(self, message: Any) -> tuple[str, ...]:
        return (message.header.frame_id,)

    def _examine_structure(self, source: _FramedSource) -> None:
        _examine_frame('frame_id', source.frames[0], self._frame_id)

    def _take(self, plan: Any, raw: bytes, ns: int) -> bool:
        values_of, pack, source = plan.values_of, self._pack, plan.data
        values = values_of(raw)
        if not hypot(*values) < self.spec.largest:  # NaN and infinity fail it, too
            self._examine_values(values)
        source.last_ns = ns
        if self._with_quaternion:
            self._examine_quaternion(values)
        pack(self._values, 0, *values)
        self.frame = source.frames[0]
        return True

    def _examine_values(self, values: Sequence[float]) -> None:
        """Raise RefusedMessage if values are not finite, or too large."""
        bad = [f'{field} = {value}' for field, value in zip(self._fields, values)
               if not isfinite(value)]
        if bad:
            raise RefusedMessage('not finite', ', '.join(bad))
        self._examine_sizes(self._fields, values)

    def _examine_quaternion(self, values: Sequence[float]) -> None:
        """Raise RefusedMessage if the quaternion, where there is one, is none of a rotation."""


class ImuReader(VectorReader):
    """Imu; the order says besides whether an orientation has to be there."""

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        self._with_quaternion = spec.what[2]

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values[:4], values[4:7], values[7:10]

    def _examine_quaternion(self, values: Sequence[float]) -> None:
        if values[10] == -1.0:
            raise RefusedMessage('no orientation', (
                'it has no orientation (orientation_covariance[0] is -1): run a filter such as '
                'imu_filter_madgwick'))
        _examine_unit(values[:4])


class OdometryReader(VectorReader):
    """Odometry; the order says besides which child_frame_id it has to have, if any."""

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        self._with_quaternion = True

    def _parts(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values[:3], values[3:7], values[7:13]

    def _frames_of(self, message: Any) -> tuple[str, ...]:
        return (message.header.frame_id, message.child_frame_id)

    def _examine_structure(self, source: _FramedSource) -> None:
        super()._examine_structure(source)
        _examine_frame('child_frame_id', source.frames[1], self.spec.what[2])

    def _examine_quaternion(self, values: Sequence[float]) -> None:
        _examine_unit(values[3:7])


def _examine_frame(field: str, frame: str, valid: str) -> None:
    if valid and frame != valid:
        raise RefusedMessage('wrong frame', f"its {field} is '{frame}'; valid: '{valid}'")


def _examine_unit(quaternion: Sequence[float]) -> None:
    length = hypot(*quaternion)
    if not 0.99 < length < 1.01:
        raise RefusedMessage('no unit quaternion', (
            f'orientation {list(quaternion)} (x, y, z, w) has length {length:.4g}; valid: 1'))


def _path(field: str) -> codec.Path:
    return tuple(int(step) if step.isdigit() else step for step in field.split('.'))


def _fields(prefix: str, names: str = 'xyz') -> tuple[str, ...]:
    return tuple(f'{prefix}.{name}' for name in names)


class BoolReader(MessageReader):
    """Bool, stamped on arrival."""

    def _read(self, raw: bytes) -> int:
        if len(raw) <= codec.ENCAPSULATION:
            raise RefusedMessage('malformed', f'it has only {len(raw)} bytes')
        self.arguments = (codec.read_bool(raw),)
        return self._now()


class ArrayReader(MessageReader):
    """Float64MultiArray, stamped on arrival, of as many numbers as ordered; None: of any."""

    def _select(self, message: Any) -> codec.Selection:
        return codec.Selection([('data', i) for i in range(len(message.data))],
                               np.zeros(len(message.data)))

    def _read(self, raw: bytes) -> int:
        plan = self._find_plan(raw)
        values, n = plan.data, self.spec.what[0]
        if n is not None and len(values) != n:
            raise RefusedMessage('wrong length', f'it has {len(values)} values; valid: {n}')
        plan.gather(raw, values)
        if not np.isfinite(values).all():
            index = int(np.flatnonzero(~np.isfinite(values))[0])
            raise RefusedMessage('not finite', f'data[{index}] = {values[index]}')
        self.arguments = (read_only(values),)
        return self._now()


class VectorInput(Input):
    """
    Stamped float64 values of one message type, as one vector.

    Parameters
    ----------
    node, message_type, topic
        What to subscribe to; the type has a header.
    fields
        Paths of the values, e.g. ``['point.x', 'point.y', 'point.z']``.
    callback
        Called with (stamp, values (k,)).
    frame_id
        The header's frame_id has to be this; '' accepts any (see `frame`).
    options
        See `Input`.

    """

    reader: VectorReader

    def __init__(self, node: Any, message_type: Any, topic: str, fields: Sequence[str],
                 callback: Callable[..., None], frame_id: str = '',
                 kind: type[VectorReader] = VectorReader, what: tuple[Any, ...] = (),
                 **options: Any) -> None:
        super().__init__(node, message_type, topic, callback, kind,
                         (tuple(fields), frame_id, *what), **options)

    @property
    def frame(self) -> str:
        """Return the frame_id of the last message."""
        return self.reader.frame

    @property
    def values(self) -> np.ndarray:
        """Return the values of the last good message."""
        return self.reader.values


class SensorInput(VectorInput):
    """
    A sensor: one node publishes it, and the last digits of its values never stand still.

    Both are looked at when diagnostics ask, so that it costs messages nothing.
    """

    _since, _from, _before = 0.0, 0, b''

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        level, message, values = super().report()
        problem = self._frozen() or self._mixed()
        return (WARN, problem, values) if level == OK and problem else (level, message, values)

    def _frozen(self) -> str:
        now, latest = time.monotonic(), self.values.tobytes()
        if latest != self._before:
            self._since, self._from, self._before = now, self.count, latest
        if now - self._since < _FROZEN_AFTER or self.count - self._from < _FROZEN_COUNT:
            return ''
        return (f"'{self.topic}': messages come, but with the same values to the last digit for "
                f'{now - self._since:.0f} s: the sensor or its driver hangs; restart it')

    def _mixed(self) -> str:
        publishers = self.node.count_publishers(self.topic)
        return '' if publishers < 2 else (
            f"'{self.topic}': {publishers} publishers, whose messages are mixed: end all but one")


class WrenchInput(SensorInput):
    """WrenchStamped; calls back with (stamp in ns, wrench (6,)), force first, in its frame."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[int, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, WrenchStamped, topic,
                         _fields('wrench.force') + _fields('wrench.torque'), callback,
                         frame_id, **options)


class PointInput(VectorInput):
    """PointStamped; calls back with (stamp in ns, point (3,))."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[int, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, PointStamped, topic, _fields('point'), callback, frame_id,
                         **options)


class Vector3Input(VectorInput):
    """Vector3Stamped; calls back with (stamp in ns, vector (3,))."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[int, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, Vector3Stamped, topic, _fields('vector'), callback, frame_id,
                         **options)


class ImuInput(SensorInput):
    """
    Imu; calls back with (stamp in ns, quaternion xyzw (4,), angular velocity (3,),
    acceleration (3,)).

    Unless `need_orientation` is False, messages without an orientation (first covariance -1,
    REP-145) are refused, and so are quaternions whose length is not 1 within 1 %.
    """

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[int, np.ndarray, np.ndarray, np.ndarray], None],
                 need_orientation: bool = True, **options: Any) -> None:
        super().__init__(
            node, Imu, topic,
            _fields('orientation', 'xyzw') + _fields('angular_velocity')
            + _fields('linear_acceleration') + ('orientation_covariance.0',), callback,
            frame_id, ImuReader, (need_orientation,), **options)


class OdometryInput(VectorInput):
    """Odometry; calls back with (stamp in ns, position (3,), quaternion xyzw (4,), twist (6,))."""

    def __init__(self, node: Any, topic: str,
                 callback: Callable[[int, np.ndarray, np.ndarray, np.ndarray], None],
                 frame_id: str = '', child_frame_id: str = '', **options: Any) -> None:
        super().__init__(
            node, Odometry, topic,
            _fields('pose.pose.position') + _fields('pose.pose.orientation', 'xyzw')
            + _fields('twist.twist.linear') + _fields('twist.twist.angular'), callback,
            frame_id, OdometryReader, (child_frame_id,), **options)


class BoolInput(Input):
    """Bool; calls back with (stamp in ns, value), the stamp being the time of arrival."""

    def __init__(self, node: Any, topic: str, callback: Callable[[int, bool], None],
                 **options: Any) -> None:
        super().__init__(node, Bool, topic, callback, BoolReader, **options)

    @property
    def value(self) -> bool | None:
        """Return the last value; None if there was none yet."""
        return self.reader.arguments[0] if self.stamp_ns is not None else None


class ArrayInput(Input):
    """
    Float64MultiArray of n numbers; calls back with (stamp of arrival, values (n,)).

    Parameters
    ----------
    node, topic, callback, options
        As for the other inputs.
    n
        Number of values each message has to have; None accepts any.

    """

    def __init__(self, node: Any, topic: str, n: int | None,
                 callback: Callable[[int, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, Float64MultiArray, topic, callback, ArrayReader, (n,), **options)
