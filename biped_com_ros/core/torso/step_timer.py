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
"""How much time passes from update to update, though not all of it is told by the same clock."""

from __future__ import annotations

from biped_com_ros.core.constants import SECOND_NS

SET_BACK = SECOND_NS
"""Time that is further back than this was set back, ns."""


class StepTimer:
    """
    Time that passes from update to update: all of it, and none of it twice.

    A simulation's clock ticks less often than its sensors are read: what it says is mostly earlier
    than the last update by a sensor's stamp. Only what is much earlier means that it was set back.

    Attributes
    ----------
    last_ns
        When the last update was.

    """

    def __init__(self) -> None:
        self.last_ns = 0

    def time_since(self, ns: int) -> float:
        """Return the time since the last update, s; negative where a clock is behind it."""
        if ns < self.last_ns - SET_BACK:
            self.last_ns = ns
        return 1e-9 * (ns - self.last_ns)

    def advance(self, ns: int) -> float:
        """Return the time since the last update, s, of which this is the next; 0: it is not."""
        passed = ns - self.last_ns
        if passed <= 0:
            if passed >= -SET_BACK:
                return 0.0
            passed = 0
        self.last_ns = ns
        return 1e-9 * passed
