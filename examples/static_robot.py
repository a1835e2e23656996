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
Sensor readings of a robot at rest, from MuJoCo's inverse statics.

Ground truth for identification, for tests and benchmarks; it shares no code with
``core.identification``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
import math
from typing import Any

from biped_com_ros import RobotModel
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model import RobotConfig
from biped_com_ros.sim import hidden
from biped_com_ros.sim.description import GRAVITY, parse
from biped_com_ros.sim.drives import ModelJoints
from biped_com_ros.sim.frames import Array, quaternion_wxyz, rotation_from_rpy
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.mjcf import RobotSpec, WorldOptions
import mujoco
import numpy as np
from scipy.optimize import least_squares


@dataclass(frozen=True, kw_only=True)
class StaticReading:
    """
    Readings of a robot at rest.

    Attributes
    ----------
    wrenches
        Of each sensor, environment on robot, in its frame, (sensors, 6), N and N m.
    torques
        Of the joints, (n,), N m.
    up
        Unit vector against gravity, in the frame of the first IMU or of the root, (3,).
    com
        Centre of mass relative to the first standing sole, or to the hanging base, in the axes
        of the world, (3,), m.

    """

    wrenches: Array
    torques: Array
    up: Array
    com: Array

    def noisy(self, rng: np.random.Generator, force: float, moment: float, torque: float,
              tilt: float) -> StaticReading:
        """Return the readings with white noise of these standard deviations, N, N m, N m, rad."""
        wrenches = self.wrenches + rng.normal(size=self.wrenches.shape) * (
            [force] * 3 + [moment] * 3)
        up = self.up + np.cross(tilt * rng.normal(size=3), self.up)
        return replace(self, wrenches=wrenches, up=up / np.linalg.norm(up),
                       torques=self.torques + torque * rng.normal(size=self.torques.shape))


def hidden_lumps(masses: Mapping[str, float], seed: int, com_sigma: float = 0.015,
                 extra: float = 5.0, lumps: int = 3) -> dict[str, LinkError]:
    """
    Draw errors of a URDF from CAD: cables and batteries on a few links.

    Parameters
    ----------
    masses
        Of the links, kg.
    seed
        The same seed gives the same robot.
    com_sigma
        Standard deviation of each axis of each link's centre of mass, m.
    extra
        Total mass added, kg.
    lumps
        Number of links; the probability grows with the mass, from 0.5 kg on
        where any has so much.

    """
    rng = np.random.default_rng(seed)
    names = [name for name, mass in masses.items() if mass > 0.5] or list(masses)
    weights = np.array([masses[name] for name in names])
    chosen = rng.choice(names, lumps, replace=False, p=weights / weights.sum()).tolist()
    parts = dict(zip(chosen, (extra * rng.dirichlet(np.full(lumps, 3.0))).tolist()))
    errors = {}
    for name in masses:
        x, y, z = (com_sigma * rng.normal(size=3)).tolist()
        errors[name] = LinkError(parts.get(name, 0.0), (x, y, z))
    return errors


class StaticRobot:
    """
    A robot that stands still.

    Parameters
    ----------
    config, urdf
        The robot without errors.
    errors
        Differences of the true robot, by link.
    joint_names
        Joints of positions and torques, in their order.

    Attributes
    ----------
    mass
        True total mass, kg.
    link_masses, link_coms
        True, by link: kg, and (3,) in the link's frame, m.

    """

    def __init__(self, config: RobotConfig, urdf: str, errors: Mapping[str, LinkError],
                 joint_names: tuple[str, ...]) -> None:
        self.config, self.joint_names = config, joint_names
        robot = hidden.apply(parse(urdf), errors)
        self.link_masses = {n: link.mass for n, link in robot.links.items() if link.mass > 0.0}
        self.link_coms = {n: link.com for n, link in robot.links.items() if link.mass > 0.0}
        options = WorldOptions(floor=False, gravity=GRAVITY)
        self._model: Any = RobotSpec(robot, config, options, False).make_model()
        self._data: Any = mujoco.MjData(self._model)
        self._joints = ModelJoints(self._model, robot, joint_names, config.locked_joints)

    @property
    def mass(self) -> float:
        """Return the true total mass, kg."""
        return float(self._model.body_subtreemass[0])

    def read(self, positions: Array, standing: tuple[str, ...],
             tilt: tuple[float, float] = (0.0, 0.0),
             internal: Array | None = None) -> StaticReading:
        """
        Stand on some feet, or hang by the base, and read all sensors.

        Parameters
        ----------
        positions
            Of the joints, (n,), rad or m.
        standing
            Names of the feet on the ground, where the first sole is level; none: the robot
            hangs, and its base is level.
        tilt
            Roll and pitch of the ground, or of the base that hangs, rad.
        internal
            Wrench (6,) of the ground on the first foot that the second one cancels, N and N m.

        """
        level = f'sole/{standing[0]}' if standing else 'base'
        self._place(positions, level, tilt)
        contacts = self._share_weight(standing, internal)
        torques = self._joint_torques(standing, contacts)
        wrenches = [self._sensor(s.link or s.frame, f'wrench/{name}', standing, contacts)
                    for name, s in self.config.wrench_sensors.items()]
        return StaticReading(
            wrenches=np.array(wrenches).reshape(-1, 6), torques=torques, up=self._up(),
            com=self._data.subtree_com[0] - self._data.site(level).xpos)

    def _place(self, positions: Array, level: str, tilt: tuple[float, float]) -> None:
        model, data = self._model, self._data
        data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        data.qvel[:] = 0.0
        self._joints.write(data.qpos, positions)
        mujoco.mj_kinematics(model, data)
        site = data.site(level)
        R = rotation_from_rpy((*tilt, 0.0)) @ site.xmat.reshape(3, 3).T
        data.qpos[:3] = -R @ site.xpos
        data.qpos[3:7] = quaternion_wxyz(R)
        mujoco.mj_forward(model, data)

    def _share_weight(self, standing: tuple[str, ...], internal: Array | None) -> Array:
        """Return the wrench at each standing sole, world axes, (feet, 6)."""
        if not standing:
            return np.zeros((0, 6))
        data, weight = self._data, np.array((0.0, 0.0, GRAVITY * self.mass))
        com = data.subtree_com[0]
        soles = np.array([data.site(f'sole/{name}').xpos for name in standing])
        nearness = 1.0 / (np.linalg.norm(soles[:, :2] - com[:2], axis=1) + 0.05)
        shares = nearness / nearness.sum()
        wrenches = np.zeros((len(standing), 6))
        wrenches[:, :3] = np.outer(shares, weight)
        missing = np.cross(com, weight) - np.cross(soles, wrenches[:, :3]).sum(axis=0)
        wrenches[:, 3:] = np.outer(shares, missing)
        if internal is not None and len(standing) > 1:
            wrenches[0] += internal
            wrenches[1, :3] -= internal[:3]
            wrenches[1, 3:] -= internal[3:] + np.cross(soles[0] - soles[1], internal[:3])
        return wrenches

    def _joint_torques(self, standing: tuple[str, ...], contacts: Array) -> Array:
        model, data = self._model, self._data
        force = data.qfrc_bias.copy()
        for name, wrench in zip(standing, contacts):
            linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
            mujoco.mj_jacSite(model, data, linear, angular, data.site(f'sole/{name}').id)
            force -= linear.T @ wrench[:3] + angular.T @ wrench[3:]
        if standing and np.abs(force[:6]).max() > 1e-6 * GRAVITY * self.mass:
            raise ConfigurationError('the contacts do not carry the weight')
        torques: Array = force[self._joints.dofs]
        for follower in self._joints.followers:
            if follower.leader is not None:
                torques[follower.leader] += follower.gain * force[follower.dof]
        return torques

    def _sensor(self, link: str, site: str, standing: tuple[str, ...], contacts: Array) -> Array:
        """Return the wrench through the joint above a link, in the frame of a site."""
        model, data = self._model, self._data
        body, at = model.body(f'link/{link}').id, data.site(site)
        weight = np.array((0.0, 0.0, -GRAVITY * model.body_subtreemass[body]))
        force, moment = weight.copy(), np.cross(data.subtree_com[body] - at.xpos, weight)
        for name, wrench in zip(standing, contacts):
            sole = data.site(f'sole/{name}')
            if self._is_beyond(int(model.site_bodyid[sole.id]), body):
                force += wrench[:3]
                moment += wrench[3:] + np.cross(sole.xpos - at.xpos, wrench[:3])
        R = at.xmat.reshape(3, 3)
        return np.concatenate((R.T @ force, R.T @ moment))

    def _is_beyond(self, body: int, ancestor: int) -> bool:
        while body and body != ancestor:
            body = int(self._model.body_parentid[body])
        return body == ancestor

    def _up(self) -> Array:
        imus = self.config.imus
        name = 'base' if 'base' in imus else next(iter(imus), '')
        site = self._data.site(f'imu/{name}' if name else 'base_link')
        return site.xmat.reshape(3, 3)[2].copy()


class MisplacedSoles:
    """
    Soles that are turned and raised in their feet, and stand flat on a tilted floor.

    Parameters
    ----------
    model
        The robot, with its soles as they should be.
    soles
        Rotations about x and y, rad, and heights, m, in the URDF's frames, (feet, 3).
    floor
        Its tilt about the mean direction of the standing soles' x axes and across, (2,), rad.

    """

    def __init__(self, model: RobotModel, soles: Array, floor: Array) -> None:
        self._model, self._soles, self._floor = model, np.asarray(soles), floor
        self._feet = list(model.config.feet)
        q, steps = model.posture(), 0.1 * np.eye(len(model.joint_names))
        self._moves = {foot: np.array([
            np.abs(self._placed(q + step, foot)[0] - self._placed(q, foot)[0]).max()
            for step in steps]) > 1e-9 for foot in self._feet}

    def _placed(self, q: Array, foot: str) -> tuple[Array, Array]:
        pose = self._model.state(q).pose_in_base(self._model.config.feet[foot].sole)
        return pose.rotation, pose.position

    def true(self, q: Array, foot: str) -> tuple[Array, Array]:
        """Return rotation and place of a sole in the base, as it really is."""
        R, p = self._placed(q, foot)
        x, y, height = self._soles[self._feet.index(foot)].tolist()
        # exp((x, y, 0)) of a small rotation, to second order.
        small = np.array(((0.0, 0.0, y), (0.0, 0.0, -x), (-y, x, 0.0)))
        return R @ (np.eye(3) + small + 0.5 * small @ small), p + height * R[:, 2]

    def flat(self, q: Array, standing: tuple[str, ...]) -> Array:
        """Return positions near `q` that put all true soles into the plane of the first one."""
        q = q.copy()
        for foot in standing[1:]:
            leg = np.flatnonzero(self._moves[foot] & ~self._moves[standing[0]])
            start = q[leg].copy()

            def apart(now: Array, leg: Array = leg, start: Array = start,
                      foot: str = foot) -> Array:
                q[leg] = now
                (R, p), (S, r) = self.true(q, standing[0]), self.true(q, foot)
                return np.concatenate((100.0 * (R.T @ S[:, 2])[:2], [100.0 * R[:, 2] @ (r - p)],
                                       0.01 * (now - start)))

            q[leg] = least_squares(apart, start).x
        return q

    def tilt(self, q: Array, standing: tuple[str, ...]) -> tuple[float, float]:
        """Return roll and pitch of the first sole as the URDF has it; hanging: of the base."""
        if not standing:
            return float(self._floor[0]), float(self._floor[1])
        R, normal = self._placed(q, standing[0])[0], self.true(q, standing[0])[0][:, 2]
        ahead = np.mean([self._placed(q, foot)[0][:, 0] for foot in standing], axis=0)
        up = normal
        for _ in range(5):  # The axes of the floor's tilt are horizontal.
            level = ahead - ahead @ up * up
            level /= np.linalg.norm(level)
            axis = self._floor[0] * level + self._floor[1] * np.cross(up, level)
            up = normal - np.cross(axis, normal) + 0.5 * np.cross(axis, np.cross(axis, normal))
            up /= np.linalg.norm(up)
        # Ry(pitch) Rx(roll) of the sole takes this direction to z.
        x, y, z = (R.T @ up).tolist()
        return math.atan2(y, z), -math.asin(x)
