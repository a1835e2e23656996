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
"""What an IMU measures while a robot stands on all feet, judged by its joints."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array
import numpy as np
import pinocchio as pin

_WINDOW_NS = nanoseconds(0.5)
#: Rotation of the IMU over the feet in a window, rad, up to which the robot is at rest.
_LARGEST_TURN = 0.02
#: And displacement of the soles from the IMU as a share of their distance.
_LARGEST_MOVE = 0.02
#: Mean angular velocity, rad/s, beyond which it is no bias.
_LARGEST_BIAS = 0.2
#: Two windows in turn agree on a bias within this, rad/s: nothing began or ceased to turn.
_STEADY = 3e-3
#: A bias that differs too much from the one so far counts after so many windows that agree.
_PATIENCE = 10
#: Share of gravity by which the mean acceleration at rest may be wrong.
_WRONG_SIZE = 0.1
#: Angles, rad, by which it may be off the orientation of the IMU, and the normals of the soles:
#: floors may slope.
_OFF_ORIENTATION, _OFF_SOLES = math.radians(10.0), math.radians(45.0)
#: And the least at which the robot need not be at rest.
_LEAST_SIZE = 0.4
#: Accelerations of so near one are taken for such in g.
_NEAR_ONE = 0.3
_DEGREES = math.degrees(1.0)


class StandingMean(NamedTuple):
    """
    Means over a window; along the axes of the IMU.

    Attributes
    ----------
    seconds
        Length of the window.
    turn
        Rotation of the IMU above the soles by the joints, (3,), rad.
    moved
        Largest displacement of a sole from the IMU within the window, as a share of its distance.
    gyro, acceleration
        Means of the readings, (3,), rad/s and m/s^2.
    normal
        Mean normal of the soles, (3,).

    """

    seconds: float
    turn: Array
    moved: float
    gyro: Array
    acceleration: Array
    normal: Array

    @classmethod
    def of_sample(cls, reading: Array, placements: Array,
                  in_contact: Sequence[bool]) -> StandingMean:
        """Return a single reading (6,) as if the robot were at rest on some of its feet."""
        return cls(0.0, np.zeros(3), 0.0, reading[:3], reading[3:],
                   _soles_in_imu(placements)[np.array(in_contact), :, 2].mean(axis=0))

    @property
    def turns(self) -> bool:
        """Whether the joints turn the IMU."""
        return bool(np.abs(self.turn).max() > _LARGEST_TURN)

    @property
    def is_at_rest(self) -> bool:
        """Whether the joints neither turn nor move the IMU."""
        return not self.turns and self.moved <= _LARGEST_MOVE


class StandingWindow:
    """Windows of half a second in which all feet are in contact."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new window at the next instant."""
        self._since_ns: int | None = None
        self._moved = 0.0

    def update(self, stamp_ns: int, reading: Array, placements: Array,
               is_standing: bool) -> StandingMean | None:
        """
        Update with an instant; return the means where a window is complete.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        reading
            Of gyroscope and accelerometer, (6,), rad/s and m/s^2.
        placements
            Of the soles and, last, the IMU in the base: rows are axes, then the position.
        is_standing
            Whether all feet are in contact.

        """
        if not is_standing:
            self._since_ns = None
            return None
        if self._since_ns is None:
            self._begin(stamp_ns, placements)
            return None
        self._sum += reading
        self._count += 1
        change = _points_in_imu(placements) - self._points
        self._moved = max(self._moved, float((change * change).sum(axis=1).max()))
        if stamp_ns - self._since_ns < _WINDOW_NS:
            return None
        soles = _soles_in_imu(placements)
        turns = [pin.log3(before.dot(after.T)) for before, after in zip(self._soles, soles)]
        mean = self._sum / self._count
        result = StandingMean(
            1e-9 * (stamp_ns - self._since_ns), np.mean(turns, axis=0),
            math.sqrt(self._moved) / float(np.linalg.norm(self._points, axis=1).max()),
            mean[:3], mean[3:], soles[:, :, 2].mean(axis=0))
        self._begin(stamp_ns, placements)
        return result

    def _begin(self, stamp_ns: int, placements: Array) -> None:
        self._since_ns, self._sum, self._count = stamp_ns, np.zeros(6), 0
        self._soles, self._points, self._moved = (
            _soles_in_imu(placements), _points_in_imu(placements), 0.0)


class GyroBias:
    """
    The bias of a gyroscope: what it measures beside the joints, where nothing else turns.

    A robot that turns slowly with its feet, on a turntable or by rocking, shows the same as a
    bias. So two windows have to agree, and a bias that is known does not change at once.
    """

    #: Standard deviation of a measured bias, rad/s: noise of gyroscope and encoders, soft soles.
    DEVIATION = 1e-3

    def __init__(self) -> None:
        self._before: Array | None = None
        self.rejected = 0

    def interrupt(self) -> None:
        """Begin anew: the robot does not stand on all feet."""
        self._before, self.rejected = None, 0

    def measure(self, mean: StandingMean, bias: Array, deviation: float) -> Array | None:
        """
        Return a measured bias (3,), rad/s, or None where it may be something else.

        Parameters
        ----------
        mean
            Of a window.
        bias, deviation
            The bias so far, (3,), and the standard deviation of each component, rad/s.

        """
        measured: Array = mean.gyro - mean.turn / mean.seconds
        before, self._before = self._before, measured
        if mean.turns or np.abs(mean.gyro).max() > _LARGEST_BIAS:
            self._before = None
            return None
        if before is None or np.abs(measured - before).max() > _STEADY:
            self.rejected = 0
            return None
        if np.abs(measured - bias).max() > 4.0 * math.hypot(deviation, self.DEVIATION):
            self.rejected += 1
            return measured if self.rejected > _PATIENCE else None
        self.rejected = 0
        return measured


def gyroscope_problem(mean: StandingMean) -> str | None:
    """Return what is wrong with the gyroscope; '' if it is right, None where nothing turns it."""
    if not mean.turns:
        return None
    turned, legs = np.linalg.norm(mean.gyro) * mean.seconds, np.linalg.norm(mean.turn)
    if abs(turned / legs - _DEGREES) < 0.3 * _DEGREES:
        return (f'the gyroscope turns by {turned:.1f} where the joints turn by {legs:.2f} rad: it '
                'is in deg/s; have its driver publish rad/s')
    return ''


def accelerometer_problem(mean: StandingMean, up: Array | None, gravity: float) -> str | None:
    """
    Return what is wrong with the accelerometer; '' if it is right, None where the robot moves.

    Parameters
    ----------
    mean
        Of a window in which the robot stands.
    up
        Upward along the axes of the IMU by its orientation, (3,); None if it has none.
    gravity
        m/s^2.

    """
    if not mean.is_at_rest:
        return None
    obvious = starting_problem(mean, gravity)
    if obvious:
        return obvious
    size = float(np.linalg.norm(mean.acceleration))
    if abs(size - gravity) > _WRONG_SIZE * gravity:
        return (f'at rest the accelerometer measures {size:.2f} m/s^2 instead of {gravity:.2f}: '
                'have its driver publish m/s^2, or calibrate it')
    for direction, limit, name in ((up, _OFF_ORIENTATION, "the IMU's orientation"),
                                   (mean.normal, _OFF_SOLES, 'the soles')):
        if direction is None:
            continue
        angle = _angle(mean.acceleration, direction)
        if angle > limit:
            return (f'at rest the accelerometer measures upward {math.degrees(angle):.0f} deg off '
                    f'{name}: check the frame of the IMU in the URDF and how it is mounted')
    return ''


def starting_problem(mean: StandingMean, gravity: float) -> str:
    """Return what is so wrong with an accelerometer that it shows while the robot moves, too."""
    size = float(np.linalg.norm(mean.acceleration))
    measured = f'the accelerometer measures {size:.2f} m/s^2 instead of about {gravity:.2f}'
    if abs(size - 1.0) < _NEAR_ONE:
        return f'{measured}: it is in g; have its driver multiply by 9.80665'
    if size < _LEAST_SIZE * gravity:
        return (f'{measured}: gravity was taken off; have its driver publish the raw (proper) '
                'acceleration')
    if _angle(mean.acceleration, mean.normal) > math.pi - _OFF_SOLES:
        return (f'the accelerometer measures {size:.2f} m/s^2 downward: its sign is reversed; '
                'have its driver publish +9.81 along the axis that points up')
    return ''


def _angle(a: Array, b: Array) -> float:
    """Return the angle between two vectors, rad."""
    return math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a.dot(b)))


def _points_in_imu(placements: Array) -> Array:
    """Return the origin of each sole in the IMU, shape (F, 3), m."""
    points: Array = (placements[:-1, 3] - placements[-1, 3]).dot(placements[-1, :3].T)
    return points


def _soles_in_imu(placements: Array) -> Array:
    """Return ``R_imu_sole`` of each foot, shape (F, 3, 3)."""
    R_imu_base: Array = placements[-1, :3]
    return np.matmul(R_imu_base, placements[:-1, :3].transpose(0, 2, 1))
