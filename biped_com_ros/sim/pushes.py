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
"""External wrenches on links of the simulated robot, for a number of physics steps."""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.errors import InputError
from biped_com_ros.sim.frames import Array
import numpy as np


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
