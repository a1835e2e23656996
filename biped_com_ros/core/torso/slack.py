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
Tendons that are to stay taut, and which do not.

A load that appears at once takes the tension from a tendon long before anything has been learnt of
the load. What helps at once is to pull all of them more.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from operator import mul

from biped_com_ros.core.torso.constant_curvature import Backbone
from biped_com_ros.core.torso.options import ControllerOptions

GUARD_TIME, GUARD_DECAY = 0.02, 2.5
"""
Time in which the least tension rises by what is missing, s; how fast it falls again, N/s.

Tendons tighten as soon as their drives pull: what comes late is only the measurement. Each 0.02 s
of delay raise the tensions by once more what was missing, and nothing sways, since rising and
falling differ.
"""

TRIM_RATE = 4.0
"""How fast tensions that cancel one another are brought to what is expected, 1/s."""


class SlackPrevention:
    """
    What is pulled in addition so that all tendons stay taut.

    Attributes
    ----------
    level
        By how much the least tension is raised, at once when a measured one falls below its limit,
        N.
    trim
        What tensions do among themselves, without a moment, is held to what was expected of them:
        an elongation or a pretension that the model has wrong would let all of them go loose. Of
        all tendons, N.

    """

    def __init__(self, backbone: Backbone, options: ControllerOptions) -> None:
        self.backbone, self.options = backbone, options
        self.reset()

    def reset(self) -> None:
        """Pull no more than was asked for."""
        self.level, self.trim = 0.0, [0.0] * self.backbone.count

    def update(self, dt: float, measured: Sequence[float]) -> None:
        """Raise or lower the level by measured tensions of all tendons, N."""
        limits = self.options.tensions
        missing = limits.lowest - min(measured)
        rate = missing / GUARD_TIME if missing > 0.0 else -GUARD_DECAY
        most = 0.5 * (limits.highest - self.options.co_contraction)
        self.level = min(max(self.level + rate * dt, 0.0), most)

    def learn(self, dt: float, expected: Sequence[float], measured: Sequence[float]) -> None:
        """Trim by expected and measured tensions of all tendons, N; what has a moment is not."""
        apart, share = [e - m for e, m in zip(expected, measured)], min(1.0, TRIM_RATE * dt)
        pull = self.backbone.pull(apart)
        trim = [t + share * (difference - (own * pull).real)
                for t, difference, own in zip(self.trim, apart, self.backbone.shares)]
        most, square = self.options.tensions.highest, sum(map(mul, trim, trim))
        if square > most * most:
            trim = [t * (most / math.sqrt(square)) for t in trim]
        self.trim = trim


class SlackDetector:
    """
    Which tendons hang loose.

    Attributes
    ----------
    slack, broken
        Indices of the tendons without tension for a while, and for so long that pulling more did
        not help.

    """

    def __init__(self, options: ControllerOptions, count: int) -> None:
        self.options, self._count = options, count
        self.reset()

    def reset(self) -> None:
        """Take all tendons for taut."""
        self._loose_for, self._is_any_loose = [0.0] * self._count, False
        self.slack: tuple[int, ...] = ()
        self.broken: tuple[int, ...] = ()

    @property
    def are_all_taut(self) -> bool:
        """Whether no tendon is loose, for however short a time."""
        return not self._is_any_loose

    @property
    def problem(self) -> str:
        """Return what is wrong, in words."""
        if self.broken:
            return (f'tendon {", ".join(map(str, self.broken))} stays without tension: broken, or '
                    'its sensor is; holding')
        if self.slack:
            return f'tendon {", ".join(map(str, self.slack))} is slack; pulling all more'
        return ''

    def update(self, dt: float, tensions: Sequence[float]) -> None:
        """Take the tensions of all tendons, N."""
        least = self.options.slack_tension
        if not self._is_any_loose and min(tensions) >= least:
            return
        self._loose_for = [time + dt if tension < least else 0.0
                           for time, tension in zip(self._loose_for, tensions)]
        self._is_any_loose = max(self._loose_for) > 0.0
        self.slack = self._loose_longer_than(self.options.slack_time)
        self.broken = self._loose_longer_than(self.options.broken_time)

    def _loose_longer_than(self, limit: float) -> tuple[int, ...]:
        return tuple(i for i, time in enumerate(self._loose_for) if time > limit)
