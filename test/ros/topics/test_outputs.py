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
"""Publishers and transforms over DDS: what subscribers get is what was set."""

import sys

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.ros.topics import markers
from biped_com_ros.ros.topics import outputs
from biped_com_ros.ros.topics import tf
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import (
    PointStamped, PoseArray, Vector3Stamped, WrenchStamped)
import numpy as np
import pytest
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, ReliabilityPolicy
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64, Float64MultiArray
from support.driven_time import run_ready
from support.messages import stamp_of
from support.ros_rig import NodeRig
from support.tf2_stand_in import provide_tf2, transform_stamped
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

STAMP = 1_234_567_890_123_456_789


def received(rig, out, message_type, **fields):
    """Set fields, publish, return what arrives."""
    messages = rig.collect(message_type, out.topic, qos_profile_sensor_data)
    rig.until(lambda: out.has_subscribers, what='a subscriber')
    for name, value in fields.items():
        out.fields[name][...] = value
    out.publish(STAMP)
    run_ready(rig.executor)
    if hasattr(messages[-1], 'header'):
        assert ns_of_msg(messages[-1].header.stamp) == STAMP
    return messages[-1]


def xyz(value):
    return [value.x, value.y, value.z]


def test_point_vector_wrench(rig, plain):
    node = rig.node
    point = received(rig, outputs.point_publisher(node, '~/com', 'odom'),
                     PointStamped, point=[1.0, 2.0, 3.0])
    assert xyz(point.point) == [1.0, 2.0, 3.0] and point.header.frame_id == 'odom'
    vector = received(rig, outputs.vector_publisher(node, 'v', 'odom'),
                      Vector3Stamped, vector=[4.0, 5.0, 6.0])
    assert xyz(vector.vector) == [4.0, 5.0, 6.0]
    wrench = received(rig, outputs.wrench_publisher(node, 'w', 'l_sole'),
                      WrenchStamped, wrench=np.arange(6.0))
    assert xyz(wrench.wrench.force) + xyz(wrench.wrench.torque) == [0, 1, 2, 3, 4, 5]
    assert wrench.header.frame_id == 'l_sole'


def test_arrays(rig, plain):
    node, positions = rig.node, np.arange(12.0).reshape(4, 3)
    poses = received(rig, outputs.pose_array_publisher(node, 'poses', 'odom', 4),
                     PoseArray, position=positions)
    assert [xyz(pose.position) for pose in poses.poses] == positions.tolist()
    assert all(pose.orientation.w == 1.0 for pose in poses.poses)
    assert not received(rig, outputs.pose_array_publisher(
        node, 'no_poses', 'odom', 0), PoseArray).poses
    assert not received(rig, outputs.float_array_publisher(
        node, 'no_data', 0), Float64MultiArray).data
    data = received(rig, outputs.float_array_publisher(
        node, 'data', 3, labels=['a', 'bb', 'ccc']),
        Float64MultiArray, data=[1.0, 2.0, 3.0])
    assert data.data.tolist() == [1.0, 2.0, 3.0]
    assert [dim.label for dim in data.layout.dim] == ['a', 'bb', 'ccc']
    state = received(rig, outputs.joint_state_publisher(
        node, 'efforts', ['hip', 'knee_joint'], fields=['effort']),
        JointState, effort=[7.0, 8.0])
    assert (state.name, list(state.position), list(state.effort)) == (
        ['hip', 'knee_joint'], [], [7.0, 8.0])
    assert received(rig, outputs.bool_publisher(node, 'flag'), Bool,
                    data=True).data is True
    assert received(rig, outputs.float_publisher(node, 'number'), Float64,
                    data=2.5).data == 2.5


def test_markers(rig, plain):
    label = markers.sphere('odom', 'label')
    label.type, label.text = Marker.TEXT_VIEW_FACING, 'CoM'
    out = markers.marker_publisher(rig.node, [
        markers.sphere('odom', 'com', diameter=0.1, colour=(0.5, 0.25, 0.125, 1.0)),
        markers.arrow('l_sole', 'left_foot_wrench', 1), label,
        markers.line_strip('odom', 'support', 4), markers.cylinder('odom', 'zmp')], {
        'position': 'markers[*].pose.position', 'arrow': 'markers[1].points',
        'support': 'markers[3].points'})
    positions, polygon = np.arange(15.0).reshape(5, 3), np.arange(12.0).reshape(4, 3)
    message = received(rig, out, MarkerArray, position=positions, support=polygon,
                       arrow=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert [xyz(marker.pose.position) for marker in message.markers] == positions.tolist()
    assert [xyz(p) for p in message.markers[1].points] == [[1, 2, 3], [4, 5, 6]]
    assert [xyz(p) for p in message.markers[3].points] == polygon.tolist()
    assert message.markers[2].text == 'CoM' and message.markers[0].color.g == 0.25
    assert {ns_of_msg(marker.header.stamp) for marker in message.markers} == {STAMP}
    assert all(marker.pose.orientation.w == 1.0 for marker in message.markers)


def test_has_subscribers_follows_subscribers(rig):
    out = outputs.point_publisher(rig.node, 'point', 'odom')
    assert not out.has_subscribers
    subscription = rig.peer.create_subscription(PointStamped, 'point', lambda message: None, 10)
    rig.until(lambda: out.has_subscribers)
    rig.peer.destroy_subscription(subscription)
    rig.until(lambda: not out.has_subscribers)


def test_latched_output_reaches_those_who_come_late(rig, plain):
    out = outputs.float_array_publisher(rig.node, '~/offsets', 2, qos=LATCHED)
    assert out.has_subscribers
    out.fields['data'][...] = (1.0, 2.0)
    out.publish()
    messages = rig.collect(Float64MultiArray, out.topic, LATCHED)
    rig.until(lambda: messages)
    assert messages[0].data.tolist() == [1.0, 2.0]


def test_quality_of_service_is_overridable(closing):
    rig = closing(NodeRig(parameter_overrides=[Parameter(
        'qos_overrides./point.publisher.reliability', value='best_effort'), Parameter(
        'qos_overrides./latched.publisher.durability', value='transient_local')]))
    out = outputs.point_publisher(rig.node, 'point', 'odom')
    assert out.publisher.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    latched = outputs.point_publisher(rig.node, 'latched', 'odom')
    assert latched.publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
    assert latched.has_subscribers
    # and nowhere else
    other = outputs.point_publisher(rig.node, 'other', 'odom').publisher.qos_profile
    assert other.reliability == ReliabilityPolicy.RELIABLE
    assert other.durability == DurabilityPolicy.VOLATILE


# -- transforms

R = Rotation.from_rotvec([0.3, -1.2, 0.7]).as_matrix()


def transforms(message):
    """Return child -> (parent, position, quaternion, stamp)."""
    return {t.child_frame_id: (
        t.header.frame_id, xyz(t.transform.translation),
        [*xyz(t.transform.rotation), t.transform.rotation.w], ns_of_msg(t.header.stamp))
        for t in message.transforms}


def test_one_node_may_publish_several_sets_of_transforms(rig, plain):
    single = tf.TransformOutput(rig.node, [('odom', 'base_link'), ('odom', 'com')])
    many = tf.TransformOutput(rig.node, [('odom', f'link{i}_com') for i in range(30)])
    messages = rig.collect(TFMessage, '/tf')
    rig.until(lambda: single.has_subscribers and many.has_subscribers)
    single.positions[...] = (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)
    single.quaternions[0] = Rotation.from_matrix(R).as_quat()
    single.publish(STAMP)
    many.positions[...] = np.arange(90.0).reshape(30, 3)
    many.publish(STAMP)
    run_ready(rig.executor)
    found, links = map(transforms, messages)
    parent, position, quaternion, stamp = found['base_link']
    assert (parent, position, stamp) == ('odom', [1.0, 2.0, 3.0], STAMP)
    np.testing.assert_allclose(Rotation.from_quat(quaternion).as_matrix(), R, atol=1e-12)
    assert found['com'] == ('odom', [4.0, 5.0, 6.0], [0.0, 0.0, 0.0, 1.0], STAMP)
    assert links['link29_com'][1:3] == ([87.0, 88.0, 89.0], [0, 0, 0, 1])


def test_static_transforms_are_all_there_for_late_subscribers(rig):
    tf.publish_static_transforms(rig.node, STAMP, [
        ('base', 'imu', Pose(R, np.array((1.0, 0.0, 0.0)))),
        ('base', 'camera', Pose(np.eye(3), np.array((3.0, 0.0, 0.0))))])
    messages = rig.collect(TFMessage, '/tf_static', LATCHED)
    rig.until(lambda: messages)
    found = transforms(messages[-1])
    assert found['imu'][1] == [1.0, 0.0, 0.0] and found['imu'][3] == STAMP
    np.testing.assert_allclose(Rotation.from_quat(found['imu'][2]).as_matrix(), R, atol=1e-12)
    assert found['camera'] == ('base', [3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], STAMP)


def test_a_clock_that_is_set_back_clears_the_transforms(rig, monkeypatch):
    provide_tf2(monkeypatch)
    lookup, second = tf.TransformLookup(rig.node), 1_000_000_000
    publisher = rig.publisher(TFMessage, '/tf')

    def publish(*seconds):
        for t in seconds:
            publisher.publish(TFMessage(transforms=[transform_stamped(
                stamp_of(int(t * second)), 'odom', 'base_link',
                Pose.from_rpy((0.0, 0.0, 0.1 * t), np.array([t, 0.0, 0.0])))]))
        run_ready(rig.executor)

    def pose(t):
        return lookup.at('odom', 'base_link', int(t * second))
    publish(100.0, 101.0)
    np.testing.assert_allclose(pose(100.25).position, [100.25, 0.0, 0.0], atol=1e-6)
    expected = Pose.from_rpy((0.0, 0.0, 10.025), np.zeros(3)).rotation
    np.testing.assert_allclose(pose(100.25).rotation, expected, atol=1e-6)
    with pytest.raises(InputError, match='extrapolation into the future'):
        pose(102.0)
    with pytest.raises(InputError):
        pose(50.0)  # set back
    publish(50.0, 51.0)
    assert pose(50.5).position[0] == pytest.approx(50.5)
    assert pose(50.2).position[0] == pytest.approx(50.2)  # a little older is not set back
    with pytest.raises(InputError):
        pose(100.5)


@pytest.mark.parametrize(('package', 'use'), [
    ('tf2-ros-py', tf.TransformLookup), ('tf2-msgs', lambda node: tf.TransformOutput(node, []))])
def test_missing_tf_packages_are_named(rig, monkeypatch, package, use):
    for name in ('tf2_ros', 'tf2_msgs', 'tf2_msgs.msg'):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    with pytest.raises(ConfigurationError, match=f'ros-jazzy-{package}'):
        use(rig.node)
