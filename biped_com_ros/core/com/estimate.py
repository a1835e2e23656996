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
"""The centre of mass of one located state: position, velocity, divergent component."""

from __future__ import annotations

from biped_com_ros.core.com.kinematics import com_velocity_along_base, divergent_point
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Vector
from biped_com_ros.core.state.base import LocatedState


class ComEstimate:
    """
    The kinematic CoM at one instant, in the world; each quantity is computed at its first access.

    Parameters
    ----------
    located
        The robot.
    gravity
        m/s^2.

    Attributes
    ----------
    located
        The same.

    """

    __slots__ = 'located', '_gravity', '_position', '_velocity', '_divergent'

    def __init__(self, located: LocatedState, gravity: float) -> None:
        self.located, self._gravity = located, gravity
        self._position: Vector | None = None
        # In a tuple each, since None is a result, too.
        self._velocity: tuple[Vector | None] | None = None
        self._divergent: tuple[Vector | None, str] | None = None

    @property
    def position(self) -> Vector:
        """Centre of mass, m."""
        if self._position is None:
            state = self.located.state
            self._position = state.base.place(*state.com_in_base.tolist())
        return self._position

    @property
    def velocity(self) -> Vector | None:
        """Velocity of the centre of mass, m/s; None while the twist of the base is unknown."""
        if self._velocity is None:
            state, twist = self.located.state, self.located.twist
            self._velocity = (None if twist is None else state.base.turn(
                *com_velocity_along_base(state, twist)),)
        return self._velocity[0]

    @property
    def dcm(self) -> Vector | None:
        """Divergent component of motion on the ground, m; None where there is none."""
        return self._find_divergent()[0]

    @property
    def dcm_problem(self) -> str:
        """Why there is no divergent component although there is a velocity; or ''."""
        return self._find_divergent()[1]

    def _find_divergent(self) -> tuple[Vector | None, str]:
        if self._divergent is None:
            self._divergent = self._compute_divergent()
        return self._divergent

    def _compute_divergent(self) -> tuple[Vector | None, str]:
        if self.velocity is None:
            return None, ''
        try:
            return divergent_point(
                self.position, self.velocity, self.located.stance.ground_height,
                self._gravity), ''
        except InputError as error:
            return None, str(error)
