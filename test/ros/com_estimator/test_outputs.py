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
"""What the node publishes over DDS: a synthetic motion goes in, its CoM has to come out."""

import itertools
import re

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.ros.topics.qos import LATCHED
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
import numpy as np
import pytest
from rclpy.parameter import Parameter
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
from support.com_estimator_rig import transforms
from support.messages import payload, vector
from support.small_robot import URDF
from support.stance_motion import BOTH, RIGHT, SwayingMotion
from visualization_msgs.msg import Marker, MarkerArray


def test_com_velocity_dcm_and_link_coms_are_the_truth(rig):
    """Every message of joint states gives one of each with its stamp."""
    stamps = []
    for _ in range(3):
        stamps += [rig.step() for _ in range(20)]
        rig.assert_truth(rig.motion.sole_in_world.position)
    for topic in ('com', 'com_velocity', 'dcm', 'link_coms'):
        assert rig.got[topic][-1].header.frame_id == 'odom'
        assert [message.header.stamp for message in rig.got[topic]] == stamps


def test_changing_feet_makes_no_jump(rig):
    rig.play(5)
    origin = rig.motion.sole_in_world.position.copy()
    keep = rig.motion.foot, rig.motion.sole_in_world
    rig.motion.step_onto(1, rig.t)
    rig.contacts = BOTH
    rig.step(dt=0.0)
    rig.contacts = RIGHT
    rig.play(30)
    rig.assert_truth(origin)
    rig.motion.nail(*keep)


def test_the_orientation_is_carried_on_to_the_joint_states(rig):
    """The IMU is 8 ms behind; its error would be 1e-2, what is left is of third order."""
    rig.play(5)
    rig.send_imu(rig.peer.get_clock().now().to_msg())
    rig.spin(0.008)
    rig.t += 0.008
    later = rig.peer.get_clock().now().to_msg()
    rig.joints.publish(rig.joint_state(later))
    rig.spin(0.001)
    assert rig.got['com'][-1].header.stamp == later
    com = rig.truth()[0].com_in_world - rig.motion.sole_in_world.position
    np.testing.assert_allclose(vector(rig.got['com'][-1].point), com, atol=3e-4)


def test_link_names_and_masses_are_parameters(rig):
    model = rig.motion.model
    assert tuple(rig.node.get_parameter('link_names').value) == model.link_names
    np.testing.assert_array_equal(rig.node.get_parameter('link_masses').value, model.link_masses)
    assert rig.node.describe_parameter('link_names').read_only
    for name, value in (('link_names', ['a']), ('link_masses', [1.0]), ('link_masses', 'x')):
        result, = rig.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful and result.reason
    np.testing.assert_array_equal(rig.node.get_parameter('link_masses').value, model.link_masses)
    rig.play(2)
    assert len(rig.got['link_coms'][-1].poses) == len(model.link_names)


def trunk_to_base():
    """Joint base_fixed, from the text of the URDF."""
    origin = re.search(r'name="base_fixed".*?<origin xyz="(.*?)" rpy="(.*?)"', URDF, re.DOTALL)
    out = np.eye(4)
    out[:3, 3] = list(map(float, origin[1].split()))
    out[:3, :3] = Rotation.from_euler('xyz', list(map(float, origin[2].split()))).as_matrix()
    return out


TRUNK_TO_BASE = trunk_to_base()


def matrix_of(pose, origin):
    """Return a pose as a matrix, from an origin."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation, pose.position - origin
    return matrix


@pytest.mark.parametrize('rpy', [[0.0, 0.0, 0.0], [0.1, -0.2, np.pi]])
def test_transforms_chain_from_the_world_to_the_footprint_and_the_masses(own_rig, rpy):
    """TF speaks of the URDF's base_link, the estimate of the base that looks forward."""
    rig = own_rig(SwayingMotion(4, base_rpy=rpy), {'base_rpy': rpy})
    rig.warm_up()
    rig.play(5)
    found, state = transforms(rig.transforms[-1]), rig.truth()[0]
    origin = rig.motion.sole_in_world.position
    parent, trunk = found['trunk']
    assert parent == 'odom'
    assert 'base_link' not in found, 'robot_state_publisher sends trunk -> base_link'
    base = trunk @ TRUNK_TO_BASE
    np.testing.assert_allclose(
        base, matrix_of(state.base @ state.pose_in_base('base_link'), origin), atol=1e-9)
    parent, footprint = found['base_footprint']
    assert parent == 'base_link'
    footprint = base @ footprint
    np.testing.assert_allclose(footprint[:3, 3], 0.0, atol=1e-9)
    np.testing.assert_allclose(footprint[2, :3], [0.0, 0.0, 1.0], atol=1e-9)
    forward = np.arctan2(state.base.rotation[1, 0], state.base.rotation[0, 0])
    assert np.arctan2(footprint[1, 0], footprint[0, 0]) == pytest.approx(forward)
    assert found['com'][0] == 'odom'
    np.testing.assert_allclose(found['com'][1][:3, 3], state.com_in_world - origin, atol=1e-9)
    for name, com in zip(rig.motion.model.link_names, state.link_coms_in_world):
        np.testing.assert_allclose(found[f'{name}_com'][1][:3, 3], com - origin, atol=1e-9)
    rig.assert_truth(origin)


def test_markers_show_everything_also_to_late_joiners(rig):
    rig.play(5)
    late = []
    subscription = rig.peer.create_subscription(
        MarkerArray, 'com_estimator/markers', late.append, LATCHED)
    rig.until(lambda: late)
    rig.peer.destroy_subscription(subscription)
    shown = {(m.ns, m.id): m for m in late[0].markers}
    count = len(rig.motion.model.link_names)
    assert len(shown) == len(late[0].markers) == count + 6
    (fused, line), bias = (shown.pop(('fused_com', i)) for i in range(2)), rig.node.fusion.bias
    for marker in (fused, line):
        assert marker.action == (Marker.DELETE if bias is None else Marker.ADD)
    if bias is not None:
        at = vector(shown['robot_com', 0].pose.position)
        np.testing.assert_allclose(vector(fused.pose.position), at - bias, atol=1e-3)
        assert (line.points[0], line.points[1]) == (
            shown['robot_com', 0].pose.position, fused.pose.position)
    assert all(m.header.frame_id == 'odom' and m.action == Marker.ADD for m in shown.values())
    com, ground, dcm, arrow = (shown['robot_com', i] for i in range(4))
    at = vector(com.pose.position)
    np.testing.assert_allclose(vector(ground.pose.position), [*at[:2], 0.0], atol=1e-9)
    np.testing.assert_allclose(vector(dcm.pose.position), vector(rig.got['dcm'][-1].point))
    np.testing.assert_allclose(vector(arrow.points[0]), at)
    np.testing.assert_allclose(vector(arrow.points[1]),
                               at + 0.5 * vector(rig.got['com_velocity'][-1].vector))
    balls = np.array([shown['link_coms', i].scale.x ** 3 for i in range(count)])
    np.testing.assert_allclose(balls / balls.sum(),
                               rig.motion.model.link_masses / rig.motion.model.mass)


def test_rates_of_transforms_and_markers(own_rig):
    rig = own_rig(tf_rate=50.0, marker_rate=0.0, publish_base_tf=False, publish_link_tf=False,
                  max_stamp_age=0.0)
    stamps = (Time(sec=1 + k // 250, nanosec=k % 250 * 4_000_000) for k in itertools.count())
    rig.until(lambda: rig.step(stamp=next(stamps)) and rig.got['com'] and rig.transforms)
    rig.clear()
    for _ in range(60):
        rig.step(stamp=next(stamps))
    assert len(rig.got['com']) == 60 and len(rig.transforms) == 60 * 4 // 20
    assert {t.child_frame_id for m in rig.transforms for t in m.transforms} == {'com'}
    assert not rig.got['markers']


def test_links_of_feet_and_hands_have_frames_if_configured(own_rig):
    """One tree with those of the base, in which each is where the motion has it."""
    rig = own_rig(publish_contact_tf=True)
    rig.warm_up()
    rig.play(5)
    found, state = transforms(rig.transforms[-1]), rig.truth()[0]
    config = rig.motion.model.config
    links = [foot.sole for foot in config.feet.values()]
    links += [hand.frame for hand in config.hands.values()]
    root = rig.motion.model.frame_names[0]
    assert len(links) > 1
    for link in links:
        parent, root_to_link = found[link]
        assert parent == root
        np.testing.assert_allclose(
            found[root][1] @ root_to_link,
            matrix_of(state.base @ state.pose_in_base(link), rig.motion.sole_in_world.position),
            atol=1e-9)


def test_calibrated_inertials_are_used_from_the_next_state_on(own_rig):
    rig = own_rig()
    rig.play(5)
    model, urdf = rig.node.model, URDF.replace('<mass value="5.0"/>', '<mass value="15.0"/>')
    publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
    publisher.publish(String(data=urdf))
    rig.until(lambda: model.urdf == urdf)
    rig.play(5)
    located, fresh = rig.node.last.located, RobotModel(model.config, urdf)
    expected = fresh.link_masses @ located.state.link_coms_in_world / fresh.mass
    assert vector(rig.got['com'][-1].point) == pytest.approx(expected)
    assert rig.node.get_parameter('link_masses').value == fresh.link_masses.tolist()


def test_the_com_contains_the_payload_and_has_no_step(own_rig):
    rig, link, mass, com = own_rig(), 'left_foot', 1.5, (0.05, -0.02, 0.1)
    rig.warm_up()
    publisher = rig.publisher(InertiaStamped, 'payload_estimator/payload')
    steps = []

    def carry(mass):
        publisher.publish(payload(rig.peer.get_clock().now().to_msg(), link, mass, com))
        before = rig.node.payload.carried.mass
        rig.step()
        steps.append(abs(rig.node.payload.carried.mass - before))
        return rig.node.payload.carried.mass == mass
    rig.until(lambda: carry(mass), what='the payload')
    stamp = rig.step()
    assert rig.got['com'][-1].header.stamp == stamp
    model, state = rig.node.model, rig.node.last.located.state
    carried = CarriedPayload(model, rate=1000.0)
    carried.receive(link, mass, com, 10 ** 9)
    carried.update(10 ** 9)
    carried.update(10 ** 9 + 10_000_000)
    expected = state.base.place(*carried.motion(state).com_with(
        model.mass, state.com_in_base).tolist())
    np.testing.assert_allclose(vector(rig.got['com'][-1].point), expected, atol=1e-12)
    assert np.linalg.norm(np.subtract(expected, state.com_in_world)) > 0.01
    rig.until(lambda: carry(0.0), what='no payload')
    assert 0.0 < max(steps) <= 0.2 * model.mass * 0.05 + 1e-9
