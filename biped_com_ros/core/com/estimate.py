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
The centre of mass of one located state: position, velocity, divergent component.

The linear inverted pendulum ``x'' = omega_0^2 (x - p)`` has one unstable mode, the divergent
component of motion (DCM, capture point) ``xi = x + x' / omega_0``; the robot comes to rest without
a step where its centre of pressure p can be put on xi.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Vector
from biped_com_ros.core.model.robot import RobotState
from biped_com_ros.core.payload.carried import LoadMotion
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Twist

#: Lower ones, m, are those of no robot, and their pendulum is infinitely fast.
_LEAST_HEIGHT = 1e-6


def com_in_world(state: RobotState, load: LoadMotion | None = None) -> Vector:
    """Return the centre of mass in the world, with that of a payload, m."""
    com = state.com_in_base if load is None else load.com_with(
        state.model.mass, state.com_in_base)
    return state.base.place(*com.tolist())


def com_velocity_in_world(state: RobotState, twist: Twist,
                          load: LoadMotion | None = None) -> Vector:
    """
    Return the velocity of the centre of mass in the world, m/s.

    Parameters
    ----------
    state
        With the pose of its base (:meth:`RobotState.in_world`) and its joint velocities.
    twist
        How that base moves.
    load
        Of a payload; None: nothing is carried.

    """
    velocity: Sequence[float] = com_velocity_along_base(state, twist)
    if load is not None:
        velocity = load.velocity_with(state.model.mass, velocity, twist).tolist()
    return state.base.turn(*velocity)


def com_velocity_along_base(state: RobotState, twist: Twist) -> Vector:
    """
    Return the velocity of the centre of mass in the world, along the axes of the base, m/s.

    Parameters
    ----------
    state, twist
        As for :func:`com_velocity_in_world`.

    Notes
    -----
    ``v + omega x c + c'`` with the centre of mass c in the frame of the base.

    """
    wx, wy, wz = twist.angular.tolist()
    vx, vy, vz = twist.linear.tolist()
    x, y, z = state.com_in_base.tolist()
    dx, dy, dz = state.com_velocity_in_base.tolist()
    return vx + dx + wy * z - wz * y, vy + dy + wz * x - wx * z, vz + dz + wx * y - wy * x


def natural_frequency(com_height: float, gravity: float = GRAVITY) -> float:
    """
    Return omega_0 of the linear inverted pendulum, rad/s.

    Parameters
    ----------
    com_height
        Height of the centre of mass above the ground, m.
    gravity
        m/s^2.

    Raises
    ------
    InputError
        If the centre of mass is not above the ground: there is no pendulum.

    """
    if not _LEAST_HEIGHT < com_height < math.inf:
        raise InputError(
            f'the centre of mass is {com_height:.3f} m above the stance sole; it must be above '
            'zero (check the base orientation and the direction of the sole frames)')
    return math.sqrt(gravity / com_height)


def divergent_component(com: Vector, com_velocity: Vector, ground_height: float,
                        gravity: float = GRAVITY) -> Vector:
    """
    Return the divergent component of motion on the ground, m.

    Parameters
    ----------
    com, com_velocity
        In the world, z up, m and m/s.
    ground_height
        Height of the stance sole, m; also the height of the result.
    gravity
        m/s^2.

    Raises
    ------
    InputError
        If the centre of mass is not above the ground.

    """
    x, y, z = com
    velocity_x, velocity_y, _ = com_velocity
    omega_0 = natural_frequency(z - ground_height, gravity)
    return x + velocity_x / omega_0, y + velocity_y / omega_0, ground_height


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
            self._position = com_in_world(self.located.state, self.load)
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
        twist = located.twist
        if twist is not None:
            velocity = com_velocity_in_world(located.state, twist, self.load)
            try:
                dcm = divergent_component(
                    self.position, velocity, located.stance.ground_height, self._gravity)
            except InputError as error:
                problem = str(error)
        self._motion = velocity, dcm, problem
        return self._motion
