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
Puts joint states together, of one publisher or several.

The general way, of `JointStateReader`, is joint by joint. While all goes its usual way, a
`Routine` does the same with a few operations per message.
"""

from __future__ import annotations

from collections.abc import Sequence
import time
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.message_reader import (
    ReadSpec, quoted, read_only, RefusedMessage, Source, StampedReader)
import numpy as np

_OPTIONAL = ('velocity', 'effort')
_FIELDS = ('position', *_OPTIONAL)
_MAX_SOURCES = 32
_NOBODY = -1
_INFINITY = float('inf')

#: Least and largest position of a joint that has no limits.
_UNLIMITED = (-_INFINITY, _INFINITY)
#: Joints that moved by less, as a share of the shortest range, are not looked at again.
_LEEWAY = 0.05
#: How far a part of the robot is carried on by its velocities, s: further, it may have stopped.
_FARTHEST = 0.1
#: After how many messages it is tried again whether a routine would do.
_TRY_AGAIN = 20


class JointSource(Source):
    """What the JointState messages of one structure contribute."""

    def __init__(self, message: Any, joint_indices: dict[str, int], n_required: int,
                 number: int, limits: np.ndarray) -> None:
        columns = {joint_indices[name]: column for column, name in enumerate(message.name)
                   if name in joint_indices}
        self.number = number
        #: Indices of the joints, ascending, and where they are in the message.
        self.targets = np.array(sorted(columns), np.intp)
        self.columns = [columns[target] for target in self.targets.tolist()]
        self.problem = _problem(message, joint_indices)
        self.fields = [] if self.problem else [
            field for field in _FIELDS if len(getattr(message, field))]
        super().__init__()
        self.flat = np.zeros(len(self.fields) * len(self.columns))
        #: The same values, a row per field.
        self.values = self.flat.reshape(len(self.fields), len(self.columns))
        self.n_required = np.count_nonzero(self.targets < n_required)
        self.has_required = self.n_required == n_required
        #: How far positions may go, (2, k); where they were when that was looked at last; and the
        #: squared distance from there at which it is time to look again.
        self.limits = least, most = limits[:, self.targets]
        self.looked = np.full(len(self.targets), np.nan)
        self.leeway = (_LEEWAY * (most - least).min(initial=_INFINITY)) ** 2

    def paths(self) -> list[codec.Path]:
        """Where the values are in the message."""
        return [(field, column) for field in self.fields for column in self.columns]


def _problem(message: Any, wanted: dict[str, int]) -> RefusedMessage | None:
    """Return why no message built like this one can be used."""
    names = list(message.name)
    counts = {name: names.count(name) for name in set(names) & set(wanted)}
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        return RefusedMessage('duplicate joints', f'names joint {quoted(twice)} more than once')
    for field in _FIELDS:
        n = len(getattr(message, field))
        if n != len(names) and (n or field == 'position'):
            return RefusedMessage('malformed', f'has {len(names)} names but {n} values of {field}')
    if not counts:
        return RefusedMessage('no known joint', (
            f'has none of the joints {quoted(wanted)}; it has '
            + (quoted(names) or 'no joints at all')))
    return None


class _Part:
    """What a routine keeps of a source beside the leader."""

    def __init__(self, source: JointSource, told: np.ndarray, carried: np.ndarray,
                 moves: bool) -> None:
        self.n_required = source.n_required
        self.told, self.told_ns, self._carried = told, source.last_ns, carried
        told[...] = source.flat
        rows = told.reshape(source.values.shape)
        self._positions = rows[0]
        self._velocities = rows[source.fields.index('velocity')] if moves else None

    def bring_to(self, ns: int) -> None:
        """Carry the positions on, or back, to a stamp by measured velocities."""
        lag_ns = ns - self.told_ns
        if not lag_ns or self._velocities is None:
            self._carried[...] = self._positions
            return
        lag = min(max(lag_ns / SECOND_NS, -_FARTHEST), _FARTHEST)
        np.multiply(self._velocities, lag, self._carried)
        self._carried += self._positions


class Routine:
    """
    Putting the same parts together again and again, as the general way would.

    Holds while each joint is told by one source, which measures what it did, and the leader stays
    the leader.

    Parameters
    ----------
    leader
        At whose stamps the parts are put together.
    others
        The other sources.
    measured
        Which of 'velocity' and 'effort' is measured of each joint.
    values
        Where to, (3, n): positions, velocities, efforts. What nobody tells is zero.
    last_positions
        Those of the last time, (n,), for the velocities that are not measured.
    timeout
        After how many seconds a part is dead.

    """

    def __init__(self, leader: JointSource, others: Sequence[JointSource],
                 measured: dict[str, np.ndarray], values: np.ndarray, last_positions: np.ndarray,
                 timeout: float) -> None:
        self.leader, self._values = leader, values
        self._patience, self._limit_ns = timeout * SECOND_NS, nanoseconds(timeout)
        #: Where the value of each joint and field is in `told`: first of all a zero.
        self._indices = np.zeros(values.shape, np.intp)
        self._told = np.zeros(1 + len(leader.flat) + sum(
            len(part.flat) + len(part.targets) for part in others))
        #: Rows of NaN: a number in them would be news.
        self._unmeasured: dict[JointSource, list[np.ndarray]] = {}
        self._leaders = self._index(leader, measured, 1)
        self.parts = self._lay_out(others, measured, 1 + len(leader.flat))
        self._needed = [part for part in self.parts.values() if part.n_required]
        self._unknown: Any = _as_slice(np.flatnonzero(~measured['velocity']))
        self._differenced: tuple[np.ndarray, ...] = values[0], values[1], last_positions
        if isinstance(self._unknown, slice):  # neighbours, as those of a torso are: views will do
            self._differenced = tuple(row[self._unknown] for row in self._differenced)
            self._unknown = ...
        self._is_whole = np.array_equal(
            self._indices, 1 + np.arange(values.size).reshape(values.shape))

    def _lay_out(self, others: Sequence[JointSource], measured: dict[str, np.ndarray],
                 at: int) -> dict[JointSource, _Part]:
        parts = {}
        for source in others:
            told = self._index(source, measured, at)
            at += len(told)
            carried = self._told[at:at + len(source.targets)]
            self._indices[0, source.targets] = np.arange(at, at + len(carried))
            at += len(carried)
            moves = bool(measured['velocity'][source.targets].all())
            parts[source] = _Part(source, told, carried, moves)
        return parts

    def _index(self, source: JointSource, measured: dict[str, np.ndarray],
               at: int) -> np.ndarray:
        """Say where the values of a source begin, row by row, and return that place."""
        count = len(source.targets)
        self._unmeasured[source] = []
        for row, field in enumerate(source.fields):
            if field in measured and not measured[field][source.targets].all():
                self._unmeasured[source].append(source.values[row])
                continue
            first = at + row * count
            self._indices[_FIELDS.index(field), source.targets] = np.arange(first, first + count)
        return self._told[at:at + len(source.flat)]

    def holds_for(self, source: JointSource, ns: int) -> bool:
        """Tell whether a good message of a source at a stamp is nothing new."""
        if source is self.leader:
            for part in self._needed:
                if part.told_ns < ns - self._limit_ns:
                    return False
        elif source not in self.parts or ns - self.leader.last_ns > self._patience:
            return False
        for values in self._unmeasured[source]:
            if values.dot(values) < _INFINITY:
                return False
        return True

    def take(self, source: JointSource, ns: int, last_ns: int) -> bool:
        """
        Take what a source tells at a stamp.

        Returns
        -------
        bool
            Whether all was put together by it, as it was at `last_ns` for the last time.

        """
        if source is not self.leader:
            part = self.parts[source]
            part.told[...], part.told_ns = source.flat, ns
            return False
        if self._is_whole:
            self._values[...] = source.values
            return True
        self._leaders[...] = source.flat
        for part in self.parts.values():
            part.bring_to(ns)
        self._told.take(self._indices, None, self._values, 'clip')
        if self._unknown is not None:
            self._difference((ns - last_ns) / SECOND_NS)
        return True

    def _difference(self, dt: float) -> None:
        """Make velocities of what is not measured."""
        unknown = self._unknown
        positions, velocities, last_positions = self._differenced
        now = positions[unknown]
        velocities[unknown] = (now - last_positions[unknown]) / dt
        last_positions[unknown] = now


def _as_slice(indices: np.ndarray) -> slice | np.ndarray | None:
    """Return what selects these ascending indices at the least cost; None if there is none."""
    if not len(indices):
        return None
    first, last = int(indices[0]), int(indices[-1])
    return slice(first, last + 1) if last - first + 1 == len(indices) else indices


class JointStateReader(StampedReader):
    """JointState in a fixed order; the order names the joints, how many must be, the timeout."""

    def __init__(self, spec: ReadSpec) -> None:
        self._names, self._n_required, self._timeout, *limits = spec.what
        n = len(self._names)
        self._limits = np.array(limits[0] if limits and limits[0] else [_UNLIMITED] * n).T
        self._indices = {name: i for i, name in enumerate(self._names)}
        self._values = np.zeros((3, n))
        self._positions, self._velocities, _ = self._values
        self._optional_values = dict(zip(_OPTIONAL, self._values[1:]))
        #: Which are measured now, and which ever were: NaN in those is an error.
        self._measured = {field: np.zeros(n, bool) for field in _OPTIONAL}
        self._ever_measured = {field: np.zeros(n, bool) for field in _OPTIONAL}
        self._all_measured: dict[str, bool] = {}
        self._sources: dict[Any, JointSource] = {}
        #: Those that tell all joints which have to be there.
        self._whole: set[JointSource] = set()
        self._numbered = 0
        self._first_arrival: float | None = None
        self._routine: Routine | None = None
        self._last_ns = NEVER_NS
        self._forget()
        super().__init__(spec)
        self._limit = spec.largest ** 2
        self.arguments = tuple(map(read_only, self._values))

    def measures(self, field: str) -> bool:
        """Tell whether 'velocity' or 'effort' of all joints is measured."""
        if field not in self._all_measured:
            self._all_measured[field] = bool(self._measured[field].all())
        return self._all_measured[field]

    def _forget(self) -> None:
        self._end_routine()
        n = len(self._names)
        self._leader: JointSource | None = None
        self._updated_ns = np.full(n, NEVER_NS)
        #: Which source told each joint last.
        self._tellers = np.full(n, _NOBODY)
        #: Positions as told, at the stamps of their own messages.
        self._told = np.zeros(n)
        self._last_positions = np.zeros(n)
        self._last_ns = NEVER_NS
        self._try_at = 0
        for source in self._sources.values():
            source.last_ns = NEVER_NS

    def _select(self, message: Any) -> codec.Selection:
        key = (tuple(message.name), len(message.position), len(message.velocity),
               len(message.effort))
        source = self._sources.get(key)
        if source is None:
            if len(self._sources) >= _MAX_SOURCES:
                self._whole.discard(self._sources.pop(next(iter(self._sources))))
            source = JointSource(
                message, self._indices, self._n_required, self._numbered, self._limits)
            self._sources[key] = source
            self._numbered += 1
        return codec.Selection(source.paths(), source)

    def _examine_structure(self, source: JointSource) -> None:
        if source.problem is not None:
            # On a shared topic, other devices' messages are nothing to talk about.
            other = source.problem.reason == 'no known joint' and self.count
            raise RefusedMessage(source.problem.reason, '' if other else source.problem.details)
        if source.has_required:
            # Two publishers of the whole robot must not make time go back and forth.
            source.last_ns = max(source.last_ns, self._last_ns)
            self._whole.add(source)

    def _examine_values(self, source: JointSource) -> None:
        """Raise RefusedMessage if values are not finite, unless that is harmless, or too large."""
        for row, field in enumerate(source.fields):
            values = source.values[row]
            bad = ~np.isfinite(values)
            if field in _OPTIONAL and not self._ever_measured[field][source.targets[bad]].any():
                bad = np.isinf(values)
            if bad.any():
                names = [f"'{self._names[i]}' = {value}" for i, value in
                         zip(source.targets[bad], values[bad])]
                raise RefusedMessage('not finite', f'{field} of {", ".join(names[:5])}')
            self._examine_sizes(
                [f"{field} of '{self._names[i]}'" for i in source.targets], values.tolist())

    def _examine_positions(self, source: JointSource) -> None:
        """Raise RefusedMessage if joints are where they cannot be."""
        positions, (least, most) = source.values[0], source.limits
        beyond = np.maximum(least - positions, positions - most)
        worst = int(beyond.argmax())
        if beyond[worst] > 0.0:
            name = self._names[source.targets[worst]]
            raise RefusedMessage('impossible position', (
                f"position of '{name}' = {positions[worst]:g} cannot be true, only "
                f'{least[worst]:g} ... {most[worst]:g}: check its unit (rad, m), the zero of its '
                'encoder, and the limits in the URDF'))
        source.looked[...] = positions

    def _take(self, plan: Any, raw: bytes, ns: int) -> bool:
        source: JointSource = plan.data
        values = source.flat
        plan.gather(raw, values)
        # NaN and infinity fail it; four times cheaper than ``np.isfinite().all()``.
        if not values.dot(values) < self._limit:
            self._examine_values(source)
        source.last_ns = ns
        return self._use(source, ns)

    def _use(self, source: JointSource, ns: int) -> bool:
        moved = source.values[0] - source.looked
        if not moved.dot(moved) < source.leeway:
            self._examine_positions(source)
        routine = self._routine
        if routine is not None and routine.holds_for(source, ns):
            if not routine.take(source, ns, self._last_ns):
                return False
        else:
            self._end_routine()
            if not self._merge(source, ns):
                return False
            if self.count >= self._try_at:
                self._begin_routine(source)
        self._last_ns = ns
        if len(self._whole) > 1:
            for other in self._whole:
                other.last_ns = ns
        return True

    # -- the usual way

    def _begin_routine(self, leader: JointSource) -> None:
        """Use a routine from now on, if the robot's parts are such that one will do."""
        self._try_at = self.count + _TRY_AGAIN
        told = self._tellers != _NOBODY
        tellers = set(self._tellers[told].tolist())
        parts = [source for source in self._sources.values() if source.number in tellers]
        if (len(parts) != len(tellers) or not all(map(self._tells_alone, parts))
                or any(part.has_required or len(part.targets) > len(leader.targets)
                       for part in parts if part is not leader)
                or self._measured['velocity'][~told].any()
                or self._measured['effort'][~told].any()):
            return
        self._routine = Routine(
            leader, [part for part in parts if part is not leader], self._measured, self._values,
            self._last_positions, self._timeout)

    def _tells_alone(self, source: JointSource) -> bool:
        """Tell whether nobody else tells the joints of a source."""
        return bool((self._tellers[source.targets] == source.number).all())

    def _end_routine(self) -> None:
        """Go on in the general way, with all that the routine knows."""
        routine, self._routine = self._routine, None
        if routine is None:
            return
        leader = routine.leader
        self._updated_ns[leader.targets] = self._last_ns
        self._told[leader.targets] = self._positions[leader.targets]
        self._last_positions[...] = self._positions
        for source, part in routine.parts.items():
            self._updated_ns[source.targets] = part.told_ns
            rows = part.told.reshape(source.values.shape)
            self._told[source.targets] = rows[0]
            for row, field in zip(rows[1:], source.fields[1:]):
                if self._measured[field][source.targets].all():
                    self._optional_values[field][source.targets] = row

    # -- the general way

    def _merge(self, source: JointSource, ns: int) -> bool:
        """Take over what the source has; tell whether all is there and it is time to deliver."""
        self._updated_ns[source.targets] = ns
        self._tellers[source.targets] = source.number
        self._told[source.targets] = source.values[0]
        for field in _OPTIONAL:
            self._take_optional(source, field)
        self._all_measured.clear()
        if not self._leads(source, ns):
            return False
        self._examine_completeness(ns)
        self._bring_to(ns)
        self._difference(ns)
        return True

    def _take_optional(self, source: JointSource, field: str) -> None:
        values: Any = 0.0
        finite = False
        if field in source.fields:
            values = source.values[source.fields.index(field)]
            finite = bool(np.isfinite(values).all())
        self._measured[field][source.targets] = finite
        self._ever_measured[field][source.targets] |= finite
        self._optional_values[field][source.targets] = values if finite else 0.0

    def _leads(self, source: JointSource, ns: int) -> bool:
        """Tell whether this source sets the pace: complete, or the largest that is alive."""
        leader = self._leader
        if (leader is None or source.has_required
                or ns - leader.last_ns > self._timeout * SECOND_NS
                or len(source.targets) > len(leader.targets)
                or (source is not leader and np.array_equal(source.targets, leader.targets))):
            self._leader = leader = source
        return source is leader and ns > self._last_ns

    def _examine_completeness(self, ns: int) -> None:
        updated = self._updated_ns[:self._n_required]
        late = np.flatnonzero(updated < ns - nanoseconds(self._timeout))
        if not len(late):
            return
        names = quoted(self._names[i] for i in late)
        if not (updated[late] == NEVER_NS).any():
            raise RefusedMessage('missing joints', (
                f'joint {names} not received for {(ns - updated[late].min()) / SECOND_NS:.2f} s'))
        now = time.monotonic()
        self._first_arrival = now if self._first_arrival is None else self._first_arrival
        starting = now - self._first_arrival < self._timeout and not self.count
        raise RefusedMessage(
            'missing joints', '' if starting else f'joint {names} was never received')

    def _bring_to(self, ns: int) -> None:
        """Carry every joint on, or back, to a stamp by its velocity, if that is measured."""
        self._positions[:] = self._told
        late = np.flatnonzero((self._updated_ns != ns) & self._measured['velocity'])
        if len(late):
            lags = (ns - self._updated_ns[late]) / SECOND_NS
            self._positions[late] += self._velocities[late] * np.clip(
                lags, -_FARTHEST, _FARTHEST)

    def _difference(self, ns: int) -> None:
        """Replace velocities that are not measured by differences of the positions."""
        unknown = ~self._measured['velocity']
        if unknown.any() and self._last_ns != NEVER_NS:
            dt = (ns - self._last_ns) / SECOND_NS
            self._velocities[unknown] = (self._positions - self._last_positions)[unknown] / dt
        self._last_positions[...] = self._positions
