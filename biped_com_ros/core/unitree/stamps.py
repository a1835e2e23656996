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
"""Stamps for messages that only have a counter of milliseconds."""

from __future__ import annotations

from biped_com_ros.core.constants import SECOND_NS

_WRAP = 2**32
_TICK_NS = 1_000_000
#: How fast the two clocks may drift apart.
_DRIFT = 2e-4
#: Part of a step by which stamps may lag behind, to approach a smaller delay.
_APPROACH = 0.5
#: Difference from the clock that means that one of the two was set, ns.
_JUMP_NS = SECOND_NS // 2
#: Number of steps of which the usual one is the median.
_FIRST = 20


class TickClock:
    """
    Converts a counter of milliseconds to the time of the computer.

    Messages arrive late by different times; the counter is even. A stamp is the counter plus the
    least difference from the time of arrival so far, which follows slowly where the two clocks
    drift apart. Stamps of a counter that goes up always go up, too.

    Attributes
    ----------
    restarts
        How often the counter went back, as after a restart of the robot.
    jumps
        How often one of the two clocks was set, or messages stopped for a while and then had
        another delay.
    lost
        Number of messages that are missing, by the usual step of the counter.

    """

    def __init__(self) -> None:
        self.restarts = self.jumps = self.lost = 0
        self._tick: int | None = None
        self._elapsed_ns = self._offset_ns = 0
        self._usual = 0.0
        self._first: list[int] = []

    def stamp(self, tick: int, arrival_ns: int) -> int | None:
        """
        Return the stamp of a message in ns; None if its counter is that of the message before.

        Parameters
        ----------
        tick
            The counter, ms, which wraps at 2^32.
        arrival_ns
            When the message arrived.

        """
        if self._tick is None:
            return self._restart(tick, arrival_ns)
        step = (tick - self._tick) % _WRAP
        if step == 0:
            return None
        if step > _WRAP // 2:
            self.restarts += 1
            return self._restart(tick, arrival_ns)
        self._tick, elapsed = tick, step * _TICK_NS
        self._elapsed_ns += elapsed
        self._count_lost(step)
        ahead = arrival_ns - self._elapsed_ns - self._offset_ns
        if abs(ahead) > _JUMP_NS:
            self.jumps += 1
            self._offset_ns += ahead
        else:
            self._offset_ns += max(min(ahead, round(_DRIFT * elapsed)),
                                   -round(_APPROACH * elapsed))
        return self._elapsed_ns + self._offset_ns

    def _restart(self, tick: int, arrival_ns: int) -> int:
        self._tick, self._elapsed_ns, self._offset_ns = tick, 0, arrival_ns
        self._usual, self._first = 0.0, []
        return arrival_ns

    def _count_lost(self, step: int) -> None:
        """Count missing messages by the usual step: the median of the first ones, then a mean."""
        if not self._usual:
            self._first.append(step)
            if len(self._first) == _FIRST:
                self._usual = float(sorted(self._first)[_FIRST // 2])
            return
        self.lost += max(int(step / self._usual + 0.25) - 1, 0)
        self._usual += 0.01 * (min(float(step), 1.5 * self._usual) - self._usual)
