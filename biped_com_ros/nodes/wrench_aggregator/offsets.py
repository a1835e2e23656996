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
"""The services that tare and untare sensors, and the offsets that result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.wrench.aggregation import WrenchAggregation
from biped_com_ros.core.wrench.bias import BiasFilter
from biped_com_ros.core.wrench.bias_tracking import BiasTracking
from biped_com_ros.core.wrench.tare import (
    AXES, JointStillness, load_offsets, RecentReadings, save_offsets, SensorOffset)
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
import numpy as np

_REPORTED_REJECTIONS = 3
"""Number of consecutive rejected means of a bias before a warning."""
_LARGEST_OFFSET = 0.3
"""Largest force of an offset for a tare, as a share of body weight: with more it stands."""


class SensorOffsets:
    """
    Sets the offsets of the sensors, by tares and by tracking their biases; publishes and saves.

    Parameters
    ----------
    node
        The node; its parameters are read at each request.
    aggregation
        Has the sensors' channels, which hold the offsets.
    stillness
        Detects whether joints move, in which case no tare is accepted.

    Attributes
    ----------
    tracking
        Tracks the biases of the sensors of feet; None without sensors.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation, stillness: JointStillness) -> None:
        self._node, self._aggregation, self._stillness = node, aggregation, stillness
        self._channels, params = aggregation.channels, node.params
        self._recent = [RecentReadings(channel.name, params.tare_duration)
                        for channel in self._channels]
        self.tracking: BiasTracking | None = None
        self._is_tracking = False
        self._expected_before: Array | None = None
        #: Names of sensors tared by this process: which URDF those of a file are of is unknown.
        self._tared: set[str] = set()
        if not self._channels:
            return  # virtual feet have no offsets
        self._path = Path(params.offsets_file).expanduser() if params.offsets_file else None
        self._offsets = self._load()
        self._use_tracking(params)
        labels = [f'{channel.name}/{axis}' for channel in self._channels for axis in AXES]
        self._output = float_array_publisher(node, '~/offsets', len(labels), labels, qos=LATCHED)
        self._publish()
        self._offer_services()
        node.diagnostics.add('offsets', self.report)

    def configure(self, params: WrenchAggregatorParameters) -> None:
        """Use parameters that were changed; offsets and estimated biases stay."""
        for recent in self._recent:
            recent.configure(params.tare_duration)
        if self._channels:
            self._use_tracking(params)

    def _use_tracking(self, params: WrenchAggregatorParameters) -> None:
        """Start, change or interrupt the tracking of biases; what it has found stays."""
        self._is_tracking = params.bias_tracking
        if self.tracking is None:
            self.tracking = BiasTracking(self._aggregation, params.bias)
            for i, channel in enumerate(self._channels):
                self._restart_tracking(i, channel.name)
        self.tracking.configure(params.bias)
        if not self._is_tracking:
            self.tracking.interrupt()

    def _offer_services(self) -> None:
        all_sensors = range(len(self._channels))
        for name, action in (('tare', self._tare), ('untare', self._untare)):
            trigger_service(self._node, f'~/{name}', partial(action, all_sensors))
            for i, channel in enumerate(self._channels):
                trigger_service(self._node, f'~/{channel.name}/{name}', partial(action, (i,)))

    def expect_inertials(self) -> None:
        """
        Prepare for new masses of what is below the sensors; call it before they are in use.

        An offset that was measured in the air contains the error of the weight expected there. As
        soon as the present state has been computed with the new masses, it is corrected. Offsets
        from a file stay: they may have been corrected, and saved, before a restart.
        """
        if self._expected_before is None and self._aggregation.is_state_current:
            self._expected_before = np.array([self._expected(i) for i in range(
                len(self._channels))])

    def _expected(self, sensor: int) -> Array:
        """Return the reading of a sensor without bias while what is below it hangs, (6,)."""
        channel = self._channels[sensor]
        return channel.correction.reading_of(self._aggregation.expected[sensor]).copy()

    def _use_inertials(self, before: Array) -> None:
        logger, changed = self._node.get_logger(), []
        for i, channel in enumerate(self._channels):
            change = self._expected(i) - before[i]
            tracked = None if self.tracking is None else self.tracking.filters.get(i)
            if channel.name not in self._tared and (tracked is None or not tracked.updates):
                continue  # it was not measured with the masses that were in use until now
            tared = self._offsets.get(channel.name)
            channel.set_offset(channel.offset - change)
            if tared is not None:
                self._offsets[channel.name] = replace(
                    tared, offset=tuple((np.array(tared.offset) - change).tolist()))
            if tracked is not None:
                tracked.shift(change)
            changed.append(f"'{channel.name}' by {np.linalg.norm(change[:3]):.2f} N")
        if not changed:
            return
        logger.info('offsets corrected for the calibrated weight below the sensors: '
                    + ', '.join(changed))
        if self._path is None or not self._offsets:
            self._publish()
            return
        try:
            logger.info(self._publish_and_save())
        except ConfigurationError as error:
            logger.error(f'corrected offsets: {error}')

    def track(self, stamp_ns: int) -> None:
        """Track the biases of feet in the air; call it when all feet have new wrenches."""
        if self._expected_before is not None and self._aggregation.is_state_current:
            before, self._expected_before = self._expected_before, None
            self._use_inertials(before)
        if self.tracking is not None and self._is_tracking and self.tracking.update(stamp_ns):
            self._publish()

    def _restart_tracking(self, sensor: int, name: str, expected: Array | None = None) -> None:
        if self.tracking is not None:
            offset = self._offsets.get(name)
            self.tracking.reset(sensor, None if offset is None else (
                np.array(offset.standard_deviation)), expected)

    def set_temperature(self, sensor: int, _: int, temperature: Array) -> None:
        """Set the temperature of a sensor, (1,), deg C; its stamp does not count."""
        if self.tracking is not None:
            self.tracking.set_temperature(sensor, float(temperature[0]))

    def add_reading(self, sensor: int, stamp_ns: int) -> None:
        """Add the last reading of a channel."""
        self._recent[sensor].add(self._channels[sensor].scaled, stamp_ns)

    def _tare(self, sensors: Sequence[int]) -> str:
        """Tare all of `sensors` or, if one is refused, none."""
        if not self._aggregation.is_state_current:
            raise InputError('not tared: the weight of the feet is unknown without recent joint '
                             'states and IMU data; see the entries of the inputs')
        offsets, refusals = {}, []
        for sensor in sensors:
            try:
                offsets[self._channels[sensor]] = self._find_offset(sensor)
            except InputError as refusal:
                refusals.append(str(refusal))
        if refusals:
            raise InputError('; '.join(refusals))
        for channel, offset in offsets.items():
            channel.set_offset(offset.offset)
            self._offsets[channel.name] = offset
            self._tared.add(channel.name)
        for sensor in sensors:
            self._restart_tracking(sensor, self._channels[sensor].name, self._expected(sensor))
        texts = [_describe(channel.name, offset) for channel, offset in offsets.items()]
        return f'{"; ".join(texts)}; {self._publish_and_save()}'

    def _find_offset(self, sensor: int) -> SensorOffset:
        """
        Return the offset of a sensor from its last readings.

        Raises
        ------
        InputError
            If the robot moves or stands, or the readings are noisy or too old.

        """
        return self._recent[sensor].estimate_offset(
            self._expected(sensor), self._stillness,
            replace(self._node.params.tare,
                    offset_force=_LARGEST_OFFSET * self._aggregation.body_weight),
            self._channels[sensor].config, self._stillness.updated_ns)

    def _untare(self, sensors: Sequence[int]) -> str:
        """Set the offsets of `sensors` to those configured, else zero; the others stay."""
        channels = [self._channels[i] for i in sensors]
        for channel in channels:
            channel.set_offset(channel.correction.bias)
            self._offsets.pop(channel.name, None)
            self._tared.discard(channel.name)
        for i in sensors:
            self._restart_tracking(i, self._channels[i].name)
        names = ', '.join(f"'{channel.name}'" for channel in channels)
        known = any(channel.correction.bias.any() for channel in channels)
        what = 'those of the YAML' if known else 'zero'
        return f'offsets of {names} set to {what}; {self._publish_and_save()}'

    def _publish_and_save(self) -> str:
        """Publish and save the offsets; return where they were saved."""
        self._publish()
        if self._path is None:
            return 'not saved: set the parameter offsets_file to keep offsets over a restart'
        try:
            save_offsets(self._path, self._aggregation.model.config.name, self._offsets)
        except ConfigurationError as error:
            raise ConfigurationError(
                f'the offsets are in use until this node ends, but not saved: {error}') from None
        return f'saved to {self._path}'

    def _publish(self) -> None:
        self._output.fields['data'][...] = np.concatenate(
            [channel.offset for channel in self._channels])
        self._output.publish()

    def _load(self) -> dict[str, SensorOffset]:
        logger = self._node.get_logger()
        if self._path is None:
            return {}
        if not self._path.exists():
            logger.info(f"no offsets file '{self._path}' yet; ~/tare will create it")
            return {}
        offsets = load_offsets(self._path, self._aggregation.model.config)
        logger.info(f"offsets of {', '.join(offsets) or 'no sensor'} read from '{self._path}'")
        for channel in self._channels:
            if channel.name in offsets:
                channel.set_offset(offsets[channel.name].offset)
        return offsets

    def report(self) -> Report:
        """Return level, message and values for diagnostics."""
        values = {name: _describe(name, offset) for name, offset in self._offsets.items()}
        if self.tracking is not None and self._is_tracking:
            for sensor, bias in self.tracking.filters.items():
                values[f'bias of {self._channels[sensor].name}'] = _describe_bias(bias)
            rejected = [f"'{self._channels[sensor].name}'"
                        for sensor, bias in self.tracking.filters.items()
                        if bias.consecutive_rejected >= _REPORTED_REJECTIONS]
            if rejected:
                return WARN, (
                    f'readings of {", ".join(rejected)} in the air were rejected '
                    f'{_REPORTED_REJECTIONS} times or more in a row, as outliers from the '
                    'estimated bias: something touches the feet, or the biases have jumped; hang '
                    'the robot freely, and call ~/tare'), values
        missing = [channel.name for channel in self._channels if channel.name not in self._offsets]
        return OK, f'not tared: {", ".join(missing)}' if missing else 'all sensors tared', values


def _describe_bias(bias_filter: BiasFilter) -> str:
    """Return bias, standard deviation and drift; the largest of the latter two per unit."""
    if not bias_filter.updates:
        return 'never in the air since the start or the last tare'
    bias, deviation, drift = bias_filter.bias, bias_filter.deviation, np.abs(bias_filter.drift)
    return (f'({", ".join(f"{b:.3f}" for b in bias[:3])}) N, '
            f'({", ".join(f"{b:.4f}" for b in bias[3:])}) N m, standard deviation up to '
            f'{deviation[:3].max():.2g} N, {deviation[3:].max():.2g} N m; drift up to '
            f'{drift[:3].max():.2g} N/h, {drift[3:].max():.2g} N m/h; '
            f'{_describe_coefficient(bias_filter)}from {bias_filter.updates} '
            f'times in the air; {bias_filter.rejected} more were rejected as outliers')


def _describe_coefficient(bias_filter: BiasFilter) -> str:
    """Return the largest temperature coefficients; '' where none is known."""
    values, deviations = bias_filter.coefficient, bias_filter.coefficient_deviation
    if not values.any():
        return ''
    force, torque = np.abs(values[:3]).argmax(), 3 + np.abs(values[3:]).argmax()
    return (f'with temperature up to {values[force]:.2g} +- {deviations[force]:.1g} N/K, '
            f'{values[torque]:.2g} +- {deviations[torque]:.1g} N m/K; ')


def _describe(sensor: str, offset: SensorOffset) -> str:
    force = ', '.join(f'{value:.3f}' for value in offset.offset[:3])
    torque = ', '.join(f'{value:.4f}' for value in offset.offset[3:])
    deviation = offset.standard_deviation
    return (f"'{sensor}': offset ({force}) N, ({torque}) N m, mean of {offset.samples} readings "
            f'(standard deviation up to {max(deviation[:3]):.2g} N, {max(deviation[3:]):.2g} N m)')
