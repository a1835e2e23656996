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
"""Whether the joints follow a trajectory, and reach its end, within tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.reference import Motion
import numpy as np

_KINDS = ('position', 'velocity')


class Outcome(Enum):
    """What has become of a goal."""

    RUNNING = 'running'
    REACHED = 'reached'
    OFF_PATH = 'off the path'
    NOT_REACHED = 'not reached'
    REPLACED = 'replaced'


class Tolerance(NamedTuple):
    """Largest errors of a joint, rad or m, and per second; zero: the default; negative: any."""

    joint: str
    position: float
    velocity: float


def tolerances(joints: Sequence[str], position: float,
               given: Sequence[Tolerance] = ()) -> Array:
    """
    Return the largest errors of position and velocity, (2, j); inf: any.

    Parameters
    ----------
    joints
        Names of the joints, j.
    position
        Default of positions, rad or m; zero: any error. Velocities may have any.
    given
        For some of the joints.

    Raises
    ------
    InputError
        If one is of another joint, or not a number, or the default is negative.

    """
    if not position >= 0.0:
        raise InputError(f'the tolerance of positions is {position}; valid: zero (any) and above')
    result = np.full((2, len(joints)), np.inf)
    result[0] = position or np.inf
    for tolerance in given:
        if tolerance.joint not in joints:
            raise InputError(f"a tolerance is of '{tolerance.joint}', which the trajectory does "
                             'not name')
        column = list(joints).index(tolerance.joint)
        for row, value in enumerate(tolerance[1:]):
            if not np.isfinite(value):
                raise InputError(f"a tolerance of '{tolerance.joint}' is not finite")
            if value:
                result[row, column] = value if value > 0.0 else np.inf
    return result


class GoalCheck:
    """
    Compares joints with a motion.

    Parameters
    ----------
    motion
        What they follow.
    path, goal
        Largest errors until its end, and after it, (2, j); see :func:`tolerances`.
    goal_time
        Time after its end within which the errors of `goal` have to be met, s; zero: any.

    Attributes
    ----------
    reason
        Why the goal has failed: which joint, by how much.

    """

    def __init__(self, motion: Motion, path: Array, goal: Array, goal_time: float) -> None:
        self.motion, self._path, self._goal = motion, path, goal
        self._goal_time, self.reason = goal_time, ''

    def check(self, time: float, desired: Array, actual: Array) -> Outcome:
        """
        Return what has become of the goal.

        Parameters
        ----------
        time
            The present one, s.
        desired, actual
            Positions and velocities of the motion's joints, (2, j) each.

        """
        if self.motion.is_replaced:
            self.reason = 'another trajectory took over its joints'
            return Outcome.REPLACED
        errors, late = np.abs(desired - actual), time - self.motion.end
        if late < 0.0:
            return Outcome.OFF_PATH if self._exceeds(errors, self._path) else Outcome.RUNNING
        if not self._exceeds(errors, self._goal):
            return Outcome.REACHED
        has_time = not self._goal_time or late <= self._goal_time
        return Outcome.RUNNING if has_time else Outcome.NOT_REACHED

    def _exceeds(self, errors: Array, limits: Array) -> bool:
        excess = errors - limits
        row, column = np.unravel_index(int(excess.argmax()), excess.shape)
        if not excess[row, column] > 0.0:
            return False
        joint = self.motion.trajectory.joints[int(column)]
        self.reason = (f"{_KINDS[int(row)]} error of '{joint}' is {errors[row, column]:.4g}, "
                       f'tolerance {limits[row, column]:.4g}')
        return True
