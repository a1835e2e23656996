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
"""Virtual feet: wrenches, contacts, and a comparison with real sensors."""

from __future__ import annotations

from biped_com_ros.core.check_result import CheckResult
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.wrench.aggregation import FORCE_Z
from biped_com_ros.core.wrench.contact import ContactProbabilities
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
import numpy as np

#: Mean difference from real sensors that is reported, in standard deviations, and as a share of
#: the weight (moments: of the weight times the sole's length).
_SUSPICIOUS, _LEAST_SHARE = 3.0, 0.03


class VirtualFeet:
    """
    Estimates wrenches and contacts of all feet.

    Parameters
    ----------
    model
        The robot.
    settings
        Of the wrenches.

    Attributes
    ----------
    sensors
        The estimator of the wrenches.
    contacts
        The probabilities of contact.

    Raises
    ------
    ConfigurationError
        As :class:`VirtualFootWrenches`.

    """

    def __init__(self, model: RobotModel, settings: VirtualWrenchSettings) -> None:
        self._model = model
        self.sensors = VirtualFootWrenches(model, settings)
        self.contacts = ContactProbabilities(model, model.mass * settings.gravity)
        self._last_ns = 0

    def update(self, stamp_ns: int, state: RobotState, efforts: Array, angular_velocity: Array,
               acceleration: Array, R_world_imu: Array) -> bool:
        """Estimate at an instant; see :meth:`.VirtualFootWrenches.update`."""
        before_ns, self._last_ns = self._last_ns, stamp_ns
        if not self.sensors.update(
                stamp_ns, state, efforts, angular_velocity, acceleration, R_world_imu):
            self.contacts.reset()
            return False
        _, placed = state.along_world(self._model.stance_frames, R_world_imu)
        self.contacts.update(1e-9 * (stamp_ns - before_ns), self.sensors.wrenches[:, 2],
                             self.deviations[:, 2], placed[:len(self.sensors.wrenches)])
        return True

    @property
    def deviations(self) -> Array:
        """Return the standard deviations of the wrenches, (F, 6), N and N m."""
        return np.sqrt(self.sensors.covariance.diagonal()).reshape(-1, 6)


class SensorComparison:
    """
    Compares the sensors of a foot with estimates from joint torques.

    Parameters
    ----------
    sensors
        Names of the sensors of the foot.
    body_weight, length
        N, and of the sole, m: what differences are small beside.
    force_z
        Whether the sensors measure the vertical force alone.

    """

    _AXES = 'Fx', 'Fy', 'Fz', 'Mx', 'My', 'Mz'

    def __init__(self, sensors: tuple[str, ...], body_weight: float, length: float,
                 force_z: bool = False) -> None:
        self._sensors = ', '.join(f'wrench_sensors.{sensor}' for sensor in sensors)
        self._least = _LEAST_SHARE * body_weight * np.repeat((1.0, length), 3)
        if force_z:
            self._least[FORCE_Z == 0.0] = np.inf
        self._start()

    def add(self, measured: Array, virtual: Array, deviations: Array) -> None:
        """Add one instant: wrenches (6,) and the deviations of the virtual one, N and N m."""
        self._sums += measured - virtual, deviations * deviations
        self._count += 1

    def result(self) -> CheckResult | None:
        """Return the result for the mean since the last one; None without data."""
        if not self._count:
            return None
        difference, variances = self._sums / self._count
        self._start()
        # Errors of joint torques last, so averaging does not make them smaller.
        limits = _SUSPICIOUS * np.sqrt(variances) + self._least
        excess = np.abs(difference) / limits
        worst = int(np.argmax(excess))
        unit = 'N' if worst < 3 else 'N m'
        values = {'Fz of sensors minus joint torques [N]': float(difference[2])}
        if excess[worst] <= 1.0:
            return CheckResult(
                True, f'agrees with joint torques (Fz {difference[2]:+.1f} N)', values)
        return CheckResult(False, (
            f'{self._AXES[worst]} is {difference[worst]:+.1f} {unit} from what joint torques give '
            f'(limit {limits[worst]:.1f} {unit}): check scale, frame and offset of '
            f"{self._sensors} (tare with the feet in the air), then the joints' torques"), values)

    def _start(self) -> None:
        self._sums, self._count = np.zeros((2, 6)), 0
