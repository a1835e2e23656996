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
The payload that a node adds to the model of its robot, without a step.

It follows what is received by a limited rate, and fades out when nothing is received any more. So
whatever is computed with it changes continuously, and the URDF, calibrated or not, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.constants import NEVER_NS, STEP_CAP
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, cross
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.signals.age import age_of
from biped_com_ros.core.state.stance import Twist
import numpy as np

#: A first moment moves as fast as a mass this far away, m.
_LEVER = 0.2
#: Largest distance from the frame of its link, m.
FARTHEST = 1.0
#: Fastest change of its mass, as a share of the robot's per second: efforts and centre of mass
#: have no step.
_RATE = 0.2
#: Time without messages after which it fades out, s.
_TIMEOUT = 1.0


class LoadMotion(NamedTuple):
    """
    A point mass at one instant, along the axes of the base and relative to it.

    Attributes
    ----------
    mass
        kg.
    moment
        First moment about the origin of the base, (3,), kg m.
    momentum
        kg m/s, (3,).

    """

    mass: float
    moment: Array
    momentum: Array

    def com_with(self, mass: float, com_in_base: Array) -> Array:
        """Return the centre of mass of this and a robot of a mass, kg, with its own, (3,), m."""
        com: Array = (mass * com_in_base + self.moment) / (mass + self.mass)
        return com

    def momentum_along_base(self, twist: Twist) -> Array:
        """Return the momentum in the world, along the axes of the base, (3,), kg m/s."""
        momentum: Array = self.momentum + self.mass * twist.linear + cross(
            twist.angular, self.moment)
        return momentum

    def velocity_with(self, mass: float, velocity: Sequence[float], twist: Twist) -> Array:
        """Return the velocity of the common centre of mass; all along the base, (3,), m/s."""
        total: Array = (mass * np.array(velocity) + self.momentum_along_base(twist)) / (
            mass + self.mass)
        return total

    def joined_with(self, mass: float, com: Sequence[float] | Array,
                    velocity: Sequence[float] | Array, state: RobotState,
                    twist: Twist) -> tuple[Array, Array]:
        """
        Return the common centre of mass and its velocity, both in the world.

        Parameters
        ----------
        mass, com, velocity
            Of the robot, kg, and in the world, (3,), m and m/s.
        state, twist
            The robot with its base in the world, and the twist of that base, along its axes.

        """
        total = mass + self.mass
        momentum = state.base.rotation.dot(self.momentum_along_base(twist))
        return ((mass * np.array(com) + self.mass * self.place(state)) / total,
                (mass * np.array(velocity) + momentum) / total)

    def place(self, state: RobotState) -> Array:
        """Return where it is in the world, (3,), m."""
        return np.array(state.base.place(*(self.moment / self.mass).tolist()))


class CarriedPayload:
    """
    Follows the payload that is received.

    Parameters
    ----------
    model
        The robot.
    rate
        Fastest change of its mass, as a share of the robot's per second.

    Attributes
    ----------
    link
        Link that carries it; '' before there was one.
    mass
        kg.
    joint
        Pinocchio's index of the joint that carries it.
    moment_in_joint
        First moment along the axes of this joint, about its origin, (3,), kg m.

    """

    def __init__(self, model: RobotModel, *, rate: float = _RATE) -> None:
        self._model, self._rate = model, rate
        self._frames: dict[str, FrameSet] = {}
        self._now, self._goal = np.zeros(4), np.zeros(4)
        self.link, self._goal_link = '', ''
        self._received_ns = self._updated_ns = NEVER_NS
        self._use()

    def receive(self, link: str, mass: float, com_in_link: Sequence[float] | Array,
                stamp_ns: int) -> None:
        """
        Take the payload of a message; a mass of zero: nothing is carried.

        Raises
        ------
        UnknownNameError
            If there is no such link.
        InputError
            If the robot weighs less, or the centre of mass is far from the link.

        """
        com = np.array(com_in_link, dtype=float)
        if not 0.0 <= mass <= self._model.mass:
            raise InputError(
                f'a payload of {mass:g} kg is not plausible; valid: 0 to {self._model.mass:.3g} '
                'kg, the mass of the robot')
        if mass > 0.0:
            if not float(np.abs(com).max()) <= FARTHEST:
                raise InputError(
                    f"the centre of mass of the payload is at {com.tolist()} in '{link}'; valid: "
                    f'within {FARTHEST:g} m')
            if link not in self._frames:
                self._frames[link] = self._model.frames((link,))
            self._goal_link, self._goal = link, np.concatenate(([mass], mass * com))
        else:
            self._goal = np.zeros(4)
        self._received_ns = stamp_ns

    def update(self, stamp_ns: int) -> bool:
        """Propagate to the time `stamp_ns`; return whether the payload has changed."""
        step = 1e-9 * (stamp_ns - self._updated_ns)
        self._updated_ns = stamp_ns
        if self._is_idle:
            return False
        goal = self._goal
        if self.is_stale or (self.link != self._goal_link and self._now[0] > 0.0):
            goal = np.zeros(4)  # one after the other
        elif self.link != self._goal_link:
            self.link = self._goal_link
        difference = goal - self._now
        distance = max(abs(float(difference[0])), math.hypot(*difference[1:].tolist()) / _LEVER)
        if not distance:
            return False
        limit = self._rate * self._model.mass * min(max(step, 0.0), STEP_CAP)
        self._now = goal.copy() if distance <= limit else (
            self._now + difference * (limit / distance))
        self._use()
        return True

    @property
    def is_stale(self) -> bool:
        """Whether the last message is too old, or of a time to come."""
        age = 1e-9 * age_of(self._received_ns, self._updated_ns)
        return age > _TIMEOUT

    @property
    def _is_idle(self) -> bool:
        return not (self._goal[0] or self._now[0])

    def _use(self) -> None:
        self.mass = float(self._now[0])
        self.joint, self.moment_in_joint = 0, np.zeros(3)
        if self.mass:
            frames = self._frames[self.link]
            pose = frames.poses_in_joint()[0]
            self.joint = int(frames.joints[0])
            self.moment_in_joint = self.mass * pose.position + pose.rotation.dot(self._now[1:])

    def moment(self, joints: Array) -> Array:
        """Return what it adds to the base's first moment, by placements of joints (J, 4, 3)."""
        rows = joints[self.joint]
        moment: Array = self.moment_in_joint.dot(rows[:3]) + self.mass * rows[3]
        return moment

    def motion(self, state: RobotState) -> LoadMotion | None:
        """Return how it moves with the robot; None if nothing is carried."""
        if not self.mass:
            return None
        frames = self._frames[self.link]
        placement = state.placements_in_base(frames)[0]
        linear, angular = state.twists_in_base(frames)[0]
        lever = self._now[1:].dot(placement[:3])
        return LoadMotion(self.mass, lever + self.mass * placement[3],
                          self.mass * linear + cross(angular, lever))

    def wrench_on_link(self, up_in_link: Array, gravity: float) -> Array:
        """Return its weight as a wrench on the link, in the frame of the link, (6,), N, N m."""
        force = -gravity * up_in_link
        return np.concatenate((self.mass * force, cross(self._now[1:], force)))


def without_load(wrenches: Sequence[Sequence[float]], soles: Array,
                 place: Array, weight: float) -> list[list[float]]:
    """
    Return the wrenches of the feet without the weight of a load.

    Parameters
    ----------
    wrenches, soles
        Of the feet in their sole frames, and these frames in the world, (F, 4, 3).
    place, weight
        Where the load is in the world, (3,), m, and its weight, N.

    Returns
    -------
    list
        The sum is exact; the load's part is divided by the normal forces.

    """
    forces = [max(wrench[2], 0.0) for wrench in wrenches]
    total = sum(forces)
    if not total > 0.0:
        return [list(wrench) for wrench in wrenches]
    found = []
    for wrench, sole, force in zip(wrenches, soles, forces):
        part = np.array((0.0, 0.0, weight * force / total))
        moment = cross(place - sole[3], part)
        found.append((np.array(wrench) - np.concatenate((
            sole[:3].dot(part), sole[:3].dot(moment)))).tolist())
    return found
