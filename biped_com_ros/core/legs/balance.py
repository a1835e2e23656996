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
(:func:`desired_zmp`), a centre of mass that gives way to what the ground measures
(:class:`ComAdmittance`), soles that do (:class:`SoleAdmittance`), and the tilt of the ground
(:class:`GroundTilt`). All of them are limited in size and rate. The structure follows Kajita et
al. 2010 and Caron, Kheddar and Tempier 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import check_positive
from biped_com_ros.core.geometry.polygon import half_planes
from biped_com_ros.core.geometry.pose import Array, rotation_about
import numpy as np


@dataclass(frozen=True, kw_only=True)
class BalanceSettings:
    """
    Gains and limits of the feedback.

    Attributes
    ----------
    dcm_gain
        Offset of the desired zero-moment point per error of the DCM; above 1.
    com_gain
        Acceleration of the centre of mass per error of the zero-moment point, in omega^2.
    zmp_time
        Time constant of the low-pass of the measured zero-moment point, s.
    velocity_time
        Time constant of the derivative of the measured centre of mass, s.
    zmp_margin
        Distance of the desired zero-moment point from the edge of the support, m.
    max_com_offset, max_com_speed
        Of the centre of mass from the plan, m and m/s.
    tilt_time
        Time constant of following small changes of the tilt of the ground, s.
    tilt_tolerance
        Tilt that counts as level, rad: errors of the IMU's mounting are not a slope.
    max_tilt, max_tilt_rate, max_tilt_acceleration
        Of the ground, rad, rad/s and rad/s^2.
    sole_gain
        Rate at which a sole turns per error of its centre of pressure, rad/s/m.
    sole_time
        Time constant with which a sole returns, s.
    max_sole_turn
        Of a sole from the ground's tilt, rad.
    max_increment, max_increment_rate
        Of each joint, rad and rad/s: the last limit before the drives.
    start_time
        Time in which centre of mass and soles begin to give way; meanwhile the robot adapts to
        the tilt of the ground, s.
    fade_time
        Time in which increments fade out when measurements are stale, s.

    """

    dcm_gain: float = 2.0
    com_gain: float = 1.0
    zmp_time: float = 0.02
    velocity_time: float = 0.03
    zmp_margin: float = 0.01
    max_com_offset: float = 0.06
    max_com_speed: float = 0.5
    tilt_time: float = 0.3
    tilt_tolerance: float = 0.0
    max_tilt: float = 0.2
    max_tilt_rate: float = 0.3
    max_tilt_acceleration: float = 0.4
    sole_gain: float = 1.0
    sole_time: float = 0.3
    max_sole_turn: float = 0.05
    max_increment: float = 0.5
    max_increment_rate: float = 2.0
    start_time: float = 1.0
    fade_time: float = 1.0

    def __post_init__(self) -> None:
        check_positive('balance', self, *(
            name for name in self.__dataclass_fields__ if name != 'tilt_tolerance'
            and not name.endswith('gain')))


def desired_zmp(reference: Array, dcm_error: Array, gain: float,
                corners: Sequence[tuple[float, float]], least_margin: float) -> Array:
    """
    Return the zero-moment point that brings the DCM back to its reference, (2,), m.

    ``p = p_ref + gain e``, as far as it is inside of the support by a margin: from the reference
    in the direction of the error. With ``e' = omega (e - (p - p_ref))`` the error decays for
    gains above 1.

    Parameters
    ----------
    reference
        Of the zero-moment point, (2,), m.
    dcm_error
        Measured minus planned divergent component of motion, (2,), m.
    gain
        Of the error.
    corners
        Of the support, counter-clockwise, m.
    least_margin
        Distance from its edge, m; where the reference is nearer, it stays.

    """
    offset = gain * dcm_error
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

    """

    def __init__(self, settings: BalanceSettings, omega: float) -> None:
        self._settings = settings
        self.offset, self.velocity = np.zeros((2, 2))
        self._error: Array = np.zeros(2)
        self.set_omega(omega)

    def set_omega(self, omega: float) -> None:
        """Set the natural frequency, 1/s; motion and low-pass go on."""
        self._gain = self._settings.com_gain * omega * omega

    def update(self, dt: float, zmp_error: Array) -> None:
        """Advance by `dt`, s, with measured minus desired zero-moment point, (2,), m."""
        s = self._settings
        self._error = self._error + dt / (s.zmp_time + dt) * (zmp_error - self._error)
        self.velocity = limited(self.velocity + dt * self._gain * self._error, s.max_com_speed)
        free = self.offset + dt * self.velocity
        self.offset = limited(free, s.max_com_offset)
        if (self.offset != free).any():  # at the limit it does not move on outward
            outward = self.offset / np.linalg.norm(self.offset)
            self.velocity = self.velocity - max(float(outward @ self.velocity), 0.0) * outward

    def fade(self, dt: float) -> None:
        """Return towards zero, `dt` s later."""
        self.velocity, self._error = np.zeros((2, 2))
        self.offset = self.offset * math.exp(-dt / self._settings.fade_time)


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
        self.turn = limited(
            self.turn + dt * (rate - self.turn / s.sole_time), s.max_sole_turn)

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
        speed = min(math.sqrt(s.max_tilt_acceleration * distance), distance / s.tilt_time,
                    s.max_tilt_rate)
        goal = error * (speed / max(distance, 1e-9))
        self.rate = self.rate + limited(goal - self.rate, dt * s.max_tilt_acceleration)
        self.tilt = limited(self.tilt + dt * self.rate, s.max_tilt)

    @property
    def rotation(self) -> Array:
        """Return the orientation of the ground in the axes of the gait, (3, 3)."""
        return _turned(*self.tilt.tolist())


def limited(vector: Array, largest: float) -> Array:
    """Return a vector no longer than a limit."""
    size = float(np.linalg.norm(vector))
    return vector if size <= largest else np.asarray(vector * (largest / size))


def _turned(roll: float, pitch: float) -> Array:
    return rotation_about(1, pitch) @ rotation_about(0, roll)
