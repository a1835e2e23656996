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
"""The recording of the last minutes: what is kept, how much of it, and what is written."""

import itertools
from pathlib import Path

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.viewer.rolling_recording import (
    recorded_topics, RecordedTopic, RollingRecording)
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import stamp_to_msg
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from support.messages import parameters
from support.ros_rig import NodeRig

TOPICS = {'joint_states': RecordedTopic(JointState), 'phase': RecordedTopic(String, True),
          'description': RecordedTopic(String, True, 1_000_000)}
MODEL = RobotModel.load('biped')
#: Of the nodes: one of the same name may stay in the graph for a while.
NUMBERS = itertools.count()


class Recorded:
    """A robot that publishes for a recording."""

    def __init__(self, seconds, most_bytes=10 ** 6):
        self.rig = NodeRig(f'viewer_{next(NUMBERS)}')
        self.rolling = RollingRecording(self.rig.node, TOPICS, seconds, most_bytes)
        self.joints = self.rig.peer.create_publisher(JointState, 'joint_states', 10)
        self.phase = self.rig.peer.create_publisher(String, 'phase', LATCHED)
        self.phase.publish(String(data='double'))
        self.count = 0

    def publish(self, seconds):
        """Publish joint states for some time, and receive them."""
        for _ in range(round(seconds / 0.01)):
            self.count += 1
            self.joints.publish(JointState(name=['knee'], position=[float(self.count)]))
            self.rig.spin(0.01)

    def subscribers(self):
        """Return how many subscriptions the recording has, not those of earlier tests."""
        found = self.rig.peer.get_subscriptions_info_by_topic('joint_states')
        return [one.node_name for one in found].count(self.rig.node.get_name())

    def begin(self):
        """Subscribe, and wait for messages."""
        self.rolling.start()
        self.rig.until(lambda: self.publish(0.02) or (
            self.rolling.size and len(self.rolling.snapshot()) > 2), what='messages')
        return self

    def close(self):
        self.rig.close()


@pytest.fixture
def begin(closing):
    """Return a function that begins a recording."""
    return lambda *arguments: closing(Recorded(*arguments)).begin()


def read(path):
    """Return the recorded positions and texts with their times, s."""
    with opened_bag(path) as bag:
        return [(topic.topic, 1e-9 * at, bag.deserialize(raw, topic.msgtype))
                for topic, at, raw in bag.messages()]


def test_the_last_seconds_are_written_with_what_was_latched_before(begin, tmp_path):
    robot = begin(0.5)
    robot.publish(1.2)
    recording = robot.rolling.snapshot()
    path = recording.write(str(tmp_path / 'new' / 'recordings'))
    assert path.parent == tmp_path / 'new' / 'recordings' and list(path.glob('*.mcap'))
    messages = read(path)
    assert len(messages) == len(recording)
    assert 0.3 < messages[-1][1] - messages[0][1] <= 0.5 + 1e-3
    texts = [(at, message.data) for name, at, message in messages if name.endswith('/phase')]
    assert texts == [(pytest.approx(messages[0][1]), 'double')]
    positions = [message.position[0] for name, _, message in messages
                 if name.endswith('/joint_states')]
    assert positions == sorted(positions) and positions[-1] >= robot.count - 2
    assert messages[-1][2].name == ['knee']


def test_simulated_time_counts_where_it_is_slower_than_the_wall(closing):
    """Joint states 10 ms apart by their stamps, which arrive at a fifth of that pace."""
    rig = closing(NodeRig(f'viewer_{next(NUMBERS)}'))
    rolling = RollingRecording(rig.node, TOPICS, 0.5, 10 ** 6)
    joints = rig.peer.create_publisher(JointState, 'joint_states', 10)
    rolling.start()
    stamps = itertools.count(7 * 10**9, 10**7)

    def publish():
        joints.publish(JointState(header=Header(stamp=stamp_to_msg(next(stamps))), name=['knee']))
        rig.spin(0.05)
    rig.until(lambda: publish() or rolling.size, what='messages')
    for _ in range(60):
        publish()
    recording = rolling.snapshot()
    assert 0.4 < recording.duration <= 0.5 and len(recording) > 40


def test_the_memory_is_bounded(begin):
    robot = begin(600.0, 2000)
    robot.publish(1.0)
    assert robot.count > 40 and 1500 < robot.rolling.size <= 2000
    assert len(robot.rolling.snapshot()) < 40


def test_a_megabyte_does_not_drive_the_others_out(begin):
    robot = begin(600.0, 500_000)
    robot.publish(0.3)
    before = len(robot.rolling.snapshot())
    robot.joints.publish(JointState(name=['x' * 1_000_000]))
    robot.rig.until(lambda: robot.publish(0.02) or len(robot.rolling.snapshot()) > before,
                    timeout=10.0, what='more messages')
    assert robot.rolling.size < 100_000


def test_of_latched_texts_only_descriptions_may_be_long(begin, tmp_path):
    robot = begin(600.0)
    robot.rig.until(lambda: robot.publish(0.02) or robot.rolling.latched, what='the phase')
    robot.phase.publish(String(data='x' * 100_000))
    description = robot.rig.peer.create_publisher(String, 'description', LATCHED)
    description.publish(String(data='y' * 100_000))
    robot.rig.until(lambda: robot.publish(0.02) or any(
        len(kept.raw) > 100_000 for kept in robot.rolling.latched.values()),
        what='the description')
    texts = {name.rpartition('/')[2]: message.data for name, _, message in read(
        robot.rolling.snapshot().write(str(tmp_path))) if hasattr(message, 'data')}
    assert texts == {'phase': 'double', 'description': 'y' * 100_000}


def test_nothing_is_kept_without_a_page(closing):
    robot = closing(Recorded(60.0))
    assert not robot.rolling.is_running
    with pytest.raises(InputError, match='nothing was received'):
        robot.rolling.snapshot()
    robot.begin()
    assert robot.rolling.is_running
    robot.rig.until(lambda: robot.subscribers() == 1, what='one')
    robot.rolling.stop()
    assert robot.rolling.size == 0 and not robot.rolling.is_running
    robot.rig.until(lambda: not robot.subscribers(), what='none')
    robot.rolling.stop()


def test_what_cannot_be_written_is_reported(begin, tmp_path):
    robot = begin(60.0)
    (tmp_path / 'file').write_text('')
    with pytest.raises(ConfigurationError, match='cannot be written'):
        robot.rolling.snapshot().write(str(tmp_path / 'file'))
    path = robot.rolling.snapshot().write('')
    assert Path(path).is_dir()
    for part in (*path.iterdir(), path, path.parent):
        part.rmdir() if part.is_dir() else part.unlink()


def test_all_sensors_of_a_robot_are_recorded():
    topics = recorded_topics(MODEL.config)
    assert 'joint_states' in topics and MODEL.config.imu.topic in topics
    assert all(sensor.topic in topics for sensor in MODEL.config.wrench_sensors.values())
    assert topics['robot_description'].is_latched and not topics['joint_states'].is_latched


def test_the_button_of_the_page_writes_while_it_is_open(monkeypatch, tmp_path, closing):
    pytest.importorskip('viser', reason='the page needs viser: pip install viser')
    from biped_com_ros.nodes.viewer.node import Viewer
    from biped_com_ros.viz.page import Page
    browsers = []
    monkeypatch.setattr(Page, 'browsers', property(lambda page: len(browsers)))
    rig = closing(NodeRig(node=Viewer(parameter_overrides=parameters(
        port=0, recording_directory=str(tmp_path)))))
    notes = []
    monkeypatch.setattr(rig.node.page.controls, 'show_note',
                        lambda group, *note: group == 'record' and notes.append(note))
    joints = rig.peer.create_publisher(JointState, 'joint_states', 10)

    def subscribers():
        found = rig.peer.get_subscriptions_info_by_topic('joint_states')
        return [one.node_name for one in found if one.node_name == 'viewer']
    rig.spin(1.5)
    assert not subscribers()
    browsers.append(1)
    rig.until(subscribers, what='a subscription')
    rig.until(lambda: joints.publish(JointState(name=['knee'])) or (
        rig.node._rolling.size), what='messages')
    rig.node._on_command('record', None)
    rig.until(lambda: any(note[1:] == (True,) for note in notes), what=f'a file, {notes}')
    path, = tmp_path.iterdir()
    assert str(path) in notes[-1][0]
    assert any(name.endswith('joint_states') for name, *_ in read(path))
    browsers.clear()
    rig.until(lambda: not subscribers(), what='no subscription')
