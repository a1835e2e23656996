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
Reference motion of the bend: limited in speed and angular acceleration, and smooth.

Bends are bend times direction, complex numbers forward + i left, so that a motion straight
through the centre needs no change of direction.

A joystick gives bends, too (Russo et al. 2021, Figure 6).
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.settings import setting, Settings
import numpy as np

BRAKING_SHARE = 0.8
"""Share of the acceleration with which stops are planned; the rest prevents overshooting."""

_INTEGRATION_STEP = 0.005
"""Longer time steps are divided, s."""

SETTLED = 1e-12
"""Once the low-passes are this close to a motion that has ended, they are set to its end, rad."""


@dataclass(frozen=True, kw_only=True)
class MotionLimits(Settings):
    """Limits of the torso's motion: of bend and direction together."""

    speed: float = setting(
        1.5, 'Largest speed of the bend', 'rad/s', 0.001, 10.0, name='max_speed')
    acceleration: float = setting(
        20.0, 'Largest angular acceleration of the reference; Russo et al. measured 36', 'rad/s2',
        0.01, 36.0, name='max_acceleration')
    #: Time constant of the two low-passes of the reference; 0: none, s.
    smoothing: float = 0.03


class BendReference:
    """
    A motion towards a target that may change at any time.

    Braking is planned for a stop at the target. The two low-passes after that average over the
    past, which adds a delay of twice `smoothing` but no acceleration.

    Parameters
    ----------
    limits
        Of the motion; may be replaced at any time.

    Attributes
    ----------
    motion
        Position, velocity and acceleration of the bend, complex, rad, rad/s and rad/s^2.

    """

    def __init__(self, limits: MotionLimits) -> None:
        self.limits = limits
        self.reset(np.zeros(2))

    def reset(self, position: Array) -> None:
        """Rest at a bend (2,), rad."""
        self._planned, self._speed = as_complex(position), 0j
        self._first = self._second = self._planned
        self.motion: tuple[complex, complex, complex] = self._planned, 0j, 0j

    @property
    def position(self) -> Array:
        """Bend, (2,), rad."""
        return as_vector(self.motion[0])

    @property
    def velocity(self) -> Array:
        """Velocity of the bend, (2,), rad/s."""
        return as_vector(self.motion[1])

    def stopping_point(self) -> complex:
        """Return the nearest bend at which the motion can come to rest, rad."""
        return self._planned + self._speed * (abs(self._speed) / (2.0 * self.limits.acceleration))

    def update(self, target: complex, dt: float) -> None:
        """Advance the motion towards `target`, rad, by `dt` seconds."""
        if not self._speed and self.motion == (target, 0j, 0j):
            return
        steps = math.ceil(dt / _INTEGRATION_STEP)
        for _ in range(steps):
            self._step(target, dt / steps)

    def _step(self, target: complex, dt: float) -> None:
        before = self._speed
        self._plan(target, dt)
        smoothing = self.limits.smoothing
        if not smoothing:
            self.motion = self._planned, self._speed, (self._speed - before) / dt
            return
        share, gain = -math.expm1(-dt / smoothing), math.expm1(dt / smoothing) / dt
        self._first += share * (self._planned - self._first)
        self._second += share * (self._first - self._second)
        if not self._speed and (abs(self._planned - self._first) < SETTLED
                                and abs(self._planned - self._second) < SETTLED):
            self._first = self._second = self._planned
        # The lag of a low-pass gives the slope, less affected by uneven steps than differences.
        velocity = gain * (self._first - self._second)
        acceleration = gain * (gain * (self._planned - self._first) - velocity)
        self.motion = self._second, velocity, acceleration

    def _plan(self, target: complex, dt: float) -> None:
        limits, way = self.limits, target - self._planned
        distance, change = abs(way), -self._speed
        if distance > 0.0:
            change += way / distance * min(
                limits.speed, distance / dt,
                math.sqrt(2.0 * BRAKING_SHARE * limits.acceleration * distance))
        self._speed += clamped(change, limits.acceleration * dt)
        self._planned += dt * self._speed


def clamped(value: complex, largest: float) -> complex:
    """Return `value`, shortened to the size `largest` if it is larger."""
    size = abs(value)
    return value * (largest / size) if size > largest else value


def as_complex(bend: Array) -> complex:
    """Return a bend (2,) as forward + i left."""
    return complex(*bend.tolist())


def as_vector(bend: complex) -> Array:
    """Return forward + i left as a bend (2,)."""
    return np.array((bend.real, bend.imag))


TOUR_PERIOD = 8.0
"""Period of :func:`tour`, s."""


class Joystick:
    """
    Converts the position of a stick to a bend.

    The direction of the stick is the direction of the bend. The bend is linear in the deflection
    beyond a dead zone, and largest at a deflection of 1; larger deflections (the corners of a
    square gate) count as 1.

    Parameters
    ----------
    max_bend
        rad.
    dead_zone
        Deflection, of 1, up to which the stick counts as centred.

    """

    def __init__(self, max_bend: float, dead_zone: float = 0.05) -> None:
        if not (0.0 < max_bend < math.pi and 0.0 <= dead_zone < 1.0):
            raise ConfigurationError(
                f'a joystick needs 0 < largest bend < pi and 0 <= dead zone < 1, not {max_bend} '
                f'rad and {dead_zone}')
        self.max_bend, self.dead_zone = max_bend, dead_zone

    def bend(self, forward: float, left: float) -> Array:
        """
        Return bend times direction (2,), rad: x forward, y to the left.

        Raises
        ------
        InputError
            If an axis is not finite.

        """
        if not (math.isfinite(forward) and math.isfinite(left)):
            raise InputError(f'joystick axes must be finite, not {forward} and {left}')
        deflection = math.hypot(forward, left)
        if deflection <= self.dead_zone:
            return np.zeros(2)
        share = (min(deflection, 1.0) - self.dead_zone) / (1.0 - self.dead_zone)
        return (self.max_bend * share / deflection) * np.array((forward, left))


def tour(time: float) -> tuple[float, float]:
    """
    Return the position of the stick in the experiment of the paper, forward and left.

    From the centre to the border of the workspace, once around it, and back, repeated.

    Parameters
    ----------
    time
        s.

    """
    t = time % TOUR_PERIOD
    if not 0.5 <= t < 6.5:
        return 0.0, 0.0
    angle = 2.0 * math.pi * min(max((t - 1.5) / 5.0, 0.0), 1.0)
    return math.cos(angle), math.sin(angle)
