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
    BalanceSettings, BaseLean, bound_zmp, ComAdmittance, GroundTilt, limited,
    SoleAdmittance, tilt_of)
from biped_com_ros.core.legs.footsteps import Footprint
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.legs.stance_ik import pose_of
from biped_com_ros.core.legs.step_adjustment import error_at_landing, GaitRate, StepAdjustment
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Share of the weight from which a sole counts as loaded.
_LOADED = 0.1

#: Offset of the desired zero-moment point per error of the DCM: the error decays above 1.
_DCM_GAIN = 2.0
#: Time constant of the derivative of the measured centre of mass, s.
_VELOCITY_TIME = 0.03
#: Time for which the DCM's error is extrapolated by its rate: increments take effect later, s.
_STEP_LEAD = 0.04
#: Time constant with which the offset of the centre of mass comes to rest while the robot turns
#: about the edge of a sole, s.
_TIPPING_TIME = 0.1

_TIPPING = 0.03
"""Tilt of the only loaded sole from the ground, from which on the robot turns about its edge,
rad."""

_TILTED = 0.05
"""Mean tilt of the loaded soles from the ground, from which on what the soles measure says nothing
about how the joints move the centre of mass, rad."""

_LEANING = 0.06
"""Lean of the base, while both soles stand, from which on the robot has to come upright before
anything else, rad."""

_FLAT_TIME = 0.05
"""Time constant with which soles that both stand turn to the ground, s."""

_UPRIGHT_AGAIN = 0.5
"""Time after that in which tilts of soles are not those of the ground, s."""

_HELD = 0.01
"""Motion of the centre of mass, m, up to which the joints have held it at a touch-down."""

_PLACED, _MISPLACED = 0.005, 0.03
"""Distances of a landed sole from its plan up to which it is there, and that are corrected, m."""

_LARGEST_LEAD = 0.04
"""Of the extrapolated error of the divergent component, m."""


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
    """
    Soles on the ground.

    Shares of the load (2,), centres of pressure in them (2, 2), m, and the load over the weight.
    """

    shares: Array
    cops: Array
    load: float


class _Geometry(NamedTuple):
    """Soles in the base (2, 4, 3), and its attitude in the axes of the gait."""

    placements: Array
    R_gait_base: Array


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
    model
        The robot, where another thread uses that of the gait; by default that one.

    Attributes
    ----------
    increments
        Of all joints, (n,), rad.
    keeps_tilt
        Whether the tilt of the ground is kept while nothing is measured, instead of fading out.
    dcm_error
        Measured minus planned divergent component, forward and left in the gait, (2,), m; from
        the plan as far as steps were adjusted.

    """

    def __init__(self, gait: Gait, settings: BalanceSettings,
                 model: RobotModel | None = None) -> None:
        self._settings, self._model = settings, model or gait.model
        self._legs = list(legs_of(self._model).values())
        self._polygons = [foot.polygon for foot in gait.model.config.feet.values()]
        self._lower, self._upper = _limits(gait)
        self._weight = GRAVITY * gait.model.mass
        self._soles = [SoleAdmittance(settings) for _ in self._legs]
        self._ground = GroundTilt(settings)
        self._steps = StepAdjustment(settings, self._polygons)
        self._leans = [BaseLean() for _ in self._legs]
        self._rate = GaitRate(settings)
        self.increments: Array = np.zeros(len(self._lower))
        self._com = ComAdmittance(settings, 1.0)
        self._engaged = 0.0
        self._error: Array | None = None
        self._error_rate: Array = np.zeros(2)
        self.dcm_error: Array = np.zeros(2)
        self.keeps_tilt = False
        self.begin(gait)

    def begin(self, gait: Gait) -> None:
        """Go on with another gait, from the present increments."""
        middle = gait.motion(0.5 * gait.duration)[0]
        height = float(middle[-2] + self._model.state(middle[:-4]).com_in_base[2])
        self._gait, self._omega = gait, math.sqrt(GRAVITY / height)
        self._com.set_omega(self._omega)
        self._rate.largest = max(1.0, min(self._settings.max_rate, gait.speed_reserve))
        self._steps.allow()
        self._reset_states()

    @property
    def com_shift(self) -> Array:
        """Shift of the centre of mass from the plan, (2,), m."""
        return self._com.offset

    @property
    def ground_tilt(self) -> Array:
        """Roll and pitch of the ground in the axes of the gait, (2,), rad."""
        return self._ground.tilt

    @property
    def step_offsets(self) -> Array:
        """Offsets of both soles from the plan, (2, 2), m."""
        return self._steps.offsets

    @property
    def is_on_plan(self) -> bool:
        """Whether the soles are where they were planned, relative to each other."""
        return self._steps.is_on_plan

    def keep_steps(self) -> None:
        """Leave further steps where they were planned."""
        self._steps.keep()

    @property
    def rate(self) -> float:
        """Rate at which the time of the gait has to go on: 0 while it waits."""
        return self._rate.value

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
        total = float(forces.sum())
        return _Contact(forces / total, cops, total / self._weight)

    def _follow(self, dt: float, time: float, values: Array, measured: WalkMeasurement,
                contact: _Contact) -> None:
        plan, soles = self._gait.plan, self._soles_at(time)
        prints = [Footprint(x, y, yaw) for x, y, _, yaw in soles.tolist()]
        geometry = self._update_motion(dt, time, values, measured, contact.shares, soles)
        self._com.centre = self._steps.zmp_offset(plan, time)
        reference = plan.zmp(time) + self._com.centre
        corners, margin = self._support(time, prints), self._settings.zmp_margin
        goal = bound_zmp(reference, _DCM_GAIN * self.dcm_error, corners, margin)
        points = np.array([foot.apply(*cop) for foot, cop in zip(prints, contact.cops.tolist())])
        self._engaged = min(self._engaged + dt / self._settings.start_time, 1.0)
        # On the edge of a sole the robot turns about it, and no joint can push it back.
        found = bound_zmp(reference, contact.shares @ points - reference, corners, margin)
        error = self._engaged * min(contact.load, 1.0) * (found - goal)
        planned = plan.zmp(time)
        if self._settings.max_step_adjustment and (
                self._is_tilted or self._is_leaning(time)
                or self._is_rocking(time, contact.shares)):
            self._com.slow_down(dt, _TIPPING_TIME)
        else:
            self._com.update(dt, error, lambda offset: bound_zmp(
                reference, planned + offset - reference, corners, margin) - planned)
        for sole, yaw, share in zip(self._soles, soles[:, 3].tolist(), contact.shares.tolist()):
            sole.update(dt, rotation_about(2, -yaw)[:2, :2] @ error, share)
        if self._settings.max_step_adjustment:
            self._adjust(dt, time, goal - reference, contact.shares)
            self._lean(dt, time, values, geometry, contact)

    def _soles_at(self, time: float) -> Array:
        """Return x, y, z (m) and yaw (rad) of both soles, as adjusted, (2, 4)."""
        soles = self._gait.plan.soles(time)
        soles[:, :2] += self._steps.offsets
        soles[:, 2] = np.maximum(soles[:, 2], [lean.height for lean in self._leans])
        soles[:, 2] = np.maximum(soles[:, 2], self._steps.clearances)
        return soles

    def _support(self, time: float,
                 prints: Sequence[Footprint]) -> tuple[tuple[float, float], ...]:
        return convex_hull([foot.apply(*corner) for foot, polygon, stands in zip(
            prints, self._polygons, self._standing(time)) if stands for corner in polygon])

    def _standing(self, time: float) -> tuple[bool, ...]:
        """Return which soles stand: those of the plan, and one that has landed early."""
        phase, touching = self._gait.plan.phase(time), self._gait.plan.in_contact(time)
        if not self._settings.max_step_adjustment or phase.progress(time) < 0.5:
            return touching
        return tuple(touches or not lean.is_airborne
                     for touches, lean in zip(touching, self._leans))

    def _is_leaning(self, time: float) -> bool:
        """Whether a robot on both feet has yet to come upright."""
        return all(self._standing(time)) and any(lean.angle > _LEANING for lean in self._leans)

    def _is_rocking(self, time: float, shares: Array) -> bool:
        """Whether only one of two soles that have landed is loaded: joints would drive that."""
        return (shares.max() == 1.0 and all(self._gait.plan.in_contact(time))
                and not any(lean.is_airborne for lean in self._leans))

    def _update_motion(self, dt: float, time: float, values: Array, measured: WalkMeasurement,
                       shares: Array, soles: Array) -> _Geometry:
        """Update the tilt of the ground and the error of the divergent component."""
        state, R_world_base = self._model.state(measured.positions), measured.R_world_base
        R_gait_base = rotation_about(2, float(values[-1]) - yaw_of(R_world_base)) @ R_world_base
        placements = state.placements_in_base(self._model.soles)
        tilts = [tilt_of(R_gait_base @ row[:3].T @ rotation_about(2, -yaw))
                 for row, yaw in zip(placements, soles[:, 3].tolist())]
        tilt = shares @ np.array(tilts)
        self._is_tilted = float(np.hypot(*(tilt - self._ground.tilt))) > _TILTED
        if not self._is_tipping(time, tilt):
            self._ground.update(dt, tilt)
        pivot, R_gait_ground = self._pivot(time), self._ground.rotation
        coms = np.array([R_gait_ground @ (sole[:3] - pivot)
                         + R_gait_base @ (state.com_in_base - row[3])
                         for row, sole in zip(placements, soles)])[:, :2]
        self._touch_down(shares, coms, soles[:, 2])
        heading = rotation_about(2, float(values[-1]))[:2, :2]
        error = shares @ coms + heading @ self._gait.com_offset
        self._differentiate(dt, error)
        self.dcm_error -= self._steps.dcm_offset(self._gait.plan, time, self._omega)
        return _Geometry(placements, R_gait_base)

    def _touch_down(self, shares: Array, coms: Array, heights: Array) -> None:
        """
        Take over where feet have landed, by the other one: no joint pulls at soles that stand.

        Changes `coms`, the centre of mass (2, 2) by each sole.
        """
        for foot, (lean, share) in enumerate(zip(self._leans, shares.tolist())):
            lean.has_landed = lean.is_airborne and share > 0.0
            if lean.has_landed and share < 1.0:
                apart = coms[1 - foot] - coms[foot]
                if float(np.hypot(*apart)) > _PLACED:
                    self._steps.offsets[foot] += limited(apart, _MISPLACED)
                    coms[foot] = coms[1 - foot]
                lean.height = float(heights[foot])

    def _is_tipping(self, time: float, tilt: Array) -> bool:
        """Whether the robot turns about the edge of a sole: its tilt is not the ground's."""
        if not self._settings.max_step_adjustment:
            return False
        one_foot = self._gait.plan.phase(time).step is not None
        if one_foot and float(np.hypot(*(tilt - self._ground.tilt))) > _TIPPING:
            self._tipped_until = time + _UPRIGHT_AGAIN
        return time < self._tipped_until

    def _differentiate(self, dt: float, error: Array) -> None:
        """Set the error of the divergent component from that of the centre of mass."""
        if self._error is not None and dt > 0.0:
            blend = dt / (_VELOCITY_TIME + dt)
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
        self._tipped_until, self._is_tilted = -math.inf, False
        self._last_dcm_error: Array | None = None
        self._steps.lower_foot()
        self._error_rate, self._dcm_rate, self.dcm_error = np.zeros((3, 2))

    def _fade(self, dt: float) -> None:
        self._reset_states()
        self._engaged, self._rate.value = 0.0, 1.0
        self._com.fade(dt)
        self._ground.update(dt, self._ground.tilt if self.keeps_tilt else np.zeros(2))
        for sole in self._soles:
            sole.update(dt, np.zeros(2), 0.0)
        for lean in self._leans:
            lean.fade(dt)

    # -- steps

    def _adjust(self, dt: float, time: float, zmp_offset: Array, shares: Array) -> None:
        """Move the foot that swings to where it has to land."""
        plan = self._gait.plan
        left = max(plan.phase(time).end - time, 0.0) / max(self.rate, 1.0)
        error = error_at_landing(
            self._predicted_error(dt), zmp_offset, math.exp(self._omega * left))
        if any(lean.is_airborne for lean in self._leans):
            self._steps.update(dt, plan, time, error, self.rate)
        else:
            self._steps.lower_foot()
        ahead = (1.0 - self.rate) * self._com_velocity(time) / self._omega
        self._rate.update(dt, plan.phase(time), self.dcm_error - ahead, shares,
                          self._is_leaning(time))

    def _predicted_error(self, dt: float) -> Array:
        """Return the error of the DCM when increments take effect, (2,), m."""
        if dt > 0.0 and self._last_dcm_error is not None:
            rate = (self.dcm_error - self._last_dcm_error) / dt
            blend = dt / (_VELOCITY_TIME + dt)
            self._dcm_rate = self._dcm_rate + blend * (rate - self._dcm_rate)
        self._last_dcm_error = self.dcm_error
        return np.asarray(self.dcm_error + limited(_STEP_LEAD * self._dcm_rate, _LARGEST_LEAD))

    def _com_velocity(self, time: float) -> Array:
        """Return the planned velocity of the centre of mass, (2,), m/s."""
        return (self._pivot(time + STEP_CAP) - self._pivot(time - STEP_CAP))[:2] / (2.0 * STEP_CAP)

    def _lean(self, dt: float, time: float, values: Array, geometry: _Geometry,
              contact: _Contact) -> None:
        """Update where the base is, for the foot in the air, and after its landing."""
        base = self._commanded_base(values)
        measured = self._measured_lean(time, base, geometry, contact)
        due, standing = self._gait.plan.in_contact(time), self._standing(time)
        turns_on_edges = self._is_tilted and time < self._tipped_until and all(standing)
        for lean, stands, share, is_due in zip(
                self._leans, standing, contact.shares.tolist(), due):
            if lean.has_landed:
                self._land(lean)
            elif share == 0.0 and (lean.is_airborne or not stands):
                if not is_due:  # one that should have landed must not draw back from the ground
                    lean.follow(measured)
            elif turns_on_edges:
                lean.turn_to_ground(measured, dt, _FLAT_TIME)
            else:
                lean.fade(dt)

    def _measured_lean(self, time: float, base: Pose, geometry: _Geometry,
                       contact: _Contact) -> Array:
        """Return x, y, z (m), roll and pitch (rad) of the base from its command, (5,)."""
        stance = int(contact.shares.argmax())
        row = geometry.placements[stance]
        x, y, z, yaw = self._soles_at(time)[stance].tolist()
        cop = contact.cops[stance].tolist()
        cop_in_base = np.array((*cop, 0.0)) @ row[:3] + row[3]
        on_ground = self._on_ground(time, np.array((*Footprint(x, y, yaw).apply(*cop), z)))
        position = on_ground - geometry.R_gait_base @ cop_in_base
        return np.array((*(position - base.position),
                         *tilt_of(geometry.R_gait_base @ base.rotation.T)))

    def _land(self, landed: BaseLean) -> None:
        """Go on from the motion in which the robot leans as a foot touches down."""
        landed.is_airborne = False
        assert self._error is not None
        if float(np.hypot(*(self._error - self._com.offset))) > _HELD:
            before = self._com.offset
            self._com.follow(self._error)
            for lean in self._leans:
                lean.value[:2] -= self._com.offset - before

    # -- commanded

    def _on_ground(self, time: float, point: Array) -> Array:
        """Return where a point of the level plan is on the tilted ground, (3,), m."""
        pivot = self._pivot(time)
        return np.asarray(pivot + self._ground.rotation @ (point - pivot))

    def _commanded_base(self, values: Array) -> Pose:
        base = pose_of(values[-4:])
        return Pose(base.rotation, base.position + (*self._com.offset, 0.0))

    def _move(self, dt: float, time: float, values: Array) -> None:
        """Set the increments, limited in rate and size and by the limits of the joints."""
        s, goal, positions = self._settings, self._goal(time, values), values[:-4]
        goal = np.where(np.isfinite(goal), goal, self.increments)
        step = dt * s.max_increment_rate
        near = np.clip(goal, self.increments - step, self.increments + step)
        near = np.clip(near, -s.max_increment, s.max_increment)
        self.increments = np.clip(near, np.minimum(self._lower - positions, 0.0),
                                  np.maximum(self._upper - positions, 0.0))

    def _goal(self, time: float, values: Array) -> Array:
        """Return the increments without limits; the last ones of a leg that does not reach."""
        base, R_gait_ground = self._commanded_base(values), self._ground.rotation
        goal: Array = np.zeros(len(self.increments))
        legs = zip(self._legs, self._soles_at(time), self._soles, self._leans)
        for leg, row, sole, lean in legs:
            level = pose_of(row)
            placed = Pose(R_gait_ground @ level.rotation @ sole.rotation,
                          self._on_ground(time, level.position))
            try:
                goal[leg.index] = leg.positions(
                    lean.of(base).inverse() @ placed) - values[leg.index]
            except InputError:
                goal[leg.index] = self.increments[leg.index]
        return goal


def _limits(gait: Gait) -> tuple[Array, Array]:
    """Return the limits of all joints, (n,), rad; infinite where a leg has none."""
    lower = np.full(len(gait.positions[0]), -np.inf)
    upper = -lower
    for leg in legs_of(gait.model).values():
        lower[leg.index], upper[leg.index] = leg.lower, leg.upper
    return lower, upper
