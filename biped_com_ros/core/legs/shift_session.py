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
"""Shifts the centre of mass of a standing robot over a foot, and back the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

LEAST_DURATION, LONGEST_DURATION = 0.5, 60.0
"""Of a shift, s."""

LONGEST_LEAD = 6.0
"""Time before a shift begins, s."""


@dataclass(frozen=True, kw_only=True)
class ShiftRequest:
    """
    Where the centre of mass shall go.

    Attributes
    ----------
    contact
        Foot, or label of a hand that holds on: over its ankle, or below the hand.
    holding
        Names of the hands that hold on.
    share
        Of the way.
    duration
        Of the motion, s.
    up
        Direction against gravity in the base, (3,); None: the floor counts as level.

    """

    contact: str
    holding: tuple[str, ...] = ()
    share: float = 1.0
    duration: float = 2.0
    up: Array | None = None


class PlannedShift(NamedTuple):
    """A request, the motion of all joints, and the indices of those that move."""

    request: ShiftRequest
    motion: RemainingMotion
    joints: IndexArray


class ShiftSession:
    """
    Where the centre of mass is shifted, and how it gets back.

    Parameters
    ----------
    model
        The robot; :meth:`plan` alone uses it, in any one thread.

    Attributes
    ----------
    contact
        Foot or hand over which the centre of mass is, or moves; '' where the robot stands as
        usual.
    joints
        Indices of the joints that move.

    """

    def __init__(self, model: RobotModel) -> None:
        self._model, self.joints = model, np.zeros(0, dtype=int)
        self.contact, self._path, self._end_ns = '', np.zeros((0, 0)), 0
        self._length_ns, self._span_ns, self._is_returning = 1, 0, False

    def plan(self, positions: Array, request: ShiftRequest, period: float) -> PlannedShift:
        """
        Plan a minimum-jerk shift with standing soles; changes nothing.

        Parameters
        ----------
        positions
            Of all joints, (n,), rad.
        request
            Where to.
        period
            Between two samples of the motion, s.

        Raises
        ------
        InputError
            If a leg or an arm does not reach, with the joint or foot.
        UnknownNameError
            If there is no such foot, or no such hand holds on.

        """
        count = _count(request.duration, period)
        shift = ComShift(self._model, positions, holding=request.holding, up=request.up)
        path = shift.path(request.contact, count, share=request.share)
        return PlannedShift(request, _motion(path, request.duration), shift.joints)

    def begin(self, planned: PlannedShift, ns: int) -> None:
        """Begin a planned shift at a time, ns."""
        self.contact, self.joints = planned.request.contact, planned.joints
        self._path = planned.motion.positions
        self._is_returning = False
        self._set_end(ns, planned.request.duration)

    def progress(self, ns: int) -> float:
        """Return the share of the time of the last motion that has gone by, 0 to 1."""
        return float(np.clip(1.0 - (self._end_ns - ns) / self._length_ns, 0.0, 1.0))

    def _set_end(self, ns: int, duration: float) -> None:
        self._length_ns = nanoseconds(duration)
        self._end_ns = ns + self._length_ns
        # A clock that is set back must not let it move for ever.
        self._span_ns = nanoseconds(duration + LONGEST_LEAD)

    def back(self, measured: Array, duration: float, period: float, tolerance: float,
             ns: int) -> RemainingMotion:
        """
        Begin to return on the path of the last shift, from where the joints are on it.

        Parameters
        ----------
        measured
            Positions of all joints, (n,), rad.
        duration, period
            Of the motion and between two of its samples, s.
        tolerance
            Largest distance of a joint that moves from the path, rad.
        ns
            When it begins, ns.

        Raises
        ------
        InputError
            If nothing is shifted, or the joints are elsewhere; then nothing is shifted any more.

        """
        if not self.contact:
            raise InputError('the centre of mass is not shifted')
        errors = np.abs(self._path - measured)[:, self.joints].max(axis=1)
        nearest = int(errors.argmin())
        if not errors[nearest] <= tolerance:
            self.contact = ''
            raise InputError(f'the joints are {errors[nearest]:.2f} rad from the path of the '
                             f'shift (tolerance {tolerance:g}): move them to the posture')
        count = _count(duration, period)
        left = np.array([nearest * (1.0 - minimum_jerk(share))
                         for share in np.linspace(0.0, 1.0, count).tolist()])
        known = np.arange(len(self._path))
        rows = np.column_stack([np.interp(left, known, column) for column in self._path.T])
        self._set_end(ns, duration)
        self._is_returning = True
        return _motion(rows, duration)

    def interrupt(self) -> None:
        """Stay where the joints are; :meth:`back` leads back."""
        self._end_ns, self._is_returning = 0, False

    def is_moving(self, ns: int) -> bool:
        """Return whether a shift has begun, or will, and not ended at a time, ns."""
        return 0 < self._end_ns - ns <= self._span_ns

    def advance(self, ns: int) -> None:
        """End a way back that is over at a time, ns."""
        if self._is_returning and not self.is_moving(ns):
            self.contact, self._is_returning = '', False


def _count(duration: float, period: float) -> int:
    if not LEAST_DURATION <= duration <= LONGEST_DURATION:
        raise InputError(f'a shift takes {LEAST_DURATION:g} to {LONGEST_DURATION:g} s, not '
                         f'{duration:g}')
    return max(int(np.ceil(duration / period)), 2) + 1


def _motion(rows: Array, duration: float) -> RemainingMotion:
    """Return positions (N, n) at equal time steps as a motion from rest to rest."""
    dt = duration / (len(rows) - 1)
    velocities = np.gradient(rows, dt, axis=0)
    velocities[0] = 0.0
    return RemainingMotion.sampled(dt, rows, velocities)
