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
"""Sends sensor messages, steadily or as fast as they are answered, and times the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import quaternion_from_rotation
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.fast.compat import make_executor
from biped_com_ros.ros.topics.outputs import joint_state_publisher, TemplatePublisher
from biped_com_ros.ros.topics.stamp import unpack_stamp
from geometry_msgs.msg import PointStamped, WrenchStamped
import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu
from std_msgs.msg import Header

_STAMP = slice(4, 12)
_PATIENCE = 20.0  # s
_OUTPUT_TIMEOUT = 1.0  # s
#: Fewer than the depth of the queues, so that nothing has to be lost.
_IN_FLIGHT = 8


class MeasuredProcess:
    """A process under measurement: a module with arguments of ROS, under a namespace."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen([sys.executable, '-m', module, *arguments])
        self.pid = self._process.pid

    @property
    def cpu_time(self) -> float:
        """CPU time of all its threads so far, s."""
        if self._process.poll() is not None:
            raise RuntimeError(f'process {self.pid} has ended: its message is above')
        # The CPU-time clock of another process (clock_getcpuclockid).
        return time.clock_gettime((~self.pid << 3) | 2)

    @property
    def memory(self) -> float:
        """Resident memory, bytes."""
        pages = int(Path(f'/proc/{self.pid}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE')

    def end(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass
class DriverResult:
    """One measurement of one subject."""

    sent: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    round_trips: list[int] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """Share of the messages that got no answer."""
        return 1.0 - len(self.round_trips) / self.sent

    @property
    def cpu_per_update(self) -> float:
        """CPU per answered message, s."""
        return self.cpu / max(len(self.round_trips), 1)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.round_trips) / self.seconds

    def quantile(self, share: float) -> float:
        """Quantile of the round trip, s."""
        return 1e-9 * float(np.quantile(self.round_trips, share)) if self.round_trips else np.nan


class Channel:
    """Everything that one subject receives, and its answers."""

    def __init__(self, node: Node, namespace: str, robot: RobotModel, output_type: Any,
                 output_topic: str, sensors: bool) -> None:
        self.arrived: list[int] = []
        self._joints = joint_state_publisher(
            node, f'{namespace}/joint_states', robot.joint_names)
        self._joints.fields['position'][...] = robot.posture('stand')
        self._random = np.random.default_rng(0)
        self._sensors = _sensors(node, namespace, robot) if sensors else []
        qos = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._subscription = node.create_subscription(
            output_type, f'{namespace}/{output_topic}', self._on_output, qos, raw=True)

    def connected(self, listeners: int) -> bool:
        """Tell whether the subject answers, and that many nodes listen."""
        return bool(self._subscription.get_publisher_count()
                    and all(out.publisher.get_subscription_count() >= listeners
                            for out in (self._joints, *self._sensors)))

    def send(self) -> None:
        """Send one set of messages, stamped now."""
        self._joints.fields['velocity'][...] = self._random.random()
        stamp_ns = time.time_ns()
        self._joints.publish(stamp_ns)
        for out in self._sensors:
            out.publish(stamp_ns)

    def _on_output(self, raw: bytes) -> None:
        self.arrived.append(time.time_ns() - unpack_stamp(raw, 4))


def _sensors(node: Node, namespace: str, robot: RobotModel) -> list[TemplatePublisher]:
    """Return what IMU and wrench sensors of a robot send that stands upright."""
    config = robot.config
    state = robot.state(robot.posture('stand'))
    outs = [TemplatePublisher(node, f'{namespace}/{config.imu.topic}',
                              Imu(header=Header(frame_id=config.imu.frame)), {
                                  'orientation': 'orientation',
                                  'acceleration': 'linear_acceleration'})]
    R_world_imu = state.pose_in_base(config.imu.frame).rotation
    outs[0].fields['orientation'][...] = quaternion_from_rotation(R_world_imu)
    outs[0].fields['acceleration'][...] = R_world_imu.T @ [0.0, 0.0, GRAVITY]
    in_feet = [name for foot in config.feet.values() for name in foot.wrench_sensors]
    for name, sensor in config.wrench_sensors.items():
        out = TemplatePublisher(node, f'{namespace}/{sensor.topic}',
                                WrenchStamped(header=Header(frame_id=sensor.frame)),
                                {'force': 'wrench.force'})
        share = GRAVITY * robot.mass / len(in_feet) if name in in_feet else 0.0
        out.fields['force'][...] = (
            state.pose_in_base(sensor.frame).rotation.T @ [0.0, 0.0, share / sensor.factors[2]])
        outs.append(out)
    return outs


class SensorDriver:
    """The side of the sensors."""

    def __init__(self, robot: RobotModel) -> None:
        self.robot = robot
        self.node = Node('benchmark_driver')
        self._executor = make_executor()
        self._executor.add_node(self.node)

    def channel(self, namespace: str, output_type: Any = PointStamped,
                output_topic: str = 'relay/com', sensors: bool = False,
                listeners: int = 1) -> Channel:
        """Open what one subject receives and sends, and wait until it is connected."""
        channel = Channel(self.node, namespace, self.robot, output_type, output_topic, sensors)
        self._wait(lambda: channel.connected(listeners), f'connection with {namespace}')
        # Discovery is seen by each side on its own: the other one is there once it answers.
        self._wait(lambda: self._has_output(channel), f'an answer on {namespace}/{output_topic}')
        return channel

    def _has_output(self, channel: Channel) -> bool:
        channel.send()
        self._executor.spin_once(timeout_sec=0.02)
        return len(channel.arrived) > 0

    def _wait(self, condition: Any, what: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError(f'no {what} within {_PATIENCE:g} s')
            self._executor.spin_once(timeout_sec=0.02)

    def steady(self, channel: Channel, process: MeasuredProcess, rate: float,
               seconds: float) -> DriverResult:
        """Send at `rate`, whether or not there are answers."""
        self._warm_up(channel)
        period, due = 1e9 / rate, float(time.time_ns())
        count = round(rate * seconds)
        begun, cpu = time.monotonic(), process.cpu_time
        for _ in range(count):
            channel.send()
            due += period
            while (left := due - time.time_ns()) > 0:
                self._executor.spin_once(timeout_sec=1e-9 * left)
        elapsed = time.monotonic() - begun
        used = process.cpu_time - cpu
        self._collect(channel, count)
        return DriverResult(count, elapsed, used, channel.arrived)

    def saturate(self, channel: Channel, process: MeasuredProcess, seconds: float) -> DriverResult:
        """Keep a few messages under way, so that the subject never waits and nothing is lost."""
        self._warm_up(channel)
        count, cpu, begun = 0, process.cpu_time, time.monotonic()
        until, lost = begun + seconds, 0
        while time.monotonic() < until:
            while count - lost - len(channel.arrived) < _IN_FLIGHT:
                channel.send()
                count += 1
            before = len(channel.arrived)
            self._executor.spin_once(timeout_sec=_OUTPUT_TIMEOUT)
            if len(channel.arrived) == before:
                lost = count - before
        elapsed, used = time.monotonic() - begun, process.cpu_time - cpu
        self._collect(channel, count)
        return DriverResult(count, elapsed, used, channel.arrived)

    def _warm_up(self, channel: Channel) -> None:
        """Let the subject see fresh data, and forget the answers to all that came before."""
        channel.arrived = []  # the list before belongs to a result
        channel.send()
        self._collect(channel, sys.maxsize, 0.05)
        channel.arrived = []

    def _collect(self, channel: Channel, count: int, seconds: float = _OUTPUT_TIMEOUT) -> None:
        """Wait for late answers."""
        until = time.monotonic() + seconds
        while len(channel.arrived) < count and (left := until - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)


def start(domain: int) -> None:
    """Join a domain of our own on this machine only, and pass it on to the subjects."""
    os.environ['ROS_DOMAIN_ID'] = str(domain)
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    rclpy.init()
