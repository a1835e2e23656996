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
True contact forces of the ground, from MuJoCo's constraint solver, and hands that hold on.

These hold on to something that stands, such as a rail, with a limited force.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biped_com_ros.core.errors import InputError
from biped_com_ros.sim.frames import Array
import mujoco
import numpy as np

PLAY, DAMPING_TIME = 0.004, 0.004
"""Default motion of a hand at which it holds with all of its force, m; time constant of its
damping, s. Hands are light: with less play their forces chatter."""


class Grips:
    """
    Hands of a plant that hold on.

    Each is a spring and a damper to where the hand took hold. The sum of the force along the
    world's axes is limited: a hand that cannot hold any longer slides and goes on pulling.

    Parameters
    ----------
    model, data
        MuJoCo's.

    Attributes
    ----------
    forces
        Of the environment on each hand that holds, by body, (3,), N.

    """

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data = model, data
        self._held: dict[int, tuple[Array, Array, float, float]] = {}
        self.forces: dict[int, Array] = {}

    def clear(self) -> None:
        """Let go with all hands."""
        self._held.clear()
        self.forces.clear()

    def hold(self, body: int, point: Any, largest_force: float, play: float = PLAY) -> None:
        """
        Hold on where a point of a body is now.

        Parameters
        ----------
        body
            MuJoCo's index.
        point
            In the frame of the body, (3,), m.
        largest_force
            Largest sum of the force along the world's three axes, N; zero: let go.
        play
            Motion at which it holds with all of it, m.

        Raises
        ------
        InputError
            If a number is not finite, the force negative, or the play not positive.

        """
        point = np.array(point, dtype=float)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f'the point of a grip must be three finite numbers, not {point}')
        if not 0.0 <= largest_force < np.inf:
            raise InputError(f'the force of a grip must be finite and not negative, not '
                             f'{largest_force:g} N')
        if not 0.0 < play < np.inf:
            raise InputError(f'the play of a grip must be positive and finite, not {play:g} m')
        self._held.pop(body, None)
        self.forces.pop(body, None)
        if largest_force:
            self._held[body] = (
                point, self._in_world(body, point), largest_force, largest_force / play)

    def apply(self) -> None:
        """Add the forces to the next physics step."""
        data = self._data
        for body, (point, anchor, largest, stiffness) in self._held.items():
            here = self._in_world(body, point)
            velocity = self._velocity(body, here)
            pull = (anchor - here - DAMPING_TIME * velocity) * stiffness
            force = self.forces[body] = limited_sum(pull, largest)
            data.xfrc_applied[body, :3] += force
            data.xfrc_applied[body, 3:] += np.cross(here - data.xipos[body], force)

    def _in_world(self, body: int, point: Array) -> Array:
        data = self._data
        return np.asarray(data.xpos[body] + data.xmat[body].reshape(3, 3) @ point)

    def _velocity(self, body: int, point: Array) -> Array:
        """Return the velocity of a point that moves with a body, (3,), m/s."""
        # Spatial, in the world's axes, about the centre of mass of the whole robot.
        angular, linear = np.split(self._data.cvel[body], 2)
        root = self._data.subtree_com[self._model.body_rootid[body]]
        return np.asarray(linear + np.cross(angular, point - root))


def limited_sum(force: Array, largest: float) -> Array:
    """Return the nearest force (3,) whose components' sizes sum up to no more than a limit."""
    sizes = np.abs(force)
    if sizes.sum() <= largest:
        return force
    ordered = np.sort(sizes)[::-1]
    excess = (np.cumsum(ordered) - largest) / np.arange(1, 4)
    count = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.sign(force) * np.maximum(sizes - excess[count], 0.0))


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
