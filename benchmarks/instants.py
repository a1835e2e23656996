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
"""Messages of sensors of a robot that stands or bends, as callbacks of nodes get them."""

from __future__ import annotations

from collections.abc import Callable
import math
import time
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.fast.compat import callback_of
from geometry_msgs.msg import Quaternion, Wrench, WrenchStamped
import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

Call = Callable[[], object]
STEP_NS = 2_000_000
#: The torso goes around with so much bend, rad, in so many instants.
BEND, ROUND = math.radians(6.0), 500


class JointStates:
    """A JointState as bytes, each time with a later stamp."""

    def __init__(self, robot: RobotModel) -> None:
        names = list(robot.joint_names)
        self._template = joint_states(names, robot.posture('stand'), 0.0, 'velocity')
        self._template.fields['velocity'][...] = 0.01

    def call(self, node: Node) -> Call:
        """Return a call of a node's callback for joint states, as the executor makes it."""
        subscription = next(
            s for s in node.subscriptions if s.topic_name.endswith('joint_states'))
        callback, template = callback_of(subscription), self._template
        if subscription.raw:
            return lambda: callback(template.serialize(time.time_ns()))
        return lambda: callback(
            deserialize_message(template.serialize(time.time_ns()), JointState))


class FourMessages:
    """Hands joint states, IMU and foot wrenches of a robot that trembles to inputs."""

    def __init__(self, model: RobotModel, inputs: Any) -> None:
        self._ns = 10**9
        self._joints = joint_states(list(model.joint_names), model.posture(), 0.0, 'position')
        imu = model.config.imu.frame
        upright = imu_message(imu)
        upright.fields['gyro'][...] = 0.0
        upright.fields['attitude'][...] = model.state(
            model.posture()).pose_in_base(imu).quaternion
        self._others = [(inputs.inputs['IMU'].reader.receive, upright)]
        self._on_joints = inputs.joints.reader.receive
        for foot, source in zip(model.soles.names, inputs.wrenches):
            message = WrenchStamped(
                header=Header(frame_id=model.config.sole_frame(foot)), wrench=Wrench())
            message.wrench.force.z = GRAVITY * model.mass / len(model.soles.names)
            self._others.append((source.reader.receive, Template(message, {})))

    def __call__(self) -> None:
        self._ns += STEP_NS
        self._joints.fields['position'][0] += 1e-9
        self._on_joints(bytes(self._joints.serialize(self._ns)))
        for receive, template in self._others:
            receive(bytes(template.serialize(self._ns)))


class TorsoInstants:
    """Hands both IMUs, joint and tendon states of a torso that follows its target to a node."""

    def __init__(self, node: Any) -> None:
        model, body = node.model, node.body
        imus = model.config.imus
        self._shapes = [make_shape(BEND, direction)
                        for direction in np.linspace(0.0, 2.0 * np.pi, ROUND, False)]
        self._attitudes = [quaternion_from_rotation(body.backbone.tip(shape).rotation)
                           for shape in self._shapes]
        self._lengths = [body.backbone.lengths(shape) for shape in self._shapes]
        others = [name for name in model.joint_names if name not in body.joint_names]
        self._upper = imu_message(imus['torso'].frame)
        self._tendons = joint_states(
            [f'tendon_{i}' for i in range(body.backbone.count)], self._lengths[0], 12.0,
            'position')
        messages = {
            imus['base'].topic: imu_message(imus['base'].frame), imus['torso'].topic: self._upper,
            'joint_states': joint_states(
                others, model.posture()[model.joint_index(others)], 0.0, 'position'),
            'tendon_states': self._tendons}
        callbacks = {s.topic_name.lstrip('/'): callback_of(s) for s in node.subscriptions}
        self._calls = [(callbacks[topic], message) for topic, message in messages.items()]
        self._controller, self._now, self._step = node.controller, time.time_ns(), 0

    def __call__(self) -> None:
        self._now, self._step = self._now + STEP_NS, (self._step + 1) % ROUND
        self._upper.fields['attitude'][...] = self._attitudes[self._step]
        self._tendons.fields['position'][...] = self._lengths[self._step]
        if not self._step % 10:
            self._controller.set_target(self._shapes[self._step])
        for callback, message in self._calls:
            callback(message.serialize(self._now))


def imu_message(frame: str) -> Template:
    """Return what an IMU sends."""
    template = Template(Imu(header=Header(frame_id=frame), orientation=Quaternion(w=1.0)), {
        'gyro': 'angular_velocity', 'attitude': 'orientation'})
    template.fields['gyro'][...] = 0.01, -0.005, 0.002
    return template


def joint_states(names: list[str], positions: Array, effort: float, field: str) -> Template:
    """Return joint states of which one field changes."""
    return Template(JointState(
        name=names, position=np.asarray(positions).tolist(), velocity=[0.01] * len(names),
        effort=[effort] * len(names)), {field: field})
