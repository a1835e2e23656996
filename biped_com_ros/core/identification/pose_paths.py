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
Safe paths between placements.

Paths are straight in the coordinates of :class:`~.stances.Placement`, so that standing soles stay
level and the centre of mass moves straight over the ground; every step of them is checked.
"""

from __future__ import annotations

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.pose_safety import PoseSafety
from biped_com_ros.core.identification.stances import Placement, Stances
import numpy as np


class PathPlanner:
    """
    Plans paths of a robot between placements.

    Parameters
    ----------
    stances
        Of the robot.
    safety
        Checks every step.
    step
        Largest change of a joint between two steps, rad.

    """

    def __init__(self, stances: Stances, safety: PoseSafety, step: float) -> None:
        self._model, self._stances, self._safety = stances.model, stances, safety
        self._step_size = step

    def home(self) -> Placement:
        """Return the home posture on all feet."""
        return self._stances.home(tuple(self._model.config.feet))

    def lifted_home(self, standing: tuple[str, ...]) -> Placement:
        """Return the home posture on some feet, with the others lifted clear of the ground."""
        alone = len(standing) < len(self._model.config.feet)
        return self._stances.home(standing, 0.05 * self._stances.leg_length if alone else 0.0)

    def is_reachable(self, placement: Placement) -> bool:
        """Whether there is a safe straight path from the home posture on the same feet."""
        return self.straight(self.lifted_home(placement.standing), placement) is not None

    def solve(self, placement: Placement) -> Array | None:
        """Return the positions of all joints (n,), or None if the legs do not reach."""
        try:
            return self._stances.positions(placement)
        except InputError:
            return None

    def steps(self, start: Placement, end: Placement) -> list[Array]:
        """
        Return safe steps from `start` (excluded), straight if possible, else by `lifted_home`.

        Between hanging and standing the robot is lifted or lowered in the home posture: the path
        begins there.

        Raises
        ------
        InputError
            If the robot cannot shift its weight safely.

        """
        if bool(start.standing) != bool(end.standing):
            start = self.home() if end.standing else self._stances.home(())
        if start.standing == end.standing:
            direct = self.straight(start, end)
            if direct is not None:
                return direct
        via = self._detour(start, end)
        path: list[Array] = []
        for one, other in zip([start, *via], [*via, end]):
            part = self.straight(one, other)
            if part is None:
                raise InputError(
                    f'{self._model.config.name} cannot shift its weight from '
                    f'{" and ".join(start.standing)} to {" and ".join(end.standing)} safely; set '
                    'double_support to 1, or widen the margin of its limits')
            path.extend(part)
        return path

    def _detour(self, start: Placement, end: Placement) -> list[Placement]:
        if start.standing == end.standing:
            return [self.lifted_home(start.standing)]
        feet = tuple(self._model.config.feet)
        via: list[Placement] = [self.lifted_home(start.standing)]
        if len(start.standing) < len(feet):
            via += [*self._step(start.standing)[::-1], self._stances.home(feet)]
        if len(end.standing) < len(feet):
            via += [*self._step(end.standing), self.lifted_home(end.standing)]
        return via

    def _step(self, standing: tuple[str, ...]) -> list[Placement]:
        """Return placements that load one foot: on all feet, then with the others unloaded."""
        feet, home = tuple(self._model.config.feet), self._stances.home(standing)
        on_all = Placement(feet, home.free_joints, home.height, com_target=home.com_target)
        return [on_all, home]

    def straight(self, start: Placement, end: Placement) -> list[Array] | None:
        """Return checked steps from one placement (excluded) to another, or None."""
        if start.standing != end.standing:
            # Same posture, other feet loaded: a foot is lifted or put down.
            return []
        positions = self.solve(end)
        before = self.solve(start)
        if positions is None or before is None:
            return None
        steps = max(1, math.ceil(float(np.abs(positions - before).max()) / self._step_size))
        path = []
        for i in range(1, steps + 1):
            q = self.solve(start.towards(end, i / steps))
            if q is None or not self._safety.is_safe_on_path(q, start.standing):
                return None
            path.append(q)
        return path
