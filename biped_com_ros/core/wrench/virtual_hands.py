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
"""Virtual hands at successive messages: pairs of joint states and IMU, and the measured feet."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.constants import SAME_INSTANT_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotState
from biped_com_ros.core.signals.synchronizer import ApproximateSynchronizer
from biped_com_ros.core.wrench.aggregation import WrenchAggregation
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
import numpy as np


class VirtualHands:
    """
    Pairs joint states with samples of the IMU, and estimates the forces on the virtual hands.

    Parameters
    ----------
    aggregation
        Has the wrenches of the feet and hands with sensors.
    settings
        Of the estimator.

    Attributes
    ----------
    estimator
        Of the forces.
    stamp_ns
        Time of the last estimate, ns.
    sensors_usable
        Whether the wrenches of sensors may be used; set from outside.
    sensors_used
        Whether they were for the last estimate.

    Raises
    ------
    ConfigurationError
        As :class:`VirtualHandForces`.

    """

    def __init__(self, aggregation: WrenchAggregation, settings: VirtualHandSettings) -> None:
        self.estimator = VirtualHandForces(aggregation.model, settings)
        feet = aggregation.feet if self.estimator.uses_feet else []
        self._others = [*feet, *(body for body in aggregation.bodies
                                 if not body.is_foot and body.sensors)]
        self._pairs = ApproximateSynchronizer(2)
        self.stamp_ns, self.sensors_usable, self.sensors_used = 0, True, False

    def add_joints(self, stamp_ns: int, state: RobotState, efforts: Array) -> bool:
        """Take the robot in its base and the torques of its motors (n,), N m; see `add_imu`."""
        return self._add(0, stamp_ns, (stamp_ns, state, efforts.copy()))

    def add_imu(self, stamp_ns: int, angular_velocity: Array, acceleration: Array) -> bool:
        """
        Take a sample of the IMU.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        angular_velocity, acceleration
            In its frame, (3,), rad/s and proper m/s^2.

        Returns
        -------
        bool
            Whether there is a new estimate, with the stamp of the joint state.

        """
        return self._add(1, stamp_ns, (angular_velocity.copy(), acceleration.copy()))

    @property
    def deviations(self) -> Array:
        """Return the standard deviations of the forces, (H, 3), N."""
        return np.sqrt(self.estimator.covariance.diagonal()).reshape(-1, 3)

    def _add(self, source: int, stamp_ns: int, sample: tuple[object, ...]) -> bool:
        if not self._pairs.add(source, stamp_ns, sample):
            return False
        (joints_ns, state, efforts), (gyro, acceleration) = self._pairs.latest
        others = self._measured(joints_ns)
        if not self.estimator.update(joints_ns, state, efforts, gyro, acceleration, others):
            return False
        self.stamp_ns, self.sensors_used = joints_ns, others is not None
        return True

    def _measured(self, stamp_ns: int) -> Sequence[Sequence[float]] | None:
        """Return the wrenches of the other contacts; None unless all are of this time."""
        others = self._others
        if not (others and self.sensors_usable and all(
                abs(stamp_ns - body.stamp_ns) < SAME_INSTANT_NS for body in others)):
            return None
        return [body.wrench_values for body in others]
