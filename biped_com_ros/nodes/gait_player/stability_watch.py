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
"""Subscriptions of `gait_player` to the stability monitor."""

from __future__ import annotations

from collections.abc import Callable

from biped_com_ros.core.legs.stability_gate import StabilityGate
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import ERROR
from biped_com_ros.ros.topics.qos import LATCHED, STATE_OUTPUT
from biped_com_ros.ros.topics.stamp import now_ns
from biped_com_ros.ros.topics.whole_messages import subscribe
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_msgs.msg import Float64, String


class StabilityWatch:
    """
    Passes the reports of a stability monitor on to a :class:`.StabilityGate`.

    Parameters
    ----------
    node
        The rclpy node.
    monitor
        Name of the monitor's node.
    timeout
        Time without its diagnostics after which it counts as stopped, s.
    on_error
        Called with the reason whenever the monitor reports an error that counts.

    Attributes
    ----------
    gate
        Evaluates the reports.

    """

    def __init__(self, node: Node, monitor: str, timeout: float,
                 on_error: Callable[[str], None]) -> None:
        self._node, self._monitor, self._on_error = node, monitor, on_error
        # With its namespace: another robot's monitor does not monitor this robot.
        event_topic = node.resolve_topic_name(f'{monitor}/event')
        self._status_prefix = f'{event_topic.rpartition("/")[0].lstrip("/")}: '
        self.gate = StabilityGate(monitor, timeout)
        self._dcm_margin: Subscription | None = None
        self._subscriptions = [
            subscribe(node, DiagnosticArray, f'{monitor}/event', self._on_event, LATCHED),
            subscribe(
                node, String, f'{monitor}/support_phase', self._on_support_phase, LATCHED),
            subscribe(
                node, DiagnosticArray, '/diagnostics', self._on_diagnostics, STATE_OUTPUT)]

    @property
    def problem(self) -> str:
        """Why the robot must not walk; '' if it may."""
        return self.gate.problem(now_ns(self._node), steady_time())

    def check(self) -> None:
        """Count the time since the last report; to be called all the time, also at rest."""
        self.gate.check(steady_time())

    def tolerate_falling(self, seconds: float) -> None:
        """Let the DCM be outside of the support for so long, s; 0 in walks without that."""
        self.gate.tolerated_time = seconds
        if seconds and self._dcm_margin is None:
            self._dcm_margin = self._node.create_subscription(
                Float64, f'{self._monitor}/dcm_margin', self._on_dcm_margin, STATE_OUTPUT)
        elif not seconds and self._dcm_margin is not None:
            self._node.destroy_subscription(self._dcm_margin)
            self._dcm_margin = None

    def _on_dcm_margin(self, message: Float64) -> None:
        self.gate.set_dcm_margin(message.data, now_ns(self._node))
        if message.data < 0.0:
            self._check()

    def _on_event(self, array: DiagnosticArray) -> None:
        for status in array.status:
            has_fallen = any(value.key == 'now' and value.value == 'FALLEN'
                             for value in status.values)
            self.gate.set_event(
                status.level == ERROR, _describe(status), has_fallen, now_ns(self._node))
        self._check()

    def _check(self) -> None:
        if error := self.gate.stability_error(now_ns(self._node)):
            self._on_error(error)

    def _on_support_phase(self, message: String) -> None:
        self.gate.support_phase = message.data

    def _on_diagnostics(self, array: DiagnosticArray) -> None:
        statuses = [status for status in array.status
                    if status.name.startswith(self._status_prefix)
                    and not self._repeats_event(status)]
        if not statuses:
            return
        errors = '; '.join(_describe(s) for s in statuses if s.level == ERROR)
        self.gate.set_report(errors, steady_time())
        if errors:
            self._on_error(errors)

    def _repeats_event(self, status: DiagnosticStatus) -> bool:
        """Return whether a status repeats the latest event."""
        return status.name == f'{self._status_prefix}stability' and not (
            status.message.startswith('unknown'))


def _describe(status: DiagnosticStatus) -> str:
    return f'{status.name}: {status.message}'
