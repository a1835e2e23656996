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
A recording that is played again gives the same results as live, to the last bit.

A simulated robot's topics are recorded into a real bag while `zmp_monitor` and `com_estimator`
run by simulated time. New nodes get what the bag has, the topics in another order. What they
publish has to be equal to the last bit for the same stamps. So has what they publish in one
process, where they share what locates the robot.
"""

from contextlib import closing

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.suite.node import start_sharing
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from support.driven_time import run_ready
from support.messages import parameters, stamp_of
from support.ros_rig import NodeRig
from support.swaying_robot import swaying_robot

COUNT = 100
INPUTS = {'joint_states': JointState, 'imu': Imu, 'wrench_aggregator/left/wrench': WrenchStamped,
          'wrench_aggregator/right/wrench': WrenchStamped}
OUTPUTS = {f'zmp_monitor/{name}' for name in (
    'zmp', 'zmp_model', 'zmp_difference', 'dcm', 'support_polygon', 'margin', 'dcm_margin',
    'markers')} | {f'com_estimator/{name}' for name in ('com_fused', 'com_bias', 'external_force')}
#: What `base_source` adds.
OF_BASE = {'imu': set(), 'filter': {'com_estimator/odometry'}}


class ReplayRig(NodeRig):
    """Both nodes by simulated time, composed or not, who feeds them, who listens to raw bytes."""

    def __init__(self, base_source, composed=False):
        options = {
            'namespace': '/live', 'cli_args': ['--ros-args', '-r', '/diagnostics:=diagnostics'],
            'parameter_overrides': parameters(
                use_sim_time=True, marker_rate=50.0, base_source=base_source)}
        self.com, node, *self.pool = _composed(options) if composed else (
            ComEstimator(**options), ZmpMonitor(**options))
        super().__init__(node=node, namespace='/live')
        for other in (self.com, *self.pool):
            self.executor.add_node(other)
        self.clock = self.peer.create_publisher(Clock, '/clock', 10)
        self.inputs = {topic: self.peer.create_publisher(kind, topic, 50)
                       for topic, kind in INPUTS.items()}
        readers = 1 if composed else 2
        self.until(lambda: self.clock.get_subscription_count() == 2 and all(
            publisher.get_subscription_count() == readers for publisher in self.inputs.values()),
            what='subscriptions of both nodes')
        outputs = OUTPUTS | OF_BASE[base_source]
        self.until(lambda: outputs <= self.publishers().keys(), what='publishers')
        sources = {**self.publishers(), **self.inputs}
        self.types = {topic: sources[topic].msg_type for topic in outputs | INPUTS.keys()}
        self.taps = {topic: [] for topic in self.types}
        for topic, tap in self.taps.items():
            self.peer.create_subscription(
                self.types[topic], topic, tap.append,
                LATCHED if topic == 'zmp_monitor/markers' else 50, raw=True)
        self.until(lambda: all(
            sources[topic].get_subscription_count() > readers * (topic in INPUTS)
            for topic in self.taps), what='listeners')
        self.spin(0.3)  # publishers look for subscribers ten times a second

    def publishers(self):
        """Return the publishers of both nodes by topic."""
        return {publisher.topic_name.removeprefix('/live/'): publisher
                for node in (self.node, self.com) for publisher in node.publishers}

    def play(self, instants):
        """Publish (ns, (topic, message)...) each, by the time of the last one."""
        for ns, sent in instants:
            self.clock.publish(Clock(clock=stamp_of(ns)))
            run_ready(self.executor)
            for topic, message in sent:
                self.inputs[topic].publish(message)
                run_ready(self.executor)

    def results(self):
        """Return the messages of each output."""
        return {topic: [deserialize_message(raw, self.types[topic]) for raw in tap]
                for topic, tap in self.taps.items() if topic not in INPUTS}

    @property
    def is_shared(self):
        """Whether both nodes get the states of one estimator."""
        return self.com.fusion.states.estimator is self.node.states.estimator

    def close(self):
        super().close()
        for other in (self.com, *self.pool):
            other.destroy_node()


def _composed(options):
    """Return both nodes as a suite has them, and the node of their subscriptions."""
    return start_sharing('suite', '/live', lambda: [
        ComEstimator(**options), ZmpMonitor(**options)])


def write_bag(path, taps):
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    from rosbags.typesys import get_typestore, Stores
    store = get_typestore(Stores.ROS2_JAZZY)
    with rosbag2.Writer(path, version=9) as writer:
        connections = {topic: writer.add_connection(
            f'/{topic}', '/'.join((*kind.__module__.split('.')[:2], kind.__name__)),
            typestore=store) for topic, kind in INPUTS.items()}
        for stamp, topic, raw in sorted(
                (stamp_in(raw), name, raw) for name in INPUTS for raw in taps[name]):
            writer.write(connections[topic], stamp, raw)


def stamp_in(raw):
    seconds, nanoseconds = np.frombuffer(raw, '<u4', 2, 4).tolist()
    return seconds * 10**9 + nanoseconds


def read_bag(bag):
    """Yield what the bag has: topics run ahead of each other by up to ten instants."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    with rosbag2.Reader(bag) as reader:
        entries = [(stamp, connection.topic[1:], bytes(raw))
                   for connection, stamp, raw in reader.messages()]
    stamps, rng = sorted({stamp for stamp, _, _ in entries}), np.random.default_rng(0)
    assert len(stamps) == COUNT
    for start in range(0, len(stamps), 10):
        block = stamps[start:start + 10]
        yield block[-1], [(topic, raw) for topic in rng.permutation(list(INPUTS))
                          for stamp, of, raw in entries if of == topic and stamp in block]


@pytest.mark.parametrize('base_source', [
    'imu', pytest.param('filter', marks=pytest.mark.thorough)])
def test_a_bag_gives_the_same_as_live_to_the_last_bit(tmp_path, base_source):
    with closing(ReplayRig(base_source)) as live:
        live.play((ns, sent.items()) for ns, sent in swaying_robot(COUNT))
        write_bag(tmp_path / 'bag', live.taps)
    with closing(ReplayRig(base_source)) as replayed:
        replayed.play(read_bag(tmp_path / 'bag'))
    assert_same(live.results(), replayed.results())


@pytest.mark.parametrize('base_source', [
    'imu', pytest.param('filter', marks=pytest.mark.thorough)])
def test_nodes_of_one_process_share_their_states_and_give_the_same_to_the_last_bit(base_source):
    """A setting that one of them changes is its own: nothing is late, so nothing else changes."""
    instants = [(ns, sent.items()) for ns, sent in swaying_robot(COUNT)]
    with closing(ReplayRig(base_source)) as apart:
        apart.play(instants)
        assert not apart.is_shared
    with closing(ReplayRig(base_source, composed=True)) as composed:
        assert composed.is_shared
        composed.play(instants[:40])
        for node, is_shared in ((composed.node, False), (composed.com, True)):
            assert not composed.set_parameters(node, base_timeout=0.2)
            assert composed.is_shared == is_shared
            composed.play(instants[40:60] if node is composed.node else instants[60:])
    assert_same(apart.results(), composed.results())


def assert_same(results, again):
    for topic, messages in results.items():
        assert messages == again[topic], topic
        assert len(messages) > 0.9 * COUNT or topic.endswith('markers'), topic
    assert again['zmp_monitor/markers']
