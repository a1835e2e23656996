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
Keeps tendons from going slack, and detects the slack and the broken ones.

A sudden load takes the tension from a tendon long before the load has been estimated. Raising the
tension of all tendons helps at once.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from operator import mul

from biped_com_ros.core.torso.constant_curvature import Backbone
from biped_com_ros.core.torso.options import ControllerOptions

RISE_TIME, DECAY_RATE = 0.02, 2.5
"""
Time in which the level rises by the missing tension, s, and rate at which it falls again, N/s.

Tendons tighten as soon as their drives pull; only the measurement is late. Each 0.02 s of delay
raises the tensions by once more the missing tension. Since rising and falling differ, nothing
oscillates.
"""

#: Times without tension after which a tendon is slack, and after which it is broken, s.
_SLACK_TIME, _BROKEN_TIME = 0.05, 1.0

TRIM_RATE = 4.0
"""Rate at which measured tensions without a moment are brought to the expected ones, 1/s."""


class SlackPrevention:
    """
    Additional tensions that keep all tendons taut.

    Attributes
    ----------
    level
        By how much the minimum tension is raised, N: rises while a measured tension is below its
        limit.
    trim
        Corrections of all tendons, N. They bring that part of the tensions that produces no
        moment to its expected value; otherwise an error of the modelled elongation or pretension
        could make all tendons slack.

    """

    def __init__(self, backbone: Backbone, options: ControllerOptions) -> None:
        self.backbone, self.options = backbone, options
        self.reset()

    def reset(self) -> None:
        """Add no tension."""
        self.level, self.trim = 0.0, [0.0] * self.backbone.count

    def update(self, dt: float, measured: Sequence[float]) -> None:
        """Update the level by the measured tensions of all tendons, N."""
        limits = self.options.tensions
        missing = limits.lowest - min(measured)
        rate = missing / RISE_TIME if missing > 0.0 else -DECAY_RATE
        largest = 0.5 * (limits.highest - self.options.co_contraction)
        self.level = min(max(self.level + rate * dt, 0.0), largest)

    def update_trim(self, dt: float, expected: Sequence[float], measured: Sequence[float]) -> None:
        """Update the trim by expected and measured tensions of all tendons, N."""
        differences = [e - m for e, m in zip(expected, measured)]
        share, pull = min(1.0, TRIM_RATE * dt), self.backbone.pull(differences)
        trim = [t + share * (difference - (own * pull).real)
                for t, difference, own in zip(self.trim, differences, self.backbone.shares)]
        largest, size = self.options.tensions.highest, math.sqrt(sum(map(mul, trim, trim)))
        self.trim = [t * (largest / size) for t in trim] if size > largest else trim


class SlackDetector:
    """
    Detects tendons without tension.

    Attributes
    ----------
    slack, broken
        Indices of the tendons without tension for so long.

    """

    def __init__(self, options: ControllerOptions, count: int) -> None:
        self.options, self._count = options, count
        self.reset()

    def reset(self) -> None:
        """Assume all tendons to be taut."""
        self._loose_for = [0.0] * self._count
        self.slack: tuple[int, ...] = ()
        self.broken: tuple[int, ...] = ()

    @property
    def are_all_taut(self) -> bool:
        """Whether no tendon is loose, for however short a time."""
        return not any(self._loose_for)

    @property
    def problem(self) -> str:
        """Describe which tendons are slack or broken; '' if none."""
        if self.broken:
            return (f'tendon {", ".join(map(str, self.broken))} stays without tension: the tendon '
                    'or its sensor is broken; holding the torso')
        if self.slack:
            return (f'tendon {", ".join(map(str, self.slack))} is slack; raising all tensions')
        return ''

    def update(self, dt: float, tensions: Sequence[float]) -> None:
        """Update by the measured tensions of all tendons, N; `dt` since the last update, s."""
        least = self.options.slack_tension
        self._loose_for = [time + dt if tension < least else 0.0
                           for time, tension in zip(self._loose_for, tensions)]
        self.slack = self._loose_longer_than(_SLACK_TIME)
        self.broken = self._loose_longer_than(_BROKEN_TIME)

    def _loose_longer_than(self, limit: float) -> tuple[int, ...]:
        return tuple(i for i, time in enumerate(self._loose_for) if time > limit)
