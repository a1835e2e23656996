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
"""Sets of samples that several sources measured at the same instant, and samples at a rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
import math
from typing import Any, TypeVar

from biped_com_ros.core.constants import nanoseconds, NEVER_NS

APPROXIMATE_DEPTH = 16
"""How many samples of a source :class:`ApproximateSynchronizer` keeps."""

REFERENCE_DEPTH = 128
"""How many samples of a source :class:`ReferenceSynchronizer` keeps; it waits longer."""

_SAME_PERIOD_NS = 1000
_LONGEST_PERIOD = 1e9  # s

_T = TypeVar('_T')


class ApproximateSynchronizer:
    """
    Makes sets of one sample per source, all within half a period of the slowest source.

    A sample belongs to one set at most and the stamps of sets increase. Where a source is late,
    the samples of the others wait for it; where it has stopped, no set is made.

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
            deque(maxlen=APPROXIMATE_DEPTH) for _ in range(sources)]
        self._last_ns, self._periods = [0] * sources, [0.0] * sources

    def add(self, source: int, stamp_ns: int, sample: Any) -> bool:
        """
        Add a sample and return whether it completes a set, which then is :attr:`latest`.

        Parameters
        ----------
        source
            Index of the source.
        stamp_ns
            Time of the sample, ns.
        sample
            Any object.

        """
        queues = self._waiting
        if len(queues) == 1:
            self.latest = [sample]
            return True
        step = stamp_ns - self._last_ns[source]
        if abs(step - self._periods[source]) > _SAME_PERIOD_NS:
            self._update_period(source, step)
        self._last_ns[source] = stamp_ns
        queues[source].append((stamp_ns, sample))
        if not all(queues):
            return False
        if self._last_ns.count(stamp_ns) < len(queues):
            return self._complete(stamp_ns)
        # The newest samples of all sources have this stamp.
        self.latest = [waiting[-1][1] for waiting in queues]
        for waiting in queues:
            waiting.clear()
        return True

    def _update_period(self, source: int, step: int) -> None:
        if step < 0:  # the clock was set back
            for waiting in self._waiting:
                waiting.clear()
        elif self._last_ns[source]:
            period = self._periods[source]
            self._periods[source] = period + 0.1 * (step - period) if period else float(step)

    def _complete(self, stamp_ns: int) -> bool:
        """Try to complete a set of samples whose stamps differ."""
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

    The sets depend on the samples and their stamps alone, not on their order of arrival: a set
    waits until every source has a sample at least as late as that of the first source, so that no
    nearer one can follow. Where all stamps are equal, nothing waits longer than necessary.

    Parameters
    ----------
    tolerances_ns
        For each source after the first, the largest difference of the stamps; without a sample
        within it there is no set.
    optional
        For each of those sources, whether sets are made without it, with None in its place, where
        no sample is within the tolerance or the source has timed out.
    timeout_ns
        Time without samples of an optional source, by the stamps of the first one, after which
        sets no longer wait for it. Samples that arrive later than this are not used.

    """

    def __init__(self, tolerances_ns: Sequence[int], optional: Sequence[bool] = (),
                 timeout_ns: int = 100_000_000) -> None:
        count = 1 + len(tolerances_ns)
        self._optional = (False, *(optional or [False] * (count - 1)))
        self._timeout_ns = timeout_ns
        self._waiting: list[deque[tuple[int, Any]]] = [
            deque(maxlen=REFERENCE_DEPTH) for _ in range(count)]
        self._leading, *others = self._waiting
        self._others = list(zip(others, tolerances_ns, self._optional[1:]))
        self._last_ns = [NEVER_NS] * count
        self._first_ns = NEVER_NS
        self._awaited = 0

    def add(self, source: int, stamp_ns: int, sample: Any) -> Sequence[list[Any]]:
        """
        Add a sample and return the sets that it completes.

        Parameters
        ----------
        source
            Index of the source.
        stamp_ns
            Time of the sample, ns; a stamp that repeats is ignored.
        sample
            Any object.

        Returns
        -------
        sequence of list
            One sample of each source.

        """
        last = self._last_ns[source]
        if stamp_ns <= last:
            if stamp_ns == last:
                return ()
            self._restart()  # the clock was set back
        self._last_ns[source] = stamp_ns
        self._waiting[source].append((stamp_ns, sample))
        # Only a sample of the first source, or of the one that is waited for, can complete a set.
        if source and source != self._awaited:
            return ()
        leading, sets = self._leading, []
        while leading and self._is_decided(leading[0][0]):
            samples = self._complete(*leading.popleft())
            if samples is not None:
                sets.append(samples)
        return sets

    def _restart(self) -> None:
        for waiting in self._waiting:
            waiting.clear()
        self._last_ns = [NEVER_NS] * len(self._waiting)
        self._first_ns = NEVER_NS

    def _is_decided(self, ns: int) -> bool:
        """Return whether no source can still send a sample nearer to this time."""
        if min(self._last_ns) >= ns:
            return True
        if self._first_ns == NEVER_NS:
            self._first_ns = ns
        for source in range(len(self._last_ns)):
            if self._is_missing(source, ns):
                self._awaited = source
                return False
        return True

    def _is_missing(self, source: int, ns: int) -> bool:
        last = self._last_ns[source]
        if last >= ns:
            return False
        quiet_since_ns = self._first_ns if last == NEVER_NS else last
        return (not self._optional[source]
                or self._leading[-1][0] - quiet_since_ns < self._timeout_ns)

    def _complete(self, ns: int, sample: Any) -> list[Any] | None:
        """Return a sample of the first source with the nearest ones; None if one is missing."""
        samples = [sample]
        for waiting, tolerance, optional in self._others:
            while len(waiting) > 1 and waiting[1][0] <= ns:
                waiting.popleft()
            stamp, nearest = _nearest(waiting, ns) if waiting else (NEVER_NS, None)
            if abs(stamp - ns) <= tolerance:
                samples.append(nearest)
            elif optional:
                samples.append(None)
            else:
                return None
        return samples


def _nearest(waiting: deque[tuple[int, _T]], stamp_ns: int) -> tuple[int, _T]:
    """Return the (stamp, sample) nearest in time; of two as near, the later one."""
    return min(reversed(waiting), key=lambda entry: abs(entry[0] - stamp_ns))


class StampThrottle:
    """
    Decides by stamps which samples of a stream are used.

    Parameters
    ----------
    rate
        Hz; 0 lets nothing through.

    """

    def __init__(self, rate: float) -> None:
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Change the rate, Hz; 0 lets nothing through."""
        self._period_ns = nanoseconds(min(1.0 / rate, _LONGEST_PERIOD)) if rate > 0.0 else 0
        self._last_ns, self._next_ns = (0.0, 0.0) if rate > 0.0 else (-math.inf, math.inf)

    def is_due(self, stamp_ns: int) -> bool:
        """Return whether the sample with this stamp is let through."""
        # A stamp before the last one is let through as well: the clock was set back.
        if self._last_ns <= stamp_ns < self._next_ns:
            return False
        self._last_ns, self._next_ns = stamp_ns, stamp_ns + self._period_ns
        return True
