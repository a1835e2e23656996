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
"""Rigid placements; ``R_A_B`` and ``p_B_in_A`` are the pose of frame B in A. The footprint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]
Vector = tuple[float, float, float]
"""A vector as Python floats: on single vectors two to three times faster than arrays."""
Placement = Sequence[Sequence[float]]
"""Pose of a frame as Python floats, four rows: x, y and z axis, then the origin, m."""


class _Placed(NamedTuple):
    rotation: Array
    position: Array


class Pose(_Placed):
    """
    Pose of a frame B in a frame A; immutable.

    Attributes
    ----------
    rotation
        ``R_A_B``, shape (3, 3): takes coordinates in B to coordinates in A.
    position
        Origin of B in A, shape (3,), m.

    """

    _numbers: tuple[list[list[float]], list[float]] | None = None
    _rows: Array | None = None

    @staticmethod
    def identity() -> Pose:
        """Return the pose of a frame in itself."""
        return Pose(np.eye(3), np.zeros(3))

    @staticmethod
    def translation(position: Sequence[float] | Array) -> Pose:
        """Return the pose of a frame with the same axes whose origin is at a position (3,)."""
        return Pose(np.eye(3), np.asarray(position, dtype=float))

    @staticmethod
    def from_quaternion(quaternion: Array, position: Array) -> Pose:
        """Build from a quaternion (x, y, z, w), normalised here, and a position (3,)."""
        return Pose(rotation_from_quaternion(quaternion), np.asarray(position, dtype=float))

    @staticmethod
    def from_rpy(rpy: tuple[float, float, float] | Array, position: Array) -> Pose:
        """Build from fixed-axis roll, pitch, yaw as in URDF (rad) and a position (3,)."""
        return Pose(pin.rpy.rpyToMatrix(np.asarray(rpy, dtype=float)),
                    np.asarray(position, dtype=float))

    @property
    def quaternion(self) -> Array:
        """Quaternion (x, y, z, w) of the rotation."""
        return quaternion_from_rotation(self.rotation)

    def turn(self, x: float, y: float, z: float) -> Vector:
        """Return the coordinates in A of one vector with coordinates in B."""
        return components(self.numbers[0], x, y, z)

    def place(self, x: float, y: float, z: float) -> Vector:
        """Return the coordinates in A of one point of B."""
        axes, (px, py, pz) = self.numbers
        x, y, z = components(axes, x, y, z)
        return x + px, y + py, z + pz

    def apply(self, points_in_b: Array) -> Array:
        """Return the coordinates in A of points (..., 3) of B."""
        # For such small arrays `dot` takes less than half of the time of `@`.
        points: Array = points_in_b.dot(self.rotation.T)
        points += self.position
        return points

    @property
    def numbers(self) -> tuple[list[list[float]], list[float]]:
        """Rotation and position as Python floats; made once."""
        if self._numbers is None:
            self._numbers = self.rotation.tolist(), self.position.tolist()
        return self._numbers

    @property
    def rows(self) -> Array:
        """Matrix (4, 3): homogeneous points of B times it are points of A; made once."""
        if self._rows is None:
            self._rows = np.empty((4, 3))
            self._rows[:3] = self.rotation.T
            self._rows[3] = self.position
        return self._rows

    def inverse(self) -> Pose:
        """Return the pose of A in B."""
        return Pose(self.rotation.T, -self.rotation.T @ self.position)

    def __matmul__(self, other: Pose) -> Pose:
        """Chain: (B in A) @ (C in B) is C in A."""
        return Pose(self.rotation.dot(other.rotation), self.apply(other.position))


def rotation_from_quaternion(quaternion: Array) -> Array:
    """
    Return the rotation (3, 3) of a quaternion (x, y, z, w) of any non-zero norm, read-only.

    Raises
    ------
    InputError
        If the norm is zero (as in a message without orientation) or not finite.

    """
    x, y, z, w = np.asarray(quaternion, dtype=float).tolist()
    return _rotation(x, y, z, w)


@lru_cache(maxsize=4)  # nodes of one process convert the same one, soon after each other
def _rotation(x: float, y: float, z: float, w: float) -> Array:
    # Plain floats and one flat array: a third of the time of arithmetic on NumPy scalars.
    norm_squared = x * x + y * y + z * z + w * w
    if not 1e-12 < norm_squared < math.inf:
        raise InputError(
            f'quaternion (x {x}, y {y}, z {z}, w {w}) is not a rotation; its norm must be 1')
    s = 2.0 / norm_squared
    rotation = np.array((
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y))).reshape(3, 3)
    rotation.setflags(write=False)
    return rotation


def rotation_about(axis: int, angle: float) -> Array:
    """Return the rotation (3, 3) about x, y or z (0, 1, 2) by an angle, rad."""
    rotation, (i, k) = np.eye(3), ((axis + 1) % 3, (axis + 2) % 3)
    c, s = math.cos(angle), math.sin(angle)
    rotation[i, i] = rotation[k, k] = c
    rotation[k, i], rotation[i, k] = s, -s
    return rotation


def turned(quaternion: Array, angular_velocity: Array, dt: float) -> Array:
    """
    Return the orientation `dt` seconds later, to first order; not normalised.

    Parameters
    ----------
    quaternion
        Orientation of a frame (x, y, z, w).
    angular_velocity
        Of that frame, along its own axes as a gyroscope reads it, shape (3,), rad/s.
    dt
        Seconds; may be negative. Short: the error is ``(|omega| dt)^3 / 12`` rad.

    """
    x, y, z, w = quaternion.tolist()
    a, b, c = (0.5 * dt * angular_velocity).tolist()
    return np.array((x + w * a + y * c - z * b, y + w * b + z * a - x * c,
                     z + w * c + x * b - y * a, w - x * a - y * b - z * c))


def quaternion_from_rotation(rotation: Array) -> Array:
    """Return the quaternion (x, y, z, w) of a rotation (3, 3)."""
    # By columns: of other matrices the constructor makes a copy that is never freed.
    return np.array(pin.Quaternion(np.asfortranarray(rotation)).coeffs())


def cross(a: Array, b: Array) -> Array:
    """Return a x b of two vectors (3,); for these sizes ten times faster than numpy.cross."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array((a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0))


def combined(axes: Sequence[Sequence[float]], x: float, y: float, z: float) -> Vector:
    """Return ``x axes[0] + y axes[1] + z axes[2]``: the vector with these components."""
    (a, b, c), (d, e, f), (g, h, i) = axes
    return a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + i * z


def components(axes: Sequence[Sequence[float]], x: float, y: float, z: float) -> Vector:
    """Return the scalar products of three axes with a vector: its components along the axes."""
    (a, b, c), (d, e, f), (g, h, i) = axes
    return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z


def heading_of(rotation: Array) -> tuple[float, float]:
    """Cosine and sine of a frame's heading; (1, 0) where its x axis is vertical."""
    x, y = rotation.item(0, 0), rotation.item(1, 0)
    length = math.hypot(x, y)
    return (x / length, y / length) if length else (1.0, 0.0)


def yaw_of(rotation: Array) -> float:
    """Heading of a frame's x axis about the vertical, rad."""
    return float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def footprint_position(soles_in_world: Array, in_contact: Sequence[bool] | Array) -> Array:
    """
    Return the origin of ``base_footprint``.

    Parameters
    ----------
    soles_in_world
        Origins of the soles, shape (n, 3), m, z up.
    in_contact
        Which of them are on the ground, n booleans. With none, all count.

    Returns
    -------
    numpy.ndarray
        Shape (3,), m: x and y are the mean of these soles, z is the lowest of them.

    """
    return np.array(mean_sole(soles_in_world.tolist(), in_contact))


def mean_sole(soles_in_world: Sequence[Sequence[float]],
              in_contact: Sequence[bool] | Array) -> Vector:
    """Return :func:`footprint_position` with Python floats: with few soles twice as fast."""
    supporting = [sole for sole, touches in zip(soles_in_world, in_contact) if touches]
    xs, ys, zs = zip(*(supporting or soles_in_world))
    return sum(xs) / len(xs), sum(ys) / len(ys), min(zs)


def footprint_pose(base: Pose, soles_in_world: Array, in_contact: Sequence[bool] | Array) -> Pose:
    """
    Return ``base_footprint`` (REP-120): level, heading as the base, on the floor.

    Parameters
    ----------
    base
        Pose of the base frame (x forward, REP-103) in a world frame with z up.
    soles_in_world, in_contact
        As in :func:`footprint_position`, in the same world.

    """
    c, s = heading_of(base.rotation)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return Pose(rotation, footprint_position(soles_in_world, in_contact))
