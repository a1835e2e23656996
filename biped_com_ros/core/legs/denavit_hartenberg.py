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
Denavit and Hartenberg's description of a chain of joints, as Wang et al. (1) and (2) use it.

It exists for every chain of revolute joints between two links of a URDF: up from the first link to
where the ways to both part, and down to the second, as from one foot to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

_PARALLEL = 1e-9


class Row(NamedTuple):
    """
    What stays constant of one joint.

    Attributes
    ----------
    offset, translation
        About and along the joint's axis: added to the joint's position, rad, and m.
    length, twist
        Along and about the common normal of this axis and the next one, m and rad.

    """

    offset: float
    translation: float
    length: float
    twist: float

    def matrix(self, position: float) -> Array:
        """Return the pose of the next frame in this one, (4, 4): Wang et al., (1)."""
        (c, s), (ct, st) = ((math.cos(a), math.sin(a))
                            for a in (position + self.offset, self.twist))
        return np.array(((c, -s * ct, s * st, self.length * c),
                         (s, c * ct, -c * st, self.length * s),
                         (0.0, st, ct, self.translation),
                         (0.0, 0.0, 0.0, 1.0)))


class Axis(NamedTuple):
    """Axis of a joint: a point on it, m, and its direction, in the base at zero positions."""

    point: Array
    direction: Array


class DenavitHartenberg:
    """
    The chain of joints from one link to another.

    A joint on the way up to the common ancestor turns the other way about its axis, which is
    counted the other way round instead: positions are those of the URDF throughout.

    Parameters
    ----------
    model
        The robot.
    start, end
        Links of its URDF.

    Attributes
    ----------
    joint_names
        From the start to the end.
    rows
        One for each joint.
    first_in_start, end_in_last
        Pose of the first frame in the start, of the end in the last frame.

    Raises
    ------
    UnknownNameError
        If the URDF has no such link.
    ConfigurationError
        If no joint is between them, or one that is not revolute.

    """

    def __init__(self, model: RobotModel, start: str, end: str) -> None:
        names, axes = _axes_between(model, start, end)
        if not names:
            raise ConfigurationError(f"no joint is between links '{start}' and '{end}'")
        self.joint_names = names
        straight = model.state(np.zeros(len(model.joint_names)))
        start_pose, end_pose = (straight.pose_in_base(link) for link in (start, end))
        self.rows, first, last = _table(axes)
        self.first_in_start = start_pose.inverse() @ first
        self.end_in_last = last.inverse() @ end_pose

    def pose(self, positions: Sequence[float] | Array) -> Pose:
        """
        Return the pose of the end in the start: Wang et al., (2).

        Parameters
        ----------
        positions
            Of :attr:`joint_names`, shape (n,), rad.

        """
        if len(positions) != len(self.rows):
            raise ConfigurationError(
                f'{len(positions)} positions were given, {len(self.rows)} are needed: '
                f'{", ".join(self.joint_names)}')
        product = np.eye(4)
        for row, position in zip(self.rows, positions):
            product = product @ row.matrix(float(position))
        return self.first_in_start @ Pose(product[:3, :3], product[:3, 3]) @ self.end_in_last


def _axes_between(model: RobotModel, start: str, end: str) -> tuple[tuple[str, ...], list[Axis]]:
    """Return the joints from one link to another and their axes, in the order of the way."""
    pin_model, frames = model.pin_model, model.frames((start, end))
    up, down = (_ancestors(pin_model, int(joint)) for joint in frames.joints)
    while up and down and up[-1] == down[-1]:
        up.pop()
        down.pop()
    data = pin_model.createData()
    pin.computeJointJacobians(pin_model, data, pin.neutral(pin_model))
    way = [(joint, -1.0) for joint in up] + [(joint, 1.0) for joint in reversed(down)]
    names = tuple(str(pin_model.names[joint]) for joint, _ in way)
    return names, [_axis(pin_model, data, joint, sign) for joint, sign in way]


def _ancestors(pin_model: pin.Model, joint: int) -> list[int]:
    """Return a joint and those above it, up to the base."""
    found = []
    while joint:
        found.append(joint)
        joint = int(pin_model.parents[joint])
    return found


def _axis(pin_model: pin.Model, data: pin.Data, joint: int, sign: float) -> Axis:
    columns = data.J[:, pin_model.joints[joint].idx_v:][:, :pin_model.joints[joint].nv]
    linear, angular = columns[:3, 0], columns[3:, 0]
    if columns.shape[1] != 1 or not math.isclose(float(angular @ angular), 1.0):
        raise ConfigurationError(f"joint '{pin_model.names[joint]}' is not revolute")
    # Velocity at the origin is -angular x point.
    return Axis(cross(angular, linear), sign * angular)


def _table(axes: list[Axis]) -> tuple[tuple[Row, ...], Pose, Pose]:
    """Return the rows, and the poses of the first and the last frame in the base."""
    origin, z = axes[0]
    x = _any_normal(z)
    if len(axes) > 1:
        x, origin, _ = _common_normal(axes[0], axes[1], origin, x)
    first, rows = _frame(x, z, origin), []
    for here, following in zip(axes, axes[1:]):
        normal, foot, next_foot = _common_normal(here, following, origin, x)
        z, next_z = here.direction, following.direction
        rows.append(Row(_angle(x, normal, z), float((foot - origin) @ z),
                        float((next_foot - foot) @ normal), _angle(z, next_z, normal)))
        x, origin = normal, next_foot
    rows.append(Row(0.0, 0.0, 0.0, 0.0))
    return tuple(rows), first, _frame(x, axes[-1].direction, origin)


def _common_normal(here: Axis, following: Axis, origin: Array, x: Array
                   ) -> tuple[Array, Array, Array]:
    """Return the direction of the common normal of two axes, and its ends on them."""
    across = cross(here.direction, following.direction)
    size, between = float(np.linalg.norm(across)), following.point - here.point
    if size < _PARALLEL:  # of many the one from where the frame is
        normal = following.point - origin
        normal = normal - (normal @ here.direction) * here.direction
        distance = float(np.linalg.norm(normal))
        return (normal / distance if distance > _PARALLEL else x), origin, origin + normal
    normal = across / size
    if float(between @ normal) < 0.0:
        normal = -normal
    along = float(cross(between, following.direction) @ across) / size ** 2
    along_next = float(cross(between, here.direction) @ across) / size ** 2
    return (normal, here.point + along * here.direction,
            following.point + along_next * following.direction)


def _any_normal(z: Array) -> Array:
    normal = cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    normal /= np.linalg.norm(normal)
    return normal


def _angle(a: Array, b: Array, axis: Array) -> float:
    """Return the angle from one direction to another about an axis across both, rad."""
    return math.atan2(float(cross(a, b) @ axis), float(a @ b))


def _frame(x: Array, z: Array, origin: Array) -> Pose:
    return Pose(np.column_stack((x, cross(z, x), z)), origin)
