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

"""Surfaces from mesh files, light enough for a browser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.files import read_bytes
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.shapes import Indices, Triangles
from biped_com_ros.core.plain_xml import check_no_document_type
import numpy as np

FORMATS = ('.stl', '.dae', '.obj', '.ply', '.glb', '.gltf')
"""Suffixes of mesh files that are drawn; trimesh reads more, among them archives."""
LARGEST_MESH = 256 * 1024 ** 2
"""Bytes of the largest mesh file."""

#: Closer vertices of mesh files are merged, m; the distance is increased for files with more
#: triangles than the limit.
_DETAIL, _TRIANGLES = 0.002, 3500


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
    if path.suffix.lower() not in FORMATS:
        raise RobotDescriptionError(
            f"mesh file '{path}' is not drawn: valid are {', '.join(FORMATS)}")
    content = read_bytes(path, 'mesh file', LARGEST_MESH)
    if path.suffix.lower() == '.dae':
        check_no_document_type(content, f"mesh file '{path}'")
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
    surface, detail = Triangles(vertices, outward(vertices, faces)).moved(
        np.diag(scale), np.zeros(3)), _DETAIL
    while len((surface := thinned(surface, detail)).faces) > _TRIANGLES:
        # Each triangle covers about detail squared.
        detail *= max(1.15, math.sqrt(len(surface.faces) / _TRIANGLES))
    return surface


def outward(vertices: Array, faces: Indices) -> Indices:
    """Return faces (F, 3) turned around where the enclosed volume is negative."""
    # Relative to the middle, so that holes hardly count.
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[faces], 1, 0)
    volume = float(np.einsum('ij,ij->', np.cross(a, b), c))
    return faces if volume >= 0.0 else faces[:, ::-1]


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
