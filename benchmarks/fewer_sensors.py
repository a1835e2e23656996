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
"""The same captures with a kind of sensor left out: no estimate should be worse than these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

FEWER = ('no torques', 'no wrenches', 'no IMU')


class FewerSensors:
    """
    Estimates of a robot by captures that lack a kind of sensor.

    Parameters
    ----------
    estimator
        Of the robot with all of them.
    kinds
        What is left out, of `FEWER`.

    """

    def __init__(self, estimator: Estimator, kinds: Sequence[str] = FEWER) -> None:
        self._estimator, self._kinds = estimator, kinds
        self._virtual = Estimator(without_wrench_sensors(estimator.model))
        self._cad = parameters_of(estimator.model)

    def estimates(self, captures: Sequence[Capture]) -> dict[str, Array]:
        """Return masses and first moments (L, 4) by what is left out."""
        ways = {'no torques': self._without_torques, 'no wrenches': self._without_wrenches,
                'no IMU': self._without_imu}
        return {kind: ways[kind](captures).parameters for kind in self._kinds}

    def _without_torques(self, captures: Sequence[Capture]) -> Identification:
        return self._estimator.solve(
            [replace(c, torques=np.full_like(c.torques, np.nan)) for c in captures])

    def _without_wrenches(self, captures: Sequence[Capture]) -> Identification:
        return self._virtual.solve([self._with_virtual_feet(c) for c in captures])

    def _without_imu(self, captures: Sequence[Capture]) -> Identification:
        return self._estimator.solve(self.without_imu(captures))

    def _with_virtual_feet(self, capture: Capture) -> Capture:
        """Return a capture whose feet are virtual: their wrenches are those that fit best."""
        unread = np.where(capture.in_contact[:, np.newaxis], 0.0, np.full((1, 6), np.nan))
        return self._virtual.regressor.with_fitted_contacts(
            replace(capture, wrenches=unread), self._cad)

    def without_imu(self, captures: Sequence[Capture]) -> list[Capture]:
        """Return standing captures with the floor taken as level; hanging ones have no upright."""
        soles = [foot.sole for foot in self._estimator.model.config.feet.values()]
        upright = np.array((0.0, 0.0, 1.0))
        return [replace(c, up=upright, up_frame=soles[int(np.argmax(c.in_contact))])
                for c in captures if c.in_contact.any()]


def without_wrench_sensors(model: RobotModel) -> RobotModel:
    """Return the robot with virtual feet only, each with an uncertain sensor at its sole."""
    config = model.config
    feet = {name: replace(foot, wrench_sensors=(), source='virtual')
            for name, foot in config.feet.items()}
    return with_virtual_sensors(
        RobotModel(replace(config, feet=feet, hands={}, wrench_sensors={}), model.urdf))
