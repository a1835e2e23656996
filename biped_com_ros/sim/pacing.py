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
"""Simulated time against the clock on the wall."""

from __future__ import annotations

from collections.abc import Callable
import time

LARGEST_LAG = 0.1
"""What is more than this (s) behind the clock is not caught up but given up."""

BATCH = 0.02
"""At most this much (s of simulated time) is simulated at once, so that messages get in."""


class Pacer:
    """
    Says how many steps are due.

    Parameters
    ----------
    dt
        Simulated time of a step, s.
    factor
        Simulated seconds per second; 0 is as fast as possible.
    clock
        Seconds that never go back.

    Attributes
    ----------
    factor
        As above; may be changed at any time.
    achieved
        Simulated seconds per second over the last second or so; 0 during the first two.
    lost
        Seconds given up because the computer was too slow.

    """

    def __init__(self, dt: float, factor: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.dt, self.factor, self._clock = dt, factor, clock
        self._batch = max(1, round(BATCH / dt))
        self._last = self._window_start = clock()
        self._owed = self._window = 0.0
        self.achieved, self.lost = 0.0, 0.0
        self._is_starting = True

    def due(self) -> int:
        """Return how many steps to take now; they count as taken."""
        now = self._clock()
        if self.factor <= 0.0:
            steps, self._owed = self._batch, 0.0
        else:
            self._owed += (now - self._last) * self.factor
            excess = self._owed - LARGEST_LAG * max(self.factor, 1.0)
            if excess > 0.0:
                self._owed -= excess
                self.lost += excess / self.factor
            steps = min(int(self._owed / self.dt + 1e-9), self._batch)
            self._owed -= steps * self.dt
        self._last = now
        self._measure(now, steps)
        return steps

    def _measure(self, now: float, steps: int) -> None:
        elapsed = now - self._window_start
        if elapsed >= 1.0:
            # While everything is starting, nothing is in time.
            self.achieved = 0.0 if self._is_starting else self._window / elapsed
            self._is_starting = False
            self._window_start, self._window = now, 0.0
        self._window += steps * self.dt
