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
"""Drives between commands and motors: position control, speed limits, noise, delay of tendons."""

from __future__ import annotations

import math

from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.gains import Gains
from biped_com_ros.sim.interface import Command, DriveOptions
from biped_com_ros.sim.sensors import Delay, Noise, steps_of
import numpy as np


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
