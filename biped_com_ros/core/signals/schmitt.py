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
"""Whether a value is high: a Schmitt trigger with dwell times."""

from __future__ import annotations

import math

from biped_com_ros.core.constants import nanoseconds


class SchmittTrigger:
    """
    Decides whether a value is high: hysteresis with dwell times.

    Parameters
    ----------
    engage, release
        It is set above the first and released below the second.
    engage_dwell, release_dwell
        Time for which the value has to stay there, s.
    initial
        Whether it is set at first; None: the first value decides by the mid-point, without dwell.

    Attributes
    ----------
    is_set
        Whether the value counts as high.

    """

    def __init__(self, engage: float, release: float, engage_dwell: float = 0.0,
                 release_dwell: float = 0.0, initial: bool | None = None) -> None:
        self.configure(engage, release, engage_dwell, release_dwell)
        self._initial = initial
        self.reset()

    def configure(self, engage: float, release: float, engage_dwell: float = 0.0,
                  release_dwell: float = 0.0) -> None:
        """Use other values from now on; whether it is set stays."""
        self._engage, self._release = engage, release
        self._dwells_ns = nanoseconds(engage_dwell), nanoseconds(release_dwell)

    def reset(self) -> None:
        """Return to the initial state."""
        self.is_set, self._is_known = bool(self._initial), self._initial is not None
        self._crossed_ns: int | None = None

    def update(self, value: float | None, stamp_ns: int = 0) -> bool:
        """Update with a value at a time, ns; return :attr:`is_set`, which None or NaN keeps."""
        if value is None or math.isnan(value):
            self._crossed_ns = None
            return self.is_set
        if not self._is_known:
            self._is_known, self.is_set = True, value > 0.5 * (self._engage + self._release)
        if not (value < self._release if self.is_set else value > self._engage):
            self._crossed_ns = None
            return self.is_set
        if self._crossed_ns is None or stamp_ns < self._crossed_ns:
            self._crossed_ns = stamp_ns
        if stamp_ns - self._crossed_ns >= self._dwells_ns[self.is_set]:
            self.is_set, self._crossed_ns = not self.is_set, None
        return self.is_set
