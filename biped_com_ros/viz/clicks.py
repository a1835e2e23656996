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
"""Where a click meets the robot, and the push that it means."""

from __future__ import annotations

from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.shapes import Triangles
from biped_com_ros.core.model.robot import RobotModel, RobotState
import numpy as np

#: Rays that are steeper than this (horizontal part of the unit vector) push along themselves.
_STEEP = 0.2


class Click(NamedTuple):
    """
    A click on a surface of the robot.

    Attributes
    ----------
    joint
        Index of the joint that carries the surface.
    triangles
        The surface, in the frame of the joint.
    origin, direction
        Of the ray from the camera, in the world, (3,), m.

    """

    joint: int
    triangles: Triangles
    origin: Array
    direction: Array


class PointPush(NamedTuple):
    """
    A push on a point of a link.

    Attributes
    ----------
    link
        Its name.
    arm
        From the centre of mass of what the joint carries to the point, along world axes, (3,), m.
    direction
        In the world, (3,), of length 1.

    """

    link: str
    arm: tuple[float, ...]
    direction: tuple[float, ...]


def push_of(click: Click, R_world_joint: Array, joint_in_world: Array, model: RobotModel,
            state: RobotState) -> PointPush | None:
    """
    Return the push that a click means: horizontal, away from whoever clicks.

    Parameters
    ----------
    click
        The click.
    R_world_joint, joint_in_world
        Pose of the joint in the world, (3, 3) and (3,), m.
    model, state
        The robot, and its state with the base in the world.

    Returns
    -------
    PointPush or None
        None if the ray misses the surface, or the joint carries no link with a mass.

    """
    length = float(np.linalg.norm(click.direction))
    rows = np.flatnonzero(model.frames(model.link_names).joints == click.joint)
    if not np.isfinite(click.origin).all() or not 0.0 < length < np.inf or not len(rows):
        return None
    ray = click.direction / length
    distance = first_hit(click.triangles, R_world_joint.T @ (click.origin - joint_in_world),
                         R_world_joint.T @ ray)
    if distance is None:
        return None
    masses = model.link_masses[rows]
    com_in_base = masses @ state.link_coms_in_base[rows] / masses.sum()
    arm = click.origin + distance * ray - state.base.apply(com_in_base)
    level = ray * (1.0, 1.0, 0.0)
    direction = level if np.linalg.norm(level) > _STEEP else ray
    return PointPush(model.link_names[rows[masses.argmax()]], tuple(map(float, arm)),
                     tuple(map(float, direction / np.linalg.norm(direction))))


def first_hit(triangles: Triangles, origin: Array, direction: Array) -> float | None:
    """
    Return the distance at which a ray first meets a surface, from either side.

    Parameters
    ----------
    triangles
        The surface.
    origin, direction
        In its frame, (3,), m and of length 1.

    Returns
    -------
    float or None
        In m; None if it does not meet it. By the barycentric coordinates of the point in the
        plane of each triangle (Moeller and Trumbore, 1997).

    """
    a, b, c = (triangles.vertices[triangles.faces[:, i]] for i in range(3))
    ab, ac, from_a = b - a, c - a, origin - a
    normal = np.cross(direction, ac)
    determinant = (ab * normal).sum(axis=1)
    with np.errstate(divide='ignore', invalid='ignore'):  # triangles along the ray
        u = (from_a * normal).sum(axis=1) / determinant
        across = np.cross(from_a, ab)
        v = across @ direction / determinant
        distance = (across * ac).sum(axis=1) / determinant
        met = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (distance > 0.0)
    return float(distance[met].min()) if met.any() else None
