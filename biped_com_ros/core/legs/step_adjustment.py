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
Where the next footstep has to be after a push, in the axes of the gait.

While a foot swings, the error of the divergent component of motion (DCM) is predicted for its
landing: with the zero-moment point as far in the stance sole as it helps, what remains grows with
the natural frequency of the pendulum (:func:`error_at_landing`). The foot then lands by that much
elsewhere (:class:`StepAdjustment`), and the rest of the walk with it, as in the first step of
Khadiv et al. 2016 with fixed timing. Steps are limited by the reach of the legs and by the other
foot, and the swing foot by its speed and acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.balance import BalanceSettings, limited
from biped_com_ros.core.legs.footsteps import Phase, StepPlan
import numpy as np

#: Largest acceleration of a swing foot from its plan, m/s^2.
MAX_STEP_ACCELERATION = 20.0
#: Least distance between the sides of both soles, m.
_FOOT_CLEARANCE = 0.01
#: Error of the DCM outwards from which on a walk slows down, to standing still at twice of it, m.
_WAIT_FROM = 0.015
#: Largest change of the rate of the gait's time, 1/s.
MAX_RATE_CHANGE = 10.0

_INTERVALS = 12
"""Of the integral over the shift of weight."""

_TOGETHER = 3e-3
"""Difference of the offsets of both soles that is none, m."""

_SHIFTED = 0.9
"""Share of the load on a foot from which on the weight has been shifted to it."""

_LOCKED = 0.06
"""Time before its landing from which on a foot keeps its place, s."""

_CLEARANCE, _CLEARANCE_SLOPE = 0.015, 0.2
"""Largest height over the ground of a foot that has yet to move, m, and per distance: one that
touches the ground on its way stays there."""


def error_at_landing(error: Array, zmp_offset: Array, growth: float) -> Array:
    """
    Return the error of the DCM that is left when the foot lands, (2,), m.

    With ``e' = omega (e - d)`` for an offset d of the zero-moment point that stays, the error is
    ``d + (e - d) growth``; where d is more than needed, the error is brought to zero.

    Parameters
    ----------
    error
        Now, (2,), m.
    zmp_offset
        Of the zero-moment point from its reference, along the error, (2,), m.
    growth
        ``exp(omega time)`` for the time until the landing.

    """
    size = float(np.hypot(*error))
    if size == 0.0:
        return np.zeros(2)
    offset = float(zmp_offset @ error) / size
    left = offset + (size - offset) * growth
    return np.asarray(error * (max(left, 0.0) / size))


class StepAdjustment:
    """
    Offsets of the soles of a walk from where they were planned.

    Parameters
    ----------
    settings
        Limits.
    polygons
        Of both soles in their frames, m.

    Attributes
    ----------
    offsets
        Of both soles, (2, 2), m.
    velocities
        Of both soles relative to the plan, (2, 2), m/s.
    clearances
        Least heights of both soles over the ground, (2,), m.

    """

    def __init__(self, settings: BalanceSettings,
                 polygons: Sequence[Sequence[tuple[float, float]]]) -> None:
        self._settings = settings
        self._half_widths = [0.5 * float(np.ptp([y for _, y in polygon])) for polygon in polygons]
        self.offsets: Array = np.zeros((2, 2))
        self.velocities: Array = np.zeros((2, 2))
        self.clearances: Array = np.zeros(2)
        self._goal: Array = np.zeros(2)
        self._may_adjust = True

    @property
    def is_on_plan(self) -> bool:
        """Whether the soles are where they were planned, relative to each other."""
        apart = float(np.hypot(*(self.offsets[1] - self.offsets[0])))
        return apart < _TOGETHER and not self.velocities.any()

    def allow(self) -> None:
        """Adjust steps again after :meth:`keep`."""
        self._may_adjust = True

    def keep(self) -> None:
        """Leave further steps where they were planned."""
        self._may_adjust = False

    def lower_foot(self) -> None:
        """Hold no foot up: it has landed, or nothing is measured."""
        self.clearances[:] = 0.0

    def update(self, dt: float, plan: StepPlan, time: float, landing_error: Array,
               rate: float = 1.0) -> None:
        """
        Move the swing foot; nothing in double support.

        Parameters
        ----------
        dt
            s.
        plan
            Footsteps without offsets.
        time
            Of the plan, s.
        landing_error
            Of the DCM when the foot lands, relative to the stance foot, (2,), m.
        rate
            Of the time of the plan; while that is slower, so is the foot.

        """
        phase = plan.phase(time)
        self.lower_foot()
        if phase.step is None:
            self.velocities[:] = 0.0
            return
        foot, left = phase.step.foot, phase.end - time
        if left > _LOCKED:
            goal = self.offsets[1 - foot]
            if self._may_adjust and _another_follows(plan, phase):
                goal = self._reachable(goal + self._settings.step_gain * landing_error, phase)
            self._goal = goal
        away = float(np.hypot(*(self._goal - self.offsets[foot])))
        self.clearances[foot] = min(_CLEARANCE_SLOPE * away, _CLEARANCE)
        self._move(foot, dt * min(rate, 1.0), left / max(rate, 1.0))

    def zmp_offset(self, plan: StepPlan, time: float) -> Array:
        """Return the offset of the reference of the zero-moment point, (2,), m."""
        phase = plan.phase(time)
        if phase.step is not None:
            return np.array(self.offsets[1 - phase.step.foot])
        before, after = self._ends(phase)
        return np.asarray(before + phase.progress(time) * (after - before))

    def dcm_offset(self, plan: StepPlan, time: float, omega: float) -> Array:
        """
        Return the offset of the reference of the DCM, (2,), m.

        From the rest of the shift of weight: ``xi = omega integral exp(-omega s) p ds`` until its
        end, where the DCM is offset as the stance foot. In single support, the offset is that of
        the stance foot: where the other one will land follows from the error.
        """
        phase = plan.phase(time)
        if phase.step is not None:
            return np.array(self.offsets[1 - phase.step.foot])
        before, after = self._ends(phase)
        left = max(phase.end - time, 0.0)
        edges = np.linspace(0.0, left, _INTERVALS + 1)
        middles = 0.5 * (edges[1:] + edges[:-1])
        weights = np.exp(-omega * edges[:-1]) - np.exp(-omega * edges[1:])
        share = math.exp(-omega * left) + sum(
            weight * phase.progress(time + middle)
            for weight, middle in zip(weights.tolist(), middles.tolist()))
        return np.asarray(before + share * (after - before))

    def _ends(self, phase: Phase) -> tuple[Array, Array]:
        """Return the offsets at both ends of a shift of weight, from its planned shares."""
        first, second = self.offsets
        return (first + phase.share_from * (second - first),
                first + phase.share_to * (second - first))

    def _reachable(self, goal: Array, phase: Phase) -> Array:
        """Return the nearest offset of the swing foot that leg and other foot allow."""
        s, step = self._settings, phase.step
        assert step is not None
        stance = phase.footprints[1 - step.foot]
        x, y = stance.to_local(*step.footprint[:2])
        c, sn = math.cos(stance.yaw), math.sin(stance.yaw)
        R_gait_stance = np.array(((c, -sn), (sn, c)))
        offset = limited(R_gait_stance.T @ (goal - self.offsets[1 - step.foot]),
                         s.max_step_adjustment)
        side = math.copysign(1.0, y)
        nearest = sum(self._half_widths) + _FOOT_CLEARANCE
        across = max(side * (y + offset[1]), min(nearest, abs(y)))
        offset[1] = side * across - y
        return np.asarray(self.offsets[1 - step.foot] + R_gait_stance @ offset)

    def _move(self, foot: int, dt: float, left: float) -> None:
        """Approach the goal so that it is reached in time, limited in speed and acceleration."""
        if dt <= 0.0:  # the gait waits
            return
        s = self._settings
        missing = self._goal - self.offsets[foot]
        speed = limited(missing / max(left - _LOCKED, 2.0 * dt), s.max_step_speed)
        change = limited(speed - self.velocities[foot], MAX_STEP_ACCELERATION * dt)
        self.velocities[foot] += change
        self.offsets[foot] += dt * self.velocities[foot]


def _another_follows(plan: StepPlan, phase: Phase) -> bool:
    """Return whether a later step brings the other foot beside this one."""
    return any(later.step is not None and later.start >= phase.end for later in plan.phases)


class GaitRate:
    """
    Rate of the time of the gait: the walk waits for a robot that was pushed, or hurries.

    In single support, it waits for one that was pushed outwards, away from the foot that swings:
    no step can catch it, but while its DCM is inside of the stance sole it returns by itself,
    later than planned. For one that falls inwards the foot lands earlier. On both feet the walk
    waits until their weight can be shifted: for a DCM that is late, or beside the way from foot to
    foot; but not if the next stance foot carries all already.

    Parameters
    ----------
    settings
        Limits.

    Attributes
    ----------
    value
        The rate.
    largest
        Largest rate, at least 1.

    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._settings = settings
        self.value = self.largest = 1.0
        self._waited, self._start = 0.0, -1.0

    def update(self, dt: float, phase: Phase, dcm_error: Array,
               shares: Array | tuple[float, float] = (0.5, 0.5), leans: bool = False) -> None:
        """
        Advance.

        Parameters
        ----------
        dt
            s.
        phase
            Of the walk.
        dcm_error
            Measured DCM from that of the walk at its full rate, (2,), m.
        shares
            Measured, of the load on both feet, (2,).
        leans
            Whether a robot on both feet has yet to come upright.

        """
        if phase.start != self._start:
            self._waited, self._start = 0.0, phase.start
        goal = self._goal(phase, dcm_error, shares, leans)
        change = dt * MAX_RATE_CHANGE
        self.value += min(max(goal - self.value, -change), change)
        self._waited += max(1.0 - self.value, 0.0) * dt

    def _goal(self, phase: Phase, dcm_error: Array,
              shares: Array | tuple[float, float], leans: bool) -> float:
        """Return the rate that the error demands."""
        may_wait = self._waited < self._settings.max_wait
        if leans and may_wait and phase.step is None:
            return 0.0
        waits = may_wait and not _has_shifted(phase, shares)
        late = _lateness(phase, dcm_error) if waits else 0.0
        early = 0.0 if phase.step is None else float(_inward(phase) @ dcm_error)
        slower, faster = (min(max((error - _WAIT_FROM) / _WAIT_FROM, 0.0), 1.0)
                          for error in (late, early))
        return 1.0 - slower + faster * (self.largest - 1.0)


def _lateness(phase: Phase, dcm_error: Array) -> float:
    """Return for how large an error the walk has to wait, m."""
    inward = _inward(phase)
    late = -float(inward @ dcm_error)
    if phase.step is not None or not inward.any():
        return late
    return max(late, abs(float(inward[0] * dcm_error[1] - inward[1] * dcm_error[0])))


def _has_shifted(phase: Phase, shares: Array | tuple[float, float]) -> bool:
    """Return whether the weight is where a shift from foot to foot brings it."""
    if phase.step is not None or {phase.share_from, phase.share_to} != {0.0, 1.0}:
        return False
    return float(shares[round(phase.share_to)]) > _SHIFTED


def _inward(phase: Phase) -> Array:
    """Return the unit vector to where the walk shifts the robot sideways next; zero: nowhere."""
    if phase.step is not None:
        to = phase.step.foot
    elif {phase.share_from, phase.share_to} == {0.0, 1.0}:
        to = round(phase.share_to)
    else:
        return np.zeros(2)
    stance = phase.footprints[1 - to]
    y = stance.to_local(*phase.footprints[to][:2])[1]
    side = math.copysign(1.0, y)
    return np.array((-side * math.sin(stance.yaw), side * math.cos(stance.yaw)))
