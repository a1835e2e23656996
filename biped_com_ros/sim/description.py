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
A URDF as plain data: links, joints and the tree they form.

The simulator has a parser of its own, the estimators use Pinocchio's. ``test/oracle`` compares
the two, which is a test only as long as they share no code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
import math
from typing import Any, NamedTuple
from xml.etree import ElementTree

from biped_com_ros.core.errors import RobotDescriptionError, UnknownNameError
from biped_com_ros.core.plain_xml import parse_xml
import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GRAVITY = 9.81
"""Gravitational acceleration of the simulated world, m/s^2."""

MOVING = {'revolute': 'hinge', 'continuous': 'hinge', 'prismatic': 'slide'}
"""Movable joint types, and their names in MuJoCo."""


@dataclass(frozen=True)
class Transform:
    """Pose of a frame B in a frame A: rotation ``R_A_B`` (3, 3), position (3,) in m."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))

    @staticmethod
    def from_rpy(position: Any, rpy: Any) -> Transform:
        """Build from a position (m) and fixed-axis roll, pitch, yaw (rad) as in URDF."""
        return Transform(rotation_from_rpy(rpy), np.array(position, dtype=float))

    def __matmul__(self, other: Transform) -> Transform:
        """Chain: (B in A) @ (C in B) is C in A."""
        return Transform(self.rotation @ other.rotation,
                         self.rotation @ other.position + self.position)

    def inverse(self) -> Transform:
        """Return the pose of A in B."""
        return Transform(self.rotation.T, -self.rotation.T @ self.position)


@dataclass(frozen=True)
class Link:
    """
    A link: mass (kg), centre of mass (in the link, m), inertia about it (link axes, kg m^2).

    `visuals` holds (Transform, <geometry> element, rgba) of shapes without a mesh file.
    """

    name: str
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    visuals: tuple[Any, ...] = ()


class Coupling(NamedTuple):
    """Joint that mimics another: ``position = multiplier * leader + offset``."""

    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint; `effort` and `velocity` are infinite where the URDF gives no positive limit."""

    name: str
    kind: str
    parent: str
    child: str
    origin: Transform
    axis: Array
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    velocity: float = math.inf
    damping: float = 0.0
    mimic: Coupling | None = None

    @property
    def moves(self) -> bool:
        """Whether the joint has a degree of freedom."""
        return self.kind in MOVING

    def at(self, position: float) -> Transform:
        """Pose of the child link in the parent link with the joint at `position`."""
        if self.kind == 'prismatic':
            return self.origin @ Transform(position=self.axis * position)
        return self.origin @ Transform(rotation_about(self.axis, position))


@dataclass(frozen=True)
class Description:
    """
    A robot's tree.

    Attributes
    ----------
    name
        From the URDF.
    links
        By name, in the order of the file.
    joints
        By name, in the order of the file.

    """

    name: str
    links: dict[str, Link]
    joints: dict[str, Joint]

    @property
    def root(self) -> str:
        """Name of the link that is no joint's child."""
        children = {joint.child for joint in self.joints.values()}
        roots = [name for name in self.links if name not in children]
        if len(roots) != 1:
            raise RobotDescriptionError(
                f'the URDF must have exactly one root link, not {roots or "none (a circle)"}')
        return roots[0]

    def children(self, link: str) -> Iterator[Joint]:
        """Joints whose parent is a link."""
        return (joint for joint in self.joints.values() if joint.parent == link)

    def joint_above(self, link: str) -> Joint | None:
        """Return the joint whose child is a link; None for the root."""
        self.require_link(link)
        return next((j for j in self.joints.values() if j.child == link), None)

    def require_link(self, link: str) -> None:
        """Raise UnknownNameError unless the link exists."""
        if link not in self.links:
            raise UnknownNameError('frame', link, self.links, f"the URDF '{self.name}'")

    def ancestors(self, link: str) -> list[str]:
        """Return `link` and all links above it, the root last."""
        chain = [link]
        while (joint := self.joint_above(chain[-1])) is not None:
            if joint.parent in chain:
                raise RobotDescriptionError(f"link '{link}' is its own ancestor")
            chain.append(joint.parent)
        return chain

    def path(self, start: str, end: str) -> list[Joint]:
        """Joints between two links: up from `start`, then down to `end`."""
        above_start, above_end = self.ancestors(start), self.ancestors(end)
        common = {*above_start} & {*above_end}
        up = [link for link in above_start if link not in common]
        down = [link for link in above_end if link not in common]
        return [joint for link in (*up, *reversed(down))
                if (joint := self.joint_above(link)) is not None]

    def relative(self, start: str, end: str, positions: dict[str, float]) -> Transform:
        """Pose of link `end` in link `start`, moving joints at `positions`."""
        return self._from_root(start, positions).inverse() @ self._from_root(end, positions)

    def _from_root(self, link: str, positions: dict[str, float]) -> Transform:
        pose = Transform()
        for name in reversed(self.ancestors(link)):
            joint = self.joint_above(name)
            if joint is not None:
                pose = pose @ joint.at(positions.get(joint.name, 0.0))
        return pose


def parse(urdf: str) -> Description:
    """
    Read URDF text.

    Raises
    ------
    RobotDescriptionError
        If it is not well-formed XML, or a number, a parent or a child is invalid.

    """
    robot = parse_xml(urdf, 'the URDF')
    links = {link.name: link for link in map(_link, robot.findall('link'))}
    joints = {j.name: j for j in map(_joint, robot.findall('joint'))}
    for joint in joints.values():
        for link in (joint.parent, joint.child):
            if link not in links:
                raise UnknownNameError('link', link, links, f"joint '{joint.name}' of the URDF")
    return Description(robot.get('name', 'robot'), links, joints)


def rotation_from_rpy(rpy: Any) -> Array:
    """Return ``Rz(yaw) Ry(pitch) Rx(roll)``, shape (3, 3)."""
    roll, pitch, yaw = rpy
    x, y, z = np.eye(3)
    return rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll)


def rotation_about(axis: Array, angle: float) -> Array:
    """Return the rotation (3, 3) by `angle` (rad) about a unit axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross


def quaternion_wxyz(rotation: Array) -> Array:
    """Return the quaternion (w, x, y, z), MuJoCo's order, of a rotation (3, 3)."""
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion if quaternion[0] >= 0.0 else -quaternion


def resolve_mimics(description: Description) -> dict[str, Coupling]:
    """Coupling of every joint that mimics another to the first of its leaders, by name."""
    found = {}
    for joint in description.joints.values():
        if joint.mimic is None or not joint.moves:
            continue
        leader, gain, offset = joint.mimic.leader, joint.mimic.multiplier, joint.mimic.offset
        for _ in description.joints:
            if leader not in description.joints:
                raise UnknownNameError(
                    'joint', leader, description.joints, f"the mimic of '{joint.name}'")
            above = description.joints[leader].mimic
            if above is None:
                break
            leader, offset, gain = above.leader, offset + gain * above.offset, (
                gain * above.multiplier)
        else:
            raise RobotDescriptionError(f"joint '{joint.name}' mimics itself in a circle")
        found[joint.name] = Coupling(leader, gain, offset)
    return found


def text(*values: Any) -> str:
    """Numbers as XML text with all digits."""
    return ' '.join(repr(float(value)) for value in values)


def pose_attributes(pose: Transform) -> dict[str, str]:
    """Return `pos` and `quat` attributes."""
    return {'pos': text(*pose.position), 'quat': text(*quaternion_wxyz(pose.rotation))}


def _link(element: ElementTree.Element) -> Link:
    name = str(element.get('name'))
    where = f"link '{name}'"
    visuals = tuple(_visuals(element, where))
    inertial = element.find('inertial')
    if inertial is None:
        return Link(name, visuals=visuals)
    frame = _origin(inertial, where)
    mass = _number(inertial.find('mass'), 'value', where, 0.0)
    if mass < 0.0:
        raise RobotDescriptionError(f'{where}: the mass is {mass}, it must not be negative')
    xx, xy, xz, yy, yz, zz = (
        _number(inertial.find('inertia'), key, where, 0.0)
        for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    inertia = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    return Link(name, mass, frame.position,
                frame.rotation @ inertia @ frame.rotation.T, visuals)


def _visuals(element: ElementTree.Element, where: str) -> Iterator[Any]:
    for visual in element.findall('visual'):
        geometry = visual.find('geometry')
        if geometry is None or geometry.find('mesh') is not None:
            continue
        color = visual.find('material/color')
        rgba = color.get('rgba', '') if color is not None else ''
        yield _origin(visual, where), geometry, rgba or '0.6 0.65 0.7 1'


def _joint(element: ElementTree.Element) -> Joint:
    name, kind = str(element.get('name')), str(element.get('type'))
    where = f"joint '{name}'"
    if kind not in (*MOVING, 'fixed'):
        raise RobotDescriptionError(
            f"{where} has type '{kind}'; valid: {', '.join((*MOVING, 'fixed'))}")
    limit, dynamics = element.find('limit'), element.find('dynamics')
    unbounded = kind == 'continuous' or limit is None
    return Joint(
        name, kind, _end(element, 'parent', where), _end(element, 'child', where),
        _origin(element, where), _axis(element, where),
        lower=-math.inf if unbounded else _number(limit, 'lower', where, 0.0),
        upper=math.inf if unbounded else _number(limit, 'upper', where, 0.0),
        effort=_limit(limit, 'effort', where), velocity=_limit(limit, 'velocity', where),
        damping=_number(dynamics, 'damping', where, 0.0), mimic=_mimic(element, where))


def _limit(element: ElementTree.Element | None, key: str, where: str) -> float:
    value = _number(element, key, where, 0.0)
    return value if value > 0.0 else math.inf


def _mimic(element: ElementTree.Element, where: str) -> Coupling | None:
    mimic = element.find('mimic')
    if mimic is None:
        return None
    return Coupling(str(mimic.get('joint')), _number(mimic, 'multiplier', where, 1.0),
                    _number(mimic, 'offset', where, 0.0))


def _end(element: ElementTree.Element, tag: str, where: str) -> str:
    end = element.find(tag)
    if end is None:
        raise RobotDescriptionError(f'{where} has no <{tag}>')
    return str(end.get('link'))


def _axis(element: ElementTree.Element, where: str) -> Array:
    axis = _vector(element.find('axis'), 'xyz', where, '1 0 0')
    norm = float(np.linalg.norm(axis))
    if norm < 1e-9:
        if element.get('type') in MOVING:
            raise RobotDescriptionError(f'{where} has an <axis> of length zero')
        return np.array((1.0, 0.0, 0.0))
    return axis / norm


def _origin(element: ElementTree.Element, where: str) -> Transform:
    origin = element.find('origin')
    return Transform.from_rpy(
        _vector(origin, 'xyz', where, '0 0 0'), _vector(origin, 'rpy', where, '0 0 0'))


def _vector(element: ElementTree.Element | None, key: str, where: str, default: str) -> Array:
    text = default if element is None else element.get(key, default)
    try:
        vector = np.array([float(part) for part in text.split()])
    except ValueError:
        vector = np.empty(0)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise RobotDescriptionError(f"{where}: {key}='{text}' is not three finite numbers")
    return vector


def _number(element: ElementTree.Element | None, key: str, where: str, default: float) -> float:
    text = None if element is None else element.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RobotDescriptionError(f"{where}: {key}='{text}' is not a number")
    return value
