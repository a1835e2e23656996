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
MuJoCo's model of a robot in its world: what it reads of the URDF, and what the URDF lacks.

Names have a prefix, so that names of the URDF cannot collide with each other or with MuJoCo's own:
``link/…`` bodies, ``joint/…`` joints, ``sole/…``, ``wrench/…``, ``imu/…`` and ``base`` and
``base_link`` sites, ``motor/…`` actuators, ``tendon/…`` tendons, ``hook``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
import math
from typing import Any
from xml.etree.ElementTree import SubElement

from biped_com_ros.core.errors import RobotDescriptionError, UnknownNameError
from biped_com_ros.core.model.config import (
    FootConfig, RobotConfig, sole_frame_name, WrenchSensorConfig)
from biped_com_ros.sim import torso
from biped_com_ros.sim.description import Description, GRAVITY, Link, prepare
from biped_com_ros.sim.frames import (
    ancestors, Array, joints_between, relative, rotation_from_rpy, Transform)
from biped_com_ros.sim.hoist import add_hoist
import mujoco
import numpy as np

FLOOR, FOOT = 1, 2
"""Collision bits: only feet and the floor collide."""

STIFF = (0.004, 1.0)
"""Time constant, s, and damping ratio of joints that are held by constraints."""


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


class RobotSpec:
    """
    Specification of a robot in its world.

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

    Attributes
    ----------
    mount
        Where the backbone is mounted; None without tendons.

    """

    def __init__(self, description: Description, config: RobotConfig,
                 options: WorldOptions, tendons: bool,
                 sole_offsets: Mapping[str, Array] | None = None) -> None:
        description = _with_sole_frames(description, config)
        self._robot, self._config, self._options = description, config, options
        self._torso = config.torso if tendons else None
        self.mount: torso.Mount | None = None
        urdf = prepare(description.urdf, config.locked_joints, options.visuals)
        self._spec = description.load(urdf, config.locked_joints)
        self._model = self._spec.compile()
        self._data = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, self._data)  # all joints at zero
        if self._torso:
            self.mount = torso.mount(description, self._model, self._data, self._torso)
            torso.replace_joints(urdf, self._torso, self.mount)
            self._spec = description.load(urdf, config.locked_joints)
        self._bodies = {body.name: body for body in self._spec.bodies}
        self._add_world()
        self._add_joints()
        self._add_soles(sole_offsets or {})
        self._add_sensors()
        if self._torso and self.mount:
            torso.add_backbone(self._spec, self._torso, self.mount)

    def make_model(self) -> Any:
        """Return MuJoCo's model."""
        return self._spec.compile()

    def _add_world(self) -> None:
        o, option = self._options, self._spec.option
        option.timestep, option.gravity = o.timestep, (0.0, 0.0, -o.gravity)
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        option.solver = mujoco.mjtSolver.mjSOL_NEWTON
        option.iterations, option.tolerance = 30, 1e-10
        # Elliptic cones with a high impratio keep the soles from creeping sideways.
        option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
        world, root = self._spec.worldbody, self._spec.bodies[1]
        world.add_light(pos=(0.0, 0.0, 4.0), dir=(0.0, 0.0, -1.0))
        if o.floor:
            world.add_geom(
                name='floor', type=mujoco.mjtGeom.mjGEOM_PLANE, size=(20.0, 20.0, 0.1),
                contype=FLOOR, conaffinity=FOOT, rgba=(0.8, 0.82, 0.85, 1.0),
                **Transform(o.R_world_floor).to_mujoco(), **self._contact())
        root.pos = (0.0, 0.0, 1.0)
        root.add_freejoint(name='free')
        add_hoist(self._spec, root.name)

    def _contact(self) -> dict[str, Any]:
        o = self._options
        return {'condim': 3, 'friction': (o.friction, 0.005, 0.0001),
                'solref': (o.contact_time, 1.0), 'solimp': (0.95, 0.99, 0.001, 0.5, 2.0)}

    def _add_joints(self) -> None:
        """Add sensors and motors of joints, and hold those that follow others or nothing."""
        spec, config, mimics = self._spec, self._config, self._robot.mimics
        present = {joint.name for joint in spec.joints}
        for name, joint in self._robot.joints.items():
            if f'joint/{name}' not in present or name in mimics:
                continue
            for kind in ('jointpos', 'jointvel'):
                self._add_sensor(f'{kind}/{name}', kind, f'joint/{name}', 'joint')
            if name not in config.passive_joints:
                self._add_motor(name, joint.effort)
        for name, (leader, gain, offset) in mimics.items():
            if name not in config.locked_joints:
                if leader in config.locked_joints:
                    offset += gain * config.locked_joints[leader]
                    self._couple(name, '', '', (offset, 0.0))
                else:
                    self._couple(name, '', leader, (offset, gain))
        # Plant sets the positions of the virtual joints of a torso without tendons.
        for name in stiff_torso_joints(config, tendons=bool(self._torso)):
            self._couple(name, f'hold/{name}', '', (0.0, 0.0))

    def _add_motor(self, name: str, effort: float) -> None:
        """Add an actuator whose effort is ``ctrl - kp q - kd v``; Plant sets the gains."""
        motor = self._spec.add_actuator(
            name=f'motor/{name}', trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f'joint/{name}',
            biastype=mujoco.mjtBias.mjBIAS_AFFINE)
        if math.isfinite(effort):
            motor.forcerange = (-effort, effort)

    def _couple(self, follower: str, name: str, leader: str, line: tuple[float, float]) -> None:
        """Hold a joint at ``line[0] + line[1] * position`` of another one, or of none."""
        equality = self._spec.add_equality(
            name=name, type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=f'joint/{follower}', name2=f'joint/{leader}' if leader else '', solref=STIFF)
        equality.data[:5] = (*line, 0.0, 0.0, 0.0)

    def _add_soles(self, offsets: Mapping[str, Array]) -> None:
        radius = self._options.sole_radius
        for name, foot in self._config.feet.items():
            body = self._body(foot.sole)
            pose = Transform(rotation_from_rpy(foot.sole_rpy), np.array(foot.sole_origin))
            if name in offsets:
                pose = pose @ Transform(position=offsets[name])
            body.add_site(name=f'sole/{name}', **pose.to_mujoco())
            parts = self._parts(foot)
            for i, (x, y) in enumerate(foot.polygon):
                centre = pose @ Transform(position=np.array((x, y, radius)))
                at = {link: (part.inverse() @ centre).position for link, part in parts.items()}
                nearest = min(at, key=lambda link: float(np.linalg.norm(at[link])))
                self._body(nearest).add_geom(
                    name=f'sole/{name}/{i}', type=mujoco.mjtGeom.mjGEOM_SPHERE,
                    size=(radius, 0.0, 0.0), pos=at[nearest], contype=FOOT,
                    conaffinity=FLOOR, rgba=(0.2, 0.2, 0.2, 1.0), **self._contact())

    def _parts(self, foot: FootConfig) -> dict[str, Transform]:
        """
        Return the links of a foot that touch the ground, and their poses in that of the sole.

        That one, or those of the sensors if none of them carries it: pads.
        """
        sensors = [self._config.wrench_sensors[name] for name in foot.wrench_sensors]
        links = [sensor.link or sensor.frame for sensor in sensors]
        above = ancestors(self._model, self._index(foot.sole))
        if not links or any(self._index(link) in above for link in links):
            return {foot.sole: Transform()}
        return {link: self._rigid(foot.sole, link, 'wrench_sensors') for link in links}

    def _add_sensors(self) -> None:
        for name, sensor in self._config.wrench_sensors.items():
            self._add_wrench_sensor(name, sensor)
        for name, imu in self._config.imus.items():
            self._body(imu.frame).add_site(name=f'imu/{name}')
            for label, kind in (('quaternion', 'framequat'), ('gyro', 'gyro'),
                                ('accelerometer', 'accelerometer')):
                self._add_sensor(f'imu/{name}/{label}', kind, f'imu/{name}')
        # Site `base_link` is the origin of odometry, `base` has the axes of REP 103.
        base = self._body(self._config.base_link)
        base.add_site(
            name='base', **Transform(rotation_from_rpy(self._config.base_rpy)).to_mujoco())
        base.add_site(name='base_link')
        for kind in ('framepos', 'framequat', 'velocimeter', 'gyro'):
            self._add_sensor(f'base/{kind}', kind, 'base_link')

    def _add_wrench_sensor(self, name: str, sensor: WrenchSensorConfig) -> None:
        # MuJoCo reports the wrench through the joint above the body of the site.
        link = sensor.link or sensor.frame
        pose = self._rigid(link, sensor.frame, f'wrench_sensors.{name}')
        self._body(link).add_site(name=f'wrench/{name}', **pose.to_mujoco())
        for kind in ('force', 'torque'):
            self._add_sensor(f'wrench/{name}/{kind}', kind, f'wrench/{name}')

    def _add_sensor(self, name: str, kind: str, of: str, what: str = 'site') -> None:
        self._spec.add_sensor(
            name=name, type=getattr(mujoco.mjtSensor, f'mjSENS_{kind.upper()}'),
            objtype=getattr(mujoco.mjtObj, f'mjOBJ_{what.upper()}'), objname=of)

    def _rigid(self, link: str, frame: str, where: str) -> Transform:
        """Pose of `frame` in `link`; no joint may be between them."""
        first, second = (self._index(name) for name in (link, frame))
        for joint in joints_between(self._model, first, second):
            name = self._model.joint(joint).name.removeprefix('joint/')
            raise RobotDescriptionError(
                f"{where}: frame '{frame}' moves relative to link '{link}' with joint '{name}'; "
                'both must be on the same side of the sensor')
        return relative(self._data, first, second)

    def _index(self, link: str) -> int:
        self._robot.require_link(link)
        return int(self._model.body(f'link/{link}').id)

    def _body(self, link: str) -> Any:
        self._robot.require_link(link)
        if f'link/{link}' not in self._bodies:
            raise UnknownNameError('link outside the torso', link, [
                name for name in self._robot.links if f'link/{name}' in self._bodies],
                self._config.name)
        return self._bodies[f'link/{link}']


def _with_sole_frames(description: Description, config: RobotConfig) -> Description:
    """Return a robot with the frames at the soles that its sensors name: links without mass."""
    urdf, links = copy(description.urdf), dict(description.links)
    named = {name for sensor in config.wrench_sensors.values() for name in (
        sensor.frame, sensor.link)} | {imu.frame for imu in config.imus.values()}
    for name, foot in config.feet.items():
        frame = sole_frame_name(name)
        if frame in named and frame not in links:
            links[frame] = Link(frame, 0.0, np.zeros(3), np.zeros((3, 3)))
            SubElement(urdf, 'link', name=frame)
            joint = SubElement(urdf, 'joint', name=f'{frame}/fixed', type='fixed')
            SubElement(joint, 'parent', link=foot.sole)
            SubElement(joint, 'child', link=frame)
            SubElement(joint, 'origin', xyz=' '.join(map(str, foot.sole_origin)),
                       rpy=' '.join(map(str, foot.sole_rpy)))
    return replace(description, urdf=urdf, links=links)


def stiff_torso_joints(config: RobotConfig, tendons: bool) -> tuple[str, ...]:
    """Virtual torso joints with neither tendons nor motors, which are fixed."""
    if config.torso is None or tendons:
        return ()
    return tuple(name for name in config.torso.joints if name in config.passive_joints)
