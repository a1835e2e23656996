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
"""Loads that are put in the robot's hands or on other links, and pushes for some time."""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.errors import InputError
from biped_com_ros.sim.frames import Array
import mujoco
import numpy as np

#: Time in which a load is taken up or set down, s.
TAKING = 0.2
#: Largest mass of a load, kg.
LARGEST = 100.0
#: Largest distance of a load from the origin of its link, m.
FARTHEST = 2.0


class Loads:
    """
    Loads on bodies of a MuJoCo model; each is the same as if the body were heavier.

    Parameters
    ----------
    model
        MuJoCo's.

    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own: dict[int, tuple[float, Array, Array]] = {}
        #: Of each body: mass, first moment and, about the body's origin, inertia; now and finally.
        self._now: dict[int, Array] = {}
        self._goal: dict[int, Array] = {}
        self._steps_left = 0

    def put(self, body: int, mass: float, com: Any, inertia: Any = None) -> None:
        """
        Put a load on a body, in the place of the one that it has; a mass of zero takes it off.

        Parameters
        ----------
        body
            MuJoCo's index.
        mass
            kg.
        com
            Centre of mass in the frame of the body, (3,), m.
        inertia
            About that centre, along the axes of the body, (3, 3), kg m^2; default: none.

        Raises
        ------
        InputError
            If mass, centre or inertia make no sense.

        """
        com = np.array(com, dtype=float)
        about_com = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=float)
        if not 0.0 <= mass <= LARGEST:
            raise InputError(f'the mass of a load must be 0 to {LARGEST:g} kg, not {mass:g}')
        if not np.abs(com).max() <= FARTHEST:
            raise InputError(
                f'the centre of mass of a load must be within {FARTHEST:g} m of its link, not at '
                f'{com.tolist()}')
        if not (np.isfinite(about_com).all() and np.linalg.eigvalsh(about_com)[0] >= -1e-9):
            raise InputError('the inertia of a load must be finite and positive')
        if body not in self._own:
            self._own[body] = self._inertial(body)
            # Not at its own place any more, which MuJoCo would take for granted.
            self._model.body_sameframe[body] = self._model.body_simple[body] = 0
            self._now[body] = np.zeros(13)
        self._goal[body] = mass * np.concatenate((
            [1.0], com, _about_origin(com).reshape(-1))) + np.concatenate((
                np.zeros(4), about_com.reshape(-1) * (mass > 0.0)))
        self._steps_left = max(1, round(TAKING / float(self._model.opt.timestep)))

    def clear(self) -> None:
        """Take all of them off at once."""
        for body in self._own:
            self._goal[body] = np.zeros(13)
        self._steps_left = 1
        if self._own:
            self.step()

    def step(self) -> None:
        """Move all loads towards their goals, before a step of the physics."""
        if not self._steps_left:
            return
        for body, goal in self._goal.items():
            self._now[body] += (goal - self._now[body]) / self._steps_left
            self._write(body, self._now[body])
        self._steps_left -= 1

    def _inertial(self, body: int) -> tuple[float, Array, Array]:
        """Return mass, first moment and inertia about the origin of a body without load."""
        model = self._model
        mass, com = float(model.body_mass[body]), model.body_ipos[body].copy()
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.body_iquat[body])
        R = axes.reshape(3, 3)
        inertia = (R * model.body_inertia[body]) @ R.T + mass * _about_origin(com)
        return mass, mass * com, inertia

    def _write(self, body: int, load: Array) -> None:
        model, (own_mass, own_moment, own_inertia) = self._model, self._own[body]
        mass, moment = own_mass + load[0], own_moment + load[1:4]
        inertia = own_inertia + load[4:].reshape(3, 3)
        com = moment / mass if mass > 0.0 else model.body_ipos[body].copy()
        values, axes = np.linalg.eigh(inertia - mass * _about_origin(com))
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        added = mass - float(model.body_mass[body])
        model.body_mass[body], model.body_ipos[body] = mass, com
        model.body_inertia[body] = np.maximum(values, 0.0)
        mujoco.mju_mat2Quat(model.body_iquat[body], axes.reshape(-1))
        # MuJoCo computes centres of mass with the masses of subtrees.
        while True:
            model.body_subtreemass[body] += added
            if body == 0:
                break
            body = int(model.body_parentid[body])


def _about_origin(com: Array) -> Array:
    """Return the inertia of a unit mass about the origin, (3, 3), m^2."""
    squared: Array = float(com.dot(com)) * np.eye(3) - np.outer(com, com)
    return squared


class Pushes:
    """
    Wrenches that act now.

    Parameters
    ----------
    model, data
        MuJoCo's.

    """

    def __init__(self, model: Any, data: Any) -> None:
        self._timestep, self._data = float(model.opt.timestep), data
        self._active: list[tuple[int, Array, int]] = []

    def clear(self) -> None:
        """End all of them."""
        self._active.clear()

    def add(self, body: int, wrench: Any, duration: float) -> None:
        """
        Push a body from the next physics step on.

        Parameters
        ----------
        body
            MuJoCo's index.
        wrench
            Force through the body's centre of mass and moment, in the world, (6,), N and N m.
        duration
            Rounded to whole physics steps, s.

        Raises
        ------
        InputError
            If the wrench is not six finite numbers, or the duration not within 0 to 60 s.

        """
        wrench = np.array(wrench, dtype=float)
        if wrench.shape != (6,) or not np.isfinite(wrench).all():
            raise InputError(f'a push must be six finite numbers, not {wrench}')
        if not 0.0 <= duration <= 60.0:
            raise InputError(f'the duration of a push must be between 0 and 60 s, not {duration}')
        if steps := round(duration / self._timestep):
            self._active.append((body, wrench, steps))

    def apply(self) -> None:
        """Apply the pushes to the next physics step."""
        applied = self._data.xfrc_applied
        applied[:] = 0.0
        for body, wrench, _ in self._active:
            applied[body] += wrench
        self._active = [(b, w, left - 1) for b, w, left in self._active if left > 1]
