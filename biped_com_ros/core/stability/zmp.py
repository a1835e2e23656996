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
plane (:func:`.centre_of_pressure`).

* *Measured*: of the sum of the measured contact wrenches (:func:`measured_wrench`).
* *Model-based*: of the wrench that the robot's motion requires (:class:`ModelWrench`). It follows
  from Newton and Euler: with the momentum (p, L) of the whole robot about a point fixed in the
  world, ``F = p' - m g`` and ``M = L' - c x m g`` with gravity g.

On a level plane this is Wang, Zhu and Han's equation (8), corrected
(:mod:`biped_com_ros.papers.wang_2013`).

Online, the momentum is differentiated, not the joint velocities (:class:`ModelWrench`). That takes
one linear filter on six numbers, so that a measured wrench after the same filter is comparable at
any frequency, and contacts need no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, cross, Placement, Pose
from biped_com_ros.core.geometry.wrench import sum_wrenches, Wrench
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.payload.carried import LoadMotion
from biped_com_ros.core.signals.filters import Differentiator
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pinocchio as pin


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
    measured = [(wrench, hand) for wrench, hand in zip(hand_wrenches, hands) if wrench is not None]
    return sum_wrenches([*wrenches, *(wrench for wrench, _ in measured)],
                        [*soles, *(hand for _, hand in measured)])


class Momentum:
    """
    The momentum of a robot about the world's origin.

    Its derivative is the wrench of all that acts on the robot: of gravity and of contacts.

    Parameters
    ----------
    model
        The robot.

    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model.pin_model
        self._data = pin.Data(model.pin_model)  # createData() copies it twice
        q = model.configuration(np.zeros(len(model.joint_names)))
        pose = Pose.from_quaternion(q[3:7], q[:3])
        is_identity = not pose.position.any() and np.array_equal(pose.rotation, np.eye(3))
        self._pose_root_base = None if is_identity else pose.inverse()

    def of(self, state: RobotState, twist: Twist) -> Array:
        """
        Return linear and angular momentum about the world's origin, shape (6,), kg m/s, kg m2/s.

        Parameters
        ----------
        state
            With its base in the world and its joint velocities.
        twist
            Of that base.

        """
        v, root = state.v.copy(), self._pose_root_base
        if root is None:
            v[:3], v[3:6] = twist
        else:
            angular = root.rotation.dot(twist.angular)
            v[:3] = root.rotation.dot(twist.linear) + cross(root.position, angular)
            v[3:6] = angular
        about_com = pin.computeCentroidalMomentum(self._model, self._data, state.q, v).vector
        momentum: Array = about_com.reshape(2, 3).dot(state.base.rotation.T).reshape(-1)
        momentum[3:] += cross(state.com_in_world, momentum[:3])
        return momentum


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
    gravity
        m/s^2.
    wrench_delay
        Delay of the measured wrenches, s, which is compensated.

    """

    def __init__(self, model: RobotModel, cutoff: float = 15.0, gravity: float = GRAVITY,
                 wrench_delay: float = 0.0) -> None:
        self._wrench_delay = wrench_delay
        self._momentum = Momentum(model)
        self._mass, self._gravity = model.mass, gravity
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
        linear = state.base.rotation.dot(load.momentum_along_base(twist))
        sample[:3] += linear
        sample[3:6] += cross(place, linear)
        weight = load.mass * self._gravity
        sample[12:14] += place[:2] * weight
        sample[14] += weight
