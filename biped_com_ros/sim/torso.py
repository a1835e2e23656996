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
The tendon-driven torso as a mechanism: vertebrae, springs and tendons routed through disks.

The backbone is cut into :data:`SEGMENTS` rigid pieces. Between two neighbouring disks stand, at
mid-height, a slide (compression), two hinges (bending) and a third (torsion), with springs
``SEGMENTS`` times as stiff as the whole backbone because they act in series. Tendons run straight
from disk to disk. A constant curvature is not assumed: the controllers' formulas, which do assume
it, are tested against this model.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.sim.description import (
    Array, Description, pose_attributes, rotation_about, text, Transform)
import numpy as np

SEGMENTS = 6
"""Vertebrae between the lower and the upper end."""

SETTLING = 0.02
"""Damping of the backbone's springs over their stiffness, s."""

AXES = np.eye(3)


@dataclass(frozen=True)
class Mount:
    """
    Where the backbone is mounted.

    Attributes
    ----------
    lower_to_base
        Pose of the backbone's lower end in link `lower`.
    tip_to_upper
        Pose of link `upper` in the backbone's upper end.
    rest
        Position of the virtual z joint with the backbone straight and unloaded, m.
    mass
        Of the links between the virtual joints, kg; the vertebrae share it.
    is_yaw_first
        Whether the order of the rotations is yaw, pitch, roll instead of roll, pitch, yaw.

    """

    lower_to_base: Transform
    tip_to_upper: Transform
    rest: float
    mass: float
    is_yaw_first: bool


def mount(robot: Description, torso: TorsoConfig) -> Mount:
    """
    Read the chain of the virtual joints.

    The z joint counts from the backbone's lower end if its limits contain the rest length, and
    from the rest length otherwise.

    Raises
    ------
    RobotDescriptionError
        If the six joints do not lead from `lower` to `upper` along x, y, z and about them.

    """
    chain = robot.path(torso.lower, torso.upper)
    moving = [joint for joint in chain if joint.moves]
    names = tuple(joint.name for joint in moving)
    x, y, z, roll, pitch, yaw = torso.joints
    orders = (torso.joints, (x, y, z, yaw, pitch, roll))
    if names not in orders:
        raise RobotDescriptionError(
            f"the joints from '{torso.lower}' to '{torso.upper}' are {', '.join(names)}; a "
            f'tendon torso needs {", ".join(orders[0])}, or {", ".join(orders[1])}')
    before = robot.relative(torso.lower, moving[0].parent, {}) @ moving[0].origin
    after = robot.relative(moving[-1].child, torso.upper, {})
    for joint in moving:
        axis = AXES[torso.joints.index(joint.name) % 3]
        is_plain = joint is moving[0] or _is_identity(joint.origin)
        if not is_plain or not np.allclose(joint.axis, axis):
            raise RobotDescriptionError(
                f"virtual torso joint '{joint.name}' must have a zero origin and axis {axis}")
    limits = robot.joints[z]
    rest = torso.backbone_length if limits.lower <= torso.backbone_length <= limits.upper else 0.0
    down = Transform(position=np.array((0.0, 0.0, rest - torso.backbone_length)))
    mass = sum(robot.links[j.child].mass for j in moving[:-1])
    return Mount(before @ down, after, rest, mass, names == orders[1])


def write_vertebrae(lower: ElementTree.Element, torso: TorsoConfig,
                    at: Mount) -> ElementTree.Element:
    """Write the chain onto body `lower`; return its last body, the backbone's upper end."""
    write_disk(lower, torso, 0, at.lower_to_base)
    height = torso.backbone_length / SEGMENTS
    up = Transform(position=np.array((0.0, 0.0, height)))
    body, pose = lower, at.lower_to_base @ up
    for k in range(1, SEGMENTS + 1):
        body = SubElement(body, 'body', pose_attributes(pose), name=f'vertebra/{k}')
        _write_springs(body, torso, k, height)
        _write_mass(body, torso, at.mass / SEGMENTS)
        write_disk(body, torso, k, Transform())
        pose = up
    return body


def write_disk(body: ElementTree.Element, torso: TorsoConfig, disk: int, pose: Transform) -> None:
    """Write the holes of a disk through which the tendons run."""
    for i, angle in enumerate(torso.attachment_angles_deg):
        a = math.radians(angle)
        hole = pose @ Transform(
            position=torso.radius * np.array((math.cos(a), math.sin(a), 0.0)))
        SubElement(body, 'site', name=f'disk/{disk}/{i}', size='0.002',
                   pos=text(*hole.position))


def write_tendons(root: ElementTree.Element, actuators: ElementTree.Element,
                  torso: TorsoConfig) -> None:
    """Write the tendons and their actuators; the gains depend on the load and are set later."""
    tendons = SubElement(root, 'tendon')
    for i in range(len(torso.attachment_angles_deg)):
        spatial = SubElement(tendons, 'spatial', name=f'tendon/{i}', width='0.0008')
        for disk in range(SEGMENTS + 1):
            SubElement(spatial, 'site', site=f'disk/{disk}/{i}')
        SubElement(actuators, 'general', name=f'tendon/{i}', tendon=f'tendon/{i}', gainprm='1',
                   biastype='affine', biasprm='0 0 0', forcerange='-1 0')


def virtual_positions(tip: Transform, at: Mount, torso: TorsoConfig) -> Array:
    """
    Return the six virtual joints' positions (x, y, z, roll, pitch, yaw), m and rad.

    Parameters
    ----------
    tip
        Pose of the backbone's upper end in its lower end.
    at, torso
        Mount and configuration of the backbone.

    """
    r = tip.rotation
    if at.is_yaw_first:
        pitch = math.asin(np.clip(-r[2, 0], -1.0, 1.0))
        roll, yaw = math.atan2(r[2, 1], r[2, 2]), math.atan2(r[1, 0], r[0, 0])
    else:
        pitch = math.asin(np.clip(r[0, 2], -1.0, 1.0))
        roll, yaw = math.atan2(-r[1, 2], r[2, 2]), math.atan2(-r[0, 1], r[0, 0])
    x, y, z = tip.position
    return np.array((x, y, z + at.rest - torso.backbone_length, roll, pitch, yaw))


def virtual_rotation(angles: Array, at: Mount) -> Array:
    """Return the rotation (3, 3) that roll, pitch and yaw (3,) of the virtual joints make."""
    roll, pitch, yaw = (rotation_about(axis, a) for axis, a in zip(AXES, angles))
    return yaw @ pitch @ roll if at.is_yaw_first else roll @ pitch @ yaw


def chord_lengths(bend: float, direction: float, length: float, torso: TorsoConfig) -> Array:
    """
    Return the tendon lengths for a bend (rad), its direction (rad) and a backbone length (m).

    Straight chords between the disks of a constant curvature (Russo et al. 2021, eq. (4), with
    attachment angles as parameters): ``sinc(theta / 2n) (l - theta r cos(beta - phi))``.
    """
    angles = np.radians(torso.attachment_angles_deg)
    half = bend / (2 * SEGMENTS)
    chord = math.sin(half) / half if abs(half) > 1e-9 else 1.0
    return chord * (length - bend * torso.radius * np.cos(angles - direction))


def _write_springs(body: ElementTree.Element, torso: TorsoConfig, k: int, height: float) -> None:
    below = text(0.0, 0.0, -0.5 * height)
    roll = ('roll', 'hinge', '1 0 0', torso.bending_stiffness)
    pitch = ('pitch', 'hinge', '0 1 0', torso.bending_stiffness)
    # Two hinges in series twist a little; swapped in every other segment, the twists cancel.
    bends = (roll, pitch) if k % 2 else (pitch, roll)
    for name, kind, axis, stiffness in (
            ('z', 'slide', '0 0 1', torso.axial_stiffness), *bends,
            ('yaw', 'hinge', '0 0 1', torso.torsion_stiffness)):
        SubElement(body, 'joint', name=f'vertebra/{k}/{name}', type=kind, axis=axis, pos=below,
                   stiffness=text(SEGMENTS * stiffness),
                   damping=text(SEGMENTS * stiffness * SETTLING))


def _write_mass(body: ElementTree.Element, torso: TorsoConfig, mass: float) -> None:
    # A thin disk; MuJoCo needs a positive mass.
    mass = max(mass, 1e-9)
    across = max(0.25 * mass * torso.radius ** 2, 1e-12)
    SubElement(body, 'inertial', pos='0 0 0', mass=text(mass),
               diaginertia=text(across, across, 2.0 * across))


def _is_identity(pose: Transform) -> bool:
    return np.allclose(pose.rotation, np.eye(3)) and np.allclose(pose.position, 0.0)
