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
"""Increments of the legs' joints by which a walking robot reacts to what it measures."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY, STEP_CAP
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import convex_hull
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.geometry.wrench import cop_on_sole
from biped_com_ros.core.legs.balance import (
    BalanceSettings, ComAdmittance, desired_zmp, GroundTilt, SoleAdmittance)
from biped_com_ros.core.legs.footsteps import Footprint
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.robot_legs import legs_of
from biped_com_ros.core.legs.stance_ik import pose_of
import numpy as np

#: Share of the weight from which a sole counts as loaded.
_LOADED = 0.1


class WalkMeasurement(NamedTuple):
    """
    What a walking robot measures.

    Attributes
    ----------
    positions
        Of all joints, (n,), rad.
    R_world_base
        Attitude of the base, (3, 3); its heading is not used.
    wrenches
        Of the ground on each sole, in the sole's frame, force first, (2, 6), N and N m.

    """

    positions: Array
    R_world_base: Array
    wrenches: Array


class _Contact(NamedTuple):
    """Soles on the ground: shares of the weight (2,), centres of pressure in them (2, 2), m."""

    shares: Array
    cops: Array


class GaitFeedback:
    """
    Feedback for one gait.

    All positions are relative to the loaded soles, where the plan has them: errors of odometry
    and of the place of the robot in the world do not matter.

    Parameters
    ----------
    gait
        What is played.
    settings
        Gains and limits.

    Attributes
    ----------
    increments
        Of all joints, (n,), rad.
    dcm_error
        Measured minus planned divergent component, forward and left in the gait, (2,), m.

    """

    def __init__(self, gait: Gait, settings: BalanceSettings) -> None:
        self._settings, self._model = settings, gait.model
        self._legs = list(legs_of(gait.model).values())
        self._polygons = [foot.polygon for foot in gait.model.config.feet.values()]
        self._lower, self._upper = _limits(gait)
        self._weight = GRAVITY * gait.model.mass
        self._soles = [SoleAdmittance(settings) for _ in self._legs]
        self._ground = GroundTilt(settings)
        self.increments: Array = np.zeros(len(self._lower))
        self._com = ComAdmittance(settings, 1.0)
        self._engaged = 0.0
        self._error: Array | None = None
        self._error_rate: Array = np.zeros(2)
        self.dcm_error: Array = np.zeros(2)
        self.begin(gait)

    def begin(self, gait: Gait) -> None:
        """Go on with another gait, from the present increments."""
        middle = gait.motion(0.5 * gait.duration)[0]
        height = float(middle[-2] + gait.model.state(middle[:-4]).com_in_base[2])
        self._gait, self._omega = gait, math.sqrt(GRAVITY / height)
        self._com.set_omega(self._omega)
        self._reset_states()

    @property
    def ground_tilt(self) -> Array:
        """Roll and pitch of the ground in the axes of the gait, (2,), rad."""
        return self._ground.tilt

    @property
    def com_shift(self) -> Array:
        """Shift of the centre of mass from the plan, (2,), m."""
        return self._com.offset

    def update(self, dt: float, time: float, measured: WalkMeasurement | None) -> Array:
        """
        Return the increments for a time of the gait.

        Parameters
        ----------
        dt
            Since the last call, s.
        time
            Of the gait, s.
        measured
            At that time; None if stale: the increments fade out.

        """
        dt = min(max(dt, 0.0), STEP_CAP)
        time = min(max(time, 0.0), self._gait.duration)
        values = self._gait.motion(time)[0]
        if measured is None or not all(np.isfinite(value).all() for value in measured):
            self._fade(dt)
        elif (contact := self._contact(measured.wrenches)) is not None:
            self._follow(dt, time, values, measured, contact)
        self._move(dt, time, values)
        return self.increments

    # -- measured

    def _contact(self, wrenches: Array) -> _Contact | None:
        """Return which soles are loaded, and where; None in the air: all stays as it is."""
        loaded = wrenches[:, 2] > _LOADED * self._weight
        if not loaded.any():
            return None
        forces = np.where(loaded, wrenches[:, 2], 0.0)
        cops = np.array([cop_on_sole(wrench) if touches else (0.0, 0.0)
                         for wrench, touches in zip(wrenches.tolist(), loaded.tolist())])
        return _Contact(forces / forces.sum(), cops)

    def _follow(self, dt: float, time: float, values: Array, measured: WalkMeasurement,
                contact: _Contact) -> None:
        soles = self._gait.plan.soles(time)
        prints = [Footprint(x, y, yaw) for x, y, _, yaw in soles.tolist()]
        self._update_motion(dt, time, values, measured, contact.shares, soles)
        goal = desired_zmp(self._gait.plan.zmp(time), self.dcm_error, self._settings.dcm_gain,
                           self._support(time, prints), self._settings.zmp_margin)
        points = np.array([foot.apply(*cop) for foot, cop in zip(prints, contact.cops.tolist())])
        self._engaged = min(self._engaged + dt / self._settings.start_time, 1.0)
        error = self._engaged * (contact.shares @ points - goal)
        self._com.update(dt, error)
        for sole, yaw, share in zip(self._soles, soles[:, 3].tolist(), contact.shares.tolist()):
            sole.update(dt, rotation_about(2, -yaw)[:2, :2] @ error, share)

    def _support(self, time: float,
                 prints: Sequence[Footprint]) -> tuple[tuple[float, float], ...]:
        touching = self._gait.plan.in_contact(time)
        return convex_hull([foot.apply(*corner) for foot, polygon, touches in zip(
            prints, self._polygons, touching) if touches for corner in polygon])

    def _update_motion(self, dt: float, time: float, values: Array, measured: WalkMeasurement,
                       shares: Array, soles: Array) -> None:
        """Update the tilt of the ground and the error of the divergent component."""
        state, R_world_base = self._model.state(measured.positions), measured.R_world_base
        R_gait_base = rotation_about(2, float(values[-1]) - yaw_of(R_world_base)) @ R_world_base
        placements = state.placements_in_base(self._model.soles)
        tilts = [_tilt(R_gait_base @ row[:3].T @ rotation_about(2, -yaw))
                 for row, yaw in zip(placements, soles[:, 3].tolist())]
        self._ground.update(dt, shares @ np.array(tilts))
        pivot, R_gait_ground = self._pivot(time), self._ground.rotation
        coms = [R_gait_ground @ (sole[:3] - pivot)
                + R_gait_base @ (state.com_in_base - row[3])
                for row, sole in zip(placements, soles)]
        heading = rotation_about(2, float(values[-1]))[:2, :2]
        error = shares @ np.array(coms)[:, :2] + heading @ self._gait.com_offset
        self._differentiate(dt, error)

    def _differentiate(self, dt: float, error: Array) -> None:
        """Set the error of the divergent component from that of the centre of mass."""
        if self._error is not None and dt > 0.0:
            blend = dt / (self._settings.velocity_time + dt)
            self._error_rate = self._error_rate + blend * (
                (error - self._error) / dt - self._error_rate)
        self._error = error
        self.dcm_error = error + self._error_rate / self._omega

    def _pivot(self, time: float) -> Array:
        """Return the point on the ground under the planned centre of mass, (3,), m."""
        times, com = self._gait.times, self._gait.com
        return np.array([*(np.interp(time, times, column) for column in com.T), 0.0])

    def _reset_states(self) -> None:
        self._error = None
        self._error_rate, self.dcm_error = np.zeros((2, 2))

    def _fade(self, dt: float) -> None:
        self._reset_states()
        self._engaged = 0.0
        self._com.fade(dt)
        self._ground.update(dt, np.zeros(2))
        for sole in self._soles:
            sole.update(dt, np.zeros(2), 0.0)

    # -- commanded

    def _move(self, dt: float, time: float, values: Array) -> None:
        """Set the increments, limited in rate and size and by the limits of the joints."""
        s, goal, positions = self._settings, self._goal(time, values), values[:-4]
        step = dt * s.max_increment_rate
        limited = np.clip(goal, self.increments - step, self.increments + step)
        limited = np.clip(limited, -s.max_increment, s.max_increment)
        self.increments = np.clip(limited, np.minimum(self._lower - positions, 0.0),
                                  np.maximum(self._upper - positions, 0.0))

    def _goal(self, time: float, values: Array) -> Array:
        """Return the increments without limits; the last ones if a leg does not reach."""
        pivot, R_gait_ground = self._pivot(time), self._ground.rotation
        base = pose_of(values[-4:])
        to_base = Pose(base.rotation, base.position + (*self._com.offset, 0.0)).inverse()
        goal: Array = np.zeros(len(self.increments))
        try:
            for leg, row, sole in zip(self._legs, self._gait.plan.soles(time), self._soles):
                level = pose_of(row)
                placed = Pose(R_gait_ground @ level.rotation @ sole.rotation,
                              pivot + R_gait_ground @ (level.position - pivot))
                goal[leg.index] = leg.positions(to_base @ placed) - values[leg.index]
        except InputError:
            return self.increments
        return goal


def _tilt(rotation: Array) -> tuple[float, float]:
    """Return roll and pitch of Ry(pitch) Rx(roll) from its z axis, rad."""
    x, y, z = rotation[:, 2].tolist()
    return -math.asin(min(max(y, -1.0), 1.0)), math.atan2(x, z)


def _limits(gait: Gait) -> tuple[Array, Array]:
    """Return the limits of all joints, (n,), rad; infinite where a leg has none."""
    lower = np.full(len(gait.positions[0]), -np.inf)
    upper = -lower
    for leg in legs_of(gait.model).values():
        lower[leg.index], upper[leg.index] = leg.lower, leg.upper
    return lower, upper
