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

import importlib
import re

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_calibrator.node import ComCalibrator
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.payload_estimator.node import PayloadEstimation
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.frames import frame_prefix, with_prefix
from biped_com_ros.ros.topics.input_base import inputs_of
from geometry_msgs.msg import PointStamped, TransformStamped, WrenchStamped
import pytest
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header
from support.driven_time import run_ready
from support.gait_rig import GaitRig
from support.messages import parameters as parameters_of
from support.output_checks import frames_of
from support.ros_rig import NodeRig
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

NOT_SIMULATING = {'max_stamp_age': 0.0, 'use_sim_time': True}
OPTIONS = {Simulator: {'real_time_factor': 0.5},
           ComCalibrator: {**NOT_SIMULATING, 'autostart': False, 'directory': ''}}


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


class Fleet(NodeRig):
    """Robots with a prefix each, and everything that they publish."""

    def __init__(self, robots, kinds):
        self.nodes = [kind(
            namespace=f'/{robot}', cli_args=['--ros-args', '-r', '/clock:=clock'],
            parameter_overrides=parameters_of(
                robot='biped', frame_prefix=f'{robot}/', **OPTIONS.get(kind, NOT_SIMULATING)))
            for robot in robots for kind in kinds]
        super().__init__(node=self.nodes[0])
        for node in self.nodes[1:]:
            self.executor.add_node(node)
        self.robots, self.frames, self.pairs = robots, {}, set()
        self.peer.create_subscription(TFMessage, '/tf', self._on_tf, 100)

    def subscribe(self):
        """Subscribe to all topics of the robots."""
        for topic, (kind, *_) in self.peer.get_topic_names_and_types():
            if topic.split('/')[1] in self.robots and topic not in self.frames:
                package, _, name = kind.split('/')
                message_type = getattr(importlib.import_module(f'{package}.msg'), name)
                fields = ' '.join(message_type.get_fields_and_field_types().values())
                if re.search(r'Header|\[\]|sequence', fields):
                    self.frames[topic] = set()
                    self.peer.create_subscription(
                        message_type, topic, self._recorder(topic, message_type), 10, raw=True)

    def _recorder(self, topic, message_type):
        def record(raw):
            self.frames[topic] |= {*frames_of(deserialize_message(raw, message_type))} - {''}
        return record

    def _on_tf(self, message):
        self.pairs |= {(transform.header.frame_id, transform.child_frame_id)
                       for transform in message.transforms}

    def check(self, topics):
        """Wait until frames have arrived on all of these topics; check all frames and inputs."""
        def complete():
            self.subscribe()  # some topics come after the start
            return all(self.frames.get(f'/{robot}/{topic}') for robot in self.robots
                       for topic in topics) and {
                child.split('/')[0] for _, child in self.pairs} == set(self.robots)
        self.until(complete, what='frames on all topics')
        for topic, frames in [*self.frames.items(), *(
                (f'/{child}', {parent, child}) for parent, child in self.pairs)]:
            robot = topic.split('/')[1]
            assert all(frame.startswith(f'{robot}/') and not frame.startswith(f'{robot}/{robot}/')
                       for frame in frames), (topic, frames)
        children = [child for _, child in self.pairs]
        assert len(children) == len(set(children))
        for source in (source for node in self.nodes for source in inputs_of(node)):
            assert not source.refused, source.last_error

    def wait(self):
        self.spin(0.05)

    def close(self):
        for node in self.nodes[1:]:
            node.destroy_node()
        super().close()


@pytest.mark.parametrize(('robots', 'kinds', 'topics', 'child'), [
    (('red', 'blue'), (Simulator, WrenchAggregator, ComEstimator, ZmpMonitor), (
        'imu', 'left_foot/wrench', 'wrench_aggregator/left/wrench', 'wrench_aggregator/wrench',
        'com_estimator/com', 'com_estimator/com_fused', 'com_estimator/markers',
        'zmp_monitor/zmp', 'zmp_monitor/support_polygon', 'zmp_monitor/markers',
        'simulator/truth/com'), 'base_link'),
    pytest.param(('green',), (
        Simulator, WrenchAggregator, GravityCompensation, TorsoController, PayloadEstimation,
        ComCalibrator), (
        'gravity_compensation/left/wrench', 'gravity_compensation/markers',
        'torso_controller/shape', 'torso_controller/reference', 'torso_controller/wrench',
        'torso_controller/markers', 'payload_estimator/payload'), '', marks=pytest.mark.thorough)])
def test_robots_share_a_tree_and_no_frame(robots, kinds, topics, child, closing):
    rig = closing(Fleet(robots, kinds))
    rig.check(topics)
    if child:
        assert {f'{robot}/{child}' for robot in robots} <= {pair[1] for pair in rig.pairs}
    else:  # com_calibrator
        assert all(source.count > 0 for source in inputs_of(rig.nodes[-1]))


def test_the_zmp_reference_of_a_walk_has_the_prefix_once_in_any_case(closing):
    rig = closing(GaitRig(RobotModel.load('biped'), frame_prefix='red/'))
    rig.until_it_may()
    assert rig.request('single_step').success
    rig.until(lambda: rig.references, what='the reference')
    assert {reference.header.frame_id for reference in rig.references} == {'red/odom'}


def test_frames_of_drivers_may_have_the_prefix_or_not(closing):
    rig = closing(NodeRig(node=WrenchAggregator(
        namespace='/mixed',
        parameter_overrides=parameters_of(robot='biped', frame_prefix='mixed/'))))
    source = rig.node.sensors[0]
    sender = rig.publisher(WrenchStamped, source.topic)
    for frame in ('l_ankle_ft', 'mixed/l_ankle_ft', 'other/l_ankle_ft'):
        rig.time.advance(1e-3)
        sender.publish(WrenchStamped(header=Header(
            frame_id=frame, stamp=rig.node.get_clock().now().to_msg())))
        run_ready(rig.executor)
    assert source.count == 2 and source.refused == {'wrong frame': 1}


def test_a_node_without_the_parameter_has_no_prefix(rig):
    assert frame_prefix(rig.node) == ''
