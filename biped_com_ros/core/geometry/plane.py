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
"""Planes in the world, such as the ground under the soles."""

from __future__ import annotations

from collections.abc import Iterable
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, components, Vector
import numpy as np


class Plane(NamedTuple):
    """
    A plane in the world, with axes of its own.

    Python floats: one is made at every instant.

    Attributes
    ----------
    x_axis, y_axis, normal
        Its axes along those of the world; the last one is the unit normal.
    origin
        A point of the plane, m.

    """

    x_axis: Vector
    y_axis: Vector
    normal: Vector
    origin: Vector

    @staticmethod
    def with_normal(normal: Iterable[float], origin: Iterable[float]) -> Plane:
        """
        Build from a normal of any length and a point, three numbers each.

        The plane's x axis is the world's, turned as little as needed.

        Raises
        ------
        InputError
            If the normal has no direction, or the plane is upright.

        """
        nx, ny, nz = normal
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if not nz > 0.05 * length:
            raise InputError(
                f'the ground cannot have the normal ({nx:.3g}, {ny:.3g}, {nz:.3g}): its z must be '
                'positive (check the direction of the sole frames)')
        nx, ny, nz = nx / length, ny / length, nz / length
        level = math.hypot(nx, nz)
        xx, xz = nz / level, -nx / level  # across y and the normal
        x, y, z = origin
        return Plane((xx, 0.0, xz), (ny * xz, nz * xx - nx * xz, -ny * xx), (nx, ny, nz),
                     (x, y, z))

    @staticmethod
    def level(height: float) -> Plane:
        """Return the level plane at a height, m."""
        return Plane((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, height))

    @property
    def height(self) -> float:
        """Distance of the plane from the world's origin along the normal, m."""
        (nx, ny, nz), (x, y, z) = self.normal, self.origin
        return nx * x + ny * y + nz * z

    @property
    def rotation(self) -> Array:
        """``R_world_plane``, shape (3, 3)."""
        return np.array(self[:3]).T

    def to_plane(self, points: Array) -> Array:
        """Return points (..., 3) of the world along the axes of the plane, the height last."""
        return (points - self.origin).dot(self.rotation)

    def coordinates(self, x: float, y: float, z: float) -> Vector:
        """Return what :meth:`to_plane` does, of one point as Python floats."""
        ox, oy, oz = self.origin
        return components(self[:3], x - ox, y - oy, z - oz)

    def to_world(self, points: Array) -> Array:
        """Return points (..., 2) of the plane in the world, (..., 3)."""
        in_world: Array = points.dot(np.array((*self.x_axis, *self.y_axis)).reshape(2, 3))
        in_world += np.array(self.origin)
        return in_world

    def height_at(self, x: float, y: float) -> float:
        """Return how high the plane is above or below a point of the world, m."""
        (nx, ny, nz), (ox, oy, oz) = self.normal, self.origin
        return oz - ((x - ox) * nx + (y - oy) * ny) / nz

    def below(self, point: Array) -> Array:
        """Return the point (3,) of the plane straight above or below a point (3,)."""
        x, y, _ = point.tolist()
        return np.array((x, y, self.height_at(x, y)))
