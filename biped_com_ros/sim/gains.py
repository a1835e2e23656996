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
Joint gains, rotor inertias and tendon gains that the robot's configuration does not give.

A position-controlled robot sags visibly but little under its weight. To stand, its legs must be
stiffer than the whole robot is unstable as an inverted pendulum (K > m g h). All gains are derived
from masses and geometry in the starting posture, and so fit robots of 4 kg and of 90 kg.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.model.config import RobotConfig, TorsoConfig
from biped_com_ros.sim.description import Description, GRAVITY
from biped_com_ros.sim.frames import Array, joints_between
import mujoco
import numpy as np

STANCE_STIFFNESS = 20.0
"""Stiffness of a leg joint over m g h."""

SAG = math.radians(1.0)
"""Largest sag of an outstretched limb under its own weight, friction against it included."""

SAG_ANYWHERE = math.radians(5.0)
"""Largest sag in any posture: a joint that turns its limb lengthwise may bear it bent."""

BANDWIDTH = 2.0 * math.pi * 3.0
"""Smallest natural frequency of a joint that carries its own limb only, rad/s."""

STANCE_DAMPING, DAMPING = 0.4, 0.8
"""Damping ratios of leg joints (under the whole robot) and of the others."""

STEP_SHARE = 0.3
"""Limit of a joint's natural frequency times the timestep; sets the rotor inertia."""

TENDON_STIFFNESS = 10.0
"""Bending stiffness that the tendons give the torso, over m g h of the upper body."""


@dataclass(frozen=True)
class Gains:
    """Stiffness (N m/rad or N/m) and damping by joint, shape (n,)."""

    stiffness: Array
    damping: Array


@dataclass(frozen=True)
class _Load:
    """
    Load of a joint.

    Attributes
    ----------
    inertia
        In the starting posture, kg m^2 (or kg).
    moment
        Largest static moment of the starting posture, whichever way the robot leans, N m (or N).
    largest_moment
        A bound of it in any posture.
    damping
        Of the joint itself, by the URDF, N m s/rad.
    is_leg
        Whether the joint carries the whole robot.

    """

    inertia: float
    moment: float
    largest_moment: float
    damping: float
    is_leg: bool


def joint_gains(model: Any, data: Any, config: RobotConfig, robot: Description,
                joints: tuple[str, ...], friction: Array) -> Gains:
    """
    Return the gains of actuated joints, from the configuration or derived.

    Parameters
    ----------
    model, data
        MuJoCo's, after ``mj_forward`` in the starting posture.
    config, robot
        The robot.
    joints
        Names.
    friction
        Largest friction of each, (n,), N m.

    """
    moment, inertia = _pendulum(model, data, config)
    loads = [_load_with_followers(model, data, config, robot, name) for name in joints]
    stiffness = np.array([_stiffness(load, moment, dry) for load, dry in zip(loads, friction)])
    _override(stiffness, config.simulation.stiffness, config, joints, 'stiffness')
    damping = np.array([_damping(load, k, inertia) for load, k in zip(loads, stiffness)])
    _override(damping, config.simulation.damping, config, joints, 'damping')
    return Gains(stiffness, damping)


def moved_inertias(model: Any, data: Any, joints: tuple[str, ...]) -> Array:
    """Return the inertia that each joint moves while all others are still, (n,), kg m^2."""
    dofs = [model.joint(f'joint/{name}').dofadr[0] for name in joints]
    return np.diagonal(joint_space_inertia(model, data))[dofs]


def set_rotor_inertias(model: Any, data: Any, joints: tuple[str, ...], gains: Gains,
                       rotors: Array) -> None:
    """Give every joint the inertia of its rotor, and enough for gains and timestep (in place)."""
    least = model.opt.timestep / STEP_SHARE
    composite = np.diagonal(joint_space_inertia(model, data))
    model.dof_armature[6:] = 0.02 * composite[6:] + 1e-6 * mujoco.mj_getTotalmass(model)
    for name, stiffness, rotor in zip(joints, gains.stiffness, rotors):
        dof = model.joint(f'joint/{name}').dofadr[0]
        model.dof_armature[dof] = max(
            model.dof_armature[dof], stiffness * least ** 2, float(rotor))
    _set_vertebra_inertias(model, least)
    mujoco.mj_setConst(model, data)


@dataclass(frozen=True)
class UpperBody:
    """Load of the lowest vertebra: weight, N, and height of its centre of mass above that, m."""

    weight: float
    height: float

    @staticmethod
    def of(model: Any, data: Any) -> UpperBody:
        """Compute it from MuJoCo's model, after ``mj_forward``."""
        base = model.body('vertebra/1').id
        return UpperBody(GRAVITY * float(model.body_subtreemass[base]),
                         float(np.linalg.norm(data.subtree_com[base] - data.xpos[base])))


def set_tendon_gains(model: Any, torso: TorsoConfig, upper: UpperBody) -> Array:
    """
    Set the tendon servos' gains (in place) for an upper body; return the pretensions, N.

    Four evenly spaced tendons of stiffness k at radius r resist bending with 2 r^2 k.
    """
    count, moment = len(torso.attachment_angles_deg), upper.weight * upper.height
    stiffness = TENDON_STIFFNESS * moment / (0.5 * count * torso.radius ** 2)
    # No tendon goes slack up to the moment of half the weight at the height of its CoM.
    pretension = 0.5 * moment / (0.5 * count * torso.radius)
    for i in range(count):
        servo = model.actuator(f'tendon/{i}').id
        model.actuator_biasprm[servo, 1:3] = -stiffness, -0.02 * stiffness
        model.actuator_forcerange[servo] = -10.0 * pretension, 0.0
    return np.full(count, pretension)


def _stiffness(load: _Load, moment: float, friction: float) -> float:
    if load.is_leg:
        return max(STANCE_STIFFNESS * moment, friction / SAG)
    return max(BANDWIDTH ** 2 * load.inertia, BANDWIDTH * load.damping,
               (load.moment + friction) / SAG, load.largest_moment / SAG_ANYWHERE)


def _damping(load: _Load, stiffness: float, pendulum_inertia: float) -> float:
    if load.is_leg:
        return 2.0 * STANCE_DAMPING * math.sqrt(stiffness * pendulum_inertia)
    return 2.0 * DAMPING * math.sqrt(stiffness * load.inertia)


def _pendulum(model: Any, data: Any, config: RobotConfig) -> tuple[float, float]:
    """Return m g h (N m) and m h^2 (kg m^2), h from the lowest sole to the centre of mass."""
    lowest = min(data.site(f'sole/{name}').xpos[2] for name in config.feet)
    mass, height = model.body_subtreemass[0], data.subtree_com[0][2] - lowest
    return float(GRAVITY * mass * height), float(mass * height ** 2)


def _load_with_followers(model: Any, data: Any, config: RobotConfig, robot: Description,
                         name: str) -> _Load:
    """Return the load of a joint, joints that mimic it included."""
    load = _load(model, data, config, name)
    for follower, (leader, gain, _) in robot.mimics.items():
        if leader == name and follower not in config.locked_joints:
            more = _load(model, data, config, follower)
            load = _Load(load.inertia + gain ** 2 * more.inertia,
                         load.moment + abs(gain) * more.moment,
                         load.largest_moment + abs(gain) * more.largest_moment,
                         load.damping + gain ** 2 * more.damping, load.is_leg)
    return load


def _load(model: Any, data: Any, config: RobotConfig, name: str) -> _Load:
    joint = model.joint(f'joint/{name}')
    body, dof = joint.bodyid[0], joint.dofadr[0]
    weight = GRAVITY * model.body_subtreemass[body]
    if joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE:
        moment = largest = weight / 0.01 * SAG  # at most 1 cm of sag
    else:
        anchor, axis = data.xanchor[joint.id], data.xaxis[joint.id]
        arm = data.subtree_com[body] - anchor
        moment = weight * float(np.linalg.norm(np.cross(axis, arm)))
        largest = GRAVITY * _stretched_moment(model, data, body, anchor, axis)
    return _Load(float(np.diagonal(joint_space_inertia(model, data))[dof]), moment, largest,
                 float(np.ravel(model.dof_damping[dof])[0]),
                 _carries_robot(model, config, joint.id))


def _stretched_moment(model: Any, data: Any, body: int, anchor: Array,
                      axis: Array | None = None) -> float:
    """
    Return a bound of a limb's first moment about its joint in any posture, kg m.

    The limb reaches farthest if all that its joints move lies in one line away from the axis; what
    moves with the first joint only keeps its distance from the axis. Without an axis, distances
    are those from the anchor.
    """
    def distance(point: Array) -> float:
        arm = point - anchor
        return float(np.linalg.norm(arm if axis is None else np.cross(axis, arm)))

    moment = model.body_mass[body] * distance(data.xipos[body])
    for child in np.flatnonzero(model.body_parentid == body).tolist():
        if not model.body_jntnum[child]:
            moment += _stretched_moment(model, data, child, anchor, axis)
            continue
        joint = data.xanchor[model.body_jntadr[child]]
        moment += model.body_subtreemass[child] * distance(joint)
        moment += _stretched_moment(model, data, child, joint)
    return float(moment)


def _carries_robot(model: Any, config: RobotConfig, joint: int) -> bool:
    """Whether a joint is between the base and a sole."""
    base = model.site('base').bodyid[0]
    return any(joint in joints_between(model, base, model.site(f'sole/{foot}').bodyid[0])
               for foot in config.feet)


def joint_space_inertia(model: Any, data: Any) -> Array:
    """Return the joint-space inertia of MuJoCo's model and data, shape (nv, nv)."""
    full = np.zeros((model.nv, model.nv))
    # MuJoCo 4 expects the data, MuJoCo 3 the packed matrix.
    try:
        mujoco.mj_fullM(model, full, data.qM)
    except (TypeError, AttributeError):
        mujoco.mj_fullM(model, data, full)
    return full


def _set_vertebra_inertias(model: Any, least: float) -> None:
    for i in range(model.njnt):
        if model.joint(i).name.startswith('vertebra/'):
            dof = model.jnt_dofadr[i]
            spring = float(np.ravel(model.jnt_stiffness[i])[0])
            model.dof_armature[dof] = max(model.dof_armature[dof], spring * least ** 2)


def _override(values: Array, given: Any, config: RobotConfig, joints: tuple[str, ...],
              what: str) -> None:
    """Overwrite derived values by those configured by group, then by joint."""
    groups, index = config.groups, {name: i for i, name in enumerate(joints)}
    known = {joint for group in groups.values() for joint in group} | set(joints)
    for name, value in sorted(given.items(), key=lambda item: item[0] not in groups):
        if name not in groups and name not in known:
            raise UnknownNameError('joint or group', name, (*groups, *joints),
                                   f'simulation.{what} of {config.name}')
        if not 0.0 <= value < math.inf:
            raise ConfigurationError(
                f'simulation.{what}.{name} of {config.name} must be finite and not negative, '
                f'not {value}')
        for joint in groups.get(name, (name,)):
            if joint in index:
                values[index[joint]] = value
