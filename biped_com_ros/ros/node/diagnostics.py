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
from functools import cached_property
import time
import traceback
from typing import Any
import weakref

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.node.later import soon
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE)

Report = tuple[bytes, str, dict[str, Any]]


class Diagnostics:
    """
    Collects reports of the parts of a node and publishes them at 1 Hz.

    Parameters
    ----------
    node
        The rclpy node.
    hardware_id
        Name of the robot; may be set later.
    period
        Seconds of wall-clock time between messages.

    """

    def __init__(self, node: Any, hardware_id: str = '', period: float = 1.0) -> None:
        self.hardware_id = hardware_id
        self._node = node
        self._reports: dict[str, Callable[[], Report]] = {}
        self._namesakes, self._had_namesakes = 1, False
        soon(node, lambda: self._publisher)
        self.add('callbacks', exceptions_of(node).report)
        self._timer = node.create_timer(period, self.publish, clock=steady_clock())

    @cached_property
    def _publisher(self) -> Any:
        return self._node.create_publisher(DiagnosticArray, '/diagnostics', STATE_OUTPUT)

    def add(self, name: str, report: Callable[[], Report]) -> None:
        """
        Add a line.

        Parameters
        ----------
        name
            What it is about; shown as ``<node>: <name>``.
        report
            Returns (level, message, {key: value}), called once per second.

        """
        self._reports[name] = report

    def remove(self, name: str) -> None:
        """Take a line out."""
        self._reports.pop(name, None)

    def publish(self) -> None:
        """Publish all lines now."""
        array = DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        array.status = [self._status(name, report) for name, report in self._reports.items()]
        if self._is_watched():
            array.status.append(self._status('name', self._report_name))
        self._publisher.publish(array)

    def _is_watched(self) -> bool:
        """Tell whether the name is, or was, that of several nodes."""
        name = self._node.get_name(), self._node.get_namespace()
        self._namesakes = self._node.get_node_names_and_namespaces().count(name)
        self._had_namesakes |= self._namesakes > 1
        return self._had_namesakes

    def _report_name(self) -> Report:
        name = self._node.get_fully_qualified_name()
        if self._namesakes < 2:
            return OK, 'the only one of this name', {}
        return WARN, (f"{self._namesakes} nodes are called '{name}', and what they publish is "
                      'mixed: end all but one, or give each a name or namespace (-r __ns:=)'), {}

    def _status(self, name: str, report: Callable[[], Report]) -> DiagnosticStatus:
        try:
            level, message, values = report()
        except Exception as error:  # noqa: B902 - a broken report must not silence the others
            level, message, values = ERROR, f'{type(error).__name__}: {error}', {}
        return DiagnosticStatus(
            level=level, name=f'{self._node.get_name()}: {name}', message=message,
            hardware_id=self.hardware_id,
            values=[KeyValue(key=key, value=_text(value)) for key, value in values.items()])


class Throttle:
    """Lets something through once per `period` seconds and key."""

    def __init__(self, period: float = 5.0) -> None:
        self._period = period
        self._last: dict[str, float] = {}

    def __call__(self, key: str = '') -> bool:
        """Tell whether it is time again for this key."""
        now = time.monotonic()
        if now - self._last.get(key, -self._period) < self._period:
            return False
        self._last[key] = now
        return True


class Exceptions:
    """Accounts of the exceptions that a node's callbacks raised."""

    def __init__(self) -> None:
        self.count = 0
        self._last = ''
        self._last_time = -1e9
        self._throttle = Throttle(5.0)

    def record(self, error: BaseException) -> bool:
        """Count an exception; tell whether it is time to log one of its kind."""
        self.count += 1
        self._last = f'{type(error).__name__}: {error}'
        self._last_time = time.monotonic()
        return self._throttle(type(error).__name__)

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        if time.monotonic() - self._last_time < 5.0:
            return ERROR, f'a callback failed: {self._last}', {'failed': self.count}
        return OK, 'all well', {'failed': self.count, 'last': self._last}


_exceptions: weakref.WeakKeyDictionary[Any, Exceptions] = weakref.WeakKeyDictionary()


def exceptions_of(node: Any) -> Exceptions:
    """Return the accounts of a node."""
    return _exceptions.setdefault(node, Exceptions())


def log_exception(node: Any, error: BaseException) -> None:
    """
    Count what a node's callback raised, and log it unless its kind was logged just now.

    After shutdown nothing can be published any more; what a last callback says of that is no news.
    """
    context = getattr(node, 'context', None)
    if (context is not None and not context.ok()) or not exceptions_of(node).record(error):
        return
    if isinstance(error, BipedComError):
        node.get_logger().error(str(error))
        return
    details = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
    node.get_logger().error(f'a callback failed, the node goes on:\n{details}')


def steady_clock() -> Any:
    """Return a clock for timers that have to run while simulated time stands still."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def _text(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else str(value)
