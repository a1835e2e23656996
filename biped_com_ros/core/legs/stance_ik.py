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
"""Where a robot with two legs stands, and its postures for soles and centre of mass in a gait."""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.legs.footsteps import Footprint
from biped_com_ros.core.legs.ik import legs_of, PostureIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Sine of the largest tilt of a sole in the posture to begin with.
_LEVEL = 1e-3


class StanceIk:
    """
    Finds the base and the leg joints for the soles, the centre of mass and the height.

    Parameters
    ----------
    model
        With two legs of six joints.
    posture
        Positions of all joints (n,) at the start: soles level, both on the ground.
    standing
        The robot in the posture in which walks end; default: the same posture.
    com_offset
        Measured minus modelled centre of mass, forward and left in base axes, (2,), m.

    Attributes
    ----------
    footprints
        Of the soles in that posture; the world's origin is on the ground below the base.
    height
        Of the base over the ground in that posture, m.
    com
        Centre of mass in that posture, (3,), m.
    com_offset
        As given, (3,), m.
    leg_length
        m.
    rest
        Centre of mass relative to the middle of the soles where walks end, (2,), m.
    standing_height
        Of the base where walks end, m.

    Raises
    ------
    ConfigurationError
        If the robot does not have two such legs, or the soles are not level.

    """

    def __init__(self, model: RobotModel, posture: Array, standing: StanceIk | None = None,
                 com_offset: Sequence[float] | Array = (0.0, 0.0)) -> None:
        self.model = model
        legs = list(legs_of(model).values())
        if len(legs) != 2:
            raise ConfigurationError(f'{model.config.name} has {len(legs)} feet; a gait needs two')
        self.leg_length = legs[0].length
        self._ik = PostureIk(model, posture, margin=0.0)
        self._ik.com_offset = self.com_offset = np.array((*com_offset, 0.0))
        state, soles = model.state(np.asarray(posture, dtype=float)), self._ik.ends
        self._check_level(soles)
        self.height = -0.5 * float(soles[0].position[2] + soles[1].position[2])
        self.footprints = tuple(Footprint(
            sole.position.item(0), sole.position.item(1), yaw_of(sole.rotation))
            for sole in soles)
        self.com = state.com_in_base + self.com_offset + (0.0, 0.0, self.height)
        self._yaw_offset = 0.5 * (self.footprints[0].yaw + self.footprints[1].yaw)
        self.rest: Array = self._com_in_footprints() if standing is None else (
            standing.rest - standing.com_offset[:2] + self.com_offset[:2])
        self.standing_height = self.height if standing is None else standing.height

    def restart(self) -> None:
        """Forget earlier solutions: the next one does not depend on them."""
        self._ik.restart()

    def solve(self, com: Array, height: float, soles: Array) -> tuple[Array, Array]:
        """
        Return joint positions (n,) and the base's x, y, z (m) and yaw (rad), (4,).

        Parameters
        ----------
        com
            Centre of mass, (2,), m.
        height
            Of the base, m.
        soles
            x, y, z (m) and yaw (rad) of both, (2, 4).

        Raises
        ------
        InputError
            If the legs do not reach.

        """
        yaw = 0.5 * float(soles[0, 3] + soles[1, 3]) - self._yaw_offset
        upright = pose_of(np.array((0.0, 0.0, height, yaw)))
        positions, base = self._ik.over(com, upright, [pose_of(sole) for sole in soles])
        return positions, np.array((*base.position, yaw))

    def _com_in_footprints(self) -> Array:
        """Return the centre of mass relative to the middle of the soles, (2,), m."""
        x, y, yaw = np.mean(self.footprints, axis=0).tolist()
        return np.array(Footprint(x, y, yaw).to_local(*self.com[:2].tolist()))

    def _check_level(self, soles: Sequence[Pose]) -> None:
        tilt = max(float(np.abs(sole.rotation[:2, 2]).max()) for sole in soles)
        step = abs(float(soles[0].position[2] - soles[1].position[2]))
        if tilt > _LEVEL or step > _LEVEL * self.leg_length:
            raise ConfigurationError(
                f'{self.model.config.name} cannot walk from a posture whose soles are tilted by '
                f'{math.degrees(tilt):.2f} deg and {step:.4f} m apart in height with the base '
                'upright; they must be level: correct their ankles in it')


def pose_of(row: Array) -> Pose:
    """Return the pose for a row of x, y, z (m) and yaw (rad)."""
    return Pose(rotation_about(2, row.item(3)), row[:3].copy())
