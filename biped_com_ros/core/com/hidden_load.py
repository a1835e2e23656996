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

The load's moment of inertia about the carrier's centre of mass is neglected: a third of a
millimetre where 8 % of the mass, 0.15 m away, turn with 1.6 rad/s^2.

At rest the rows of the height of h vanish (Muscolo et al. 2017: foot wrenches do not depend on the
height of the CoM). They grow with horizontal acceleration: swaying makes the height observable.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from biped_com_ros.core.com.momentum import Momentum
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.model.frames import FrameSet, ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.filters import Differentiator, NoiseMeter
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pinocchio as pin

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


class Carrier(NamedTuple):
    """
    Motion of the carrier in the world.

    Attributes
    ----------
    rotation, turning
        R_world_carrier, and its rate of change, 1/s, shape (3, 3).
    point, velocity
        Its centre of mass by the model, m, and the velocity of that, m/s; shape (3,).

    """

    rotation: Array
    turning: Array
    point: Array
    velocity: Array


class CarrierFrame:
    """
    Computes the motion of a link.

    Parameters
    ----------
    model
        The robot.
    link
        Its name; '' for the heaviest one above the base that is not part of a leg.

    Raises
    ------
    UnknownNameError
        If there is no such link.

    """

    def __init__(self, model: RobotModel, link: str = '') -> None:
        name = link or trunk(model)
        frames = model.frames((name,))
        pose = frames.poses_in_joint()[0]
        if name in model.link_names:
            state = model.state(np.zeros(len(model.joint_names)))
            row = state.placements_in_base(frames)[0]
            com = state.link_coms_in_base[model.link_names.index(name)]
            pose = pose @ Pose(np.eye(3), row[:3].dot(com - row[3]))
        self._frames = FrameSet((name,), frames.joints.tolist(), (pose,))

    def motion(self, state: RobotState, twist: Twist) -> Carrier:
        """Return the motion of the link; `twist` is that of the base of `state` in the world."""
        placements = state.placements_in_base(self._frames)
        linear, angular = state.twists_in_base(self._frames, placements)[0]
        rows, R_world_base = placements[0], state.base.rotation
        velocity = cross(twist.angular, rows[3])
        velocity += twist.linear
        velocity += linear
        rotation = R_world_base.dot(rows[:3].T)
        turning = pin.skew(R_world_base.dot(twist.angular + angular)).dot(rotation)
        return Carrier(rotation, turning, state.base.apply(rows[3]), R_world_base.dot(velocity))


def trunk(model: RobotModel) -> str:
    """Return the heaviest link that is not part of a leg, beyond the base if there is one."""
    leg_joints = {joint for sole in model.soles.joints.tolist()
                  for joint in model.pin_model.supports[sole].tolist() if joint > ROOT}
    joints = model.frames(model.link_names).joints.tolist()
    candidates = [
        (joint != ROOT, mass, name) for name, joint, mass in zip(
            model.link_names, joints, model.link_masses.tolist())
        if not leg_joints & set(model.pin_model.supports[joint].tolist())]
    return max(candidates)[2]


class LoadEquation(NamedTuple):
    """
    Two linear equations of the load: ``rows @ (h, u) = residual``, m.

    Attributes
    ----------
    residual
        Distance of the measured weight from that of the model, shape (2,), m.
    rows
        Shape (2, 4): the first three columns are for h, m, the last for u.
    push
        External force over the vertical one, through the same filter.
    spin
        The model's rate of angular momentum about its centre of mass over the vertical force, m.
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

    """

    residual: Array
    rows: Array
    push: float
    spin: float
    span: float
    repeats: float
    height: Array
    noise: float
    scatter: float


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

    """

    def __init__(self, model: RobotModel, cutoff: float = 3.0, gravity: float = GRAVITY,
                 least_acceleration: float = 0.02) -> None:
        self._momentum, self._mass, self._gravity = Momentum(model), model.mass, gravity
        self._least = least_acceleration / gravity
        self._filter = Differentiator(cutoff, _SIZE)
        self._sample = np.zeros(_SIZE)
        self._noise = NoiseMeter(self._mass * gravity * _WORST)
        # The rate of momentum is used, whose noise grows with frequency. For many equations its
        # noise at the frequencies of motion counts; for a single one all that the filter passes:
        # that of white noise over two delays, and that of the momentum at the cutoff.
        omega = 2.0 * math.pi * cutoff
        self._weights = 0.5 * np.repeat((
            (0.0, 0.0, 1.0, (_MOVES * omega) ** 2), (0.0, 0.0, 1.0, omega ** 2)), 2, axis=1)
        self._age = self._since_equation = 0.0

    def reset(self) -> None:
        """Forget the past."""
        self._filter.reset()
        self._noise.reset()
        self._age = self._since_equation = 0.0

    def update(self, state: RobotState, twist: Twist, carrier: Carrier, dt: float,
               measured: Array, push: Array, count: int = 1) -> LoadEquation | None:
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

        Returns
        -------
        LoadEquation or None
            None until the filter has settled, while the feet are unloaded, and between two
            equations: there are a few within the memory of the filter.

        """
        self._fill(state, twist, carrier, measured, push)
        noise = self._noise.update(self._noisy(), dt, count)
        filtered, rate = self._filter.update(self._sample, dt)
        self._age += dt
        self._since_equation += dt
        upward, delay = filtered.item(11), self._filter.delay
        if (self._age < SETTLED * delay or self._since_equation < _PAUSE * delay
                or not upward > 0.1 * self._mass * self._gravity):
            return None
        span, self._since_equation = min(self._since_equation, _LONGEST * delay), 0.0
        com = filtered[_COM]
        required, spin = self._required_moment(filtered, rate, com)
        residual = (filtered[_MEASURED][3:] - cross(com, filtered[_MEASURED][:3]) - required)[:2]
        lasting, once = (self._weights.dot(noise) * (dt / upward ** 2)).tolist()
        scatter = once / (_LONGEST * delay)
        if span >= _LONGEST * delay:  # the first one after a gap
            lasting = once
        return LoadEquation(
            residual / upward, self._rows(filtered, rate, com) * (self._mass / upward),
            float(np.abs(filtered[_PUSH]).max()) / upward, spin / upward,
            span, max(2.0 * delay / span, 1.0), self._height(filtered, rate, noise, dt),
            lasting, scatter)

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
        angular[:, 1:] = pin.skew(point).dot(turning) - pin.skew(velocity).dot(rotation)

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
        about_com = moment - pin.skew(com).dot(force)
        return about_com[:2, (1, 2, 3, 0)]
