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
Positions that are commanded over time: trajectories of some joints, the others at rest.

A trajectory begins at the commanded positions. Joints that it does not name continue with the
trajectory before.

:class:`GoalCheck` finds whether the joints follow one, and reach its end, within tolerances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.joint_trajectory import braking, JointTrajectory
from biped_com_ros.core.signals.filters import limited_step
import numpy as np

#: Positions beyond a limit by no more than this are only clamped, rad or m.
_LIMIT_TOLERANCE = 0.01
UNKNOWN_SPEED = 3.0
"""Largest speed of joints without a limit in the URDF, as of slow humanoids, rad/s or m/s."""
#: Updates that come less often than this, s, let joints move slower than the velocity limit.
_SLOWEST_PERIOD = 0.1


class Motion:
    """
    A trajectory that is followed.

    Parameters
    ----------
    trajectory
        From the commanded positions on.
    index
        Of its joints among all, (j,).
    start
        Time of its start, s.

    Attributes
    ----------
    is_replaced
        Whether another trajectory took some of its joints.

    """

    def __init__(self, trajectory: JointTrajectory, index: Array, start: float) -> None:
        self.trajectory, self.index, self.start = trajectory, index, start
        self._is_own = np.ones(len(index), dtype=bool)
        self.is_replaced = False

    @property
    def end(self) -> float:
        """Time of its last point, s."""
        return self.start + self.trajectory.duration

    @property
    def has_joints(self) -> bool:
        """Whether any joint follows it."""
        return bool(self._is_own.any())

    def release(self, index: Array) -> None:
        """Let the joints with these indices go."""
        taken = np.isin(self.index, index)
        self.is_replaced |= bool((taken & self._is_own).any())
        self._is_own &= ~taken

    def write(self, time: float, positions: Array, velocities: Array) -> None:
        """Write the values of its joints at a time, s, to those of all joints, (n,) each."""
        own = self._is_own
        q, v = self.trajectory.at(time - self.start)
        positions[self.index[own]], velocities[self.index[own]] = q[own], v[own]

    def brake(self, time: float, duration: float) -> None:
        """Bring its joints to rest from a time on, s, evenly within a duration, s."""
        q, v = self.trajectory.at(time - self.start)
        self.trajectory = braking(self.trajectory.joints, q, v, duration)
        self.start = time


class PositionReference:
    """
    Positions and velocities of all joints over time, within their limits.

    Parameters
    ----------
    names
        The joints, n.
    lower, upper
        Limits of the positions, (n,) each, rad or m.
    max_velocity
        Limits of the velocities, (n,), rad/s or m/s; inf: `UNKNOWN_SPEED` holds.

    Attributes
    ----------
    is_set
        Whether it has begun; without, there are no positions to command.

    """

    def __init__(self, names: Sequence[str], lower: Array, upper: Array,
                 max_velocity: Array) -> None:
        self._names = tuple(names)
        self._column = {name: i for i, name in enumerate(names)}
        self._limits = lower, upper
        self._max_velocity = np.where(np.isfinite(max_velocity), max_velocity, UNKNOWN_SPEED)
        self.is_set = False
        self.clear()

    def clear(self) -> None:
        """Command nothing until `begin`."""
        self.is_set = False
        n = len(self._names)
        self._rest, self._commanded = np.zeros(n), np.zeros(n)
        self._least, self._most = self._limits
        self._time = 0.0
        self.motions: list[Motion] = []

    def begin(self, positions: Array, time: float) -> None:
        """Hold positions (n,), rad or m, from a time on, s; also where they are beyond limits."""
        self.clear()
        self._rest, self._commanded = positions.copy(), positions.copy()
        lower, upper = self._limits
        self._least, self._most = np.minimum(lower, positions), np.maximum(upper, positions)
        self._time, self.is_set = time, True

    def hold(self, joints: Sequence[str], positions: Array) -> None:
        """
        Let joints go to positions, (j,), as fast as they may, and stay there.

        Raises
        ------
        InputError
            If positions are not finite or out of limits.
        UnknownNameError
            If a joint does not exist.

        """
        index = self._index(joints)
        if positions.shape != (len(joints),) or not np.isfinite(positions).all():
            raise InputError('there must be one finite position for each name')
        self._check_limits(index, positions[np.newaxis])
        self._release(index)
        self._rest[index] = positions

    def stay(self, joints: Sequence[str], positions: Array) -> None:
        """Let joints stay at measured positions, (j,), which may be beyond limits."""
        index = self._index(joints)
        self._release(index)
        self._rest[index] = positions

    def follow(self, trajectory: JointTrajectory, start: float, now: float) -> Motion:
        """
        Follow a trajectory in place of what its joints do now.

        Parameters
        ----------
        trajectory
            Of any joints.
        start
            Time of its start, s; may be past or to come.
        now
            Time from which the joints move to the first point, s.

        Returns
        -------
        Motion
            What is followed.

        Raises
        ------
        InputError
            If it has ended already, or leaves the limits.
        UnknownNameError
            If a joint does not exist.

        """
        index = self.check(trajectory, start, now)
        motion = Motion(self._from_present(trajectory, index, start, now), index, min(start, now))
        self._release(index)
        self.motions.append(motion)
        return motion

    def check(self, trajectory: JointTrajectory, start: float, now: float) -> Array:
        """Return the indices of its joints, (j,), or raise what `follow` would."""
        index = self._index(trajectory.joints)
        self._check_limits(index, trajectory.positions)
        if start + trajectory.duration < now:
            raise InputError(
                f'the trajectory ended {now - start - trajectory.duration:.3f} s ago; a stamp of '
                'zero starts it at once')
        return index

    def _from_present(self, trajectory: JointTrajectory, index: Array, start: float,
                      now: float) -> JointTrajectory:
        """Return the trajectory with the present reference as its first point."""
        begin = min(start, now)
        times = trajectory.times + (start - begin)
        if begin + times[0] <= now:
            return replace(trajectory, times=times)
        positions, velocities = (values[index] for values in self.at(now))

        def prepend(first: Array, values: Array | None) -> Array | None:
            return None if values is None else np.vstack((first, values))
        return replace(
            trajectory, times=np.concatenate(((now - begin,), times)), positions=np.vstack(
                (positions, trajectory.positions)),
            velocities=prepend(velocities, trajectory.velocities),
            accelerations=prepend(np.zeros(len(index)), trajectory.accelerations))

    def at(self, time: float) -> tuple[Array, Array]:
        """Return the reference positions and velocities, (n,) each, at a time, s."""
        positions, velocities = self._rest.copy(), np.zeros(len(self._rest))
        for motion in self.motions:
            motion.write(time, positions, velocities)
        return positions, velocities

    def command(self, time: float, ahead: float) -> tuple[Array, Array]:
        """
        Return what to command for a time to come, clamped to the limits.

        Parameters
        ----------
        time
            The present one, s.
        ahead
            How far the command lies ahead, s.

        Returns
        -------
        tuple of numpy.ndarray
            Positions and velocities, (n,) each.

        """
        goal = self.at(time + ahead)
        self._finish(time)
        dt = min(max(time - self._time, 0.0), _SLOWEST_PERIOD)
        self._time = time
        limited, velocities = self._limit(*goal, self._commanded, dt)
        self._commanded = limited
        return limited.copy(), velocities

    def continuation(self, times: Array) -> tuple[Array, Array]:
        """
        Return what will be commanded after the last command, if nothing changes till then.

        Parameters
        ----------
        times
            Of that command and of later ones, ascending, (k,), s.

        Returns
        -------
        tuple of numpy.ndarray
            Positions and velocities at the later ones, (k - 1, n) each, clamped to the limits.

        """
        before, rows = self._commanded, []
        for time, dt in zip(times[1:].tolist(), np.diff(times).tolist()):
            rows.append(self._limit(*self.at(time), before, dt))
            before = rows[-1][0]
        positions, velocities = zip(*rows)
        return np.array(positions), np.array(velocities)

    def clamp(self, positions: Array) -> Array:
        """Return positions, (n,), within the limits."""
        return np.clip(positions, self._least, self._most)

    def _limit(self, positions: Array, velocities: Array, before: Array, dt: float
               ) -> tuple[Array, Array]:
        """Return positions and velocities within the limits, `dt` after other positions."""
        # Always and last: whatever the request, no position jumps or leaves the limits.
        limited = limited_step(positions, before, self._max_velocity * dt, self._least, self._most)
        is_limited = limited != positions
        velocities[is_limited] = (limited - before)[is_limited] / dt if dt else 0.0
        np.clip(velocities, -self._max_velocity, self._max_velocity, out=velocities)
        return limited, velocities

    def _finish(self, time: float) -> None:
        """Let joints rest where their trajectories ended."""
        for motion in self.motions:
            if time >= motion.end:
                motion.write(time, self._rest, np.zeros(len(self._rest)))
        self.motions = [m for m in self.motions if time < m.end and m.has_joints]

    def _release(self, index: Array) -> None:
        """Let no motion have the joints with these indices."""
        for motion in self.motions:
            motion.release(index)
        self.motions = [motion for motion in self.motions if motion.has_joints]

    def _index(self, joints: Sequence[str]) -> Array:
        for name in joints:
            if name not in self._column:
                raise UnknownNameError('joint', name, self._names, 'a reference')
        return np.array([self._column[name] for name in joints], dtype=int)

    def _check_limits(self, index: Array, positions: Array) -> None:
        beyond = np.maximum(self._least[index] - positions, positions - self._most[index])
        point, column = np.unravel_index(int(beyond.argmax()), beyond.shape)
        if beyond[point, column] > _LIMIT_TOLERANCE:
            joint = index[column]
            raise InputError(
                f"position {positions[point, column]:g} of '{self._names[joint]}' is beyond its "
                f'limits ({self._least[joint]:g} to {self._most[joint]:g})')


def prevent_overshoot(times: Array, positions: Array, velocities: Array) -> None:
    """
    Reduce velocities so that cubic curves that come to rest do not pass the point of rest.

    A cubic from a velocity v to rest, d further and T later, passes that point if v T > 3 d: at a
    limit of the positions it would leave it.

    Parameters
    ----------
    times
        Of the points, ascending, (k,), s.
    positions
        Of n joints at these times, (k, n), rad or m.
    velocities
        The same, changed in place; the last ones are zero, rad/s or m/s.

    """
    for i in range(len(times) - 2, -1, -1):
        step = positions[i + 1] - positions[i]
        most = 3.0 * step / (times[i + 1] - times[i])
        bounded = np.clip(velocities[i], np.minimum(most, 0.0), np.maximum(most, 0.0))
        np.copyto(velocities[i], bounded, where=velocities[i + 1] == 0.0)


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


def tolerances(joints: Sequence[str], position: float, given: Sequence[Tolerance] = ()) -> Array:
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
