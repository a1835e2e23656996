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
Moves the robot from pose to pose: along paths, and up and down its hoist.

Sudden starts, stops and corners of a path excite oscillations: the robot needs seconds until it is
still, or falls on one foot. So its speed rises and falls smoothly, and is zero at corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import enum
from typing import Protocol

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
import numpy as np

HANGS, STANDS = 0.3, 0.8
"""Below the first share of the weight on its feet a robot hangs, above the second it stands."""

HOIST_SETTLING = 3.0
"""How long the weight must have been there before a hoist counts as done, s."""

HOIST_PATIENCE = 20.0
"""Time that a hoist may take until the feet have to show it, s."""


class HoistMove(enum.Enum):
    """What a hoist does with the robot."""

    LIFT = 'lift'
    LOWER = 'lower'


@dataclass(frozen=True, eq=False)
class SlowPath:
    """A path (steps, n) at whose end friction holds the joints, not their inertia; rad or m."""

    steps: Array


PathSegment = Array | SlowPath | HoistMove
"""A path of joint positions (steps, n) in rad or m, or a move of the hoist."""


class RobotDriver(Protocol):
    """Executes trajectories and hoist moves on the robot."""

    @property
    def has_hoist(self) -> bool:
        """Whether the robot is lifted and lowered by a hoist; else by an operator."""

    @property
    def problem(self) -> str:
        """Why trajectories would not be executed, or ''."""

    def send(self, positions: Array, path: Array, slowly: bool = False) -> float:
        """Send a path (steps, n) that begins at `positions` (n,); return its duration, s."""

    def request_hoist(self, move: HoistMove) -> str:
        """Request a move once, until `end_hoist`; return why it is not done, or ''."""

    def end_hoist(self) -> None:
        """Consider the requested move done."""


class Transfer:
    """
    Executes legs, one after the other.

    Parameters
    ----------
    driver
        Of the robot.

    Attributes
    ----------
    arrives_at
        Time at which the last path that was sent ends, s.
    problem
        What keeps the next leg from being begun, or ''.
    lift_request, lower_request
        Instruction to the operator if there is no hoist service.

    """

    def __init__(self, driver: RobotDriver) -> None:
        self._driver = driver
        self._legs: list[PathSegment] = []
        self._travelled: list[Array] = []  # paths since `begin` or the hoist's last move
        self._unreached_at, self._requested_at = -np.inf, np.inf
        self.arrives_at, self.problem = 0.0, ''
        self.lift_request = 'hoist the robot'
        self.lower_request = 'put the robot down on its feet'

    def begin(self, legs: Sequence[PathSegment]) -> None:
        """Execute these legs instead of those that are left."""
        self._legs, self._travelled = list(legs), []
        self._requested_at, self.problem = np.inf, ''

    @property
    def way_back(self) -> Array | None:
        """Return the paths since `begin` backwards, (steps, n); None if the robot did not move."""
        return np.concatenate(self._travelled)[::-1].copy() if self._travelled else None

    def is_done(self, now: float) -> bool:
        """Whether all legs are executed at the time `now`, s."""
        return not self._legs and now >= self.arrives_at

    def has_waited(self, now: float, time: float) -> bool:
        """Whether a hoist was requested more than a `time` (s) ago, and nothing shows it."""
        return self._driver.has_hoist and now - self._requested_at > time

    def update(self, now: float, positions: Array, load_share: float) -> str:
        """
        Begin the next leg when the one before is done.

        Parameters
        ----------
        now
            Time, s.
        positions
            Of the joints, (n,), rad or m; NaN where not measured.
        load_share
            Share of the robot's weight that its feet carry.

        Returns
        -------
        str
            `problem`.

        """
        self.problem = self._begin_next(now, positions, load_share)
        return self.problem

    def _begin_next(self, now: float, positions: Array, load_share: float) -> str:
        if now < self.arrives_at or not self._legs:
            return ''
        leg = self._legs[0]
        if isinstance(leg, HoistMove):
            return self._update_hoist(leg, now, load_share)
        if self._driver.problem:
            return self._driver.problem
        if not np.isfinite(positions).all():
            return 'no joint states received; check the topic joint_states'
        slowly = isinstance(leg, SlowPath)
        path = leg.steps if isinstance(leg, SlowPath) else leg
        self.arrives_at = now + self._driver.send(positions, path, slowly)
        self._travelled += [path] if self._travelled else [positions[np.newaxis].copy(), path]
        self._legs.pop(0)
        return ''

    def _update_hoist(self, move: HoistMove, now: float, load_share: float) -> str:
        problem, lift = self._driver.request_hoist(move), move is HoistMove.LIFT
        if not (load_share < HANGS if lift else load_share > STANDS):
            self._unreached_at, self._requested_at = now, min(now, self._requested_at)
            if not self._driver.has_hoist:
                return problem or (self.lift_request if lift else self.lower_request)
            if problem or not self.has_waited(now, HOIST_PATIENCE):
                return problem
            moved, carried = ('lifted', 'still carry') if lift else ('lowered', 'do not carry')
            return (f'the hoist should have {moved} the robot, but the feet {carried} it: check '
                    'the hoist, then the foot wrenches')
        if now >= self._unreached_at + HOIST_SETTLING:
            self._driver.end_hoist()
            self._legs.pop(0)
            self._travelled, self._requested_at = [], np.inf
        return ''


CORNER = 0.5
"""Where the direction changes by more than this (cosine), the path stops."""

RAMP = 1.0
"""Time from rest to full speed and back, s."""

PERIOD = 0.1
"""Time between two knots, s."""


@dataclass(frozen=True)
class Travel:
    """
    A path with times: knots of cubic splines, as a joint trajectory controller interpolates them.

    Attributes
    ----------
    times
        Ascending, (k,), s; 0 is the start, which is not among the knots.
    positions, velocities
        Shape (k, n), rad and rad/s.

    """

    times: Array
    positions: Array
    velocities: Array

    @property
    def duration(self) -> float:
        """Return the duration, s."""
        return float(self.times[-1]) if len(self.times) else 0.0


def travel(start: Array, path: Array, speed: float, ramp: float = RAMP) -> Travel:
    """
    Return the timing of a path.

    Parameters
    ----------
    start
        Measured joint positions, (n,), rad.
    path
        Joint positions to go through, (steps, n), rad.
    speed
        Largest speed of any joint between corners, rad/s.
    ramp
        Time from rest to full speed, s.

    """
    if not (0.0 < speed < np.inf and 0.0 < ramp < np.inf):
        raise ConfigurationError(f'speed {speed} and ramp {ramp} must be above zero, and finite')
    points = _without_repeats(np.concatenate((start[np.newaxis], path)))
    times, positions, velocities, begin = [], [], [], 0.0
    for first, last in _legs(points):
        t, q, v = _leg(points[first:last + 1], speed, ramp)
        times.append(begin + t)
        positions.append(q)
        velocities.append(v)
        begin = float(times[-1][-1])
    if not times:
        return Travel(np.array([ramp]), path[-1:].copy(), np.zeros((1, path.shape[1])))
    return Travel(*(np.concatenate(parts) for parts in (times, positions, velocities)))


def _without_repeats(points: Array) -> Array:
    moved = np.abs(np.diff(points, axis=0)).max(axis=1) > 1e-9
    return points[np.concatenate(([True], moved))]


def _legs(points: Array) -> list[tuple[int, int]]:
    """Return the first and last point of each part between corners."""
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    cosines = (steps[:-1] * steps[1:]).sum(axis=1) / (lengths[:-1] * lengths[1:])
    ends = [0, *(np.flatnonzero(cosines < CORNER) + 1).tolist(), len(points) - 1]
    return [(a, b) for a, b in zip(ends[:-1], ends[1:]) if b > a]


def _leg(points: Array, speed: float, ramp: float) -> tuple[Array, Array, Array]:
    """Return times, positions and velocities of a part from rest to rest."""
    along = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(points, axis=0)).max(axis=1))))
    # A short part does not reach full speed; the ramps keep their slope.
    length = float(along[-1])
    top = min(speed, speed * np.sqrt(length / (speed * ramp)))
    rise = ramp * top / speed
    duration = length / top + rise
    t = np.linspace(0.0, duration, max(2, int(np.ceil(duration / PERIOD))) + 1)
    s, rate = _progress(t, top, rise, duration)
    s = np.clip(s, 0.0, length)
    positions = np.column_stack([np.interp(s, along, column) for column in points.T])
    # Slopes over the distance between knots, so that small bends are rounded.
    reach = max(top * PERIOD, 1e-6)
    ahead, behind = np.minimum(s + reach, length), np.maximum(s - reach, 0.0)
    slope = np.column_stack([np.interp(ahead, along, column) - np.interp(behind, along, column)
                             for column in points.T]) / (ahead - behind)[:, np.newaxis]
    velocities = slope * rate[:, np.newaxis]
    # Where bends are rounded a spline is faster than the path: all of it takes longer then.
    longer = max(1.0, _largest_speed(t, positions, velocities) / speed)
    return longer * t[1:], positions[1:], velocities[1:] / longer


def _largest_speed(t: Array, positions: Array, velocities: Array) -> float:
    """Return the largest speed of any joint of the cubic spline, which controllers follow."""
    h = np.diff(t)[:, np.newaxis]
    mean, v, w = np.diff(positions, axis=0) / h, velocities[:-1], velocities[1:]
    # The speed is a parabola, with its vertex at a share of the segment.
    bend = v + w - 2.0 * mean
    with np.errstate(divide='ignore', invalid='ignore'):
        share = np.clip(np.nan_to_num((2.0 * v + w - 3.0 * mean) / (3.0 * bend)), 0.0, 1.0)
    vertex = v + 2.0 * share * (3.0 * mean - 2.0 * v - w) + 3.0 * share ** 2 * bend
    return float(max(np.abs(velocities).max(), np.abs(vertex).max()))


def _progress(t: Array, top: float, rise: float, duration: float) -> tuple[Array, Array]:
    """Return distance and speed at times, the speed rising and falling as a raised cosine."""
    def risen(tau: Array) -> Array:
        phase = np.pi * np.clip(tau / rise, 0.0, 1.0)
        return 0.5 * top * (np.clip(tau, 0.0, rise) - rise / np.pi * np.sin(phase))

    def rate(tau: Array) -> Array:
        return 0.5 * top * (1.0 - np.cos(np.pi * np.clip(tau / rise, 0.0, 1.0)))

    left = duration - t
    cruise = top * np.clip(t - rise, 0.0, duration - 2.0 * rise)
    ends = 0.5 * top * rise - risen(np.minimum(left, rise))
    distance = risen(np.minimum(t, rise)) + cruise + ends
    return distance, np.minimum(rate(t), rate(left))
