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
The zero-moment point, measured and model-based.

The zero-moment point is the point of a plane about which a contact wrench has no moment along the
plane (:func:`zmp_on_plane`).

* *Measured*: of the sum of the measured contact wrenches (:func:`measured_wrench`).
* *Model-based*: of the wrench that the robot's motion requires (:class:`ModelWrench`). It follows
  from Newton and Euler: with the momentum (p, L) of the whole robot about a point fixed in the
  world, ``F = p' - m g`` and ``M = L' - c x m g`` with gravity g.

On a level plane this is Wang, Zhu and Han's equation (8). The paper prints "joint thrusts" V_ix
in x and V_iy in y. Correct is the rate of change of each link's angular momentum about its own
centre of mass, about the *other* axis: -L'_y in x and +L'_x in y. With these the equation is exact
(:func:`zmp_by_links`). Without them the links are point masses; (9) is the case of rest.

Online, the momentum is differentiated, not the joint velocities (:class:`ModelWrench`). That takes
one linear filter on six numbers, so that a measured wrench after the same filter is comparable at
any frequency, and contacts need no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biped_com_ros.core.com.momentum import Momentum
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Array, cross, Placement, Vector
from biped_com_ros.core.geometry.wrench import (
    centre_of_pressure, cop_on_sole, sum_wrenches, Wrench)
from biped_com_ros.core.model.frames import ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.payload.carried import LoadMotion
from biped_com_ros.core.signals.filters import Differentiator
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.typing import ArrayLike
import pinocchio as pin


def zmp_on_plane(wrench: Sequence[float], plane: Plane, least_force: float) -> Vector | None:
    """
    Return the zero-moment point of a contact wrench on the plane of support.

    The measured one for :func:`measured_wrench`, the model-based one for the wrench of
    :class:`ModelWrench`.

    Parameters
    ----------
    wrench
        About the world's origin, six numbers, N and N m.
    plane
        In the world.
    least_force
        Normal force below which there is no such point, N.

    Returns
    -------
    tuple (3,) or None
        In the world, m.

    """
    return centre_of_pressure(wrench, plane.normal, plane.height, least_force)


def measured_wrench(wrenches: Sequence[Sequence[float]], soles: Sequence[Placement],
                    hand_wrenches: Sequence[Sequence[float] | None] = (),
                    hands: Sequence[Placement] = ()) -> Wrench:
    """
    Return the sum of the measured contact wrenches about the world's origin, N and N m.

    Parameters
    ----------
    wrenches, hand_wrenches
        Of the environment on each foot and each hand, in its own frame, six numbers each; None
        for a hand without a measurement.
    soles, hands
        Placements of these frames in the world, (F, 4, 3) and (H, 4, 3); without `hands` their
        wrenches are left out.

    """
    if not hands:
        return sum_wrenches(wrenches, soles)
    measured = [(wrench, hand) for wrench, hand in zip(hand_wrenches, hands)
                if wrench is not None]
    return sum_wrenches([*wrenches, *(wrench for wrench, _ in measured)],
                        [*soles, *(hand for _, hand in measured)])


class FilteredWrenches(NamedTuple):
    """
    Contact wrenches about the world's origin through the same filter, shape (6,), N and N m.

    Attributes
    ----------
    model
        The wrench that the motion requires.
    measured
        The sum of the foot wrenches; None if it was not passed.

    """

    model: Array
    measured: Array | None


class ModelWrench:
    """
    Computes the contact wrench that the robot's motion requires, from one instant to the next.

    Parameters
    ----------
    model
        The robot.
    cutoff
        Bandwidth of the derivative, Hz; it delays the result by :attr:`delay`.
    method
        One of :data:`.momentum.METHODS`.
    gravity
        m/s^2.
    wrench_delay
        Delay of the measured wrenches, s, which is compensated.

    """

    def __init__(self, model: RobotModel, cutoff: float = 15.0, method: str = 'full',
                 gravity: float = GRAVITY, wrench_delay: float = 0.0) -> None:
        self._wrench_delay = wrench_delay
        self._momentum = Momentum(model, method)
        self._mass, self._gravity, self._is_static = model.mass, gravity, method == 'static'
        # Momentum, measured wrench, and the weight with its moment arms (m g x, m g y, m g) side
        # by side: one product filters all.
        self._filter = Differentiator(cutoff, 15)
        self._sample = np.zeros(15)

    @property
    def delay(self) -> float:
        """Delay of the filtered wrenches for slow changes, s."""
        return self._filter.delay

    def reset(self) -> None:
        """Reset the filter; the next instant counts as rest."""
        self._filter.reset()

    def update(self, state: RobotState, twist: Twist, dt: float,
               measured: Array | None = None,
               load: LoadMotion | None = None) -> FilteredWrenches:
        """
        Update with the values of one instant.

        Parameters
        ----------
        state
            With its base in the world and its joint velocities.
        twist
            Twist of that base, along its axes.
        dt
            Time since the instant before, s, positive.
        measured
            Wrench of all contacts about the world's origin, shape (6,).
        load
            Motion of a payload; None: nothing is carried.

        """
        sample, g = self._sample, self._gravity
        sample[:6] = self._momentum.of(state, twist)
        sample[12:14] = state.com_in_world[:2] * (self._mass * g)
        sample[14] = self._mass * g
        if load is not None:
            self._add(load, state, twist)
        if measured is not None:
            sample[6:12] = measured
        filtered, rate = self._filter.update(sample, dt)
        wrench = rate[:6].copy()
        # The contacts carry the weight W at the CoM: force W upward, moment c x W.
        weight_x, weight_y, weight = filtered[12:].tolist()
        wrench[2] += weight
        wrench[3] += weight_y
        wrench[4] -= weight_x
        return FilteredWrenches(wrench, None if measured is None else (
            filtered[6:12] + self._wrench_delay * rate[6:12]))

    def _add(self, load: LoadMotion, state: RobotState, twist: Twist) -> None:
        """Add momentum and weight of a payload, a point mass."""
        sample, place = self._sample, load.place(state)
        if not self._is_static:
            linear = state.base.rotation.dot(load.momentum_along_base(twist))
            sample[:3] += linear
            sample[3:6] += cross(place, linear)
        weight = load.mass * self._gravity
        sample[12:14] += place[:2] * weight
        sample[14] += weight


def zmp_by_links(masses: ArrayLike, coms: ArrayLike, accelerations: ArrayLike | None = None,
                 momentum_rates: ArrayLike | None = None, height: float = 0.0,
                 gravity: float = GRAVITY, as_printed: bool = False) -> Array:
    """
    Return the zero-moment point on a level plane, Wang, Zhu and Han's equations (8) and (9).

    Parameters
    ----------
    masses
        Masses of the links, (n,), kg; (1,) for a single point mass.
    coms, accelerations
        Positions and accelerations of their centres of mass in a frame with z up, (n, 3), m and
        m/s^2. Without accelerations this is (9), the robot at rest.
    momentum_rates
        L'_i, rate of change of each link's angular momentum about its own centre of mass,
        (n, 3), N m; without them links are point masses.
    height
        Height of the plane, m.
    gravity
        m/s^2.
    as_printed
        Add the L'_i to the wrong axes, as (8) is printed; for reproducing the paper only.

    Returns
    -------
    array (3,)
        m; NaN where the ground would have to pull.

    """
    m, c = np.asarray(masses, dtype=float), np.asarray(coms, dtype=float)
    a = np.zeros_like(c) if accelerations is None else np.asarray(accelerations, dtype=float)
    rates = (np.zeros(3) if momentum_rates is None
             else np.asarray(momentum_rates, dtype=float).sum(axis=0))
    upward, z = m * (a[:, 2] + gravity), c[:, 2] - height
    force = upward.sum()
    if not force > 0.0:
        return np.full(3, np.nan)
    about = (rates[0], rates[1]) if as_printed else (-rates[1], rates[0])
    x = (upward @ c[:, 0] - (m * z) @ a[:, 0] + about[0]) / force
    y = (upward @ c[:, 1] - (m * z) @ a[:, 1] + about[1]) / force
    return np.array((x, y, height))


class StanceMotion(NamedTuple):
    """
    q, v and a (Pinocchio) of a robot with the world frame at its fixed stance sole.

    Attributes
    ----------
    q, v, a
        Configuration (nq,), velocity and acceleration (nv,), the base's included.

    """

    q: Array
    v: Array
    a: Array


def stance_motion(model: RobotModel, positions: Array, velocities: Array, accelerations: Array,
                  stance: str) -> StanceMotion:
    """
    Return the motion of the whole robot whose stance foot does not move; see `zmp_of_motion`.

    The base's velocity and acceleration follow from ``J v = 0`` and ``J a + J' v = 0``.
    """
    pin_model, foot = model.pin_model, model.foot_index(stance)
    joint, in_joint = int(model.soles.joints[foot]), model.soles.poses_in_joint()[foot]
    sole_in_joint = pin.SE3(in_joint.rotation, in_joint.position)
    q, v, a = model.configuration(positions), model.velocity(velocities).copy(), model.velocity(
        accelerations).copy()
    data = pin.Data(pin_model)
    pin.forwardKinematics(pin_model, data, q)
    q[:7] = pin.SE3ToXYZQUAT((data.oMi[joint] * sole_in_joint).inverse() * data.oMi[ROOT])
    J = pin.computeJointJacobian(pin_model, data, q, joint)
    v[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ v[6:])
    pin.forwardKinematics(pin_model, data, q, v, a)
    # The foot is at rest, so its spatial acceleration is its acceleration.
    a[:6] -= np.linalg.solve(J[:, :6], data.a[joint].vector)
    return StanceMotion(q, v, a)


def zmp_of_motion(model: RobotModel, positions: Array, velocities: Array, accelerations: Array,
                  stance: str, up: Array | None = None, gravity: float = GRAVITY) -> Array:
    """
    Return the zero-moment point that a motion about a fixed foot requires.

    Wang, Zhu and Han's equation (8), corrected, with all links' masses and inertias; exact. The
    motion of the base follows from the joints and the stance foot.

    Parameters
    ----------
    model
        The robot.
    positions, velocities, accelerations
        Of ``model.joint_names``, (n,); rad, rad/s, rad/s^2, or m.
    stance
        Name of the foot that stays where it is.
    up
        Unit vector against gravity in the sole's frame, (3,); default: the sole is level.
    gravity
        m/s^2.

    Returns
    -------
    array (3,)
        In the frame of the stance sole, on its plane z = 0, m. Under single support it must be
        inside the sole's polygon; of several soles it is on their common plane.

    Raises
    ------
    UnknownNameError
        If there is no such foot.
    InputError
        If values are missing, or the ground would have to pull.

    """
    motion = stance_motion(model, positions, velocities, accelerations, stance)
    direction = np.array((0.0, 0.0, 1.0)) if up is None else np.asarray(up, dtype=float)
    links = link_motion(model.pin_model, *motion)
    forces = links.masses[:, np.newaxis] * (links.accelerations + gravity * direction)
    moment = (np.cross(links.coms, forces) + links.momentum_rates).sum(axis=0)
    force = forces.sum(axis=0)
    if not force[2] > 0.0:
        raise InputError(
            f'the motion requires {force[2]:.1f} N normal to the sole: the ground would have to '
            'pull, so there is no zero-moment point')
    return np.array((*cop_on_sole((*force, *moment)), 0.0))


class LinkMotion(NamedTuple):
    """
    What :func:`zmp_by_links` needs of each moving body, in the frame of the base's pose.

    Attributes
    ----------
    masses
        Shape (n,), kg; what is fixed to a body counts to it.
    coms, accelerations
        Shape (n, 3), m and m/s^2.
    momentum_rates
        Shape (n, 3), N m.

    """

    masses: Array
    coms: Array
    accelerations: Array
    momentum_rates: Array


def link_motion(pin_model: pin.Model, q: Array, v: Array, a: Array) -> LinkMotion:
    """
    Return how each body of a Pinocchio model moves; for analysis, not for the loop.

    Parameters
    ----------
    pin_model
        With a floating base.
    q, v, a
        Configuration, velocity and acceleration, Pinocchio's.

    """
    data = pin.Data(pin_model)
    pin.forwardKinematics(pin_model, data, q, v, a)
    rows = []
    for joint in range(ROOT, pin_model.njoints):
        inertia, placement = pin_model.inertias[joint], data.oMi[joint]
        at_com = pin.SE3(np.eye(3), inertia.lever)
        twist, acceleration = at_com.actInv(data.v[joint]), at_com.actInv(data.a[joint])
        spin = twist.angular
        linear = acceleration.linear + np.cross(spin, twist.linear)
        rate = (inertia.inertia @ acceleration.angular
                + np.cross(spin, inertia.inertia @ spin))
        rows.append((inertia.mass, placement.act(inertia.lever), placement.rotation @ linear,
                     placement.rotation @ rate))
    masses, coms, accelerations, rates = zip(*rows)
    return LinkMotion(*map(np.array, (masses, coms, accelerations, rates)))
