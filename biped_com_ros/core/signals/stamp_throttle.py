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
"""Lets through at most so many samples per second, by their stamps."""

from __future__ import annotations

import math

from biped_com_ros.core.constants import nanoseconds


class StampThrottle:
    """
    Decides by stamps which samples of a stream are used.

    Parameters
    ----------
    rate
        Hz; 0 lets nothing through.

    """

    def __init__(self, rate: float) -> None:
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Change the rate, Hz; 0 lets nothing through."""
        self._period_ns = nanoseconds(1.0 / rate) if rate > 0.0 else 0
        self._last_ns, self._next_ns = (0.0, 0.0) if rate > 0.0 else (-math.inf, math.inf)

    def is_due(self, stamp_ns: int) -> bool:
        """Return whether the sample with this stamp is let through."""
        # A stamp before the last one is let through as well: the clock was set back.
        if self._last_ns <= stamp_ns < self._next_ns:
            return False
        self._last_ns, self._next_ns = stamp_ns, stamp_ns + self._period_ns
        return True
