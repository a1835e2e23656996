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

"""Triangles of boxes, cylinders, spheres and mesh files, light enough for a browser."""

from __future__ import annotations

from dataclasses import dataclass
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.geometry.pose import Array
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_SIDES = 24
#: Closer vertices of mesh files are merged, m; the distance is increased for files with more
#: triangles than the limit.
_DETAIL, _TRIANGLES = 0.002, 2000


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
    angles = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    ring = np.stack((radius * np.cos(angles), radius * np.sin(angles), np.zeros(_SIDES)), axis=1)
    top = np.array((0.0, 0.0, 0.5 * length))
    i = np.arange(_SIDES)
    j = (i + 1) % _SIDES
    mantle = Triangles(np.concatenate((ring - top, ring + top)), np.concatenate((
        np.stack((i, j, j + _SIDES), axis=1), np.stack((i, j + _SIDES, i + _SIDES), axis=1))))
    fan = np.stack((np.full(_SIDES - 2, 0), i[1:-1], i[2:]), axis=1)
    return joined([mantle, Triangles(ring + top, fan), Triangles(ring - top, fan[:, ::-1])])


def sphere(radius: float) -> Triangles:
    """Return a sphere around the origin."""
    rings = _SIDES // 2
    polar = np.pi * np.arange(rings + 1) / rings
    around = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    polar_grid, around_grid = np.meshgrid(polar, around, indexing='ij')
    vertices = radius * np.stack((
        np.sin(polar_grid) * np.cos(around_grid), np.sin(polar_grid) * np.sin(around_grid),
        np.cos(polar_grid)), axis=-1).reshape(-1, 3)
    row, column = (grid.ravel() for grid in np.meshgrid(
        np.arange(rings), np.arange(_SIDES), indexing='ij'))
    a, b = row * _SIDES + column, row * _SIDES + (column + 1) % _SIDES
    # At the poles one of the two triangles of each cell has no area.
    faces = np.concatenate((np.stack((a, a + _SIDES, b), axis=1)[row > 0],
                            np.stack((b, a + _SIDES, b + _SIDES), axis=1)[row < rings - 1]))
    return Triangles(vertices, faces)


def mesh_file(path: Path, scale: Array) -> Triangles:
    """
    Read an STL, DAE, OBJ, PLY or GLB file, and simplify it.

    Parameters
    ----------
    path
        The file.
    scale
        Factors from its coordinates to metres, shape (3,).

    Raises
    ------
    RobotDescriptionError
        If it cannot be read.

    """
    try:
        import trimesh
    except ImportError:
        raise ConfigurationError(
            f"reading '{path}' needs trimesh: pip install trimesh (it comes with viser)") from None
    try:
        mesh: Any = trimesh.load(path, force='mesh', process=False)
        vertices, faces = np.array(mesh.vertices, dtype=np.float64), np.array(mesh.faces)
    except Exception as error:  # noqa: B902 - each format raises other errors
        raise RobotDescriptionError(f"mesh file '{path}' cannot be read: {error}") from None
    if not len(faces) or not np.isfinite(vertices).all():
        raise RobotDescriptionError(f"mesh file '{path}' has no usable triangles")
    surface, detail = Triangles(vertices, faces).moved(np.diag(scale), np.zeros(3)), _DETAIL
    while len((surface := thinned(surface, detail)).faces) > _TRIANGLES:
        # Each triangle covers about detail squared.
        detail *= max(1.15, math.sqrt(len(surface.faces) / _TRIANGLES))
    return surface


def thinned(surface: Triangles, detail: float) -> Triangles:
    """
    Merge vertices that are closer than `detail` and on the same side of an edge.

    The sides are the six directions of the axes: edges stay sharp, and round surfaces smooth.
    """
    corners = surface.vertices[surface.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    axis = np.abs(normals).argmax(axis=1)
    side = 2 * axis + (np.take_along_axis(normals, axis[:, None], axis=1)[:, 0] > 0.0)
    cells = np.round(corners.reshape(-1, 3) / detail).astype(np.int64)
    cells -= cells.min(axis=0)
    _, depth, height = cells.max(axis=0) + 1
    # One number per cell: ten times faster to sort than rows.
    cell = (cells[:, 0] * depth + cells[:, 1]) * height + cells[:, 2]
    # All sides of an edge use the same point, so that there is no gap between them.
    _, cell, count = np.unique(cell, return_inverse=True, return_counts=True)
    sums = [np.bincount(cell, axis) for axis in corners.reshape(-1, 3).T]
    middles = np.stack(sums, axis=1) / count[:, np.newaxis]
    key, number = np.unique(6 * cell + np.repeat(side, 3), return_inverse=True)
    faces = number.reshape(-1, 3)
    corner_cells = np.sort(cell.reshape(-1, 3), axis=1)
    is_whole = (np.diff(corner_cells, axis=1) > 0).all(axis=1)
    return _used(Triangles(middles[key // 6], faces[is_whole])) if is_whole.any() else surface


def _used(surface: Triangles) -> Triangles:
    """Return the surface without unused vertices."""
    kept, faces = np.unique(surface.faces, return_inverse=True)
    return Triangles(surface.vertices[kept], faces.reshape(-1, 3))
