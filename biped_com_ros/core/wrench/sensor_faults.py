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
Sensors of contacts that stopped, froze or were turned, distinguished from lifted feet.

A lifted foot carries nothing, but then the others carry the weight. What contradicts that:

* A contact measures almost nothing, and the others do not carry the whole weight: its sensor is
  dead or turned, or something without sensors supports the robot (:class:`WeightBalance`).
* The contacts measure more than the weight for longer than a landing takes: a sensor froze with a
  load, or its gain is wrong.
* All six numbers of a reading repeat exactly, while the robot moves or the weight contradicts
  them: nothing arrives from the sensor any more (:class:`RepeatedReadings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.constants import LONGEST_STEP_NS, nanoseconds
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.settings import setting, Settings


#: Sum of the forces, as a share of body weight, below which the robot is in the air.
_AIR = 0.3
#: Share of the weight that sensors may measure too much.
_EXCESS = 0.35


@dataclass(frozen=True, kw_only=True)
class WeightBalanceSettings(Settings):
    """When measured forces contradict the weight."""

    missing: float = setting(
        0.25, 'Share of the body weight that may be missing while a foot on the ground measures '
        'almost nothing; if more is, its sensor counts as dead: wrench_aggregator withholds its '
        'wrench, gravity_compensation holds its efforts; 1: never', '', 0.01, 1.0,
        name='max_missing_weight')
    #: Force of a contact, as a share of body weight, below which it counts as lifted or dead.
    unloaded: float = 0.06
    #: How long so much of the weight may be missing, as while the robot moves down, s.
    missing_time: float = 0.05
    #: How long they may measure too much, as at a landing, s.
    excess_time: float = 0.3


class WeightBalance:
    """
    Compares the forces of all contacts with the weight.

    Parameters
    ----------
    names
        Of the contacts.
    body_weight
        N.
    settings
        When they contradict each other.

    Attributes
    ----------
    body_weight
        Of the robot, N; may be changed.
    doubtful
        Whether the last forces contradict the weight, however short.
    problem
        Problem, values, remedy once they did for long enough; else ''.
    suspect
        Index of the contact whose sensor is probably dead; -1 if none is.

    """

    def __init__(self, names: Sequence[str], body_weight: float,
                 settings: WeightBalanceSettings | None = None) -> None:
        self._names, self.body_weight = tuple(names), body_weight
        self.settings = settings or WeightBalanceSettings()
        self.reset()

    def reset(self) -> None:
        """Drop what came before."""
        self.doubtful, self.problem, self.suspect = False, '', -1
        self._since_ns: int | None = None
        self._is_missing = False

    def update(self, forces: Sequence[float], stamp_ns: int, others: float = 0.0) -> bool:
        """
        Compare the forces of one instant.

        Parameters
        ----------
        forces
            Of the contacts along gravity, K Python floats, N.
        stamp_ns
            Time, ns.
        others
            Force along gravity of hands that may be free, N.

        Returns
        -------
        bool
            :attr:`doubtful`.

        """
        settings, total, least = self.settings, sum(forces) + others, min(forces)
        missing = (least < settings.unloaded * self.body_weight and _AIR * self.body_weight
                   < total < (1.0 - settings.missing) * self.body_weight)
        self.doubtful = missing or total > (1.0 + _EXCESS) * self.body_weight
        if not self.doubtful:
            self._since_ns, self.problem, self.suspect = None, '', -1
            return False
        since = self._since_ns
        if since is None or missing != self._is_missing or stamp_ns < since:
            self._since_ns = since = stamp_ns
        self._is_missing = missing
        if stamp_ns - since >= 1e9 * (settings.missing_time if missing else settings.excess_time):
            self.suspect = forces.index(least) if missing else -1
            self.problem = self._describe(forces, total, missing)
        return True

    def _describe(self, forces: Sequence[float], total: float, missing: bool) -> str:
        shares = ', '.join(f"'{name}' {force:.1f} N" for name, force in zip(self._names, forces))
        known = f'{shares}; together {100.0 * total / self.body_weight:.0f} % of the weight'
        if missing:
            return (f"the sensor of '{self._names[self.suspect]}' is dead or turned, or something "
                    f'without sensors supports the robot ({known}): check its power, cable and '
                    'mounting')
        return (f'contacts measure more than the weight ({known}): a sensor froze, or its gain or '
                'its offset is wrong; check the drivers, then tare')


#: Time after which a reading counts as repeated, ns.
_REPEATED_NS = nanoseconds(0.1)


class RepeatedReadings:
    """
    Detects that a sensor repeats one reading.

    Attributes
    ----------
    is_repeated
        Whether all its numbers have been the same for 0.1 s.
    since_ns
        Time of the first of the equal readings, ns.

    """

    def __init__(self) -> None:
        self._last, self.since_ns = b'', 0
        self._newest_ns, self.is_repeated = 0, False

    def update(self, reading: Array, stamp_ns: int) -> bool:
        """Add a reading (6,) of a time, ns, and return :attr:`is_repeated`."""
        content = reading.tobytes()
        gap = not 0 <= stamp_ns - self._newest_ns < LONGEST_STEP_NS
        self._newest_ns = stamp_ns
        if content != self._last or gap:
            self._last, self.since_ns = content, stamp_ns
        self.is_repeated = stamp_ns - self.since_ns >= _REPEATED_NS
        return self.is_repeated
