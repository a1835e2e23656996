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
Skips messages while a process is behind them.

rclpy's EventsExecutor has one queue of events without a bound, and an event for each message that
arrives, also for those that DDS overwrites before they are read. In a process that is too slow
for its messages the queue grows for as long as that lasts: memory grows with it, and timers wait
at its end, diagnostics and watchdogs among them (a subscriber at half the speed of its messages:
up to 7 s in the first 14 s). A timer that is late shows it, twice in succession, since a single
long callback leaves a short queue, or by much. Then messages of sensors and states are skipped,
which takes microseconds, until the timer is in time.
"""

from __future__ import annotations


from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.clock import steady_clock, steady_time
from rclpy.node import Node
from rclpy.timer import Timer

#: Period of the timer, and while messages are skipped, s.
_PERIOD, _SKIPPING_PERIOD = 0.05, 0.01
#: How late it has to be, twice in succession, or once, s.
_LATE, _MUCH_TOO_LATE = 0.1, 0.3


class Backlog:
    """
    Whether this process is behind its messages.

    Attributes
    ----------
    is_skipping
        Whether messages that others replace soon are to be skipped now.

    """

    def __init__(self) -> None:
        self.is_skipping = False
        self._was_late = False
        self._called_at = 0.0
        self._timer: Timer | None = None
        self._may_log = Throttle()

    def watch(self, node: Node) -> None:
        """Start to watch the executor of a node, which logs what is done about it."""
        self.is_skipping = self._was_late = False
        self._node, self._called_at = node, steady_time()
        self._timer = node.create_timer(_PERIOD, self._on_timer, clock=steady_clock())

    def _on_timer(self) -> None:
        now = steady_time()
        elapsed, self._called_at = now - self._called_at, now
        self.update(elapsed - (_SKIPPING_PERIOD if self.is_skipping else _PERIOD))

    def update(self, delay: float) -> None:
        """Update with the delay of a call of the timer, s."""
        is_late = delay > _LATE
        if not self.is_skipping and ((is_late and self._was_late) or delay > _MUCH_TOO_LATE):
            self._skip(True)
            if self._may_log():
                self._node.get_logger().warning(
                    f'messages are processed {delay:.1f} s late: skipping those of sensors until '
                    'this process has caught up; the computer is too slow or too busy: close '
                    'other programs, or lower the rate of the sensors')
        elif not is_late and self.is_skipping:
            self._skip(False)
        self._was_late = is_late

    def _skip(self, skips: bool) -> None:
        self.is_skipping = skips
        assert self._timer is not None
        self._timer.timer_period_ns = nanoseconds(_SKIPPING_PERIOD if skips else _PERIOD)
        self._timer.reset()


#: That of this process.
BACKLOG = Backlog()
