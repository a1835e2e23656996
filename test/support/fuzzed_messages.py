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
Valid messages turned into what no driver should send, by a seed.

Message number k of seed s is the same in every run (but for stamps, which are those of the clock),
whatever came before, so that a failure is replayed by its seed and number.
"""

from array import array
import random
import struct

from biped_com_ros.ros.fast.codec import Layout
import numpy as np
from rclpy.serialization import serialize_message

SECOND = 10 ** 9
NUMBERS = (
    float('nan'), float('inf'), -float('inf'), 1e308, -1e308, 1e200, -1e30, 1e12, 1e5, -1e5, 1e3,
    -200.0, 5e-324, -0.0, 3.1, -1.0)
NAMES = (
    '', '/', ' ', 'base_link', 'odom', 'l_sole', 'r_ankle_ft', 'imu_link', 'no such frame',
    'x' * 300,
    'a\nb\x1b[31m', '../../etc/passwd', '%s%n', '{0.__class__}', '\u202e\U0001f9bf', 'l_knee')
#: Shifts of stamps, s.
SHIFTS = (
    -1e9, -1e6, -3600.0, -10.0, -1.5, -0.9, -0.3, -0.02, -1e-9, 0.02, 0.3, 1.5, 10.0, 1e6, 3e8)
LARGE_TEXT, LARGE_COUNT = 1_000_000, 100_000
#: In each so many numbered messages there is a second in which a topic gets 5000 more.
BURST_EVERY, BURST_RATE, BURST_COUNT = 1000, 5000.0, 5000


def stamped(message):
    """Return a function of a time in ns that returns the message with this stamp, as bytes."""
    raw = bytearray(serialize_message(message))

    def at(now):
        if hasattr(message, 'header'):
            struct.pack_into('<iI', raw, 4, *divmod(now, SECOND))
        return bytes(raw)
    return at


def fields_of(message):
    """Return (owner, name, type) of all fields of a message, and of messages in it."""
    found = []
    for name, kind in message.get_fields_and_field_types().items():
        found.append((message, name, kind))
        value = getattr(message, name)
        for part in value if isinstance(value, list) else [value]:
            if hasattr(part, 'get_fields_and_field_types'):
                found.extend(fields_of(part))
    return found


class Mutations:
    """
    Mutates messages.

    Parameters
    ----------
    rng : random.Random
        Decides.

    """

    def __init__(self, rng):
        self.rng = rng
        self.kinds = {
            self.number: 6, self.all_numbers: 2, self.array_size: 3, self.text: 3, self.stamp: 4,
            self.truncated: 3, self.flipped: 3, self.wrong_length: 3, self.encapsulation: 2,
            self.garbage: 1, self.tail: 1, self.nanoseconds: 1, self.nul: 1,
            self.large_text: 0.05, self.large_array: 0.05}

    def mutate(self, message):
        """Return (name of the mutation, bytes)."""
        kind, = self.rng.choices(list(self.kinds), list(self.kinds.values()))
        return kind.__name__, bytes(kind(message))

    # -- of the message

    def array_size(self, message):
        """Change the length of a sequence, or empty it."""
        arrays = [field for field in fields_of(message) if field[2].startswith('sequence')]
        if arrays:
            owner, name, _ = self.rng.choice(arrays)
            value = list(getattr(owner, name))
            how = self.rng.randrange(4)
            if how == 0 or not value:
                value = []
            elif how == 1:
                del value[self.rng.randrange(len(value)):]
            elif how == 2:
                value += value[:self.rng.randrange(1, len(value) + 1)]
            else:
                self.rng.shuffle(value)
            setattr(owner, name, value)
        return serialize_message(message)

    def text(self, message, value=None):
        """Change a string."""
        value = self.rng.choice(NAMES) if value is None else value
        texts = [field for field in fields_of(message) if 'string' in field[2]]
        if texts:
            owner, name, kind = self.rng.choice(texts)
            if kind == 'string':
                setattr(owner, name, value)
            elif names := list(getattr(owner, name)):
                names[self.rng.randrange(len(names))] = value
                setattr(owner, name, names)
        return serialize_message(message)

    def large_text(self, message):
        """Put 1 MB into a string."""
        return self.text(message, self.rng.choice('xy') * LARGE_TEXT)

    def large_array(self, message):
        """Give a sequence 1e5 elements."""
        arrays = [field for field in fields_of(message)
                  if field[2] in ('sequence<double>', 'sequence<float>', 'sequence<string>')]
        if arrays:
            owner, name, kind = self.rng.choice(arrays)
            setattr(owner, name, ['j'] * LARGE_COUNT if 'string' in kind else array(
                'd' if 'double' in kind else 'f', bytes(LARGE_COUNT * (8 if 'd' in kind else 4))))
        return serialize_message(message)

    def stamp(self, message):
        """Shift a stamp, or make it zero."""
        if hasattr(message, 'header'):
            stamp = message.header.stamp
            ns = stamp.sec * SECOND + stamp.nanosec + round(SECOND * self.rng.choice(SHIFTS))
            if self.rng.random() < 0.1:
                ns = 0
            stamp.sec, stamp.nanosec = divmod(max(ns, -SECOND), SECOND)
        return serialize_message(message)

    # -- of its numbers

    def number(self, message):
        """Change one number."""
        return self._numbers(message, 1)

    def all_numbers(self, message):
        """Change all numbers."""
        return self._numbers(message, None)

    def _numbers(self, message, count):
        raw = bytearray(serialize_message(message))
        places = [(leaf.dtype, leaf.offset + i * leaf.dtype.itemsize)
                  for leaf in Layout(message).leaves for i in range(leaf.count)
                  if leaf.dtype.kind == 'f']
        value = self.rng.choice(NUMBERS)
        for dtype, offset in places if count is None else self.rng.sample(
                places, min(count, len(places))):
            with np.errstate(over='ignore'):
                raw[offset:offset + dtype.itemsize] = np.array(value, dtype).tobytes()
        return raw

    # -- of its bytes

    def truncated(self, message):
        """Cut the end off."""
        raw = serialize_message(message)
        return raw[:self.rng.randrange(4, len(raw))]

    def flipped(self, message):
        """Change some bytes."""
        raw = bytearray(serialize_message(message))
        for _ in range(self.rng.randrange(1, 8)):
            raw[self.rng.randrange(len(raw))] = self.rng.randrange(256)
        return raw

    def wrong_length(self, message):
        """Write a wrong length somewhere."""
        raw = bytearray(serialize_message(message))
        if len(raw) >= 8:
            struct.pack_into('<I', raw, 4 * self.rng.randrange(1, len(raw) // 4), self.rng.choice(
                (0xFFFFFFFF, 0x7FFFFFFF, 0x10000, len(raw), 0, 1)))
        return raw

    def encapsulation(self, message):
        """Declare big endian, XCDR2, or something that does not exist."""
        raw = bytearray(serialize_message(message))
        raw[:2] = self.rng.choice((
            b'\0\0', b'\0\2', b'\0\3', b'\0\6', b'\0\7', b'\0\x08', b'\0\x09', b'\0\x0a',
            b'\0\x0b', b'\xff\xff'))
        return raw

    def garbage(self, message):
        """Return bytes without any meaning."""
        return b'\0\1\0\0' + self.rng.randbytes(self.rng.randrange(1, 400))

    def tail(self, message):
        """Append bytes."""
        return bytes(serialize_message(message)) + bytes(self.rng.choice((1, 8, 4000, 70_000)))

    def nanoseconds(self, message):
        """Write nanoseconds that are more than a second."""
        raw = bytearray(serialize_message(message))
        if hasattr(message, 'header'):
            struct.pack_into('<I', raw, 8, self.rng.choice((SECOND, 0xFFFFFFFF, 2 * SECOND)))
        return raw

    def nul(self, message):
        """Put NUL into the first string."""
        raw = bytearray(serialize_message(message))
        if hasattr(message, 'header') and len(message.header.frame_id) > 1:
            raw[4 + 8 + 4 + self.rng.randrange(len(message.header.frame_id))] = 0
        return raw


class Stream:
    """
    A stream of messages on several topics, most of them valid.

    Parameters
    ----------
    seed
        Of the decisions.
    topics : dict
        Function of the stamp in ns that returns a valid message, by topic.
    share
        Of the numbered messages that are mutated.

    """

    def __init__(self, seed, topics, share=0.3):
        self.seed, self.topics, self.share = seed, topics, share
        self.frozen = {}

    def message(self, number, now):
        """Return (what it is, list of (topic, bytes)) of a numbered message."""
        rng = random.Random(f'{self.seed}/{number}')
        topic = rng.choice(sorted(self.topics))
        valid = self.topics[topic](now)
        if rng.random() > self.share:
            return 'valid', [(topic, bytes(serialize_message(valid)))]
        how = rng.random()
        if how < 0.03:  # a burst, all with the stamps they would have had
            return f'burst on {topic}', [
                (topic, bytes(serialize_message(self.topics[topic](now + k)))) for k in range(50)]
        if how < 0.06:
            return self._swapped(rng, topic, valid)
        if how < 0.09:
            raw = self.frozen.setdefault(topic, bytes(serialize_message(valid)))
            return f'{topic} repeats an old message', [(topic, raw)] * 3
        name, raw = Mutations(rng).mutate(valid)
        return f'{name} on {topic}', [(topic, raw)]

    def burst_after(self, number):
        """Return the topic that gets a sustained burst after a numbered message; None: none."""
        if number % BURST_EVERY != BURST_EVERY // 2:
            return None
        return random.Random(f'{self.seed}/{number}/burst').choice(sorted(self.topics))

    def _swapped(self, rng, topic, valid):
        """Send a message on the topic of another sensor of the same type."""
        others = [other for other in sorted(self.topics) if other != topic and isinstance(
            self.topics[other](0), type(valid))]
        return f'{topic} is swapped', [
            (rng.choice(others) if others else topic, bytes(serialize_message(valid)))]
