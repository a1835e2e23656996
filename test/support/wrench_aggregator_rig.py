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
"""The node wrench_aggregator between the drivers of a robot, whose true forces are known."""

import itertools

from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
import numpy as np
from rclpy.duration import Duration
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool
from support.driven_time import run_ready
from support.messages import imu, joint_state, parameters, wrench, wrench_stamped
from support.ros_rig import NodeRig
from support.wrench_oracle import SENSORS, TiltedRobot, URDF, YAML

OUTPUTS = {
    'left/wrench': WrenchStamped, 'right/wrench': WrenchStamped, 'wrench': WrenchStamped,
    'left_hand/wrench': WrenchStamped,
    'left/contact': Bool, 'right/contact': Bool, 'left/cop': PointStamped,
    'right/cop': PointStamped, 'line/point': PointStamped, 'line/direction': Vector3Stamped,
    'contacts': JointState}
_NAMESPACES = (f'wrench_aggregator_rig_{i}' for i in itertools.count())


def make_node(namespace='', **values):
    """Return the node with a robot of six sensors, without low-pass."""
    return WrenchAggregator(namespace=namespace, parameter_overrides=parameters(**{
        'robot': str(YAML), 'urdf': str(URDF), 'low_pass_cutoff': 0.0, 'tare_duration': 0.196,
        'bias_tracking': False, **values}))


class WrenchAggregatorRig(NodeRig):
    """
    The node, the drivers of a robot, and a subscriber of every output.

    Attributes
    ----------
    robot, contacts, offsets, noise
        The robot, the forces on it, and the errors of its sensors.
    silent, late
        Names of the sensors that send nothing, and delays (s) by name of others.
    orientation, acceleration_scale
        What the IMU has: an orientation, 'none' (covariance -1) or 'zeros'; and its unit.
    got
        Messages by topic.

    """

    def __init__(self, robot=None, robot_file=str(YAML), **values):
        self.namespace = namespace = next(_NAMESPACES)
        super().__init__(
            node=make_node(namespace=namespace, robot=robot_file, **values), namespace=namespace)
        self.robot, self.rng = robot or TiltedRobot.somewhere(0), np.random.default_rng(0)
        self.reset()
        peer = self.peer
        self._publishers = {name: peer.create_publisher(
            WrenchStamped, f'{name}/wrench', qos_profile_sensor_data) for name in SENSORS}
        self._joints = peer.create_publisher(JointState, 'joint_states', 10)
        self._imu = peer.create_publisher(Imu, 'imu', qos_profile_sensor_data)
        self.got = {topic: [] for topic in OUTPUTS}
        for topic, kind in OUTPUTS.items():
            peer.create_subscription(
                kind, f'wrench_aggregator/{topic}', self.got[topic].append, 10)
        self.record_statuses()
        self._connect()

    def reset(self):
        """Let the robot hang at rest, with sensors that have no errors."""
        self.contacts, self.offsets, self.noise = {}, {}, 0.0
        self.silent, self.late, self.joint_speed = set(), {}, 0.0
        self.orientation, self.acceleration_scale = 'measured', 1.0

    def _connect(self):
        """Wait until both sides know each other."""
        topics = [f'{name}/wrench' for name in SENSORS] + ['joint_states', 'imu']
        self.until(lambda: all(self.peer.count_subscribers(t) for t in topics) and all(
            self.peer.count_publishers(f'wrench_aggregator/{t}') for t in OUTPUTS))
        self.spin(0.2)  # publishers look for subscribers ten times a second
        self.until(lambda: self.play(1) and (
            self.got['left/wrench'] and self.got['wrench'] and self.got['right/wrench']))

    def play(self, instants, period=0.004):
        """Let all drivers publish `instants` times; return the last stamp."""
        for _ in range(instants):
            self.time.advance(period)
            now = self.peer.get_clock().now()
            self.publish_state(now.to_msg())
            for name in SENSORS:
                if name not in self.silent:
                    stamp = now - Duration(seconds=self.late.get(name, 0.0))
                    self.publish_wrench(name, stamp.to_msg())
        return now.to_msg()

    def publish_state(self, stamp):
        """Publish joints in reverse order with an unknown one, and an IMU with a wrong yaw."""
        robot = self.robot
        self._joints.publish(joint_state(
            stamp, [*robot.joint_names[::-1], 'unknown'], [*robot.joints[::-1], 9.0],
            [self.joint_speed] * (len(robot.joint_names) + 1)))
        if 'imu' not in self.silent:
            self._imu.publish(self._imu_message(stamp))
        run_ready(self.executor)

    def _imu_message(self, stamp):
        robot, has_orientation = self.robot, self.orientation == 'measured'
        message = imu(
            stamp, 'imu_link', robot.imu_quaternion(0.8) if has_orientation else np.zeros(4),
            acceleration=self.acceleration_scale * robot.imu_acceleration())
        if self.orientation == 'none':
            message.orientation_covariance[0] = -1.0
        return message

    def publish_wrench(self, name, stamp, frame=None, values=None):
        """Publish the reading of a sensor, or other `values` of it."""
        if values is None:
            noise = self.noise * self.rng.normal(size=6) * [1, 1, 1, 0.05, 0.05, 0.05]
            values = self.robot.reading(name, self.contacts, self.offsets.get(name, 0.0) + noise)
        self._publishers[name].publish(wrench_stamped(stamp, frame or SENSORS[name][0], values))
        run_ready(self.executor)

    def clear(self):
        """Forget the messages received."""
        for messages in self.got.values():
            messages.clear()

    def tare(self, service='tare'):
        """Call ~/tare, or another service of type Trigger; return the response."""
        return self.trigger(f'wrench_aggregator/{service}')

    def health(self, line):
        """Return (level, message) of a diagnostics line that covers the present only."""
        self.play(5)
        self.node.diagnostics.publish()  # what a report says is about the time since the last one
        self.play(50, 0.02)
        self.node.diagnostics.publish()
        run_ready(self.executor)
        return self.statuses[line]

    def assert_forces(self, atol=1e-9):
        """Check that the newest outputs are the true forces."""
        for foot in ('left', 'right'):
            np.testing.assert_allclose(
                wrench(self.got[f'{foot}/wrench'][-1]),
                self.robot.foot_wrench(foot, self.contacts), atol=atol)
        np.testing.assert_allclose(
            wrench(self.got['left_hand/wrench'][-1]),
            self.robot.hand_wrench('left_hand', 'finger', self.contacts), atol=atol)
        np.testing.assert_allclose(wrench(self.got['wrench'][-1]),
                                   self.robot.total_wrench(self.contacts), atol=atol)
