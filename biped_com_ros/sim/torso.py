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
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.sim.description import Description
from biped_com_ros.sim.frames import (
    Array, joints_between, quaternion_wxyz, relative, rotation_about, Transform)
import mujoco
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


def mount(robot: Description, model: Any, data: Any, torso: TorsoConfig) -> Mount:
    """
    Read the chain of the virtual joints.

    The z joint counts from the backbone's lower end if its limits contain the rest length, and
    from the rest length otherwise.

    Parameters
    ----------
    robot
        The robot.
    model, data
        MuJoCo's, of the URDF with all joints at zero.
    torso
        Names of the links and joints.

    Raises
    ------
    RobotDescriptionError
        If the six joints do not lead from `lower` to `upper` along x, y, z and about them.

    """
    for link in (torso.lower, torso.upper):
        robot.require_link(link)
    lower, upper = (model.body(f'link/{link}').id for link in (torso.lower, torso.upper))
    moving = joints_between(model, lower, upper)
    names = tuple(model.joint(joint).name.removeprefix('joint/') for joint in moving)
    x, y, z, roll, pitch, yaw = torso.joints
    orders = (torso.joints, (x, y, z, yaw, pitch, roll))
    if names not in orders:
        raise RobotDescriptionError(
            f"the joints from '{torso.lower}' to '{torso.upper}' are {', '.join(names)}; a "
            f'tendon torso needs {", ".join(orders[0])}, or {", ".join(orders[1])}')
    bodies = [int(model.jnt_bodyid[joint]) for joint in moving]
    above = [bodies[0], *bodies]  # nothing has to be known about the first one
    for name, joint, parent, body in zip(names, moving, above, bodies):
        axis = AXES[torso.joints.index(name) % 3]
        if not (_is_identity(relative(data, parent, body))
                and np.allclose(model.jnt_axis[joint], axis)):
            raise RobotDescriptionError(
                f"virtual torso joint '{name}' must have a zero origin and axis {axis}")
    limits, length = robot.joints[z], torso.backbone_length
    rest = length if limits.lower <= length <= limits.upper else 0.0
    down = Transform(position=np.array((0.0, 0.0, rest - length)))
    mass = sum(robot.links[robot.joints[name].child].mass for name in names[:-1])
    return Mount(relative(data, lower, bodies[0]) @ down, relative(data, bodies[-1], upper),
                 rest, mass, names == orders[1])


def replace_joints(urdf: ElementTree.Element, torso: TorsoConfig, at: Mount) -> None:
    """Replace the virtual joints of a prepared URDF by rigid vertebrae (in place)."""
    above = {joint.find('child').get('link'): joint  # type: ignore[union-attr]
             for joint in urdf.findall('joint')}
    links = {link.get('name'): link for link in urdf.findall('link')}
    upper, lower = f'link/{torso.upper}', f'link/{torso.lower}'
    link = upper
    while link != lower:
        urdf.remove(above[link])
        if link != upper:
            urdf.remove(links[link])
        link = str(above[link].find('parent').get('link'))  # type: ignore[union-attr]
    for k in range(1, SEGMENTS + 1):
        SubElement(urdf, 'link', name=f'vertebra/{k}')
    chain = (lower, *(f'vertebra/{k}' for k in range(1, SEGMENTS + 1)), upper)
    for parent, child in zip(chain, chain[1:]):
        joint = SubElement(urdf, 'joint', name=f'below {child}', type='fixed')
        SubElement(joint, 'parent', link=parent)
        SubElement(joint, 'child', link=child)


def add_backbone(spec: Any, torso: TorsoConfig, at: Mount) -> None:
    """Add springs, masses, disks and tendons; their gains depend on the load and are set later."""
    bodies = {body.name: body for body in spec.bodies}
    lower, height = bodies[f'link/{torso.lower}'], torso.backbone_length / SEGMENTS
    up = Transform(position=np.array((0.0, 0.0, height)))
    _add_disk(lower, torso, 0, at.lower_to_base)
    for k in range(1, SEGMENTS + 1):
        body = bodies[f'vertebra/{k}']
        _put(body, at.lower_to_base @ up if k == 1 else up)
        _add_springs(body, torso, k, height)
        _add_mass(body, torso, at.mass / SEGMENTS)
        _add_disk(body, torso, k, Transform())
    _put(bodies[f'link/{torso.upper}'], at.tip_to_upper)
    for i in range(len(torso.attachment_angles_deg)):
        tendon = spec.add_tendon(name=f'tendon/{i}', width=0.0008)
        for disk in range(SEGMENTS + 1):
            tendon.wrap_site(f'disk/{disk}/{i}')
        spec.add_actuator(
            name=f'tendon/{i}', trntype=mujoco.mjtTrn.mjTRN_TENDON, target=f'tendon/{i}',
            biastype=mujoco.mjtBias.mjBIAS_AFFINE, forcerange=(-1.0, 0.0))


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


def _put(body: Any, pose: Transform) -> None:
    body.pos, body.quat = pose.position, quaternion_wxyz(pose.rotation)


def _add_disk(body: Any, torso: TorsoConfig, disk: int, pose: Transform) -> None:
    """Add the holes of a disk through which the tendons run."""
    for i, angle in enumerate(np.radians(torso.attachment_angles_deg)):
        hole = pose @ Transform(
            position=torso.radius * np.array((math.cos(angle), math.sin(angle), 0.0)))
        body.add_site(name=f'disk/{disk}/{i}', pos=hole.position)


def _add_springs(body: Any, torso: TorsoConfig, k: int, height: float) -> None:
    x, y, z = AXES
    hinge, slide = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
    roll = ('roll', hinge, x, torso.bending_stiffness)
    pitch = ('pitch', hinge, y, torso.bending_stiffness)
    # Two hinges in series twist a little; swapped in every other segment, the twists cancel.
    bends = (roll, pitch) if k % 2 else (pitch, roll)
    for name, kind, axis, stiffness in (
            ('z', slide, z, torso.axial_stiffness), *bends,
            ('yaw', hinge, z, torso.torsion_stiffness)):
        joint = body.add_joint(
            name=f'vertebra/{k}/{name}', type=kind, axis=axis, pos=(0.0, 0.0, -0.5 * height))
        joint.stiffness = _linear(joint.stiffness, SEGMENTS * stiffness)
        joint.damping = _linear(joint.damping, SEGMENTS * stiffness * SETTLING)


def _linear(like: Any, coefficient: float) -> Any:
    """Return a coefficient as MuJoCo takes it: newer ones have those of a polynomial."""
    coefficients = np.zeros_like(like, dtype=float)
    coefficients.flat[0] = coefficient
    return coefficients[()]


def _add_mass(body: Any, torso: TorsoConfig, mass: float) -> None:
    # A thin disk; MuJoCo needs a positive mass.
    body.mass, body.ipos = max(mass, 1e-9), (0.0, 0.0, 0.0)
    body.inertia = 0.25 * mass * torso.radius ** 2 * np.array((1.0, 1.0, 2.0))
    body.explicitinertial = True


def _is_identity(pose: Transform) -> bool:
    return np.allclose(pose.rotation, np.eye(3)) and np.allclose(pose.position, 0.0)
