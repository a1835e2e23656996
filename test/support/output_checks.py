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
"""Checks every output of a node while it runs: finite, bounded, stamped freshly, frames known."""

import struct
import time

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.ros.fast.codec import Decoder, Layout, Selection
import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

#: Oldest and newest stamp of an output against the clock, s: `max_stamp_age`, and time on the way.
OLDEST, NEWEST = 3.0, 1.1
#: Parameters of gravity_compensation in these tests, and the longest period that its rate counts.
CLAMP, RATE, MAX_STEP = 0.8, 10.0, 0.01
_NOT_OF_THE_NODE = ('/rosout', '/parameter_events')


class OutputChecks:
    """
    Subscribes to all that a node publishes, and keeps what is wrong with it.

    Parameters
    ----------
    node
        Has the subscriptions.
    robot : StandingRobot
        The robot.
    topics : dict
        Class of the messages by topic.
    ignored
        Topics that others publish, too.
    has_own_time
        Whether the stamps are those of a simulation.

    Attributes
    ----------
    violations : list of str
        What was wrong.
    counts : dict
        Number of messages by topic.
    received_at : dict
        Monotonic time of the last message by topic.
    lost : int
        Number of efforts that were published and did not arrive.
    is_learning
        Whether the frames of messages are good ones; others are not later.

    """

    def __init__(self, node, robot, topics, ignored, has_own_time):
        self._node, self.violations, self._has_own_time = node, [], has_own_time
        self.lost = 0
        self.counts, self.received_at, self.is_learning = dict.fromkeys(topics, 0), {}, True
        self._model, self._before = robot.model, {}
        self._frames = {*robot.model.frame_names, 'odom'}
        self._limits = GravityModel(robot.model).effort_limits
        for topic, kind in topics.items():
            if topic in _NOT_OF_THE_NODE or topic in ignored or kind is String:
                continue
            durability = node.get_publishers_info_by_topic(topic)[0].qos_profile.durability
            decoder = Decoder(kind, lambda message: Selection([], Contents(message)))
            node.create_subscription(
                kind, topic, self._checker(topic, decoder),
                QoSProfile(depth=500, reliability=ReliabilityPolicy.RELIABLE,
                           durability=durability), raw=True)

    def _checker(self, topic, decoder):
        return lambda raw, info: self._check(topic, decoder, raw, info)

    def _check(self, topic, decoder, raw, info):
        self.counts[topic] += 1
        self.received_at[topic] = time.monotonic()
        if topic == '/diagnostics':
            return
        contents = decoder.plan_for(raw).data
        for values in contents.numbers(raw):
            if not np.isfinite(values).all():
                self._report(topic, f'{deserialize_message(raw, contents.kind)}')
        self._check_frames(topic, contents.frames)
        if not self._has_own_time:
            for ns in contents.stamps(raw):
                age = 1e-9 * (info['source_timestamp'] - ns)
                if ns and not -NEWEST < age < OLDEST:  # markers may be shown at any time
                    self._report(topic, f'stamped {age:.3f} s before it was published')
        if topic.endswith(('gravity_compensation/effort', 'gravity_compensation/commands')):
            self._check_efforts(topic, deserialize_message(raw, contents.kind),
                                info['publication_sequence_number'])

    def _check_frames(self, topic, frames):
        if self.is_learning:
            self._frames.update(frames)
        elif not frames <= self._frames:
            self._report(topic, f'unknown frames {frames - self._frames!r:.200}')

    def _check_efforts(self, topic, message, number):
        """
        Check the clamp and the rate.

        On a busy computer messages are overwritten in the publisher's queue before they are
        sent; their numbers tell how many steps lie between two that arrive.
        """
        names = message.name if hasattr(message, 'name') else self._model.actuated_joint_names
        limits = self._limits[self._model.joint_index(names)]
        efforts = np.array(message.effort if hasattr(message, 'effort') else message.data)
        last, before = self._before.get(topic, (number - 1, np.zeros(len(limits))))
        self._before[topic] = number, efforts
        self.lost += number - last - 1
        if (np.abs(efforts) > CLAMP * limits + 1e-9).any():
            self._report(topic, f'beyond the clamp: {efforts}')
        step = np.abs(efforts - before) / ((number - last) * RATE * MAX_STEP * limits + 1e-9)
        if (step > 1.0 + 1e-9).any():
            self._report(topic, f'{step.max():.3f} times the largest step')

    def _report(self, topic, text):
        if len(self.violations) < 50:
            self.violations.append(f'{topic}: {text}')


class Contents:
    """
    Where the numbers and stamps of messages of one structure are, and their frames.

    Parameters
    ----------
    message
        One of them.

    """

    def __init__(self, message):
        self.kind = type(message)
        leaves = Layout(message).leaves
        self._places = []
        for size, dtype in ((8, np.float64), (4, np.float32)):
            offsets = [leaf.offset + i * size for leaf in leaves if leaf.dtype == dtype
                       for i in range(leaf.count)]
            if offsets:
                self._places.append((np.add.outer(offsets, range(size)), dtype))
        self._stamps = [leaf.offset for leaf in leaves if leaf.path[-2:] == ('stamp', 'sec')]
        self.frames = {*frames_of(message)} - {''}  # joint states have none

    def numbers(self, raw):
        """Return all floating-point values, an array per type."""
        data = np.frombuffer(raw, np.uint8)
        return [data[places].view(dtype) for places, dtype in self._places]

    def stamps(self, raw):
        """Return the stamps of all headers, ns."""
        stamps = [struct.unpack_from('<iI', raw, offset) for offset in self._stamps]
        return [seconds * 10 ** 9 + nanoseconds for seconds, nanoseconds in stamps]


def frames_of(message):
    """Return the names of frames in a message and in the messages in it."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if name in ('frame_id', 'child_frame_id'):
            yield value
        else:
            for part in value if isinstance(value, list) else [value]:
                if hasattr(part, 'get_fields_and_field_types'):
                    yield from frames_of(part)
