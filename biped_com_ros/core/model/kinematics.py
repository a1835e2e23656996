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
Pinocchio's forward kinematics, read from its memory.

Placements are read as one NumPy array instead of joint by joint: four 3-vectors per joint, the
columns of ``R_base_joint`` and the position of the joint. A point (x, y, z) of that joint is then
``[x, y, z, 1] @ rows``.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from biped_com_ros.core.geometry.pose import Array
import numpy as np
import pinocchio as pin


class Kinematics:
    """
    Pinocchio's working memory, with what is read at every update as NumPy views.

    Attributes
    ----------
    data
        Pinocchio's working memory.
    views
        NumPy views of it as :meth:`read` returns them; None where they did not pass their check
        against Pinocchio's accessors, which then are used joint by joint.
    at_rest
        Velocity of the centre of mass and twists of the joints at rest.

    """

    def __init__(self, model: Any) -> None:
        self.data = pin.Data(model)  # createData() copies it twice, 6 ms for Talos
        self.at_rest = np.zeros(3), np.zeros((model.njoints, 6))
        for array in self.at_rest:
            array.setflags(write=False)
        self.views = view_memory(self.data)
        self._check_views(model)

    def read(self) -> tuple[Array, Array, Array, Array]:
        """
        Return copies of what the last pass computed.

        Returns
        -------
        tuple
            Centre of mass (3,), its velocity (3,), placements of the joints (joints, 4, 3), and
            their twists (joints, 6), linear first, each in the axes of its joint.

        """
        if self.views is None:
            return self._read_one_by_one()
        com, velocity, placements, twists = self.views
        return com.copy(), velocity.copy(), placements.copy(), twists.copy()

    def read_positions(self) -> tuple[Array, Array]:
        """Return the first and third of what :meth:`read` returns."""
        if self.views is None:
            com, _, placements, _ = self._read_one_by_one()
            return com, placements
        com, _, placements, _ = self.views
        return com.copy(), placements.copy()

    def view_positions(self) -> tuple[Array, Array]:
        """Return the same, not copied where that can be: valid until the next pass."""
        if self.views is None:
            com, _, placements, _ = self._read_one_by_one()
        else:
            com, _, placements, _ = self.views
        return com, placements

    def _check_views(self, model: Any) -> None:
        """Drop the views unless they show what Pinocchio's own accessors show."""
        # Anywhere but the neutral configuration, whose rotations are often identities and so
        # equal to their transposes.
        q = pin.integrate(model, pin.neutral(model), np.linspace(0.1, 0.9, model.nv))
        pin.centerOfMass(model, self.data, q, np.linspace(-1.0, 1.0, model.nv), False)
        if not all(map(np.array_equal, self.read(), self._read_one_by_one())):
            self.views = None

    def _read_one_by_one(self) -> tuple[Array, Array, Array, Array]:
        data = self.data
        return (data.com[0].copy(), data.vcom[0].copy(),
                np.array([(*p.rotation.T, p.translation) for p in data.oMi]),
                np.array([t.vector for t in data.v]))


def view_memory(data: Any) -> tuple[Array, Array, Array, Array] | None:
    """View the C++ memory, if it is laid out as 9 + 3 and 3 + 3 doubles per joint."""
    # The first and the last joint show it; `Kinematics` compares what lies between.
    placements, twists = data.oMi, data.v
    last = len(placements) - 1
    try:
        rotation, position = _address(placements[0].rotation), _address(
            placements[0].translation)
        linear, angular = _address(twists[0].linear), _address(twists[0].angular)
        ends = _address(placements[last].rotation), _address(twists[last].linear)
        com, velocity = _address(data.com[0]), _address(data.vcom[0])
    except (AttributeError, KeyError):
        return None
    if (position, angular, *ends) != (
            rotation + 72, linear + 24, rotation + 96 * last, linear + 48 * last):
        return None
    return (_view(com, (3,)), _view(velocity, (3,)),
            _view(rotation, (last + 1, 4, 3)), _view(linear, (last + 1, 6)))


def _address(array: Array) -> int:
    return int(array.__array_interface__['data'][0])


def _view(address: int, shape: tuple[int, ...]) -> Array:
    block = (ctypes.c_double * math.prod(shape)).from_address(address)
    # numpy.ctypeslib would take milliseconds to import.
    return np.frombuffer(memoryview(block)).reshape(shape)
