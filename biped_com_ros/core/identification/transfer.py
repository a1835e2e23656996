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
"""Moves the robot from pose to pose: along paths, and up and down its hoist."""

from __future__ import annotations

from collections.abc import Sequence
import enum
from typing import Protocol

from biped_com_ros.core.geometry.pose import Array
import numpy as np

HANGS, STANDS = 0.3, 0.8
"""Below the first share of the weight on its feet a robot hangs, above the second it stands."""

HOIST_SETTLING = 3.0
"""How long the weight must have been there before a hoist counts as done, s."""


class HoistMove(enum.Enum):
    """What a hoist does with the robot."""

    LIFT = 'lift'
    LOWER = 'lower'


Leg = Array | HoistMove
"""A path of joint positions (steps, n) in rad or m, or a move of the hoist."""


class RobotDriver(Protocol):
    """Executes trajectories and hoist moves on the robot."""

    @property
    def has_hoist(self) -> bool:
        """Whether the robot is lifted and lowered by a hoist; else by an operator."""

    @property
    def problem(self) -> str:
        """Why trajectories would not be executed, or ''."""

    def send(self, positions: Array, path: Array) -> float:
        """Send a path (steps, n) that begins at `positions` (n,); return its duration, s."""

    def request_hoist(self, move: HoistMove) -> str:
        """Request a move once, until `end_hoist`; return why it is not done, or ''."""

    def end_hoist(self) -> None:
        """Take the requested move as done."""


class Transfer:
    """
    Executes legs, one after the other.

    Parameters
    ----------
    driver
        Of the robot.

    Attributes
    ----------
    arrives_at
        Time at which the last path that was sent ends, s.
    lift_request, lower_request
        What an operator is asked to do where there is no hoist service.

    """

    def __init__(self, driver: RobotDriver) -> None:
        self._driver = driver
        self._legs: list[Leg] = []
        self._unreached_at = -np.inf
        self.arrives_at = 0.0
        self.lift_request = 'hoist the robot'
        self.lower_request = 'put the robot down on its feet'

    def begin(self, legs: Sequence[Leg]) -> None:
        """Execute these legs instead of those that are left."""
        self._legs = list(legs)

    def is_done(self, now: float) -> bool:
        """Whether all legs are executed at the time `now`, s."""
        return not self._legs and now >= self.arrives_at

    def update(self, now: float, positions: Array, load_share: float) -> str:
        """
        Begin the next leg when the one before is done.

        Parameters
        ----------
        now
            Time, s.
        positions
            Of the joints, (n,), rad or m; NaN where not measured.
        load_share
            Share of the robot's weight that its feet carry.

        Returns
        -------
        str
            What keeps the next leg from being begun, or ''.

        """
        if now < self.arrives_at or not self._legs:
            return ''
        leg = self._legs[0]
        if isinstance(leg, HoistMove):
            return self._update_hoist(leg, now, load_share)
        if self._driver.problem:
            return self._driver.problem
        if not np.isfinite(positions).all():
            return 'no joint states received; check the topic joint_states'
        self.arrives_at = now + self._driver.send(positions, leg)
        self._legs.pop(0)
        return ''

    def _update_hoist(self, move: HoistMove, now: float, load_share: float) -> str:
        problem, lift = self._driver.request_hoist(move), move is HoistMove.LIFT
        if not (load_share < HANGS if lift else load_share > STANDS):
            self._unreached_at = now
            by_hand = '' if self._driver.has_hoist else (
                self.lift_request if lift else self.lower_request)
            return problem or by_hand
        if now >= self._unreached_at + HOIST_SETTLING:
            self._driver.end_hoist()
            self._legs.pop(0)
        return ''
