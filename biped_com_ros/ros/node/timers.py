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
"""Timers by the computer's clock, which run while simulated time stands still."""

from __future__ import annotations

from collections.abc import Callable
import weakref

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.node.clock import steady_clock
from rclpy.node import Node
from rclpy.timer import Timer

_DELAY = 0.02
"""Delay of `call_soon` (s): what arrived during the set-up of a node is processed first."""

_IDLE_PERIOD = 0.03
"""Period of a watchdog while messages arrive, s."""

_pending: weakref.WeakKeyDictionary[Node, _DelayedCalls] = weakref.WeakKeyDictionary()


def call_soon(node: Node, action: Callable[[], object]) -> None:
    """
    Call `action` once from the node's executor, 20 ms after the node was set up.

    For work that can wait until the first output is published. A publisher takes 0.5 ms to
    create, and the first one of a message package several, since its libraries are loaded.

    Parameters
    ----------
    node
        The rclpy node.
    action
        What to call. Its exceptions are logged, like those of a callback.

    """
    if node not in _pending:
        _pending[node] = _DelayedCalls(node)
    _pending[node].add(action)


class _DelayedCalls:
    """The delayed calls of one node."""

    def __init__(self, node: Node) -> None:
        self._node = weakref.ref(node)
        self._actions: list[Callable[[], object]] = []
        self._timer = node.create_timer(_DELAY, self._call_all, clock=steady_clock())

    def add(self, action: Callable[[], object]) -> None:
        self._actions.append(action)
        self._timer.reset()  # the node is still being set up: the delay starts again

    def _call_all(self) -> None:
        self._timer.cancel()
        node = self._node()
        if node is None:
            return
        _pending.pop(node, None)
        for action in self._actions:
            try:
                action()
            except Exception as error:  # noqa: B902 - the other actions do not depend on it
                log_exception(node, error)


def watchdog(node: Node, period: float, check: Callable[[], bool]) -> Timer:
    """
    Return a timer that acts in place of messages that are missing.

    A call of a timer costs as much as a message: it wakes a thread, and that the executor. So the
    period is 30 ms while messages arrive, and `period` only while they do not.

    Parameters
    ----------
    node
        The rclpy node.
    period
        Seconds between calls while messages are missing; the first comes up to 30 ms late.
    check
        Acts if messages are missing, and returns whether they are.

    """
    idle_period = max(period, _IDLE_PERIOD)
    current_period = idle_period

    def call() -> None:
        nonlocal current_period
        new_period = period if check() else idle_period
        if new_period != current_period:
            current_period = new_period
            timer.timer_period_ns = nanoseconds(new_period)
            timer.reset()

    timer = node.create_timer(idle_period, call, clock=steady_clock())
    return timer
