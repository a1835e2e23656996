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

from collections.abc import Sequence

from biped_com_ros.core.com.kinematics import com_velocity_along_base, divergent_point
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Vector
from biped_com_ros.core.payload.carried import LoadMotion
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
    load
        Of a payload; None: nothing is carried.

    Attributes
    ----------
    located, load
        The same.

    """

    __slots__ = 'located', 'load', '_gravity', '_position', '_motion'

    def __init__(self, located: LocatedState, gravity: float,
                 load: LoadMotion | None = None) -> None:
        self.located, self._gravity, self.load = located, gravity, load
        self._position: Vector | None = None
        #: Velocity, divergent component and why there is none.
        self._motion: tuple[Vector | None, Vector | None, str] | None = None

    @property
    def position(self) -> Vector:
        """Centre of mass, m."""
        if self._position is None:
            state, load = self.located.state, self.load
            com = state.com_in_base if load is None else load.com_with(
                state.model.mass, state.com_in_base)
            self._position = state.base.place(*com.tolist())
        return self._position

    @property
    def velocity(self) -> Vector | None:
        """Velocity of the centre of mass, m/s; None while the twist of the base is unknown."""
        return (self._motion or self._find_motion())[0]

    @property
    def dcm(self) -> Vector | None:
        """Divergent component of motion on the ground, m; None where there is none."""
        return (self._motion or self._find_motion())[1]

    @property
    def dcm_problem(self) -> str:
        """Why there is no divergent component although there is a velocity; or ''."""
        return (self._motion or self._find_motion())[2]

    def _find_motion(self) -> tuple[Vector | None, Vector | None, str]:
        located, velocity, dcm, problem = self.located, None, None, ''
        state, twist = located.state, located.twist
        if twist is not None:
            along_base: Sequence[float] = com_velocity_along_base(state, twist)
            if self.load is not None:
                along_base = self.load.velocity_with(
                    state.model.mass, along_base, twist).tolist()
            velocity = state.base.turn(*along_base)
            try:
                dcm = divergent_point(
                    self.position, velocity, located.stance.ground_height, self._gravity)
            except InputError as error:
                problem = str(error)
        self._motion = velocity, dcm, problem
        return self._motion
