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

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: Mean reading (6,), duration, s, and spectral densities beside the mean; see `advance`.
ImuInterval = tuple[Array, float, tuple[float, float]]
#: How long samples wait for an instant of the joints, ns.
_LONGEST_WAIT_NS = nanoseconds(2.0)
#: Time over which the noise of the gyroscope is measured, s.
_MEMORY = 0.5
#: A signal that is measured at both ends of an interval is known in between to a twelfth of the
#: squared difference, per axis; four times that, as real robots show (sample by sample).
_UNKNOWN = 4.0 / 36.0


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
    gyro_variance
        Of the noise of each sample of the gyroscope, rad^2/s^2, by what differs from a straight
        line through its neighbours.
    dropped
        Number of samples so far that waited for too long.

    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Array, Array]] = deque()
        self._time_ns: int | None = None
        self.values, self.orientation = np.zeros(6), np.zeros(4)
        self._sample: tuple[int, Array] | None = None
        self._unknown, self._turn = (0.0, 0.0), np.zeros(3)
        self.gyro_variance, self.dropped = 0.0, 0

    def add(self, stamp_ns: int, values: Array, orientation: Array) -> None:
        """Take a sample (6,), quaternion (4,) and stamp, ns; a repeated stamp is ignored."""
        waiting = self._waiting
        if waiting and stamp_ns <= waiting[-1][0]:
            if stamp_ns == waiting[-1][0]:
                return
            waiting.clear()  # the clock was set back
        waiting.append((stamp_ns, values, orientation))
        while waiting[0][0] < stamp_ns - _LONGEST_WAIT_NS:
            waiting.popleft()
            self.dropped += 1

    @property
    def latest(self) -> Array:
        """Angular velocity and acceleration of the last sample that has arrived, (6,)."""
        return self._waiting[-1][1] if self._waiting else self.values

    def advance(self, stamp_ns: int) -> list[ImuInterval]:
        """
        Return the readings until the next instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns. Between two samples readings are interpolated, after the last one held.

        Returns
        -------
        list of ImuInterval
            Mean reading (6,) and duration, s, of each interval since the instant before, and the
            spectral density of what angular velocity and acceleration do between two samples
            beside their mean, rad^2/s and m^2/s^3: by the difference of the two. Impacts,
            vibration, uneven stamps and lost samples raise it.

        """
        if self._time_ns is not None and stamp_ns < self._time_ns:
            self._time_ns = None  # the clock was set back
        waiting, intervals = self._waiting, []
        while waiting and waiting[0][0] <= stamp_ns:
            ns, values, self.orientation = waiting.popleft()
            self._compare(ns, values)
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

    def _compare(self, stamp_ns: int, values: Array) -> None:
        """Take the difference of a sample and the one before."""
        if self._sample is not None and self._sample[0] < stamp_ns:
            dt = 1e-9 * (stamp_ns - self._sample[0])
            turn, push = (values - self._sample[1]).reshape(2, 3)
            scale, bend, self._turn = _UNKNOWN * dt, turn - self._turn, turn
            self._unknown = scale * float(turn.dot(turn)), scale * float(push.dot(push))
            # White noise bends by six of its variances, along each of three axes.
            self.gyro_variance += dt / (dt + _MEMORY) * (
                float(bend.dot(bend)) / 18.0 - self.gyro_variance)
        self._sample = stamp_ns, values

    def _step(self, stamp_ns: int, values: Array) -> ImuInterval | None:
        since_ns, before = self._time_ns, self.values
        self.values = values
        if since_ns is not None and stamp_ns <= since_ns:
            return None  # a late sample: the time after it has been integrated already
        self._time_ns = stamp_ns
        if since_ns is None:
            return None
        return 0.5 * (before + values), 1e-9 * (stamp_ns - since_ns), self._unknown
