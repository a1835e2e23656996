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
A robot that stands, with sensors that fail on request, and its effort controller.

Its readings are those of the simulated robot at rest, with noise, so that it needs hardly any CPU
time and goes on whatever happens to the nodes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
import threading
import time
from typing import NamedTuple

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.outputs import SensorOutputs
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.ros.fast.compat import make_executor
from biped_com_ros.ros.topics.outputs import joint_state_publisher, TemplatePublisher
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from lifecycle_msgs.msg import State, TransitionEvent
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from std_msgs.msg import Float64MultiArray

RATE = 200.0
COMMANDS = 'effort_controller/commands'
#: What the estimators publish, by node.
OUTPUTS = {'wrench_aggregator': (WrenchStamped, 'wrench_aggregator/wrench'),
           'com_estimator': (PointStamped, 'com_estimator/com'),
           'zmp_monitor': (PointStamped, 'zmp_monitor/zmp')}
#: Standard deviations of the readings, relative to their sizes.
_NOISE = 1e-5
#: Readings are drawn in advance and repeated, since drawing takes longer than publishing.
_DRAWN = 256
_SETTLING = 1.0  # s


@dataclass(frozen=True)
class SensorFault:
    """
    What is wrong with a sensor.

    Attributes
    ----------
    kind
        ``lost``, ``frozen`` (the same values with new stamps), ``dead`` (zeros), ``late``, or
        ``dropping``.
    value
        Delay, s, or share of messages that are lost.

    """

    kind: str
    value: float = 0.0


class Applied(NamedTuple):
    """
    What a controller applies from a time on.

    Attributes
    ----------
    time
        s.
    efforts
        Of its joints; NaN: it has just started, and applies nothing.
    number
        Of the message, as its publisher counts them; zero at the start.

    """

    time: float
    efforts: np.ndarray
    number: int


class AppliedEfforts:
    """
    Gets the commands as a ros2_control effort controller does, and applies the last one.

    Parameters
    ----------
    namespace, joints
        Of the controller.
    executor
        Runs its callbacks, and cannot tell the numbers of messages: they are counted as they
        arrive. None: a thread of its own, which can.

    Attributes
    ----------
    applied
        Each change of what is applied.

    """

    def __init__(self, namespace, joints, executor=None):
        self._namespace, self._joints, self._shared = namespace, joints, executor
        self.applied = []
        self.start()

    def start(self):
        """Start, applying nothing until the first command."""
        self.applied.append(Applied(time.monotonic(), np.full(len(self._joints), np.nan), 0))
        self.node = Node('effort_controller', namespace=self._namespace)
        self.node.declare_parameter('joints', self._joints)
        self._events = self.node.create_publisher(
            TransitionEvent, 'effort_controller/transition_event', 10)
        if self._shared is None:
            self._start_thread()
        else:
            self.node.create_subscription(
                Float64MultiArray, COMMANDS, self._on_counted_commands, 1000)
            self._shared.add_node(self.node)
        self._events.publish(TransitionEvent(
            goal_state=State(id=State.PRIMARY_STATE_ACTIVE)))

    def _start_thread(self):
        self.node.create_subscription(Float64MultiArray, COMMANDS, self._on_commands, 1000)
        # The EventsExecutor has no callbacks that get the number of a message.
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._ends = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self):
        while not self._ends:
            self._executor.spin_once(timeout_sec=0.1)

    def _on_commands(self, message, info):
        self.applied.append(Applied(time.monotonic(), np.array(message.data),
                                    info['publication_sequence_number']))

    def _on_counted_commands(self, message):
        self.applied.append(Applied(
            time.monotonic(), np.array(message.data), self.applied[-1].number + 1))

    def close(self):
        """End."""
        if self._shared is None:
            self._ends = True
            self._thread.join()
            self._executor.shutdown()
        else:
            self._shared.remove_node(self.node)
        self.node.destroy_node()


class NodeObserver:
    """
    The effort controller, and what the nodes publish.

    Parameters
    ----------
    namespace, robot
        Of the nodes.
    is_light
        One thread does everything: a fraction of the CPU time, without the numbers of commands.

    Attributes
    ----------
    model, controller
        The robot and its effort controller.
    arrivals
        Times of all messages of the estimators by node, s.
    statuses
        The last diagnostics of efforts.
    reported_at
        Time of the last diagnostics of each node, s.
    problems
        Diagnostics that are not OK, since they were cleared.
    lengths
        Times and values of the lengths that are sent to the tendons.

    """

    def __init__(self, namespace, robot, is_light=False):
        self.model, self._namespace = RobotModel.load(robot), namespace
        self.executor = make_executor()
        self.node = Node('robot', namespace=namespace)
        self.controller = AppliedEfforts(
            namespace, list(self.model.actuated_joint_names), self.executor if is_light else None)
        self.arrivals = {name: [] for name in OUTPUTS}
        self.statuses = []
        self.reported_at = {}
        self.problems = []
        self.lengths = []
        for name, (kind, topic) in OUTPUTS.items():
            self.node.create_subscription(
                kind, topic, self._noting(self.arrivals[name]), qos_profile_sensor_data, raw=True)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_statuses, 100)
        self.node.create_subscription(
            Float64MultiArray, 'tendon_controller/commands', self._on_lengths, 100)
        self.executor.add_node(self.node)

    @staticmethod
    def _noting(times):
        def note(_):
            times.append(time.monotonic())
        return note

    def _on_lengths(self, message):
        self.lengths.append((time.monotonic(), np.array(message.data)))

    def _on_statuses(self, message):
        for status in message.status:
            if status.level != DiagnosticStatus.OK:
                self.problems.append(f'{status.name}: {status.message}')
            node = status.name.partition(':')[0].removeprefix(f'{self._namespace}/')
            self.reported_at[node] = time.monotonic()
            if status.name == f'{self._namespace}/gravity_compensation: effort':
                self.statuses.append((time.monotonic(), status.message))

    def drop_history(self):
        """Drop what has arrived, but the last commands."""
        self.controller.applied[:-100] = []
        self.statuses[:-10] = []
        self.problems[:-100] = []
        self.lengths[:-100] = []
        for times in self.arrivals.values():
            times[:-1] = []

    def step(self):
        """Run callbacks for 10 ms."""
        self.run_callbacks(0.01)

    def run_callbacks(self, seconds):
        """Run callbacks for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=left)

    def close(self):
        """Destroy everything."""
        self.controller.close()
        self.executor.shutdown()
        self.node.destroy_node()


class FaultyStandingRobot(NodeObserver):
    """
    An observer that plays the robot, too.

    Attributes
    ----------
    faults
        By sensor: ``joint_states``, ``imu``, ``tendon_states``, ``odom``, or the name of a wrench
        sensor.
    clock_error
        Of the robot's clock, s.
    on_joint_states
        Called with the stamp (ns) of joint states before they are published.

    """

    def __init__(self, namespace, robot, rate=RATE, is_light=False):
        super().__init__(namespace, robot, is_light)
        self._period = 1.0 / rate
        params = SimulatorParameters(robot=robot)
        model = self.model
        plant = Plant(model.config, model.urdf, params.plant_options(model.mass),
                      model.joint_names, model.link_names)
        plant.reset('stand')
        for _ in range(round(_SETTLING / plant.dt)):
            plant.step()
        outputs = SensorOutputs(self.node, plant, params).outputs
        imus, sensors = list(model.config.imus.values()), list(model.config.wrench_sensors)
        names = ['joint_states', *('imu' if imu is model.config.imu else imu.topic
                                   for imu in imus), *sensors]
        self._outputs = dict(zip(names, outputs))
        self._random = np.random.default_rng(1)
        self._readings = {name: self._draw(readings) for name, readings in zip(
            names, _readings(plant.observation))}
        self._add_tendons(plant)
        self._add_odometry(plant)
        self.faults = {}
        self.clock_error, self._instant = 0.0, 0
        self.on_joint_states = lambda stamp_ns: None
        self._queues = {}
        self._next = time.monotonic()

    def _add_tendons(self, plant):
        names = [f'tendon_{i}' for i in range(plant.tendon_count)]
        if names:
            self._add('tendon_states', joint_state_publisher(
                self.node, 'tendon_states', names, ('position', 'effort')),
                position=plant.observation.tendon_lengths,
                effort=plant.observation.tendon_tensions)

    def _add_odometry(self, plant):
        truth, prototype = plant.truth(), Odometry(child_frame_id=self.model.config.base_link)
        prototype.header.frame_id = 'odom'
        self._add('odom', TemplatePublisher(self.node, 'odom', prototype, {
            'position': 'pose.pose.position', 'orientation': 'pose.pose.orientation'}),
            position=truth.base_position, orientation=truth.base_quaternion)

    def _add(self, name, output, **readings):
        self._outputs[name] = output
        self._readings[name] = self._draw(readings)

    def _draw(self, readings):
        """Return noisy readings of `_DRAWN` instants, by field."""
        return {field: value + _NOISE * (np.abs(value).max() + 1e-3) * self._random.normal(
            size=(_DRAWN, *value.shape)) for field, value in readings.items()}

    def step(self):
        """Publish one instant of all sensors, and run callbacks until the next one is due."""
        stamp_ns = time.time_ns() + nanoseconds(self.clock_error)
        self._instant = (self._instant + 1) % _DRAWN
        self.on_joint_states(stamp_ns)
        for name, output in self._outputs.items():
            if output.has_subscribers:
                self._publish(name, stamp_ns)
        now = time.monotonic()
        self._next = max(self._next + self._period, now - 0.1)
        self.run_callbacks(max(self._next - now, 1e-4))

    def _publish(self, name, stamp_ns):
        fault = self.faults.get(name, SensorFault(''))
        queue = self._queues.setdefault(name, deque())
        queue.append((stamp_ns, self._read(name, fault.kind)))
        if fault.kind == 'lost' or (
                fault.kind == 'dropping' and self._random.random() < fault.value):
            queue.clear()
        limit_ns = stamp_ns - nanoseconds(fault.value if fault.kind == 'late' else 0.0)
        while queue and queue[0][0] <= limit_ns:
            stamp, values = queue.popleft()
            output = self._outputs[name]
            for field, value in values.items():
                output.fields[field][...] = value
            output.publish(stamp)

    def _read(self, name, kind):
        instant = 0 if kind == 'frozen' else self._instant
        scale = 0.0 if kind == 'dead' else 1.0
        return {field: scale * drawn[instant] for field, drawn in self._readings[name].items()}


def _readings(o):
    """Return the fields of each output, in the order of ``SensorOutputs.outputs``."""
    joints = {'position': o.joint_positions, 'velocity': o.joint_velocities,
              'effort': o.joint_efforts}
    imus = [{'orientation': o.imu_quaternions[i], 'angular_velocity': o.angular_velocities[i],
             'linear_acceleration': o.linear_accelerations[i]}
            for i in range(len(o.imu_quaternions))]
    return [joints, *imus, *({'wrench': wrench} for wrench in o.wrenches)]
