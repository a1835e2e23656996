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
"""Postures over standing feet, given by base, swing feet and centre of mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from biped_com_ros.core.geometry.polygon import convex_hull, margin
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.config import FootConfig
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


def _zeros() -> Array:
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Placement:
    """
    A posture by the coordinates of balance.

    Attributes
    ----------
    standing
        Feet on the ground, by name; none: the robot hangs, and only `free_joints` is used.
    free_joints
        Positions of all joints (n,); those of the legs are replaced while it stands.
    height, rpy
        Of the base relative to posture `stand`, m and rad.
    com_target
        Of the centre of mass over the ground, x, y in the base of posture `stand`, m.
    swing_offset, swing_rpy
        Of the feet in the air relative to posture `stand`, m and rad.

    """

    standing: tuple[str, ...]
    free_joints: Array
    height: float = 0.0
    rpy: Array = field(default_factory=_zeros)
    com_target: Array = field(default_factory=lambda: np.zeros(2))
    swing_offset: Array = field(default_factory=_zeros)
    swing_rpy: Array = field(default_factory=_zeros)

    def towards(self, other: Placement, share: float) -> Placement:
        """Return the placement at a share of the way to another on the same feet."""
        def between(begin: Array, finish: Array) -> Array:
            return begin + share * (finish - begin)

        return replace(
            self, height=self.height + share * (other.height - self.height),
            free_joints=between(self.free_joints, other.free_joints),
            rpy=between(self.rpy, other.rpy),
            com_target=between(self.com_target, other.com_target),
            swing_offset=between(self.swing_offset, other.swing_offset),
            swing_rpy=between(self.swing_rpy, other.swing_rpy))


class Stances:
    """
    Solves placements of a robot for its joints.

    Parameters
    ----------
    model
        A robot with a posture ``stand`` on level soles and legs that can move the base freely.

    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self._stand = model.posture('stand')
        self._ik = PostureIk(model, self._stand)
        self._feet = tuple(model.config.feet)
        self._soles = model.state(self._stand).placements_in_base(model.soles)

    @property
    def leg_length(self) -> float:
        """Return the height of the base over the soles in posture ``stand``, m."""
        return float(-self._soles[:, 3, 2].mean())

    @property
    def com_height(self) -> float:
        """Return the height of the centre of mass over the soles in posture ``stand``, m."""
        return self.leg_length + float(self.model.state(self._stand).com_in_base[2])

    def polygon(self, standing: tuple[str, ...]) -> Array:
        """Return the corners (k, 2) of the support polygon in the base of ``stand``, m."""
        return np.array(convex_hull(
            [corner[:2].tolist() for corner in self._corners(self._soles, standing)]))

    def home(self, standing: tuple[str, ...], lift: float = 0.0) -> Placement:
        """
        Return the home posture on some feet, those in the air lifted by `lift`, m.

        Hanging, it is that on all feet, in which the robot is lifted and lowered.
        """
        if not standing:
            return Placement((), self.positions(self.home(self._feet)))
        corners, middle = self.polygon(standing), self.polygon(self._feet).mean(axis=0)
        center = corners.mean(axis=0)
        inward = middle - center
        # Towards the other feet, because ankles do not roll far.
        distance = margin(tuple(map(tuple, corners.tolist())), tuple(center.tolist())).distance
        center = center + 0.4 * distance * inward / max(float(np.linalg.norm(inward)), 1e-9)
        return Placement(standing, self._stand, com_target=center, height=-0.02 * self.leg_length,
                         swing_offset=np.array((0.0, 0.0, lift)))

    def target_on(self, foot: str) -> tuple[float, float]:
        """Return the centre of mass of the home posture on one foot, x, y in its sole, m."""
        row = self._soles[self._feet.index(foot)]
        offset = self.home((foot,)).com_target - row[3, :2]
        return float(row[0, :2] @ offset), float(row[1, :2] @ offset)

    def positions(self, placement: Placement) -> Array:
        """
        Return the positions of all joints, (n,).

        Raises
        ------
        InputError
            If the legs do not reach.

        """
        if not placement.standing:
            return placement.free_joints.copy()
        swing = Pose.from_rpy(placement.swing_rpy, placement.swing_offset)
        ends = [sole if foot in placement.standing else Pose(
            swing.rotation @ sole.rotation, swing.position + sole.position)
            for foot, sole in zip(self._feet, self._ik.ends)]
        # Poses must not depend on the order in which they are planned.
        self._ik.restart()
        base = Pose.from_rpy(placement.rpy, np.array((0.0, 0.0, placement.height)))
        return self._ik.over(placement.com_target, base, ends, placement.free_joints)[0]

    def stability_margin(self, positions: Array, standing: tuple[str, ...]) -> float:
        """Return how far inside the support polygon the centre of mass is, m; negative outside."""
        state = self.model.state(positions)
        rows = state.placements_in_base(self.model.soles)
        first = rows[self._feet.index(standing[0])]
        points = [(first[:2] @ (corner - first[3])).tolist()
                  for corner in self._corners(rows, standing)]
        x, y = (first[:2] @ (state.com_in_base - first[3])).tolist()
        return float(margin(convex_hull(points), (x, y)).distance)

    def swing_height(self, positions: Array, standing: tuple[str, ...]) -> float:
        """Return the height of the lowest corner of the soles in the air, m; inf without any."""
        rows = self.model.state(positions).placements_in_base(self.model.soles)
        first = rows[self._feet.index(standing[0])]
        swinging = [foot for foot in self._feet if foot not in standing]
        return min((float(first[2] @ (corner - first[3]))
                    for corner in self._corners(rows, swinging)), default=float('inf'))

    def _corners(self, rows: Array, feet: Sequence[str]) -> list[Array]:
        """Return the corners (3,) of all soles of `feet`, given the poses of all soles."""
        return [corner for foot in feet for corner in sole_corners(
            rows[self._feet.index(foot)], self.model.config.feet[foot])]


def sole_corners(row: Array, foot: FootConfig) -> list[Array]:
    """Return the corners (3,) of a sole, given its axes and position (4, 3)."""
    return [x * row[0] + y * row[1] + row[3] for x, y in foot.polygon]
