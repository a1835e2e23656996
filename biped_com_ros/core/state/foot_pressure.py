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
"""Where the pressure on each foot is, and which share of the weight it is."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import cop_on_sole
import numpy as np

#: Share of the weight below which the centre of pressure stays where it was.
_LEAST_SHARE = 0.02


class FootPressure:
    """
    Loads and centres of pressure of feet; without wrenches the middle of each sole.

    Parameters
    ----------
    outlines
        Corners of each sole in its frame, m. A centre of pressure is kept within the rectangle
        along the axes of the sole that they span.
    weight
        Of the robot, N.

    Attributes
    ----------
    shares
        Normal force of each foot as a share of the weight; equal shares without wrenches.
    centres
        Centre of pressure (x, y) of each foot in its sole frame, m.

    """

    def __init__(self, outlines: Sequence[Sequence[Point]], weight: float) -> None:
        self._least = [np.min(outline, axis=0).tolist() for outline in outlines]
        self._largest = [np.max(outline, axis=0).tolist() for outline in outlines]
        self._middles = [np.mean(outline, axis=0).tolist() for outline in outlines]
        self._weight = weight
        self.shares = [1.0 / len(outlines)] * len(outlines)
        self.centres: list[Sequence[float]] = self._middles

    def update(self, wrenches: Sequence[Sequence[float]] | None) -> Array:
        """
        Take the wrenches on the soles, (F, 6), N and N m; None where they are not measured.

        Returns
        -------
        numpy.ndarray
            Shape (F, 2, 4): centre of pressure of each foot, and how far it has moved along the
            sole, m. Products with the placement of the sole, four rows, are a point and a vector.

        """
        before = self.centres
        if wrenches is None:
            self.shares = [1.0 / len(before)] * len(before)
            self.centres = self._middles
        else:
            self.shares = [wrench[2] / self._weight for wrench in wrenches]
            self.centres = [
                centre if share < _LEAST_SHARE else _within(wrench, *limits)
                for share, centre, wrench, *limits in zip(
                    self.shares, before, wrenches, self._least, self._largest)]
        numbers: list[float] = []
        for (x, y), (old_x, old_y) in zip(self.centres, before):
            numbers += (x, y, 0.0, 1.0, x - old_x, y - old_y, 0.0, 0.0)
        return np.array(numbers).reshape(-1, 2, 4)


def _within(wrench: Sequence[float], least: Sequence[float],
            largest: Sequence[float]) -> tuple[float, float]:
    """Return the centre of pressure of a wrench between limits."""
    x, y = cop_on_sole(wrench)
    return min(max(x, least[0]), largest[0]), min(max(y, least[1]), largest[1])
