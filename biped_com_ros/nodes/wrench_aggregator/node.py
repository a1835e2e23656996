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
Turns the readings of force-torque sensors into foot wrenches, contacts, CoPs and the total.

Outputs carry the stamp of the reading that completed them. Readings belong to the same instant
when their stamps are within half a period of the slowest sensor; the total is published once per
instant, when all feet and hands have a reading. While a sensor is stale, or the stamps of
`joint_states` or the IMU are too far from a reading's, what depends on them is not published, and
``/diagnostics`` has the reason.

Feet and hands with ``source: virtual`` get their wrenches from joint torques and the IMU instead,
with the stamps of `joint_states`; see doc/virtual_sensors.rst.

Of a foot whose sensors measure the vertical force alone (``measures: force_z``) the other numbers
of the wrench are NaN, and it has no CoP; there is no total then.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.age import is_recent
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.core.wrench.aggregation import ContactBody, WrenchAggregation
from biped_com_ros.core.wrench.tare import JointStillness
from biped_com_ros.core.wrench.weight_check import WEIGHING_RATE, WeightCheck
from biped_com_ros.nodes.wrench_aggregator.faults import SensorFaults
from biped_com_ros.nodes.wrench_aggregator.offsets import SensorOffsets
from biped_com_ros.nodes.wrench_aggregator.outputs import WrenchOutputs
from biped_com_ros.nodes.wrench_aggregator.parameters import (
    LEAST_COP_SHARE, WrenchAggregatorParameters)
from biped_com_ros.nodes.wrench_aggregator.virtual import VirtualContacts
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, report_of, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import (
    ImuInput, Input, JointStateInput, TemperatureInput, WrenchInput)
import numpy as np

#: Longest time between two messages of a contact, which is also published when it changes.
_CONTACT_PERIOD_NS = nanoseconds(0.1)
#: Time without messages after which the temperature of a sensor is stale, s.
_TEMPERATURE_TIMEOUT = 10.0


class WrenchAggregator(RobotNode[WrenchAggregatorParameters]):
    """
    Subscribes to the sensors and publishes what `WrenchAggregation` makes of them.

    Attributes
    ----------
    aggregation, offsets
        The wrenches of feet and hands, and the offsets of the sensors.
    faults, virtual
        Of the sensors, and the wrenches of virtual feet and hands.
    joints, imu, sensors
        Its inputs.

    """

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('wrench_aggregator', WrenchAggregatorParameters, **node_kwargs)

    # -- set-up

    def build(self, model: RobotModel) -> None:
        """Make the aggregation, then outputs, services, diagnostics and inputs."""
        config = model.config
        if not (config.wrench_sensors or config.virtual_hands or any(
                foot.has_wrench for foot in config.feet.values())):
            self.get_logger().warning(
                f"nothing measures the feet of '{config.name}', so there are no wrenches: add "
                "wrench_sensors, or 'source: virtual' to the feet")
        self.aggregation = aggregation = WrenchAggregation(model, self.params.aggregation)
        self._feet = aggregation.feet
        self._outputs = WrenchOutputs(
            self, model, self._feet, [body for body in aggregation.bodies if not body.is_foot],
            self.params.footprint_frame)
        self._set_max_age(self.params)
        self._stillness = JointStillness(model.joint_names, self.params.tare.joint_speed)
        self.offsets = SensorOffsets(self, aggregation, self._stillness)
        self._weight = WeightCheck(
            aggregation.body_weight,
            {foot.name: [aggregation.channels[i].name for i in foot.sensors]
             for foot in self._feet},
            self.params.weight_tolerance, f'the YAML of robot {config.name}')
        self._has_total = not config.feet_with_force_z
        self._total_count, self._weighing = 0, StampThrottle(WEIGHING_RATE)
        self._unsynchronized: Input | None = None
        self.faults = SensorFaults(aggregation, self.params.balance)
        self.diagnostics.add('sensor faults', self.faults.report)
        self.diagnostics.add('total wrench', self._report_total)
        self.diagnostics.add('weight', self._report_weight)
        self._cache_thresholds(self.params)
        self.virtual = VirtualContacts(self, aggregation, lambda: self.faults.found)
        self._make_inputs(model)
        if self.virtual.hands is not None:
            self.diagnostics.add('virtual hands', partial(self.virtual.report_hands, self.joints))

    def _make_inputs(self, model: RobotModel) -> None:
        channels, imu = self.aggregation.channels, model.config.imu
        options = self.input_options(self.params.sensor_timeout)
        self._joints_ns = self._imu_ns = NEVER_NS
        self._state_changed = False
        self.joints = JointStateInput(self, model.joint_names, self._on_joints,
                                      limits=model.credible_positions,
                                      **model.corrections_of(model.joint_names), **options)
        self.imu = ImuInput(self, imu.topic, imu.frame, self._on_imu,
                            need_acceleration=bool(self.virtual.feet or self.virtual.hands),
                            tilt=model.config.instruments.tilt(imu.frame), **options)
        self.sensors = [
            WrenchInput(self, channel.config.topic, channel.config.frame,
                        partial(self._on_wrench, i), largest=largest_credible_load(model.mass),
                        force_z=channel.config.measures_force_z, factors=channel.config.factors,
                        **options)
            for i, channel in enumerate(channels)]
        slow = self.input_options(_TEMPERATURE_TIMEOUT)
        temperatures = {
            f'temperature of {channel.name}': TemperatureInput(
                self, channel.config.temperature_topic,
                partial(self.offsets.set_temperature, i), required=False, **slow)
            for i, channel in enumerate(channels) if channel.config.temperature_topic}
        self.watch_inputs({
            'joint states': self.joints, 'IMU': self.imu,
            **{f'wrench of {channel.name}': source
               for channel, source in zip(channels, self.sensors)}, **temperatures})

    def apply_parameters(self, params: WrenchAggregatorParameters) -> None:
        """Change limits, and filters and weights if their parameters changed."""
        self.params = params
        self._cache_thresholds(params)
        self._stillness.limit = params.tare.joint_speed
        self.offsets.configure(params)
        self.aggregation.configure(params.aggregation)
        self._set_max_age(params)
        self.virtual.set_max_age(params.max_stamp_age)
        self._weight.tolerance = params.weight_tolerance
        self.faults.configure(params.balance)
        for source in (self.joints, self.imu, *self.sensors):
            source.timeout = params.sensor_timeout

    def use_inertials(self) -> None:
        """Recompute the weight of what sensors carry after the masses changed."""
        self.offsets.expect_inertials()
        self.aggregation.update_inertials()
        self.virtual.reset(self.params)
        self._weight.use_weight(
            self.aggregation.body_weight, is_calibrated=self.model.is_calibrated)
        self.faults.configure(self.params.balance)
        self._cache_thresholds(self.params)
        self._joints_ns = NEVER_NS  # the last state was computed with the old weights

    def _set_max_age(self, params: WrenchAggregatorParameters) -> None:
        """Let readings be as late as stamps may be old."""
        self.aggregation.set_max_age(params.max_stamp_age)
        self._outputs.contacts.synchronizer.set_max_age(params.max_stamp_age)

    def _cache_thresholds(self, params: WrenchAggregatorParameters) -> None:
        """Compute thresholds in N and ns once, not at every message."""
        self._min_force = LEAST_COP_SHARE * self.aggregation.body_weight
        self._state_timeout_ns = nanoseconds(params.state_timeout)

    # -- on every message

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array,
                   efforts: Array) -> None:
        # Velocities are not needed here: other nodes of the process share this state.
        self._state = self.aggregation.model.state(positions, velocities)
        self._joints_ns, self._state_changed = stamp_ns, True
        self._positions, self._efforts = positions, efforts
        self._stillness.update(velocities, stamp_ns)
        if self.joints.efforts_measured:
            self._on_virtual(self.virtual.add_joints(stamp_ns, self._state, efforts))

    def _on_imu(self, stamp_ns: int, quaternion: Array, angular_velocity: Array,
                acceleration: Array) -> None:
        self._R_world_imu = R_world_imu = rotation_from_quaternion(quaternion)
        self._imu_ns, self._state_changed = stamp_ns, True
        self._on_virtual(self.virtual.add_imu(
            stamp_ns, R_world_imu, angular_velocity, acceleration))

    def _on_virtual(self, bodies: Iterable[tuple[int, ContactBody]]) -> None:
        for stamp_ns, body in bodies:
            if self._update_state(stamp_ns):
                self._on_body(body, stamp_ns)

    def _on_wrench(self, sensor: int, stamp_ns: int, wrench: Array) -> None:
        aggregation = self.aggregation
        aggregation.is_state_current = self._update_state(stamp_ns)
        body = aggregation.update(sensor, wrench, stamp_ns)
        self.offsets.add_reading(sensor, stamp_ns)
        self.faults.add_reading(sensor, stamp_ns, self._stillness.moved_ns)
        if body is not None:
            self._on_body(body, stamp_ns)

    def _on_body(self, body: ContactBody, stamp_ns: int) -> None:
        """Publish the new wrench of a foot or hand, and the total that it completes."""
        if not self.faults.is_faulty(body):
            self._outputs.publish_body(body, stamp_ns, self._min_force, _CONTACT_PERIOD_NS)
        total = self.aggregation.total(body, stamp_ns)
        if total is None:
            return
        if not self.faults.found:
            if self._has_total:
                self._outputs.total.publish(
                    stamp_ns, total, self._min_force, self._stillness.moved_ns)
            self._total_count += 1
        if self._weighing.is_due(stamp_ns):
            self._check_sensors(stamp_ns, total.item(2))

    def _check_sensors(self, stamp_ns: int, total_force: float) -> None:
        """Track biases, and look for faults and for a total that is not the weight."""
        aggregation = self.aggregation
        self.offsets.track(stamp_ns)
        self.faults.add_forces(total_force, stamp_ns)
        self._check_orientations(stamp_ns)
        self._weight.add(stamp_ns, total_force, [foot.wrench_values for foot in self._feet],
                         aggregation.any_foot_in_contact, aggregation.uprightness)

    def _check_orientations(self, stamp_ns: int) -> None:
        """Look for sensors that are mounted in another orientation than in the URDF."""
        if self.faults.turned is not None:
            efforts = self._efforts
            if not self.joints.efforts_measured:
                efforts = np.full(len(efforts), np.nan)
            self.faults.turned.add(stamp_ns, self._stillness.moved_ns, self._positions, efforts,
                                   self._R_world_imu[2])

    def _update_state(self, stamp_ns: int) -> bool:
        """Pass posture and attitude to the aggregation; return whether they are recent enough."""
        limit = self._state_timeout_ns
        if not is_recent(self._joints_ns, stamp_ns, limit):
            self._unsynchronized = self.joints
            return False
        if not is_recent(self._imu_ns, stamp_ns, limit):
            self._unsynchronized = self.imu
            return False
        if self._state_changed:
            self._state_changed = False
            self.aggregation.set_state(self._state, self._R_world_imu)
        self._unsynchronized = None
        return True

    # -- diagnostics

    def _report_total(self) -> Report:
        count, self._total_count = self._total_count, 0
        latest, seconds = self.aggregation.lateness
        values = {'published since the last report': count,
                  'largest delay of a reading [s]': seconds}
        if problem := self.virtual.problem(self.joints):
            return ERROR, f'not published: {problem}', values
        if not self.aggregation.bodies:
            return WARN, ('not published: nothing measures the feet; add wrench_sensors, or '
                          "'source: virtual' to the feet"), values
        stale = {channel.name: source.topic for channel, source in zip(
            self.aggregation.channels, self.sensors) if source.stale()}
        if stale:
            names = ', '.join(f"'{name}'" for name in stale)
            return ERROR, (f'not published: no readings of {names} '
                           f'({", ".join(stale.values())})'), values
        if self.faults.found:
            return ERROR, 'not published: a sensor is faulty, see sensor faults', values
        if self._unsynchronized is not None:
            return ERROR, f'not published: {self._why_not_current(self._unsynchronized)}', values
        if not count and not latest:
            return ERROR, 'not published: no foot has a wrench yet; see the inputs', values
        if not count:
            return ERROR, ('not published: the readings of the sensors are never of the same '
                           'instant, their stamps differ by more than half a period; check the '
                           f'clocks of the drivers ({latest} is {1e3 * seconds:.1f} ms behind)'
                           ), values
        if not self._has_total:
            return OK, f'not published, nor a CoP: {self.model.config.force_z_restriction}', values
        return OK, 'published' if self.imu.has_orientation else (
            'published; the vertical is that of accelerometer and gyroscope, since '
            f"'{self.imu.topic}' has no orientation"), values

    def _why_not_current(self, source: Input) -> str:
        """Return why joint states or IMU are not of the readings' time, with the remedy."""
        if source.stale():
            return source.report()[1]
        return (f"the stamps of '{source.topic}' and of the readings differ by more than "
                f'{self.params.state_timeout:g} s; check the driver and its clock')

    def _report_weight(self) -> Report:
        result = self._weight.result()
        if result is None:
            return WARN, 'not measured: there is no total wrench', {}
        return report_of(result)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(WrenchAggregator, argv)


if __name__ == '__main__':
    sys.exit(main())
