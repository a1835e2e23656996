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
``simulator``: a robot in MuJoCo, with the interfaces of a robot with ros2_control.

It publishes the true state, too. All messages of one step have the same stamp. The simulated time
never goes back, not even at ``~/reset``, so that nodes and TF buffers keep working.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import os
from pathlib import Path
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.commands import CommandInputs
from biped_com_ros.nodes.simulator.outputs import ClockOutput, SensorOutputs, TruthOutputs
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.ros.node.clock import steady_clock, steady_time
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.node.robot_source import TOPIC
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.bag_writer import BagWriter
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from biped_com_ros.ros.topics.whole_messages import subscribe
from biped_com_ros.sim.pacing import Pacer, ReadingRate
from biped_com_ros.sim.placement import Place
from biped_com_ros.sim.plant import Plant
from biped_com_ros.sim.setpoints import Setpoints
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from std_msgs.msg import String

SETTLING = 0.5
"""Until uneven soles all carry the robot, s; leg odometry begins with those that do."""

_NICENESS = 10
"""Added to that of the process that starts it."""


class Simulator(RobotNode[SimulatorParameters]):
    """
    Steps a plant at the pace of wall time, and connects it to topics.

    Attributes
    ----------
    pacer, commands
        Set by `build`.

    """

    _recording: BagWriter | None = None

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('simulator', SimulatorParameters, **node_kwargs)
        if not self.is_built and self.params.urdf != TOPIC:
            # It would wait for the robot_description that it publishes itself.
            raise ConfigurationError(
                f"the file of robot '{self.params.robot}' names no URDF; set urdf in it, or the "
                'parameter urdf to a path or a package:// URI '
                f"('{TOPIC}' if another node publishes robot_description)")

    def build(self, model: RobotModel) -> None:
        """Make the plant, its inputs and its outputs."""
        params = self.params
        self._plant = Plant(model.config, model.urdf, params.plant_options(model.mass),
                            model.joint_names, model.link_names)
        self._floor = params.floor_roll, params.floor_pitch
        self._stand()
        self._plant.faults.replace(params.faults)
        self._setpoints = Setpoints(self._plant, model.actuated_joint_names)
        self._time_of_reset, self._divergences = 0.0, 0
        self.pacer = Pacer(
            self._plant.dt, params.real_time_factor, params.command_timeout, clock=steady_time)
        self._readings, self._seconds, self._steps = (
            ReadingRate(params.rate, params.least_rate), 0, 0)
        self.commands = CommandInputs(
            self, self._setpoints, self.now, self.pacer, self._on_command)
        self._make_outputs(model)
        self.diagnostics.add('commands', self.commands.report)
        self.diagnostics.add('simulation', self._report)
        trigger_service(self, '~/reset', self._reset)
        switch_service(self, '~/hang', self._hang)
        subscribe(self, WrenchStamped, '~/push', self._on_push, COMMAND_INPUT)
        subscribe(self, InertiaStamped, '~/load', self._on_load, COMMAND_INPUT)
        subscribe(self, WrenchStamped, '~/grip', self._on_grip, COMMAND_INPUT)
        self._period = self.pacer.period
        self._timer = self.create_timer(self._period, self._tick, clock=steady_clock())
        self.get_logger().info(f'simulating {model.config.name}: {self._plant.mass:.3f} kg, '
                               f'posture {params.posture}')

    def _make_outputs(self, model: RobotModel) -> None:
        params = self.params
        self._sensors = SensorOutputs(self, self._plant, params)
        self._truth = TruthOutputs(self, self._plant, params.world_frame)
        if params.record:
            self._recording = BagWriter(Path(params.record).expanduser())
            for out in self._sensors.outputs:  # whether or not it has subscribers
                out.on_publish = self._recording.add_topic(out.topic, type(out.prototype))
            self.get_logger().info(f"recording to '{self._recording.path}'")
        self._clock_out = ClockOutput(self, params.clock_rate)
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=model.urdf))

    def now(self) -> float:
        """Return the simulated time of the last observation, s."""
        return self._time_of_reset + self._plant.observation.time

    def _tick(self) -> None:
        pacer = self.pacer
        for _ in range(pacer.due()):
            self.step()
        if pacer.seconds != self._seconds:
            self._seconds = pacer.seconds
            self._adapt_rate()
        if pacer.period != self._period:
            self._period = pacer.period
            self._timer.timer_period_ns = nanoseconds(pacer.period)

    def _adapt_rate(self) -> None:
        """Give fewer readings where the computer is too slow for the nodes that use them."""
        pacer = self.pacer
        if pacer.factor > 0.0 and self._readings.update(pacer.achieved / pacer.factor):
            self.get_logger().warning(
                f'{pacer.achieved:.2f} of real time: the computer is too slow; from now on '
                f'{self._readings.rate:g} readings per second in place of {self.params.rate:g} '
                f'(rate:={self._readings.rate:g} begins with that)')

    def _on_command(self) -> None:
        """Make a step that waited for commands at once."""
        if self.pacer.is_waiting:
            self._tick()

    def step(self) -> None:
        """Simulate one period, and publish its observation and the true state."""
        plant, now = self._plant, self.now()
        observation = plant.step(self._setpoints.command(now))
        if plant.divergences != self._divergences:
            self._restart_at(now)
            self.get_logger().error(
                'the physics diverged and the robot was reset; reduce the gains in the robot '
                'file, or the commanded efforts')
        stamp_ns = nanoseconds(self.now())
        self._clock_out.publish(stamp_ns)
        self._steps += 1
        if self._steps % self._readings.stride == 0:
            self._sensors.publish(stamp_ns, observation)
            self._truth.publish(stamp_ns)

    def _restart_at(self, now: float) -> None:
        """Continue the simulated time after the plant was reset to time 0."""
        self._divergences = self._plant.divergences
        self._time_of_reset = now + self._plant.dt
        self._setpoints.reset()

    def _reset(self) -> str:
        now, plant = self.now(), self._plant
        floor = self.params.floor_roll, self.params.floor_pitch
        if plant.has_fallen:
            plant.tilt_floor(*floor)
            place = (0.0, 0.0, 0.0)
        else:  # leg odometry cannot measure a displacement by the reset
            place = plant.place()
            if floor != self._floor:
                plant.tilt_floor(*floor, plant.ground_point())
        self._floor = floor
        self._stand(place)
        self._restart_at(now)
        return f'{self.model.config.name} was reset to posture {self.params.posture}'

    def _stand(self, place: Place = (0.0, 0.0, 0.0)) -> None:
        """Put the robot on its soles; where these are uneven, wait until all carry it."""
        self._plant.reset(self.params.posture, place=place)
        if self.params.error_settings.sole_position or self.params.instrument_errors:
            for _ in range(round(SETTLING / self._plant.dt)):
                self._plant.step()

    def _hang(self, up: bool) -> str:
        hoist, name = self._plant.hoist, self.model.config.name
        if up:
            hoist.lift()
            return f'{name} is being lifted'
        if not hoist.holds:
            return f'{name} does not hang on the hoist'
        hoist.lower()
        return f'{name} is being lowered; the hoist releases it once its feet carry it'

    def _on_push(self, message: Any) -> None:
        f, t = message.wrench.force, message.wrench.torque
        self.commands.execute('~/push', lambda: self._plant.push(
            message.header.frame_id.removeprefix(self.params.frame_prefix),
            (f.x, f.y, f.z, t.x, t.y, t.z), self.params.push_duration))

    def _on_load(self, message: Any) -> None:
        i = message.inertia
        self.commands.execute('~/load', lambda: self._plant.put_load(
            message.header.frame_id.removeprefix(self.params.frame_prefix), i.m,
            (i.com.x, i.com.y, i.com.z), (
                (i.ixx, i.ixy, i.ixz), (i.ixy, i.iyy, i.iyz), (i.ixz, i.iyz, i.izz))))

    def _on_grip(self, message: Any) -> None:
        f = message.wrench.force
        self.commands.execute('~/grip', lambda: self._plant.grip(
            message.header.frame_id.removeprefix(self.params.frame_prefix),
            math.hypot(f.x, f.y, f.z)))

    def check_parameters(self, params: SimulatorParameters) -> None:
        """Check the faults."""
        self._plant.faults.check(params.faults)

    def apply_parameters(self, params: SimulatorParameters) -> None:
        """Change the pace and the faults at once, and the floor with the next reset."""
        self._plant.faults.replace(params.faults)
        self.pacer.factor = params.real_time_factor
        self.pacer.command_timeout = params.command_timeout

    def close_files(self) -> None:
        """Complete the recording, which takes seconds where it is long and the computer busy."""
        if self._recording is not None:
            self._recording.close()
            self.get_logger().info(
                f"recorded {self._recording.count} messages to '{self._recording.path}'")
            self._recording = None

    def destroy_node(self) -> None:
        """Close the recording, too."""
        self.close_files()
        super().destroy_node()

    def _report(self) -> Report:
        pacer, plant = self.pacer, self._plant
        values = {'real-time factor': pacer.achieved, 'requested': pacer.factor,
                  names.RATE: self._readings.rate, names.FULL_RATE: self.params.rate,
                  'on hoist': 'yes' if plant.hoist.holds else 'no',
                  'time lost [s]': pacer.lost, 'waited for commands [s]': pacer.waited,
                  'time [s]': self.now(), 'mass [kg]': plant.mass,
                  'divergences': plant.divergences,
                  'at effort limit': ', '.join(plant.saturated_joints())}
        if plant.has_fallen:
            return ERROR, ('the robot has fallen; call '
                           f"{self.resolve_service_name('~/reset')}"), values
        if pacer.achieved == 0.0:
            return OK, 'starting', values
        if pacer.achieved < 0.95 * pacer.factor:
            return WARN, (f'{pacer.achieved:.2f} of real time instead of {pacer.factor:g}: the '
                          'computer is too slow or too busy; close what else runs, or set a lower '
                          'rate or real_time_factor'), values
        return OK, f'{pacer.achieved:.2f} of real time', values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node; where the processors are busy, the others of the suite go first."""
    # Simulated time can wait. The nodes that it feeds would fall behind by seconds and miss
    # messages if all had the same priority: on two busy cores 25 % of the messages of 6 sensors.
    os.nice(_NICENESS)
    return run(Simulator, argv)


if __name__ == '__main__':
    sys.exit(main())
