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
"""Time between updates whose times come from message stamps and from a clock."""

from __future__ import annotations

from biped_com_ros.core.constants import SECOND_NS

CLOCK_RESET_NS = SECOND_NS
"""A time this far before the last update means that the clock was set back, ns."""


class StepTimer:
    """
    Measures the time from update to update, so that the steps add up to the total time.

    Simulated clocks tick less often than sensors are sampled: their time is mostly earlier than
    the stamp of the last update. Only a time more than `CLOCK_RESET_NS` earlier is a clock reset.

    Attributes
    ----------
    last_ns
        Time of the last update, ns.

    """

    def __init__(self) -> None:
        self.last_ns = 0

    def time_since(self, ns: int) -> float:
        """Return the time from the last update to `ns`, s; negative if `ns` is earlier."""
        if ns < self.last_ns - CLOCK_RESET_NS:
            self.last_ns = ns
        return 1e-9 * (ns - self.last_ns)

    def advance(self, ns: int) -> float:
        """
        Update at time `ns` and return the time since the last update, s.

        Returns 0 without updating if `ns` is not later, and 0 after a clock reset.
        """
        elapsed = self.time_since(ns)
        if elapsed <= 0.0:
            return 0.0
        self.last_ns = ns
        return elapsed
