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
The load that the robot carries and its URDF does not contain, from the foot wrenches.

The unknown load is fixed to one link, the *carrier*: a mass ``m u`` and a first moment ``m h``
along the carrier's axes about its centre of mass, m being the mass of the model. (A wrong centre
of mass of the carrier itself is a first moment, too.) Newton and Euler are linear in both:

    F - F_model = m Y_F (h, u)        M - M_model = m Y_M (h, u)

where F_model and M_model are required by the model's motion, and Y is the rate of the momentum of
a unit load minus its weight. Momenta and measurements go through one linear filter before they
are compared: whatever its delay, the equation holds for a constant load, and noise of the joint
velocities hardly matters. The moments about the centre of mass along x and y are used; the mass u
is better observed from the motion of the centre of mass (:mod:`filter`).

The load's moments of inertia about the carrier's centre of mass are not estimated, but their
effect is known: where 8 % of the mass, 0.15 m away, turn with 1.6 rad/s^2, it is a third of a
millimetre.

At rest the rows of the height of h vanish (Muscolo et al. 2017: foot wrenches do not depend on the
height of the CoM). They grow with horizontal acceleration: swaying makes the height observable.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from biped_com_ros.core.com.carrier import Carrier
from biped_com_ros.core.com.foot_sensors import FootSensorErrors
from biped_com_ros.core.com.link_errors import LinkEffects, LinkErrors
from biped_com_ros.core.com.momentum import Momentum
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, cross
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.filters import Differentiator, NoiseMeter
from biped_com_ros.core.state.stance import Twist
import numpy as np

SETTLED = 5.0
"""Number of delays of the filter after which its start has no influence."""
_PAUSE, _LONGEST = 0.5, 2.0
"""Delays of the filter between two equations, and the most that one equation stands for."""
_CERTAIN = 5.0
"""Number of standard deviations by which an acceleration has to exceed its noise."""
_MOVES = 1.0 / 3.0
"""Frequency of typical motion, as a share of the bandwidth."""
_WORST = np.repeat((0.01, 0.002, 0.005, 0.0005), 2)
"""
Noise of force, velocity (m/s over the weight), moment (m) and angular momentum (m s), over the
weight, until they have been measured.
"""

_MOMENTUM, _COM, _MEASURED, _PUSH = slice(0, 6), slice(6, 9), slice(9, 15), slice(15, 18)
_POINT, _AXES = slice(18, 21), slice(21, 30)
_LINEAR, _ANGULAR = slice(30, 42), slice(42, 54)
_SIZE = 54
_NONE = np.zeros((2, 0))


class LoadEquation(NamedTuple):
    """
    Two linear equations of the load: ``rows @ (h, u) = residual``, m.

    Attributes
    ----------
    residual
        Moment error divided by the weight, along x and y, shape (2,), m.
    rows
        Shape (2, 4): the first three columns are for h, m, the last for u.
    upward
        The world's vertical along the carrier's axes, through the same filter, shape (3,).
    push
        External force over the vertical one, through the same filter.
    spin
        The model's rate of angular momentum about its centre of mass over the vertical force, m.
    inertia
        The rows of errors of the carrier's moments of inertia about its axes, over the mass of
        the model, shape (2, 3), 1/m.
    span
        Time that it stands for, s.
    repeats
        Number of successive equations that are as informative as one, being filtered alike.
    height
        The column of the rows for the height of h, along the vertical, as far as it exceeds its
        noise, shape (2,): by the horizontal force of the feet, and by the acceleration of the
        carrier relative to the centre of mass.
    noise
        Noise of the sensors in the residual at the frequencies of motion, m^2 s: its variance
        over one second.
    scatter
        Variance of this one residual by noise, m^2.
    late
        What one second of delay of the wrenches adds to the residual, m/s, shape (2,).
    sensors
        What the errors of the foot sensors add to it, m, shape (2, 9 F) or (2, 0).
    links
        The rows of the errors of the links, m, shape (2, 4 B) or (2, 0).
    uncertainty
        Variance of the residual by the covariance of the wrenches, m^2.

    """

    residual: Array
    rows: Array
    upward: Array
    push: float
    spin: float
    inertia: Array
    span: float
    repeats: float
    height: Array
    noise: float
    scatter: float
    late: Array
    sensors: Array
    links: Array
    uncertainty: float = 0.0


class LoadWrench:
    """
    Computes the equations of the load from successive instants.

    Parameters
    ----------
    model
        The robot.
    cutoff
        Bandwidth of the comparison, Hz; above the motion's and as low as that allows.
    gravity
        m/s^2.
    least_acceleration
        Horizontal acceleration, m/s^2, above which moments determine the height of the load, if
        it exceeds its noise, too.
    delay
        Of the wrenches of the feet, s.
    sensors, links
        Errors of the foot sensors and of the links; None if they have none.

    Attributes
    ----------
    link_effects
        Effects of the errors of the links, as of the last equation; None before.

    """

    def __init__(self, model: RobotModel, cutoff: float = 3.0, gravity: float = GRAVITY,
                 least_acceleration: float = 0.02, delay: float = 0.0,
                 sensors: FootSensorErrors | None = None,
                 links: LinkErrors | None = None) -> None:
        self._momentum, self._mass, self._gravity = Momentum(model), model.mass, gravity
        self._least = least_acceleration / gravity
        self._delay, self._sensors, self._links = delay, sensors, links
        self._feet = len(model.soles.names)
        self._filter = Differentiator(cutoff, _SIZE + 6 * self._feet)
        self._sample = np.zeros(_SIZE + 6 * self._feet)
        self._noise = NoiseMeter(self._mass * gravity * _WORST)
        # The rate of momentum is used, whose noise grows with frequency. For many equations its
        # noise at the frequencies of motion counts; for a single one all that the filter passes:
        # that of white noise over two delays, and that of the momentum at the cutoff.
        omega = 2.0 * math.pi * cutoff
        self._weights = 0.5 * np.repeat((
            (0.0, 0.0, 1.0, (_MOVES * omega) ** 2), (0.0, 0.0, 1.0, omega ** 2)), 2, axis=1)
        self._age = self._since_equation = self._since_links = 0.0
        self.link_effects: LinkEffects | None = None

    def reset(self) -> None:
        """Drop what came before."""
        self._filter.reset()
        self._noise.reset()
        if self._links is not None:
            self._links.reset()
        self._age = self._since_equation = self._since_links = 0.0

    def update(self, state: RobotState, twist: Twist, carrier: Carrier, dt: float,
               measured: Array, push: Array, count: int = 1,
               feet: tuple[Array, Array] | None = None,
               covariance: Array | None = None) -> LoadEquation | None:
        """
        Update with the values of one instant.

        Parameters
        ----------
        state, twist
            The robot with its base in the world, and how that moves.
        carrier
            Motion of the carrier.
        dt
            Time since the instant before, s, positive.
        measured
            Wrench of all feet about the world's origin, shape (6,), N and N m.
        push
            Known external force elsewhere than at the feet, shape (3,), N.
        count
            Number of samples of which all this is the mean.
        feet
            Wrench of each foot in its sole frame, (F, 6), and the placements of the soles in the
            world, (F, 4, 3); needed for errors of the foot sensors.
        covariance
            Of `measured`, (6, 6), beyond its noise; None: none.

        Returns
        -------
        LoadEquation or None
            None until the filter has settled, while the feet are unloaded, and between two
            equations: there are a few within the memory of the filter.

        """
        self._fill(state, twist, carrier, measured, push)
        if feet is not None:
            self._sample[_SIZE:] = feet[0].reshape(-1)
        noise = self._noise.update(self._noisy(), dt, count)
        filtered, rate = self._filter.update(self._sample, dt)
        self._age += dt
        self._since_equation += dt
        self._since_links += dt
        upward, delay = filtered.item(11), self._filter.delay
        if self._links is not None and self._since_links >= _PAUSE * delay:
            self._update_links(self._links, state, twist, carrier)
        if (self._age < SETTLED * delay or self._since_equation < _PAUSE * delay
                or not upward > 0.1 * self._mass * self._gravity):
            return None
        span, self._since_equation = min(self._since_equation, _LONGEST * delay), 0.0
        com, change = filtered[_COM], rate[_MEASURED]
        required, spin = self._required_moment(filtered, rate, com)
        measured = filtered[_MEASURED] + self._delay * change
        residual = (measured[3:] - cross(com, measured[:3]) - required)[:2]
        lasting, once = (self._weights.dot(noise) * (dt / upward ** 2)).tolist()
        scatter = once / (_LONGEST * delay)
        if span >= _LONGEST * delay:  # the first one after a gap
            lasting = once
        height = self._height(filtered, rate, noise, dt)
        return LoadEquation(
            residual / upward, self._rows(filtered, rate, com) * (self._mass / upward),
            filtered[_AXES][6:], float(np.abs(filtered[_PUSH]).max()) / upward, spin / upward,
            _inertia_rows(filtered, rate) * (self._mass / upward),
            span, max(2.0 * delay / span, 1.0), height, lasting, scatter,
            (cross(com, change[:3]) - change[3:])[:2] / upward,
            self._sensor_rows(filtered, com, feet) / upward,
            _NONE if self._links is None else self._links.moments(
                com, upward / self._mass, height != 0.0) * (self._mass / upward),
            0.0 if covariance is None else _level_variance(com, covariance) / upward ** 2)

    def _update_links(self, links: LinkErrors, state: RobotState, twist: Twist,
                      carrier: Carrier) -> None:
        self.link_effects = links.update(
            state, twist, carrier, self._sample[_COM], self._sample[:3] / self._mass,
            self._since_links)
        self._since_links = 0.0

    def _sensor_rows(self, filtered: Array, com: Array, feet: tuple[Array, Array] | None) -> Array:
        """Return the moments about the centre of mass that errors of the sensors add."""
        if self._sensors is None or feet is None:
            return _NONE
        placements = feet[1]
        force, moment = self._sensors.change(
            filtered[_SIZE:].reshape(-1, 6), placements[:, :3].transpose(0, 2, 1))
        x, y, z = (placements[:, 3] - com).T[..., np.newaxis]
        return np.stack((
            moment[:, 0] + y * force[:, 2] - z * force[:, 1],
            moment[:, 1] + z * force[:, 0] - x * force[:, 2])).reshape(2, -1)

    def _height(self, filtered: Array, rate: Array, noise: Array, dt: float) -> Array:
        """Return the column for the height of the load, where it exceeds its noise."""
        upward, passed = filtered.item(11), min(0.5 * dt / self._filter.delay, 1.0)
        force, relative = filtered[_MEASURED][:2], (
            rate[_LINEAR].reshape(3, 4)[:2, 0] * self._mass - rate[:2])
        least = self._least * upward
        limits = _CERTAIN * np.sqrt(noise[:4] * passed)
        limits[2:] *= self._mass * 2.0 * math.pi * self._filter.cutoff
        np.maximum(limits, least, out=limits)
        x, y = (np.where(np.abs(force) > limits[:2], force, 0.0)
                + np.where(np.abs(relative) > limits[2:], relative, 0.0)).tolist()
        return np.array((-y, x)) / upward

    def _noisy(self) -> Array:
        """Return the quantities whose noise is measured, along x and y, shape (8,)."""
        sample = self._sample
        (x, y, z), (px, py, pz) = sample[_COM].tolist(), sample[:3].tolist()
        fx, fy, fz, mx, my, _ = sample[_MEASURED].tolist()
        lx, ly = sample[3:5].tolist()
        velocity = sample[_LINEAR]
        return np.array((
            fx, fy, velocity.item(0) - px / self._mass, velocity.item(4) - py / self._mass,
            mx + z * fy - y * fz, my + x * fz - z * fx,
            lx + z * py - y * pz, ly + x * pz - z * px))

    def _fill(self, state: RobotState, twist: Twist, carrier: Carrier, measured: Array,
              push: Array) -> None:
        sample, (rotation, turning, point, velocity) = self._sample, carrier
        sample[_MOMENTUM] = self._momentum.of(state, twist)
        sample[_COM], sample[_MEASURED], sample[_PUSH] = state.com_in_world, measured, push
        sample[_POINT], sample[_AXES] = point, rotation.ravel()
        # Momentum of the unit mass, and of unit first moments: columns u, then h.
        linear, angular = sample[_LINEAR].reshape(3, 4), sample[_ANGULAR].reshape(3, 4)
        linear[:, 0], linear[:, 1:] = velocity, turning
        angular[:, 0] = cross(point, velocity)
        angular[:, 1:] = skew(point).dot(turning) - skew(velocity).dot(rotation)

    def _required_moment(self, filtered: Array, rate: Array, com: Array) -> tuple[Array, float]:
        """Return the moment about the centre of mass that the model's motion requires, (3,)."""
        # Gravity goes through that point.
        moment = rate[3:6] - cross(com, rate[:3])
        return moment, float(np.abs(moment[:2]).max())

    def _rows(self, filtered: Array, rate: Array, com: Array) -> Array:
        """Return the moments about the centre of mass that unit loads require, (2, 4): h, u."""
        g, (x, y, _) = self._gravity, filtered[_POINT].tolist()
        force, moment = rate[_LINEAR].reshape(3, 4), rate[_ANGULAR].reshape(3, 4)
        force[2, 0] += g
        axes = filtered[_AXES].reshape(3, 3)
        moment[0, 0] += g * y
        moment[1, 0] -= g * x
        moment[0, 1:] += g * axes[1]
        moment[1, 1:] -= g * axes[0]
        about_com = moment - skew(com).dot(force)
        return about_com[:2, (1, 2, 3, 0)]


def _level_variance(com: Array, covariance: Array) -> float:
    """Return the mean variance of the two level moments about the centre of mass, (N m)^2."""
    J = np.hstack((-skew(com)[:2], np.eye(2, 3)))
    return 0.5 * float(np.trace(J.dot(covariance).dot(J.T)))


def _inertia_rows(filtered: Array, rate: Array) -> Array:
    """Return the level moments that unit moments of inertia about the carrier's axes require."""
    axes = filtered[_AXES].reshape(3, 3)
    # The skew part of R'' R^T; its symmetric one is that of the rotation itself.
    change = rate[_LINEAR].reshape(3, 4)[:, 1:].dot(axes.T)
    acceleration = 0.5 * np.array((
        change[2, 1] - change[1, 2], change[0, 2] - change[2, 0], change[1, 0] - change[0, 1]))
    found: Array = axes[:2] * acceleration.dot(axes)
    return found
