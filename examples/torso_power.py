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
Electric power of the tendons' motors, for Figure 12 of Russo et al. (2021).

The paper measured the current of its supply, and names neither the servos nor their spools. The
drive assumed here is stated in full, so that others can put in theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
import numpy as np


@dataclass(frozen=True, kw_only=True)
class Servo:
    """
    A geared DC motor with a spool.

    Attributes
    ----------
    spool
        Radius, m.
    stall_torque, stall_current, voltage
        Of the servo at its supply's voltage, N m, A and V: torque constant behind the gear and
        resistance follow from them.
    efficiency
        Of the gear, when it winds the tendon up and, inverse, when the tendon unwinds it.
    idle
        Of the electronics, W.

    """

    spool: float = 0.012
    stall_torque: float = 2.0
    stall_current: float = 2.5
    voltage: float = 6.0
    efficiency: float = 0.7
    idle: float = 0.06

    def power(self, tensions: Array, winding: Array) -> Array:
        """
        Return the electric power; a servo feeds nothing back into its supply.

        Parameters
        ----------
        tensions
            N, any shape.
        winding
            Speed at which the spool takes the tendon in, m/s, of the same shape.

        Returns
        -------
        numpy.ndarray
            W, of the same shape: what the tendon takes, the gear's loss, and the heat of the
            winding's resistance by the current that the torque needs.

        """
        loss = np.where(winding > 0.0, 1.0 / self.efficiency, self.efficiency)
        torque = np.asarray(tensions) * self.spool * loss
        current = torque * self.stall_current / self.stall_torque
        heat = current ** 2 * self.voltage / self.stall_current
        mechanical = torque * np.asarray(winding) / self.spool
        return self.idle + np.maximum(mechanical + heat, 0.0)
