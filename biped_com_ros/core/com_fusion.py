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
"""The fused CoM of a robot: kinematics and foot wrenches in, centre of mass out."""

from __future__ import annotations

from biped_com_ros.core.base import Twist
from biped_com_ros.core.com import com_velocity_in_world, GRAVITY
from biped_com_ros.core.com_filter import ComFilter, ComFilterSettings, Seen
from biped_com_ros.core.hidden_load import CarrierFrame, LoadWrench
from biped_com_ros.core.pose import Array
from biped_com_ros.core.robot import RobotModel, RobotState
from biped_com_ros.core.support import moved
from biped_com_ros.core.zmp import total_wrench
import numpy as np

UNFELT, FELT = 0.005, 0.02
"""
Shares of the weight. A foot that presses less than the first is in the air, what its sensor says
is an offset, or the inertia of the foot; one that presses more than the second counts fully. In
between it fades, so that no force gets lost at once.
"""


class FusedCom:
    """
    Makes of each instant what :class:`ComFilter` takes.

    Parameters
    ----------
    model
        The robot.
    settings
        How uncertain everything is; by default as :class:`ComFilterSettings` has it.
    carrier
        Link that carries what the URDF does not know; '' for the link of the base.
    gravity
        m/s^2.

    Attributes
    ----------
    filter
        The estimate.

    """

    def __init__(self, model: RobotModel, settings: ComFilterSettings | None = None,
                 carrier: str = '', gravity: float = GRAVITY) -> None:
        settings = settings or ComFilterSettings()
        self.filter = ComFilter(model.mass, settings, gravity)
        self._soles, self._carrier = model.soles, CarrierFrame(model, carrier)
        self._load = LoadWrench(
            model, settings.load_cutoff, gravity, settings.least_acceleration)
        self._weight = model.mass * gravity

    def reset(self) -> None:
        """Forget everything."""
        self.filter.reset()
        self._load.reset()

    def update(self, dt: float, state: RobotState, twist: Twist | None,
               wrenches: Array | None) -> None:
        """
        Take an instant.

        Parameters
        ----------
        dt
            Time since the instant before, s; not used for the first.
        state
            The robot with its base in the world and its joint velocities.
        twist
            Of that base; None while no sole stands.
        wrenches
            Of the ground on each foot in its sole frame, shape (F, 6), N and N m; None if unknown.

        """
        total = None if wrenches is None else self._total(state, wrenches)
        force = None if total is None else total[:3]
        if twist is None or not 0.0 < dt <= self.filter.settings.longest_gap:
            self._load.reset()
        if twist is None:
            self.filter.update(dt, None, force)
            return
        carrier = self._carrier.motion(state, twist)
        equation = None
        if total is None:
            self._load.reset()
        else:
            equation = self._load.update(
                state, twist, carrier, dt, total, self.filter.external_force)
        self.filter.update(dt, Seen(state.com_in_world, com_velocity_in_world(state, twist),
                                    carrier), force, equation)

    def _total(self, state: RobotState, wrenches: Array) -> Array:
        """Return the wrench of the feet that carry, about the world's origin, (6,)."""
        carried = wrenches
        if min(wrenches[:, 2].tolist()) < FELT * self._weight:
            share = wrenches[:, 2:3] / self._weight
            carried = wrenches * np.clip((share - UNFELT) / (FELT - UNFELT), 0.0, 1.0)
        placements = moved(state.placements_in_base(self._soles), state.base)
        return np.array(total_wrench(placements, carried))
