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
publish has to be equal to the last bit for the same stamps.
"""

from functools import partial

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import (
    PointStamped, PolygonStamped, Vector3Stamped, WrenchStamped)
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64
from support.ros_rig import NodeRig
from support.swaying_robot import swaying_robot
from visualization_msgs.msg import MarkerArray

COUNT = 100
INPUTS = {'joint_states': JointState, 'imu': Imu, 'wrench_aggregator/left/wrench': WrenchStamped,
          'wrench_aggregator/right/wrench': WrenchStamped}
STAMPED = {'zmp_monitor/zmp': PointStamped, 'zmp_monitor/zmp_model': PointStamped,
           'zmp_monitor/zmp_difference': Vector3Stamped, 'zmp_monitor/dcm': PointStamped,
           'zmp_monitor/support_polygon': PolygonStamped, 'com_estimator/com_fused': Odometry,
           'com_estimator/com_bias': Vector3Stamped,
           'com_estimator/external_force': WrenchStamped}
#: What `base_source` adds.
OF_BASE = {'imu': {}, 'filter': {'com_estimator/odometry': Odometry}}
PLAIN = {'zmp_monitor/margin': Float64, 'zmp_monitor/dcm_margin': Float64}
MARKERS = {'zmp_monitor/markers': MarkerArray}


@pytest.fixture(scope='module')
def motion():
    """Return (ns, messages by topic) of a swaying robot."""
    return list(swaying_robot(COUNT))


class ReplayRig(NodeRig):
    """Both nodes by simulated time, who feeds them, and who listens to raw bytes."""

    def __init__(self, space, base_source):
        self.stamped = {**STAMPED, **OF_BASE[base_source]}
        options = {
            'namespace': space, 'cli_args': ['--ros-args', '-r', '/diagnostics:=diagnostics'],
            'parameter_overrides': [Parameter('use_sim_time', value=True),
                                    Parameter('marker_rate', value=50.0),
                                    Parameter('base_source', value=base_source)]}
        super().__init__(node=ZmpMonitor(**options))
        self.space, self.com = space, ComEstimator(**options)
        self.executor.add_node(self.com)
        self.outputs = {}
        for topic, kind in {**self.stamped, **PLAIN, **MARKERS}.items():
            self.outputs[topic] = self.tap(kind, topic, LATCHED if topic in MARKERS else 50)
        self.clock = self.peer.create_publisher(Clock, '/clock', 10)
        self.inputs = {topic: self.peer.create_publisher(kind, f'{space}/{topic}', 50)
                       for topic, kind in INPUTS.items()}
        self.until(lambda: self.clock.get_subscription_count() == 2 and all(
            publisher.get_subscription_count() == 2 for publisher in self.inputs.values()),
            what='subscriptions of both nodes')
        self.until(lambda: all(publisher.get_subscription_count() for node in (self.node, self.com)
                               for publisher in node.publishers
                               if publisher.topic_name.partition(f'{space}/')[2]
                               in self.outputs), what='listeners')

    def tap(self, kind, topic, qos=50):
        """Return a list of the raw messages of a topic."""
        received = []
        self.peer.create_subscription(
            kind, f'{self.space}/{topic}', received.append, qos, raw=True)
        return received

    def go_to(self, ns):
        """Set the simulated time of both nodes."""
        self.clock.publish(Clock(clock=rclpy.time.Time(nanoseconds=ns).to_msg()))
        self.until(lambda: all(node.get_clock().now().nanoseconds == ns
                               for node in (self.node, self.com)), what='the clock')

    def finish(self, ns):
        """Wait until the last instant has gone through both nodes."""
        last = ('zmp_monitor/zmp', 'com_estimator/com_fused')
        self.until(lambda: all(self.outputs[topic] and stamp_in(self.outputs[topic][-1]) == ns
                               for topic in last), what='the last instant')
        self.spin(0.1)

    def messages(self, topic, kind):
        """Return the messages of an output."""
        return [deserialize_message(raw, kind) for raw in self.outputs[topic]]

    def close(self):
        super().close()
        self.com.destroy_node()


def stamp_in(raw):
    seconds, nanoseconds = np.frombuffer(raw, '<u4', 2, 4).tolist()
    return seconds * 10**9 + nanoseconds


def play_and_record(robot, motion, bag):
    """Let the robot move, and record its topics into the bag."""
    taps = {topic: robot.tap(kind, topic) for topic, kind in INPUTS.items()}
    robot.until(lambda: all(publisher.get_subscription_count() > 2
                            for publisher in robot.inputs.values()), what='recorder')
    robot.spin(0.3)  # publishers look for subscribers ten times a second
    for ns, sent in motion:
        robot.go_to(ns)
        for topic, message in sent.items():
            robot.inputs[topic].publish(message)
        robot.until(partial(have_all, taps, ns), what='recording')
    robot.finish(motion[-1][0])
    write_bag(bag, taps)


def have_all(taps, ns):
    return all(tap and stamp_in(tap[-1]) == ns for tap in taps.values())


def write_bag(path, taps):
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    from rosbags.typesys import get_typestore, Stores
    store = get_typestore(Stores.ROS2_JAZZY)
    with rosbag2.Writer(path, version=9) as writer:
        connections = {topic: writer.add_connection(
            f'/{topic}', '/'.join((*kind.__module__.split('.')[:2], kind.__name__)),
            typestore=store) for topic, kind in INPUTS.items()}
        for stamp, topic, raw in sorted(
                (stamp_in(raw), topic, raw) for topic, tap in taps.items() for raw in tap):
            writer.write(connections[topic], stamp, raw)


def play_bag(robot, bag):
    """Publish what the bag has: topics run ahead of each other by up to ten instants."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    with rosbag2.Reader(bag) as reader:
        entries = [(stamp, connection.topic[1:], bytes(raw))
                   for connection, stamp, raw in reader.messages()]
    stamps = sorted({stamp for stamp, _, _ in entries})
    rng = np.random.default_rng(0)
    robot.spin(0.3)
    for start in range(0, len(stamps), 10):
        block = stamps[start:start + 10]
        robot.go_to(block[-1])
        for topic in rng.permutation(list(INPUTS)):
            for stamp, of, raw in entries:
                if of == topic and block[0] <= stamp <= block[-1]:
                    robot.inputs[topic].publish(raw)
            robot.spin(0.02)
    robot.finish(stamps[-1])
    return len(stamps)


@pytest.mark.parametrize('base_source', OF_BASE)
def test_a_bag_gives_the_same_as_live_to_the_last_bit(motion, tmp_path, base_source):
    live = ReplayRig('/live', base_source)
    try:
        play_and_record(live, motion, tmp_path / 'bag')
    finally:
        live.close()
    replayed = ReplayRig('/live', base_source)
    try:
        assert play_bag(replayed, tmp_path / 'bag') == COUNT
    finally:
        replayed.close()
    for topic, kind in {**live.stamped, **PLAIN}.items():
        once, again = (robot.messages(topic, kind) for robot in (live, replayed))
        assert once == again, topic
        assert len(once) > 0.9 * COUNT, topic
    # Of latched topics only the last message is kept for those who are slow.
    shown, again = ({str(message.markers[0].header.stamp): message
                     for message in robot.messages('zmp_monitor/markers', MarkerArray)}
                    for robot in (live, replayed))
    assert again and again == {stamp: shown[stamp] for stamp in again}
