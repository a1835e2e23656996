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
"""Inverse kinematics of a robot with two legs for given soles and centre of mass."""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_about, yaw_of
from biped_com_ros.core.legs.footsteps import Footprint
from biped_com_ros.core.legs.robot_legs import legs_of
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Of the centre of mass, m: small enough for smooth accelerations.
_TOLERANCE = 1e-11
_MAX_ITERATIONS = 30
#: Errors below this, m, are too close to rounding to learn the gain from.
_LEARNED_FROM = 1e-8
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
        self.model, self._posture = model, np.array(posture, dtype=float)
        self.com_offset = np.array((*com_offset, 0.0))
        self._legs = list(legs_of(model).values())
        if len(self._legs) != 2:
            raise ConfigurationError(
                f'{model.config.name} has {len(self._legs)} feet; a gait needs two')
        self.leg_length = self._legs[0].length
        state = model.state(self._posture)
        soles = state.placements_in_base(model.soles)
        self._check_level(soles)
        self.height = -float(soles[:, 3, 2].mean())
        self.footprints = tuple(
            Footprint(row[3, 0].item(), row[3, 1].item(), yaw_of(row[:3].T)) for row in soles)
        self.com = state.com_in_base + self.com_offset + (0.0, 0.0, self.height)
        self._yaw_offset = 0.5 * (self.footprints[0].yaw + self.footprints[1].yaw)
        self.rest: Array = self._com_in_footprints() if standing is None else (
            standing.rest - standing.com_offset[:2] + self.com_offset[:2])
        self.standing_height = self.height if standing is None else standing.height
        # Of the base from the centre of mass: last solution, its last change, and that one's.
        self._offset, self._trend, self._bend = -self.com[:2], np.zeros(2), np.zeros(2)
        self._gain = np.eye(2)
        self._gain = self._first_gain = self._find_gain()

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
        offset, last, step = self._offset + self._trend, None, np.zeros(2)
        if np.abs(self._bend).max() < 0.5 * np.abs(self._trend).max():  # it moves smoothly
            offset = offset + self._bend
        for _ in range(_MAX_ITERATIONS):
            base = np.array((*(com + offset), height, yaw))
            positions, error = self._try(com, base, soles)
            if float(np.abs(error).max()) < _TOLERANCE:
                trend = offset - self._offset
                self._offset, self._trend, self._bend = offset, trend, trend - self._trend
                return positions, base
            if last is not None:
                self._learn_gain(step, last, error)
            last, step = error, self._gain @ error
            offset = offset + step
        raise InputError(f'{self.model.config.name} cannot bring its centre of mass over '
                         f'{np.round(com, 4).tolist()} m; step shorter or lower the hips')

    def _try(self, com: Array, base: Array, soles: Array) -> tuple[Array, Array]:
        """Return joint positions for a pose of the base, and the error of the CoM."""
        pose = pose_of(base)
        to_base = pose.inverse()
        positions: Array = self._posture.copy()
        for leg, sole in zip(self._legs, soles):
            positions[leg.index] = leg.positions(to_base @ pose_of(sole))
        found = pose.apply(self.model.state(positions).com_in_base + self.com_offset)
        return positions, com - found[:2]

    def _learn_gain(self, step: Array, before: Array, after: Array) -> None:
        """Update the gain by a step of the base and the errors of the CoM (Broyden's method)."""
        size, left = float(np.abs(before).max()), float(np.abs(after).max())
        if left > 0.5 * size:
            self._gain = self._first_gain
        elif size > _LEARNED_FROM:
            found = self._gain @ (before - after)
            self._gain = self._gain + np.outer(step - found, step @ self._gain) / (step @ found)

    def _com_in_footprints(self) -> Array:
        """Return the centre of mass relative to the middle of the soles, (2,), m."""
        x, y, yaw = np.mean(self.footprints, axis=0).tolist()
        return np.array(Footprint(x, y, yaw).to_local(*self.com[:2].tolist()))

    def _find_gain(self) -> Array:
        """Return the motion of the base per motion of the centre of mass, (2, 2)."""
        soles = np.array([(f.x, f.y, 0.0, f.yaw) for f in self.footprints])
        step, errors = 1e-4 * self.leg_length, []
        for x, y in ((0.0, 0.0), (step, 0.0), (0.0, step)):
            base = np.array((x, y, self.height - 20.0 * step, 0.0))
            errors.append(self._try(np.zeros(2), base, soles)[1])
        slope = np.array((errors[0] - errors[1], errors[0] - errors[2])).T / step
        return np.asarray(np.linalg.inv(slope), dtype=float)

    def _check_level(self, soles: Array) -> None:
        tilt = float(np.abs(soles[:, 2, :2]).max())
        step = abs(float(soles[0, 3, 2] - soles[1, 3, 2]))
        if tilt > _LEVEL or step > _LEVEL * self.leg_length:
            raise ConfigurationError(
                f'{self.model.config.name} cannot walk from a posture whose soles are tilted by '
                f'{math.degrees(tilt):.2f} deg and {step:.4f} m apart in height with the base '
                'upright; they must be level')


def pose_of(row: Array) -> Pose:
    """Return the pose for a row of x, y, z (m) and yaw (rad)."""
    return Pose(rotation_about(2, row.item(3)), row[:3].copy())
