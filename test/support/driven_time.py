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
"""Time of the nodes of this process, which passes only when a test lets it, or as it is."""

import time

from biped_com_ros.ros.node.clock import drive_steady_time
from rclpy.clock import Clock, ClockType
from rclpy.executors import TimeoutException
from rclpy.task import Future
from rclpy.time import Time
from rclpy.time_source import TimeSource

STEP = 0.005
"""Time between two rounds of callbacks while time passes, s."""
_MOST_ROUNDS = 10
"""Of the public executors at one time: a goal that is executed is ready in each of them."""


class DrivenTime:
    """
    Drives the steady time of this process and the clocks of nodes made while it is in use.

    Clocks with ``use_sim_time`` are left to ``/clock``. Time begins as that of the computer.

    Attributes
    ----------
    executors
        Those that run while time passes: all rigs of a file, since the EventsExecutor makes up
        for each period in which it did not run.

    """

    def __enter__(self):
        self.executors = set()
        self._steady = Clock(clock_type=ClockType.ROS_TIME)
        self._steady._set_ros_time_is_active(True)
        self._elapsed, self._starts = 0, [(self._steady, None, time.monotonic_ns())]
        self._ros_start = time.time_ns()
        self._attach = TimeSource.attach_clock
        TimeSource.attach_clock = lambda source, clock: self._add(source, clock)
        self._set_all()
        drive_steady_time(self._steady)
        return self

    def __exit__(self, *_):
        drive_steady_time(None)
        TimeSource.attach_clock = self._attach

    def _add(self, source, clock):
        self._attach(source, clock)
        if not source.ros_time_is_active:
            clock._set_ros_time_is_active(True)
            self._starts.append((clock, source, self._ros_start))
            self._set(clock, self._ros_start)

    def advance(self, seconds):
        """Set all clocks forward; timers that are due are called in the next round."""
        self._elapsed += round(1e9 * seconds)
        self._set_all()

    def run_ready(self):
        """Run what is ready everywhere."""
        for executor in tuple(self.executors):
            run_ready(executor)

    def _set_all(self):
        for clock, source, start in self._starts:
            if source is None or not source.ros_time_is_active:
                self._set(clock, start)

    def _set(self, clock, start):
        clock.set_ros_time_override(Time(
            nanoseconds=start + self._elapsed, clock_type=ClockType.ROS_TIME))


class RealTime:
    """The time of the computer, in place of one that is driven: the same rigs serve with it."""

    def __enter__(self):
        self.executors = set()
        return self

    def __exit__(self, *_):
        pass

    run_ready = DrivenTime.run_ready

    def advance(self, seconds):
        """Wait."""
        time.sleep(seconds)


def run_ready(executor):
    """
    Run all callbacks that are ready, and those that they cause.

    What a node of this process publishes has arrived when `publish` returns: Fast DDS delivers
    within a process by itself, in the thread of the publisher.
    """
    if not hasattr(executor, 'wait_for_ready_callbacks'):  # the EventsExecutor
        executor.spin_until_future_complete(Future(), 0.0)
        return
    for _ in range(_MOST_ROUNDS):
        is_idle = True
        try:
            while True:
                handler, _, _ = executor.wait_for_ready_callbacks(timeout_sec=0.0)
                handler()
                is_idle = False
                if handler.exception() is not None:
                    raise handler.exception()
        except TimeoutException:  # after each round, also after one with callbacks
            if is_idle:
                return
