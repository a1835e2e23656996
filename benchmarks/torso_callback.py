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
What an update of `torso_controller` costs, in process, against a relay that does nothing.

All four inputs go in as serialized messages, as the executor hands them over. An update is
compared with one relay, and with all inputs also with as many relays as there are messages::

    python -m benchmarks.torso_callback [ROUNDS]
"""

from __future__ import annotations

from collections.abc import Callable
import sys
import time

from benchmarks.callbacks import _call, _listened_to, _Message
from benchmarks.common import alternate, microseconds
from benchmarks.subject import Relay
from biped_com_ros.core.pose import Array, quaternion_from_rotation
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.nodes.torso_controller import TorsoController
from biped_com_ros.ros.codec import Template
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.outputs import TemplatePublisher
from geometry_msgs.msg import Quaternion
import numpy as np
import rclpy
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

PERIOD = 2_000_000
"""Between the stamps of two updates, ns."""

INPUTS = 4
"""Messages of an instant: two IMUs, joints, tendons."""

DEMO = ('_lengths', '_joints')
"""Outputs that somebody listens to in the demo without a viewer."""


class Subject:
    """The node and what it hears: a torso bent by 6 deg, standing arms."""

    def __init__(self, node: TorsoController) -> None:
        model, body = node.model, node.body
        assert model is not None and body is not None
        shape, imus = make_shape(0.1, 0.7), model.config.imus
        others = [name for name in model.joint_names if name not in body.joint_names]
        self._messages = {
            imus['base'].topic: _imu(imus['base'].frame, np.eye(3)),
            'joint_states': _joints(others, model.posture()[model.joint_index(others)], 0.0),
            'tendon_states': _joints([f'tendon_{i}' for i in range(body.backbone.count)],
                                     body.backbone.lengths(shape), 12.0),
            imus['torso'].topic: _imu(imus['torso'].frame, body.backbone.tip(shape).rotation)}
        self._callbacks = {s.topic_name.lstrip('/'): s.callback for s in node.subscriptions}
        self._last, self._now = imus['torso'].topic, time.time_ns()

    def update(self) -> None:
        """Hand over the torso's IMU message, on which everything is computed."""
        self._now += PERIOD
        self._send(self._last)

    def all_inputs(self) -> None:
        """Hand over the messages of all four sensors."""
        self._now += PERIOD
        for topic in self._messages:
            self._send(topic)

    def _send(self, topic: str) -> None:
        self._callbacks[topic](self._messages[topic].serialize(Stamp.from_ns(self._now)))


def measure(rounds: int) -> dict[str, dict[str, Array]]:
    """Return times per call, s, by who listens and what is called."""
    relay = Relay()
    node = TorsoController(parameter_overrides=[
        Parameter('robot', value='biped'), Parameter('max_stamp_age', value=0.0),
        Parameter('imu_timeout', value=10.0)])
    subject, outputs = Subject(node), vars(node._outputs)
    everything = {output for output in outputs.values() if isinstance(output, TemplatePublisher)}
    calls: dict[str, Callable[[], object]] = {
        'relay': _call(relay, _Message(RobotModel.load('biped'))),
        'torso IMU': subject.update, 'all inputs': subject.all_inputs}
    subject.all_inputs()
    results = {}
    for name, wanted in (('lengths and joints wanted', {outputs[name] for name in DEMO}),
                         ('all outputs wanted', everything)):
        with _listened_to(wanted):
            results[name] = alternate(calls, rounds)
    for each in (relay, node):
        each.destroy_node()
    return results


def _imu(frame: str, rotation: Array) -> Template:
    x, y, z, w = quaternion_from_rotation(rotation).tolist()
    message = Imu(header=Header(frame_id=frame), orientation=Quaternion(x=x, y=y, z=z, w=w))
    template = Template(message, {'gyro': 'angular_velocity'})
    template.fields['gyro'][...] = 0.1, -0.05, 0.02
    return template


def _joints(names: list[str], positions: Array, effort: float) -> Template:
    count = len(names)
    return Template(JointState(
        name=names, position=positions.tolist(), velocity=[0.0] * count,
        effort=[effort] * count), {'velocity': 'velocity'})


def main(arguments: list[str]) -> int:
    """Measure and print."""
    rclpy.init()
    for name, times in measure(int(arguments[0]) if arguments else 100).items():
        relay, update, inputs = (
            microseconds(times[what]) for what in ('relay', 'torso IMU', 'all inputs'))
        print(f'{name}: relay {relay:.1f} us, torso IMU {update:.1f} us ({update / relay:.1f}x), '
              f'all inputs {inputs:.1f} us ({inputs / relay:.1f}x of one relay, '
              f'{inputs / relay / INPUTS:.2f}x of {INPUTS})')
    rclpy.shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
