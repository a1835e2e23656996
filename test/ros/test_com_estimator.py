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
The whole node over DDS: a synthetic motion goes in, its known base and CoM have to come out.

The truth is that of ``stance_motion``: a sole nailed to the world, the joints on sines.
"""

import dataclasses
from importlib.util import find_spec
import itertools
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import time
import types

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.footprint import footprint_position
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.nodes.com_estimator.node import ComEstimator, ComEstimatorParameters
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.topics.qos import LATCHED
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseArray, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Header, String
from support.ros_rig import ServedNodes
from support.small_robot import MAPPING, URDF
from support.stance_motion import BOTH, LEFT, Motion, NONE, RIGHT
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray
import yaml

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'com_estimator.yaml'
OUTPUTS = {'com': PointStamped, 'com_velocity': Vector3Stamped, 'dcm': PointStamped,
           'link_coms': PoseArray, 'markers': MarkerArray}
COUNTER = itertools.count()
CONTACTS = ['feet/left', 'feet/right']
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a function that writes the small robot's YAML, with changes, and its URDF."""
    def write(**changes):
        directory = tmp_path_factory.mktemp('robot')
        (directory / 'small.urdf').write_text(URDF)
        values = {'urdf': str(directory / 'small.urdf'), **MAPPING, **changes}
        path = directory / 'small.yaml'
        path.write_text(yaml.safe_dump(values))
        return str(path)
    return write


class Rig(ServedNodes):
    """The node, the drivers of a moving robot around it and a listener, on one executor."""

    def __init__(self, robot, motion, **parameters):
        self.motion, self.t, self.stamp, self.silent = motion, 0.0, None, set()
        self.contacts, self.bad = LEFT, {}
        self.got = {topic: [] for topic in OUTPUTS}
        self.transforms, self.diagnostics = [], {}
        self.executor = make_executor()
        # A namespace of its own: two rigs must not hear each other.
        self.space = f'/rig_{next(COUNTER)}'
        self.peer = peer = Node('driver', namespace=self.space)
        self.joints = peer.create_publisher(JointState, 'joint_states', 10)
        self.imu = peer.create_publisher(Imu, 'imu', qos_profile_sensor_data)
        self.odom = peer.create_publisher(Odometry, 'odom', 10)
        self.feet = [peer.create_publisher(Bool, topic, LATCHED) for topic in CONTACTS]
        self.node = make_node(robot, self.space, **parameters)
        for topic, kind in OUTPUTS.items():
            peer.create_subscription(kind, f'com_estimator/{topic}', self.got[topic].append,
                                     LATCHED if topic == 'markers' else 10)
        peer.create_subscription(TFMessage, 'tf', self.transforms.append, 10)
        peer.create_subscription(DiagnosticArray, 'diagnostics', self._diagnose, 10)
        self.executor.add_node(peer)
        self.executor.add_node(self.node)
        self.until(lambda: peer.count_subscribers('joint_states') and all(
            peer.count_publishers(f'com_estimator/{t}') for t in OUTPUTS))

    def warm_up(self):
        """Play until everything has come out once."""
        self.until(lambda: self.step() or all(self.got.values()), timeout=20.0)
        self.clear()
        self.transforms.clear()

    def step(self, dt=0.004, stamp=None):
        """Advance the motion, send everything, joint states last; returns their stamp."""
        self.t += dt
        self.stamp = stamp = stamp or self.peer.get_clock().now().to_msg()
        seen = self.seen()
        self.send_contacts()
        self.send_imu(stamp)
        self.send_odometry(stamp)
        self.spin(0.004)
        self.wait_for_more_than(seen)
        if 'joints' not in self.silent:
            seen = self.seen(joints=True)
            self.joints.publish(self.joint_state(stamp))
            self.wait_for_more_than(seen)
        self.spin(0.004)
        return stamp

    def seen(self, joints=False):
        """Return how many messages the node has had, taken or refused, of what it is sent."""
        if not self.node.is_built or self.silent & {'contacts', 'imu'}:
            return []
        joint_input, *others = self.node.inputs.inputs.values()
        others = [source for source in others if source.required]
        inputs = [joint_input] if joints else [*others, *self.node.contacts.inputs]
        return [(source, source.count + sum(source.refused.values())) for source in inputs]

    def wait_for_more_than(self, seen):
        """Wait, on a busy machine, until the node has had what was sent."""
        end = time.monotonic() + 2.0
        while time.monotonic() < end and any(
                source.count + sum(source.refused.values()) <= before for source, before in seen):
            self.executor.spin_once(timeout_sec=0.01)

    def play(self, steps):
        stamp = None
        for _ in range(steps):
            stamp = self.step()
        end = time.monotonic() + 0.5
        while time.monotonic() < end and not (
                self.got['com'] and self.got['com'][-1].header.stamp == stamp):
            self.executor.spin_once(timeout_sec=0.01)
        self.spin(0.02)
        return stamp

    def send_contacts(self):
        if 'contacts' not in self.silent:
            for publisher, stands in zip(self.feet, self.contacts):
                publisher.publish(Bool(data=stands))

    def send_imu(self, stamp, frame='imu_link'):
        if 'imu' in self.silent:
            return
        message = Imu()
        message.header.stamp, message.header.frame_id = stamp, self.bad.get('imu_frame', frame)
        quaternion = Rotation.from_matrix(self.motion.R_world_imu(self.t)).as_quat()
        q, w, rate = message.orientation, message.angular_velocity, self.motion.gyro(self.t)
        q.x, q.y, q.z, q.w = map(float, quaternion)
        w.x, w.y, w.z = map(float, rate)
        self.imu.publish(message)

    def send_odometry(self, stamp):
        """Send pose and twist of base_link, which base_rpy may turn against the base."""
        message = Odometry()
        message.header.stamp, message.header.frame_id = stamp, self.bad.get('odom_frame', 'odom')
        message.child_frame_id = self.bad.get('odom_child', 'base_link')
        turn = self.motion.model.config.base_rpy
        R_base_link = Rotation.from_euler('xyz', turn).as_matrix().T
        pose, twist = self.motion.base(self.t), self.motion.base_twist(self.t) @ R_base_link
        place, q = message.pose.pose.position, message.pose.pose.orientation
        place.x, place.y, place.z = map(float, pose.position)
        quaternion = Rotation.from_matrix(pose.rotation @ R_base_link).as_quat()
        q.x, q.y, q.z, q.w = map(float, quaternion)
        for out, values in zip((message.twist.twist.linear, message.twist.twist.angular), twist):
            out.x, out.y, out.z = map(float, values)
        self.odom.publish(message)

    def joint_state(self, stamp, **changes):
        """Return the joints in reverse order with a stranger among them; joints by name."""
        names = list(self.motion.model.joint_names)
        positions, velocities = self.motion.joints(self.t)
        values = dict(zip(names, positions)) | changes
        return JointState(
            header=Header(stamp=stamp), name=[*names[::-1], 'stranger'],
            position=[*(float(values[n]) for n in names[::-1]), 9.0],
            velocity=[*map(float, velocities[::-1]), 9.0])

    def clear(self):
        for messages in self.got.values():
            messages.clear()

    def health(self, line, wanted=None, timeout=30.0):
        """Play until a line of the diagnostics has the level (or changes twice); returns it."""
        seen = []
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.diagnostics.clear()
            self.until(lambda: self.step() and line in self.diagnostics)
            seen.append(self.diagnostics[line])
            if (seen[-1][0] == wanted) if wanted is not None else len(seen) == 2:
                return seen[-1][1]
        raise AssertionError(f'{line}: {seen}')

    def _diagnose(self, array):
        for status in array.status:
            prefix = 'com_estimator: '
            if status.name.startswith(prefix):
                self.diagnostics[status.name[len(prefix):]] = (status.level, status.message)

    def truth(self):
        """Return the robot in the world, the true base twist, and where the world begins."""
        state = self.motion.state(self.t).in_world(self.motion.base(self.t))
        return state, self.motion.base_twist(self.t)


def make_node(robot, space='', **parameters):
    values = {'robot': robot, 'contact_topics': CONTACTS, 'tf_rate': 1000.0,
              'marker_rate': 1000.0, **parameters}
    remap = ['--ros-args', '-r', '/tf:=tf', '-r', '/diagnostics:=diagnostics'] if space else []
    return ComEstimator(
        namespace=space, cli_args=remap,
        parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])


def vector(message):
    return np.array([message.x, message.y, message.z])


def true_com_velocity(motion, t, h=1e-5):
    """By differences of the CoM in the world."""
    before, after = (motion.state(t + s).in_world(motion.base(t + s)).com_in_world
                     for s in (-h, h))
    return (after - before) / (2.0 * h)


@pytest.fixture(scope='module')
def shared_rig(files):
    rig = Rig(files(), Motion(3))
    rig.warm_up()
    yield rig
    rig.close()


@pytest.fixture
def rig(shared_rig):
    """Return the shared rig, with the robot on its left foot and everything in order."""
    shared_rig.silent, shared_rig.contacts, shared_rig.bad = set(), LEFT, {}
    # A new world, with its origin below the left sole.
    shared_rig.node.base.reset()
    shared_rig.play(5)
    shared_rig.clear()
    shared_rig.transforms.clear()
    return shared_rig


@pytest.fixture
def own_rig(files):
    """Return a maker of rigs with parameters of their own."""
    rigs = []

    def make(motion=None, changes=None, **parameters):
        rigs.append(Rig(files(**(changes or {})), motion or Motion(3), **parameters))
        return rigs[-1]
    yield make
    for rig in rigs:
        rig.close()


def assert_truth(rig, origin, atol=1e-9):
    """Compare the newest outputs with the truth, whose world begins elsewhere."""
    rig.until(lambda: all(rig.got[topic] and rig.got[topic][-1].header.stamp == rig.stamp
                          for topic in ('com', 'com_velocity', 'link_coms', 'dcm')),
              what='all of the last instant')
    state, _ = rig.truth()
    com = state.com_in_world - origin
    velocity = true_com_velocity(rig.motion, rig.t)
    np.testing.assert_allclose(vector(rig.got['com'][-1].point), com, atol=atol)
    np.testing.assert_allclose(vector(rig.got['com_velocity'][-1].vector), velocity, atol=1e-5)
    links = [vector(pose.position) for pose in rig.got['link_coms'][-1].poses]
    np.testing.assert_allclose(links, state.link_coms_in_world - origin, atol=atol)
    ground = rig.motion.sole_in_world.position[2] - origin[2]
    dcm = com + velocity / np.sqrt(9.81 / (com[2] - ground))
    np.testing.assert_allclose(vector(rig.got['dcm'][-1].point), [*dcm[:2], ground], atol=1e-5)


# -- what comes out


def test_com_velocity_dcm_and_link_coms_are_the_truth(rig):
    for _ in range(3):
        stamp = rig.play(20)
        assert_truth(rig, rig.motion.sole_in_world.position)
    for topic in ('com', 'com_velocity', 'dcm', 'link_coms'):
        assert rig.got[topic][-1].header.frame_id == 'odom'
        assert rig.got[topic][-1].header.stamp == stamp


def test_every_message_of_joint_states_gives_one_of_each_with_its_stamp(rig):
    stamps = [rig.step() for _ in range(20)]
    rig.spin(0.05)
    for topic in ('com', 'com_velocity', 'dcm', 'link_coms'):
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
    assert_truth(rig, origin)
    rig.motion.nail(*keep)


def test_the_orientation_is_carried_on_to_the_joint_states(rig):
    """The IMU is 8 ms behind; its error would be 1e-2, what is left is of third order."""
    rig.play(5)
    stamp = rig.peer.get_clock().now().to_msg()
    rig.send_imu(stamp)
    rig.spin(0.02)
    rig.t += 0.008
    later = Time(sec=stamp.sec, nanosec=stamp.nanosec + 8_000_000)
    if later.nanosec >= 1_000_000_000:
        later = Time(sec=stamp.sec + 1, nanosec=later.nanosec - 1_000_000_000)
    rig.joints.publish(rig.joint_state(later))
    rig.until(lambda: rig.got['com'][-1].header.stamp == later)
    state, _ = rig.truth()
    com = state.com_in_world - rig.motion.sole_in_world.position
    np.testing.assert_allclose(vector(rig.got['com'][-1].point), com, atol=3e-4)


def test_link_names_and_masses_are_parameters(rig):
    model = rig.motion.model
    assert tuple(rig.node.get_parameter('link_names').value) == model.link_names
    np.testing.assert_array_equal(rig.node.get_parameter('link_masses').value, model.link_masses)
    for name in ('link_names', 'link_masses'):
        assert rig.node.describe_parameter(name).read_only
    rig.play(2)
    assert len(rig.got['link_coms'][-1].poses) == len(model.link_names)


def transforms(message):
    return {t.child_frame_id: (t.header.frame_id, matrix(t.transform))
            for t in message.transforms}


def matrix(transform):
    out, q = np.eye(4), transform.rotation
    out[:3, :3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()
    out[:3, 3] = vector(transform.translation)
    return out


def trunk_to_base():
    """Joint base_fixed, from the text of the URDF."""
    origin = re.search(r'name="base_fixed".*?<origin xyz="(.*?)" rpy="(.*?)"', URDF, re.DOTALL)
    out = np.eye(4)
    out[:3, 3] = list(map(float, origin[1].split()))
    out[:3, :3] = Rotation.from_euler('xyz', list(map(float, origin[2].split()))).as_matrix()
    return out


TRUNK_TO_BASE = trunk_to_base()


def test_transforms_chain_from_the_world_to_the_footprint_and_the_masses(rig):
    rig.play(5)
    found, state = transforms(rig.transforms[-1]), rig.truth()[0]
    origin = rig.motion.sole_in_world.position
    parent, trunk = found['trunk']
    assert parent == 'odom'
    assert 'base_link' not in found, 'robot_state_publisher sends trunk -> base_link'
    base = trunk @ TRUNK_TO_BASE
    np.testing.assert_allclose(base[:3, :3], state.base.rotation, atol=1e-9)
    np.testing.assert_allclose(base[:3, 3], state.base.position - origin, atol=1e-9)
    parent, footprint = found['base_footprint']
    assert parent == 'base_link'
    footprint = base @ footprint
    np.testing.assert_allclose(footprint[:3, 3], 0.0, atol=1e-9)
    np.testing.assert_allclose(footprint[2, :3], [0.0, 0.0, 1.0], atol=1e-9)
    heading = np.arctan2(base[1, 0], base[0, 0])
    assert np.arctan2(footprint[1, 0], footprint[0, 0]) == pytest.approx(heading)
    assert found['com'][0] == 'odom'
    np.testing.assert_allclose(found['com'][1][:3, 3], state.com_in_world - origin, atol=1e-9)
    for name, com in zip(rig.motion.model.link_names, state.link_coms_in_world):
        np.testing.assert_allclose(found[f'{name}_com'][1][:3, 3], com - origin, atol=1e-9)


def test_markers_show_everything_also_to_late_joiners(rig):
    rig.play(5)
    late = []
    subscription = rig.peer.create_subscription(
        MarkerArray, 'com_estimator/markers', late.append, LATCHED)
    rig.until(lambda: late)
    rig.peer.destroy_subscription(subscription)
    shown = {(m.ns, m.id): m for m in late[0].markers}
    count = len(rig.motion.model.link_names)
    assert len(shown) == len(late[0].markers) == count + 4
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


def test_a_robot_whose_base_link_is_turned(own_rig):
    """TF speaks of the URDF's base_link, the estimate of the base that looks forward."""
    rpy = [0.1, -0.2, np.pi]
    rig = own_rig(Motion(4, base_rpy=rpy), {'base_rpy': rpy})
    rig.warm_up()
    rig.play(5)
    found, state = transforms(rig.transforms[-1]), rig.truth()[0]
    link = state.pose_in_world('base_link')
    base = found['trunk'][1] @ TRUNK_TO_BASE
    np.testing.assert_allclose(base[:3, :3], link.rotation, atol=1e-9)
    np.testing.assert_allclose(
        base[:3, 3], link.position - rig.motion.sole_in_world.position, atol=1e-9)
    footprint = base @ found['base_footprint'][1]
    forward = np.arctan2(state.base.rotation[1, 0], state.base.rotation[0, 0])
    assert np.arctan2(footprint[1, 0], footprint[0, 0]) == pytest.approx(forward)
    assert_truth(rig, rig.motion.sole_in_world.position)


def test_rates_of_transforms_and_markers(own_rig):
    rig = own_rig(tf_rate=50.0, marker_rate=0.0, publish_base_tf=False, publish_link_tf=False,
                  max_stamp_age=0.0)
    stamps = (Time(sec=1 + k // 250, nanosec=k % 250 * 4_000_000) for k in itertools.count())
    rig.until(lambda: rig.step(stamp=next(stamps)) and rig.got['com'] and rig.transforms)
    rig.transforms.clear()
    rig.clear()
    for _ in range(60):
        last = rig.step(stamp=next(stamps))
    rig.until(lambda: rig.got['com'] and rig.got['com'][-1].header.stamp == last)
    rig.spin(0.05)
    assert len(rig.got['com']) == 60 and len(rig.transforms) == 60 * 4 // 20
    assert {t.child_frame_id for m in rig.transforms for t in m.transforms} == {'com'}
    assert not rig.got['markers']


def test_rates_change_at_run_time(rig):
    rig.node.set_parameters([Parameter('marker_rate', value=0.0)])
    rig.play(2)
    rig.clear()
    rig.play(5)
    assert not rig.got['markers'] and rig.got['com']
    rig.node.set_parameters([Parameter('marker_rate', value=1000.0)])
    rig.play(5)
    assert rig.got['markers']
    refused, = rig.node.set_parameters([Parameter('tf_rate', value=-1.0)])
    assert not refused.successful and 'tf_rate' in refused.reason and '10000' in refused.reason


# -- where the base comes from


@pytest.mark.parametrize('rpy', [[0.0, 0.0, 0.0], [0.1, -0.2, np.pi]])
def test_odometry_gives_base_and_velocity(own_rig, rpy):
    rig = own_rig(Motion(5, base_rpy=rpy), {'base_rpy': rpy}, base_source='odometry')
    rig.silent.add('imu')
    rig.warm_up()
    rig.play(10)
    assert_truth(rig, np.zeros(3))
    assert 'by odometry, in contact: left' in rig.health('base', OK)


def test_odometry_of_other_frames_is_refused(own_rig):
    rig = own_rig(base_source='odometry')
    rig.warm_up()
    rig.bad = {'odom_child': 'base_footprint'}
    message = rig.health(f'input {rig.space}/odom', ERROR)
    assert "child_frame_id is 'base_footprint'; valid: 'base_link'" in message
    rig.clear()
    rig.play(5)
    assert not rig.got['com']
    rig.bad = {'odom_frame': 'map'}
    rig.play(3)
    assert "frame_id is 'map'; valid: 'odom'" in rig.health(f'input {rig.space}/odom', ERROR)


def test_a_fixed_base(own_rig):
    pose = [0.1, 0.2, 1.3, 0.1, 0.2, 0.3]
    rig = own_rig(base_source='fixed', fixed_base=pose)
    rig.silent |= {'imu', 'contacts'}
    rig.warm_up()
    rig.play(3)
    state = rig.motion.state(rig.t)
    rotation = Rotation.from_euler('xyz', pose[3:]).as_matrix()
    np.testing.assert_allclose(vector(rig.got['com'][-1].point),
                               rotation @ state.com_in_base + pose[:3], atol=1e-9)
    np.testing.assert_allclose(vector(rig.got['com_velocity'][-1].vector),
                               rotation @ state.com_velocity_in_base, atol=1e-9)


def test_tf_as_source_says_what_to_install(files):
    if find_spec('tf2_ros'):
        pytest.skip('tf2_ros is installed')
    with pytest.raises(ConfigurationError, match='needs tf2_ros: install ros-.*-tf2-ros-py .apt.'):
        make_node(files(), base_source='tf')


def fake_tf2(monkeypatch):
    """Install a tf2_ros that answers from a dictionary; returns it."""
    answers = {}
    module = types.ModuleType('tf2_ros')
    module.TransformException = type('TransformException', (Exception,), {})

    class Buffer:

        def __init__(self, node):
            pass

        def lookup_transform(self, target, source, when):
            if (target, source) not in answers:
                raise module.TransformException(f'"{source}" does not exist')
            return answers[target, source]
    module.Buffer, module.TransformListener = Buffer, lambda *args, **kwargs: None
    monkeypatch.setitem(sys.modules, 'tf2_ros', module)
    return answers


def test_tf_gives_the_base_and_its_absence_is_told(own_rig, monkeypatch):
    from geometry_msgs.msg import TransformStamped
    answers = fake_tf2(monkeypatch)
    rig = own_rig(base_source='tf', sensor_timeout=5.0)
    rig.silent.add('imu')
    message = rig.health('base', ERROR)
    assert "no transform from 'base_link' to 'odom': \"base_link\" does not exist" in message
    assert not rig.got['com']

    def tell(stamp):
        pose, found = rig.motion.base(rig.t), TransformStamped()
        found.header.stamp = stamp
        t, q = found.transform.translation, found.transform.rotation
        t.x, t.y, t.z = map(float, pose.position)
        q.x, q.y, q.z, q.w = map(float, Rotation.from_matrix(pose.rotation).as_quat())
        answers['odom', 'base_link'] = found
    for _ in range(200):
        stamp = rig.peer.get_clock().now().to_msg()
        rig.t += 0.004
        tell(stamp)
        rig.step(dt=0.0, stamp=stamp)
        if all(rig.got.values()):
            break
    assert_truth(rig, np.zeros(3))
    assert {'base_footprint', 'com'} <= set(transforms(rig.transforms[-1]))
    assert not {'base_link', 'trunk'} & set(transforms(rig.transforms[-1]))
    rig.spin(0.2)
    rig.clear()
    assert 'joint_states and the transform to base_link differ by' in rig.health('base', ERROR)
    assert not rig.got['com']


# -- contacts


def test_without_contacts_the_lowest_soles_are_assumed_and_said(own_rig):
    rig = own_rig(contact_timeout=0.2)
    rig.silent.add('contacts')
    rig.warm_up()
    message = rig.health('base', WARN)
    assert 'assuming that the lowest soles are in contact (' in message
    topics = f'{rig.space}/feet/left, {rig.space}/feet/right'
    assert f'nothing received on {topics}: start wrench_aggregator' in message
    rig.silent.clear()
    assert rig.health('base', OK) == 'by imu, in contact: left'


def test_in_the_air_the_base_is_held_and_there_is_no_velocity(rig):
    rig.contacts = NONE
    rig.play(3)
    rig.clear()
    rig.play(10)
    assert rig.got['com'] and rig.got['link_coms']
    assert not rig.got['com_velocity'] and not rig.got['dcm']
    actions = {(m.ns, m.id): m.action for m in rig.got['markers'][-1].markers}
    assert actions['robot_com', 2] == actions['robot_com', 3] == Marker.DELETE
    assert actions['robot_com', 0] == Marker.ADD
    assert rig.health('base', WARN) == 'position held: no foot is in contact'


def test_who_has_lain_begins_anew_at_the_origin(rig):
    motion, keep = rig.motion, (rig.motion.foot, rig.motion.sole_in_world)

    def put(position, roll):
        base = Pose(Rotation.from_euler('ZYX', (0.4, 0.0, roll)).as_matrix(), np.array(position))
        motion.nail(0, base @ motion.sole_in_base(rig.t, 0))
    put((0.5, 0.2, 0.3), 1.4)
    for rig.contacts in (LEFT, NONE):  # it rolls over its feet, and off them
        rig.play(3)
    put((3.0, 2.0, 0.8), 0.0)
    for rig.contacts in (NONE, LEFT):
        rig.step(dt=0.0)
        assert not rig.node.last.located.restarted, 'not on all feet yet'
    rig.contacts = BOTH
    rig.step(dt=0.0)
    assert rig.node.last.located.restarted
    soles = rig.truth()[0].soles_in_world
    rig.contacts = LEFT
    rig.play(3)
    assert_truth(rig, footprint_position(soles, BOTH))
    com = vector(rig.got['com'][-1].point)
    put((5.0, 2.0, 0.8), 0.3)  # leaning is not lying: it is the same foot that stands
    rig.play(3)
    assert np.linalg.norm((vector(rig.got['com'][-1].point) - com)[:2]) < 0.5
    assert not rig.node.last.located.restarted
    motion.nail(*keep)


def test_a_robot_without_wrench_sensors_needs_no_contact_topics(own_rig):
    rig = own_rig(contact_topics=[])
    rig.warm_up()
    assert 'no wrench sensors: set contact_topics' in rig.health('base', WARN)


class StampedContacts:
    """Tells a rig's node which feet stand, early or late, as wrench_aggregator does."""

    def __init__(self, rig):
        self.rig = rig
        self.publisher = rig.peer.create_publisher(
            JointState, 'wrench_aggregator/contacts', 10)
        self.first_ns = rig.peer.get_clock().now().nanoseconds
        self.step = 0
        rig.silent.add('contacts')
        rig.until(lambda: self.publisher.get_subscription_count(), what='the node')

    def stamp(self, step):
        ns = self.first_ns + 4_000_000 * step
        return Time(sec=ns // 10 ** 9, nanosec=ns % 10 ** 9)

    def tell(self, step, contacts):
        """Tell which feet stand since an instant."""
        source, = self.rig.node.contacts.inputs
        count = source.count
        self.publisher.publish(JointState(
            header=Header(stamp=self.stamp(step)), name=['right', 'left'],
            position=[float(stands) for stands in contacts[::-1]], effort=[0.0, 0.0]))
        self.rig.until(lambda: source.count > count, what='the contacts')

    def play(self, steps):
        joints = self.rig.node.inputs.joints
        until = joints.count + steps
        for _ in range(steps):
            self.step += 1
            self.rig.step(stamp=self.stamp(self.step))
        self.rig.until(lambda: joints.count >= until, what='the joint states')
        self.rig.spin(0.05)


@pytest.mark.parametrize('late', [6, 0, -6])
def test_contacts_hold_from_their_stamp_on_whenever_they_come(own_rig, late):
    rig = own_rig(changes=SENSING, contact_topics=[])
    contacts = StampedContacts(rig)
    contacts.tell(0, LEFT)
    contacts.play(5)
    origin = rig.motion.sole_in_world.position.copy()
    change = contacts.step + max(-late, 0) + 1
    if late < 0:  # before what happens then
        contacts.tell(change, BOTH)
        contacts.tell(change + 1, RIGHT)
        contacts.play(-late)
        assert_truth(rig, origin)
    contacts.play(1)
    rig.motion.step_onto(1, rig.t)
    if late == 0:
        contacts.tell(change, BOTH)
        contacts.tell(change + 1, RIGHT)
    contacts.play(max(late, 1))
    if late > 0:
        with pytest.raises(AssertionError):
            assert_truth(rig, origin, atol=1e-4)  # the left foot is believed to stand
        contacts.tell(change, BOTH)
        contacts.tell(change + 1, RIGHT)
    contacts.play(3)
    assert_truth(rig, origin)
    located = rig.node.last.located
    assert located.contacts_measured and located.stance.in_contact == RIGHT


# -- against the feet


class Feet:
    """Tells the node what the feet of a robot at rest carry, as wrench_aggregator does."""

    def __init__(self, rig):
        self.rig = rig
        self.publisher = rig.peer.create_publisher(
            WrenchStamped, 'wrench_aggregator/resting_wrench', 10)
        rig.until(lambda: self.publisher.get_subscription_count(), what='the node')

    def tell(self, forward=0.0, weight=1.0):
        """Press so far ahead of the true centre of mass, with so much of the true weight."""
        rig, motion = self.rig, self.rig.motion
        stamp = rig.step(dt=0.0)
        base = motion.base(rig.t)
        heading = np.arctan2(base.rotation[1, 0], base.rotation[0, 0])
        com = motion.state(rig.t).in_world(base).com_in_world - motion.sole_in_world.position
        x, y, _ = Rotation.from_euler('z', heading).inv().apply(com)
        message = WrenchStamped(header=Header(stamp=stamp, frame_id='base_footprint'))
        force = 9.81 * weight * motion.model.mass
        message.wrench.force.z = force
        message.wrench.torque.x, message.wrench.torque.y = y * force, -(x + forward) * force
        self.publisher.publish(message)

    def verdict(self, line, level, **felt):
        """Return what the diagnostics say once they have this level."""
        rig, end = self.rig, time.monotonic() + 30.0
        while time.monotonic() < end:
            rig.diagnostics.clear()
            rig.until(lambda: self.tell(**felt) or line in rig.diagnostics)
            if rig.diagnostics[line][0] == level:
                return rig.diagnostics[line][1]
        raise AssertionError(f'{line}: {rig.diagnostics[line]}')


SENSING = {'feet': {name: {**foot, 'wrench_sensors': [f'{name}_ft']}
                    for name, foot in MAPPING['feet'].items()},
           'wrench_sensors': {f'{name}_ft': {'frame': f'{name}_foot', 'topic': f'{name}/wrench'}
                              for name in MAPPING['feet']}}


def test_the_model_is_compared_with_the_feet(own_rig):
    rig = own_rig(changes=SENSING)
    rig.warm_up()
    said = rig.health('centre of mass', OK)
    assert 'has no publisher; start wrench_aggregator' in said
    feet = Feet(rig)
    assert 'not compared' in rig.health('weight', OK)
    rig.play(3)
    feet.tell()
    rig.until(lambda: 'within 0.0 mm (forward' in feet.verdict('centre of mass', OK))
    assert '(ratio 1.0000)' in feet.verdict('weight', OK)
    said = feet.verdict('centre of mass', WARN, forward=0.02)
    assert 'press 20.0 mm (forward +20.0, left' in said
    assert 'tare with the feet in the air' in said and 'calibration.launch.xml' in said
    said = feet.verdict('weight', WARN, weight=1.1)
    assert '(ratio 1.100)' in said and 'tare' in said and 'calibration.launch.xml' in said


def test_a_robot_without_wrench_sensors_is_not_compared(rig):
    rig.health('base', OK)
    assert not {'weight', 'centre of mass'} & set(rig.diagnostics)


# -- bad input


def test_it_says_what_it_waits_for_and_what_it_got(own_rig, monkeypatch, capfd):
    from biped_com_ros.ros.node import input_watch
    monkeypatch.setattr(input_watch, '_FIRST_REMINDER', 0.6)
    rig = own_rig(sensor_timeout=5.0)
    told = ''

    def is_said(*words):
        nonlocal told
        told += capfd.readouterr().err
        return all(word in told for word in words)
    rig.until(lambda: is_said('waiting for joint states for ', 'waiting for orientation for ',
                              f"on '{rig.space}/imu'"))
    assert not any(rig.got.values())
    rig.warm_up()
    told = ''
    rig.until(lambda: rig.step() and is_said('received joint states', 'received orientation'))
    rig.spin(0.6)
    is_said()
    assert told.count(f"received joint states on '{rig.space}/joint_states'") == 1
    assert told.count(f"received orientation on '{rig.space}/imu'") == 1
    assert 'waiting' not in told


@pytest.mark.parametrize(('changes', 'message'), [
    ({'left_knee': float('nan')}, "position of 'left_knee' = nan"),
    ({'waist': float('inf')}, "position of 'waist' = inf"),
])
def test_values_that_are_not_finite_are_named_and_not_used(rig, changes, message):
    bad = []
    for _ in range(5):
        rig.t += 0.004
        bad.append(rig.peer.get_clock().now().to_msg())
        rig.send_imu(bad[-1])
        rig.spin(0.004)
        rig.joints.publish(rig.joint_state(bad[-1], **changes))
        rig.spin(0.004)
    rig.until(lambda: message in (rig.node.inputs.joints.last_error or ''))
    rig.spin(0.05)
    assert not [com for com in rig.got['com'] if com.header.stamp in bad]
    assert message in rig.health(f'input {rig.space}/joint_states', WARN)
    assert rig.got['com'], 'and the node goes on'
    assert_truth(rig, rig.motion.sole_in_world.position)


def test_a_value_too_large_to_be_true_is_named_and_not_used(rig):
    for _ in range(3):
        stamp = rig.peer.get_clock().now().to_msg()
        rig.send_imu(stamp)
        rig.spin(0.004)
        rig.joints.publish(rig.joint_state(stamp, neck=1e15))
        rig.spin(0.01)
    assert not rig.got['com']
    assert "position of 'neck' = 1e+15 cannot be true" in rig.health(
        f'input {rig.space}/joint_states', WARN)
    assert rig.got['com'], 'and the node goes on'


def test_missing_and_duplicate_joints_are_named_and_not_used(own_rig):
    rig = own_rig()
    rig.warm_up()

    def send(edit):
        for _ in range(int(0.8 / 0.008)):
            stamp = rig.peer.get_clock().now().to_msg()
            rig.send_imu(stamp)
            message = rig.joint_state(stamp)
            edit(message)
            rig.joints.publish(message)
            rig.spin(0.008)

    def without(message):
        i = message.name.index('left_knee')
        message.name = [n for n in message.name if n != 'left_knee']
        message.position = np.delete(message.position, i).tolist()
        message.velocity = np.delete(message.velocity, i).tolist()
    send(without)
    rig.clear()
    send(without)
    assert not rig.got['com']
    assert "joint 'left_knee' " in rig.node.inputs.joints.last_error

    def twice(message):
        message.name = [*message.name, 'waist']
        message.position = [*message.position, 0.1]
        message.velocity = [*message.velocity, 0.1]
    send(twice)
    assert not rig.got['com']
    assert "names joint 'waist' more than once" in rig.node.inputs.joints.last_error
    rig.until(lambda: rig.step() and rig.got['com'])


def test_stamps_going_backward_or_stale_are_refused(rig):
    stamp = rig.play(3)
    rig.clear()
    back = Time(sec=stamp.sec, nanosec=max(stamp.nanosec - 50_000_000, 0))
    rig.joints.publish(rig.joint_state(back))
    rig.spin(0.05)
    assert not rig.got['com'] and 's before the last one' in rig.node.inputs.joints.last_error
    rig.joints.publish(rig.joint_state(Time(sec=stamp.sec - 60)))
    rig.spin(0.05)
    assert not rig.got['com'] and 'behind the' in rig.node.inputs.joints.last_error


def test_an_imu_that_dies_stops_everything_and_is_named(rig):
    rig.silent.add('imu')
    rig.play(40)
    rig.clear()
    rig.play(10)
    assert not any(rig.got.values())
    assert 'waiting for orientation' in rig.health('base', ERROR)
    rig.silent.clear()
    rig.until(lambda: rig.step() and rig.got['com'])
    assert rig.health('base', OK)


def test_joint_states_that_die_are_named(rig):
    rig.silent.add('joints')
    assert 'waiting for joint states' in rig.health('base', ERROR)
    assert 'not published' in rig.health('com', ERROR)


def test_an_imu_in_another_frame_is_refused(rig):
    rig.bad = {'imu_frame': 'camera_imu'}
    rig.play(40)
    rig.clear()
    rig.play(5)
    assert not rig.got['com']
    message = rig.health(f'input {rig.space}/imu', ERROR)
    assert "frame_id is 'camera_imu'; valid: 'imu_link'" in message


def test_after_the_clock_was_set_back_the_world_begins_anew(own_rig):
    rig = own_rig(max_stamp_age=0.0)
    before, after = (iter([Time(sec=second, nanosec=n * 4_000_000) for n in range(1, 250)])
                     for second in (1000, 10))
    rig.until(lambda: rig.step(stamp=next(before)) and rig.got['com'])
    rig.motion.step_onto(1, rig.t)
    rig.contacts = RIGHT
    for _ in range(20):
        rig.step(stamp=next(before))
    assert np.linalg.norm(rig.node.last.located.stance.soles_in_world[1]) > 0.01
    rig.until(lambda: rig.step(stamp=next(after)) and rig.got['com'][-1].header.stamp.sec == 10)
    rig.play(0)
    np.testing.assert_allclose(rig.node.last.located.stance.soles_in_world[1], 0.0, atol=1e-9)


def test_a_broken_urdf_on_the_topic_is_named_and_a_good_one_still_taken(files):
    peer, executor = Node('describer'), make_executor()
    node = make_node(files(), urdf='topic')
    out = peer.create_publisher(String, 'robot_description', LATCHED)
    reports = {}
    peer.create_subscription(
        DiagnosticArray, '/diagnostics',
        lambda array: reports.update({s.name: s.message for s in array.status}), 10)
    executor.add_node(peer)
    executor.add_node(node)

    def until(condition):
        end = time.monotonic() + 10.0
        while not condition():
            assert time.monotonic() < end, reports
            executor.spin_once(timeout_sec=0.05)
    try:
        for broken, words in (
                (URDF[:-20], 'not well-formed XML'),
                (URDF.replace('<mass value=', '<mas value='), "<inertial> of link 'trunk'"),
                (URDF.replace('imu_link', 'imu_lnk'), "unknown frame 'imu_link'")):
            out.publish(String(data=broken))
            until(lambda: words in reports.get('com_estimator: robot', ''))  # noqa: B023
            assert not node.is_built
        out.publish(String(data=URDF))
        until(lambda: node.is_built)
        until(lambda: 'waiting for joint states' in reports.get('com_estimator: base', ''))
    finally:
        executor.shutdown()
        node.destroy_node()
        peer.destroy_node()


@pytest.mark.parametrize(('changes', 'parameters', 'message'), [
    ({'imus': {}}, {}, "robot 'small' has no IMU"),
    ({'feets': {}}, {}, "unknown key 'feets' in small.yaml; did you mean 'feet'"),
    ({'base_link': 'pelvis'}, {}, "unknown frame 'pelvis'"),
    ({}, {'base_source': 'gps'}, "'base_source': 'gps' .*'imu', 'odometry', 'tf', 'fixed'"),
    ({}, {'fixed_base': [0.0], 'base_source': 'fixed'}, 'must be six numbers: x, y, z'),
    ({}, {'contact_topics': ['left']}, 'must be 2 topics, one per foot, in the order left, right'),
    ({}, {'tf_rate': -3.0}, "'tf_rate': -3.0 is out of range; valid: 0 to 10000 Hz"),
])
def test_a_start_that_makes_no_sense_is_one_clear_error(files, changes, parameters, message):
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        make_node(files(**changes), **parameters)


def test_a_parameter_that_does_not_exist_is_named(files, capfd):
    node = make_node(files(), tf_rat=3.0, base_sourc='imu', nodes=['com_estimator'])
    node.destroy_node()
    told = capfd.readouterr().err
    assert "parameter 'tf_rat' = 3.0 does not exist" in told and "did you mean 'tf_rate'" in told
    assert "'base_sourc' = 'imu' does not exist" in told
    assert 'valid: base_source, base_timeout, ' in told
    assert "'nodes'" not in told, 'it belongs to another node of the process'


def test_the_dcm_of_a_com_below_the_ground_is_not_published(own_rig):
    rig = own_rig(base_source='fixed', fixed_base=[0.0, 0.0, 0.0, np.pi, 0.0, 0.0])
    rig.until(lambda: rig.step() and rig.got['com'] and rig.got['com_velocity'])
    rig.play(10)
    assert not rig.got['dcm']
    assert 'no dcm: the centre of mass is -' in rig.health('com', WARN)


# -- the file of parameters, the process


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/com_estimator']['ros__parameters']
    defaults = ComEstimatorParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(ComEstimatorParameters)}


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, '-m', 'biped_com_ros.nodes.com_estimator.node', '--ros-args', *arguments],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)},
        stderr=subprocess.PIPE, text=True)


def test_the_process_ends_cleanly_on_an_interrupt(files):
    peer = Node('watcher')
    process = start('--params-file', str(CONFIG), '-p', f'robot:={files()}')
    end = time.monotonic() + 20.0
    while not peer.count_publishers('/com_estimator/com'):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10.0)
    peer.destroy_node()
    assert process.returncode == 0, said
    assert 'Traceback' not in said


def test_the_process_says_in_one_line_why_it_cannot_start(tmp_path):
    process = start('-p', f'robot:={tmp_path / "none.yaml"}')
    _, said = process.communicate(timeout=20.0)
    assert process.returncode == 1
    assert len(said.strip().splitlines()) == 1
    assert "none.yaml' cannot be read" in said
