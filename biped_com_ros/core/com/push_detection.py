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
Detects pushes: whether the velocity changes in a way that no known force explains.

The innovation is the kinematic velocity minus the one propagated by the measured forces. A push
exceeds its threshold in a single sample, or in the mean of the samples of ``push_delay``, which
noise reduces.
"""

from __future__ import annotations

import math

from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.geometry.pose import Array, Vector

_RESPONSE_TIME = 0.01
"""Every sample is used while the effect of an unknown force may exceed noise in this time, s."""
_SINGLE_SAMPLE_FACTOR = 1.5
"""Threshold of a push by a single sample over that by a mean."""
_NO_THRESHOLDS = [(0.0, 0.0, math.inf, 0.0)] * 3


class PushDetector:
    """
    Sequential test of velocity innovations, for each axis of the world.

    Parameters
    ----------
    settings
        Of the filter whose velocity is tested.

    Attributes
    ----------
    velocity_change
        Change of the velocity by the samples since the filter's last update, m/s.

    """

    def __init__(self, settings: ComFilterSettings) -> None:
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget all samples and thresholds."""
        self.velocity_change = [0.0] * 3
        self._mean_innovation = [0.0] * 3
        self._thresholds, self._responds = _NO_THRESHOLDS, False

    def restart_mean(self) -> None:
        """Start the mean of the innovations over."""
        self._mean_innovation = [0.0] * 3

    def clear_thresholds(self) -> None:
        """Let no sample exceed a threshold until there are new ones."""
        self._thresholds = _NO_THRESHOLDS

    def update(self, dt: float, difference: Vector) -> bool:
        """
        Update with a sample; return whether it indicates a push.

        Parameters
        ----------
        dt
            Time since the sample before, s.
        difference
            Kinematic velocity minus the propagated one, m/s.

        """
        share = min(dt / self._settings.push_delay, 1.0)
        single_limit = _SINGLE_SAMPLE_FACTOR * self._settings.push_sigmas
        found, mean_innovation, change = (
            self._responds, self._mean_innovation, self.velocity_change)
        for axis, (now, (expected, per_metre, limit, gain)) in enumerate(
                zip(difference, self._thresholds)):
            now -= expected
            change[axis] += gain * (now - change[axis])
            # In standard deviations, which change as the noise of the sensors gets known.
            now *= per_metre
            mean_innovation[axis] = mean = mean_innovation[axis] + share * (
                now - mean_innovation[axis])
            if abs(now) > single_limit or abs(mean) > limit:
                found = True
        return found

    def set_thresholds(self, mean: Array, expected: Array, white: Array, by_force: Array,
                       dt: float, count: int) -> None:
        """
        Set the thresholds of the samples that follow.

        Parameters
        ----------
        mean, expected, white
            Mean difference of the velocities, m/s, its variance without noise, and the noise of
            one sample, m^2/s^2; shape (3,).
        by_force
            Variance of the velocity by an unknown force in one update, (3,), m^2/s^2.
        dt, count
            Time between samples, s, and how many samples an update of the filter is made of.

        """
        s = self._settings
        white_in_response = (count * dt / _RESPONSE_TIME) ** 2 * white
        self._responds = bool((by_force > white_in_response).any())
        passed = 0.5 * min(dt / s.push_delay, 1.0)
        self._thresholds = [
            (offset, (variance + noise) ** -0.5,
             s.push_sigmas * math.sqrt((variance + passed * noise) / (variance + noise)),
             variance / (variance + noise))
            for offset, variance, noise in zip(
                mean.tolist(), expected.tolist(), white.tolist())]

    def pushed_axes(self, innovation: Array, expected: Array, noise: Array, dt: float,
                    count: int) -> list[tuple[int, float]]:
        """
        Return the axes whose innovation indicates a push, with the squared error of the velocity.

        Parameters
        ----------
        innovation, expected, noise
            Innovation of the velocity, m/s, and its variances, expected and by noise, m^2/s^2;
            shape (3,).
        dt, count
            Time since the filter's last update, s, and number of samples of this one.

        """
        s = self._settings
        limit, passed = s.push_sigmas ** 2, 0.5 * min(dt / (count * s.push_delay), 1.0)
        missed, pushed = [0.0] * 3, [False] * 3
        for axis, (now, variance, white) in enumerate(zip(
                innovation.tolist(), expected.tolist(), noise.tolist())):
            each, squared = count * white, now * now
            missed[axis] = self._mean_innovation[axis] ** 2 * (variance + each)
            pushed[axis] = missed[axis] > limit * (variance + passed * each)
            if squared > _SINGLE_SAMPLE_FACTOR ** 2 * limit * (variance + white):
                missed[axis], pushed[axis] = squared, True
        # A push may have any direction, but is seldom vertical.
        pushed[0] = pushed[1] = pushed[0] or pushed[1]
        return [(axis, missed[axis]) for axis in range(3) if pushed[axis]]
