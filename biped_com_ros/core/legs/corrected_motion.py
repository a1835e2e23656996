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
"""A planned motion with increments that change, as trajectories that continue each other."""

from __future__ import annotations

from collections import deque

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.legs.player import RemainingMotion
import numpy as np

_NEAR = 0.6
"""Time in which all knots are kept, s; later only some, since new trajectories come before."""

_STRIDE = 3
"""Of the knots that are kept later."""

_TAIL = 10
"""Knots of the fading out."""

_HALT = 0.1
"""Time in which increments that are kept come to rest, s."""


class CorrectedMotion:
    """
    Trajectories of a planned motion plus increments.

    Each trajectory repeats the last two increments and adds the new one two periods ahead, so that
    it continues the last one although it arrives late. In each, the increments then fade out: if
    no other follows, the robot does what was planned, and comes to rest where that was.

    Parameters
    ----------
    motion
        From `start_ns` on.
    start_ns
        Time at which it begins, ns.
    fade_time
        Duration of fading out, s.

    """

    def __init__(self, motion: RemainingMotion, start_ns: int, fade_time: float) -> None:
        self._motion, self._start_ns, self._fade_time = motion, start_ns, fade_time
        nothing = np.zeros(motion.positions.shape[1])
        self._history = deque([(nothing, nothing)] * 3, maxlen=3)

    def replace(self, motion: RemainingMotion, start_ns: int) -> None:
        """Go on with another motion, from the present increments."""
        self._motion, self._start_ns = motion, start_ns

    def add(self, increments: Array, dt: float) -> None:
        """Add increments (n,), rad, `dt` s after the last ones."""
        rate = (increments - self._history[-1][0]) / dt
        self._history.append((increments.copy(), rate))

    def wait(self, ns: int) -> None:
        """Let the planned motion go on this much later, ns."""
        self._start_ns += ns

    @property
    def is_neutral(self) -> bool:
        """Whether all increments are zero: the planned motion is the trajectory."""
        return not any(increments.any() for increments, _ in self._history)

    def trajectory(self, ns: int, period: float, rate: float = 1.0) -> RemainingMotion:
        """
        Return the motion from a time on until the robot rests without increments.

        Parameters
        ----------
        ns
            The time.
        period
            Between two increments, s.
        rate
            At which the planned motion goes on at present.

        """
        now = 1e-9 * (ns - self._start_ns)
        ahead = period * np.arange(len(self._history))
        # At the present rate for now; without further trajectories, then at full rate.
        reached, behind = rate * ahead, (1.0 - rate) * float(ahead[-1])
        planned_later = self._later(now + float(reached[-1]), period) - now
        later = planned_later + behind
        times = np.concatenate((ahead, later))
        positions, velocities, accelerations = self._planned(
            now + np.concatenate((reached, planned_later)))
        velocities[:len(ahead)] *= rate
        accelerations[:len(ahead)] *= rate * rate
        shares, slopes = self._fading(later - ahead[-1])
        last = self._history[-1][0]
        rows = [*self._history, *((share * last, slope * last)
                                  for share, slope in zip(shares, slopes))]
        for i, (increments, increment_rates) in enumerate(rows):
            positions[i] += increments
            velocities[i] += increment_rates
        velocities[-1] = 0.0
        return RemainingMotion(times, positions, velocities, accelerations)

    def held(self, period: float) -> RemainingMotion:
        """
        Return the motion of a robot that stands at the end of the plan and keeps its increments.

        Parameters
        ----------
        period
            Between two increments, s.

        """
        end = self._motion.positions[-1]
        increments, rates = (np.array(column) for column in zip(*self._history))
        times: Array = period * np.arange(len(increments) + 1, dtype=float)
        times[-1] = times[-2] + _HALT
        last = increments[-1] + 0.5 * _HALT * rates[-1]
        positions = end + np.vstack((increments, last))
        velocities = np.vstack((rates, np.zeros_like(last)))
        return RemainingMotion(times, positions, velocities, np.zeros_like(positions))

    def _later(self, first: float, period: float) -> Array:
        """Return the times of knots after one, the fading out included, s."""
        knots = self._motion.times[self._motion.times > first + 0.5 * period]
        near = knots < first + _NEAR
        kept = np.concatenate((knots[near], knots[~near][::_STRIDE], knots[-1:]))
        end = float(kept[-1]) if len(kept) else first
        fading = first + self._fade_time * np.arange(1, _TAIL + 1) / _TAIL
        return np.unique(np.concatenate((kept, fading[fading > end + 0.5 * period])))

    def _fading(self, since: Array) -> tuple[list[float], list[float]]:
        """Return the share of the last increments that is left after times, and its rate."""
        passed = np.clip(since / self._fade_time, 0.0, 1.0)
        slopes = -30.0 * (passed * (1.0 - passed)) ** 2 / self._fade_time
        return [1.0 - minimum_jerk(p) for p in passed.tolist()], slopes.tolist()

    def _planned(self, times: Array) -> tuple[Array, Array, Array]:
        """Return the planned motion between its knots, by cubic polynomials."""
        motion = self._motion
        if len(motion.times) < 2:
            still = np.zeros((len(times), motion.positions.shape[1]))
            return still + motion.positions[-1], still, still.copy()
        times = np.clip(times, 0.0, motion.times[-1])
        k = np.clip(np.searchsorted(motion.times, times, side='right') - 1, 0,
                    len(motion.times) - 2)
        span = (motion.times[k + 1] - motion.times[k])[:, np.newaxis]
        s = (times - motion.times[k])[:, np.newaxis] / span
        p0, change = motion.positions[k], motion.positions[k + 1] - motion.positions[k]
        v0, v1 = span * motion.velocities[k], span * motion.velocities[k + 1]
        a, b = v0 + v1 - 2.0 * change, 3.0 * change - 2.0 * v0 - v1
        a0, a1 = motion.accelerations[k], motion.accelerations[k + 1]
        return (p0 + s * (v0 + s * (b + s * a)), (v0 + s * (2.0 * b + 3.0 * s * a)) / span,
                a0 + s * (a1 - a0))
