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
Efforts by the measured contact wrenches, for dynamic walking: ``g - sum J^T F``.

While a robot walks dynamically, statics are no guide: its centre of mass is beside its soles most
of the time, and no wrench within them balances it. What the contacts measure is right at any
instant, and leaves only inertia, friction and control to the controllers.

These efforts are a loop: a foot that is pushed harder gets more effort. Where the ground does not
yield, that is an integral action of the position controllers, which stops when they have no error
left. Internal forces of several contacts would never stop growing, since they move nothing. Of
them only the changes are used, with a high-pass of 1 Hz; in the place of lasting ones there are
those of :mod:`~biped_com_ros.core.gravity.contacts`, by the measured loads.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Placement
from biped_com_ros.core.geometry.wrench import about_origin
from biped_com_ros.core.gravity.contacts import ContactPoint, minimum_norm_wrenches
from biped_com_ros.core.gravity.model import ContactSolution, GravityLoad
import numpy as np

#: Rate at which lasting internal forces are replaced by the least ones, 1/ns: that of 1 Hz.
_RATE = 2e-9 * math.pi


class MeasuredWrenches:
    """
    Low-passed wrenches of all contacts.

    Parameters
    ----------
    count
        Number of contacts.
    cutoff
        Of the first-order low-pass, Hz.

    """

    def __init__(self, count: int, cutoff: float) -> None:
        self.set_cutoff(cutoff)
        self._wrenches: list[list[float]] = [[0.0] * 6 for _ in range(count)]
        self._stamps_ns: list[int | None] = [None] * count
        self._internal = np.zeros((count, 6))
        self._support_ns: int | None = None

    def set_cutoff(self, cutoff: float) -> None:
        """Use another cutoff, Hz; the wrenches are kept."""
        self._rate = 2e-9 * math.pi * cutoff

    def add(self, contact: int, wrench: Sequence[float], stamp_ns: int) -> None:
        """Filter the wrench of a contact (6,) in its own axes at a time, ns."""
        before, self._stamps_ns[contact] = self._stamps_ns[contact], stamp_ns
        if before is None or not 0 < stamp_ns - before < LONGEST_STEP_NS:
            self._wrenches[contact] = list(wrench)
            return
        share = -math.expm1(-self._rate * (stamp_ns - before))
        self._wrenches[contact] = [
            old + share * (new - old) for old, new in zip(self._wrenches[contact], wrench)]

    def support(self, load: GravityLoad, stamp_ns: int) -> ContactSolution:
        """
        Return the measured contact wrenches without lasting internal forces.

        They need not balance the weight.

        Parameters
        ----------
        load
            Gravity's load in the present posture and attitude.
        stamp_ns
            Its time, ns.

        Raises
        ------
        InputError
            If no contact pushes.

        """
        forces = [max(contact.pressing(wrench), 0.0) for contact, wrench in zip(
            load.gravity_model.contacts, self._wrenches)]
        total_force = sum(forces)
        if not total_force > 0.0:
            raise InputError(
                'no contact measures a normal force above 0 N; check the wrench topics and '
                'wrench_sensors.<sensor>.scale')
        shares = [force / total_force for force in forces]
        measured = [self._along_base(*each) for each in zip(
            load.gravity_model.contacts, self._wrenches, load.placement_values)]
        total = [sum(column) for column in zip(*map(about_origin, measured, load.points))]
        least = minimum_norm_wrenches(
            total[:3], total[3:], load.points, shares, load.gravity_model.levers)
        wrenches = np.array(measured)
        internal = wrenches - least
        before, self._support_ns = self._support_ns, stamp_ns
        if before is None or not 0 <= stamp_ns - before < LONGEST_STEP_NS:
            self._internal[:] = internal
        elapsed_ns = 0 if before is None else stamp_ns - before
        self._internal += -math.expm1(-_RATE * elapsed_ns) * (internal - self._internal)
        return ContactSolution(load, shares, (wrenches - self._internal).tolist())

    @staticmethod
    def _along_base(contact: ContactPoint, wrench: Sequence[float],
                    placement: Placement) -> list[float]:
        """Return a wrench in a contact's axes as one at its centre along those of the base."""
        cx, cy = contact.centre
        fx, fy, fz, mx, my, mz = about_origin(wrench, (-cx, -cy, 0.0))
        x, y, z, _ = placement
        return [*(fx * a + fy * b + fz * c for a, b, c in zip(x, y, z)),
                *(mx * a + my * b + mz * c for a, b, c in zip(x, y, z))]
