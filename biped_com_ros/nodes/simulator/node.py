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
A simulated robot: gives and takes what a robot with ros2_control does, and tells the truth.

Everything published in one step belongs to one instant and carries its stamp. Simulated time
never goes back, not even at ``~/reset``: nodes and TF buffers live through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.bag_recorder import BagRecorder, STORAGES
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource, TOPIC
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.inputs import ArrayInput
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, point_publisher, pose_array_publisher,
    TemplatePublisher, vector_publisher, wrench_publisher)
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from biped_com_ros.sim.hidden import parse_errors
from biped_com_ros.sim.interface import Observation, PlantOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.pacing import Pacer
from biped_com_ros.sim.plant import Plant
from biped_com_ros.sim.setpoints import Setpoints
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory


def _sigma(description: str, unit: str, largest: float) -> Any:
    return parameter(0.0, f'Standard deviation of {description}', unit, 0.0, largest,
                     read_only=True)


def _delay(description: str) -> Any:
    return parameter(0.0, f'Age of {description}', 's', 0.0, 1.0, read_only=True)


@dataclass(frozen=True)
class SimulatorParameters(RobotChoice):
    """Parameters of `simulator`."""

    posture: str = parameter('stand', 'Posture to start in', read_only=True)
    tendons: bool = parameter(
        True, "Simulate the torso's tendons, where the robot has them; else a stiff torso",
        read_only=True)
    virtual_joints: bool = parameter(
        True, "Whether joint_states has the torso's virtual joints; no robot's encoders measure "
        'them, so that without them torso_controller has to tell', read_only=True)
    seed: int = parameter(0, 'Of everything random', '', 0, 2 ** 31, read_only=True)
    rate: float = parameter(
        500.0, 'How often sensors are read and commands taken', 'Hz', 10.0, 2000.0,
        read_only=True)
    physics_rate: float = parameter(
        1000.0, 'Physics steps per second; a multiple of rate', 'Hz', 200.0, 20000.0,
        read_only=True)
    clock_rate: float = parameter(
        100.0, 'How often /clock is published; 0 does not', 'Hz', 0.0, 2000.0, read_only=True)
    real_time_factor: float = parameter(
        1.0, 'Simulated seconds per second; 0 is as fast as possible', '', 0.0, 100.0)
    command_patience: float = parameter(
        0.1, 'How long, on the wall, a step waits for a command when they came regularly; '
        '0: as a robot, which waits for nobody', 's', 0.0, 1.0)
    world_frame: str = parameter('odom', 'frame_id of the world', read_only=True)
    friction: float = parameter(
        1.0, 'Coulomb friction of the soles', '', 0.0, 10.0, read_only=True)
    hidden_com_sigma: float = _sigma(
        "the hidden error of each link's centre of mass, per axis", 'm', 0.2)
    hidden_mass_sigma: float = _sigma("the hidden error of each link's mass, as a share", '', 1.0)
    hidden_errors: list[str] = parameter(
        [], "Hidden errors on top of that, each '<link> <kg> <x m> <y m> <z m>'", read_only=True)
    encoder_noise: float = _sigma("the joint positions' noise", 'rad', 0.5)
    encoder_offset: float = _sigma("the joint positions' constant errors", 'rad', 0.5)
    velocity_noise: float = _sigma("the joint velocities' noise", 'rad/s', 10.0)
    effort_noise: float = _sigma("the joint efforts' noise", 'N m', 100.0)
    force_noise: float = _sigma("the force sensors' noise", 'N', 1000.0)
    torque_noise: float = _sigma("the torque sensors' noise", 'N m', 100.0)
    force_bias: float = _sigma("the force sensors' constant errors, per axis", 'N', 1000.0)
    torque_bias: float = _sigma("the torque sensors' constant errors, per axis", 'N m', 100.0)
    gyro_noise: float = _sigma("the gyroscopes' noise", 'rad/s', 10.0)
    accelerometer_noise: float = _sigma("the accelerometers' noise", 'm/s2', 100.0)
    tilt_bias: float = _sigma("the IMUs' constant roll and pitch errors", 'rad', 0.5)
    joint_delay: float = _delay('joint_states when they are published')
    wrench_delay: float = _delay('wrenches when they are published')
    imu_delay: float = _delay('IMU data when they are published')
    command_delay: float = _delay('commands when they reach the motors')
    record: str = parameter(
        '', 'Directory of a rosbag2 to record joint_states, IMUs and wrenches into; empty: none',
        read_only=True)
    record_storage: str = parameter(
        'mcap', 'Its storage', options=STORAGES, read_only=True)
    push_duration: float = parameter(0.2, 'How long a push on ~/push lasts', 's', 0.0, 60.0)

    def plant_options(self) -> PlantOptions:
        """Return the same for the plant."""
        names = SensorOptions.__dataclass_fields__
        return PlantOptions(
            dt=1.0 / self.rate, seed=self.seed, tendons=self.tendons,
            world=WorldOptions(timestep=1.0 / self.physics_rate, friction=self.friction),
            sensors=SensorOptions(**{name: getattr(self, name) for name in names}),
            errors=parse_errors(filter(None, self.hidden_errors)),
            com_sigma=self.hidden_com_sigma,
            mass_sigma=self.hidden_mass_sigma, command_delay=self.command_delay)


class SensorOutputs:
    """Publishes what the robot's sensors say."""

    def __init__(self, node: Node, plant: Plant, params: SimulatorParameters) -> None:
        config = plant.config
        self._imus = [_imu_publisher(node, imu.topic, imu.frame, params)
                      for imu in config.imus.values()]
        hidden = () if params.virtual_joints else plant.virtual_joint_names
        names = [name for name in plant.joint_names if name not in hidden]
        self._shown = np.array([plant.joint_names.index(name) for name in names], dtype=int)
        self._joints = joint_state_publisher(node, 'joint_states', names)
        self._wrenches = [wrench_publisher(node, sensor.topic, sensor.frame)
                          for sensor in config.wrench_sensors.values()]
        tendons = [f'tendon_{i}' for i in range(plant.tendon_count)]
        self._tendons = joint_state_publisher(
            node, 'tendon_states', tendons, ('position', 'effort')) if tendons else None

    @property
    def outputs(self) -> list[TemplatePublisher]:
        """Return what a recording holds."""
        return [self._joints, *self._imus, *self._wrenches]

    def publish(self, stamp_ns: int, o: Observation) -> None:
        """Publish an observation: IMUs and joints before the wrenches they help to read."""
        for i, imu in enumerate(self._imus):
            fields = imu.fields
            fields['orientation'][...] = o.imu_quaternions[i]
            fields['angular_velocity'][...] = o.angular_velocities[i]
            fields['linear_acceleration'][...] = o.linear_accelerations[i]
            imu.publish(stamp_ns)
        fields = self._joints.fields
        fields['position'][...] = o.joint_positions.take(self._shown)
        fields['velocity'][...] = o.joint_velocities.take(self._shown)
        fields['effort'][...] = o.joint_efforts.take(self._shown)
        self._joints.publish(stamp_ns)
        for out, wrench in zip(self._wrenches, o.wrenches):
            out.fields['wrench'][...] = wrench
            out.publish(stamp_ns)
        if self._tendons is not None:
            self._tendons.fields['position'][...] = o.tendon_lengths
            self._tendons.fields['effort'][...] = o.tendon_tensions
            self._tendons.publish(stamp_ns)


class TruthOutputs:
    """Publishes what no sensor says, as far as anybody listens."""

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
            description='Links of ~/truth/link_coms, in its order', read_only=True))

    def publish(self, stamp_ns: int) -> None:
        """Publish the present truth."""
        if not any(out.has_subscribers for out in self._all):
            return
        truth = self._plant.truth()
        fields = self._odometry.fields
        fields['position'][...] = truth.base_position
        fields['orientation'][...] = truth.base_quaternion
        fields['linear'][...] = truth.base_twist[:3]
        fields['angular'][...] = truth.base_twist[3:]
        self._odometry.publish(stamp_ns)
        self._send(self._com, 'point', truth.com, stamp_ns)
        self._send(self._com_velocity, 'vector', truth.com_velocity, stamp_ns)
        self._send(self._link_coms, 'position', truth.link_coms, stamp_ns)
        self._send(self._contacts, 'data', truth.sole_wrenches[:, 2], stamp_ns)
        for out, wrench in zip(self._soles, truth.sole_wrenches):
            self._send(out, 'wrench', wrench, stamp_ns)
        if math.isfinite(truth.zmp[0]):
            self._send(self._zmp, 'point', truth.zmp, stamp_ns)

    def _send(self, out: TemplatePublisher, field: str, value: Any, stamp_ns: int) -> None:
        if out.has_subscribers:
            out.fields[field][...] = value
            out.publish(stamp_ns)


class CommandInputs:
    """
    Takes commands to the setpoints; what makes no sense is refused and the last good one kept.

    Attributes
    ----------
    refused, last_refusal
        Number of refused commands besides those that the array inputs count, and why.

    """

    def __init__(self, node: Node, setpoints: Setpoints, now: Callable[[], float],
                 follow: Callable[[], Callable[[], None]]) -> None:
        self._node, self._setpoints, self._now, self._follow = node, setpoints, now, follow
        self._throttle = Throttle(5.0)
        self.refused, self.last_refusal = 0, ''
        count = len(setpoints.names)
        self.arrays = [
            self._array('position_controller/commands', count, setpoints.set_positions),
            self._array('effort_controller/commands', count, setpoints.set_efforts)]
        if setpoints.tendon_count:
            self.arrays.append(self._array(
                'tendon_controller/commands', setpoints.tendon_count, setpoints.set_tendons))
        node.create_subscription(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', self._on_trajectory,
            COMMAND_INPUT)

    def _array(self, topic: str, count: int, take: Callable[[Any], None]) -> ArrayInput:
        told = self._follow()

        def on_command(_: int, values: Any) -> None:
            self.guard(topic, lambda: take(values))
            told()
        return ArrayInput(self._node, topic, count, on_command, qos=COMMAND_INPUT)

    def _on_trajectory(self, message: Any) -> None:
        self.guard('joint_trajectory_controller/joint_trajectory',
                   lambda: self._take_trajectory(message))

    def _take_trajectory(self, message: Any) -> None:
        points = message.points
        if not points:
            raise InputError('the trajectory has no points')
        for point in points:
            if len(point.positions) != len(message.joint_names):
                raise InputError(
                    f'a point has {len(point.positions)} positions for '
                    f'{len(message.joint_names)} joint_names; valid: one each')
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        given = [point.velocities for point in points if len(point.velocities)]
        if given and len(given) != len(points):
            raise InputError('velocities must be given at every point of a trajectory, or at none')
        stamp = message.header.stamp
        start = stamp.sec + 1e-9 * stamp.nanosec or self._now()
        if start + times[-1] < self._now():
            raise InputError(
                f'the trajectory ended {self._now() - start - times[-1]:.3f} s ago; leave its '
                'stamp at zero to start at once')
        self._setpoints.set_trajectory(
            message.joint_names, times, [list(p.positions) for p in points],
            [list(v) for v in given] or None, start)

    def guard(self, topic: str, take: Callable[[], None]) -> None:
        """Take a command; if it is refused, count it and say why."""
        try:
            take()
        except BipedComError as error:
            self.refused += 1
            self.last_refusal = f"'{topic}': {error}"
            if self._throttle(topic):
                self._node.get_logger().error(f'{self.last_refusal} (command not used)')

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        refused = self.refused + sum(sum(a.refused.values()) for a in self.arrays)
        errors = [a.last_error for a in self.arrays if a.last_error]
        values = {f'received: {a.topic}': a.count for a in self.arrays}
        values['refused'] = refused
        if refused:
            last = self.last_refusal or errors[-1]
            return WARN, f'{refused} commands refused; last: {last}', values
        return OK, 'all commands used', values


class Simulator(Node):
    """Steps a plant in time with the clock on the wall and connects it to topics."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('simulator', **node_kwargs)
        self._params = declare_parameters(self, SimulatorParameters, self._on_parameters)
        self._diagnostics = Diagnostics(self)
        self._pacer: Pacer | None = None
        self._recorder: BagRecorder | None = None
        self._source = RobotSource(self, self._params, self._on_robot, self._diagnostics)
        if self._source.model is None and self._params.urdf != TOPIC:
            # It would wait for the description that nobody but itself publishes.
            raise ConfigurationError(
                f"robot '{self._params.robot}' names no URDF, and a simulated robot has nobody "
                'to get it from: set urdf in its file, or give the argument urdf:=<path or '
                f"package:// URI> ('{TOPIC}' if another node publishes robot_description)")

    def _on_robot(self, model: RobotModel) -> None:
        params, config = self._params, model.config
        self._plant = Plant(config, model.urdf, params.plant_options(), model.joint_names,
                            model.link_names)
        self._plant.reset(params.posture)
        self._setpoints = Setpoints(self._plant, model.actuated_joint_names)
        self._time_of_reset, self._divergences = 0.0, 0
        self._pacer = Pacer(self._plant.dt, params.real_time_factor, params.command_patience)
        self._commands = CommandInputs(self, self._setpoints, self._now, self._follow)
        self._make_outputs(model)
        self._diagnostics.add('commands', self._commands.report)
        self._diagnostics.add('simulation', self._report)
        trigger_service(self, '~/reset', self._reset)
        switch_service(self, '~/hang', self._hang)
        self.create_subscription(WrenchStamped, '~/push', self._on_push, COMMAND_INPUT)
        self._period = self._pacer.period
        self._timer = self.create_timer(self._period, self._tick, clock=steady_clock())
        self.get_logger().info(
            f'simulating {config.name}: {self._plant.mass:.3f} kg in {params.posture}')

    def _make_outputs(self, model: RobotModel) -> None:
        params = self._params
        self._sensors = SensorOutputs(self, self._plant, params)
        self._truth = TruthOutputs(self, self._plant, params.world_frame)
        if params.record:
            self._recorder = BagRecorder(params.record, params.record_storage)
            for out in self._sensors.outputs:
                self._recorder.record(out)
            self.get_logger().info(f"recording to '{self._recorder.path}'")
        self._clock_out = TemplatePublisher(
            self, '/clock', Clock(), {'sec': 'clock.sec', 'nanosec': 'clock.nanosec'})
        self._clock_period = 1e9 / params.clock_rate if params.clock_rate > 0.0 else math.inf
        self._next_clock = 0.0
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=model.urdf))

    def _now(self) -> float:
        """Return the simulated time of the last observation, s."""
        return self._time_of_reset + self._plant.observation.time

    def _tick(self) -> None:
        pacer = self._pacer
        assert pacer is not None
        for _ in range(pacer.due()):
            self._step()
        if pacer.period != self._period:
            self._period = pacer.period
            self._timer.timer_period_ns = nanoseconds(pacer.period)

    def _follow(self) -> Callable[[], None]:
        """Return what is to be told of each command of one kind."""
        pacer = self._pacer
        assert pacer is not None
        stream = pacer.stream()

        def told() -> None:
            stream.told()
            if pacer.waits:
                self._tick()
        return told

    def _step(self) -> None:
        plant, now = self._plant, self._now()
        observation = plant.step(self._setpoints.command(now))
        if plant.divergences != self._divergences:
            self._start_over(now)
            self.get_logger().error(
                'the physics blew up, the robot was put back: are the gains in the robot file, '
                'or the efforts commanded, too large?')
        stamp_ns = nanoseconds(self._now())
        self._publish_clock(stamp_ns)
        self._sensors.publish(stamp_ns, observation)
        self._truth.publish(stamp_ns)

    def _start_over(self, now: float) -> None:
        """Let time go on where it was after the plant was reset to time 0."""
        self._divergences = self._plant.divergences
        self._time_of_reset = now + self._plant.dt
        self._setpoints.reset()

    def _publish_clock(self, ns: int) -> None:
        if ns < self._next_clock:
            return
        # The next multiple of the period, whatever was skipped.
        self._next_clock = (ns // self._clock_period + 1) * self._clock_period
        fields = self._clock_out.fields
        fields['sec'][...], fields['nanosec'][...] = divmod(ns, SECOND_NS)
        self._clock_out.publish()

    def _reset(self) -> str:
        now, plant = self._now(), self._plant
        # Where it stands: leg odometry cannot feel it being carried. Who lies has lost it anyway.
        place = (0.0, 0.0, 0.0) if plant.has_fallen else plant.place()
        plant.reset(self._params.posture, place=place)
        self._start_over(now)
        return f'{self._plant.config.name} stands in {self._params.posture} again'

    def _hang(self, up: bool) -> str:
        hoist, name = self._plant.hoist, self._plant.config.name
        if up:
            hoist.lift()
            return f'{name} is lifted, its feet in the air'
        if not hoist.holds:
            return f'{name} does not hang'
        hoist.lower()
        return f'{name} is let down; the hoist lets go as soon as the feet carry it'

    def _on_push(self, message: Any) -> None:
        f, t = message.wrench.force, message.wrench.torque
        self._commands.guard('~/push', lambda: self._plant.push(
            message.header.frame_id, (f.x, f.y, f.z, t.x, t.y, t.z),
            self._params.push_duration))

    def _on_parameters(self, params: SimulatorParameters) -> None:
        self._params = params
        if self._pacer is not None:
            self._pacer.factor = params.real_time_factor
            self._pacer.patience = params.command_patience

    def destroy_node(self) -> None:
        """Finish the recording, too."""
        if self._recorder is not None:
            self._recorder.close()
            self.get_logger().info(
                f"recorded {self._recorder.count} messages to '{self._recorder.path}'")
            self._recorder = None
        super().destroy_node()

    def _report(self) -> Report:
        assert self._pacer is not None
        pacer, plant = self._pacer, self._plant
        values = {'real-time factor': pacer.achieved, 'asked for': pacer.factor,
                  'hangs': 'yes' if plant.hoist.holds else 'no',
                  'time lost [s]': pacer.lost, 'waited for commands [s]': pacer.waited,
                  'time [s]': self._now(), 'mass [kg]': plant.mass,
                  'divergences': plant.divergences,
                  'at effort limit': ', '.join(plant.saturated_joints())}
        if plant.has_fallen:
            return ERROR, 'the robot has fallen; call ~/reset', values
        if pacer.achieved == 0.0:
            return OK, 'starting', values
        if pacer.achieved < 0.95 * pacer.factor:
            return WARN, (f'runs at {pacer.achieved:.2f} of real time instead of '
                          f'{pacer.factor:g}: the computer is too slow or too busy'), values
        return OK, f'{pacer.achieved:.2f} of real time', values


def _imu_publisher(node: Node, topic: str, frame_id: str,
                   params: SimulatorParameters) -> TemplatePublisher:
    prototype = Imu(header=Header(frame_id=frame_id))
    for covariance, sigma in ((prototype.orientation_covariance, params.tilt_bias),
                              (prototype.angular_velocity_covariance, params.gyro_noise),
                              (prototype.linear_acceleration_covariance,
                               params.accelerometer_noise)):
        covariance[0::4] = np.full(3, sigma ** 2)
    names = ('orientation', 'angular_velocity', 'linear_acceleration')
    return TemplatePublisher(node, topic, prototype, {name: name for name in names})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(Simulator, argv)


if __name__ == '__main__':
    sys.exit(main())
