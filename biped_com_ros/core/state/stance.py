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
"""Which soles carry the robot, and how its base moves: the plain values of the state estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array


class Twist(NamedTuple):
    """
    Velocity of a base in the world, along the axes of the base.

    Attributes
    ----------
    linear
        Velocity of the base's origin, shape (3,), m/s.
    angular
        Angular velocity, shape (3,), rad/s.

    """

    linear: Array
    angular: Array


class Stance:
    """
    Which soles are in contact, and where all soles are; immutable.

    Attributes
    ----------
    soles_in_world
        Origins of all soles, shape (F, 3), m, in the order of ``config.feet``.
    in_contact
        Which of them are on the ground.

    """

    __slots__ = ('soles_in_world', 'in_contact', '_ground_height')

    def __init__(self, soles_in_world: Array, in_contact: tuple[bool, ...]) -> None:
        self.soles_in_world, self.in_contact = soles_in_world, in_contact
        self._ground_height: float | None = None

    @property
    def ground_height(self) -> float:
        """Height of the lowest sole in contact (of all soles if none is), m."""
        if self._ground_height is None:
            heights: list[float] = self.soles_in_world[:, 2].tolist()
            self._ground_height = min(
                [z for z, touches in zip(heights, self.in_contact) if touches] or heights)
        return self._ground_height


class LowestSoles:
    """
    Contacts of a robot that does not measure them: the lowest soles are assumed to be in contact.

    Parameters
    ----------
    tolerance
        Height above the lowest sole, m, below which a sole comes into contact. It leaves contact
        at twice this height, so that noise does not toggle it.

    """

    def __init__(self, tolerance: float = 0.01) -> None:
        self.tolerance = tolerance
        self._in_contact: tuple[bool, ...] = ()

    def update(self, soles: Array) -> tuple[bool, ...]:
        """Return which of the soles (F, 3), m, in axes with z up, are in contact."""
        heights: list[float] = soles[:, 2].tolist()
        lowest = min(heights)
        enter = lowest + self.tolerance
        if max(heights) <= enter:
            self._in_contact = (True,) * len(heights)
            return self._in_contact
        leave = enter + self.tolerance
        before: Sequence[bool] = self._in_contact or (False,) * len(heights)
        self._in_contact = tuple([
            height <= (leave if touched else enter) for height, touched in zip(heights, before)])
        return self._in_contact
