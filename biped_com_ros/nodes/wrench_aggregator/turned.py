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
"""Looks for turned sensors of feet while the robot rests, in a thread."""

from __future__ import annotations

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
from biped_com_ros.core.wrench.aggregation import WrenchAggregation
from biped_com_ros.ros.node.background import BackgroundTask
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
