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
"""Estimates the relative yaw of the IMUs below and above the backbone."""

from __future__ import annotations

from cmath import rect
import math

from biped_com_ros.core.torso.arc import Vector
from biped_com_ros.core.torso.orientation import TorsoOrientation

TORSION_SIGMA, BEND_SIGMA = 0.05, 0.002
"""Standard deviations of torsion, and of the bend by IMUs against the bend by lengths, rad."""

MAX_BEND = 1.0
"""Larger bends by IMU are a wrong mounting rather than a yaw offset, rad."""


class YawOffsetEstimator:
    """
    Estimates the relative yaw of the two IMUs from bend and torsion.

    IMUs without a compass have an arbitrary yaw, which drifts. An error of the relative yaw
    rotates the tip about the vertical: it turns the direction of the bend and adds to torsion.
    The tendon lengths, evaluated without torsion, give the bend turned back by half the torsion,
    so that yaw offset and torsion can be separated the better the more the torso bends or leans.
    In addition torsion is small. The two are combined by weighted least squares.

    Parameters
    ----------
    time
        Time constant of the low-pass of the estimate, s; 0: the offset is always 0.

    Attributes
    ----------
    value
        Yaw of the upper IMU in excess of the lower one's, rad; the first estimate is not
        filtered.

    """

    def __init__(self, time: float) -> None:
        self.time, self.value, self._is_known = time, 0.0, False

    def update(self, dt: float, orientation: TorsoOrientation,
               bend_by_lengths: complex | None) -> None:
        """
        Update the estimate.

        Parameters
        ----------
        dt
            Time since the last call, s.
        orientation
            Measurement of the IMUs, corrected by `value`.
        bend_by_lengths
            Bend by the tendon lengths, torsion neglected; None if unknown.

        """
        if not self.time:
            self.value = 0.0
            return
        if orientation.bend is None or abs(orientation.bend) > MAX_BEND:
            return
        error = self._error(
            orientation.bend, orientation.torsion, bend_by_lengths, orientation.up)
        share = min(1.0, dt / self.time) if self._is_known else 1.0
        self.value = math.remainder(self.value + share * error, 2.0 * math.pi)
        self._is_known = True

    @staticmethod
    def _error(bend: complex, torsion: float, bend_by_lengths: complex | None,
               up: Vector) -> float:
        """Return the remaining yaw offset by weighted least squares of bend and torsion."""
        across, z = up
        weight = 1.0 / TORSION_SIGMA ** 2
        information, evidence = weight * z * z, weight * z * torsion
        if bend_by_lengths is not None:
            back = rect(1.0, -0.5 * torsion)
            slope = back * (0.5j * z * bend - 1j * across)
            weight = 1.0 / BEND_SIGMA ** 2
            information += weight * abs(slope) ** 2
            evidence += weight * (slope.conjugate() * (back * bend - bend_by_lengths)).real
        return evidence / information if information > 0.0 else 0.0
