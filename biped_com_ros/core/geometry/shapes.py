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

"""Surfaces of boxes, cylinders and spheres, made of triangles."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

SIDES = 32
"""Corners that stand for a circle."""


@dataclass(frozen=True)
class Triangles:
    """
    A surface.

    Attributes
    ----------
    vertices
        Shape (V, 3), m; those of sharp edges are there once per side.
    faces
        Indices into the vertices, shape (F, 3), counterclockwise from outside.

    """

    vertices: Array
    faces: Indices

    def moved(self, rotation: Array, position: Array) -> Triangles:
        """Return the surface in another frame; `rotation` may mirror, then faces turn around."""
        faces = self.faces if np.linalg.det(rotation) > 0.0 else self.faces[:, ::-1]
        return Triangles(self.vertices @ rotation.T + position, faces)


def joined(parts: list[Triangles]) -> Triangles:
    """Return several surfaces as one."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return Triangles(np.concatenate([part.vertices for part in parts]), np.concatenate(
        [part.faces + start for part, start in zip(parts, starts)]))


def box(size: Array) -> Triangles:
    """Return a box of `size` (3,) around the origin, six sides with corners of their own."""
    square = np.array([(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)], dtype=float)
    turns = [np.roll(np.eye(3), k, axis=0) for k in range(3)]
    sides = [Triangles(square, np.array([(0, 1, 2), (0, 2, 3)])).moved(turn * sign, np.zeros(3))
             for turn in turns for sign in (1.0, -1.0)]
    whole = joined(sides)
    return Triangles(0.5 * np.asarray(size) * whole.vertices, whole.faces)


def cylinder(radius: float, length: float) -> Triangles:
    """Return a cylinder along z around the origin."""
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    ring = np.stack((radius * np.cos(angles), radius * np.sin(angles), np.zeros(SIDES)), axis=1)
    top = np.array((0.0, 0.0, 0.5 * length))
    i = np.arange(SIDES)
    j = (i + 1) % SIDES
    mantle = Triangles(np.concatenate((ring - top, ring + top)), np.concatenate((
        np.stack((i, j, j + SIDES), axis=1), np.stack((i, j + SIDES, i + SIDES), axis=1))))
    fan = np.stack((np.full(SIDES - 2, 0), i[1:-1], i[2:]), axis=1)
    return joined([mantle, Triangles(ring + top, fan), Triangles(ring - top, fan[:, ::-1])])


def sphere(radius: float) -> Triangles:
    """Return a sphere around the origin."""
    rings = SIDES // 2
    polar = np.pi * np.arange(rings + 1) / rings
    around = 2.0 * np.pi * np.arange(SIDES) / SIDES
    polar_grid, around_grid = np.meshgrid(polar, around, indexing='ij')
    vertices = radius * np.stack((
        np.sin(polar_grid) * np.cos(around_grid), np.sin(polar_grid) * np.sin(around_grid),
        np.cos(polar_grid)), axis=-1).reshape(-1, 3)
    row, column = (grid.ravel() for grid in np.meshgrid(
        np.arange(rings), np.arange(SIDES), indexing='ij'))
    a, b = row * SIDES + column, row * SIDES + (column + 1) % SIDES
    # At the poles one of the two triangles of each cell has no area.
    faces = np.concatenate((np.stack((a, a + SIDES, b), axis=1)[row > 0],
                            np.stack((b, a + SIDES, b + SIDES), axis=1)[row < rings - 1]))
    return Triangles(vertices, faces)
