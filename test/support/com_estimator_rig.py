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
"""The node com_estimator between the drivers of a robot, whose true motion is known."""

from dataclasses import replace
import itertools

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import PointStamped, PoseArray, Vector3Stamped
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.qos import qos_profile_sensor_data
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from support.driven_time import run_ready
from support.messages import imu, joint_state, odometry, parameters, vector
from support.recorded_robot import RecordedRobot
from support.ros_rig import NodeRig
from support.small_robot import MAPPING
from support.stance_motion import LEFT
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

OUTPUTS = {'com': PointStamped, 'com_velocity': Vector3Stamped, 'dcm': PointStamped,
           'link_coms': PoseArray, 'markers': MarkerArray}
SENSING = {'feet': {name: {**foot, 'wrench_sensors': [f'{name}_ft']}
                    for name, foot in MAPPING['feet'].items()},
           'wrench_sensors': {f'{name}_ft': {'frame': f'{name}_foot', 'topic': f'{name}/wrench'}
                              for name in MAPPING['feet']}}
"""What gives the small robot a wrench sensor in each foot."""

DT = 0.004
"""Between two samples of a recording, s."""

_NAMESPACES = (f'/com_estimator_rig_{i}' for i in itertools.count())


def make_node(robot, space='', **values):
    """Return the node, with a namespace of its own for TF and diagnostics if it has one."""
    remap = ['--ros-args', '-r', '/tf:=tf', '-r', '/diagnostics:=diagnostics'] if space else []
    return ComEstimator(
        namespace=space, cli_args=remap, parameter_overrides=parameters(**{
            'robot': robot, 'tf_rate': 1000.0, 'marker_rate': 1000.0,
            **values}))


def true_com_velocity(motion, t, h=1e-5):
    """By differences of the CoM in the world."""
    before, after = (motion.state(t + s).in_world(motion.base(t + s)).com_in_world
                     for s in (-h, h))
    return (after - before) / (2.0 * h)


class ComEstimatorRig(NodeRig):
    """
    The node, the drivers of a moving robot, and a subscriber of every output.

    Attributes
    ----------
    motion, t
        Motion of the robot, and the time in it, s.
    contacts, silent, bad
        Which feet are in contact; what is not sent; wrong frames by name.
    got, transforms
        Messages by topic, and those on /tf.

    """

    def __init__(self, robot, motion, **values):
        self.space = next(_NAMESPACES)
        super().__init__(node=make_node(robot, self.space, **values), namespace=self.space)
        self.motion, self.t, self.stamp, self.silent = motion, 0.0, None, set()
        self.contacts, self.bad = LEFT, {}
        self.got = {topic: [] for topic in OUTPUTS}
        self.transforms, peer = [], self.peer
        self.joints = peer.create_publisher(JointState, 'joint_states', 10)
        self.imu = peer.create_publisher(Imu, 'imu', qos_profile_sensor_data)
        self.odom = peer.create_publisher(Odometry, 'odom', 10)
        self.feet = peer.create_publisher(JointState, 'wrench_aggregator/contacts', 10)
        for topic, kind in OUTPUTS.items():
            peer.create_subscription(kind, f'com_estimator/{topic}', self.got[topic].append,
                                     LATCHED if topic == 'markers' else 10)
        peer.create_subscription(TFMessage, 'tf', self.transforms.append, 10)
        self.record_statuses('diagnostics')
        self.until(lambda: peer.count_subscribers('joint_states') and all(
            peer.count_publishers(f'com_estimator/{t}') for t in OUTPUTS))

    def warm_up(self):
        """Play until every output was published once."""
        self.until(lambda: self.step() and all(self.got.values()))
        self.clear()

    def step(self, dt=0.004, stamp=None):
        """Advance the motion, send everything, joint states last; return their stamp."""
        self.t += dt
        self.stamp = stamp = stamp or self.peer.get_clock().now().to_msg()
        self.send_contacts(stamp)
        self.send_imu(stamp)
        self.send_odometry(stamp)
        run_ready(self.executor)
        if 'joints' not in self.silent:
            self.joints.publish(self.joint_state(stamp))
        self.spin(dt or 0.001)
        return stamp

    def play(self, steps):
        stamp = None
        for _ in range(steps):
            stamp = self.step()
        return stamp

    def send_contacts(self, stamp):
        if 'contacts' not in self.silent:
            self.feet.publish(joint_state(
                stamp, list(self.motion.model.config.feet), list(map(float, self.contacts))))

    def send_imu(self, stamp, frame='imu_link'):
        """Publish the orientation and angular velocity of the IMU."""
        if 'imu' not in self.silent:
            self.imu.publish(imu(
                stamp, self.bad.get('imu_frame', frame),
                Rotation.from_matrix(self.motion.R_world_imu(self.t)).as_quat(),
                self.motion.gyro(self.t)))

    def send_odometry(self, stamp):
        """Publish pose and twist of base_link, which base_rpy may turn against the base."""
        turn = self.motion.model.config.base_rpy
        R_base_link = Rotation.from_euler('xyz', turn).as_matrix().T
        pose, twist = self.motion.base(self.t), self.motion.base_twist(self.t) @ R_base_link
        self.odom.publish(odometry(
            stamp, self.bad.get('odom_frame', 'odom'), self.bad.get('odom_child', 'base_link'),
            pose.position, Rotation.from_matrix(pose.rotation @ R_base_link).as_quat(),
            np.ravel(twist)))

    def joint_state(self, stamp, **changes):
        """Return the joints in reverse order with an unknown one; `changes` by name."""
        names = list(self.motion.model.joint_names)
        positions, velocities = self.motion.joints(self.t)
        values = dict(zip(names, positions)) | changes
        return joint_state(stamp, [*names[::-1], 'unknown'],
                           [*(values[name] for name in names[::-1]), 9.0],
                           [*velocities[::-1], 9.0])

    def clear(self):
        for messages in (*self.got.values(), self.transforms):
            messages.clear()

    def health(self, line, level, text=''):
        """Play until a line of the diagnostics has the level and contains the text."""
        for _ in range(100):
            self.play(25)
            self.node.diagnostics.publish()
            run_ready(self.executor)
            reported, message = self.statuses[line]
            if reported == level and text in message:
                return message
        raise AssertionError(f'{line}: {self.statuses[line]}')

    def truth(self):
        """Return the robot in the world, the true base twist, and where the world begins."""
        state = self.motion.state(self.t).in_world(self.motion.base(self.t))
        return state, self.motion.base_twist(self.t)

    def assert_truth(self, origin, atol=1e-9):
        """Check the newest outputs against the truth; `origin` is that of the world frame."""
        for topic in ('com', 'com_velocity', 'link_coms', 'dcm'):
            assert self.got[topic][-1].header.stamp == self.stamp, topic
        state, _ = self.truth()
        com = state.com_in_world - origin
        velocity = true_com_velocity(self.motion, self.t)
        np.testing.assert_allclose(vector(self.got['com'][-1].point), com, atol=atol)
        np.testing.assert_allclose(
            vector(self.got['com_velocity'][-1].vector), velocity, atol=1e-5)
        links = [vector(pose.position) for pose in self.got['link_coms'][-1].poses]
        np.testing.assert_allclose(links, state.link_coms_in_world - origin, atol=atol)
        ground = self.motion.sole_in_world.position[2] - origin[2]
        dcm = com + velocity / np.sqrt(9.81 / (com[2] - ground))
        np.testing.assert_allclose(
            vector(self.got['dcm'][-1].point), [*dcm[:2], ground], atol=1e-5)


class RecordedEstimator(RecordedRobot):
    """
    The node, and the drivers of the biped that publish what was recorded, by the present time.

    Parameters
    ----------
    outputs
        Type of each output to which the peer subscribes besides `com`, by topic.
    values
        Parameters of the node.

    Attributes
    ----------
    got, played
        Messages by topic; the sample that was played at each instant, ns.

    """

    def __init__(self, outputs, **values):
        super().__init__(make_node(values.pop('robot', 'biped'), next(_NAMESPACES), **values))
        self.record_statuses('diagnostics')
        self.got = {topic: self.collect(kind, f'com_estimator/{topic}')
                    for topic, kind in {'com': PointStamped, **outputs}.items()}
        self.played = {}
        if self.node.params.fused_com or self.node.params.base.source == 'filter':
            self.until(lambda: all(foot.get_subscription_count() for foot in self.wrenches[:2]),
                       what='the feet')
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def play(self, samples, sign=1.0, silent=(), has_orientation=True):
        """Publish samples, joint states last, whose feet report forces of this sign."""
        for sample in samples:
            self.time.advance(DT)
            now = self.peer.get_clock().now()
            stamp, self.played[now.nanoseconds] = now.to_msg(), sample
            if 'imu' not in silent:
                self.send_imu(stamp, sample, has_orientation)
            for i in range(0 if 'feet' in silent else 2):
                self.send_wrench(stamp, replace(sample, wrenches=sign * sample.wrenches), i)
            run_ready(self.executor)
            self.send_joints(stamp, sample)
            run_ready(self.executor)

    def report(self, line):
        """Return the message of a line of the diagnostics; '' if there is none."""
        self.node.diagnostics.publish()
        run_ready(self.executor)
        return self.statuses.get(line, (None, ''))[1]


def transforms(message):
    """Return parent and matrix of each transform of a message, by child."""
    return {t.child_frame_id: (t.header.frame_id, matrix(t.transform))
            for t in message.transforms}


def matrix(transform):
    """Return a transform as a matrix, 4 by 4."""
    out, q = np.eye(4), transform.rotation
    out[:3, :3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()
    out[:3, 3] = vector(transform.translation)
    return out
