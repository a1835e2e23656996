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
Leg odometry: the pose of the base from an IMU on any link and the soles on the ground.

The IMU gives ``R_world_imu``, which the joint positions turn into ``R_world_base``. A sole that
supports the robot does not move, so the position of the base is ``p = sum w_i (anchor_i -
R_world_base p_base_sole_i)``. Soles, legs and floors give, and a foot rolls while it lands and
leaves: where loads are measured, a foot supports from a third of the largest one on, and counts by
its square. When the feet that support change, their anchors are set from the estimate of that
instant: the base never jumps. When a change of contacts arrives late, the instants since then are
computed again (:meth:`LegOdometry.revise`), so that a foot that was in the air has moved nothing.
While no sole is in contact the horizontal position is held; the first sole to touch the ground is
put at the height at which it last stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import (
    Array, combined, cross, footprint_position, Pose, Vector)
from biped_com_ros.core.model.frames import ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.stance import LowestSoles, Stance, Twist
import numpy as np

#: For how long past instants can be computed again, ns.
_HISTORY_NS = nanoseconds(0.25)
#: Share of the largest load from which on a foot supports the robot, and below which not.
_JOINS, _LEAVES = 0.33, 0.18


class _Estimate(NamedTuple):
    """
    What the next instant continues from.

    Attributes
    ----------
    position
        Of the base in the world, (3,), m; None before the first instant.
    anchors
        Where the soles that support the robot are at rest in the world, (F, 3), m.
    supports
        Which soles those are.
    weights
        Share of each sole in carrying the base, (F,).
    heights
        Height at which each sole last was in contact, (F,), m.
    stance
        The soles.

    """

    position: Array | None
    anchors: Array
    supports: tuple[bool, ...]
    weights: Array
    heights: Array
    stance: Stance

    @property
    def is_airborne(self) -> bool:
        """Whether no sole is in contact, so that the position is held."""
        return not any(self.stance.in_contact)


class _PastInstant(NamedTuple):
    """A past instant: stamp, soles from the base, contacts, loads, and the estimate before it."""

    stamp_ns: int
    soles_from_base: Array
    in_contact: tuple[bool, ...]
    loads: Sequence[float] | None
    before: _Estimate


class LegOdometry:
    """
    The pose of the base, update by update.

    The first update puts ``base_footprint`` (the mean of the soles in contact) at the origin of
    the world, z = 0; the heading is the IMU's.

    Parameters
    ----------
    model
        The robot.
    imu_frame
        URDF link that carries the IMU; need not be the base.
    lowest_soles
        Used when :meth:`update` gets no contacts.

    Attributes
    ----------
    sole_placements
        The same as :attr:`RobotState.sole_placements_in_world`, shape (F, 4, 3).

    """

    def __init__(self, model: RobotModel, imu_frame: str,
                 lowest_soles: LowestSoles | None = None) -> None:
        self._feet = model.soles.names
        frames = model.soles + model.frames((imu_frame,))
        # The usual frames are placed once for all that use them.
        self._frames = (
            model.stance_frames if model.stance_frames.names == frames.names else frames)
        self._imu_moves = bool(frames.joints[-1] != ROOT)
        self._moving_frames = self._frames if self._imu_moves else model.soles
        self._soles_in_joints = model.soles.placement_in_joint[:, 3, :3].tolist()
        self._lowest_soles = lowest_soles or LowestSoles()
        self.reset()

    def reset(self) -> None:
        """Drop where the robot is; the next update starts at the origin again."""
        count = len(self._feet)
        self.sole_placements = np.zeros((count, 4, 3))
        stance = Stance(self.sole_placements[:, 3], (False,) * count)
        self._estimate = _Estimate(None, np.zeros((count, 3)), stance.in_contact,
                                   np.zeros(count), np.zeros(count), stance)
        self._history: deque[_PastInstant] = deque()

    @property
    def stance(self) -> Stance:
        """Return the soles after the last :meth:`update`."""
        return self._estimate.stance

    @property
    def is_airborne(self) -> bool:
        """Whether no sole is in contact, so that the position is held."""
        return self._estimate.is_airborne

    @property
    def weights(self) -> Array:
        """Share of each sole in carrying the base, shape (F,); zero for those not in contact."""
        return self._estimate.weights

    def update(self, state: RobotState, R_world_imu: Array,
               in_contact: Sequence[bool] | None = None, stamp_ns: int | None = None,
               loads: Sequence[float] | None = None) -> Pose:
        """
        Return the pose of the base in the world.

        Parameters
        ----------
        state
            The robot state, in the frame of its base.
        R_world_imu
            Orientation of the IMU's link, shape (3, 3), z up.
        in_contact
            Which soles are in contact, in the order of ``config.feet``; assumed from their heights
            if left out.
        stamp_ns
            Time of the state, ns; needed for a later :meth:`revise`.
        loads
            Normal force on each sole, (F,), in any unit; all soles in contact count alike if left
            out.

        Raises
        ------
        InputError
            If `in_contact` does not have one value per foot.

        """
        R_world_base, along_world = state.along_world(self._frames, R_world_imu)
        soles_from_base = along_world[:-1, 3]
        contacts = self._contacts(soles_from_base, in_contact)
        if stamp_ns is not None:
            self._history.append(_PastInstant(
                stamp_ns, soles_from_base, contacts, loads, self._estimate))
            while self._history[0].stamp_ns < stamp_ns - _HISTORY_NS:
                self._history.popleft()
        position = self._advance(soles_from_base, contacts, loads)
        self.sole_placements = along_world[:-1].copy()
        self.sole_placements[:, 3] += position
        return Pose(R_world_base, position)

    def revise(self, since_ns: int, contacts_at: Callable[[int], tuple[bool, ...] | None]) -> None:
        """
        Compute the instants since a time again, with contacts that arrived late.

        Parameters
        ----------
        since_ns
            Time from which the contacts were others than assumed, ns.
        contacts_at
            Returns the contacts at a time (ns); None keeps those that were used.

        """
        again: list[_PastInstant] = []
        while self._history and self._history[-1].stamp_ns >= since_ns:
            again.append(self._history.pop())
        if again:
            self._estimate = again[-1].before
        for instant in reversed(again):
            contacts = contacts_at(instant.stamp_ns) or instant.in_contact
            self._history.append(instant._replace(in_contact=contacts, before=self._estimate))
            self._advance(instant.soles_from_base, contacts, instant.loads)

    def twist(self, state: RobotState, angular_velocity_in_imu: Array,
              weights: Array | None = None) -> Twist | None:
        """
        Return the twist of a base above soles that are at rest.

        Parameters
        ----------
        state
            With joint velocities.
        angular_velocity_in_imu
            Reading of the gyroscope, shape (3,), rad/s.
        weights
            Share of each sole, shape (F,), that sums to one, all zero while airborne; by default
            those of the last :meth:`update`.

        Returns
        -------
        Twist or None
            None while airborne: nothing then measures the linear velocity.

        Notes
        -----
        The gyroscope measures the base and the joints between: ``omega = R_base_imu gyro -
        omega_base_imu``. A sole in contact is at rest: ``0 = v + omega x p + p'``.

        """
        shares: list[float] = (self.weights if weights is None else weights).tolist()
        if not any(shares):
            return None
        # With Python floats: a third of the time of arrays for a few soles.
        placements, twists = state.joints_of(self._moving_frames)
        joints, motions = placements.tolist(), twists.tolist()
        *soles, imu = state.placements_in_base(self._frames).tolist()
        wx, wy, wz = omega = combined(imu[:3], *angular_velocity_in_imu.tolist())
        if self._imu_moves:
            dx, dy, dz = combined(joints[-1][:3], *motions[-1][3:])
            wx, wy, wz = omega = wx - dx, wy - dy, wz - dz
        vx = vy = vz = 0.0
        for share, (_, _, _, (x, y, z)), joint, motion, point in zip(
                shares, soles, joints, motions, self._soles_in_joints):
            if share:
                dx, dy, dz = _point_velocity(joint, motion, point)
                vx += share * (y * wz - z * wy - dx)
                vy += share * (z * wx - x * wz - dy)
                vz += share * (x * wy - y * wx - dz)
        return Twist(np.array((vx, vy, vz)), np.array(omega))

    def _contacts(self, soles: Array, measured: Sequence[bool] | None) -> tuple[bool, ...]:
        if measured is None:
            return self._lowest_soles.update(soles)
        if len(measured) != len(self._feet):
            raise InputError(
                f'contacts must be {len(self._feet)} values, one per foot '
                f'({", ".join(self._feet)}), not {len(measured)}')
        return tuple(measured)

    def _advance(self, soles_from_base: Array, contacts: tuple[bool, ...],
                 loads: Sequence[float] | None) -> Array:
        """Use the soles (F, 3) from the base, in axes of the world; return the base's position."""
        before = self._estimate
        supports = _supports(contacts, loads, before.supports)
        weights = _weights(supports, loads)
        if before.position is None or supports != before.supports:
            before = self._change_stance(soles_from_base, contacts, supports)
        position = before.position
        assert position is not None
        if any(supports):
            position = weights.dot(before.anchors - soles_from_base)
        self._estimate = _Estimate(position, before.anchors, supports, weights, before.heights,
                                   Stance(soles_from_base + position, contacts))
        return position

    def _change_stance(self, soles_from_base: Array, contacts: tuple[bool, ...],
                       supports: tuple[bool, ...]) -> _Estimate:
        """Anchor the soles that support where those that already did put the base."""
        before, heights = self._estimate, self._estimate.heights
        if before.position is None:
            position = -footprint_position(soles_from_base, contacts)
        elif before.is_airborne:
            # The posture may have changed in the air, where nothing measures the height.
            height = _equal_weights(contacts).dot(heights - soles_from_base[:, 2])
            position = np.array((*before.position[:2], height))
        else:
            stayed = before.weights * supports
            weights = stayed / stayed.sum() if stayed.any() else before.weights
            position = weights.dot(before.stance.soles_in_world - soles_from_base)
            heights = np.where(
                before.stance.in_contact, before.stance.soles_in_world[:, 2], heights)
        return before._replace(position=position, anchors=soles_from_base + position,
                               supports=supports, heights=heights)


def _point_velocity(joint: Sequence[Sequence[float]], motion: Sequence[float],
                    point: Sequence[float]) -> Vector:
    """Return the velocity in the base of a point of a joint, from `RobotState.joints_of`."""
    (u, v, w, p, q, r), (x, y, z) = motion, point
    return combined(joint[:3], u + q * z - r * y, v + r * x - p * z, w + p * y - q * x)


def twist_from_stance(state: RobotState, in_contact: Sequence[bool]) -> Twist | None:
    """
    Return the twist of the base without a gyroscope: soles in contact neither move nor turn.

    Parameters
    ----------
    state
        The robot with its joint velocities.
    in_contact
        Which soles are flat on the ground, in the order of ``config.feet``.

    Returns
    -------
    Twist or None
        None if no sole is in contact.

    """
    if not any(in_contact):
        return None
    weights, soles = _equal_weights(in_contact), state.model.soles
    placements = state.placements_in_base(soles)
    twists = state.twists_in_base(soles, placements)
    angular = -weights.dot(twists[:, 1])
    # The velocity is linear in the sole, so the mean of the soles stands for all of them.
    linear = cross(weights.dot(placements[:, 3]), angular) - weights.dot(twists[:, 0])
    return Twist(linear, angular)


def _supports(in_contact: tuple[bool, ...], loads: Sequence[float] | None,
              before: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return which soles in contact carry enough to be at rest; all of them without loads."""
    if loads is None:
        return in_contact
    largest = max(loads, default=0.0)
    joins, leaves = _JOINS * largest, _LEAVES * largest
    supports = tuple([touches and load > (leaves if did else joins)
                      for load, touches, did in zip(loads, in_contact, before)])
    return supports if 0.0 < largest < math.inf and True in supports else in_contact


def _weights(supports: tuple[bool, ...], loads: Sequence[float] | None) -> Array:
    """Return shares (F,) of the soles that support, by the squares of their loads."""
    if loads is not None:
        squares = [load * load if carries else 0.0 for load, carries in zip(loads, supports)]
        total = sum(squares)
        if 0.0 < total < math.inf:
            return np.array([square / total for square in squares])
    return _equal_weights(supports)


def _equal_weights(in_contact: Sequence[bool]) -> Array:
    """Return equal shares (F,) of the soles in contact, zero for the others."""
    weights: Array = np.array(in_contact, dtype=float)
    weights /= max(float(weights.sum()), 1.0)
    return weights
