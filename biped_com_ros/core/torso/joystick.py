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
"""Bend of the torso by joystick (Russo et al. 2021, Figure 6)."""

from __future__ import annotations

import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
import numpy as np

TOUR_PERIOD = 8.0
"""Period of :func:`tour`, s."""


class Joystick:
    """
    Converts the position of a stick to a bend.

    The direction of the stick is the direction of the bend. The bend is linear in the deflection
    beyond a dead zone, and largest at a deflection of 1; larger deflections (the corners of a
    square gate) count as 1.

    Parameters
    ----------
    max_bend
        rad.
    dead_zone
        Deflection, of 1, up to which the stick counts as centred.

    """

    def __init__(self, max_bend: float, dead_zone: float = 0.05) -> None:
        if not (0.0 < max_bend < math.pi and 0.0 <= dead_zone < 1.0):
            raise ConfigurationError(
                f'a joystick needs 0 < largest bend < pi and 0 <= dead zone < 1, not {max_bend} '
                f'rad and {dead_zone}')
        self.max_bend, self.dead_zone = max_bend, dead_zone

    def bend(self, forward: float, left: float) -> Array:
        """
        Return bend times direction (2,), rad: x forward, y to the left.

        Raises
        ------
        InputError
            If an axis is not finite.

        """
        if not (math.isfinite(forward) and math.isfinite(left)):
            raise InputError(f'joystick axes must be finite, not {forward} and {left}')
        deflection = math.hypot(forward, left)
        if deflection <= self.dead_zone:
            return np.zeros(2)
        share = (min(deflection, 1.0) - self.dead_zone) / (1.0 - self.dead_zone)
        return (self.max_bend * share / deflection) * np.array((forward, left))


def tour(time: float) -> tuple[float, float]:
    """
    Return the position of the stick in the experiment of the paper, forward and left.

    From the centre to the border of the workspace, once around it, and back, repeated.

    Parameters
    ----------
    time
        s.

    """
    t = time % TOUR_PERIOD
    if not 0.5 <= t < 6.5:
        return 0.0, 0.0
    angle = 2.0 * math.pi * min(max((t - 1.5) / 5.0, 0.0), 1.0)
    return math.cos(angle), math.sin(angle)
