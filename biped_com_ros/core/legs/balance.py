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
Laws of balance for a walking robot whose drives are position controlled.

Planar laws, in the axes of the gait: the desired zero-moment point by DCM feedback
(:func:`bound_zmp`), a centre of mass that gives way to what the ground measures
(:class:`ComAdmittance`), soles that do (:class:`SoleAdmittance`), and the tilt of the ground
(:class:`GroundTilt`). All of them are limited in size and rate. The structure follows Kajita et
al. 2010 and Caron, Kheddar and Tempier 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import check_positive
from biped_com_ros.core.geometry.polygon import half_planes
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about
import numpy as np

_LONGEST_LEAN, _LARGEST_LEAN = 0.15, 0.4
"""Of the base from where it is commanded, m and rad."""
#: Time constant of following small changes of the tilt of the ground, s.
_TILT_TIME = 0.3
#: Largest rate, rad/s, and acceleration, rad/s^2, of the tilt of the ground.
MAX_TILT_RATE, MAX_TILT_ACCELERATION = 0.3, 0.4
#: Largest turn of a sole from the ground's tilt, rad.
MAX_SOLE_TURN = 0.05
#: Time constant with which a leg that has landed while the robot leaned brings it upright, s.
_RETURN_TIME = 0.25
#: Time in which increments fade out when measurements are stale, s.
FADE_TIME = 1.0


@dataclass(frozen=True, kw_only=True)
class BalanceSettings:
    """
    Gains and limits of the feedback.

    Attributes
    ----------
    com_gain
        Acceleration of the centre of mass per error of the zero-moment point, in omega^2.
    zmp_time
        Time constant of the low-pass of the measured zero-moment point, s.
    zmp_margin
        Distance of the desired zero-moment point from the edge of the support, m.
    max_com_offset, max_com_speed
        Of the centre of mass from the plan, m and m/s.
    tilt_tolerance
        Tilt that counts as level, rad: errors of the IMU's mounting are not a slope.
    max_tilt
        Of the ground, rad.
    sole_gain
        Rate at which a sole turns per error of its centre of pressure, rad/s/m.
    sole_time
        Time constant with which a sole returns, s.
    max_step_adjustment
        Of a footstep from its place beside the other foot in the plan, m; 0: steps stay.
    step_gain
        Of a footstep's place per error of the DCM that is predicted for its landing.
    max_step_speed
        Of a swing foot from its plan, m/s.
    max_wait
        Longest time in a phase of a step for which a walk slows down, s.
    max_rate
        Of the time of the gait, for a robot that falls towards the foot in the air, as far as the
        joints are fast enough; at least 1.
    max_increment, max_increment_rate
        Of each joint, rad and rad/s: the last limit before the drives.
    start_time
        Time in which centre of mass and soles begin to give way; meanwhile the robot adapts to
        the tilt of the ground, s.

    """

    com_gain: float = 1.0
    zmp_time: float = 0.02
    zmp_margin: float = 0.01
    max_com_offset: float = 0.06
    max_com_speed: float = 0.5
    tilt_tolerance: float = 0.0
    max_tilt: float = 0.2
    sole_gain: float = 1.0
    sole_time: float = 0.3
    max_step_adjustment: float = 0.0
    step_gain: float = 0.7
    max_step_speed: float = 1.0
    max_wait: float = 1.0
    max_rate: float = 2.0
    max_increment: float = 0.5
    max_increment_rate: float = 2.0
    start_time: float = 1.0

    def __post_init__(self) -> None:
        check_positive('balance', self, *(
            name for name in self.__dataclass_fields__
            if name not in ('tilt_tolerance', 'max_step_adjustment')
            and not name.endswith('gain')))
        check_positive('balance', self, 'max_step_adjustment', or_zero=True)


def stepping(max_step_adjustment: float, **settings: float) -> BalanceSettings:
    """
    Return settings with which steps are adjusted: whoever steps elsewhere has to move faster.

    Parameters
    ----------
    max_step_adjustment
        See :class:`BalanceSettings`; 0: none, and the usual settings.
    settings
        Others.

    """
    if not max_step_adjustment:
        return BalanceSettings(**settings)
    return BalanceSettings(
        max_step_adjustment=max_step_adjustment, max_com_offset=0.12, max_com_speed=0.6,
        max_increment=0.8, max_increment_rate=5.0, **settings)


def bound_zmp(reference: Array, offset: Array, corners: Sequence[tuple[float, float]],
              least_margin: float) -> Array:
    """
    Return a zero-moment point with as much of an offset as the support allows, (2,), m.

    With the offset ``gain e`` of DCM feedback, and ``e' = omega (e - (p - p_ref))``, the error e
    of the DCM decays for gains above 1.

    Parameters
    ----------
    reference
        Of the zero-moment point, (2,), m; where it is nearer to the edge, it stays.
    offset
        From it, (2,), m.
    corners
        Of the support, counter-clockwise, m.
    least_margin
        Distance from its edge, m.

    """
    share = 1.0
    for a, b, c in half_planes(corners):
        outward = a * offset[0] + b * offset[1]
        if outward < 0.0:
            room = max(a * reference[0] + b * reference[1] - c - least_margin, 0.0)
            share = min(share, room / -outward)
    return np.asarray(reference + share * offset)


class ComAdmittance:
    """
    Offset of the centre of mass by which the robot gives way to its measured zero-moment point.

    ``d'' = com_gain omega^2 (p_measured - p_desired)``: a stiff robot that is pushed moves with
    the push, and its zero-moment point stays inside; the DCM feedback returns it.

    Parameters
    ----------
    settings
        Gains and limits.
    omega
        Natural frequency of the linear inverted pendulum, 1/s.

    Attributes
    ----------
    offset, velocity
        (2,), m and m/s.
    centre
        Offset at rest, (2,), m: where steps have moved the walk to.

    """

    def __init__(self, settings: BalanceSettings, omega: float) -> None:
        self._settings = settings
        self.centre: Array = np.zeros(2)
        self.offset, self.velocity = np.zeros((2, 2))
        self._error: Array = np.zeros(2)
        self.set_omega(omega)

    def set_omega(self, omega: float) -> None:
        """Set the natural frequency, 1/s; motion and low-pass go on."""
        self._omega_squared = omega * omega
        self._gain = self._settings.com_gain * self._omega_squared

    def update(self, dt: float, zmp_error: Array,
               bound: Callable[[Array], Array] | None = None) -> None:
        """
        Advance.

        Parameters
        ----------
        dt
            s.
        zmp_error
            Measured minus desired zero-moment point, (2,), m.
        bound
            Returns the nearest offset (2,), m, of the zero-moment point that the support allows;
            None: all are allowed.

        """
        s = self._settings
        self._error = self._error + dt / (s.zmp_time + dt) * (zmp_error - self._error)
        acceleration = self._gain * self._error
        if bound is not None:
            zmp = bound(self.offset - acceleration / self._omega_squared)
            acceleration = (self.offset - zmp) * self._omega_squared
        self.velocity = limited(self.velocity + dt * acceleration, s.max_com_speed)
        free = self.offset + dt * self.velocity
        self.offset = self._near_centre(free)
        if (self.offset != free).any():  # at the limit it does not move on outward
            outward = self.offset - self.centre
            outward = outward / np.linalg.norm(outward)
            self.velocity = self.velocity - max(float(outward @ self.velocity), 0.0) * outward

    def slow_down(self, dt: float, time_constant: float) -> None:
        """Come to rest with a time constant, s, `dt` s later, whatever is measured."""
        self._error = np.zeros(2)
        self.velocity = self.velocity * math.exp(-dt / time_constant)
        self.offset = self._near_centre(self.offset + dt * self.velocity)

    def follow(self, offset: Array) -> None:
        """Go on from where the robot is, (2,), m: no joint has held it there."""
        self.offset = self._near_centre(offset)

    def fade(self, dt: float) -> None:
        """Return towards the centre, `dt` s later."""
        self.velocity, self._error = np.zeros((2, 2))
        share = math.exp(-dt / FADE_TIME)
        self.offset = self.centre + share * (self.offset - self.centre)

    def _near_centre(self, offset: Array) -> Array:
        return self.centre + limited(offset - self.centre, self._settings.max_com_offset)


class SoleAdmittance:
    """
    Roll and pitch by which a sole gives way to its measured centre of pressure.

    Parameters
    ----------
    settings
        Gains and limits.

    Attributes
    ----------
    turn
        Roll and pitch relative to the ground, (2,), rad.

    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._settings, self.turn = settings, np.zeros(2)

    def update(self, dt: float, cop_error: Array, share: float) -> None:
        """
        Advance by `dt`, s.

        Parameters
        ----------
        dt
            s.
        cop_error
            Measured minus desired pressure in the axes of the sole, (2,), m.
        share
            Of the weight on the sole, 0 to 1.

        """
        s = self._settings
        # Pressure too far ahead raises the toes (negative pitch); too far left, the left edge.
        rate = s.sole_gain * share * np.array((cop_error[1], -cop_error[0]))
        self.turn = limited(self.turn + dt * (rate - self.turn / s.sole_time), MAX_SOLE_TURN)

    @property
    def rotation(self) -> Array:
        """Return the orientation relative to the ground, (3, 3)."""
        return _turned(*self.turn.tolist())


class GroundTilt:
    """
    Roll and pitch of the ground under the loaded soles, in the axes of the gait.

    It approaches the measured tilt with limited rate and acceleration, because the whole robot
    turns over its feet with it.

    Parameters
    ----------
    settings
        Limits.

    Attributes
    ----------
    tilt, rate
        Roll and pitch, (2,), rad, and their rates, rad/s.

    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._settings = settings
        self.tilt, self.rate = np.zeros((2, 2))

    def update(self, dt: float, measured: Array) -> None:
        """Advance by `dt`, s, with the measured roll and pitch (2,), rad."""
        s = self._settings
        size = float(np.hypot(*measured))
        level = max(1.0 - s.tilt_tolerance / max(size, 1e-9), 0.0)
        error = limited(measured * level, s.max_tilt) - self.tilt
        distance = float(np.hypot(*error))
        # A rate from which the acceleration can still stop at the goal.
        speed = min(math.sqrt(MAX_TILT_ACCELERATION * distance), distance / _TILT_TIME,
                    MAX_TILT_RATE)
        goal = error * (speed / max(distance, 1e-9))
        self.rate = self.rate + limited(goal - self.rate, dt * MAX_TILT_ACCELERATION)
        self.tilt = limited(self.tilt + dt * self.rate, s.max_tilt)

    @property
    def rotation(self) -> Array:
        """Return the orientation of the ground in the axes of the gait, (3, 3)."""
        return _turned(*self.tilt.tolist())


class BaseLean:
    """
    Where the base is, from where it is commanded, as one leg sees it.

    A robot that is pushed turns about the edge of its stance sole, and no joint moves it back.
    The leg in the air follows that, so that its foot lands level and where it should. Where both
    feet have landed and the robot turns about their edges, both legs do, so that the soles come to
    lie flat. Then they bring the robot upright again.

    Attributes
    ----------
    value
        x, y, z of the base, m, then roll and pitch, rad, (5,).
    is_airborne
        Whether the foot is in the air.
    has_landed
        Whether it has just touched down.

    """

    def __init__(self) -> None:
        self.value: Array = np.zeros(5)
        self.is_airborne = self.has_landed = False
        self.height = 0.0

    @property
    def angle(self) -> float:
        """Angle of the lean, rad."""
        return float(np.hypot(*self.value[3:]))

    def follow(self, measured: Array) -> None:
        """Follow what is measured, (5,), while the foot is in the air."""
        self.is_airborne, self.height = True, 0.0
        self.value = _limited_lean(measured)

    def turn_to_ground(self, measured: Array, dt: float, time_constant: float) -> None:
        """Approach what is measured, (5,), with a time constant, s: the sole comes to be flat."""
        goal, share = _limited_lean(measured), math.exp(-dt / time_constant)
        self.value = goal + share * (self.value - goal)
        self.height *= share

    def fade(self, dt: float) -> None:
        """Return towards zero, `dt` s later, with a time constant, s."""
        self.value = self.value * math.exp(-dt / _RETURN_TIME)
        self.height *= math.exp(-dt / _RETURN_TIME)

    def of(self, base: Pose) -> Pose:
        """Return where the base is that is commanded to be at a pose."""
        return Pose(_turned(*self.value[3:].tolist()) @ base.rotation,
                    base.position + self.value[:3])


def tilt_of(rotation: Array) -> tuple[float, float]:
    """Return roll and pitch of Ry(pitch) Rx(roll) from its z axis, rad."""
    x, y, z = rotation[:, 2].tolist()
    return -math.asin(min(max(y, -1.0), 1.0)), math.atan2(x, z)


def limited(vector: Array, largest: float) -> Array:
    """Return a vector no longer than a limit."""
    size = float(np.linalg.norm(vector))
    return vector if size <= largest else np.asarray(vector * (largest / size))


def _limited_lean(lean: Array) -> Array:
    return np.concatenate((limited(lean[:3], _LONGEST_LEAN), limited(lean[3:], _LARGEST_LEAN)))


def _turned(roll: float, pitch: float) -> Array:
    return rotation_about(1, pitch) @ rotation_about(0, roll)
