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
Drives between commands and joints: position control, speed limits, noise, delay, friction.

Friction is Coulomb's, viscous, and breakaway with the Stribeck effect. At the speed ``v`` the
joint is braked by at most ``F(v) = Fc + (Fs - Fc) exp(-(v / vs)^2)``, and by ``b v``. At rest,
friction balances any effort up to ``Fs`` (Armstrong-Helouvry, Dupont and Canudas de Wit 1994, "A
survey of models, analysis tools and compensation methods for the control of machines with
friction", equation (5) with exponent 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math
from typing import Any, NamedTuple

from biped_com_ros.sim.description import Description, Joint
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.gains import Gains
from biped_com_ros.sim.instruments import ErrorSource
from biped_com_ros.sim.interface import Command, DriveOptions
from biped_com_ros.sim.sensors import Delay, Noise, steps_of
import numpy as np


class Follower(NamedTuple):
    """A joint at ``gain * leader + offset``; `leader` is an index, None for a locked joint."""

    qpos: int
    dof: int
    leader: int | None
    gain: float
    offset: float


class ModelJoints:
    """
    Maps joint positions to MuJoCo's ``qpos``, with the joints that mimic others.

    Parameters
    ----------
    model
        MuJoCo's.
    robot
        Robot with these joints.
    names
        Joints, in the order of the positions.
    locked
        Positions of locked joints, which MuJoCo's model does not have, by name.

    Attributes
    ----------
    qpos, dofs
        Addresses of the joints' positions and velocities, shape (n,).
    followers
        Joints that mimic others.

    """

    def __init__(self, model: Any, robot: Description, names: tuple[str, ...],
                 locked: Mapping[str, float]) -> None:
        joints = [model.joint(f'joint/{name}') for name in names]
        self.qpos = np.array([joint.qposadr[0] for joint in joints], dtype=int)
        self.dofs = np.array([joint.dofadr[0] for joint in joints], dtype=int)
        self.followers = []
        for name, (leader, gain, offset) in robot.mimics.items():
            if name not in locked:
                joint = model.joint(f'joint/{name}')
                self.followers.append(Follower(
                    joint.qposadr[0], joint.dofadr[0],
                    names.index(leader) if leader in names else None, gain,
                    offset + gain * locked.get(leader, 0.0)))

    def write(self, qpos: Array, positions: Array) -> None:
        """Write joint positions (n,), and those of the followers, to `qpos`."""
        qpos[self.qpos] = positions
        for follower in self.followers:
            leader = 0.0 if follower.leader is None else positions[follower.leader]
            qpos[follower.qpos] = follower.offset + follower.gain * leader


@dataclass(frozen=True, kw_only=True)
class JointFriction:
    """
    Friction of joints.

    Attributes
    ----------
    coulomb, breakaway
        ``Fc`` and ``Fs >= Fc``, (n,), N m or N.
    viscous
        ``b``, (n,), N m s/rad or N s/m.
    stribeck_velocity
        ``vs``, rad/s or m/s.

    """

    coulomb: Array
    breakaway: Array
    viscous: Array
    stribeck_velocity: float

    @staticmethod
    def draw(joints: Sequence[Joint], options: DriveOptions, source: ErrorSource) -> JointFriction:
        """
        Return the friction of joints by their limits, with its scatter.

        Joints without an effort limit have none, and those without a speed limit no viscous one,
        unless it is given.
        """
        names, o = tuple(joint.name for joint in joints), options
        limits = _finite([joint.effort for joint in joints])
        speeds = np.array([joint.velocity for joint in joints])
        # As many joints are stiffer than the mean as are freer by the same factor.
        scatter = np.exp(source.sample('friction', names, o.friction_scatter))

        def of(what: str, values: Array) -> Array:
            return source.settle(what, names, values[:, np.newaxis])[:, 0]

        coulomb = of('friction', o.joint_friction * limits * scatter)
        stiction = of('stiction', o.joint_stiction * limits * scatter)
        viscous = of('viscous', o.viscous_friction * limits * scatter / speeds)
        return JointFriction(coulomb=coulomb, breakaway=coulomb + stiction, viscous=viscous,
                             stribeck_velocity=o.stribeck_velocity)

    @property
    def depends_on_speed(self) -> bool:
        """Whether breakaway is above Coulomb friction anywhere."""
        return bool((self.breakaway > self.coulomb).any())

    def dry(self, velocities: Array) -> Array:
        """Return the largest dry friction (n,) at velocities (n,), N m."""
        share = np.exp(-np.square(velocities / self.stribeck_velocity))
        return np.asarray(self.coulomb + (self.breakaway - self.coulomb) * share)


def _finite(values: Sequence[float]) -> Array:
    return np.array([value if np.isfinite(value) else 0.0 for value in values])


class SpeedLimit:
    """
    Setpoints that follow commands with a limited speed.

    Parameters
    ----------
    speeds
        Largest speeds (n,), rad/s or m/s; infinite: any.
    dt
        Time between two calls, s.

    """

    def __init__(self, speeds: Array, dt: float) -> None:
        self._reach = speeds * dt
        self._is_on = bool(np.isfinite(speeds).any())
        self._now: Array | None = None

    def clear(self) -> None:
        """Begin with the next command."""
        self._now = None

    def follow(self, command: Array) -> Array:
        """Return the setpoints (n,) after a command (n,)."""
        if not self._is_on:
            return command
        before = command if self._now is None else self._now
        self._now = before + np.clip(command - before, -self._reach, self._reach)
        return self._now


class Drives:
    """
    The drives of a robot's joints and tendons.

    Parameters
    ----------
    options
        What they do besides following commands.
    gains
        Of the joints.
    offsets
        Errors of the joints' encoders, (n,), rad; a drive controls what its encoder measures.
    effort_limits, velocity_limits
        Of the joints, (n,).
    tendons
        Number of tendons.
    dt
        Time between two commands, s.
    seed
        Of the noise.

    """

    def __init__(self, options: DriveOptions, gains: Gains, *, offsets: Array,
                 effort_limits: Array, velocity_limits: Array, tendons: int, dt: float,
                 seed: int) -> None:
        o, count = options, len(offsets)
        self._gains, self._offsets = gains, offsets
        self._speed = SpeedLimit(velocity_limits * (o.drive_speed or math.inf), dt)
        self._winches = SpeedLimit(np.full(tendons, o.tendon_speed or math.inf), dt)
        seeds = np.random.SeedSequence((seed, 5)).spawn(2)
        limits = np.where(np.isfinite(effort_limits), effort_limits, 0.0)
        self._noise = Noise(o.drive_noise * limits, (count,), seeds[0])
        self._tendon_noise = Noise(o.tendon_noise, (tendons,), seeds[1])
        self._tendon_delay = Delay(steps_of(o.tendon_delay, dt, 'tendon_delay'), tendons)

    def clear(self) -> None:
        """Drop earlier commands."""
        self._speed.clear()
        self._winches.clear()
        self._tendon_delay.clear()

    def controls(self, command: Command) -> Array:
        """Return the motors' controls, effort at position and velocity zero, (n,), N m."""
        g = self._gains
        # The drive controls the position measured by its encoder, offset included.
        position = self._speed.follow(command.position) - self._offsets
        controls = g.stiffness * position + g.damping * command.velocity + command.effort
        self._noise.add_to(controls)
        return np.asarray(controls)

    def tendon_lengths(self, command: Command) -> Array:
        """Return the lengths that the winches set, (tendons,), m."""
        lengths = self._winches.follow(self._tendon_delay.push(command.tendon_lengths)).copy()
        self._tendon_noise.add_to(lengths)
        return lengths
