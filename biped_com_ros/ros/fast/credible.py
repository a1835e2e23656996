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
Limits of what a robot's sensors can measure: values beyond them are faults of a unit or a sensor.

One message with a gyroscope reading of 1e5 rad/s would turn every estimate of the attitude by
hundreds of revolutions. The limits are generous: no humanoid comes near them, not even when it
falls.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CredibleLimit:
    """
    Largest credible value of a quantity.

    Attributes
    ----------
    largest
        Of the absolute value.
    unit
        Its unit, for messages; '' if it is not known.

    """

    largest: float
    unit: str = ''

    def __str__(self) -> str:
        """Return the limit with its unit."""
        return f'{self.largest:g} {self.unit}'.rstrip()

    def within(self, largest: float) -> CredibleLimit:
        """Return this limit, or `largest` where that is less."""
        return self if self.largest <= largest else CredibleLimit(largest, self.unit)

    def of_raw(self, factor: float) -> CredibleLimit:
        """Return the limit of values that become this quantity when multiplied by a factor."""
        return self if abs(factor) == 1.0 else CredibleLimit(self.largest / abs(factor))


#: By the name that a quantity has in messages: of the field that holds its components, and of the
#: arrays of JointState. A joint's position is limited by its URDF, too; those of maps with
#: geographical origin have seven digits.
_LIMITS = {
    'angular_velocity': CredibleLimit(100.0, 'rad/s'),
    'linear_acceleration': CredibleLimit(1e3, 'm/s^2'),
    'force': CredibleLimit(1e6, 'N'),
    'torque': CredibleLimit(1e6, 'N m'),
    'position': CredibleLimit(1e7, 'm'),
    'point': CredibleLimit(1e7, 'm'),
    'linear': CredibleLimit(100.0, 'm/s'),
    'angular': CredibleLimit(100.0, 'rad/s'),
}
_JOINT_LIMITS = {
    'position': CredibleLimit(1e6, 'rad or m'),
    'velocity': CredibleLimit(1e3, 'rad/s or m/s'),
    'effort': CredibleLimit(1e6, 'N m or N'),
}


def limit_of_field(path: str, largest: float) -> CredibleLimit:
    """
    Return the limit of a message's field.

    Parameters
    ----------
    path
        Of the field, such as ``wrench.force.x``.
    largest
        Limit of quantities that have none here, and of others where it is less.

    """
    quantity = path.rpartition('.')[0].rpartition('.')[2]
    return _LIMITS.get(quantity, CredibleLimit(largest)).within(largest)


def limit_of_joints(field: str, largest: float) -> CredibleLimit:
    """Return the limit of 'position', 'velocity' or 'effort' of joints; `largest` if less."""
    return _JOINT_LIMITS[field].within(largest)
