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
Converts a robot's description to MuJoCo's XML.

Names in the XML have a prefix, so that names of the URDF cannot collide with each other or with
MuJoCo's own: ``link/…`` bodies, ``joint/…`` joints, ``sole/…``, ``wrench/…``, ``imu/…`` and
``base`` and ``base_link`` sites, ``motor/…`` actuators, ``tendon/…`` tendons, ``hook``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
import math
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import RobotDescriptionError, UnknownNameError
from biped_com_ros.core.model.config import RobotConfig, WrenchSensorConfig
from biped_com_ros.sim import torso
from biped_com_ros.sim.description import (
    Array, Description, GRAVITY, Joint, Link, MOVING, pose_attributes, resolve_mimics,
    rotation_from_rpy, text, Transform)
from biped_com_ros.sim.hoist import write_hoist
import numpy as np

SMALLEST_INERTIA = 1e-9
"""Principal inertias below this (kg m^2) are raised to it; MuJoCo needs them positive."""

FLOOR, FOOT = '1', '2'
"""Collision bits: only feet and the floor collide."""


@dataclass(frozen=True, kw_only=True)
class WorldOptions:
    """
    The world around the robot and its time step.

    Attributes
    ----------
    timestep
        Of the physics, s.
    gravity
        Downward, m/s^2.
    friction
        Coulomb coefficient between soles and floor.
    floor
        Whether there is one.
    floor_roll, floor_pitch
        How it is tilted, about the world's x and then y, rad.
    contact_time
        Time constant of the contact, s; smaller is harder.
    sole_radius
        Radius of the spheres at the corners of the sole's polygon, m.
    visuals
        Whether to keep the URDF's boxes, cylinders and spheres for rendering.

    """

    timestep: float = 0.001
    gravity: float = GRAVITY
    friction: float = 1.0
    floor: bool = True
    floor_roll: float = 0.0
    floor_pitch: float = 0.0
    contact_time: float = 0.005
    sole_radius: float = 0.002
    visuals: bool = False

    @property
    def R_world_floor(self) -> Array:
        """Return the orientation of the floor, (3, 3)."""
        return rotation_from_rpy((self.floor_roll, self.floor_pitch, 0.0))


class MjcfWriter:
    """
    Writes a robot as MJCF.

    Parameters
    ----------
    description
        The true robot, hidden errors included.
    config
        Feet, sensors, locked joints, torso.
    options
        The world.
    tendons
        Whether to replace the torso's virtual joints, if any, by vertebrae and tendons.
    sole_offsets
        Where the true soles are in the frames of the configured ones, by foot, (3,), m.

    """

    def __init__(self, description: Description, config: RobotConfig,
                 options: WorldOptions, tendons: bool,
                 sole_offsets: Mapping[str, Array] | None = None) -> None:
        self._sole_offsets = sole_offsets or {}
        self._robot, self._config, self._options = description, config, options
        self._torso = config.torso if tendons else None
        self._virtual = frozenset(self._torso.joints) if self._torso else frozenset()
        self._mimics = resolve_mimics(description)
        self._root = ElementTree.Element('mujoco', model=config.name)
        self._bodies: dict[str, ElementTree.Element] = {}

    def write(self) -> str:
        """Return the MJCF text."""
        self._write_options()
        world = SubElement(self._root, 'worldbody')
        self._write_floor(world)
        root = self._robot.root
        body = self._write_body(world, root, Transform(position=np.array((0.0, 0.0, 1.0))))
        body.insert(0, ElementTree.Element('freejoint', name='free'))
        self._sensors = SubElement(self._root, 'sensor')
        self._actuators = SubElement(self._root, 'actuator')
        self._write_motors()
        equality = SubElement(self._root, 'equality')
        self._write_mimics(equality)
        self._write_stiff_torso(equality)
        write_hoist(world, equality, root)
        self._write_soles()
        self._write_sensors()
        if self._torso:
            torso.write_tendons(self._root, self._actuators, self._torso)
        return ElementTree.tostring(self._root, encoding='unicode')

    def _write_options(self) -> None:
        o = self._options
        # Masses come from the URDF only, never from the collision and visual geometry.
        SubElement(self._root, 'compiler', angle='radian', autolimits='true',
                   inertiafromgeom='false')
        # Elliptic cones with a high impratio keep the soles from creeping sideways.
        SubElement(self._root, 'option', timestep=text(o.timestep), gravity=text(0, 0, -o.gravity),
                   integrator='implicitfast', cone='elliptic', impratio='100', solver='Newton',
                   iterations='30', tolerance='1e-10')

    def _write_floor(self, world: ElementTree.Element) -> None:
        o = self._options
        SubElement(world, 'light', pos='0 0 4', dir='0 0 -1', directional='true')
        if o.floor:
            SubElement(world, 'geom', pose_attributes(Transform(o.R_world_floor)), name='floor',
                       type='plane', size='20 20 0.1',
                       contype=FLOOR, conaffinity=FOOT, condim='3', rgba='0.8 0.82 0.85 1',
                       friction=text(o.friction, 0.005, 0.0001),
                       solref=text(o.contact_time, 1), solimp='0.95 0.99 0.001')

    def _write_body(self, parent: ElementTree.Element, link: str,
                    pose: Transform) -> ElementTree.Element:
        """Write a link and its descendants, depth first, without recursion."""
        first = self._add_body(parent, link, pose)
        pending = [link]
        while pending:
            name = pending.pop()
            for joint in self._robot.children(name):
                if joint.child in self._bodies:
                    raise RobotDescriptionError(
                        f"link '{joint.child}' is the child of more than one joint")
                pending.extend(self._attach(self._bodies[name], joint))
        return first

    def _attach(self, body: ElementTree.Element, joint: Joint) -> Iterable[str]:
        if joint.name in self._virtual:
            return self._attach_torso(joint)
        fixed_at = self._config.locked_joints.get(joint.name)
        pose = joint.origin if fixed_at is None else joint.at(fixed_at)
        child = self._add_body(body, joint.child, pose)
        if joint.moves and fixed_at is None:
            child.insert(0, _joint_element(joint))
        return (joint.child,)

    def _attach_torso(self, joint: Joint) -> Iterable[str]:
        """Replace the chain of virtual joints by vertebrae; continue at its upper end."""
        assert self._torso is not None
        if joint.name != self._torso.joints[0]:
            return ()
        mount = torso.mount(self._robot, self._torso)
        tip = torso.write_vertebrae(self._bodies[self._torso.lower], self._torso, mount)
        self._add_body(tip, self._torso.upper, mount.tip_to_upper)
        return (self._torso.upper,)

    def _add_body(self, parent: ElementTree.Element, link: str,
                  pose: Transform) -> ElementTree.Element:
        body = SubElement(parent, 'body', pose_attributes(pose), name=f'link/{link}')
        self._bodies[link] = body
        described = self._robot.links[link]
        if described.mass > 0.0:
            body.append(_inertial_element(described))
        elif self._moves_without_mass(link):
            SubElement(body, 'inertial', pos='0 0 0', mass='1e-9', diaginertia='1e-9 1e-9 1e-9')
        if self._options.visuals:
            _write_visuals(body, described)
        return body

    def _moves_without_mass(self, link: str) -> bool:
        """Whether a link moves but neither it nor the links fixed to it have mass."""
        joint = self._robot.joint_above(link)
        if joint is not None and not joint.moves:
            return False
        pending = [link]
        while pending:
            name = pending.pop()
            if self._robot.links[name].mass > 0.0:
                return False
            pending.extend(j.child for j in self._robot.children(name) if not j.moves)
        return True

    def _free_joints(self) -> list[Joint]:
        """Joints that exist in MuJoCo."""
        return [joint for joint in self._robot.joints.values() if joint.moves
                and joint.name not in self._virtual
                and joint.name not in self._config.locked_joints]

    def _write_motors(self) -> None:
        """Write one actuator per joint, whose effort is ``ctrl - kp q - kd v``."""
        for joint in self._free_joints():
            if joint.name in self._mimics or joint.name in self._config.passive_joints:
                continue
            motor = SubElement(
                self._actuators, 'general', name=f'motor/{joint.name}', biastype='affine',
                joint=f'joint/{joint.name}', gainprm='1', biasprm='0 0 0')
            if math.isfinite(joint.effort):
                motor.set('forcerange', text(-joint.effort, joint.effort))

    def _write_stiff_torso(self, equality: ElementTree.Element) -> None:
        """Fix the virtual joints of a torso without tendons; Plant sets the positions."""
        for name in stiff_torso_joints(self._config, tendons=bool(self._virtual)):
            SubElement(equality, 'joint', name=f'hold/{name}', joint1=f'joint/{name}',
                       solref='0.004 1', polycoef='0 0 0 0 0')

    def _write_mimics(self, equality: ElementTree.Element) -> None:
        for name, (leader, multiplier, offset) in self._mimics.items():
            locked = self._config.locked_joints
            if name in locked:
                continue
            element = SubElement(equality, 'joint', joint1=f'joint/{name}', solref='0.004 1',
                                 polycoef=text(offset, multiplier, 0, 0, 0))
            if leader in locked:
                element.set('polycoef', text(offset + multiplier * locked[leader], 0, 0, 0, 0))
            else:
                element.set('joint2', f'joint/{leader}')

    def _write_soles(self) -> None:
        radius = self._options.sole_radius
        for name, foot in self._config.feet.items():
            body = self._body(foot.sole)
            pose = Transform.from_rpy(foot.sole_origin, foot.sole_rpy)
            if name in self._sole_offsets:
                pose = pose @ Transform(position=self._sole_offsets[name])
            SubElement(body, 'site', pose_attributes(pose), name=f'sole/{name}')
            for i, (x, y) in enumerate(foot.polygon):
                center = pose @ Transform(position=np.array((x, y, radius)))
                SubElement(body, 'geom', name=f'sole/{name}/{i}', type='sphere',
                           size=text(radius), pos=text(*center.position), contype=FOOT,
                           conaffinity=FLOOR, condim='3', priority='0', rgba='0.2 0.2 0.2 1',
                           friction=text(self._options.friction, 0.005, 0.0001),
                           solref=text(self._options.contact_time, 1), solimp='0.95 0.99 0.001')

    def _write_sensors(self) -> None:
        for joint in self._free_joints():
            if joint.name not in self._mimics:
                for kind in ('jointpos', 'jointvel'):
                    SubElement(self._sensors, kind, name=f'{kind}/{joint.name}',
                               joint=f'joint/{joint.name}')
        for name, sensor in self._config.wrench_sensors.items():
            self._write_wrench_sensor(name, sensor)
        for name, imu in self._config.imus.items():
            SubElement(self._body(imu.frame), 'site', name=f'imu/{name}')
            SubElement(self._sensors, 'framequat', name=f'imu/{name}/quaternion',
                       objtype='site', objname=f'imu/{name}')
            for kind in ('gyro', 'accelerometer'):
                SubElement(self._sensors, kind, name=f'imu/{name}/{kind}', site=f'imu/{name}')
        self._write_base()

    def _write_wrench_sensor(self, name: str, sensor: WrenchSensorConfig) -> None:
        # MuJoCo reports the wrench through the joint above the body of the site.
        link = sensor.link or sensor.frame
        pose = self._rigid(link, sensor.frame, f'wrench_sensors.{name}')
        SubElement(self._body(link), 'site', pose_attributes(pose), name=f'wrench/{name}')
        for kind in ('force', 'torque'):
            SubElement(self._sensors, kind, name=f'wrench/{name}/{kind}', site=f'wrench/{name}')

    def _write_base(self) -> None:
        """Write site `base_link`, the origin of odometry, and `base` with the axes of REP 103."""
        body, site = self._body(self._config.base_link), 'base_link'
        forward = Transform.from_rpy((0, 0, 0), self._config.base_rpy)
        SubElement(body, 'site', pose_attributes(forward), name='base')
        SubElement(body, 'site', name=site)
        for kind in ('framepos', 'framequat'):
            SubElement(self._sensors, kind, name=f'base/{kind}', objtype='site', objname=site)
        for kind in ('velocimeter', 'gyro'):
            SubElement(self._sensors, kind, name=f'base/{kind}', site=site)

    def _rigid(self, link: str, frame: str, where: str) -> Transform:
        """Pose of `frame` in `link`; no joint may be between them."""
        self._robot.require_link(link)
        self._robot.require_link(frame)
        locked = self._config.locked_joints
        for joint in self._robot.path(link, frame):
            if joint.moves and joint.name not in locked:
                raise RobotDescriptionError(
                    f"{where}: frame '{frame}' moves relative to link '{link}' with joint "
                    f"'{joint.name}'; both must be on the same side of the sensor")
        return self._robot.relative(link, frame, dict(locked))

    def _body(self, link: str) -> ElementTree.Element:
        self._robot.require_link(link)
        if link not in self._bodies:
            raise UnknownNameError('link outside the torso', link, self._bodies,
                                   self._config.name)
        return self._bodies[link]


def stiff_torso_joints(config: RobotConfig, tendons: bool) -> tuple[str, ...]:
    """Virtual torso joints with neither tendons nor motors, which are fixed."""
    if config.torso is None or tendons:
        return ()
    return tuple(name for name in config.torso.joints if name in config.passive_joints)


def _joint_element(joint: Joint) -> ElementTree.Element:
    element = ElementTree.Element(
        'joint', name=f'joint/{joint.name}', type=MOVING[joint.kind], axis=text(*joint.axis),
        damping=text(joint.damping))
    if math.isfinite(joint.lower) and math.isfinite(joint.upper):
        upper = max(joint.upper, joint.lower + 1e-6)
        element.set('range', text(joint.lower, upper))
    return element


def _inertial_element(link: Link) -> ElementTree.Element:
    moments, axes = np.linalg.eigh(link.inertia)
    moments = _consistent(moments)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return ElementTree.Element(
        'inertial', pose_attributes(Transform(axes, link.com)), mass=text(link.mass),
        diaginertia=text(*moments))


def _consistent(moments: Array) -> Array:
    """Make principal moments of inertia positive and physically consistent."""
    moments = np.maximum(moments, SMALLEST_INERTIA)
    # A body's largest moment cannot exceed the sum of the others; in some URDFs it does.
    if moments[2] > moments[0] + moments[1]:
        moments = moments + (moments[2] - moments[0] - moments[1]) * (1.0 + 1e-6)
    return moments


def _write_visuals(body: ElementTree.Element, link: Link) -> None:
    for pose, geometry, rgba in link.visuals:
        shape = next(iter(geometry), None)
        if shape is None or shape.tag not in ('box', 'cylinder', 'sphere'):
            continue
        if shape.tag == 'box':
            size = text(*(0.5 * float(part) for part in shape.get('size', '').split()))
        elif shape.tag == 'cylinder':
            size = text(shape.get('radius'), 0.5 * float(shape.get('length', '0')))
        else:
            size = text(shape.get('radius'))
        SubElement(body, 'geom', pose_attributes(pose), type=shape.tag, size=size, contype='0',
                   conaffinity='0', group='1', rgba=rgba)
