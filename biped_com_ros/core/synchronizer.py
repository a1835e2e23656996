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
"""Brings together what several sources measured at the same instant, in whatever order."""

from __future__ import annotations

from collections import deque

from biped_com_ros.core.pose import Array
import numpy as np

DEPTH = 16
"""How many samples of a source are kept while they wait for those of the others."""


class Synchronizer:
    """
    Makes sets of one sample per source, all within half a period of the slowest source.

    A sample belongs to one set at most and sets never go back in time. Where a source is late,
    the others' samples wait for it; where it is dead, no set is made.

    Parameters
    ----------
    sources
        Number of sources.
    width
        Length of a sample.

    """

    def __init__(self, sources: int, width: int) -> None:
        self._values = np.zeros((DEPTH, sources, width))
        self._set = np.zeros((sources, width))
        self._waiting: list[deque[tuple[int, int]]] = [
            deque(maxlen=DEPTH) for _ in range(sources)]
        self._slots, self._last_ns = [0] * sources, [0] * sources
        self._periods = [0.0] * sources

    @property
    def latest(self) -> Array:
        """Return the last set, shape (sources, width); the same array every time."""
        return self._set

    def add(self, source: int, stamp_ns: int, sample: Array) -> bool:
        """
        Take a sample.

        Parameters
        ----------
        source
            Who measured it.
        stamp_ns
            When.
        sample
            Shape (width,); copied.

        Returns
        -------
        bool
            Whether it completed a set, which then is :attr:`latest`.

        """
        if len(self._slots) == 1:
            self._set[0] = sample
            return True
        self._note_step(source, stamp_ns)
        slot = self._slots[source]
        self._slots[source] = (slot + 1) % DEPTH
        self._values[slot, source] = sample
        self._waiting[source].append((stamp_ns, slot))
        return self._complete(stamp_ns, 0.5 * max(self._periods))

    def _note_step(self, source: int, stamp_ns: int) -> None:
        last, self._last_ns[source] = self._last_ns[source], stamp_ns
        step = stamp_ns - last
        if step < 0:  # the clock was set anew
            for waiting in self._waiting:
                waiting.clear()
        elif last:
            period = self._periods[source]
            self._periods[source] = period + 0.1 * (step - period) if period else float(step)

    def _complete(self, stamp_ns: int, tolerance: float) -> bool:
        chosen = []
        for waiting in self._waiting:
            nearest = _nearest(waiting, stamp_ns)
            if nearest is None or abs(nearest[0] - stamp_ns) > tolerance:
                return False
            chosen.append(nearest)
        times = [stamp for stamp, _ in chosen]
        if max(times) - min(times) > tolerance:
            return False
        for source, (waiting, (stamp, slot)) in enumerate(zip(self._waiting, chosen)):
            self._set[source] = self._values[slot, source]
            while waiting and waiting[0][0] <= stamp:
                waiting.popleft()
        return True


def _nearest(waiting: deque[tuple[int, int]], stamp_ns: int) -> tuple[int, int] | None:
    """Return the (stamp, slot) nearest in time of a queue in order of time."""
    best = None
    for entry in reversed(waiting):
        if best is not None and abs(entry[0] - stamp_ns) >= abs(best[0] - stamp_ns):
            break
        best = entry
    return best
