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
A robot as MuJoCo reads its URDF.

MuJoCo reads what a robot is made of, the estimators use Pinocchio. ``test/oracle`` compares the
two, which is a test only as long as they share no code. Here only text is prepared for MuJoCo:
names get a prefix, so that they cannot collide with its own, and files of meshes are left out,
which need not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import math
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import RobotDescriptionError, UnknownNameError
from biped_com_ros.core.plain_xml import leave_out_free_root, parse_xml
from biped_com_ros.sim.frames import Array, rotation_about, rotation_from_rpy
import mujoco
import numpy as np

GRAVITY = 9.81
"""Gravitational acceleration of the simulated world, m/s^2."""

MOVING = ('revolute', 'continuous', 'prismatic')
"""Movable joint types."""


@dataclass(frozen=True)
class Link:
    """A link: mass (kg), centre of mass (in the link, m), inertia about it (link axes, kg m^2)."""

    name: str
    mass: float
    com: Array
    inertia: Array


@dataclass(frozen=True)
class Joint:
    """A joint that moves; limits that the URDF does not give are infinite."""

    name: str
    child: str
    axis: Array
    slides: bool
    lower: float
    upper: float
    effort: float
    velocity: float


class Coupling(NamedTuple):
    """Joint that mimics another: ``position = multiplier * leader + offset``."""

    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Description:
    """
    A robot.

    Attributes
    ----------
    urdf
        Its <robot> element.
    links
        By name, in the order of the file.
    joints
        Those that move, by name, in the order of the file.
    mimics
        Coupling of every joint that mimics another to the first of its leaders, by name.

    """

    urdf: ElementTree.Element
    links: dict[str, Link]
    joints: dict[str, Joint]
    mimics: dict[str, Coupling]

    def require_link(self, link: str) -> None:
        """Raise UnknownNameError unless the link exists."""
        if link not in self.links:
            raise UnknownNameError(
                'frame', link, self.links, f"the URDF '{self.urdf.get('name')}'")

    def load(self, prepared: ElementTree.Element, locked: Mapping[str, float]) -> Any:
        """Return MuJoCo's MjSpec of a prepared URDF with these links, some joints locked."""
        spec = load(prepared)
        for body in spec.bodies:
            link = self.links.get(body.name.removeprefix('link/'))
            if link is not None and link.mass > 0.0:
                body.mass, body.ipos, body.iquat = link.mass, link.com, (1.0, 0.0, 0.0, 0.0)
                I = _consistent(link.inertia)  # noqa: E741
                body.fullinertia = (*np.diag(I), I[0, 1], I[0, 2], I[1, 2])
        bodies = {body.name: body for body in spec.bodies}
        for name, position in locked.items():
            joint = self.joints[name]
            if f'link/{joint.child}' in bodies:
                _move(bodies[f'link/{joint.child}'], joint, position)
        return spec


def parse(urdf: str) -> Description:
    """
    Read URDF text.

    Raises
    ------
    RobotDescriptionError
        If it is not well-formed XML, or MuJoCo cannot read it.

    """
    robot = parse_xml(urdf, 'the URDF')
    leave_out_free_root(robot)
    spec = load(prepare(robot))
    bodies = {body.name: body for body in spec.bodies}
    read = {joint.name: joint for joint in spec.joints}
    links = {name: _link(name, element, bodies[f'link/{name}'])
             for name, element in _by_name(robot, 'link').items()}
    moving = {name: element for name, element in _by_name(robot, 'joint').items()
              if element.get('type') in MOVING}
    joints = {name: _joint(name, element, read[f'joint/{name}'])
              for name, element in moving.items()}
    return Description(robot, links, joints, _mimics(moving))


def prepare(robot: ElementTree.Element, locked: Iterable[str] = (),
            visuals: bool = False) -> ElementTree.Element:
    """
    Return a URDF for MuJoCo: ``link/...``, ``joint/...``, and only what it has to read.

    Parameters
    ----------
    robot
        The <robot> element.
    locked
        Names of joints that do not move.
    visuals
        Whether to keep boxes, cylinders and spheres.

    """
    copy = ElementTree.Element('robot', name=robot.get('name', 'robot'))
    # Masses come from the URDF's inertials only; links need a little of it to move.
    SubElement(SubElement(copy, 'mujoco'), 'compiler', fusestatic='false',
               inertiafromgeom='false', discardvisual='false', boundmass='1e-12',
               boundinertia='1e-9')
    copy.extend(robot.findall('material'))
    for name, link in _by_name(robot, 'link').items():
        element = SubElement(copy, 'link', name=f'link/{name}')
        element.extend(_inertials(link))
        element.extend([visual for visual in link.findall('visual')
                        if visuals and visual.find('geometry/mesh') is None])
    for name, joint in _by_name(robot, 'joint').items():
        copy.append(_prepared_joint(name, joint, name in locked))
    return copy


def load(prepared: ElementTree.Element) -> Any:
    """
    Return MuJoCo's MjSpec of a prepared URDF.

    Raises
    ------
    RobotDescriptionError
        If MuJoCo cannot read it, or its links are not one tree.

    """
    try:
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(prepared, encoding='unicode'))
    except ValueError as error:
        raise RobotDescriptionError(f'MuJoCo cannot read the URDF: {error}') from None
    roots = [body.name.removeprefix('link/') for body in spec.worldbody.bodies]
    if len(roots) != 1:
        raise RobotDescriptionError(
            f'the URDF must have exactly one root link, not {roots or "none (a circle)"}')
    return spec


def _by_name(robot: ElementTree.Element, tag: str) -> dict[str, ElementTree.Element]:
    return {str(element.get('name')): element for element in robot.findall(tag)}


def _inertials(link: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the inertial of a link as MuJoCo needs it, none without mass."""
    inertial = link.find('inertial')
    if inertial is None or inertial.find('mass') is None:
        return []
    if inertial.find('inertia') is not None:
        return [inertial]
    massive = ElementTree.Element('inertial')
    massive.extend(inertial)
    SubElement(massive, 'inertia', dict.fromkeys(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), '0'))
    return [massive]


def _prepared_joint(name: str, joint: ElementTree.Element, is_locked: bool) -> ElementTree.Element:
    kind = str(joint.get('type'))
    if kind not in (*MOVING, 'fixed'):
        raise RobotDescriptionError(
            f"joint '{name}' has type '{kind}'; valid: {', '.join((*MOVING, 'fixed'))}")
    copy = ElementTree.Element('joint', name=f'joint/{name}', type='fixed' if is_locked else kind)
    copy.extend(joint.findall('origin'))
    for tag in ('parent', 'child'):
        end = joint.find(tag)
        if end is None:
            raise RobotDescriptionError(f"joint '{name}' has no <{tag}>")
        SubElement(copy, tag, link=f"link/{end.get('link')}")
    if kind in MOVING and not is_locked:
        copy.extend(joint.findall('axis'))
        lower, upper = (_number(joint, 'limit', key, 0.0) for key in ('lower', 'upper'))
        if kind != 'continuous' and joint.find('limit') is not None:
            # MuJoCo does not limit a joint without any range.
            SubElement(copy, 'limit', lower=repr(lower), upper=repr(max(upper, lower + 1e-6)))
        SubElement(copy, 'dynamics', damping=repr(_number(joint, 'dynamics', 'damping', 0.0)))
    return copy


def _link(name: str, element: ElementTree.Element, body: Any) -> Link:
    if body.mass < 0.0:
        raise RobotDescriptionError(
            f"link '{name}': the mass is {body.mass}, it must not be negative")
    if not body.mass:
        return Link(name, 0.0, np.zeros(3), np.zeros((3, 3)))
    xx, yy, zz, xy, xz, yz = np.nan_to_num(body.fullinertia)
    inertia = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    # Before 3.17, MuJoCo forgets that the frame of an inertial is turned.
    origin = element.find('inertial/origin')
    rpy = '0 0 0' if origin is None else origin.get('rpy', '0 0 0')
    R = rotation_from_rpy([float(angle) for angle in rpy.split()])
    return Link(name, float(body.mass), np.array(body.ipos), R @ inertia @ R.T)


def _joint(name: str, element: ElementTree.Element, joint: Any) -> Joint:
    lower, upper = joint.range
    if element.get('type') == 'continuous' or element.find('limit') is None:
        lower, upper = -math.inf, math.inf
    effort, velocity = (_number(element, 'limit', key, 0.0) for key in ('effort', 'velocity'))
    child = element.find('child')
    assert child is not None
    return Joint(name, str(child.get('link')), joint.axis / np.linalg.norm(joint.axis),
                 element.get('type') == 'prismatic', float(lower), float(upper),
                 effort if effort > 0.0 else math.inf, velocity if velocity > 0.0 else math.inf)


def _mimics(moving: Mapping[str, ElementTree.Element]) -> dict[str, Coupling]:
    direct = {name: Coupling(str(mimic.get('joint')), _number(joint, 'mimic', 'multiplier', 1.0),
                             _number(joint, 'mimic', 'offset', 0.0))
              for name, joint in moving.items() for mimic in joint.findall('mimic')}
    found = {}
    for name, (leader, gain, offset) in direct.items():
        followed = {name}
        while leader in direct:
            if leader in followed:
                raise RobotDescriptionError(f"joint '{name}' mimics itself in a circle")
            followed.add(leader)
            above = direct[leader]
            leader, gain, offset = (
                above.leader, gain * above.multiplier, offset + gain * above.offset)
        if leader not in moving:
            raise UnknownNameError('joint', leader, moving, f"the mimic of '{name}'")
        found[name] = Coupling(leader, gain, offset)
    return found


def _number(joint: ElementTree.Element, tag: str, key: str, default: float) -> float:
    element = joint.find(tag)
    text = None if element is None else element.get(key)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise RobotDescriptionError(
            f"joint '{joint.get('name')}': {key}='{text}' is not a number") from None


def _move(body: Any, joint: Joint, position: float) -> None:
    """Put a body where a locked joint above it is at a position, rad or m."""
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, body.quat)
    if joint.slides:
        body.pos = body.pos + R.reshape(3, 3) @ joint.axis * position
    else:
        turn = rotation_about(joint.axis, position)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, (R.reshape(3, 3) @ turn).ravel())
        body.quat = quaternion


def _consistent(inertia: Array) -> Array:
    """Return an inertia whose principal moments are positive and those of a body."""
    least, middle, largest = np.linalg.eigvalsh(inertia)
    # A body's largest moment cannot exceed the sum of the others; in some URDFs it does. MuJoCo
    # refuses what rounding makes of equal ones, those of a flat body.
    short = max(1e-9 - least, (1.0 + 1e-6) * largest - least - middle, 0.0)
    return np.asarray(inertia + short * np.eye(3))
