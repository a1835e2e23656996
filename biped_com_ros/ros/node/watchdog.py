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
A timer that goes on in place of messages that stay away.

It costs as much as a message each time: it wakes a thread of its own, and that the executor. So
it looks seldom while messages come, and often only while they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.ros.node.diagnostics import steady_clock

_SELDOM = 0.03  # s


def watchdog(node: Any, period: float, look: Callable[[], bool]) -> Any:
    """
    Return a timer of the node, by the computer's clock.

    Parameters
    ----------
    node
        The rclpy node.
    period
        How often to go on, s; up to 30 ms pass before it begins to.
    look
        Goes on if that is needed, and tells whether it was.

    """
    seldom = max(period, _SELDOM)
    at_present = seldom

    def act() -> None:
        nonlocal at_present
        wanted = period if look() else seldom
        if wanted != at_present:
            at_present = wanted
            timer.timer_period_ns = nanoseconds(wanted)
            timer.reset()

    timer = node.create_timer(seldom, act, clock=steady_clock())
    return timer
