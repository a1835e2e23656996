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
"""Joint states of several publishers: as a joint by joint reference has them, to the bit."""

from __future__ import annotations

from dataclasses import dataclass, field
import math

from biped_com_ros.ros.fast.joint_state_reader import JointStateReader
from biped_com_ros.ros.fast.message_reader import ReadSpec
from biped_com_ros.ros.topics.stamp import stamp_to_msg
import numpy as np
import pytest
from rclpy.clock import Clock, ClockType
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

NAN = math.nan
SECOND = 1_000_000_000
TIMEOUT, FARTHEST = 0.5, 0.1


@dataclass
class JointValues:
    """What is known of a joint; None is unknown."""

    reported_ns: int | None = None
    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0
    measured: set = field(default_factory=set)
    ever: set = field(default_factory=set)


class Reference:
    """What a `JointStateReader` promises, joint by joint, without arrays."""

    def __init__(self, names, n_required):
        self.names, self.n_required = names, n_required
        self.joints = {name: JointValues() for name in names}
        self.delivered, self.refused = [], {}
        self._leader, self._last_reported, self._last = None, {}, None
        self._missing = {}

    def refuse(self, reason):
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def take(self, ns, message):
        mine = [name for name in self.names if name in message.name]
        key = (tuple(message.name), len(message.velocity), len(message.effort))
        whole = set(self.names[:self.n_required]) <= set(mine)
        if whole and self._last and ns <= self._last[0]:
            return self.refuse(
                'repeated stamp' if ns == self._last[0] else 'stamp going backward')
        if not self._is_good(message, mine) and not self._is_missing(message, mine, key, ns):
            return self.refuse('not finite')
        self._last_reported[key], self._missing[key] = ns, None
        for name in mine:
            self._report(self.joints[name], name, message, mine, ns)
        leader = self._leader
        if (leader is None or whole or ns - self._last_reported[leader[0]] > TIMEOUT * SECOND
                or len(mine) > leader[1]):
            self._leader = leader = key, len(mine)
        if leader[0] != key or (self._last is not None and ns <= self._last[0]):
            return None
        for name in self.names[:self.n_required]:
            reported = self.joints[name].reported_ns
            if reported is None or reported < ns - TIMEOUT * SECOND:
                return self.refuse('missing joints')
        return self._deliver(ns)

    def _is_missing(self, message, mine, key, ns):
        """Return whether what was measured has been NaN for the timeout: it is missing then."""
        values = [v for kind in ('position', 'velocity', 'effort') for n, v in zip(
            message.name, getattr(message, kind)) if n in mine]
        if any(map(math.isinf, values)) or not all(map(math.isfinite, message.position)):
            return False
        if self._missing.get(key) is None:
            self._missing[key] = ns
        if ns - self._missing[key] < TIMEOUT * SECOND:
            return False
        for kind in ('velocity', 'effort'):
            values = [v for n, v in zip(message.name, getattr(message, kind)) if n in mine]
            if any(map(math.isnan, values)):
                for name in mine:
                    self.joints[name].ever.discard(kind)
        return True

    def _is_good(self, message, mine):
        for kind in ('position', 'velocity', 'effort'):
            values = getattr(message, kind)
            for name, value in zip(message.name, values):
                known = kind == 'position' or any(
                    kind in self.joints[n].ever for n in mine
                    if not math.isfinite(values[message.name.index(n)]))
                if name in mine and (math.isinf(value) or (math.isnan(value) and known)):
                    return False
        return True

    def _report(self, joint, name, message, mine, ns):
        i = message.name.index(name)
        before_ns, before, speed = joint.reported_ns, joint.position, joint.velocity
        joint.reported_ns, joint.position = ns, message.position[i]
        for kind in ('velocity', 'effort'):
            values = getattr(message, kind)
            finite = len(values) > 0 and all(
                math.isfinite(values[message.name.index(n)]) for n in mine)
            joint.measured.discard(kind)
            if finite:
                joint.measured.add(kind)
                joint.ever.add(kind)
            setattr(joint, kind, values[i] if finite else 0.0)
        if 'velocity' not in joint.measured:
            joint.velocity = speed
            if before_ns is not None and ns > before_ns:
                dt = (ns - before_ns) / SECOND
                step = joint.position - before
                step -= 2.0 * math.pi * round(step / (2.0 * math.pi))  # it may turn on and on
                # A first-order filter with a time constant of 10 ms.
                joint.velocity = speed + (step / dt - speed) * (dt / (dt + 0.01))

    def _deliver(self, ns):
        positions, velocities = [], []
        for joint in self.joints.values():
            position = joint.position
            if 'velocity' in joint.measured and joint.reported_ns != ns:
                lag = (ns - joint.reported_ns) / SECOND
                position += joint.velocity * max(-FARTHEST, min(FARTHEST, lag))
            positions.append(position)
            velocities.append(joint.velocity)
        self._last = ns, positions, velocities
        self.delivered.append(
            (ns, positions, velocities, [joint.effort for joint in self.joints.values()]))


class Receiver:
    """What the reader calls back."""

    def __init__(self):
        self.node, self.count, self.refused, self.delivered = self, 0, {}, []
        self._clock = Clock(clock_type=ClockType.SYSTEM_TIME)

    def get_clock(self):
        return self._clock

    def get_logger(self):
        return get_logger('receiver')

    def count_publishers(self, topic):
        return 1

    def callback(self, stamp, *arrays):
        self.delivered.append((stamp, *(array.tolist() for array in arrays)))

    def refuse(self, reason, details):
        self.refused[reason] = self.refused.get(reason, 0) + 1


@dataclass
class Part:
    """A driver that publishes some joints."""

    names: tuple
    period: int
    phase: int = 0
    velocity: str = 'all'
    effort: str = 'all'

    def message(self, rng, ns):
        n = len(self.names)
        return JointState(name=list(self.names), position=rng.normal(size=n).tolist(),
                          velocity=self._values(rng, self.velocity),
                          effort=self._values(rng, self.effort))

    def _values(self, rng, kind):
        if kind == 'none':
            return []
        values = rng.normal(size=len(self.names))
        if kind == 'nan' or (kind == 'seldom nan' and rng.random() < 0.02):
            values[rng.integers(len(values))] = NAN
        return values.tolist()


MS = 1_000_000
NAMES = ('a', 'b', 'c', 'd', 'e', 'f')
ROBOTS = {
    'one driver': [Part(NAMES, 2 * MS)],
    'one driver in another order': [Part(('f', 'x', 'b', 'a', 'e', 'd', 'c'), 2 * MS)],
    'no velocities': [Part(NAMES, 2 * MS, velocity='none')],
    'velocities and efforts are NaN': [Part(NAMES, 2 * MS, velocity='nan', effort='nan')],
    'a part without efforts': [
        Part(('a', 'c', 'd', 'f'), 2 * MS), Part(('e', 'b'), 2 * MS, effort='none')],
    'a part at the same stamps': [
        Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('e', 'f'), 2 * MS)],
    'a slower part': [Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('f', 'e'), 7 * MS, 300_000)],
    'a faster part': [Part(('d', 'c', 'b', 'a'), 5 * MS), Part(('e', 'f'), 2 * MS, 100_000)],
    'a part that is far behind': [
        Part(('a', 'b', 'c', 'd'), 20 * MS), Part(('e', 'f'), 220 * MS, 100_000)],
    'a part without velocities': [
        Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('e', 'f'), 3 * MS, velocity='none')],
    'the leader without velocities': [
        Part(('a', 'b', 'c', 'd'), 2 * MS, velocity='none'), Part(('e', 'f'), 3 * MS)],
    'a part whose efforts are NaN': [
        Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('e', 'f'), 3 * MS, effort='nan')],
    'three parts': [Part(('a', 'b'), 2 * MS), Part(('c', 'd'), 2 * MS, 1000),
                    Part(('f', 'e', 'x'), 3 * MS, velocity='nan')],
    'velocities that get lost': [
        Part(('a', 'b', 'c', 'd'), 2 * MS, velocity='seldom nan'), Part(('e', 'f'), 2 * MS)],
    'joints reported twice': [
        Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('d', 'e', 'f'), 3 * MS)],
    'two drivers of all': [Part(NAMES, 2 * MS), Part(NAMES[::-1], 3 * MS, 1)],
}


def sequence(parts, rng, n=400):
    """Yield the first messages of all parts in the order in which they arrive."""
    merged = sorted(
        ((part.phase + i * part.period + int(rng.integers(0, 3) * rng.integers(0, MS)), i, number)
         for number, part in enumerate(parts) for i in range(n)))
    stamps = [-1] * len(parts)
    for _, i, number in merged[:n]:
        ns = parts[number].phase + i * parts[number].period
        if ns > stamps[number]:
            stamps[number] = ns
            yield number, ns


def both(n_required=6):
    """Return a reader, what it calls back, and what it is held against."""
    reader = JointStateReader(ReadSpec(
        reader=JointStateReader, message_type=JointState, options=(NAMES, n_required, TIMEOUT)))
    reader.add(receiver := Receiver())
    return reader, receiver, Reference(NAMES, n_required)


def play(reader, reference, start, messages):
    for ns, message in messages:
        message.header.stamp = stamp_to_msg(start + ns)
        reader.receive(bytes(serialize_message(message)))
        reference.take(start + ns, message)


def same(receiver, reference):
    assert receiver.refused == reference.refused
    assert len(receiver.delivered) == len(reference.delivered)
    for got, expected in zip(receiver.delivered, reference.delivered):
        assert got[0] == expected[0]
        np.testing.assert_array_equal(np.array(got[1:]).view(np.uint64),
                                      np.array(expected[1:]).view(np.uint64))


@pytest.mark.parametrize(('n_required', 'plain'), [(6, 0), (4, 1)])
@pytest.mark.parametrize('parts', ROBOTS.values(), ids=ROBOTS)
def test_parts_are_put_together_as_by_the_reference(monkeypatch, parts, n_required, plain):
    monkeypatch.setenv('BIPED_COM_PLAIN', str(plain))
    reader, receiver, reference = both(n_required)
    rng = np.random.default_rng(len(parts) + n_required)
    play(reader, reference, SECOND, (
        (ns, parts[number].message(rng, ns)) for number, ns in sequence(parts, rng)))
    assert receiver.delivered
    same(receiver, reference)


def in_turns(parts, rng, n, silent=None, gap=()):
    """Yield n messages of each part, but not of a silent one in a gap of time."""
    for step in range(n):
        for part in parts:
            ns = part.phase + step * part.period
            if part is not silent or ns not in gap:
                yield ns, part.message(rng, ns)


@pytest.mark.parametrize('n_required', [6, 4])
@pytest.mark.parametrize('silent', [0, 1])
def test_parts_stop_and_come_back(n_required, silent):
    """Each change is noticed with the next message."""
    parts = Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('e', 'f'), 2 * MS, 1000)
    reader, receiver, reference = both(n_required)
    play(reader, reference, SECOND, in_turns(
        parts, np.random.default_rng(1), 1000, parts[silent], range(300 * MS, 1500 * MS)))
    same(receiver, reference)
    if n_required == 6 or silent == 0:
        assert receiver.refused['missing joints'] > 100


def test_drivers_change():
    """Another driver with other joints, a velocity that is measured from now on, and the like."""
    rng = np.random.default_rng(2)
    stages = [
        [Part(NAMES, 2 * MS, velocity='nan')], [Part(NAMES, 2 * MS)],
        [Part(('a', 'b', 'c'), 2 * MS), Part(('d', 'e', 'f'), 2 * MS, 700)],
        [Part(('d', 'e', 'f', 'c'), 2 * MS), Part(('b', 'a'), 2 * MS, 700, effort='none')],
        [Part(('d', 'e', 'f', 'c'), 2 * MS, effort='nan'), Part(('b', 'a'), 2 * MS, 700)],
        [Part(NAMES, 2 * MS, effort='none')]]
    reader, receiver, reference = both()
    for number, parts in enumerate(stages):
        play(reader, reference, (1 + number) * SECOND, in_turns(parts, rng, 400))
        same(receiver, reference)
    assert reference.refused['not finite'] == 250  # for the timeout


@pytest.mark.parametrize(('speed', 'limits', 'wraps'), [
    (1.0, (), False), (-2.0, (), False), (1.0, (), True),
    (-3.0, ((-math.inf, math.inf),) * 3, True), (1.0, ((-3.0, 3.0),) * 3, False)])
def test_differences_are_those_of_each_part_and_of_joints_that_turn_on(speed, limits, wraps):
    """An arm at 100 Hz without velocities beside a leg at 500 Hz."""
    reader = JointStateReader(ReadSpec(
        reader=JointStateReader, message_type=JointState, options=(
            ('hip', 'knee', 'arm'), 3, TIMEOUT, limits)))
    reader.add(receiver := Receiver())
    for i in range(2500 if wraps else 1000):
        ns = SECOND + i * 2 * MS
        messages = [JointState(
            name=['hip', 'knee'], position=[0.3, 0.0], velocity=[0.7, 0.0])]
        if i % 5 == 0:
            position = speed * (i * 0.002 - 1.0)
            messages.insert(0, JointState(name=['arm'], position=[
                math.remainder(position, 2.0 * math.pi) if wraps else position]))
        for message in messages:
            message.header.stamp = stamp_to_msg(ns)
            reader.receive(bytes(serialize_message(message)))
    velocities = np.array([velocities for _, _, velocities, _ in receiver.delivered])[200:]
    np.testing.assert_allclose(velocities, np.tile(
        (0.7, 0.0, speed), (len(velocities), 1)), rtol=1e-6)
    assert len(velocities) > 700 and receiver.refused == {'missing joints': 1}


def test_a_clock_that_is_set_back_starts_over():
    rng = np.random.default_rng(3)
    parts = Part(('a', 'b', 'c', 'd'), 2 * MS), Part(('e', 'f'), 2 * MS, 1000)
    reader, receiver, reference = both()
    play(reader, reference, 100 * SECOND, in_turns(parts, rng, 100))
    same(receiver, reference)
    del receiver.delivered[:]
    play(reader, Reference(NAMES, 6), SECOND, in_turns(parts, rng, 100))
    assert receiver.delivered[0][0] >= SECOND and receiver.delivered[-1][0] < 2 * SECOND
    assert receiver.refused['missing joints'] <= 2
