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
"""Joint states in a fixed order, put together from one publisher or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
import itertools
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.signals.age import age_of, is_recent
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.credible import limit_of_joints
from biped_com_ros.ros.fast.message_reader import (
    quoted, read_only, ReadSpec, RefusedMessage, StampedReader, Structure)
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.topics.no_data_reason import publisher_names
import numpy as np

_OPTIONAL = ('velocity', 'effort')
_FIELDS = ('position', *_OPTIONAL)
_MAX_PARTS = 32
_NO_PART = -1
_UNLIMITED = (-float('inf'), float('inf'))
#: Longest extrapolation of a part by its velocities, s: after that, it may have stopped.
_LONGEST_EXTRAPOLATION = 0.1
#: Time constant of the filter of velocities that are differences of positions, s.
_VELOCITY_TIME = 0.01
#: A position that jumps by more, rad or m, and faster, rad/s or m/s, rests, and jumps back, so
#: many times with at most so much time between, is that of two publishers: no joint moves so.
_JUMP, _JUMP_SPEED, _RETURNS, _RETURN_NS = 0.02, 3.0, 3, nanoseconds(20.0)
_TURN = 2.0 * np.pi


Corrections = dict[str, tuple[np.ndarray, np.ndarray]]


class JointPart(Structure):
    """
    The JointState messages with the same joints and fields, in any order, and their values.

    Parameters
    ----------
    joints, fields
        Indices of the joints, ascending, and the fields that are there.
    number
        See below.
    n_required, limits, corrections
        Of the reader.

    Attributes
    ----------
    number
        Identifies the part among those of its reader.
    received, values
        Of the newest message and of the newest good one, (fields, joints).
    ns
        Stamp of the values.
    corrections
        What is subtracted from the values of a field and what they are multiplied with then, by
        field; without those that are zero and one.
    measured
        Whether velocities and efforts are; None before the first good message.
    missing_since_ns
        Stamp of the first message since the newest good one that lacked what was measured before.
    rates, velocities
        Filtered differences of the positions, and what is measured or else these.
    owned, n_owned
        The columns of joints that no other part has reported since, and their number.
    target
        The indices of these joints.

    """

    def __init__(self, joints: Sequence[int], fields: Sequence[str], number: int, *,
                 n_required: int, limits: np.ndarray, corrections: Corrections) -> None:
        super().__init__()
        self.number, self.fields = number, fields
        self.joints = np.array(joints, np.intp)
        self.key = self.joints.tobytes()
        self.flat = np.zeros(len(fields) * len(joints))
        self.received = self.flat.reshape(len(self.fields), len(self.joints))
        self.values = self.received.copy()
        self.rows = {field: self.values[row] for row, field in enumerate(self.fields)}
        own = [(self.rows[field], offsets[self.joints], factors[self.joints])
               for field, (offsets, factors) in corrections.items() if field in self.rows]
        self.corrections = [(row, offsets, factors) for row, offsets, factors in own
                            if offsets.any() or (factors != 1.0).any()]
        self.has_required = np.count_nonzero(self.joints < n_required) == n_required
        self.least, self.most = limits[:, self.joints]
        may_turn = self.most - self.least >= _TURN
        #: The turns of joints that may be reported within one; None if no joint may.
        self._turns = _TURN * may_turn if may_turn.any() else None
        self.rates = np.zeros(len(joints))
        self.members = frozenset(joints)
        self.present = tuple(field in self.fields for field in _OPTIONAL)
        self.clear()

    def clear(self) -> None:
        """Drop all values, as at the beginning."""
        self.ns = self.last_ns = self.missing_since_ns = NEVER_NS
        self.measured: tuple[bool, ...] | None = None
        self.velocities = self.rates
        self.owns_all = False
        self.received_ns = self._returned_ns = NEVER_NS
        self._positions = self._jump = np.zeros(0)
        self._jumped, self._returns = False, 0

    def contradicting(self, ns: int, timeout_ns: int) -> int | None:
        """
        Return a joint whose received position goes forth and back as that of two publishers.

        None if there is none. To be called for each message while a topic has several.

        Parameters
        ----------
        ns, timeout_ns
            Its stamp, and the time after which the message before says nothing, ns.

        """
        before, self._positions = self._positions, self.received[0].copy()
        if not len(before) or not is_recent(self.received_ns, ns, timeout_ns):
            self._jump, self._jumped = np.zeros(len(self.joints)), False
            return None
        step = self._positions - before
        least = max(_JUMP, _JUMP_SPEED * (ns - self.received_ns) / SECOND_NS)
        if not self._jumped and step.dot(step) < min(least, 0.5 * _TURN) ** 2:
            return None  # the usual case: none is so large, even together
        step -= _TURN * np.round(step / _TURN)  # may wrap
        jump, size = self._jump, np.abs(step)
        back = (size > least) & (np.abs(step + jump) < 0.2 * size)
        # What moves on has not jumped.
        self._jump = np.where(size > least, step, np.where(size < 0.2 * np.abs(jump), jump, 0.0))
        self._jumped = bool(self._jump.any())
        if not back.any():
            return None
        return int(self.joints[int(back.argmax())]) if self.returns(ns) else None

    def returns(self, ns: int) -> bool:
        """Count a return to what was before; return whether there are too many."""
        is_again = is_recent(self._returned_ns, ns, _RETURN_NS)
        self._returns, self._returned_ns = self._returns + 1 if is_again else 1, ns
        return self._returns >= _RETURNS

    def measure(self, measured: tuple[bool, ...]) -> None:
        """Set whether velocities and efforts are measured."""
        self.measured = measured
        self.velocities = self.rows['velocity'] if measured[0] else self.rates

    def own(self, columns: np.ndarray) -> None:
        """Set the columns of the joints that are this part's."""
        self.n_owned = len(columns)
        self.owns_all = self.n_owned == len(self.joints)
        self.owned, self.target = _as_slice(columns), _as_slice(self.joints[columns])

    def difference(self, positions: np.ndarray, velocities: np.ndarray,
                   stamps: np.ndarray) -> None:
        """
        Filter the differences of the positions.

        Parameters
        ----------
        positions, velocities, stamps
            What was known of the joints before, from whichever part; stamps in ns.

        """
        elapsed = (self.ns - stamps) / SECOND_NS
        is_later = (stamps != NEVER_NS) & (elapsed > 0.0)
        elapsed[~is_later] = 1.0
        step = self.rows['position'] - positions
        if self._turns is not None:
            step -= np.round(step / _TURN) * self._turns
        rates = velocities + (step / elapsed - velocities) * (elapsed / (elapsed + _VELOCITY_TIME))
        self.rates[...] = np.where(is_later, rates, velocities)

    def write(self, out: np.ndarray, ns: int) -> None:
        """Write the values at a stamp to `out` (3, n): positions, velocities, efforts."""
        positions = self.rows['position'][self.owned]
        has_velocities, has_efforts = self.measured or (False, False)
        out[1, self.target] = velocities = self.velocities[self.owned]
        if has_velocities and ns != self.ns:
            lag = (ns - self.ns) / SECOND_NS
            positions = positions + velocities * min(
                max(lag, -_LONGEST_EXTRAPOLATION), _LONGEST_EXTRAPOLATION)
        out[0, self.target] = positions
        if has_efforts:
            out[2, self.target] = self.rows['effort'][self.owned]


def _problem(message: Any, indices: dict[str, int]) -> tuple[str, str] | None:
    """Return why no message of this structure can be used."""
    names = message.name
    for field in _FIELDS:
        n = len(getattr(message, field))
        if n != len(names) and (n or field == 'position'):
            return 'malformed', f'has {len(names)} names but {n} values of {field}'
    counts = Counter(name for name in names if name in indices)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        return 'duplicate joints', f'names joint {quoted(twice)} more than once'
    if not counts:
        return 'no known joint', (
            f'has none of the joints {quoted(indices)}; it has '
            + (quoted(names) or 'no joints at all'))
    return None


def _as_slice(indices: np.ndarray) -> slice | np.ndarray:
    """Return ascending indices as a slice where they have no gaps: ten times as fast to use."""
    first = int(indices[0]) if len(indices) else 0
    if np.array_equal(indices, np.arange(first, first + len(indices))):
        return slice(first, first + len(indices))
    return indices


class JointStateReader(StampedReader):
    """
    Reads JointState; see `inputs.JointStateInput`.

    The options are the names of the joints, how many of them are required, the timeout of a part
    (s), the limits of the positions as they are received, what is subtracted from them, joints
    whose messages are ignored, and offsets and gains of the efforts.
    """

    def __init__(self, spec: ReadSpec) -> None:
        self._names, self._n_required, timeout, *others = spec.options
        limits, offsets, self._others, torque_offsets, torque_gains = [
            *others, (), (), (), (), ()][:5]
        n = len(self._names)
        none = np.zeros(n)
        self._corrections: Corrections = {
            'position': (np.array(offsets) if offsets else none, none + 1.0),
            'effort': (np.array(torque_offsets) if torque_offsets else none,
                       1.0 / (1.0 + (np.array(torque_gains) if torque_gains else none)))}
        self._timeout, self._timeout_ns = timeout, int(timeout * SECOND_NS)
        self._limits = np.array(limits or [_UNLIMITED] * n).T
        self._indices = {name: i for i, name in enumerate(self._names)}
        self._values = np.zeros((3, n))
        #: Of which joints each field is measured, and of which it ever was: NaN is an error there.
        self._measured = {field: np.zeros(n, bool) for field in _OPTIONAL}
        self._ever_measured = {field: np.zeros(n, bool) for field in _OPTIONAL}
        self._all_measured = dict.fromkeys(_OPTIONAL, not n)
        self._known_parts: dict[tuple[tuple[int, ...], tuple[str, ...]], JointPart] = {}
        self._numbers = itertools.count()
        #: Parts that own joints; those of them with required joints; those that have all of these.
        self._parts: list[JointPart] = []
        self._required_parts: list[JointPart] = []
        self._whole_parts: list[JointPart] = []
        #: Number of the part that owns each joint.
        self._owners = np.full(n, _NO_PART)
        self._never_received: list[str] = []
        self._is_rearranged = True
        self._leader: JointPart | None = None
        self._last_ns = NEVER_NS
        #: Whether the topic has several publishers, or had just now two with the same joint; and
        #: when.
        self._is_shared = self._has_several = False
        self._contested_ns, self._contest = NEVER_NS, ''
        self._first_arrival: float | None = None
        super().__init__(spec)
        self._credible = {field: limit_of_joints(field, spec.largest) for field in _FIELDS}
        #: No value is beyond its limit where the sum of all squares is below this.
        self._least_squared = min(limit.largest for limit in self._credible.values()) ** 2
        self.arguments = tuple(map(read_only, self._values))

    @property
    def conflict(self) -> str:
        """Which joint several nodes publish at once, and what to do; '' if there is none."""
        return self._contest if self._contested_ns != NEVER_NS else ''

    def measures(self, field: str) -> bool:
        """Return whether 'velocity' or 'effort' of all joints is measured."""
        return self._all_measured[field]

    def continue_from(self, other: Any) -> None:
        """Take over the parts, their values, and which of them are measured."""
        self._values[...], self._last_ns = other._values, other._last_ns
        for before in other._parts:
            key = tuple(before.joints.tolist()), before.fields
            part = self._part_of(*key)
            part.values[...], part.rates[...] = before.values, before.rates
            part.last_ns, part.ns = before.last_ns, before.ns
            self._assign(part, before.measured)
        for field in _OPTIONAL:
            self._all_measured[field] = other.measures(field)
            self._ever_measured[field] |= other._ever_measured[field]

    # -- structures

    def _select(self, message: Any) -> codec.Selection:
        problem = _problem(message, self._indices)
        if problem:
            is_other = message.name and set(message.name) <= set(self._others)
            return codec.Selection([], Structure(('other joints', '') if is_other else problem))
        columns = {self._indices[name]: column for column, name in enumerate(message.name)
                   if name in self._indices}
        joints = tuple(sorted(columns))
        fields = tuple(field for field in _FIELDS if len(getattr(message, field)))
        paths: list[codec.Path] = [(field, columns[joint]) for field in fields for joint in joints]
        return codec.Selection(paths, self._part_of(joints, fields))

    def _part_of(self, joints: tuple[int, ...], fields: tuple[str, ...]) -> JointPart:
        """Return the part with these joints and fields."""
        part = self._known_parts.get((joints, fields))
        if part is None:
            if len(self._known_parts) >= _MAX_PARTS:
                self._known_parts = {
                    key: part for key, part in self._known_parts.items() if part in self._parts}
                self._whole_parts = [part for part in self._whole_parts if part in self._parts]
            part = self._known_parts[joints, fields] = JointPart(
                joints, fields, next(self._numbers), n_required=self._n_required,
                limits=self._limits, corrections=self._corrections)
            if part.has_required:
                part.last_ns = self._last_ns
                self._whole_parts.append(part)
        return part

    def _refuse_structure(self, problem: tuple[str, str]) -> None:
        # Messages of other devices on a shared topic are counted only.
        reason, details = problem
        is_other_device = reason == 'no known joint' and self.count
        raise RefusedMessage(reason, '' if is_other_device else details)

    def _reset(self) -> None:
        for part in (*self._known_parts.values(), *self._parts):
            part.clear()
        self._leader, self._last_ns = None, NEVER_NS
        self._contested_ns = NEVER_NS
        self._owners[...] = _NO_PART
        self._parts = []

    # -- messages

    def _accept(self, plan: codec.AnyPlan, raw: bytes, ns: int) -> bool:
        part: JointPart = plan.data
        flat = part.flat
        flat[:] = plan.array_of(raw)
        measured = part.present
        if self._is_shared:
            self._check_publishers(part, ns)
        if not flat.dot(flat) < self._least_squared:  # NaN and infinity fail it, too
            measured = self._check_values(part, ns)
        part.last_ns = ns
        self._check_positions(part)
        before = None if measured[0] else self._known_of(part)
        part.values[...] = part.received
        for row, offsets, factors in part.corrections:
            row -= offsets
            row *= factors
        part.ns = ns
        if not part.owns_all or measured != part.measured:
            self._assign(part, measured)
        if before is not None:
            part.difference(*before)
        if not self._leads(part, ns):
            return False
        self._check_completeness(ns)
        self._assemble(ns)
        return True

    def _check_stamp(self, ns: int, structure: Structure) -> None:
        # Here, since this is called once in 50 ms at least, and not for each message.
        self._has_several = self.inputs[0].node.count_publishers(self.topic) > 1
        self._is_shared = self._has_several or self._contested_ns != NEVER_NS
        super()._check_stamp(ns, structure)

    def _check_publishers(self, part: JointPart, ns: int) -> None:
        """
        Raise RefusedMessage while two publishers give the same joint: neither can be believed.

        Those of different parts of the robot complement each other.
        """
        joint = part.contradicting(ns, self._timeout_ns)
        part.received_ns = part.last_ns = ns
        if joint is None:
            joint = next((min(part.members & other.members)
                          for other in self._known_parts.values() if other is not part
                          and is_recent(other.received_ns, ns, self._timeout_ns)
                          and not part.members.isdisjoint(other.members)), None)
        if joint is not None:
            self._set_contest(joint, ns)
        if not is_recent(self._contested_ns, ns, _RETURN_NS if self._has_several
                         else self._timeout_ns):
            self._contested_ns = NEVER_NS
            return
        raise RefusedMessage('several publishers', self._contest)

    def _set_contest(self, joint: int, ns: int) -> None:
        self._contested_ns = ns
        nodes = publisher_names(self.inputs[0].node, self.topic)
        self._contest = (f"joint '{self._names[joint]}' is published more than once at a time, by "
                         f'{" and ".join(nodes)}: end all but one')

    def _check_step_back(self, ns: int, structure: Structure) -> None:
        try:
            super()._check_step_back(ns, structure)
        except RefusedMessage:
            if (self._is_shared and isinstance(structure, JointPart) and structure.returns(ns)):
                self._set_contest(int(structure.joints[0]), ns)
                raise RefusedMessage('several publishers', self._contest) from None
            raise

    def _check_values(self, part: JointPart, ns: int) -> tuple[bool, ...]:
        """
        Return whether velocities and efforts are measured.

        Those that were measured before may be missing again after the timeout of a part: the
        driver came back without them.

        Raises
        ------
        RefusedMessage
            If values are not finite, unless they never were measured, or too large.

        """
        measured = dict.fromkeys(_OPTIONAL, False)
        for field, values in zip(part.fields, part.received):
            limit = self._credible[field]
            if (np.abs(values) <= limit.largest).all():  # NaN is not
                measured[field] = True
                continue
            bad = ~np.isfinite(values)
            measured[field] = not bad.any()
            if field in _OPTIONAL and self._may_be_missing(part, field, bad, ns):
                bad = np.isinf(values)
            if bad.any():
                names = [f"'{self._names[i]}' = {value}" for i, value in
                         zip(part.joints[bad], values[bad])]
                raise RefusedMessage('not finite', f'{field} of {", ".join(names[:5])}')
            beyond = np.flatnonzero(np.abs(values) > limit.largest)
            if len(beyond):
                name, value = self._names[part.joints[beyond[0]]], values[beyond[0]]
                raise RefusedMessage('too large', (
                    f"{field} of '{name}' = {value:g} is implausible (limit {limit}): check its "
                    'unit, and the sensor'))
        return tuple(measured[field] for field in _OPTIONAL)

    def _may_be_missing(self, part: JointPart, field: str, bad: np.ndarray, ns: int) -> bool:
        """Return whether NaN of the joints in `bad` means that nothing measures the field."""
        ever = self._ever_measured[field]
        if not ever[part.joints[bad]].any():
            return True
        # A good message between, or a clock that was set back: from now on.
        if not part.ns < part.missing_since_ns <= ns:
            part.missing_since_ns = ns
        if ns - part.missing_since_ns < self._timeout_ns:
            return False
        ever[part.joints] = False
        return True

    def _check_positions(self, part: JointPart) -> None:
        """Raise RefusedMessage if a joint is where it cannot be."""
        positions = part.received[0]
        beyond = np.maximum(part.least - positions, positions - part.most)
        worst = int(beyond.argmax())
        if beyond[worst] > 0.0:
            name = self._names[part.joints[worst]]
            raise RefusedMessage('impossible position', (
                f"position of '{name}' = {positions[worst]:g} is implausible "
                f'(valid: {part.least[worst]:g} to {part.most[worst]:g}): check its unit (rad, '
                'm), the zero of its encoder, and the limits in the URDF'))

    def _assign(self, part: JointPart, measured: tuple[bool, ...]) -> None:
        """Give a part all joints that it reports; `measured`: its velocities, its efforts."""
        part.measure(measured)
        if part not in self._parts:
            self._parts.append(part)
        self._owners[part.joints] = part.number
        for other in self._parts:
            other.own(np.flatnonzero(self._owners[other.joints] == other.number))
        self._parts = [other for other in self._parts if other.n_owned]
        for row, field in enumerate(_OPTIONAL):
            self._measured[field][...] = False
            for other in self._parts:
                if other.measured is not None and other.measured[row]:
                    self._measured[field][other.target] = True
            self._ever_measured[field][part.joints] |= measured[row]
            self._all_measured[field] = bool(self._measured[field].all())
        self._required_parts = [
            other for other in self._parts
            if (other.joints[other.owned] < self._n_required).any()]
        self._never_received = [name for name, owner in zip(
            self._names[:self._n_required], self._owners) if owner == _NO_PART]
        self._is_rearranged = True

    def _known_of(self, part: JointPart) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return position, velocity and stamp, ns, that the joints of a part had last."""
        values, stamps = np.zeros((2, len(self._names))), np.full(len(self._names), NEVER_NS)
        for other in self._parts:
            values[0, other.target] = other.rows['position'][other.owned]
            values[1, other.target] = other.velocities[other.owned]
            stamps[other.target] = other.ns
        return values[0, part.joints], values[1, part.joints], stamps[part.joints]

    def _leads(self, part: JointPart, ns: int) -> bool:
        """Return whether callbacks follow this part: complete, or the largest that is alive."""
        leader = self._leader
        if (leader is None or part.has_required or not is_recent(leader.ns, ns, self._timeout_ns)
                or len(part.joints) > len(leader.joints)
                or (part is not leader and part.key == leader.key)):
            self._leader = leader = part
        return part is leader and ns > self._last_ns

    def _check_completeness(self, ns: int) -> None:
        """Raise RefusedMessage if required joints are missing."""
        late = [part for part in self._required_parts
                if not is_recent(part.ns, ns, self._timeout_ns)]
        if self._never_received:
            now = steady_time()
            self._first_arrival = now if self._first_arrival is None else self._first_arrival
            starting = now - self._first_arrival < self._timeout and not self.count
            raise RefusedMessage('missing joints', '' if starting else (
                f'joint {quoted(self._never_received)} was never received; if nothing publishes '
                "it, give its position under locked_joints in the robot's YAML"))
        if late:
            joints = [int(joint) for part in late for joint in part.joints[part.owned]
                      if joint < self._n_required]
            raise RefusedMessage('missing joints', (
                f'joint {quoted(self._names[joint] for joint in sorted(joints))} not received for '
                f'{max(age_of(part.ns, ns) for part in late) / SECOND_NS:.2f} s'))

    def _assemble(self, ns: int) -> None:
        """Put the parts together at a stamp."""
        values = self._values
        if self._is_rearranged:
            values[1:] = 0.0
            values[0, self._owners == _NO_PART] = 0.0
            self._is_rearranged = False
        for part in self._parts:
            part.write(values, ns)
        self._last_ns = ns
        if len(self._whole_parts) > 1:
            # Two publishers of the whole robot must not make time go back and forth.
            for part in self._whole_parts:
                part.last_ns = ns
