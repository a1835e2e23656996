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
"""Whether the reports of a stability monitor let a robot walk."""

from __future__ import annotations

import math

RECOVERY_TIME = 0.4
"""Time in which the monitor recovers after the divergent component was outside, and more, s."""

LONGEST_CHECK = 0.5
"""Longest time between two checks of the monitor that counts as its silence, s."""


class StabilityGate:
    """
    Evaluates the reports of a stability monitor.

    A process that the computer does not let run receives no reports either, and when it goes on,
    those that wait have not been processed yet. So silence is summed up from check to check, and
    a longer pause between two checks counts as :data:`LONGEST_CHECK` only.

    The monitor reports its level at once as an event, and the problems of its inputs once a
    second. In quick steps the divergent component of motion (DCM) leaves the support for a moment
    in each step, and the level takes time to recover from that. With `tolerated_time` an event
    counts only if the DCM has been outside for that long, or the event persists longer than that
    and the recovery.

    Parameters
    ----------
    monitor
        Name of the monitor, for descriptions.
    timeout
        See the attributes.

    Attributes
    ----------
    timeout
        Time without reports after which the monitor counts as stopped, s.
    has_fallen
        Whether the robot has fallen.
    support_phase
        The monitor's name of the support phase; '' while unknown.

    """

    def __init__(self, monitor: str, timeout: float) -> None:
        self._monitor, self.timeout = monitor, timeout
        self.has_fallen, self.support_phase = False, ''
        self._event, self._errors = '', ''
        self._event_since_ns = self._outside_since_ns = 0
        self._tolerated_time, self._silence, self._checked_at = 0.0, math.inf, -math.inf

    @property
    def tolerated_time(self) -> float:
        """Time for which the DCM may be outside of the support, s."""
        return self._tolerated_time

    @tolerated_time.setter
    def tolerated_time(self, seconds: float) -> None:
        self._tolerated_time, self._outside_since_ns = seconds, 0

    def set_event(self, is_error: bool, description: str, has_fallen: bool, now_ns: int) -> None:
        """Set the monitor's level: whether it is an error, and its description."""
        if is_error and not self._event:
            self._event_since_ns = now_ns
        self._event, self.has_fallen = description if is_error else '', has_fallen

    def set_dcm_margin(self, margin: float, now_ns: int) -> None:
        """Set the distance of the DCM from the edge of the support, m, negative outside."""
        if margin >= 0.0:
            self._outside_since_ns = 0
        elif not self._outside_since_ns:
            self._outside_since_ns = now_ns

    def set_report(self, errors: str, steady_time: float) -> None:
        """Set the description of the errors in a report, '' for none, and its time, s."""
        self._errors, self._silence, self._checked_at = errors, 0.0, steady_time

    def check(self, steady_time: float) -> None:
        """Count the time since the last check, s, as silence; to be called all the time."""
        self._silence += min(max(steady_time - self._checked_at, 0.0), LONGEST_CHECK)
        self._checked_at = steady_time

    def stability_error(self, now_ns: int) -> str:
        """Return the description of an event that counts, '' if there is none."""
        return self._event if self._event and self._event_counts(now_ns) else ''

    def problem(self, now_ns: int, steady_time: float) -> str:
        """Return why the robot must not walk, '' if it may."""
        self.check(steady_time)
        if self._silence > self.timeout:
            return (f'no reports of {self._monitor} on /diagnostics for {self.timeout:g} s; '
                    'start it (bringup.launch.py), or close what keeps this computer busy')
        return self.stability_error(now_ns) or self._errors

    def _event_counts(self, now_ns: int) -> bool:
        if self.has_fallen or not self._tolerated_time:
            return True
        since = self._outside_since_ns
        return ((since != 0 and _elapsed(since, now_ns) >= self._tolerated_time)
                or _elapsed(self._event_since_ns, now_ns) >= self._tolerated_time + RECOVERY_TIME)


def _elapsed(since_ns: int, now_ns: int) -> float:
    """Return the time since then, s; infinite if the clock was set back."""
    elapsed = 1e-9 * (now_ns - since_ns)
    return elapsed if elapsed >= 0.0 else math.inf
