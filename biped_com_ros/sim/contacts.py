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
"""True contact forces of the ground, from MuJoCo's constraint solver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biped_com_ros.sim.frames import Array
import mujoco
import numpy as np

_YZX, _ZXY = [1, 2, 0], [2, 0, 1]

MIN_FORCE = 1e-6
"""Without this vertical force (N) there is no zero-moment point."""


class GroundContacts:
    """
    Sums contact forces per foot.

    Parameters
    ----------
    model, data
        MuJoCo's.
    feet
        Names; a foot's geoms are called ``sole/<foot>/...`` and its sole frame ``sole/<foot>``.

    """

    def __init__(self, model: Any, data: Any, feet: Iterable[str]) -> None:
        self._data = data
        self.feet = tuple(feet)
        self._foot_of_geom = np.full(model.ngeom, -1)
        for geom in range(model.ngeom):
            for i, foot in enumerate(self.feet):
                if model.geom(geom).name.startswith(f'sole/{foot}/'):
                    self._foot_of_geom[geom] = i
        self._soles = np.array(
            [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, f'sole/{f}') for f in self.feet])

    def wrenches_at_origin(self) -> Array:
        """Wrench of the ground on each foot about the world's origin, shape (feet, 6)."""
        data, wrenches = self._data, np.zeros((len(self.feet), 6))
        if not data.ncon:
            return wrenches
        contact = data.contact
        rows = contact.efc_address
        touching = rows >= 0
        rows, geoms = rows[touching], contact.geom[touching]
        # With elliptic cones a contact's rows are its force along the axes of `frame`, which
        # points from the first geom (the floor, made first) to the second (the foot).
        local = data.efc_force[rows[:, np.newaxis] + np.arange(3)]
        forces = np.einsum('ci,cij->cj', local, contact.frame[touching].reshape(-1, 3, 3))
        moments = _cross(contact.pos[touching], forces)
        feet = self._foot_of_geom[geoms[:, 1]]
        np.add.at(wrenches, feet, np.concatenate((forces, moments), axis=1))
        return wrenches

    def wrenches_at_soles(self, at_origin: Array) -> Array:
        """Transform wrenches to the sole frames, shape (feet, 6)."""
        wrenches = np.empty_like(at_origin)
        for i, site in enumerate(self._soles):
            to_sole = self._data.site_xmat[site].reshape(3, 3)
            force, moment = at_origin[i, :3], at_origin[i, 3:]
            wrenches[i, :3] = force @ to_sole
            wrenches[i, 3:] = (moment - _cross(self._data.site_xpos[site], force)) @ to_sole
        return wrenches


def _cross(a: Array, b: Array) -> Array:
    """Return a x b of vectors (..., 3); ten times faster than numpy.cross for a few of them."""
    return a[..., _YZX] * b[..., _ZXY] - a[..., _ZXY] * b[..., _YZX]


def zero_moment_point(at_origin: Array, normal: Array, through: Array) -> Array:
    """
    Return the point of the floor about which the moment is along its normal; NaN without force.

    Parameters
    ----------
    at_origin
        Wrenches (feet, 6) about the world's origin, N and N m.
    normal
        Of the floor, a unit vector (3,).
    through
        A point of the floor, (3,), m.

    """
    total = at_origin.sum(axis=0)
    pressure = float(normal @ total[:3])
    if pressure < MIN_FORCE:
        return np.full(3, np.nan)
    moment = total[3:] - _cross(through, total[:3])
    return np.asarray(through + _cross(normal, moment) / pressure)
