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
Finds sensors of the feet that died, froze or were turned; their wrenches are withheld.

Turned ones are looked for while the robot rests, in a thread.
"""

from __future__ import annotations

import math

from biped_com_ros.core.com.check import RestMean
from biped_com_ros.core.constants import NEVER_NS, SECOND_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.estimation.turned_sensors import (
    find_turned_sensor, TurnedSensor)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.age import is_recent
from biped_com_ros.core.wrench.aggregation import ContactBody, SensorChannel, WrenchAggregation
from biped_com_ros.core.wrench.sensor_faults import (
    RepeatedReadings, WeightBalance, WeightBalanceSettings)
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
import numpy as np

AGAIN_NS = 2 * SECOND_NS
"""Time until a result that changed is confirmed, ns."""
PERIOD_NS = 30 * SECOND_NS
"""Time between two results that confirm each other, ns: one takes 20 to 120 ms of a processor."""


class TurnedSensorWatch:
    """
    Averages while the robot rests, and keeps what was found twice in succession.

    Parameters
    ----------
    aggregation
        Has the sensors.

    Attributes
    ----------
    found
        The turned sensor; None if none is, or it is not clear which.

    """

    def __init__(self, aggregation: WrenchAggregation) -> None:
        self._aggregation, self._model = aggregation, aggregation.model
        self._task: BackgroundTask[TurnedSensor | None] = BackgroundTask()
        self._regressor: StaticsRegressor | None = None
        self._due_ns, self._last_ns = 0, NEVER_NS
        self._previous: str | None = None
        self.found: TurnedSensor | None = None

    def add(self, stamp_ns: int, moved_ns: int, positions: Array, efforts: Array,
            up: Array) -> None:
        """
        Add the last readings of all sensors.

        Parameters
        ----------
        stamp_ns, moved_ns
            Their time, and when a joint moved last, ns.
        positions, efforts
            Of the joints, (n,); efforts may be NaN.
        up
            Unit vector against gravity in the IMU's link, (3,).

        """
        self._task.poll()
        gap_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        values = [positions, efforts, up,
                  *(channel.filtered for channel in self._aggregation.channels)]
        if not 0 <= gap_ns < SECOND_NS:
            self._due_ns, self._mean = 0, RestMean(sum(map(len, values)))
        mean = self._mean.add(np.concatenate(values), stamp_ns, moved_ns)
        if mean is not None and stamp_ns >= self._due_ns and not self._task.is_busy:
            self._begin(stamp_ns, mean)

    def _begin(self, stamp_ns: int, mean: Array) -> None:
        count = len(self._model.joint_names)
        positions, efforts, up, wrenches = np.split(mean, (count, 2 * count, 2 * count + 3))
        config = self._model.config
        capture = Capture(
            positions=positions, wrenches=wrenches.reshape(-1, 6),
            in_contact=np.ones(len(config.feet), dtype=bool), up=up / np.linalg.norm(up),
            up_frame=config.imu.frame, torques=efforts)
        theta = parameters_of(self._model)  # in this thread: they may be replaced
        self._due_ns = stamp_ns + AGAIN_NS
        self._task.start(lambda: self._find(capture, theta), self._use)

    def _find(self, capture: Capture, theta: Array) -> TurnedSensor | None:
        if self._regressor is None:  # of its own: Pinocchio's buffers must not be shared
            self._regressor = StaticsRegressor(RobotModel(self._model.config, self._model.urdf))
        try:
            return find_turned_sensor(self._regressor, capture, theta)
        except InputError:  # readings that no robot at rest has; they are reported elsewhere
            return None

    def _use(self, found: TurnedSensor | None) -> None:
        name = found.sensor if found is not None else ''
        if name == self._previous:
            self.found = found
            self._due_ns = self._last_ns + PERIOD_NS
        self._previous = name


LEVEL = 0.015
"""Soles at most this much higher than the lowest one may stand on the same ground, m."""
RECENT_NS = 50_000_000
"""A sensor whose reading changed within this time works, ns."""


class SensorFaults:
    """
    Watches all sensors.

    Parameters
    ----------
    aggregation
        Has the sensors, the feet, and the heights of their soles.
    balance
        When forces contradict the weight.

    """

    def __init__(self, aggregation: WrenchAggregation, balance: WeightBalanceSettings) -> None:
        self._aggregation = aggregation
        self._feet = [body for body in aggregation.bodies if body.detector is not None]
        self._balance = WeightBalance(
            [foot.name for foot in self._feet], aggregation.body_weight, balance)
        # The weight may rest on a foot without sensors, or with a virtual one, which has errors
        # of its own.
        self._weighs_all = len(self._feet) == len(aggregation.model.config.feet) and all(
            foot.sensors for foot in self._feet)
        self._repeated = [RepeatedReadings() for _ in aggregation.channels]
        self._frozen: set[int] = set()
        self._dead: ContactBody | None = None
        # Hidden forces on a foot without sensors would be taken for a fault.
        is_whole = self._weighs_all and not aggregation.model.config.feet_with_force_z
        self.turned = TurnedSensorWatch(aggregation) if is_whole else None

    def configure(self, balance: WeightBalanceSettings) -> None:
        """Compare with the weight as it is now, and by these settings."""
        self._balance.body_weight = self._aggregation.body_weight
        self._balance.settings = balance

    def add_reading(self, sensor: int, stamp_ns: int, moved_ns: int) -> None:
        """
        Check the last reading of a sensor.

        Parameters
        ----------
        sensor
            Index of the sensor.
        stamp_ns, moved_ns
            Its time, and when a joint moved last, ns.

        """
        repeated, channel = self._repeated[sensor], self._aggregation.channels[sensor]
        if not repeated.update(channel.scaled, stamp_ns) or self._is_lifted(sensor) or (
                self._is_unloaded(sensor, channel) and self._others_carry_all()):
            self._frozen.discard(sensor)
        # Simulated sensors of a robot at rest may all repeat exactly.
        elif (self._balance.problem or moved_ns > repeated.since_ns) and any(
                is_recent(other.since_ns, stamp_ns, RECENT_NS) for other in self._repeated):
            self._frozen.add(sensor)

    def _is_lifted(self, sensor: int) -> bool:
        """Return whether a sensor's foot is higher than another: in the air it may repeat."""
        heights = self._aggregation.sole_heights
        return any(sensor in foot.sensors and heights[foot.index] - min(heights) > LEVEL
                   for foot in self._feet)

    def _is_unloaded(self, sensor: int, channel: SensorChannel) -> bool:
        """Return whether a foot carries nothing by its sensor: a coarse one may repeat a digit."""
        if not any(sensor in foot.sensors for foot in self._feet):
            return not channel.scaled.any()
        balance = self._balance
        return math.hypot(*channel.filtered[:3].tolist()) < (
            balance.settings.unloaded * balance.body_weight)

    def _others_carry_all(self) -> bool:
        """Return whether what an unloaded foot repeats may be true."""
        balance = self._balance
        return self._weighs_all and sum(self._aggregation.foot_forces) >= balance.body_weight * (
            1.0 - balance.settings.missing)

    def add_forces(self, vertical_force: float, stamp_ns: int) -> None:
        """Check the vertical force of the total, N, and those of all feet at an instant, ns."""
        balance = self._balance
        forces = self._aggregation.foot_forces
        if not self._weighs_all:
            return
        if not balance.update(forces, stamp_ns, vertical_force - sum(forces)):
            self._dead = None
        elif balance.suspect >= 0:
            foot = self._feet[balance.suspect]
            heights = self._aggregation.sole_heights
            is_level = heights[foot.index] - min(heights) < LEVEL
            self._dead = foot if is_level else None

    def is_faulty(self, body: ContactBody) -> bool:
        """Return whether the wrench of a foot or hand must not be used."""
        return body is self._dead or any(
            sensor in self._frozen or sensor == self._turned_sensor for sensor in body.sensors)

    @property
    def _turned_sensor(self) -> int:
        """Return the index of the turned sensor, -1 if there is none."""
        found = self.turned.found if self.turned is not None else None
        if found is None:
            return -1
        return [channel.name for channel in self._aggregation.channels].index(found.sensor)

    @property
    def found(self) -> bool:
        """Return whether any foot or hand is faulty."""
        return (self._dead is not None or bool(self._frozen)
                or (self.turned is not None and self.turned.found is not None))

    def report(self) -> Report:
        """Return what is wrong, for the diagnostics."""
        channels, problem = self._aggregation.channels, self._balance.problem
        if self._frozen:
            names = ', '.join(f"'{channels[i].name}' ({channels[i].config.topic})"
                              for i in sorted(self._frozen))
            return ERROR, (f'wrench withheld: {names} repeats one reading although the robot '
                           'moves or the weight contradicts it: check its power, cable and '
                           'driver'), {}
        if self.turned is not None and self.turned.found is not None:
            return ERROR, f'wrench withheld: {self.turned.found.describe()}', {}
        if self._dead is not None:
            return ERROR, f'wrench withheld: {problem}', {}
        if self._balance.suspect >= 0:
            return WARN, ('a foot is lifted, and the others do not carry the whole weight: look '
                          f'for a support without sensors, and tare ({problem})'), {}
        return (WARN, problem, {}) if problem else (OK, 'no sensor contradicts the weight', {})
