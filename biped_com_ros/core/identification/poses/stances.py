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
class PosturePoint:
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

    def towards(self, other: PosturePoint, share: float) -> PosturePoint:
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
        self._soles = self._ik.ends

    @property
    def leg_length(self) -> float:
        """Return the height of the base over the soles in posture ``stand``, m."""
        return -float(np.mean([sole.position[2] for sole in self._soles]))

    @property
    def com_height(self) -> float:
        """Return the height of the centre of mass over the soles in posture ``stand``, m."""
        return self.leg_length + float(self.model.state(self._stand).com_in_base[2])

    def polygon(self, standing: tuple[str, ...]) -> Array:
        """Return the corners (k, 2) of the support polygon in the base of ``stand``, m."""
        return np.array(convex_hull(self._corners(self._soles, standing)[:, :2].tolist()))

    def home(self, standing: tuple[str, ...], lift: float = 0.0) -> PosturePoint:
        """
        Return the home posture on some feet, those in the air lifted by `lift`, m.

        Hanging, it is that on all feet, in which the robot is lifted and lowered.
        """
        if not standing:
            return PosturePoint((), self.positions(self.home(self._feet)))
        corners, middle = self.polygon(standing), self.polygon(self._feet).mean(axis=0)
        center = corners.mean(axis=0)
        inward = middle - center
        # Towards the other feet, because ankles do not roll far.
        distance = margin(tuple(map(tuple, corners.tolist())), tuple(center.tolist())).distance
        center = center + 0.4 * distance * inward / max(float(np.linalg.norm(inward)), 1e-9)
        return PosturePoint(
            standing, self._stand, com_target=center, height=-0.02 * self.leg_length,
            swing_offset=np.array((0.0, 0.0, lift)))

    def target_on(self, foot: str) -> tuple[float, float]:
        """Return the centre of mass of the home posture on one foot, x, y in its sole, m."""
        sole, (x, y) = self._soles[self._feet.index(foot)], self.home((foot,)).com_target
        x, y, _ = sole.inverse().apply(np.array((x, y, sole.position[2]))).tolist()
        return x, y

    def positions(self, placement: PosturePoint) -> Array:
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
            for foot, sole in zip(self._feet, self._soles)]
        # Poses must not depend on the order in which they are planned.
        self._ik.restart()
        base = Pose.from_rpy(placement.rpy, np.array((0.0, 0.0, placement.height)))
        return self._ik.over(placement.com_target, base, ends, placement.free_joints)[0]

    def stability_margin(self, positions: Array, standing: tuple[str, ...]) -> float:
        """Return how far inside the support polygon the centre of mass is, m; negative outside."""
        com, corners = self._on_ground(positions, standing, standing)
        return float(margin(convex_hull(corners[:, :2].tolist()), (com[0], com[1])).distance)

    def swing_height(self, positions: Array, standing: tuple[str, ...]) -> float:
        """Return the height of the lowest corner of the soles in the air, m; inf without any."""
        swinging = [foot for foot in self._feet if foot not in standing]
        _, corners = self._on_ground(positions, standing, swinging)
        return float(corners[:, 2].min(initial=np.inf))

    def _on_ground(self, positions: Array, standing: tuple[str, ...],
                   feet: Sequence[str]) -> tuple[Array, Array]:
        """Return CoM (3,) and corners of soles (k, 3) in the frame of the first standing sole."""
        state = self.model.state(positions)
        soles = state.poses_in_base(self.model.soles)
        to_ground = soles[self._feet.index(standing[0])].inverse()
        return to_ground.apply(state.com_in_base), to_ground.apply(self._corners(soles, feet))

    def _corners(self, soles: Sequence[Pose], feet: Sequence[str]) -> Array:
        """Return the corners (k, 3) of all soles of `feet`, given the poses of all soles."""
        return np.array([corner for foot in feet for corner in sole_corners(
            soles[self._feet.index(foot)], self.model.config.feet[foot])]).reshape(-1, 3)


def sole_corners(sole: Pose, foot: FootConfig) -> Array:
    """Return the corners (k, 3) of a sole, given its pose."""
    return sole.apply(np.array([(x, y, 0.0) for x, y in foot.polygon]))
