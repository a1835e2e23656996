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
"""Samples of an IMU that wait for the instants of the joints."""

from __future__ import annotations

from collections import deque

from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: How many samples may wait.
_WAITING = 512


class ImuReadings:
    """
    Samples of the IMU between one instant of the joints and the next.

    Attributes
    ----------
    values
        Angular velocity (rad/s) and proper acceleration (m/s^2) at the last instant, along the
        axes of the IMU, (6,).
    orientation
        Quaternion xyzw of the last sample that was used, (4,).

    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Array, Array]] = deque(maxlen=_WAITING)
        self._time_ns: int | None = None
        self.values, self.orientation = np.zeros(6), np.zeros(4)

    def add(self, stamp_ns: int, values: Array, orientation: Array) -> None:
        """Take a sample (6,), quaternion (4,) and stamp, ns; a repeated stamp is ignored."""
        waiting = self._waiting
        if waiting and stamp_ns <= waiting[-1][0]:
            if stamp_ns == waiting[-1][0]:
                return
            waiting.clear()  # the clock was set back
        waiting.append((stamp_ns, values, orientation))

    def advance(self, stamp_ns: int) -> list[tuple[Array, float]]:
        """
        Return the readings until the next instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns. Between two samples readings are interpolated, after the last one held.

        Returns
        -------
        list of tuple
            Mean reading (6,) and duration, s, of each interval since the instant before.

        """
        if self._time_ns is not None and stamp_ns < self._time_ns:
            self._time_ns = None  # the clock was set back
        waiting, intervals = self._waiting, []
        while waiting and waiting[0][0] <= stamp_ns:
            ns, values, self.orientation = waiting.popleft()
            intervals.append(self._step(ns, values))
        if self._time_ns != stamp_ns:
            intervals.append(self._step(stamp_ns, self._between(stamp_ns)))
        return [interval for interval in intervals if interval is not None]

    def _between(self, stamp_ns: int) -> Array:
        if not self._waiting:
            return self.values
        ns, values, orientation = self._waiting[0]
        if self._time_ns is None:
            self.orientation = orientation
            return values
        share = (stamp_ns - self._time_ns) / (ns - self._time_ns)
        return self.values + share * (values - self.values)

    def _step(self, stamp_ns: int, values: Array) -> tuple[Array, float] | None:
        since_ns, before = self._time_ns, self.values
        self.values = values
        if since_ns is not None and stamp_ns <= since_ns:
            return None  # a late sample: the time after it has been integrated already
        self._time_ns = stamp_ns
        if since_ns is None:
            return None
        return 0.5 * (before + values), 1e-9 * (stamp_ns - since_ns)
