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
"""Finds foot sensors whose readings are in other units than N and N m."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import LONGEST_SOLE
import numpy as np

FORCE_UNITS = {'kgf': 9.80665, 'lbf': 4.4482216}
"""In N. Others would be far below or above the noise of a sensor, and a hanging robot."""

NEAR = 0.1
"""How near the weight has to be to that in another unit, relatively."""

_LEAST_TOTAL, _LEAST_SHARE = 0.05, 0.25


class UnitCheck:
    """
    Averages foot wrenches, and compares them with the weight and with the size of a sole.

    Parameters
    ----------
    sensors_of
        Names of the sensors of each foot, by foot.

    """

    def __init__(self, sensors_of: Mapping[str, Sequence[str]]) -> None:
        self._sensors_of = sensors_of
        self._start()

    def add(self, wrenches: Sequence[Sequence[float]], vertical_force: float) -> None:
        """Add the wrenches on all soles at one instant, (F, 6), and their vertical force."""
        self._sum += wrenches
        self._vertical += vertical_force
        self._count += 1

    def problem(self, body_weight: float) -> str:
        """
        Return which unit the mean since the last call suggests, with the remedy; '' if none.

        Parameters
        ----------
        body_weight
            By the model, N.

        """
        count = max(self._count, 1)
        wrenches, total = self._sum / count, self._vertical / count
        self._start()
        return self._unit_of_forces(total, body_weight) or (
            self._unit_of_moments(wrenches, total) if total > _LEAST_TOTAL * body_weight else '')

    def _start(self) -> None:
        self._sum, self._vertical, self._count = np.zeros((len(self._sensors_of), 6)), 0.0, 0

    def _unit_of_forces(self, total: float, body_weight: float) -> str:
        for unit, newtons in FORCE_UNITS.items():
            if abs(total * newtons / body_weight - 1.0) < NEAR:
                sensors = [sensor for names in self._sensors_of.values() for sensor in names]
                return (f'the feet carry {total:.1f} N, the model weighs {body_weight:.1f} N: if '
                        f'the robot stands freely, the sensors measure in {unit}; set '
                        f'{_parameters(sensors)} to {newtons:g}')
        return ''

    def _unit_of_moments(self, wrenches: Array, total: float) -> str:
        for (foot, sensors), (_, _, fz, mx, my, _) in zip(
                self._sensors_of.items(), wrenches.tolist()):
            if fz > _LEAST_SHARE * total and np.hypot(mx, my) > LONGEST_SOLE * fz:
                return (f'the centre of pressure of foot {foot} is {np.hypot(mx, my) / fz:.1f} m '
                        f'from its sole frame: its moments are probably in N mm; set '
                        f'{_parameters(sensors)} to [1, 1, 1, 0.001, 0.001, 0.001]')
        return ''


def _parameters(sensors: Sequence[str]) -> str:
    return ', '.join(f'wrench_sensors.{sensor}.scale' for sensor in sensors)
