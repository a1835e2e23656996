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
"""The node `zmp_monitor` with the sensors of a simulated robot, and the results of the core."""

import dataclasses
import itertools

from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, PolygonStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, String
from support.messages import (
    imu, joint_state, odometry, parameters as parameters_of, stamp_of, wrench_stamped)
from support.ros_rig import NodeRig
from support.zmp_pipeline import Pipeline
from visualization_msgs.msg import MarkerArray

OUTPUTS = {'zmp': PointStamped, 'zmp_model': PointStamped, 'zmp_difference': Vector3Stamped,
           'dcm': PointStamped, 'support_polygon': PolygonStamped, 'margin': Float64,
           'com_region': PolygonStamped, 'com_margin': Float64, 'dcm_margin': Float64,
           'time_to_edge': Float64, 'markers': MarkerArray}
LATCHED_OUTPUTS = {'support_phase': String, 'event': DiagnosticArray}
FEET_ONLY = ('joints', 'base', 'left', 'right')
COUNTER = itertools.count()


@dataclasses.dataclass
class RobotSample:
    """What the sensors measured at one instant, and the report that the core gives for it."""

    ns: int
    positions: np.ndarray
    velocities: np.ndarray
    quaternion: np.ndarray
    gyro: np.ndarray
    wrenches: np.ndarray
    base: object
    report: object


def record(seconds, offset=lambda t: (0.0, 0.0, 0.0), push=None, since=0.0):
    """Return what happens to the simulated robot from `since` on."""
    pipeline, samples, steps = Pipeline('biped'), [], round(seconds / 0.002)
    for i in range(steps):
        t = i * 0.002
        if push and abs(t - push[0]) < 1e-9:
            pipeline.plant.push('torso', push[1], push[2])
        report, _ = pipeline.step(pipeline.command(offset(t)))
        if t >= since:
            observation = pipeline.observation
            samples.append(RobotSample(
                1_000_000_000 + round(1e9 * observation.time), observation.joint_positions.copy(),
                observation.joint_velocities.copy(), observation.imu_quaternions[0].copy(),
                observation.angular_velocities[0].copy(), pipeline.wrenches.copy(), pipeline.base,
                report))
    return pipeline.model, samples


class MonitoredRobot(NodeRig):
    """The node `zmp_monitor`, drivers of a robot around it, and subscribers of its outputs."""

    def __init__(self, **parameters):
        self.space = f'/zmp_{next(COUNTER)}'
        # Its wrenches have passed no low-pass.
        values = {'robot': 'biped', 'max_stamp_age': 0.0, 'marker_rate': 1e4, 'wrench_delay': 0.0,
                  **parameters}
        node = ZmpMonitor(
            namespace=self.space,
            cli_args=['--ros-args', '-r', '/diagnostics:=diagnostics'],
            parameter_overrides=parameters_of(**values))
        super().__init__(node=node)
        self.names = list(node.model.joint_names)
        self.joints = self._publisher(JointState, 'joint_states')
        self.wrenches = [self._publisher(WrenchStamped, source.topic)
                         for source in node.inputs.wrenches]
        kind = node.params.base_source
        self.imu = self._publisher(Imu, 'imu') if kind == 'imu' else None
        self.odom = self._publisher(Odometry, 'odom') if kind == 'odometry' else None
        self.got = {topic: self.collect(message_type, f'{self.space}/zmp_monitor/{topic}',
                                        LATCHED if topic == 'markers' else 10)
                    for topic, message_type in OUTPUTS.items()}
        self.latched = {topic: self.collect(kind, f'{self.space}/zmp_monitor/{topic}', LATCHED)
                        for topic, kind in LATCHED_OUTPUTS.items()}
        self.health = {}
        self.peer.create_subscription(
            DiagnosticArray, f'{self.space}/diagnostics', self._diagnose, 10)
        self.until(lambda: all(
            node.count_subscribers(f'{self.space}/zmp_monitor/{topic}') for topic in OUTPUTS),
            what='subscribers')
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def _publisher(self, message_type, topic):
        return self.publisher(
            message_type, topic if topic.startswith('/') else f'{self.space}/{topic}')

    def _diagnose(self, array):
        for status in array.status:
            self.health[status.name.partition(': ')[2]] = status.level, status.message

    def senders(self, sample, frames=('l_sole', 'r_sole'), shift=(0.0, 0.0, 0.0)):
        """Return functions that send one message each."""
        stamp = stamp_of(sample.ns)

        def joints():
            self.joints.publish(
                joint_state(stamp, self.names, sample.positions, sample.velocities))

        def base():
            if self.imu:
                self.imu.publish(imu(stamp, 'imu_link', sample.quaternion, sample.gyro))
            if self.odom:
                self.odom.publish(odometry(
                    stamp, 'odom', 'base_link', sample.base.position + shift,
                    sample.base.quaternion))

        def foot(i):
            self.wrenches[i].publish(wrench_stamped(stamp, frames[i], sample.wrenches[i]))
        return {'joints': joints, 'base': base, 'left': lambda: foot(0),
                'right': lambda: foot(1), 'hand': lambda: foot(2)}

    def play(self, samples, order=FEET_ONLY, rest=0.1, **options):
        """Send samples, each in this order (or a random one), and let the node answer."""
        rng = np.random.default_rng(3)
        for sample in samples:
            send = self.senders(sample, **options)
            for name in (rng.permutation(FEET_ONLY) if order == 'random' else order):
                send[name]()
                self.spin(0.0015)
            self.spin(0.001)
        self.spin(rest)

    def diagnosis(self, line, level, samples, words='', **options):
        """
        Play by the present time, over and over, until a line says so; return its message.

        How long that takes does not count, but how much is played: the node is asked for its
        diagnostics after every few instants, while they are fresh.
        """
        self.health.clear()
        for i, sample in zip(range(1000), itertools.cycle(samples)):
            now = dataclasses.replace(sample, ns=self.peer.get_clock().now().nanoseconds)
            self.play([now], rest=0.0, **options)
            found, message = self.health.get(line, (None, ''))
            if found == level and words in message:
                return message
            if i % 20 == 19:
                self.node.diagnostics.publish()
        raise AssertionError(f'{line}: {self.health.get(line)}')


def vectors(messages, field):
    return np.array([[getattr(getattr(m, field), axis) for axis in 'xyz'] for m in messages])


def shifted(samples, seconds):
    """Return the samples again, later."""
    return [dataclasses.replace(s, ns=s.ns + round(1e9 * seconds)) for s in samples]
