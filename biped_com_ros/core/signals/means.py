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
"""Means of samples between two instants."""

from __future__ import annotations

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.signals.age import is_recent
import numpy as np

#: Largest difference between the stamps of the last sample and of the instant, ns.
_SAME_NS = nanoseconds(0.05)


class RecentMean:
    """
    Mean of the samples since it was last taken.

    Parameters
    ----------
    size
        Number of values of a sample.

    Attributes
    ----------
    stamp_ns
        Of the last sample, ns.

    """

    def __init__(self, size: int) -> None:
        self._sum, self._count, self.stamp_ns = np.zeros(size), 0, NEVER_NS

    def add(self, stamp_ns: int, *values: Array) -> None:
        """Add a sample, the arrays one after another."""
        self._sum += np.concatenate(values)
        self._count, self.stamp_ns = self._count + 1, stamp_ns

    def take(self, stamp_ns: int) -> Array | None:
        """
        Return the mean and begin anew.

        None if there is no sample, or the last one is more than 0.05 s from the time `stamp_ns`.
        """
        is_known = self._count and is_recent(self.stamp_ns, stamp_ns, _SAME_NS)
        mean = self._sum / self._count if is_known else None
        self._sum, self._count = np.zeros_like(self._sum), 0
        return mean
