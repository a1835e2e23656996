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
from typing import Any, NamedTuple

from biped_com_ros.core.constants import nanoseconds, NEVER_NS

MAX_AGE = 1.0
"""For how long samples wait for those of other sources unless something else is set, s."""
LONGEST_AGE = 5.0
"""The longest time for which samples wait, s: states of a robot need memory."""
TIMEOUT_NS = 100_000_000
"""Time after which an optional source is not waited for any more, ns."""

_SAME_PERIOD_NS = 1000
_LONGEST_PERIOD = 1e9  # s
#: The leading source changes to one whose period is this many times as long.
_SLOWER = 1.5


class SampleSet(NamedTuple):
    """
    Samples of the same instant.

    Attributes
    ----------
    stamp_ns
        Stamp of the sample of the leading source, ns.
    samples
        One of each source.

    """

    stamp_ns: int
    samples: list[Any]


class Synchronizer:
    """
    Makes sets of one sample per source that were measured at the same instant, by their stamps.

    A set is one sample of the source that leads, with the nearest sample of each other one. It is
    made as soon as none nearer can follow: where all stamps are equal, nothing waits. Sources may
    be late, at any rate, by the time for which samples are kept.

    With `tolerances_ns` the first source leads. Each of its samples makes a set, and sets depend
    on samples and stamps alone, not on their order of arrival. Without, the slowest source leads,
    half its period is the tolerance, and a sample belongs to one set at most; a source that is
    less than half its own period behind is not waited for.

    Parameters
    ----------
    sources
        Number of sources.
    max_age
        For how long samples are kept, by the stamps of their source, s; 0: :data:`MAX_AGE`.
    tolerances_ns
        For each source after the first, the largest difference of the stamps; without a sample
        within it there is no set. Empty: the slowest source leads.
    optional
        With tolerances, whether sets are made without each of these sources, with None in its
        place, where no sample is within the tolerance or the source has timed out.
    timeouts_ns
        Time since the last sample of each of these sources, by stamps, after which sets no longer
        wait for it: what is later is not used, so that it delays nothing else. Empty:
        :data:`TIMEOUT_NS`.

    Attributes
    ----------
    last_ns
        Stamp of the last sample of each source; :data:`NEVER_NS` without one.
    lateness_ns
        By how much the last sample of each source was behind the newest of all when it arrived.

    """

    def __init__(self, sources: int, max_age: float = MAX_AGE, *,
                 tolerances_ns: Sequence[int] = (), optional: Sequence[bool] = (),
                 timeouts_ns: Sequence[int] = ()) -> None:
        self._by_period, self._periods = not tolerances_ns, [0.0] * sources
        self.set_tolerances(tolerances_ns or [0] * (sources - 1))
        self._optional = [False, *(optional or [False] * (sources - 1))]
        self._timeouts_ns = [0, *(timeouts_ns or [TIMEOUT_NS] * (sources - 1))]
        #: By how much each source may be behind the leading one without being waited for, ns.
        self._slack = [0.0] * sources
        self._waiting: list[deque[tuple[int, Any]]] = [deque() for _ in range(sources)]
        self._leader = 0
        self.set_max_age(max_age)
        self.reset()

    def set_max_age(self, seconds: float) -> None:
        """Keep samples for another time, s; 0: :data:`MAX_AGE`; at most :data:`LONGEST_AGE`."""
        self._max_age_ns = nanoseconds(min(seconds or MAX_AGE, LONGEST_AGE))

    def set_tolerances(self, tolerances_ns: Sequence[int]) -> None:
        """Use other tolerances, ns, where there are some."""
        self._tolerances = [0, *tolerances_ns]

    def reset(self) -> None:
        """Drop all samples, as after the clock was set back; the periods are kept."""
        count = len(self._waiting)
        for waiting in self._waiting:
            waiting.clear()
        self.last_ns, self._newest_ns = [NEVER_NS] * count, NEVER_NS
        self._first_ns = NEVER_NS
        self.lateness_ns = [0] * count
        self._awaited = self._leader

    def describe_lateness(self, names: Sequence[str]) -> str:
        """Return :attr:`lateness` in words, by the names of the sources."""
        latest, seconds = self.lateness
        return f'{names[latest]} is {1e3 * seconds:.1f} ms behind the others'

    @property
    def lateness(self) -> tuple[int, float]:
        """Source whose last sample was the farthest behind the others, and by how much, s."""
        latest = max(range(len(self.lateness_ns)), key=self.lateness_ns.__getitem__)
        return latest, 1e-9 * self.lateness_ns[latest]

    def add(self, source: int, stamp_ns: int, sample: Any) -> Sequence[SampleSet]:
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

        """
        step = stamp_ns - self.last_ns[source]
        if step <= 0:
            if not step:
                return ()
            self.reset()  # the clock was set back
        elif self._by_period and abs(step - self._periods[source]) > _SAME_PERIOD_NS:
            self._update_period(source, step)
        self._keep(source, stamp_ns, sample)
        # Only a sample of the leading source, or of the one that is waited for, completes a set.
        if source != self._leader and source != self._awaited:
            return ()
        leading, sets = self._waiting[self._leader], []
        while leading and self._is_decided(leading[0][0]):
            complete = self._complete(*leading.popleft())
            if complete is not None:
                sets.append(complete)
        return sets

    def _update_period(self, source: int, step: int) -> None:
        """Measure the period of a source; the slowest one leads."""
        if self.last_ns[source] == NEVER_NS:
            return
        periods, before = self._periods, self._periods[source]
        step = min(step, self._max_age_ns)
        # A gap is not a period: a source becomes slower by a tenth per sample at most.
        periods[source] = before + 0.1 * (min(step, 2.0 * before) - before) if before else (
            float(step))
        slowest = max(range(len(periods)), key=periods.__getitem__)
        if periods[slowest] > _SLOWER * periods[self._leader]:
            self._leader = slowest
        self._slack = [0.5 * period for period in periods]
        self._tolerances = [round(max(self._slack))] * len(periods)

    def _keep(self, source: int, stamp_ns: int, sample: Any) -> None:
        waiting = self._waiting[source]
        waiting.append((stamp_ns, sample))
        while waiting[0][0] < stamp_ns - self._max_age_ns:
            waiting.popleft()
        last = self.last_ns
        last[source] = stamp_ns
        self._newest_ns = newest = max(stamp_ns, self._newest_ns)
        self.lateness_ns[source] = newest - stamp_ns

    def _is_decided(self, ns: int) -> bool:
        """Return whether no source can still send a sample nearer to this time."""
        if min(self.last_ns) >= ns:
            return True
        for source, (last, slack) in enumerate(zip(self.last_ns, self._slack)):
            if last + slack < ns and not self._has_timed_out(source, ns):
                self._awaited = source
                return False
        return True

    def _has_timed_out(self, source: int, ns: int) -> bool:
        """Return whether a source need not be waited for any more; `ns` is waiting."""
        if not self._optional[source]:
            return False
        if self._first_ns == NEVER_NS:
            self._first_ns = ns
        quiet_since_ns = max(self.last_ns[source], self._first_ns)
        return self.last_ns[self._leader] - quiet_since_ns >= self._timeouts_ns[source]

    def _complete(self, ns: int, sample: Any) -> SampleSet | None:
        """Return a sample of the leading source with the nearest ones; None if one is missing."""
        if self.last_ns.count(ns) == len(self.last_ns) and all(
                self._waiting[:self._leader] + self._waiting[self._leader + 1:]):
            # The usual case, and quickly decided: the newest of all are of this time.
            newest = [sample if source == self._leader else waiting[-1][1]
                      for source, waiting in enumerate(self._waiting)]
            if self._by_period:
                for waiting in self._waiting:
                    waiting.clear()
            return SampleSet(ns, newest)
        samples, stamps, leader = [], [], self._leader
        for source, (waiting, tolerance) in enumerate(zip(self._waiting, self._tolerances)):
            stamp, nearest = (ns, sample) if source == leader else _nearest(waiting, ns)
            if not -tolerance <= stamp - ns <= tolerance:
                if not self._optional[source]:
                    return None
                nearest = None
            samples.append(nearest)
            stamps.append(stamp)
        return SampleSet(ns, samples) if not self._by_period or self._use_once(stamps) else None

    def _use_once(self, stamps: Sequence[int]) -> bool:
        """Drop samples up to those of a set; return whether these are near enough together."""
        if max(stamps) - min(stamps) > self._tolerances[0]:
            return False
        for waiting, stamp in zip(self._waiting, stamps):
            while waiting and waiting[0][0] <= stamp:
                waiting.popleft()
        return True


def _nearest(waiting: deque[tuple[int, Any]], ns: int) -> tuple[int, Any]:
    """Return stamp and sample nearest in time, of two as near the later; drop older ones."""
    while len(waiting) > 1 and waiting[1][0] <= ns:
        waiting.popleft()
    if len(waiting) > 1 and waiting[1][0] - ns <= abs(waiting[0][0] - ns):
        return waiting[1]
    return waiting[0] if waiting else (NEVER_NS, None)


class StampThrottle:
    """
    Decides by stamps which samples of a stream are used.

    Those are let through that are nearest to the multiples of a period. So the mean rate is the
    one that is asked for, whatever the rate of the stream, and jitter of stamps changes nothing;
    a stream that is slower is let through whole.

    Parameters
    ----------
    rate
        Hz; 0 lets nothing through.

    """

    def __init__(self, rate: float) -> None:
        self._last_ns = self._due_ns = NEVER_NS
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Change the rate, Hz; 0 lets nothing through."""
        self._period_ns = nanoseconds(min(1.0 / rate, _LONGEST_PERIOD)) if rate > 0.0 else 0

    def is_due(self, stamp_ns: int) -> bool:
        """Return whether the sample with this stamp is let through."""
        period, step = self._period_ns, stamp_ns - self._last_ns
        self._last_ns = stamp_ns
        if not period:
            return False
        next_ns = self._due_ns + period
        # Of the samples around a multiple of the period the nearest one; any after a step back.
        if step >= 0 and stamp_ns + min(step, period) // 2 < next_ns:
            return False
        is_behind = step < 0 or next_ns + period <= stamp_ns
        self._due_ns = stamp_ns if is_behind else next_ns
        return True
