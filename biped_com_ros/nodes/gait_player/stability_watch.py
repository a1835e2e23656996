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
"""Listens to `zmp_monitor` for whoever moves the robot, whether it may go on."""

from __future__ import annotations

from collections.abc import Callable
import math
import time
from typing import Any

from biped_com_ros.ros.node.diagnostics import ERROR
from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import Float64, String

#: What the monitor takes to forgive that the divergent component was outside, and more, s.
_RECOVERS = 0.4


class StabilityWatch:
    """
    What a stability monitor says: at once on its latched event, and once a second in diagnostics.

    Parameters
    ----------
    node
        The rclpy node.
    monitor
        Name of the monitor's node.
    timeout
        Silence of its diagnostics after which nothing is known, s.
    on_error
        Called with the reason whenever the monitor reports an ERROR.

    Attributes
    ----------
    has_fallen
        Whether the robot lies on the ground.
    phase
        Which feet stand, as the monitor calls it; '' while unknown.

    """

    def __init__(self, node: Any, monitor: str, timeout: float,
                 on_error: Callable[[str], None]) -> None:
        self._node, self._monitor = node, monitor
        self._timeout, self._on_error = timeout, on_error
        self._heard = time.monotonic() - 2.0 * timeout
        self._clock, self._since = node.get_clock(), 0
        self._event, self._errors = '', ''
        self._patience, self._dcm, self._outside_since = 0.0, None, 0
        self.has_fallen, self.phase = False, ''
        self._subscriptions = [
            node.create_subscription(DiagnosticArray, f'{monitor}/event', self._on_event, LATCHED),
            node.create_subscription(
                String, f'{monitor}/support_phase', self._on_phase, LATCHED),
            node.create_subscription(
                DiagnosticArray, '/diagnostics', self._on_diagnostics, STATE_OUTPUT)]

    @property
    def problem(self) -> str:
        """Return why the robot must not walk; '' if it may."""
        silence = time.monotonic() - self._heard
        if silence > self._timeout:
            return f'{self._monitor} says nothing on /diagnostics; start it (bringup.launch.xml)'
        return self._event if self._event and self._is_minded else self._errors

    @property
    def patience(self) -> float:
        """
        For how long the divergent component may be outside of the support, s.

        Who walks quickly falls from foot to foot. The level of stability takes its time to recover
        from that, so that the margin itself is listened to.
        """
        return self._patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._patience, self._outside_since = seconds, 0
        if seconds and self._dcm is None:
            self._dcm = self._node.create_subscription(
                Float64, f'{self._monitor}/dcm_margin', self._on_dcm_margin, STATE_OUTPUT)
        elif not seconds and self._dcm is not None:
            self._node.destroy_subscription(self._dcm)
            self._dcm = None

    @property
    def _is_minded(self) -> bool:
        if self.has_fallen or not self._patience:
            return True
        since = self._outside_since
        return ((bool(since) and self._lasted(since) >= self._patience)
                or self._lasted(self._since) >= self._patience + _RECOVERS)

    def _lasted(self, since_ns: int) -> float:
        """Return for how long something has been so; for ever, where the clock was set back."""
        lasted = 1e-9 * (self._clock.now().nanoseconds - since_ns)
        return lasted if lasted >= 0.0 else math.inf

    def _on_dcm_margin(self, message: Float64) -> None:
        if message.data >= 0.0:
            self._outside_since = 0
        elif not self._outside_since:
            self._outside_since = self._clock.now().nanoseconds
        elif self._event and self._is_minded:
            self._on_error(self._event)

    def _on_event(self, array: DiagnosticArray) -> None:
        for status in array.status:
            if status.level == ERROR and not self._event:
                self._since = self._clock.now().nanoseconds
            self._event = self._words(status) if status.level == ERROR else ''
            self.has_fallen = any(
                value.key == 'now' and value.value == 'FALLEN' for value in status.values)
        if self._event and self._is_minded:
            self._on_error(self._event)

    def _on_phase(self, message: String) -> None:
        self.phase = message.data

    def _on_diagnostics(self, array: DiagnosticArray) -> None:
        mine = [status for status in array.status
                if status.name.startswith(f'{self._monitor}: ') and not self._is_level(status)]
        if not mine:
            return
        self._heard = time.monotonic()
        self._errors = '; '.join(self._words(s) for s in mine if s.level == ERROR)
        if self._errors:
            self._on_error(self._errors)

    def _is_level(self, status: DiagnosticStatus) -> bool:
        """Tell whether a line only repeats, later, what the event said."""
        return status.name == f'{self._monitor}: stability' and not (
            status.message.startswith('unknown'))

    @staticmethod
    def _words(status: DiagnosticStatus) -> str:
        return f'{status.name}: {status.message}'
