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

Stamps: what is published carries the stamp of the reading that completed it. Readings belong
together when their stamps are within half a period of the slowest sensor; the total is published
once per such instant, when every foot and hand has delivered. While a sensor is silent, or
`joint_states` or the IMU lag behind, what depends on them is not published and ``/diagnostics``
says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
import sys
from typing import Any

from biped_com_ros.core.com.check import RestMean
from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.core.geometry.wrench import centre_of_pressure, com_line, largest_credible_load
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.robot_frames import sole_in_link
from biped_com_ros.core.signals.filters import LowPass
from biped_com_ros.core.wrench.aggregation import (
    AggregationSettings, ContactBody, WrenchAggregation)
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.core.wrench.tare import (
    load_offsets, RecentReadings, save_offsets, SensorOffset, JointStillness, TareLimits)
from biped_com_ros.core.wrench.weight_check import WEIGHING_RATE, WeightCheck
from biped_com_ros.nodes.com_estimator.outputs import Pace
from biped_com_ros.ros.node.common_parameters import (
    ContactParameters, gravity_parameter, RobotNodeParameters, WeightParameters)
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import parameter
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import ImuInput, JointStateInput, WrenchInput
from biped_com_ros.ros.topics.outputs import (
    bool_publisher, float_array_publisher, joint_state_publisher, point_publisher,
    vector_publisher, wrench_publisher)
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
from biped_com_ros.ros.topics.stamp import now_ns
from biped_com_ros.ros.topics.tf import StaticTransformBroadcaster
import numpy as np
from rclpy.node import Node

AXES = ('force.x', 'force.y', 'force.z', 'torque.x', 'torque.y', 'torque.z')


@dataclass(frozen=True)
class WrenchAggregatorParameters(RobotNodeParameters, ContactParameters, WeightParameters):
    """Parameters of `wrench_aggregator`."""

    offsets_file: str = parameter(
        '', 'YAML file of the offsets: read at start if it exists, written by the tare services; '
        'empty keeps nothing', read_only=True)
    footprint_frame: str = parameter(
        'base_footprint', 'frame_id of the total wrench and of the line of the CoM',
        read_only=True)
    gravity: float = gravity_parameter()
    low_pass_cutoff: float = parameter(
        50.0, 'Cut-off of the Butterworth low-pass of all readings; 0 turns it off', 'Hz', 0.0,
        10000.0)
    low_pass_order: int = parameter(2, 'Order of that low-pass', options=(1, 2))
    contact_engage_dwell: float = parameter(
        0.006, 'How long the force has to stay there for a contact to begin', 's', 0.0, 1.0,
        read_only=True)
    contact_period: float = parameter(
        0.1, 'A contact is published when it changes and at least this often', 's', 0.0, 10.0)
    cop_min_share: float = parameter(
        0.02, 'Least normal force, as a share of body weight, for a CoP of a foot, and for the '
        'line of the CoM', '', 0.001, 0.9)
    tare_samples: int = parameter(
        500, 'How many of the last readings of a sensor a tare averages', '', 10, 100000,
        read_only=True)
    tare_max_force_deviation: float = parameter(
        2.0, 'Largest standard deviation of a force while taring', 'N', 0.0, 1000.0)
    tare_max_torque_deviation: float = parameter(
        0.2, 'Largest standard deviation of a torque while taring', 'N m', 0.0, 100.0)
    tare_max_joint_speed: float = parameter(
        0.05, 'Largest speed of a joint while taring', 'rad/s', 0.0, 10.0, read_only=True)
    tare_max_offset_share: float = parameter(
        0.3, 'Largest force, as a share of body weight, that is taken for an offset: more is a '
        'robot that stands', '', 0.0, 100.0)
    state_timeout: float = parameter(
        0.1, 'Largest difference between the stamps of a reading and of the joint states or the '
        'IMU used with it', 's', 0.0, 10.0)
    sensor_timeout: float = parameter(
        0.5, 'Silence after which a sensor counts as dead', 's', 0.001, 60.0, read_only=True)


class FootOutput:
    """Publishes what is known about one foot."""

    def __init__(self, node: Node, body: ContactBody, frame_id: str) -> None:
        self._body = body
        self._wrench = wrench_publisher(node, f'~/{body.name}/wrench', frame_id)
        self._cop = point_publisher(node, f'~/{body.name}/cop', frame_id)
        self._contact = bool_publisher(node, f'~/{body.name}/contact', qos=LATCHED)
        self._said: bool | None = None
        self._said_ns = 0

    def publish(self, stamp_ns: int, least_force: float, contact_period_ns: int) -> None:
        """Publish wrench, CoP (in contact, above `least_force` N) and, if it is time, contact."""
        body = self._body
        if self._wrench.has_subscribers:
            self._wrench.fields['wrench'][...] = body.wrench
            self._wrench.publish(stamp_ns)
        in_contact = body.in_contact
        if in_contact and self._cop.has_subscribers:
            point = centre_of_pressure(body.numbers, minimum_force=least_force)
            if point is not None:
                self._cop.fields['point'][...] = point
                self._cop.publish(stamp_ns)
        if in_contact != self._said or abs(stamp_ns - self._said_ns) >= contact_period_ns:
            self._said, self._said_ns = in_contact, stamp_ns
            self._contact.fields['data'][...] = in_contact
            self._contact.publish()


class ContactsOutput:
    """Publishes which feet are on the ground, once each of them has felt anew, with a stamp."""

    def __init__(self, node: Node, feet: Sequence[ContactBody]) -> None:
        self._feet, self._order = feet, {foot.index: i for i, foot in enumerate(feet)}
        self._contacts = joint_state_publisher(
            node, '~/contacts', [foot.name for foot in feet], ('position', 'effort'))
        self._felt_ns, self._complete_ns = [0] * len(feet), 0
        self._said: list[bool] = []
        self._said_ns = 0

    def take(self, foot: ContactBody, stamp_ns: int, period_ns: int) -> None:
        """Note that a foot has felt; with the last one, publish what is new, or if it is time."""
        ns = stamp_ns
        if ns < self._complete_ns:  # the clock was set anew
            self._felt_ns, self._complete_ns = [0] * len(self._feet), 0
        self._felt_ns[self._order[foot.index]] = ns
        oldest = min(self._felt_ns)
        if oldest == ns or oldest > self._complete_ns:
            self._complete_ns = ns
            self._publish(stamp_ns, period_ns)

    def _publish(self, stamp_ns: int, period_ns: int) -> None:
        in_contact = [foot.in_contact for foot in self._feet]
        if in_contact == self._said and abs(stamp_ns - self._said_ns) < period_ns:
            return
        self._said, self._said_ns = in_contact, stamp_ns
        self._contacts.fields['position'][...] = in_contact
        self._contacts.fields['effort'][...] = [foot.numbers[2] for foot in self._feet]
        self._contacts.publish(stamp_ns)


class TotalOutput:
    """Publishes the total wrench, its mean at rest, and the line that holds the CoM then."""

    def __init__(self, node: Node, frame_id: str) -> None:
        self._wrench = wrench_publisher(node, '~/wrench', frame_id)
        self._point = point_publisher(node, '~/line/point', frame_id)
        self._direction = vector_publisher(node, '~/line/direction', frame_id)
        self._resting = wrench_publisher(node, '~/resting_wrench', frame_id)
        self._mean = RestMean(6)

    def publish(self, stamp_ns: int, total: np.ndarray, least_force: float) -> None:
        """Publish the total (6,) and, if it carries more than `least_force` N, the line."""
        if self._wrench.has_subscribers:
            self._wrench.fields['wrench'][...] = total
            self._wrench.publish(stamp_ns)
        is_heavy = total[2] > least_force
        if is_heavy and (self._point.has_subscribers or self._direction.has_subscribers):
            line = com_line(total)
            self._point.fields['point'][:2] = line.alpha, line.gamma
            self._direction.fields['vector'][...] = line.beta, line.delta, 1.0
            self._point.publish(stamp_ns)
            self._direction.publish(stamp_ns)

    def publish_rest(self, stamp_ns: int, total: np.ndarray, moved_ns: int) -> None:
        """Publish the mean of the total once per second while nothing moves."""
        mean = self._mean.add(total, stamp_ns, moved_ns)
        if mean is not None and self._resting.has_subscribers:
            self._resting.fields['wrench'][...] = mean
            self._resting.publish(stamp_ns)


class WrenchAggregator(RobotNode[WrenchAggregatorParameters]):
    """Feet, hands and their sensors, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        self._static_transforms: StaticTransformBroadcaster | None = None
        super().__init__('wrench_aggregator', WrenchAggregatorParameters, **node_kwargs)

    # -- set-up

    def build(self, model: RobotModel) -> None:
        """Make the channels of the sensors, then outputs, services, diagnostics and inputs."""
        if not model.config.wrench_sensors:
            raise ConfigurationError(
                f"robot '{model.config.name}' has no wrench sensors: add them under "
                'wrench_sensors and name them under feet and hands')
        self.aggregation = aggregation = WrenchAggregation(model, _settings(self.params))
        self._offsets = self._load_offsets(model)
        for channel in aggregation.channels:
            if channel.name in self._offsets:
                channel.set_offset(self._offsets[channel.name].offset)
        self._make_outputs(aggregation)
        self._make_tare(aggregation)
        self._make_accounts(aggregation)
        self._set_limits(self.params)
        self._make_inputs(aggregation)

    def _make_outputs(self, aggregation: WrenchAggregation) -> None:
        config = aggregation.model.config
        self._feet = {
            body.index: FootOutput(self, body, self._sole_frame(aggregation.model, body.name))
            for body in aggregation.bodies if body.detector is not None}
        self._contacts = ContactsOutput(self, [
            body for body in aggregation.bodies if body.detector is not None])
        self._total = TotalOutput(self, self.params.footprint_frame)
        labels = [f'{sensor}/{axis}' for sensor in config.wrench_sensors for axis in AXES]
        self._offsets_output = float_array_publisher(
            self, '~/offsets', len(labels), labels, qos=LATCHED)
        self._publish_offsets(aggregation)

    def _sole_frame(self, model: RobotModel, foot: str) -> str:
        """Name of the sole's frame; one that the URDF does not have is sent to /tf_static."""
        config, frame = model.config.feet[foot], model.config.sole_frame(foot)
        if config.sole_is_link:
            return frame
        placement = sole_in_link(config)
        if self._static_transforms is None:
            self._static_transforms = StaticTransformBroadcaster(self)
        self._static_transforms.send(
            now_ns(self), [(config.sole, frame, placement.rotation, placement.position)])
        return frame

    def _make_tare(self, aggregation: WrenchAggregation) -> None:
        self._still = JointStillness(
            aggregation.model.joint_names, self.params.tare_max_joint_speed)
        self._recent = [RecentReadings(channel.name, self.params.tare_samples)
                        for channel in aggregation.channels]
        everything = range(len(aggregation.channels))
        trigger_service(self, '~/tare', lambda: self._tare(everything))
        trigger_service(self, '~/untare', lambda: self._untare(everything))
        for i, channel in enumerate(aggregation.channels):
            trigger_service(self, f'~/{channel.name}/tare', partial(self._tare, (i,)))
            trigger_service(self, f'~/{channel.name}/untare', partial(self._untare, (i,)))

    def _make_accounts(self, aggregation: WrenchAggregation) -> None:
        channels = aggregation.channels
        self._weight = WeightCheck(
            aggregation.body_weight,
            {body.name: [channels[i].name for i in body.sensors]
             for body in aggregation.bodies if body.detector is not None},
            self.params.weight_tolerance, f'the YAML of robot {aggregation.model.config.name}')
        self._totals, self._weighs = 0, Pace(WEIGHING_RATE)
        self._late = ''
        self.diagnostics.add('total wrench', self._report_total)
        self.diagnostics.add('weight', self._report_weight)
        self.diagnostics.add('offsets', self._report_offsets)

    def _make_inputs(self, aggregation: WrenchAggregation) -> None:
        model, options = aggregation.model, self.input_options(self.params.sensor_timeout)
        self._joints_ns = self._imu_ns = NEVER_NS
        self._moved = False
        imu = model.config.imu
        self.joints = JointStateInput(self, model.joint_names, self._on_joints,
                                      limits=model.credible_positions, **options)
        self.imu = ImuInput(self, imu.topic, imu.frame, self._on_imu, **options)
        self.sensors = [
            WrenchInput(self, channel.config.topic, channel.config.frame,
                        partial(self._on_wrench, i), largest=largest_credible_load(model.mass),
                        **options)
            for i, channel in enumerate(aggregation.channels)]
        self.watch_inputs({
            'joint states': self.joints, 'orientation': self.imu,
            **{f'wrench of {channel.name}': source
               for channel, source in zip(aggregation.channels, self.sensors)}})

    def apply_parameters(self, params: WrenchAggregatorParameters) -> None:
        """Change limits, and the low-pass of every sensor if its parameters changed."""
        self._set_limits(params)
        low_pass = (params.low_pass_cutoff, params.low_pass_order)
        if low_pass != (self.params.low_pass_cutoff, self.params.low_pass_order):
            for channel in self.aggregation.channels:
                channel.low_pass = LowPass(params.low_pass_cutoff, 6, params.low_pass_order)

    def _set_limits(self, params: WrenchAggregatorParameters) -> None:
        """Compute what every message needs from the parameters."""
        self._least_force = params.cop_min_share * self.aggregation.body_weight
        self._contact_period_ns = nanoseconds(params.contact_period)
        self._state_timeout_ns = nanoseconds(params.state_timeout)

    # -- on every message

    def _on_joints(self, stamp_ns: int, positions: np.ndarray, velocities: np.ndarray,
                   efforts: np.ndarray) -> None:
        # Velocities too: another node of the process may have asked for this very state.
        self._state = self.aggregation.model.state(positions, velocities)
        self._joints_ns, self._moved = stamp_ns, True
        self._still.update(velocities, stamp_ns)

    def _on_imu(self, stamp_ns: int, quaternion: np.ndarray, angular_velocity: np.ndarray,
                linear_acceleration: np.ndarray) -> None:
        self._R_world_imu = rotation_from_quaternion(quaternion)
        self._imu_ns, self._moved = stamp_ns, True

    def _on_wrench(self, sensor: int, stamp_ns: int, wrench: np.ndarray) -> None:
        aggregation = self.aggregation
        aggregation.ready = self._state_is_fresh(stamp_ns)
        body = aggregation.update(sensor, wrench, stamp_ns)
        self._recent[sensor].add(aggregation.channels[sensor].signed, stamp_ns)
        if body is None:
            return
        least_force, contact_period_ns = self._least_force, self._contact_period_ns
        foot = self._feet.get(body.index)
        if foot is not None:
            foot.publish(stamp_ns, least_force, contact_period_ns)
            self._contacts.take(body, stamp_ns, contact_period_ns)
        total = aggregation.total(body, stamp_ns)
        if total is not None:
            self._total.publish(stamp_ns, total, least_force)
            self._total.publish_rest(stamp_ns, total, self._still.moved_ns)
            self._totals += 1
            if self._weighs.is_due(stamp_ns):
                self._weight.add(total.item(2), aggregation.foot_forces, aggregation.stands)

    def _state_is_fresh(self, stamp_ns: int) -> bool:
        """Whether posture and attitude are those of this instant; brings them up to date."""
        ns, limit = stamp_ns, self._state_timeout_ns
        if not -limit <= ns - self._joints_ns <= limit:
            self._late = 'joint_states'
            return False
        if not -limit <= ns - self._imu_ns <= limit:
            self._late = 'the IMU'
            return False
        if self._moved:
            self._moved = False
            self.aggregation.set_state(self._state, self._R_world_imu)
        self._late = ''
        return True

    # -- tare

    def _tare(self, sensors: Sequence[int]) -> str:
        """Tare all of `sensors` or, if one is refused, none."""
        aggregation = self.aggregation
        if not aggregation.ready:
            raise InputError(
                'not tared: the weight of the feet is unknown without fresh joint states and '
                f'orientation; nothing recent from {self._late or "joint_states"}')
        offsets, refusals = {}, []
        for sensor in sensors:
            try:
                offsets[aggregation.channels[sensor]] = self._find_offset(sensor)
            except InputError as refusal:
                refusals.append(str(refusal))
        if refusals:
            raise InputError('; '.join(refusals))
        for channel, offset in offsets.items():
            channel.set_offset(offset.offset)
            self._offsets[channel.name] = offset
        return '; '.join(_describe(channel.name, offset)
                         for channel, offset in offsets.items()) + self._keep_offsets()

    def _find_offset(self, sensor: int) -> SensorOffset:
        """
        Return the offset of a sensor from its last readings.

        Raises
        ------
        InputError
            If the robot moves or stands, or the readings are noisy or too old.

        """
        aggregation, params = self.aggregation, self.params
        limits = TareLimits(
            force_deviation=params.tare_max_force_deviation,
            torque_deviation=params.tare_max_torque_deviation,
            joint_speed=params.tare_max_joint_speed,
            offset_force=params.tare_max_offset_share * aggregation.body_weight)
        now_ns = max(self._joints_ns, *(recent.newest_ns for recent in self._recent))
        return self._recent[sensor].tare(
            aggregation.expected[sensor], self._still, limits,
            aggregation.channels[sensor].config, now_ns)

    def _untare(self, sensors: Sequence[int]) -> str:
        """Set the offsets of `sensors` to zero; the others stay."""
        channels = [self.aggregation.channels[i] for i in sensors]
        for channel in channels:
            channel.set_offset(np.zeros(6))
            self._offsets.pop(channel.name, None)
        names = ', '.join(f"'{channel.name}'" for channel in channels)
        return f'offsets of {names} set to zero' + self._keep_offsets()

    def _keep_offsets(self) -> str:
        """Publish and save the offsets; returns where they were saved."""
        self._publish_offsets(self.aggregation)
        if not self.params.offsets_file:
            return '; not saved: set the parameter offsets_file to keep offsets over a restart'
        path = Path(self.params.offsets_file).expanduser()
        try:
            save_offsets(path, self.aggregation.model.config.name, self._offsets)
        except ConfigurationError as error:
            raise ConfigurationError(f'in use until this node ends, but {error}') from None
        return f'; saved to {path}'

    def _load_offsets(self, model: RobotModel) -> dict[str, SensorOffset]:
        path = Path(self.params.offsets_file).expanduser()
        if not self.params.offsets_file:
            return {}
        if not path.exists():
            self.get_logger().info(f"no offsets yet: '{path}' will be written by ~/tare")
            return {}
        offsets = load_offsets(path, model.config)
        self.get_logger().info(f"offsets of {', '.join(offsets) or 'no sensor'} from '{path}'")
        return offsets

    def _publish_offsets(self, aggregation: WrenchAggregation) -> None:
        self._offsets_output.fields['data'][...] = np.concatenate(
            [channel.offset for channel in aggregation.channels])
        self._offsets_output.publish()

    # -- diagnostics

    def _report_total(self) -> Report:
        published, self._totals = self._totals, 0
        dead = [source for source in self.sensors if source.stale()]
        values = {'published since the last report': published}
        if dead:
            names = ', '.join(f"'{c.name}'" for c, source in zip(
                self.aggregation.channels, self.sensors) if source.stale())
            topics = ', '.join(source.topic for source in dead)
            return ERROR, f'not published: no readings of {names} ({topics})', values
        if self._late:
            return ERROR, (f'not published: {self._late} and the readings are further apart than '
                           f'{self.params.state_timeout:g} s; check its driver and clock'), values
        if not published:
            return ERROR, ('not published: the sensors are never read at the same instant; their '
                           'stamps differ by more than half a period'), values
        return OK, 'published', values

    def _report_weight(self) -> Report:
        verdict = self._weight.verdict()
        if verdict is None:
            return WARN, 'not measured', {}
        return (OK if verdict.plausible else WARN), verdict.message, {'ratio': verdict.ratio}

    def _report_offsets(self) -> Report:
        values = {name: _describe(name, offset) for name, offset in self._offsets.items()}
        missing = [channel.name for channel in self.aggregation.channels
                   if channel.name not in self._offsets]
        return OK, f'not tared: {", ".join(missing)}' if missing else 'all sensors tared', values


def _settings(params: WrenchAggregatorParameters) -> AggregationSettings:
    return AggregationSettings(
        low_pass_cutoff=params.low_pass_cutoff, low_pass_order=params.low_pass_order,
        thresholds=ContactThresholds(
            engage=params.contact_engage, release=params.contact_release,
            engage_dwell=params.contact_engage_dwell,
            release_dwell=params.contact_release_dwell),
        gravity=params.gravity)


def _describe(sensor: str, offset: SensorOffset) -> str:
    force = ', '.join(f'{value:.3f}' for value in offset.offset[:3])
    torque = ', '.join(f'{value:.4f}' for value in offset.offset[3:])
    spread = offset.standard_deviation
    return (f"'{sensor}': offset ({force}) N, ({torque}) N m, mean of {offset.samples} readings "
            f'(standard deviation up to {max(spread[:3]):.2g} N, {max(spread[3:]):.2g} N m)')


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(WrenchAggregator, argv)


if __name__ == '__main__':
    sys.exit(main())
