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

from biped_com_ros.core.constants import NEVER_NS
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

DEPTH = 16
"""How many samples of a source are kept while they wait for those of the others."""
_LONG_DEPTH = 128
"""The same for :class:`ReferenceSynchronizer`, which waits longer."""
#: By so little a step may differ from the mean one without being noted.
_NEGLIGIBLE_NS = 1000

_T = TypeVar('_T')


class ApproximateSynchronizer:
    """
    Makes sets of one sample per source, all within half a period of the slowest source.

    A sample belongs to one set at most and sets never go back in time. Where a source is late,
    the others' samples wait for it; where it is dead, no set is made.

    Parameters
    ----------
    sources
        Number of sources.

    Attributes
    ----------
    latest : list
        The samples of the last set.

    """

    def __init__(self, sources: int) -> None:
        self.latest: list[Any] = []
        self._waiting: list[deque[tuple[int, Any]]] = [
            deque(maxlen=DEPTH) for _ in range(sources)]
        self._last_ns, self._periods = [0] * sources, [0.0] * sources

    def add(self, source: int, stamp_ns: int, sample: Any) -> bool:
        """
        Take a sample.

        Parameters
        ----------
        source
            Who measured it.
        stamp_ns
            When.
        sample
            What; kept as it is.

        Returns
        -------
        bool
            Whether it completed a set, which then is :attr:`latest`.

        """
        everybody = self._waiting
        if len(everybody) == 1:
            self.latest = [sample]
            return True
        step = stamp_ns - self._last_ns[source]
        if not -_NEGLIGIBLE_NS < step - self._periods[source] < _NEGLIGIBLE_NS:
            self._note_step(source, step)
        self._last_ns[source] = stamp_ns
        everybody[source].append((stamp_ns, sample))
        if not all(everybody):
            return False
        if self._last_ns.count(stamp_ns) < len(everybody):
            return self._complete(stamp_ns)
        # The newest samples of all are of this very time.
        self.latest = [waiting[-1][1] for waiting in everybody]
        for waiting in everybody:
            waiting.clear()
        return True

    def _note_step(self, source: int, step: int) -> None:
        if step < 0:  # the clock was set anew
            for waiting in self._waiting:
                waiting.clear()
        elif self._last_ns[source]:
            period = self._periods[source]
            self._periods[source] = period + 0.1 * (step - period) if period else float(step)

    def _complete(self, stamp_ns: int) -> bool:
        """Complete a set of samples that are not of one time."""
        tolerance, chosen = 0.5 * max(self._periods), []
        for waiting in self._waiting:
            nearest = _nearest(waiting, stamp_ns)
            if abs(nearest[0] - stamp_ns) > tolerance:
                return False
            chosen.append(nearest)
        times = [stamp for stamp, _ in chosen]
        if max(times) - min(times) > tolerance:
            return False
        self.latest = [sample for _, sample in chosen]
        for waiting, stamp in zip(self._waiting, times):
            while waiting and waiting[0][0] <= stamp:
                waiting.popleft()
        return True


class ReferenceSynchronizer:
    """
    Makes one set per sample of the first source, of the nearest samples of the others.

    Which sets there are depends on the samples and their stamps alone, not on the order in which
    sources happen to arrive: a set waits until every source has a sample as late as its first one,
    so that none nearer can come. Where all stamp alike, nothing waits longer than it has to.

    Parameters
    ----------
    tolerances_ns
        For each source after the first, how far from it a sample may be; there is no set where
        none is so near.
    optional
        For each of those sources, whether sets are made without it, with None in its place, where
        it is too far or has been silent.
    patience_ns
        For how long an optional source has to have been silent while the first one went on. One
        that arrives later than this is missed.

    """

    def __init__(self, tolerances_ns: Sequence[int], optional: Sequence[bool] = (),
                 patience_ns: int = 100_000_000) -> None:
        count = 1 + len(tolerances_ns)
        self._optional = (False, *(optional or [False] * (count - 1)))
        self._patience = patience_ns
        self._waiting: list[deque[tuple[int, Any]]] = [
            deque(maxlen=_LONG_DEPTH) for _ in range(count)]
        self._leading, *others = self._waiting
        self._others = list(zip(others, tolerances_ns, self._optional[1:]))
        self._last_ns = [NEVER_NS] * count
        self._first_ns = NEVER_NS
        self._awaited = 0

    def add(self, source: int, stamp_ns: int, sample: Any) -> Sequence[list[Any]]:
        """
        Take a sample and return the sets that are complete by it.

        Parameters
        ----------
        source
            Who measured it.
        stamp_ns
            When.
        sample
            What; kept as it is.

        Returns
        -------
        sequence of list
            One sample of each source.

        """
        last = self._last_ns[source]
        if stamp_ns <= last:
            if stamp_ns == last:
                return ()
            self._start_anew()  # the clock was set
        self._last_ns[source] = stamp_ns
        self._waiting[source].append((stamp_ns, sample))
        # Only the first source itself, or what was waited for, can decide anything.
        if source and source != self._awaited:
            return ()
        leading, sets = self._leading, []
        while leading and self._is_decided(leading[0][0]):
            found = self._complete(*leading.popleft())
            if found is not None:
                sets.append(found)
        return sets

    def _start_anew(self) -> None:
        for waiting in self._waiting:
            waiting.clear()
        self._last_ns = [NEVER_NS] * len(self._waiting)
        self._first_ns = NEVER_NS

    def _is_decided(self, ns: int) -> bool:
        """Tell whether no source can still send a sample nearer to this time."""
        if min(self._last_ns) >= ns:
            return True
        if self._first_ns == NEVER_NS:
            self._first_ns = ns
        if self._is_missing(self._awaited, ns):  # mostly it is the same one that comes last
            return False
        for source in range(len(self._last_ns)):
            if self._is_missing(source, ns):
                self._awaited = source
                return False
        return True

    def _is_missing(self, source: int, ns: int) -> bool:
        last = self._last_ns[source]
        if last >= ns:
            return False
        silent_since = self._first_ns if last == NEVER_NS else last
        return (not self._optional[source]
                or self._leading[-1][0] - silent_since < self._patience)

    def _complete(self, ns: int, sample: Any) -> list[Any] | None:
        """Return it with the other sources' nearest samples; None if one is missing."""
        found = [sample]
        for waiting, tolerance, optional in self._others:
            while len(waiting) > 1 and waiting[1][0] <= ns:
                waiting.popleft()
            if waiting and waiting[0][0] == ns:  # mostly
                found.append(waiting[0][1])
                continue
            stamp, nearest = _nearest(waiting, ns) if waiting else (NEVER_NS, None)
            if abs(stamp - ns) <= tolerance:
                found.append(nearest)
            elif optional:
                found.append(None)
            else:
                return None
        return found


def _nearest(waiting: deque[tuple[int, _T]], stamp_ns: int) -> tuple[int, _T]:
    """Return the (stamp, sample) nearest in time; of two as near, the later one."""
    return min(reversed(waiting), key=lambda entry: abs(entry[0] - stamp_ns))
