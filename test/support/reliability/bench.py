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
"""Injects a fault and measures: what is commanded meanwhile, and when it works again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
import os
import time

from biped_com_ros.core.model.efforts import effort_limits
import numpy as np
from support.reliability.robot import OUTPUTS
from support.reliability.system import OTHERS

#: Efforts within this share of those before the fault are the same.
SAME = 0.05
#: Of the parameters of gravity_compensation, which are its defaults here.
HOLD_TIME, STOP_TIME, EFFORT_CLAMP, EFFORT_RATE, MAX_STEP, INPUT_TIMEOUT = (
    0.2, 1.0, 0.5, 2.0, 0.01, 0.1)
#: Simulated time that stands still for so long is replaced by real time, s.
CLOCK_TIMEOUT = 1.0
ZERO, HELD, KEPT = 'zero', 'held by the controller', 'go on'
INTERRUPTED = 'interrupted'


@dataclass(frozen=True)
class Fault:
    """
    One row of the table.

    Attributes
    ----------
    name
        For the table.
    inject
        Returns a context; the fault is there while it is entered.
    seconds
        How long.
    expected
        Permitted outcomes, of ZERO, HELD, KEPT and INTERRUPTED.
    revives
        The node whose messages have to come again.
    limit
        Largest time to recovery after the fault has gone, s.
    named
        Text that the diagnostics of some node have to contain meanwhile.
    is_back
        Returns whether what failed has been started again: a process that ends slowly goes on
        publishing.

    """

    name: str
    inject: Callable[[], AbstractContextManager[object]]
    seconds: float
    expected: tuple[str, ...]
    revives: str = ''
    limit: float = 8.0
    named: str = ''
    is_back: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class FaultResult:
    """
    What a fault did.

    Attributes
    ----------
    name
        Of the fault.
    outcome
        What the efforts were at its end: ZERO; HELD, while no command is sent; KEPT, as if
        nothing had happened; or INTERRUPTED, while they ramp.
    safe_after
        Time until they were, s.
    output_after
        Time from its end until the node that has to revive published, s.
    recovered_after
        Time from its end until efforts were as before, too, s.
    largest_step
        Of an effort between two commands, as a share of what the rate limit permits for as many
        commands as were sent.
    lost
        Number of commands that did not arrive.
    is_finite, is_clamped
        Whether all commands were finite, and none beyond the clamp.
    message
        Of the diagnostics.
    is_named
        Whether diagnostics named what the fault has to be named as.

    """

    name: str
    outcome: str
    safe_after: float
    output_after: float
    recovered_after: float
    largest_step: float
    lost: int
    is_finite: bool
    is_clamped: bool
    message: str
    is_named: bool


class FaultBench:
    """
    Measures faults one after the other on a running system.

    Parameters
    ----------
    robot
        What the nodes are connected to.

    """

    def __init__(self, robot):
        self.robot = robot
        limits = effort_limits(robot.model).take(
            robot.model.joint_index(robot.model.actuated_joint_names))
        self._permitted, self._clamp = EFFORT_RATE * MAX_STEP * limits, EFFORT_CLAMP * limits
        self._full = None

    def until_running(self, timeout=120.0, others=()):
        """Run until efforts are steady and all estimators, and other nodes, publish."""
        end, names = time.monotonic() + timeout, (*OUTPUTS, *others)
        while not (self._is_steady() and all(map(self._is_alive, names))):
            if time.monotonic() > end:
                raise TimeoutError(f'it does not run after {timeout:.0f} s: {self._status}')
            self.robot.step()
        self._full = self._applied

    def measure(self, fault, timeout=40.0):
        """Inject a fault and wait for the recovery."""
        robot, controller = self.robot, self.robot.controller
        assert self._full is not None
        controller.applied[:-1] = []
        robot.statuses.clear()
        robot.problems.clear()
        begin = time.monotonic()
        with fault.inject():
            self._run(begin + fault.seconds)
            end = time.monotonic()
            outcome, safe_after = self._outcome(begin, end)
        message, is_named = self._message(), any(fault.named in text for text in robot.problems)
        gone = time.monotonic()
        output_after = 0.0
        while not (is_alive := self._is_alive(fault.revives, gone) and fault.is_back()) or (
                not self._has_recovered()):
            output_after = output_after or is_alive * (time.monotonic() - gone)
            if time.monotonic() > gone + timeout:
                raise TimeoutError(f'{fault.name}: no recovery in {timeout:.0f} s: {message}; '
                                   f'{self._history(gone)}')
            robot.step()
        recovered = time.monotonic() - gone
        self._run(time.monotonic() + 0.5)
        output_after = output_after or recovered
        commands = np.array([applied.efforts for applied in list(controller.applied)
                             if applied.number])
        return FaultResult(fault.name, outcome, safe_after, output_after, recovered,
                           *self._largest_step(), bool(np.isfinite(commands).all()),
                           bool((np.abs(commands) <= self._clamp + 1e-9).all()),
                           message or self._message(), is_named or not fault.named)

    @property
    def _applied(self):
        return self.robot.controller.applied[-1].efforts

    def _run(self, end):
        while time.monotonic() < end:
            self.robot.step()

    def _is_steady(self):
        applied = self.robot.controller.applied
        if len(applied) < 50 or np.isnan(applied[-40][1]).any():
            return False
        change = np.abs(applied[-1][1] - applied[-40][1]).max()
        return bool(applied[-1][1].any() and change < 0.01 * np.abs(applied[-1][1]).max()
                    and self._status.startswith('active'))

    def _is_alive(self, name, since=0.0):
        """
        Whether a node has just published; True for those that are judged by efforts.

        Estimators publish at each update; others are known by their diagnostics, once a second.
        """
        if name in OTHERS:
            return self.robot.reported_at.get(name, 0.0) > max(time.monotonic() - 1.5, since)
        times = self.robot.arrivals.get(name)
        recent = max(time.monotonic() - 0.3, since)
        return times is None or (bool(times) and times[-1] > recent)

    def _has_recovered(self):
        time_of_last, efforts, _ = self.robot.controller.applied[-1]
        return time_of_last > time.monotonic() - 0.2 and self._is_full(efforts)

    def _history(self, since):
        """Describe a recovery that failed: of a busy computer, or of one that gets no messages."""
        states = Counter(text.partition(':')[0] for at, text in self.robot.statuses if at > since)
        silent = [time.monotonic() - times[-1][0] for times in (
            self.robot.controller.applied, self.robot.statuses) if times]
        return (f'states {dict(states)}; the last command and diagnostics arrived '
                f'{" and ".join(f"{seconds:.1f}" for seconds in silent)} s ago; load '
                f'{os.getloadavg()[0]:.1f}')

    def _is_full(self, efforts):
        assert self._full is not None
        return bool(np.abs(efforts - self._full).max() < SAME * np.abs(self._full).max())

    def _outcome(self, begin, end):
        """Return what is applied at the end of the fault, and since when after its begin, s."""
        applied = [pair for pair in self.robot.controller.applied if not np.isnan(pair[1]).any()]
        if not applied:
            return ZERO, 0.0
        changes = [pair for pair in applied if pair[0] > begin]
        if not applied[-1][1].any():
            since = next((later[0] for earlier, later in zip(applied[::-1][1:], applied[::-1])
                          if earlier[1].any()), begin)
            return ZERO, max(since - begin, 0.0)
        if not changes or changes[-1][0] < end - 0.5:
            last = changes[-1][0] - begin if changes else 0.0
            return (HELD if self._is_full(applied[-1][1]) else INTERRUPTED), last
        if all(self._is_full(efforts) for _, efforts, _ in changes):
            return KEPT, 0.0
        return INTERRUPTED, end - begin

    def _largest_step(self):
        """
        Return the largest step between two commands, and how many commands were lost.

        A controller that restarts begins at zero. Where commands are lost, because a busy computer
        has overwritten them in the publisher's queue before they were sent, their steps add up;
        the numbers of the messages tell how many lie between. Another publisher begins at one: it
        has to begin where the last command was.
        """
        largest, lost, last = 0.0, 0, 0
        before = None
        for _, efforts, number in list(self.robot.controller.applied):
            if not number:
                before, last = np.zeros(len(efforts)), 0
                continue
            steps = number - last if 0 < last < number else 1
            if before is not None:
                share = np.abs(efforts - before) / (steps * self._permitted)
                largest, lost = max(largest, float(share.max())), lost + steps - 1
            before, last = efforts, number
        return largest, lost

    @property
    def _status(self):
        """Return the last diagnostics."""
        return self.robot.statuses[-1][1] if self.robot.statuses else ''

    def _message(self):
        """Return the last diagnostics of a problem, or else the last ones."""
        statuses = self.robot.statuses
        errors = [text for _, text in statuses if not text.startswith('active, support')]
        return (errors or [text for _, text in statuses] or [''])[-1]
