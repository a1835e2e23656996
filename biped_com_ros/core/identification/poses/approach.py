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
Approaches a pose from both sides, so that friction shows with both signs.

A joint that comes to rest is held by friction against the direction it came from: its torque is
off by up to the Coulomb friction. From one side this cannot be distinguished from mass, from both
sides it can. Both sides of a pose are placements a little beside it: every joint ends its way with
a move in one direction, and next time in the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from biped_com_ros.core.geometry.pose import BoolArray
from biped_com_ros.core.identification.poses.pose_safety import (
    DesignOptions, PathPlanner, PoseSafety)
from biped_com_ros.core.identification.poses.stances import PosturePoint, Stances
import numpy as np

TRIES = 20
"""Number of random directions of which the one that moves most joints is used; the later half of
them with half of the angle, for poses with little room."""

ENOUGH = 0.25
"""A joint that moves by this share of the requested angle comes from that side."""


@dataclass(frozen=True)
class Approach:
    """
    The two sides of a pose.

    Attributes
    ----------
    below, above
        Placements from which the pose is approached.
    moving
        Which joints come from opposite directions, (n,).

    """

    below: PosturePoint
    above: PosturePoint
    moving: BoolArray


class ApproachPlanner:
    """
    Finds the sides of poses.

    Parameters
    ----------
    stances, safety, paths
        Of the robot.
    options
        Of the poses.

    """

    def __init__(self, stances: Stances, safety: PoseSafety, paths: PathPlanner,
                 options: DesignOptions) -> None:
        self._stances, self._safety, self._paths = stances, safety, paths
        self._angle, self._seed = options.approach_angle, options.seed
        model = stances.model
        fixed = {*model.config.passive_joints, *options.fixed_joints}
        motors = [name for name in model.actuated_joint_names if name not in fixed]
        self._motors = model.joint_index(motors)
        self._free = np.zeros(len(model.joint_names))
        self._free[self._motors] = 1.0

    def sides(self, placement: PosturePoint) -> Approach | None:
        """Return the sides from which most joints approach a pose, None without safe ones."""
        rng, best = np.random.default_rng(self._seed), None
        for i in range(TRIES):
            angle = self._angle if i < TRIES // 2 or best is not None else 0.5 * self._angle
            found = self._try(placement, self._direction(rng, angle))
            if found is not None and (best is None or found.moving.sum() > best.moving.sum()):
                best = found
                if best.moving[self._motors].all():
                    break
        return best

    def _direction(self, rng: np.random.Generator, angle: float) -> PosturePoint:
        """Return a random small change of a placement."""
        n = len(self._free)
        base = angle * rng.choice((-1.0, 1.0), 6) * rng.uniform(0.2, 1.0, 6)
        reach = self._stances.leg_length
        return PosturePoint(
            (), angle * self._free * rng.choice((-1.0, 1.0), n), rpy=base[:3],
            height=0.2 * reach * base[3], com_target=0.2 * reach * base[4:])

    def _try(self, placement: PosturePoint, change: PosturePoint) -> Approach | None:
        sides = [self._beside(placement, change, sign) for sign in (-1.0, 1.0)]
        positions = [self._paths.solve(place) for place in (sides[0], placement, sides[1])]
        below, pose, above = positions
        if below is None or pose is None or above is None:
            return None
        for side in sides:
            if self._paths.straight(placement, side) is None:
                return None
        up, down = pose - below, above - pose
        enough = ENOUGH * self._angle
        moving = (up * down > 0.0) & (np.minimum(np.abs(up), np.abs(down)) >= enough)
        return Approach(sides[0], sides[1], moving & (self._free > 0.0))

    def _beside(self, placement: PosturePoint, change: PosturePoint, sign: float) -> PosturePoint:
        joints = placement.free_joints + sign * change.free_joints
        # A joint at the end of its range comes from within it both times.
        joints = np.clip(joints, np.minimum(self._safety.lower, placement.free_joints),
                         np.maximum(self._safety.upper, placement.free_joints))
        return replace(
            placement, free_joints=joints, height=placement.height + sign * change.height,
            rpy=placement.rpy + sign * change.rpy,
            com_target=placement.com_target + sign * change.com_target)
