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
The outline of a sole from the URDF's collision geometry.

It includes all that is rigidly fixed to the sole's link; the part within a few millimetres of the
lowest point along the normal of the sole frame touches the ground. Boxes, cylinders, spheres, and
meshes in STL (binary or text) and OBJ files are supported.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import re

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import read_bytes
from biped_com_ros.core.geometry.polygon import convex_hull, Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.shapes import Triangles
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import parse_urdf, shape_in_link
import numpy as np

THICKNESS = 0.005
"""Points less than this above the lowest point of a foot belong to its outline, m."""


def sole_polygon(model: RobotModel, foot: str, thickness: float = THICKNESS) -> tuple[Point, ...]:
    """
    Return the outline of a foot's collision geometry in its sole frame.

    Parameters
    ----------
    model
        The robot.
    foot
        A name of ``config.feet``.
    thickness
        Points less than this above the lowest point count, m.

    Returns
    -------
    tuple of (x, y)
        Corners, counter-clockwise, m.

    Raises
    ------
    UnknownNameError
        If there is no such foot.
    ConfigurationError
        If the foot has no collision geometry, or its mesh cannot be read or spans no area.

    """
    points = _points_of(model, foot)
    touching = points[points[:, 2] <= points[:, 2].min() + thickness]
    corners = convex_hull(touching[:, :2].tolist())
    if len(corners) < 3:
        raise ConfigurationError(
            f"the collision geometry of foot '{foot}' of {model.config.name} touches the ground "
            f'only along {list(corners)}: give feet.{foot}.polygon')
    return corners


def sole_height(model: RobotModel, foot: str) -> float:
    """
    Return how far the lowest point of a foot's collision geometry is above its sole frame, m.

    It is zero where the sole frame lies on the ground; errors as :func:`sole_polygon`.
    """
    return float(_points_of(model, foot)[:, 2].min())


def _points_of(model: RobotModel, foot: str) -> Array:
    points = _collision_points(model, model.foot_index(foot))
    if not len(points):
        raise ConfigurationError(
            f"foot '{foot}' of {model.config.name} has no collision geometry on link "
            f"'{model.config.feet[foot].sole}' or on what is fixed to it: give "
            f'feet.{foot}.polygon')
    return points


def _collision_points(model: RobotModel, index: int) -> Array:
    """Return corners of all collision geometry of a foot, (n, 3), in its sole frame, m."""
    joint = model.soles.joints[index]
    pose_sole_joint = model.soles.poses_in_joint()[index].inverse()
    found = [np.zeros((0, 3))]
    for link in parse_urdf(model.urdf).findall('link'):
        name = str(link.get('name'))
        for collision in link.findall('collision'):
            frames = model.frames((name,))
            if frames.joints[0] == joint:
                in_sole = pose_sole_joint @ frames.poses_in_joint()[0]
                found.append(in_sole.apply(shape_in_link(collision, name, _read_mesh).vertices))
    return np.concatenate(found)


def _read_mesh(path: Path, scale: Array) -> Triangles:
    """Return a surface without faces, since its vertices are all that is needed."""
    readers: dict[str, Callable[[Path], Array]] = {'.stl': _read_stl, '.obj': _read_obj}
    if path.suffix.lower() not in readers:
        raise ConfigurationError(
            f"the outline of a sole cannot be read from '{path}': convert it to STL or OBJ, or "
            "use the polygon of the robot's YAML")
    vertices: Array = readers[path.suffix.lower()](path) * scale
    if not len(vertices) or not np.isfinite(vertices).all():
        raise ConfigurationError(f"mesh '{path}' has no vertices, or some that are not finite")
    return Triangles(vertices, np.zeros((0, 3), dtype=np.int64))


def _read_stl(path: Path) -> Array:
    """Return the vertices (n, 3) of an STL file, binary or text."""
    content = read_bytes(path, 'mesh')
    count = int.from_bytes(content[80:84], 'little')
    if len(content) != 84 + 50 * count:
        return _numbers_after(rb'vertex', content)
    facets = np.frombuffer(content, dtype=[('corners', '<f4', (4, 3)), ('attribute', '<u2')],
                           offset=84, count=count)
    return facets['corners'][:, 1:].reshape(-1, 3).astype(float)


def _read_obj(path: Path) -> Array:
    return _numbers_after(rb'(?:^|\n)[ \t]*v', read_bytes(path, 'mesh'))


def _numbers_after(keyword: bytes, content: bytes) -> Array:
    found = re.findall(keyword + rb'\s+(\S+)\s+(\S+)\s+(\S+)', content)
    return np.array(found, dtype=float).reshape(-1, 3)
