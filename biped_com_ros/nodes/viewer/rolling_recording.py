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
"""Keeps the robot's messages of the last minutes while the page is open, to save them as a bag."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from struct import Struct
import tempfile
import time
from typing import Any, NamedTuple

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.plain_xml import LARGEST_TEXT
from biped_com_ros.ros.fast.codec import LONGEST_MESSAGE
from biped_com_ros.ros.node.robot_source import CALIBRATED_TOPIC
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.bag_writer import BagWriter
from biped_com_ros.ros.topics.qos import LATCHED, SENSOR_INPUT
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import (
    PointStamped, PolygonStamped, PoseArray, Vector3Stamped, WrenchStamped)
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64, String

_CLOCK = 'joint_states'
"""The topic by whose stamps the robot's time passes."""
_STAMP = Struct('<iI')  # of a header in CDR, after four bytes


class RecordedTopic(NamedTuple):
    """
    A topic of a recording.

    Attributes
    ----------
    kind
        Type of its messages.
    is_latched
        Whether the last message is kept, however old it is.
    longest
        Largest size of a message that is kept, bytes: one could replace thousands of others.

    """

    kind: type
    is_latched: bool = False
    longest: int = LONGEST_MESSAGE


class _Kept(NamedTuple):
    at_ns: int
    received_ns: int
    topic: str
    raw: bytes


class _RobotTime:
    """
    Time of the robot by the stamps of its joint states, wall time while there are none.

    A simulation may be slower than wall time: a minute of it is that much of the robot's motion.
    """

    def __init__(self) -> None:
        self._at_ns, self._stamp_ns, self._wall_ns = 0, 0, time.time_ns()

    def update(self, topic: str, raw: bytes, wall_ns: int) -> int:
        """Use a message, and return the time that has passed, ns."""
        before = self._stamp_ns
        if topic == _CLOCK and len(raw) >= 12:
            seconds, rest = _STAMP.unpack_from(raw, 4)
            self._stamp_ns = SECOND_NS * seconds + rest
        step, elapsed = self._stamp_ns - before, wall_ns - self._wall_ns
        # By the wall without stamps, and in gaps of theirs.
        if not before or not 0 <= step <= SECOND_NS or (not step and elapsed > SECOND_NS):
            step = max(elapsed, 0)
        if step:
            self._wall_ns = wall_ns
        self._at_ns += step
        return self._at_ns


def recorded_topics(config: RobotConfig) -> dict[str, RecordedTopic]:
    """Return what is recorded of a robot: its sensors, and what the nodes estimate from them."""
    topics = {
        'joint_states': JointState, 'odom': Odometry, '/diagnostics': DiagnosticArray,
        names.COM: PointStamped, names.COM_FUSED: Odometry,
        names.LINK_COMS: PoseArray, names.TRUE_COM: PointStamped,
        names.ZMP: PointStamped, names.ZMP_MODEL: PointStamped,
        names.DCM: PointStamped, names.MARGIN: Float64,
        names.DCM_MARGIN: Float64, names.SUPPORT_POLYGON: PolygonStamped,
        names.FEEDFORWARD: JointState}
    topics |= {imu.topic: Imu for imu in config.imus.values()}
    topics |= {sensor.topic: WrenchStamped for sensor in config.wrench_sensors.values()}
    topics |= {names.wrench_of(foot): WrenchStamped for foot in config.feet}
    if config.torso is not None:
        topics |= {'tendon_states': JointState, names.TORSO_SHAPE: Vector3Stamped}
    descriptions = {name: RecordedTopic(String, True, LARGEST_TEXT)
                    for name in ('robot_description', CALIBRATED_TOPIC)}
    latched = {names.SUPPORT_PHASE: String, names.GAIT_STATE: String,
               names.CALIBRATION_PROGRESS: String,
               **{names.contact_of(foot): Bool for foot in config.feet}}
    return {**{name: RecordedTopic(kind) for name, kind in topics.items() if name},
            **{name: RecordedTopic(kind, True) for name, kind in latched.items()}, **descriptions}


class RollingRecording:
    """
    Keeps serialized messages for a time, within a bounded memory.

    Parameters
    ----------
    node
        For the subscriptions; its executor runs the callbacks.
    topics
        What is recorded, by name of the topic.
    seconds
        Messages are dropped when they are older by the robot's time, s.
    most_bytes
        Limit of the memory: the oldest messages are dropped above it.

    Attributes
    ----------
    latched
        The last message of each latched topic.
    size
        Bytes of the messages that are kept, without those of latched topics.

    """

    def __init__(self, node: Node, topics: Mapping[str, RecordedTopic], seconds: float,
                 most_bytes: int) -> None:
        self._node, self._topics = node, dict(topics)
        self._span_ns, self._most_bytes = round(seconds * SECOND_NS), most_bytes
        self._kept: deque[_Kept] = deque()
        self._time = _RobotTime()
        self.latched: dict[str, _Kept] = {}
        self._subscriptions: list[Any] = []
        self.size = 0

    @property
    def is_running(self) -> bool:
        """Whether messages are received."""
        return bool(self._subscriptions)

    def start(self) -> None:
        """Subscribe."""
        if self._subscriptions:
            return
        for name, topic in self._topics.items():
            def keep(raw: bytes, name: str = name, topic: RecordedTopic = topic) -> None:
                now_ns = time.time_ns()
                at_ns = self._time.update(name, raw, now_ns)
                if len(raw) <= topic.longest:
                    self._keep(_Kept(at_ns, now_ns, name, raw), topic.is_latched)
            self._subscriptions.append(self._node.create_subscription(
                topic.kind, name, keep, LATCHED if topic.is_latched else SENSOR_INPUT, raw=True))

    def stop(self) -> None:
        """Unsubscribe, and drop all messages."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        self._kept.clear()
        self.latched.clear()
        self.size = 0

    def _keep(self, message: _Kept, is_latched: bool) -> None:
        if is_latched:
            self.latched[message.topic] = message
            return
        self._kept.append(message)
        self.size += len(message.raw)
        oldest = message.at_ns - self._span_ns
        while self._kept[0].at_ns < oldest or (
                self.size > self._most_bytes and len(self._kept) > 1):
            self.size -= len(self._kept.popleft().raw)

    def snapshot(self) -> Recording:
        """Return the messages that are kept now; InputError if there are none."""
        if not self._kept:
            raise InputError('nothing was received yet that could be recorded')
        first = self._kept[0]
        # Messages latched before the begin are written with its time.
        latched = [message._replace(at_ns=max(message.at_ns, first.at_ns),
                                    received_ns=max(message.received_ns, first.received_ns))
                   for message in self.latched.values()]
        resolve = self._node.resolve_topic_name
        return Recording(
            {name: (resolve(name), topic.kind) for name, topic in self._topics.items()},
            sorted([*latched, *self._kept], key=lambda message: message.received_ns))


class Recording:
    """
    Messages to write.

    Attributes
    ----------
    duration
        From the first to the last message by the robot's time, s.

    """

    def __init__(self, topics: Mapping[str, tuple[str, type]], messages: list[_Kept]) -> None:
        self._topics, self._messages = topics, messages
        self.duration = 1e-9 * (messages[-1].at_ns - messages[0].at_ns)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._messages)

    def write(self, directory: str) -> Path:
        """
        Write a rosbag2 directory with an MCAP file, and return its path; takes seconds.

        Parameters
        ----------
        directory
            Its parent; it is named by the time. '': a new temporary one.

        Raises
        ------
        ConfigurationError
            If it cannot be written.

        """
        try:
            parent = Path(directory).expanduser() if directory else Path(
                tempfile.mkdtemp(prefix='biped_com_recording.'))
            path = parent / time.strftime('%Y%m%d_%H%M%S')
            with closing(BagWriter(path)) as bag:
                used = dict.fromkeys(message.topic for message in self._messages)
                write = {topic: bag.add_topic(*self._topics[topic]) for topic in used}
                for message in self._messages:
                    write[message.topic](message.raw, message.received_ns)
        except OSError as error:
            raise ConfigurationError(f'the recording cannot be written: {error}') from None
        return path
