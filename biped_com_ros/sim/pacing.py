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
Pacing of the simulated time by wall time and by the commands to the robot.

A computer with other work stops the simulator or the nodes for some ms, again and again. If the
simulation then continued with an old command, or made up the lost time in one burst, the robot
would suffer delays that a real controller does not have. So lost time is caught up step by step,
and a step waits for commands that have been regular until now. Waiting makes the simulation
slower for a while.

A computer that is too slow for all processes would be slowest for those that the simulation leaves
the least to. So the pace falls below what was reached, which leaves time to the others, and rises
again until time is lost once more.
"""

from __future__ import annotations

from collections.abc import Callable
import math
import time

MAX_LAG = 0.1
"""Time behind the clock that is caught up, s; the rest is lost."""

CATCH_UP_FACTOR = 2.0
"""Pace of catching up, relative to the real-time factor."""

SLOWED_FACTOR, RECOVERY_FACTOR = 0.6, 1.15
"""Pace after a second that lost time, relative to what was achieved; growth in any other one."""

MOST_SLOWED_FACTOR, MIN_PACE = 0.5, 0.05
"""Lower limits of the pace: relative to that before, and to the real-time factor."""

OVERRUN_SHARE = 0.02
"""Share of a second that may be lost at a pace without slowing down."""

BATCH = 0.02
"""Simulated time in one go when as fast as possible, s; commands are received in between."""

MIN_PERIOD, MAX_PERIOD = 5e-4, 0.05
"""Limits of the timer's period, s."""

REGULAR_COUNT, AVERAGED_COUNT = 20, 200
"""Commands until their mean distance is used, and averaged for it."""

MAX_DISTANCE = 10.0
"""Commands with a larger mean distance, in steps, are not waited for."""


STRIDES = (1, 2, 5, 10)
"""Steps between two readings where a computer is too slow for one at each."""

TOO_SLOW, PATIENCE = 0.7, 5
"""Pace relative to the factor below which readings become fewer, and seconds of it in turn."""


class ReadingRate:
    """
    Rate of the readings, which falls where the computer is too slow for the nodes that get them.

    It does not rise again: what is too slow now and then would change it for ever.

    Parameters
    ----------
    rate
        Steps per simulated second, and readings at first, Hz.
    least
        Lowest rate, Hz; 0: the rate stays.

    Attributes
    ----------
    stride
        Steps from one reading to the next.

    """

    def __init__(self, rate: float, least: float) -> None:
        self._rate = rate
        self._strides = [n for n in STRIDES if n == 1 or rate / n >= least > 0.0]
        self.stride, self._slow = 1, 0

    @property
    def rate(self) -> float:
        """Return the present rate, Hz."""
        return self._rate / self.stride

    def update(self, pace: float) -> bool:
        """Use the pace of a second, relative to the factor; return whether the rate has fallen."""
        self._slow = self._slow + 1 if pace < TOO_SLOW else 0
        slower = self._strides[self._strides.index(self.stride) + 1:]
        if self._slow < PATIENCE or not slower:
            return False
        self.stride, self._slow = slower[0], 0
        return True


class CommandStream:
    """
    Commands on one topic, and the step before which the next one is due.

    Parameters
    ----------
    pacer
        Counts the steps.

    Attributes
    ----------
    deadline
        Step before which the next command is due; infinite if the commands are not regular.

    """

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._count = self._last_step = 0
        self._distance = 0.0
        self.deadline = math.inf

    def on_command(self) -> None:
        """Update the statistics with a command that has been received now."""
        step = self._pacer.steps
        # The distance of a command that was waited for is not representative.
        if self._count and not (self._pacer.is_waiting and step >= self.deadline):
            self._average(step - self._last_step)
        self._count += 1
        self._last_step = step
        if self._count >= REGULAR_COUNT and self._distance <= MAX_DISTANCE:
            self.deadline = step + 1 + round(2.0 * self._distance)

    def _average(self, distance: int) -> None:
        """Update the mean distance, in steps; a pause counts as MAX_DISTANCE twice."""
        window = AVERAGED_COUNT if self.deadline < math.inf else REGULAR_COUNT
        self._distance += (min(distance, 2.0 * MAX_DISTANCE) - self._distance) / min(
            self._count, window)

    def stop_waiting(self) -> None:
        """Do not wait until the next command has been received."""
        self.deadline = math.inf


class Pacer:
    """
    Computes the number of steps that are due.

    Parameters
    ----------
    dt
        Simulated time of a step, s.
    factor
        Simulated seconds per second; 0: as fast as possible.
    command_timeout
        How long a step waits for a regular command, s; 0: not at all.
    clock
        Monotonic time, s.

    Attributes
    ----------
    command_timeout
        As above; may be changed at any time.
    steps
        Number of steps so far.
    period
        Time until the next call of :meth:`due`, s.
    is_waiting
        Whether a step is due but a command missing.
    last_update
        Time of the last call of :meth:`due`, by the clock, s.
    backlog
        Simulated time that is due, s.
    pace
        Simulated seconds per second that are tried: the factor, or less where that was too fast.
    seconds
        Number of seconds, or so, that were measured.
    achieved
        Simulated seconds per second over the last second or so; 0 during the first two.
    lost
        Wall time not simulated because the computer was too slow, what a lower pace left to other
        processes included, s.
    waited
        Wall time during which a step was due but a command missing, s.

    """

    def __init__(self, dt: float, factor: float, command_timeout: float = 0.0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.dt, self.command_timeout, self._clock = dt, command_timeout, clock
        self._streams: list[CommandStream] = []
        self.steps, self.is_waiting = 0, False
        self.last_update = self._last_step_at = self._window_start = clock()
        self.backlog = self._window = 0.0
        # Wall time by which the pace was too high, so far and at the last change.
        self._overrun = self._overrun_before = 0.0
        self.seconds, self.achieved, self.lost, self.waited = 0, 0.0, 0.0, 0.0
        self._is_starting = True
        self.factor = factor

    @property
    def factor(self) -> float:
        """Value of the constructor; may be changed at any time."""
        return self._factor

    @factor.setter
    def factor(self, factor: float) -> None:
        self._factor = factor
        self._set_pace(factor)
        self.period = self._tick

    def _set_pace(self, pace: float) -> None:
        self.pace = pace
        if pace > 0.0:
            self._tick = min(max(self.dt / pace, MIN_PERIOD), MAX_PERIOD)
            self._most = max(1, round(self._tick * pace / self.dt))
        else:
            self._tick, self._most = self.dt, max(1, round(BATCH / self.dt))

    def add_stream(self) -> CommandStream:
        """Return the statistics of the commands on one more topic."""
        self._streams.append(CommandStream(self))
        return self._streams[-1]

    def due(self) -> int:
        """Return the number of steps to take now, and count them."""
        now = self._clock()
        elapsed, self.last_update = now - self.last_update, now
        if self.is_waiting:
            self.waited += elapsed
        steps = self._due_by_clock(elapsed, now)
        if steps:
            steps = self._limit_to_commands(steps, now)
        if steps:
            self._last_step_at = now
            self.backlog -= steps * self.dt
            self.steps += steps
        is_behind = self.pace > 0.0 and self.backlog >= 0.5 * self.dt
        self.period = self._tick / CATCH_UP_FACTOR if is_behind else self._tick
        self._measure(now, steps)
        return steps

    def _due_by_clock(self, elapsed: float, now: float) -> int:
        """Return the steps due by the clock, at most as many as in a period of the timer."""
        if self.pace <= 0.0:
            self.backlog = BATCH
            return self._most
        self.backlog += elapsed * self.pace
        self.lost += elapsed * (1.0 - self.pace / self._factor)
        excess = self.backlog - MAX_LAG * max(self.pace, 1.0)
        if excess > 0.0:
            self.backlog -= excess
            self.lost += excess / self._factor
            self._overrun += excess / self.pace
        if now - self._last_step_at < 0.8 * self._tick / CATCH_UP_FACTOR:
            return 0
        # Rounded to nearest, so that jitter of the timer does not count as being behind.
        return min(int(self.backlog / self.dt + 0.5), self._most)

    def _limit_to_commands(self, steps: int, now: float) -> int:
        """Return the number of steps that need not wait for a command."""
        self.is_waiting = False
        if not self.command_timeout:
            return steps
        for stream in self._streams:
            left = stream.deadline - self.steps
            if left >= steps:
                continue
            if left <= 0 and now - self._last_step_at >= self.command_timeout:
                stream.stop_waiting()
                continue
            steps = max(int(left), 0)
        self.is_waiting = not steps
        return steps

    def _measure(self, now: float, steps: int) -> None:
        elapsed = now - self._window_start
        if elapsed >= 1.0:
            self.seconds += not self._is_starting
            # The first second is not representative: the nodes are starting.
            self.achieved = 0.0 if self._is_starting else self._window / elapsed
            # Time lost by waiting was the others' already.
            overrun = self._overrun - self.waited
            if not self._is_starting and self._factor > 0.0:
                self._adapt_pace((overrun - self._overrun_before) / elapsed)
            self._is_starting = False
            self._window_start, self._window, self._overrun_before = now, 0.0, overrun
        self._window += steps * self.dt

    def _adapt_pace(self, overrun_share: float) -> None:
        """Slow down after the pace was too high, else return to the factor."""
        if overrun_share > OVERRUN_SHARE:
            pace = max(SLOWED_FACTOR * self.achieved, MOST_SLOWED_FACTOR * self.pace,
                       MIN_PACE * self._factor)
        else:
            pace = RECOVERY_FACTOR * self.pace
        self._set_pace(min(pace, self._factor))
