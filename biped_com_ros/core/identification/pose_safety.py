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
"""Checks of postures: joint limits, balance, motor torques and self-collision."""

from __future__ import annotations

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture
from biped_com_ros.core.identification.collisions import SelfCollision
from biped_com_ros.core.identification.design_options import DesignOptions
from biped_com_ros.core.identification.first_moments import parameters_of, StaticsRegressor
from biped_com_ros.core.identification.prediction import predict_capture
from biped_com_ros.core.identification.stances import Stances
from biped_com_ros.core.model.limits import effort_limits, position_limits
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


class PoseSafety:
    """
    Decides which postures a robot may take.

    Parameters
    ----------
    regressor
        Of the robot.
    stances
        Of the robot.
    options
        Limits of poses.

    Attributes
    ----------
    lower, upper
        Limits of the joints with the margin that is kept from them, (n,), rad or m.

    """

    def __init__(self, regressor: StaticsRegressor, stances: Stances,
                 options: DesignOptions) -> None:
        model = regressor.model
        self._regressor, self._stances, self._options = regressor, stances, options
        self._theta, self._effort_limits = parameters_of(model), effort_limits(model)
        self._collision = SelfCollision(
            model, [model.posture(name) for name in model.config.postures], options.clearance)
        self.lower, self.upper = _limits(model, options.limit_margin)

    def check(self, positions: Array, standing: tuple[str, ...]) -> tuple[Capture, float, float]:
        """
        Return the predicted capture, the stability margin in m and the largest torque share.

        Parameters
        ----------
        positions
            Of the joints, (n,), rad or m.
        standing
            Feet on the ground, by name; none where the robot hangs.

        Raises
        ------
        InputError
            If the posture is not safe; the message is the reason.

        """
        self._check_limits(positions)
        margin = self._check_balance(positions, standing, 0.01, self._options.margin)
        capture = predict_capture(self._regressor, positions, standing, self._theta)
        shares = np.abs(np.nan_to_num(capture.torques)) / self._effort_limits
        share = float(shares.max(initial=0.0))
        if share > self._options.torque_share:
            raise InputError('motor torques')
        self._check_collision(positions)
        return capture, margin, share

    def is_safe_on_path(self, positions: Array, standing: tuple[str, ...]) -> bool:
        """Whether a posture on the way to a pose is safe; half of the margin is enough."""
        try:
            self._check_limits(positions)
            self._check_balance(positions, standing, -1e-3, 0.5 * self._options.margin)
            self._check_collision(positions)
        except InputError:
            return False
        return True

    def _check_limits(self, positions: Array) -> None:
        if ((positions < self.lower) | (positions > self.upper)).any():
            raise InputError('joint limits')

    def _check_balance(self, positions: Array, standing: tuple[str, ...], clearance: float,
                       margin: float) -> float:
        if not standing:
            return math.inf
        if self._stances.swing_height(positions, standing) < clearance:
            raise InputError('foot in the air touches the ground')
        found = self._stances.stability_margin(positions, standing)
        if found < margin:
            raise InputError('centre of mass too near the edge')
        return found

    def _check_collision(self, positions: Array) -> None:
        if self._collision.touching(positions) is not None:
            raise InputError('self-collision')


def _limits(model: RobotModel, margin: float) -> tuple[Array, Array]:
    """Return lower and upper limits of the joints, (n,) each, inside the URDF's by `margin`."""
    low, high = position_limits(model)
    low, high = np.maximum(low, -np.pi), np.minimum(high, np.pi)
    # Joints with a small range keep most of it; posture stand may be at a limit.
    kept = np.minimum(margin, 0.2 * (high - low))
    stand = model.posture('stand')
    return np.minimum(low + kept, stand), np.maximum(high - kept, stand)
