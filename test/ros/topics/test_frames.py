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
"""Two robots with frame prefixes in one tree of transforms, over DDS."""

from __future__ import annotations

import importlib

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.node import ComCalibrator
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.payload_estimator.node import PayloadEstimation
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.frames import with_prefix
from biped_com_ros.ros.topics.input_base import inputs_of
from geometry_msgs.msg import PointStamped, TransformStamped, WrenchStamped
import pytest
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header
from support.gait_rig import GaitRig
from support.messages import parameters as parameters_of
from support.ros_rig import NodeRig
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

ROBOTS = ('red', 'blue')
KINDS = (Simulator, WrenchAggregator, ComEstimator, ZmpMonitor)
#: Nodes that publish frames of their own, and what they read; lowstate_bridge has its own test.
OTHERS = (Simulator, WrenchAggregator, GravityCompensation, TorsoController, PayloadEstimation,
          ComCalibrator)
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_frames_in_all_depths_get_the_prefix_once_and_empty_ones_none():
    markers = MarkerArray(markers=[Marker(header=Header(frame_id='odom')), Marker()])
    with_prefix(markers, 'r/')
    assert [marker.header.frame_id for marker in markers.markers] == ['r/odom', '']
    transforms = TFMessage(transforms=[TransformStamped(
        header=Header(frame_id='a'), child_frame_id='b')])
    with_prefix(transforms, 'r/')
    found, = transforms.transforms
    assert (found.header.frame_id, found.child_frame_id) == ('r/a', 'r/b')
    point = PointStamped(header=Header(frame_id='odom'))
    assert with_prefix(point, '').header.frame_id == 'odom'


def frames_of(message):
    """Return all frames of a message that have a name."""
    found = set()
    for name, kind in message.get_fields_and_field_types().items():
        value = getattr(message, name)
        if name in ('frame_id', 'child_frame_id'):
            found |= {value} - {''}
        elif '/' in kind:
            for part in value if isinstance(value, (list, tuple)) else (value,):
                found |= frames_of(part)
    return found


class Fleet(NodeRig):
    """Robots with a prefix each, and everything that they publish."""

    def __init__(self, robots, kinds):
        nodes = []
        for robot in robots:
            for kind in kinds:
                values = {'robot': 'biped', 'frame_prefix': f'{robot}/'}
                values.update({'real_time_factor': 0.5} if kind is Simulator else
                              {'max_stamp_age': 0.0, 'use_sim_time': True})
                if kind is ComCalibrator:
                    values.update(autostart=False, directory='')
                nodes.append(kind(
                    namespace=f'/{robot}', parameter_overrides=parameters_of(**values),
                    cli_args=['--ros-args', '-r', '/clock:=clock']))
        super().__init__(node=nodes[0])
        self.nodes, self.robots = nodes, robots
        for node in nodes[1:]:
            self.executor.add_node(node)
        self.frames, self.pairs = {}, set()
        self.peer.create_subscription(TFMessage, '/tf', self._on_tf, 100)

    def subscribe(self):
        """Subscribe to all topics of the robots."""
        for topic, kinds in self.peer.get_topic_names_and_types():
            if topic.split('/')[1] in self.robots and topic not in self.frames:
                message_type = get_message(kinds[0])
                if frames_possible(message_type):
                    self.frames[topic] = set()
                    self.peer.create_subscription(
                        message_type, topic, self._recorder(topic, message_type), 10, raw=True)

    def _recorder(self, topic, message_type):
        def record(raw):
            self.frames[topic] |= frames_of(deserialize_message(raw, message_type))
        return record

    def _on_tf(self, message):
        self.pairs |= {(transform.header.frame_id, transform.child_frame_id)
                       for transform in message.transforms}

    def check_frames(self, expected):
        """Wait until frames have arrived on all of these topics, then check those of all."""
        missing = expected
        for _ in range(60):  # some topics come after the start
            self.subscribe()
            self.spin(1.0)
            missing = [topic for topic in expected if not self.frames.get(topic)]
            if not missing:
                break
        assert not missing
        for topic, frames in self.frames.items():
            robot = topic.split('/')[1]
            assert all(frame.startswith(f'{robot}/') and not frame.startswith(f'{robot}/{robot}/')
                       for frame in frames), (topic, frames)

    def check_inputs(self):
        """Check that what the nodes received with prefixes was accepted."""
        for node in self.nodes:
            for source in inputs_of(node):
                assert not source.refused, source.last_error

    def close(self):
        self.executor.shutdown()
        for node in (*self.nodes, self.peer):
            node.destroy_node()


def get_message(kind):
    """Return the class of a message, by its name as in package/msg/Name."""
    package, _, name = kind.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), name)


def frames_possible(message_type):
    kinds = set(message_type.get_fields_and_field_types().values())
    return any('Header' in kind or '[]' in kind or 'sequence' in kind for kind in kinds)


@pytest.fixture
def fleet(ros):
    rig = Fleet(ROBOTS, KINDS)
    yield rig
    rig.close()


def test_two_robots_share_a_tree_and_no_frame(fleet):
    expected = [f'/{robot}/{topic}' for robot in ROBOTS for topic in (
        'imu', 'left_foot/wrench', 'wrench_aggregator/left/wrench', 'wrench_aggregator/wrench',
        'com_estimator/com', 'com_estimator/com_fused', 'com_estimator/markers',
        'zmp_monitor/zmp', 'zmp_monitor/support_polygon', 'zmp_monitor/markers',
        'simulator/truth/com')]
    fleet.check_frames(expected)
    fleet.until(lambda: {robot for robot in ROBOTS for _, child in fleet.pairs
                         if child == f'{robot}/base_link'} == set(ROBOTS), what='transforms')
    children = [child for _, child in fleet.pairs]
    assert len(children) == len(set(children))
    assert {parent.split('/')[0] == child.split('/')[0] for parent, child in fleet.pairs} == {True}
    fleet.check_inputs()


def test_what_commands_and_identifies_has_the_prefix_too(ros):
    rig = Fleet(('green',), OTHERS)
    try:
        rig.check_frames([f'/green/{topic}' for topic in (
            'gravity_compensation/left/wrench', 'gravity_compensation/markers',
            'torso_controller/shape', 'torso_controller/reference', 'torso_controller/wrench',
            'torso_controller/markers', 'payload_estimator/payload')])
        rig.until(lambda: rig.pairs, what='transforms of the torso')
        assert all(name.startswith('green/') for pair in rig.pairs for name in pair)
        rig.check_inputs()
        assert all(source.count > 0 for source in inputs_of(rig.nodes[-1]))  # com_calibrator
    finally:
        rig.close()


def test_the_zmp_reference_of_a_walk_has_it_once_whether_the_com_has_it_or_not(ros):
    rig = GaitRig(RobotModel.load('biped'), frame_prefix='red/')
    try:
        rig.until_it_may()
        assert rig.request('single_step').success
        rig.until(lambda: rig.references, what='the reference')
        assert {reference.header.frame_id for reference in rig.references} == {'red/odom'}
    finally:
        rig.close()


def test_frames_of_drivers_may_have_the_prefix_or_not(ros):
    node = WrenchAggregator(namespace='/mixed', parameter_overrides=parameters_of(
        robot='biped', frame_prefix='mixed/', max_stamp_age=0.0))
    rig = NodeRig(node=node)
    try:
        source = node.sensors[0]
        sender = rig.publisher(WrenchStamped, source.topic)
        for i, frame in enumerate(('l_ankle_ft', 'mixed/l_ankle_ft')):
            message = WrenchStamped(header=Header(frame_id=frame))
            message.header.stamp.sec = i + 1
            sender.publish(message)
            rig.until(lambda count=i + 1: source.count == count, what=frame)
        message = WrenchStamped(header=Header(frame_id='other/l_ankle_ft'))
        message.header.stamp.sec = 3
        sender.publish(message)
        rig.until(lambda: source.refused, what='the refusal')
        assert source.refused == {'wrong frame': 1}
    finally:
        rig.close()


def test_a_node_without_the_parameter_has_no_prefix(ros):
    from biped_com_ros.ros.topics.frames import frame_prefix
    node = Node('plain')
    assert frame_prefix(node) == ''
    node.destroy_node()
