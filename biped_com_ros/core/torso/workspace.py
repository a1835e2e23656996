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
"""Workspace of the torso: Figure 5 and Table 2 of Russo et al. (2021)."""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import TorsoConfig
from biped_com_ros.core.torso.constant_curvature import Backbone, bend_and_direction, make_shape
import numpy as np


@dataclass(frozen=True)
class LimitedShape:
    """A shape (4,) within the workspace, and a description of what was limited; '' if nothing."""

    shape: Array
    reason: str


class Workspace:
    """
    All shapes up to a bend, within a range of elongation.

    Parameters
    ----------
    backbone
        Geometry of the torso.
    max_bend
        rad, above 0 and below a half turn.
    elongations
        Smallest and largest elongation, m.

    """

    def __init__(self, backbone: Backbone, max_bend: float,
                 elongations: tuple[float, float] = (0.0, 0.0)) -> None:
        if not 0.0 < max_bend < math.pi:
            raise ConfigurationError(
                f'largest bend {math.degrees(max_bend):g} deg must be between 0 and 180 deg')
        low, high = elongations
        if not -backbone.length < low <= high < math.inf:
            raise ConfigurationError(
                f'range of elongation {low} to {high} m must ascend and leave a positive length')
        self.backbone, self.max_bend, self.elongations = backbone, max_bend, (low, high)

    @staticmethod
    def from_config(config: TorsoConfig) -> Workspace:
        """Build from the robot's YAML, without elongation."""
        return Workspace(Backbone.from_config(config), math.radians(config.max_bend_deg))

    def points(self, bends: int = 16, directions: int = 72) -> Array:
        """Return positions of the tip without elongation, (bends * directions, 3), in the base."""
        return np.array([
            self.backbone.tip(make_shape(float(bend), float(direction))).position
            for bend in np.linspace(0.0, self.max_bend, bends)
            for direction in np.linspace(0.0, 2.0 * math.pi, directions, endpoint=False)])

    def border(self, directions: int = 72) -> Array:
        """Return positions (directions, 3) of the tip at the largest bend, in the base."""
        return np.array([
            self.backbone.tip(make_shape(self.max_bend, float(direction))).position
            for direction in np.linspace(0.0, 2.0 * math.pi, directions, endpoint=False)])

    def length_range(self) -> tuple[float, float]:
        """Return the smallest and largest length of a tendon in the workspace, m (Table 2)."""
        reach, (low, high) = self.max_bend * self.backbone.radius, self.elongations
        return self.backbone.length + low - reach, self.backbone.length + high + reach

    def clamp(self, shape: Array) -> LimitedShape:
        """
        Return the nearest shape (4,) inside, in the same direction.

        Raises
        ------
        InputError
            If the shape is not four finite numbers.

        """
        shape = np.array(shape, dtype=float)
        if shape.shape != (4,) or not np.isfinite(shape).all():
            raise InputError(f'a shape of the torso is four finite numbers, not {shape.tolist()}')
        reasons = []
        bend, _ = bend_and_direction(shape)
        if bend > self.max_bend:
            shape[:2] *= self.max_bend / bend
            reasons.append(f'bend {math.degrees(bend):.1f} deg is more than '
                           f'{math.degrees(self.max_bend):.1f} deg')
        low, high = self.elongations
        if not low <= shape[3] <= high:
            reasons.append(f'elongation {1e3 * shape[3]:.2f} mm is not within '
                           f'{1e3 * low:.2f} and {1e3 * high:.2f} mm')
            shape[3] = min(max(shape[3], low), high)
        return LimitedShape(shape, '; '.join(reasons))
