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
Simulated time against the clock on the wall, and against who commands the robot.

A computer that does other work stops the simulator or the nodes for some ms, again and again. A
robot that then went on with a command of long ago, or made up for what it missed all at once,
would feel delays that no robot's controller has. So a reading is taken only when the one before
could be answered: what is behind is caught up a step at a time, and who has answered regularly
is waited for. Time that this takes is lost; the simulation is slower meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
import math
import time

LARGEST_LAG = 0.1
"""What is more than this (s) behind the clock is not caught up but given up."""

CATCHING_UP = 2.0
"""What is behind is caught up at this many times the pace that is asked for."""

BATCH = 0.02
"""As fast as possible is this much (s of simulated time) at once, so that messages get in."""

SHORTEST_TICK, LONGEST_TICK = 5e-4, 0.05
"""Nobody is asked to look for steps that are due more or less often than this (s)."""

REGULAR_AFTER, LEARNT_AFTER = 20, 200
"""Commands after which their usual distance is used, and over which it is the mean."""

SLOWEST = 10.0
"""Commands that come less often than in every so many steps follow no sensors."""


class Stream:
    """
    Commands of one kind, and until when the next one has to be there.

    Parameters
    ----------
    pacer
        Counts the steps.

    Attributes
    ----------
    until
        How many steps the pacer may count before the next command; infinite if nobody answers.

    """

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._count = self._at = 0
        self._distance = 0.0
        self.until = math.inf

    def told(self) -> None:
        """Take note of a command."""
        now = self._pacer.steps
        # One that was waited for says nothing of how far apart they usually are.
        if self._count and not (self._pacer.waits and now >= self.until):
            self._learn(now - self._at)
        self._count += 1
        self._at = now
        if self._count >= REGULAR_AFTER and self._distance <= SLOWEST:
            self.until = now + 1 + round(2.0 * self._distance)
        else:
            self.until = math.inf

    def _learn(self, age: int) -> None:
        """Take account of a distance, in steps; a pause counts no more than being slow."""
        window = LEARNT_AFTER if self.until < math.inf else REGULAR_AFTER
        self._distance += (min(age, 2.0 * SLOWEST) - self._distance) / min(self._count, window)

    def give_up(self) -> None:
        """Wait no more until a command comes again."""
        self.until = math.inf


class Pacer:
    """
    Says how many steps are due.

    Parameters
    ----------
    dt
        Simulated time of a step, s.
    factor
        Simulated seconds per second; 0 is as fast as possible.
    patience
        How long a command is waited for that has come regularly, s; 0: not at all.
    clock
        Seconds that never go back.

    Attributes
    ----------
    patience
        As above; may be changed at any time.
    steps
        Taken so far.
    period
        How often to ask from now on, s.
    waits
        Whether a step is due but a command missing.
    achieved
        Simulated seconds per second over the last second or so; 0 during the first two.
    lost
        Seconds given up because the computer was too slow.
    waited
        Seconds during which a step was due but a command missing.

    """

    def __init__(self, dt: float, factor: float, patience: float = 0.0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.dt, self.patience, self._clock = dt, patience, clock
        self._streams: list[Stream] = []
        self.steps, self.waits = 0, False
        self._last = self._stepped = self._window_start = clock()
        self._owed = self._window = 0.0
        self.achieved, self.lost, self.waited = 0.0, 0.0, 0.0
        self._is_starting = True
        self.factor = factor

    @property
    def factor(self) -> float:
        """As above; may be changed at any time."""
        return self._factor

    @factor.setter
    def factor(self, factor: float) -> None:
        self._factor = factor
        if factor > 0.0:
            self._tick = min(max(self.dt / factor, SHORTEST_TICK), LONGEST_TICK)
            self._at_once = max(1, round(self._tick * factor / self.dt))
        else:
            self._tick, self._at_once = self.dt, max(1, round(BATCH / self.dt))
        self.period = self._tick

    def stream(self) -> Stream:
        """Return where to tell of commands of one kind, which are then waited for."""
        self._streams.append(Stream(self))
        return self._streams[-1]

    def due(self) -> int:
        """Return how many steps to take now; they count as taken."""
        now = self._clock()
        elapsed, self._last = now - self._last, now
        if self.waits:
            self.waited += elapsed
        steps = self._in_time(elapsed, now)
        if steps:
            steps = self._answered(steps, now)
        if steps:
            self._stepped = now
            self._owed -= steps * self.dt
            self.steps += steps
        is_behind = self._factor > 0.0 and self._owed >= 0.5 * self.dt
        self.period = self._tick / CATCHING_UP if is_behind else self._tick
        self._measure(now, steps)
        return steps

    def _in_time(self, elapsed: float, now: float) -> int:
        """Return the steps due by the clock, at most as many as a tick of the timer has."""
        if self._factor <= 0.0:
            self._owed = BATCH
            return self._at_once
        self._owed += elapsed * self._factor
        excess = self._owed - LARGEST_LAG * max(self._factor, 1.0)
        if excess > 0.0:
            self._owed -= excess
            self.lost += excess / self._factor
        if now - self._stepped < 0.8 * self._tick / CATCHING_UP:
            return 0
        # To the nearest: a timer that is a little early or late owes nothing.
        return min(int(self._owed / self.dt + 0.5), self._at_once)

    def _answered(self, steps: int, now: float) -> int:
        """Return as many of the steps as the commands are new enough for."""
        self.waits = False
        if not self.patience:
            return steps
        for stream in self._streams:
            left = stream.until - self.steps
            if left >= steps:
                continue
            if left <= 0 and now - self._stepped >= self.patience:
                stream.give_up()
                continue
            steps = max(int(left), 0)
        self.waits = not steps
        return steps

    def _measure(self, now: float, steps: int) -> None:
        elapsed = now - self._window_start
        if elapsed >= 1.0:
            # While everything is starting, nothing is in time.
            self.achieved = 0.0 if self._is_starting else self._window / elapsed
            self._is_starting = False
            self._window_start, self._window = now, 0.0
        self._window += steps * self.dt
