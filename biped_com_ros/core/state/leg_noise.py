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
How well the legs of this robot tell where its feet are, learnt while it stands and walks.

Soles, belts and legs give, and feet roll: the point on which a real robot stands seems to move by
centimetres within a step, while a stiff one in simulation keeps it to a tenth of a millimetre.
Such errors last for tens of milliseconds. They are therefore a spectral density, which counts per
second and not per update: twice as many messages do not tell twice as much.

The density of a foot is what its innovations have beside their predicted variance (covariance
matching, Mehra 1970). That blames the legs for everything that the prediction does not know, so
that the noise of the IMU has to be right first (`imu_readings`).
"""

from __future__ import annotations

from biped_com_ros.core.constants import LONGEST_STEP_NS
from biped_com_ros.core.geometry.pose import Array

#: Least and largest square root of the density, m sqrt(s): a stiff leg with good encoders, and one
#: that tells next to nothing.
LEAST, MOST = 1e-4, 1e-2
_START = 3e-4
#: Time over which innovations count, s, and the shortest interval, s, that counts as one: stamps
#: of arrival come in bunches.
_MEMORY, _SHORTEST = 1.0, 1e-3
#: A single innovation raises the density by this factor at most.
_LARGEST_RISE = 10.0
#: Squared innovation per expected one beyond which it counts the less: tails are heavy.
_TAIL = 16.0 / 3.0


class LegNoise:
    """
    Noise of the points on which the feet stand, from the IMU.

    Parameters
    ----------
    feet
        Number of feet, F.

    Attributes
    ----------
    consistency
        Squared innovations per expected ones, mean over the last second; 1 is right.

    """

    def __init__(self, feet: int) -> None:
        self._densities = [_START ** 2] * feet
        self.consistency = 1.0

    @property
    def deviations(self) -> list[float]:
        """Square roots of the densities, foot by foot, m sqrt(s)."""
        return [density ** 0.5 for density in self._densities]

    def variance(self, foot: int, innovation: Array, predicted: float, elapsed: float) -> float:
        """
        Learn from an innovation, and return the variance of each component of its noise, m^2.

        Parameters
        ----------
        foot
            Its index.
        innovation
            Of the position of the foot from the IMU, (3,), m.
        predicted
            Trace of the covariance of the innovation without its noise, m^2.
        elapsed
            Time since the update before, s.

        """
        dt = min(max(elapsed, _SHORTEST), 1e-9 * LONGEST_STEP_NS)
        squared, density = float(innovation.dot(innovation)), self._densities[foot]
        share = dt / (dt + _MEMORY)
        excess = min(max((squared - predicted) / 3.0 * dt, 0.0), _LARGEST_RISE * density)
        density += share * (excess - density)
        self._densities[foot] = density = min(max(density, LEAST ** 2), MOST ** 2)
        variance = density / dt
        ratio = squared / (predicted + 3.0 * variance)
        self.consistency += share * (min(ratio, 100.0) - self.consistency)
        return variance * max(ratio / _TAIL, 1.0)
