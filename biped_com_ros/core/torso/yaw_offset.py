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
"""The relative yaw of the IMUs below and above the backbone, which no compass tells."""

from __future__ import annotations

from cmath import rect
import math

from biped_com_ros.core.torso.arc import Vector
from biped_com_ros.core.torso.orientation import TorsoOrientation

TORSION_SPREAD, LENGTHS_SPREAD = 0.05, 0.002
"""How large torsion may be, and how far bends by IMU and by lengths are apart anyhow, rad."""

LARGEST_SEEN = 1.0
"""Bend by IMU from which on it is flipped rather than turned, rad."""


class YawOffsetEstimator:
    """
    The relative yaw of the two IMUs, told from bend and torsion.

    An error of it turns the tip about the vertical: the bend in another direction, the torsion by
    as much. Lengths of the tendons, read without torsion, show the bend turned back by half of
    the torsion, so that the two are told apart the better the more the torso bends or leans.
    Besides, torsion is small. Both are weighed by how well they are known.

    Parameters
    ----------
    time
        Time constant, s; 0: there is no error.

    Attributes
    ----------
    yaw
        By how much the upper IMU's yaw is too large, rad; the first look counts in full.

    """

    def __init__(self, time: float) -> None:
        self.time, self.value, self._is_known = time, 0.0, False

    def update(self, dt: float, sight: TorsoOrientation, by_lengths: complex | None) -> None:
        """
        Learn.

        Parameters
        ----------
        dt
            Time since the last call, s.
        sight
            What the IMUs say, corrected by `yaw`.
        by_lengths
            Bend that lengths mean, torsion neglected; None if they are not known.

        """
        if not self.time:
            self.value = 0.0
            return
        if sight.bend is None or abs(sight.bend) > LARGEST_SEEN:
            return  # where it is that large, the IMU is flipped: not a matter of yaw
        error = self._error(sight.bend, sight.torsion, by_lengths, sight.up)
        share = min(1.0, dt / self.time) if self._is_known else 1.0
        self.value = math.remainder(self.value + share * error, 2.0 * math.pi)
        self._is_known = True

    def _error(self, bend: complex, torsion: float, by_lengths: complex | None,
               up: Vector) -> float:
        """Return the yaw that is left, by weighted least squares of bend and torsion."""
        across, z = up
        weight = 1.0 / TORSION_SPREAD ** 2
        information, evidence = weight * z * z, weight * z * torsion
        if by_lengths is not None:
            back = rect(1.0, -0.5 * torsion)
            slope = back * (0.5j * z * bend - 1j * across)
            weight = 1.0 / LENGTHS_SPREAD ** 2
            information += weight * abs(slope) ** 2
            evidence += weight * (slope.conjugate() * (back * bend - by_lengths)).real
        return evidence / information if information > 0.0 else 0.0
