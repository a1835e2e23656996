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
"""Joint states in a fixed order, from one publisher or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import time
from typing import Any

from biped_com_ros.ros import codec
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.input_base import NEVER, quoted, Refusal, SECOND, Source, StampedInput
import numpy as np
from sensor_msgs.msg import JointState

_OPTIONAL = ('velocity', 'effort')
_MAX_SOURCES = 32

#: How far a part of the robot is carried on by its velocities, s: further, it may have stopped.
_FARTHEST = 0.1


class JointSource(Source):
    """What the JointState messages of one structure contribute."""

    def __init__(self, message: Any, joint_indices: dict[str, int], n_required: int) -> None:
        columns = {joint_indices[name]: column for column, name in enumerate(message.name)
                   if name in joint_indices}
        #: Indices of the joints, ascending, and where they are in the message.
        self.targets = np.array(sorted(columns), np.intp)
        self.columns = [columns[target] for target in self.targets.tolist()]
        self.problem = _problem(message, joint_indices)
        self.fields = [] if self.problem else [
            field for field in ('position', *_OPTIONAL) if len(getattr(message, field))]
        super().__init__(len(self.fields) * len(self.columns))
        #: The same values, a row per field.
        self.values = self.flat.reshape(len(self.fields), len(self.columns))
        self.has_required = np.count_nonzero(self.targets < n_required) == n_required
        self.has_all = len(self.columns) == len(joint_indices) and len(self.fields) == 3

    def paths(self) -> list[codec.Path]:
        """Where the values are in the message."""
        return [(field, column) for field in self.fields for column in self.columns]


def _problem(message: Any, wanted: dict[str, int]) -> Refusal | None:
    """Return why no message built like this one can be used."""
    names = list(message.name)
    counts = {name: names.count(name) for name in set(names) & set(wanted)}
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        return Refusal('duplicate joints', f'names joint {quoted(twice)} more than once')
    for field in ('position', *_OPTIONAL):
        n = len(getattr(message, field))
        if n != len(names) and (n or field == 'position'):
            return Refusal('malformed', f'has {len(names)} names but {n} values of {field}')
    if not counts:
        return Refusal('no known joint', (
            f'has none of the joints {quoted(wanted)}; it has '
            + (quoted(names) or 'no joints at all')))
    return None


class JointStateInput(StampedInput):
    """
    JointState in a fixed order of joints.

    Calls back with (stamp, positions (n,), velocities (n,), efforts (n,)) in the order of
    `joint_names` followed by `optional_joints`; the order in the messages does not matter, other
    joints are ignored. Where several nodes publish parts of the robot on one topic, the parts
    are put together: once every joint was seen, each message of the largest part calls back, as
    long as no part is older than `timeout`. Smaller parts are mostly older, and still under way
    from their nodes; where they tell velocities, these bring them to the stamp of the largest.

    Velocities that are not measured (empty or, as ros2_control reports them, NaN) are backward
    differences of the positions; efforts that are not measured are zero (see
    `efforts_measured`). A velocity or effort that becomes NaN later is refused like a position.

    Parameters
    ----------
    node, topic
        Where to subscribe.
    joint_names
        Joints that have to be there.
    callback
        Gets good data; the arrays are reused.
    optional_joints
        Joints that may be missing; they are zero then.
    options
        See `input_base.Input`.

    Attributes
    ----------
    positions, velocities, efforts : ndarray (n,)
        Last good values: the arrays the callback gets.

    """

    def __init__(self, node: Any, joint_names: Sequence[str],
                 callback: Callable[[Stamp, np.ndarray, np.ndarray, np.ndarray], None],
                 topic: str = 'joint_states', optional_joints: Sequence[str] = (),
                 **options: Any) -> None:
        self.joint_names = names = (*joint_names, *optional_joints)
        self._indices = {name: i for i, name in enumerate(names)}
        self._n_required = len(joint_names)
        self._callback = callback
        self._values = np.zeros((3, len(names)))
        self.positions, self.velocities, self.efforts = self._values
        self._optional_values = dict(zip(_OPTIONAL, self._values[1:]))
        #: Which are measured now, and which ever were: NaN in those is an error.
        self._measured = {field: np.zeros(len(names), bool) for field in _OPTIONAL}
        self._ever_measured = {field: np.zeros(len(names), bool) for field in _OPTIONAL}
        self._sources: dict[Any, JointSource] = {}
        self._first_arrival: float | None = None
        self._forget()
        super().__init__(node, JointState, topic, **options)

    @property
    def velocities_measured(self) -> bool:
        """Tell whether all velocities are measured."""
        return bool(self._measured['velocity'].all())

    @property
    def efforts_measured(self) -> bool:
        """Tell whether all efforts are measured."""
        return bool(self._measured['effort'].all())

    def _forget(self) -> None:
        self._leader: JointSource | None = None
        #: The source that alone brings everything, measured: it needs no merging.
        self._express: JointSource | None = None
        self._updated_ns = np.full(len(self.joint_names), NEVER)
        #: Positions as told, at the stamps of their own messages.
        self._told = np.zeros(len(self.joint_names))
        self._last_positions = np.zeros(len(self.joint_names))
        self._last_ns = NEVER
        for source in self._sources.values():
            source.last_ns = NEVER

    def _select(self, message: Any) -> codec.Selection:
        key = (tuple(message.name), len(message.position), len(message.velocity),
               len(message.effort))
        source = self._sources.get(key)
        if source is None:
            if len(self._sources) >= _MAX_SOURCES:
                self._sources.pop(next(iter(self._sources)))
            source = JointSource(message, self._indices, self._n_required)
            self._sources[key] = source
        return codec.Selection(source.paths(), source)

    def _examine_structure(self, source: JointSource) -> None:
        if source.problem is not None:
            # On a shared topic, other devices' messages are nothing to talk about.
            other = source.problem.reason == 'no known joint' and self.count
            raise Refusal(source.problem.reason, '' if other else source.problem.details)
        if source.has_required:
            # Two publishers of the whole robot must not make time go back and forth.
            source.last_ns = max(source.last_ns, self._last_ns)

    def _examine_values(self, source: JointSource) -> None:
        for row, field in enumerate(source.fields):
            values = source.values[row]
            bad = ~np.isfinite(values)
            if field in _OPTIONAL and not self._ever_measured[field][source.targets[bad]].any():
                bad = np.isinf(values)
            if bad.any():
                names = [f"'{self.joint_names[i]}' = {value}" for i, value in
                         zip(source.targets[bad], values[bad])]
                raise Refusal('not finite', f'{field} of {", ".join(names[:5])}')

    def _take(self, source: JointSource, stamp: Stamp) -> None:
        if source is self._express:
            self._values[...] = source.values
        elif not self._merge(source, stamp.ns):
            return
        self._last_ns = stamp.ns
        self.stamp = stamp
        self.count += 1
        self._callback(stamp, self.positions, self.velocities, self.efforts)

    def _merge(self, source: JointSource, ns: int) -> bool:
        """Take over what the source has; tell whether all is there and it is time to deliver."""
        self._express = None
        self._updated_ns[source.targets] = ns
        self._told[source.targets] = source.values[0]
        for field in _OPTIONAL:
            self._take_optional(source, field)
        if not self._leads(source, ns):
            return False
        self._examine_completeness(ns)
        self._bring_to(ns)
        self._difference(ns)
        if source.has_all and self.velocities_measured and self.efforts_measured:
            self._express = source
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
                or ns - leader.last_ns > self.timeout * SECOND
                or len(source.targets) > len(leader.targets)):
            self._leader = leader = source
        return source is leader and ns > self._last_ns

    def _examine_completeness(self, ns: int) -> None:
        updated = self._updated_ns[:self._n_required]
        late = np.flatnonzero(updated < ns - int(self.timeout * SECOND))
        if not len(late):
            return
        names = quoted(self.joint_names[i] for i in late)
        if not (updated[late] == NEVER).any():
            raise Refusal('missing joints', (
                f'joint {names} not received for {(ns - updated[late].min()) / SECOND:.2f} s'))
        now = time.monotonic()
        self._first_arrival = now if self._first_arrival is None else self._first_arrival
        starting = now - self._first_arrival < self.timeout and not self.count
        raise Refusal('missing joints', '' if starting else f'joint {names} was never received')

    def _bring_to(self, ns: int) -> None:
        """Carry every joint on, or back, to a stamp by its velocity, if that is measured."""
        self.positions[:] = self._told
        late = np.flatnonzero((self._updated_ns != ns) & self._measured['velocity'])
        if len(late):
            lags = (ns - self._updated_ns[late]) / SECOND
            self.positions[late] += self.velocities[late] * np.clip(lags, -_FARTHEST, _FARTHEST)

    def _difference(self, ns: int) -> None:
        """Replace velocities that are not measured by differences of the positions."""
        unknown = ~self._measured['velocity']
        if unknown.any() and self._last_ns != NEVER:
            dt = (ns - self._last_ns) / SECOND
            self.velocities[unknown] = (self.positions - self._last_positions)[unknown] / dt
        self._last_positions[...] = self.positions
