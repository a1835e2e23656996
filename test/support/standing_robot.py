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
"""What the drivers and the other nodes of a robot that stands still publish."""

from importlib import import_module

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import ReadingCorrection
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped, Vector3, Vector3Stamped
from nav_msgs.msg import Odometry
import numpy as np
from sensor_msgs.msg import Joy
from std_msgs.msg import Bool, Float64, Float64MultiArray, String
from support.messages import imu, joint_state, stamp_of, wrench_stamped
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

GRAVITY = 9.81


class StandingRobot:
    """
    A robot on two feet, at rest.

    Parameters
    ----------
    name
        Of the robot's file.

    """

    def __init__(self, name='biped'):
        self.model = model = RobotModel.load(name)
        self.positions = model.posture()
        self.state = model.state(self.positions)
        self.half_weight = 0.5 * GRAVITY * model.mass
        self.noise = np.random.default_rng(0)

    def message(self, topic, kind, now):
        """Return what is published on a topic (without its namespace) at a time, ns."""
        stamp, config = stamp_of(now), self.model.config
        makers = {'joint_states': self._joints, 'odom': self._odometry,
                  'tendon_states': self._tendons, 'wrench_aggregator/contacts': self._contacts,
                  'joy': _joy, 'torso_controller/target': _target,
                  'joint_trajectory_controller/joint_trajectory': self._trajectory}
        if topic in makers:
            return makers[topic](stamp)
        for part in config.imus.values():
            if topic == part.topic:
                return self._imu(stamp, part.frame)
        for sensor, part in config.wrench_sensors.items():
            if topic == part.topic:
                return self._wrench(stamp, part.frame, ReadingCorrection(config, sensor).scale)
        for foot, part in config.feet.items():
            if topic == f'wrench_aggregator/{foot}/wrench':
                return self._wrench(stamp, part.sole)
            if topic == f'wrench_aggregator/{foot}/cop':
                return PointStamped(header=wrench_stamped(stamp, part.sole, np.zeros(6)).header)
        return self._by_type(topic, kind, stamp)

    def _by_type(self, topic, kind, stamp):
        counts = {'effort_controller/commands': len(self.model.actuated_joint_names),
                  'position_controller/commands': len(self.model.actuated_joint_names),
                  'tendon_controller/commands': 4, 'gait_player/shares': 2}
        if kind is Float64MultiArray:
            value = {'gait_player/shares': 0.5, 'tendon_controller/commands':
                     self.model.config.torso.backbone_length}.get(topic, 0.0)
            if topic == 'position_controller/commands':
                index = self.model.joint_index(self.model.actuated_joint_names)
                return Float64MultiArray(data=self.positions[index].tolist())
            return Float64MultiArray(data=[value] * counts.get(topic, 0))
        if kind is DiagnosticArray:
            return _diagnostics(stamp)
        values = {Bool: {'data': True}, Float64: {'data': 0.03},
                  String: {'data': 'double support'}}
        if topic.endswith('_description'):
            values = {String: {'data': self.model.urdf}}
        message = kind(**values.get(kind, {}))
        if hasattr(message, 'header'):
            message.header.stamp = stamp
            message.header.frame_id = 'base_link' if topic == 'simulator/push' else 'odom'
        return message

    def _joints(self, stamp):
        noise = 1e-6 * self.noise.normal(size=len(self.positions))
        return joint_state(stamp, self.model.joint_names, self.positions + noise, noise, noise)

    def _imu(self, stamp, frame):
        pose = self.state.pose_in_base(frame)
        message = imu(stamp, frame, pose.quaternion, 1e-4 * self.noise.normal(size=3))
        up = pose.rotation.T @ [0.0, 0.0, GRAVITY] + 1e-3 * self.noise.normal(size=3)
        message.linear_acceleration = Vector3(**dict(zip('xyz', up.tolist())))
        return message

    def _wrench(self, stamp, frame, sign=1.0):
        force = self.half_weight + 1e-3 * self.noise.normal()
        up = self.state.pose_in_base(frame).rotation.T @ [0.0, 0.0, force]
        return wrench_stamped(stamp, frame, sign * np.concatenate([up, np.zeros(3)]))

    def _odometry(self, stamp):
        message = Odometry(child_frame_id=self.model.config.base_link)
        message.header.stamp, message.header.frame_id = stamp, 'odom'
        message.pose.pose.orientation.w, message.pose.pose.position.z = 1.0, 0.4
        return message

    def _tendons(self, stamp):
        lengths = np.full(4, self.model.config.torso.backbone_length)
        return joint_state(stamp, [f'tendon_{i}' for i in range(4)], lengths,
                           np.zeros(4), np.full(4, 5.0) + 1e-3 * self.noise.normal(size=4))

    def _contacts(self, stamp):
        return joint_state(stamp, self.model.config.feet, [1.0, 1.0], (), [self.half_weight] * 2)

    def _trajectory(self, stamp):
        names = list(self.model.actuated_joint_names)
        point = JointTrajectoryPoint(
            positions=self.positions[self.model.joint_index(names)].tolist())
        point.time_from_start.sec = 1
        return JointTrajectory(joint_names=names, points=[point])


def _joy(stamp):
    message = Joy(axes=[0.0] * 4, buttons=[0] * 4)
    message.header.stamp = stamp
    return message


def _target(stamp):
    message = Vector3Stamped(vector=Vector3(x=0.1))
    message.header.stamp = stamp
    return message


def _diagnostics(stamp):
    status = DiagnosticStatus(
        name='fuzz/zmp_monitor: zmp', message='fine', values=[KeyValue(key='now', value='STABLE')])
    message = DiagnosticArray(status=[status])
    message.header.stamp = stamp
    return message


def message_class(name):
    """Return the class of a type such as 'sensor_msgs/msg/Imu', or of an action's feedback."""
    package, part, name = name.split('/')
    name, _, nested = name.partition('_')
    found = getattr(import_module(f'{package}.{part}'), name)
    return getattr(found.Impl, nested) if nested else found
