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
Subscriptions that pass on good data only.

Each message is checked before its callback runs: structure (names, frame), stamp, finite and
possible values. Refused messages are counted by reason, logged at most once per 5 s and reason,
and shown in ``/diagnostics``, where a sensor without messages is an ERROR. Arrays passed to
callbacks are reused for the next message, and shared by the nodes of a suite: they cannot be
written to; copy what has to last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from biped_com_ros.ros.fast.joint_state_reader import JointStateReader
from biped_com_ros.ros.fast.vector_reader import (
    ArrayReader, BoolReader, has_orientation, ImuReader, OdometryReader, StampedArrayReader,
    VectorReader, WrenchReader)
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.topics.input_base import Input
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState, Temperature
from std_msgs.msg import Bool, Float64MultiArray

__all__ = [
    'ArrayInput', 'BoolInput', 'ImuInput', 'Input', 'JointStateInput', 'OdometryInput',
    'PointInput', 'StampedArrayInput', 'TemperatureInput', 'Vector3Input', 'VectorInput',
    'WrenchInput']

#: Callbacks with the stamp in ns and one array, or three.
OneArray = Callable[[int, np.ndarray], None]
ThreeArrays = Callable[[int, np.ndarray, np.ndarray, np.ndarray], None]

#: Largest credible temperature of a sensor, deg C.
HOTTEST = 200.0

#: Time, s, and number of messages without any change of the values after which they are a fault.
FROZEN_AFTER, FROZEN_COUNT = 5.0, 50


def _fields(prefix: str, names: str = 'xyz') -> tuple[str, ...]:
    return tuple(f'{prefix}.{name}' for name in names)


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
    reader, options
        A class for a particular message type, and what it needs besides.
    others
        See `Input`.

    """

    reader: VectorReader

    def __init__(self, node: Node, message_type: type, topic: str, fields: Sequence[str],
                 callback: Callable[..., None], frame_id: str = '',
                 reader: type[VectorReader] = VectorReader, options: tuple[Any, ...] = (),
                 **others: Any) -> None:
        super().__init__(node, message_type, topic, callback, reader,
                         (tuple(fields), frame_id, *options), **others)

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
    A sensor, which has one publisher, and noise in the last digits of its values.

    Both are checked when diagnostics are published, so that messages take no more time.

    Attributes
    ----------
    noisy
        Whether there is such noise: not if what is computed from sensors is exactly zero at rest.

    """

    noisy = True
    _since, _from, _before = 0.0, 0, b''

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        level, message, values = super().report()
        problem = self._frozen() or self._mixed()
        return (WARN, problem, values) if level == OK and problem else (level, message, values)

    def _frozen(self) -> str:
        now, latest = steady_time(), self.values.tobytes()
        if latest != self._before:
            self._since, self._from, self._before = now, self.count, latest
        if not self.noisy or (now - self._since < FROZEN_AFTER
                              or self.count - self._from < FROZEN_COUNT):
            return ''
        return (f"'{self.topic}': messages are received, but their values have not changed for "
                f'{now - self._since:.0f} s: the sensor or its driver hangs; restart it')

    def _mixed(self) -> str:
        publishers = self.node.count_publishers(self.topic)
        return '' if publishers < 2 else (
            f"'{self.topic}': {publishers} publishers, whose messages are mixed: end all but one")


class WrenchInput(SensorInput):
    """
    WrenchStamped; calls back with (stamp in ns, wrench (6,)), force first, in its frame.

    With `force_z` the vertical force alone is read, the rest is 0; a pad has no noise in the air.
    `factors` are what the values will be multiplied by to be N and N m.
    """

    def __init__(self, node: Node, topic: str, frame_id: str, callback: OneArray,
                 noisy: bool = True, force_z: bool = False, factors: Sequence[float] = (1.0,) * 6,
                 **options: Any) -> None:
        self.noisy = noisy and not force_z
        fields = _fields('wrench.force') + _fields('wrench.torque')
        read = slice(2, 3) if force_z else slice(6)
        super().__init__(node, WrenchStamped, topic, fields[read], callback, frame_id,
                         WrenchReader, (tuple(factors[read]),), **options)


class PointInput(VectorInput):
    """PointStamped; calls back with (stamp in ns, point (3,))."""

    def __init__(self, node: Node, topic: str, frame_id: str, callback: OneArray,
                 **options: Any) -> None:
        fields = _fields('point')
        super().__init__(node, PointStamped, topic, fields, callback, frame_id, **options)


class Vector3Input(VectorInput):
    """Vector3Stamped; calls back with (stamp in ns, vector (3,))."""

    def __init__(self, node: Node, topic: str, frame_id: str, callback: OneArray,
                 **options: Any) -> None:
        fields = _fields('vector')
        super().__init__(node, Vector3Stamped, topic, fields, callback, frame_id, **options)


class TemperatureInput(VectorInput):
    """Temperature; calls back with (stamp in ns, its value, deg C, as (1,))."""

    def __init__(self, node: Node, topic: str, callback: OneArray, **options: Any) -> None:
        super().__init__(node, Temperature, topic, ('temperature',), callback,
                         largest=HOTTEST, **options)


class ImuInput(SensorInput):
    """
    Imu; calls back with the stamp in ns and three arrays.

    These are the quaternion xyzw (4,), angular velocity (3,) and acceleration (3,). Unless
    `need_orientation` is False, the orientation of messages without one (first covariance -1,
    REP-145, or a quaternion of zeros) is found by gyroscope and accelerometer, and quaternions
    whose length is not 1 within 1 % are refused. What is not used may be NaN: an orientation that
    is not there, and unless `need_acceleration`, the acceleration beside an orientation.
    With a `tilt`, a rotation vector, the sensor is turned by it about the axes of its link; all
    values are turned back.
    """

    def __init__(self, node: Node, topic: str, frame_id: str, callback: ThreeArrays,
                 need_orientation: bool = True, tilt: tuple[float, float, float] | None = None,
                 need_acceleration: bool = False, **options: Any) -> None:
        super().__init__(
            node, Imu, topic,
            _fields('orientation', 'xyzw') + _fields('angular_velocity')
            + _fields('linear_acceleration') + ('orientation_covariance.0',), callback,
            frame_id, ImuReader, (need_orientation, tilt, need_acceleration), **options)

    @property
    def has_orientation(self) -> bool:
        """Whether the last message has an orientation of its own."""
        return has_orientation(self.values.tolist())

    def report(self) -> Report:
        """Return a report that says where the orientation comes from."""
        level, text, values = super().report()
        if level == OK and not self.has_orientation:
            text += ('; its messages have no orientation: accelerometer and gyroscope give the '
                     'vertical, and the heading drifts')
        return level, text, values


class OdometryInput(VectorInput):
    """
    Odometry; calls back with (stamp in ns, position (3,), quaternion xyzw (4,), twist (6,)).

    Without `need_twist` the twist may be anything, NaN included.
    """

    def __init__(self, node: Node, topic: str, callback: ThreeArrays,
                 frame_id: str = '', child_frame_id: str = '', need_twist: bool = True,
                 **options: Any) -> None:
        super().__init__(
            node, Odometry, topic,
            _fields('pose.pose.position') + _fields('pose.pose.orientation', 'xyzw')
            + _fields('twist.twist.linear') + _fields('twist.twist.angular'), callback,
            frame_id, OdometryReader, (child_frame_id, need_twist), **options)


class BoolInput(Input):
    """Bool; calls back with (stamp in ns, value), the stamp being the time of arrival."""

    def __init__(self, node: Node, topic: str, callback: Callable[[int, bool], None],
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

    def __init__(self, node: Node, topic: str, n: int | None, callback: OneArray,
                 **options: Any) -> None:
        super().__init__(node, Float64MultiArray, topic, callback, ArrayReader, (n,), **options)


class StampedArrayInput(Input):
    """
    Float64MultiArray of n numbers behind a stamp; see `StampedArrayPublisher`.

    Calls back with (stamp in ns, values (n,)).
    """

    def __init__(self, node: Node, topic: str, n: int, callback: OneArray, **options: Any) -> None:
        super().__init__(
            node, Float64MultiArray, topic, callback, StampedArrayReader, (n,), **options)


class JointStateInput(Input):
    """
    JointState in a fixed order of joints.

    Calls back with (stamp in ns, positions (n,), velocities (n,), efforts (n,)) in the order of
    `joint_names` followed by `optional_joints`; other joints in the messages are ignored. Where
    several nodes publish parts of the robot on one topic, the parts are put together: once every
    joint was received, each message of the largest part calls back, as long as no part is older
    than `timeout`. Smaller parts are extrapolated to the stamp of the largest by their velocities,
    if these are measured.

    Velocities that are not measured (empty or, as ros2_control reports them, NaN) are filtered
    backward differences of the positions; efforts that are not measured are zero (see
    `efforts_measured`). A velocity or effort that becomes NaN later is refused like a position,
    until it was NaN for `timeout`: then it is not measured any more.

    Parameters
    ----------
    node, topic
        Where to subscribe.
    joint_names
        Required joints.
    callback
        Gets good data; the arrays are reused.
    optional_joints
        Joints that may be missing; they are zero then.
    timeout
        Age at which a part, and the input, are stale, s.
    limits
        Least and largest position of each joint; messages beyond are refused. Default: none.
    offsets
        Subtracted from the position of each joint, see `RobotModel.corrections_of`. Default:
        none.
    torque_offsets, torque_gains
        Subtracted from the effort of each joint, whose rest is divided by one plus the gain.
        Default: none.
    uses_velocities
        Whether velocities that are missing are reported.
    other_joints
        Joints of another publisher on the same topic; messages with only these are ignored.
    options
        See `Input`.

    Attributes
    ----------
    joint_names
        All joints.

    """

    reader: JointStateReader

    def __init__(self, node: Node, joint_names: Sequence[str], callback: ThreeArrays,
                 topic: str = 'joint_states', optional_joints: Sequence[str] = (),
                 timeout: float = 0.5, limits: tuple[tuple[float, float], ...] = (),
                 offsets: tuple[float, ...] = (), torque_offsets: tuple[float, ...] = (),
                 torque_gains: tuple[float, ...] = (), uses_velocities: bool = False,
                 other_joints: Sequence[str] = (), **options: Any) -> None:
        self.joint_names = (*joint_names, *optional_joints)
        self._uses_velocities, self._has_lacked = uses_velocities, False
        super().__init__(
            node, JointState, topic, callback, JointStateReader,
            (self.joint_names, len(joint_names), timeout, limits, offsets, tuple(other_joints),
             torque_offsets, torque_gains),
            timeout=timeout, **options)

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        level, message, values = super().report()
        if self.reader.conflict and self.is_refusing:
            return ERROR, f"'{self.topic}': {self.reader.conflict}", values
        lacks = self._uses_velocities and self.count > 0 and not self.velocities_measured
        if lacks and not self._has_lacked:
            self.node.get_logger().warning(
                f"'{self.topic}' has no velocities, or not of all joints: differences of "
                'positions are used, which are noisy and 10 ms late; add them to the driver if it '
                'has them')
        self._has_lacked = lacks
        if lacks:
            message += '; no velocities: differences of positions are used'
        return level, message, values

    @property
    def positions(self) -> np.ndarray:
        """Return the last good positions, shape (n,): the array that callbacks get."""
        return self.reader.arguments[0]

    @property
    def velocities(self) -> np.ndarray:
        """Return the last good velocities, shape (n,)."""
        return self.reader.arguments[1]

    @property
    def efforts(self) -> np.ndarray:
        """Return the last good efforts, shape (n,)."""
        return self.reader.arguments[2]

    @property
    def velocities_measured(self) -> bool:
        """Whether all velocities are measured."""
        return self.reader.measures('velocity')

    @property
    def efforts_measured(self) -> bool:
        """Whether all efforts are measured."""
        return self.reader.measures('effort')

    @property
    def timeout(self) -> float:
        """Seconds without good data after which the input, or a part of the robot, is dead."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        if seconds == self._timeout:
            return
        self._timeout = seconds
        names, count, _, *others = self.reader.spec.options
        self._read_differently(options=(names, count, seconds, *others))
