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
Time that only goes forward: the computer's, or one that a test drives.

Watchdogs, other timers and limits of log lines go by this time, which neither simulated time nor a
change of the system time affects. They run while simulated time stands still. A test that drives
it waits for nothing, and a busy computer changes nothing in what it sees.
"""

from __future__ import annotations

from collections.abc import Callable
import time

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

_driven: Clock | None = None


def steady_clock() -> Clock:
    """Return the clock of timers that run while simulated time stands still."""
    return Clock(clock_type=ClockType.STEADY_TIME) if _driven is None else _driven


def steady_time() -> float:
    """Return the time of that clock, s."""
    return time.monotonic() if _driven is None else _driven.now().nanoseconds / SECOND_NS


def drive_steady_time(clock: Clock | None) -> None:
    """
    Let a clock replace the computer's in this process, until it is called with None.

    Parameters
    ----------
    clock
        A clock whose time is set by a test; timers that exist already keep theirs.

    """
    global _driven
    _driven = clock


_IDLE_PERIOD = 0.03
"""Period of a watchdog while messages arrive, s."""


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
