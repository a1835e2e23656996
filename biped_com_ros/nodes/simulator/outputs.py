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
"""Outputs of `simulator`: sensors, true state, clock."""

from __future__ import annotations

import math

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, point_publisher, pose_array_publisher,
    TemplatePublisher, vector_publisher, wrench_publisher)
from biped_com_ros.sim.interface import Observation
from biped_com_ros.sim.plant import Plant
from nav_msgs.msg import Odometry
import numpy as np
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, Temperature
from std_msgs.msg import Header

_TEMPERATURE_RATE = 2.0  # Hz


class ClockOutput:
    """Publishes /clock; `rate` in Hz, 0: not at all."""

    def __init__(self, node: Node, rate: float) -> None:
        self._out = TemplatePublisher(
            node, '/clock', Clock(), {'sec': 'clock.sec', 'nanosec': 'clock.nanosec'})
        self._period_ns = 1e9 / rate if rate > 0.0 else math.inf
        self._next_ns = 0.0

    def publish(self, stamp_ns: int) -> None:
        """Publish a time, once per period."""
        if stamp_ns < self._next_ns:
            return
        self._next_ns = (stamp_ns // self._period_ns + 1) * self._period_ns
        fields = self._out.fields
        fields['sec'][...], fields['nanosec'][...] = divmod(stamp_ns, SECOND_NS)
        self._out.publish()


class SensorOutputs:
    """Publishes the readings of the robot's sensors."""

    def __init__(self, node: Node, plant: Plant, params: SimulatorParameters) -> None:
        config = plant.config
        self._imus = [_imu_publisher(node, imu.topic, imu.frame, params)
                      for imu in config.imus.values()]
        hidden = () if params.virtual_joints else plant.virtual_joint_names
        names = [name for name in plant.joint_names if name not in hidden]
        self._columns = np.array([plant.joint_names.index(name) for name in names], dtype=int)
        self._joints = joint_state_publisher(node, 'joint_states', names)
        self._wrenches = [wrench_publisher(node, sensor.topic, sensor.frame)
                          for sensor in config.wrench_sensors.values()]
        self._temperatures = [
            TemplatePublisher(node, sensor.temperature_topic, Temperature(
                header=Header(frame_id=sensor.frame)), {'temperature': 'temperature'})
            for sensor in config.wrench_sensors.values() if sensor.temperature_topic]
        self._temperatures_due = StampThrottle(_TEMPERATURE_RATE)
        tendons = [f'tendon_{i}' for i in range(plant.tendon_count)]
        self._tendons = joint_state_publisher(
            node, 'tendon_states', tendons, ('position', 'effort')) if tendons else None

    @property
    def outputs(self) -> list[TemplatePublisher]:
        """Return the outputs that a recording contains."""
        return [self._joints, *self._imus, *self._wrenches]

    def publish(self, stamp_ns: int, o: Observation) -> None:
        """Publish an observation: IMUs and joints first, which wrenches are processed with."""
        for i, imu in enumerate(self._imus):
            fields = imu.fields
            fields['orientation'][...] = o.imu_quaternions[i]
            fields['angular_velocity'][...] = o.angular_velocities[i]
            fields['linear_acceleration'][...] = o.linear_accelerations[i]
            imu.publish(stamp_ns)
        fields = self._joints.fields
        fields['position'][...] = o.joint_positions.take(self._columns)
        fields['velocity'][...] = o.joint_velocities.take(self._columns)
        fields['effort'][...] = o.joint_efforts.take(self._columns)
        self._joints.publish(stamp_ns)
        for out, wrench in zip(self._wrenches, o.wrenches):
            out.fields['wrench'][...] = wrench
            out.publish(stamp_ns)
        if self._temperatures and self._temperatures_due.is_due(stamp_ns):
            for out in self._temperatures:
                out.publish_value(o.temperature, stamp_ns)
        if self._tendons is not None:
            self._tendons.fields['position'][...] = o.tendon_lengths
            self._tendons.fields['effort'][...] = o.tendon_tensions
            self._tendons.publish(stamp_ns)


class TruthOutputs:
    """Publishes the true state, while there are subscribers."""

    def __init__(self, node: Node, plant: Plant, frame_id: str) -> None:
        self._plant = plant
        self._odometry = TemplatePublisher(node, 'odom', Odometry(
            header=Header(frame_id=frame_id), child_frame_id=plant.config.base_link), {
                'position': 'pose.pose.position', 'orientation': 'pose.pose.orientation',
                'linear': 'twist.twist.linear', 'angular': 'twist.twist.angular'})
        self._com = point_publisher(node, '~/truth/com', frame_id)
        self._com_velocity = vector_publisher(node, '~/truth/com_velocity', frame_id)
        self._zmp = point_publisher(node, '~/truth/zmp', frame_id)
        self._link_coms = pose_array_publisher(
            node, '~/truth/link_coms', frame_id, len(plant.link_names))
        self._contacts = float_array_publisher(
            node, '~/truth/contacts', len(plant.config.feet), labels=tuple(plant.config.feet))
        self._soles = [
            wrench_publisher(node, f'~/truth/{name}/wrench', plant.config.sole_frame(name))
            for name in plant.config.feet]
        self._all = (self._odometry, self._com, self._com_velocity, self._zmp, self._link_coms,
                     self._contacts, *self._soles)
        node.declare_parameter('link_names', list(plant.link_names), ParameterDescriptor(
            description='Links of ~/truth/link_coms, in order', read_only=True))

    def publish(self, stamp_ns: int) -> None:
        """Publish the true state."""
        if not any(out.has_subscribers for out in self._all):
            return
        truth = self._plant.truth()
        fields = self._odometry.fields
        fields['position'][...] = truth.base_position
        fields['orientation'][...] = truth.base_quaternion
        fields['linear'][...] = truth.base_twist[:3]
        fields['angular'][...] = truth.base_twist[3:]
        self._odometry.publish(stamp_ns)
        self._com.publish_value(truth.com, stamp_ns)
        self._com_velocity.publish_value(truth.com_velocity, stamp_ns)
        self._link_coms.publish_value(truth.link_coms, stamp_ns)
        self._contacts.publish_value(truth.sole_wrenches[:, 2], stamp_ns)
        for out, wrench in zip(self._soles, truth.sole_wrenches):
            out.publish_value(wrench, stamp_ns)
        if math.isfinite(truth.zmp[0]):
            self._zmp.publish_value(truth.zmp, stamp_ns)


def _imu_publisher(node: Node, topic: str, frame_id: str,
                   params: SimulatorParameters) -> TemplatePublisher:
    prototype = Imu(header=Header(frame_id=frame_id))
    errors = params.error_settings.sensors
    for covariance, sigma in ((prototype.orientation_covariance, errors.tilt_bias),
                              (prototype.angular_velocity_covariance, errors.gyro_noise),
                              (prototype.linear_acceleration_covariance,
                               errors.accelerometer_noise)):
        covariance[0::4] = np.full(3, sigma ** 2)
    names = ('orientation', 'angular_velocity', 'linear_acceleration')
    return TemplatePublisher(node, topic, prototype, {name: name for name in names})
