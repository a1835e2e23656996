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
"""Health of a node on ``/diagnostics``, once per second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from biped_com_ros.core.check_result import CheckResult
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE)

Report = tuple[bytes, str, dict[str, Any]]
"""Level, message, and values by name."""


def report_of(result: CheckResult) -> Report:
    """Return the report of a comparison: a warning if it is not plausible."""
    return (OK if result.plausible else WARN), result.message, dict(result.values)


def status_name(node: Node, part: str) -> str:
    """Return the name of a status: ``<namespace>/<node>: <part>``, without a leading slash."""
    return f'{node.get_fully_qualified_name().lstrip("/")}: {part}'


def is_in_namespace(status: DiagnosticStatus, namespace: str) -> bool:
    """
    Return whether a status is of a node directly in a namespace.

    ``/diagnostics`` is common to all robots of a network; their nodes differ by namespace.

    """
    return status.name.partition(':')[0].rpartition('/')[0] == namespace.strip('/')


def node_of(name: str) -> str:
    """Return the name of the node, without its namespace, in the name of a status."""
    return name.partition(':')[0].rpartition('/')[2]


class Diagnostics:
    """
    Publishes the status of each part of a node at 1 Hz.

    Parameters
    ----------
    node
        The rclpy node.
    hardware_id
        Name of the robot; may be set later. The node's namespace is put before it.
    period
        Seconds of wall-clock time between messages.

    """

    def __init__(self, node: Node, hardware_id: str = '', period: float = 1.0) -> None:
        self.hardware_id = hardware_id
        self._node = node
        self._reports: dict[str, Callable[[], Report]] = {}
        self._name_count, self._name_was_shared = 1, False
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', STATE_OUTPUT)
        self.add('callbacks', self._report_callbacks)
        self._timer = node.create_timer(period, self.publish, clock=steady_clock())

    def add(self, name: str, report: Callable[[], Report]) -> None:
        """
        Add a status.

        Parameters
        ----------
        name
            What it is about; see :func:`status_name`.
        report
            Returns (level, message, {key: value}); called once per second.

        """
        self._reports[name] = report

    def remove(self, name: str) -> None:
        """Remove a status."""
        self._reports.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        return tuple(self._reports)

    def status(self, name: str) -> DiagnosticStatus:
        """Return the present status of a part; some reports cover the time since the last one."""
        return self._status(name, self._reports[name])

    def publish(self) -> None:
        """Publish every status now."""
        array = DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        array.status = [self.status(name) for name in self._reports]
        if self._has_shared_name():
            array.status.append(self._status('name', self._report_name))
        self._publisher.publish(array)

    def _has_shared_name(self) -> bool:
        """Return whether another node has, or had, the name of this one."""
        name = self._node.get_name(), self._node.get_namespace()
        self._name_count = self._node.get_node_names_and_namespaces().count(name)
        self._name_was_shared |= self._name_count > 1
        return self._name_was_shared

    def _report_name(self) -> Report:
        name = self._node.get_fully_qualified_name()
        if self._name_count < 2:
            return OK, 'unique', {}
        return WARN, (f"{self._name_count} nodes are called '{name}', so their topics are mixed: "
                      'stop all but one, or give each a name or namespace of its own '
                      '(-r __ns:=)'), {}

    def _report_callbacks(self) -> Report:
        errors = callback_errors(self._node)
        values = {'failed': errors.count, 'last': errors.last}
        if errors.is_recent:
            return ERROR, f'a callback failed: {errors.last}', values
        return OK, 'no recent error', values

    def _status(self, name: str, report: Callable[[], Report]) -> DiagnosticStatus:
        try:
            level, message, values = report()
        except Exception as error:  # noqa: B902 - the other reports do not depend on it
            level, message, values = ERROR, f'{type(error).__name__}: {error}', {}
        namespace = self._node.get_namespace().strip('/')
        return DiagnosticStatus(
            level=level, name=status_name(self._node, name), message=message,
            hardware_id='/'.join(filter(None, (namespace, self.hardware_id))),
            values=[KeyValue(key=key, value=_text(value)) for key, value in values.items()])


def _text(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else str(value)
