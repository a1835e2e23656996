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
"""What `gait_player` has to know of the robot besides its joints, while it plans and walks."""

from __future__ import annotations

from typing import Any, Protocol

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_from_quaternion, yaw_of
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.inputs import ImuInput, Input, PointInput, Vector3Input
import numpy as np

_FRESH = 1.0  # s


class SenseParameters(Protocol):
    """The parameters of the senses."""

    @property
    def use_fused_com(self) -> bool:
        """Whether the centre of mass that is felt counts."""

    @property
    def settling_time(self) -> float:
        """Return how long it is listened to, s."""

    @property
    def max_com_offset(self) -> float:
        """Largest offset that is believed, m."""

    @property
    def monitor(self) -> str:
        """Name of the node that measures the zero-moment point."""

    @property
    def max_stamp_age(self) -> float:
        """Age of messages that are not used, s."""


class Senses:
    """
    Inputs that are only there while somebody walks: nobody has to compute them meanwhile.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, the parameters.

    Attributes
    ----------
    com
        The kinematic centre of mass, in the world.

    """

    def __init__(self, node: Any, model: RobotModel, params: SenseParameters) -> None:
        self._model, self._params, self._clock = model, params, node.get_clock()
        self._since_ns = self._clock.now().nanoseconds
        options: dict[str, Any] = {'required': False, 'max_age': params.max_stamp_age}
        self.com = PointInput(node, 'com_estimator/com', '', _ignore, **options)
        self._zmp = PointInput(
            node, f'{params.monitor or "zmp_monitor"}/zmp', '', _ignore, **options)
        self._imu = ImuInput(node, model.config.imu.topic, model.config.imu.frame, _ignore,
                             **options) if model.config.imus else None
        self._bias = Vector3Input(node, 'com_estimator/com_bias', '', _ignore, **options) if (
            params.use_fused_com) else None

    def destroy(self) -> None:
        """Listen no more."""
        inputs: tuple[Input | None, ...] = (self.com, self._zmp, self._imu, self._bias)
        for source in inputs:
            if source is not None:
                source.destroy()

    @property
    def have_settled(self) -> bool:
        """Whether they have been listened to for long enough, or since the clock was reset."""
        listened = 1e-9 * (self._clock.now().nanoseconds - self._since_ns)
        return not 0.0 <= listened < self._params.settling_time

    @property
    def zmp_in_world(self) -> Array | None:
        """Return the measured ZMP, (3,), in the frame of :attr:`com`; None if unknown."""
        if self._zmp.stale(0.1) or self._zmp.frame != self.com.frame:
            return None
        return self._zmp.values

    def com_offset(self, positions: Array) -> Array:
        """
        Return by how much the true centre of mass is off the model's, in base axes, (2,), m.

        Zero while nobody tells.

        Raises
        ------
        InputError
            If it cannot be true.

        """
        if self._bias is None or self._bias.stale(_FRESH) or self._is_lost:
            return np.zeros(2)
        offset: Array = (self._heading(positions).T @ -self._bias.values)[:2]
        size, largest = float(np.hypot(*offset)), self._params.max_com_offset
        if size > largest:
            raise InputError(
                f'will not walk: the centre of mass is felt {1e3 * size:.0f} mm from where the '
                f'URDF has it (max_com_offset {1e3 * largest:.0f} mm); calibrate, tare the '
                'sensors, or turn use_fused_com off')
        return offset

    def origin(self, positions: Array, gait: Gait) -> Pose | None:
        """
        Return the pose of a gait's world in that of :attr:`com`: by where the soles are in both.

        None where it is unknown.
        """
        if self.com.stale(_FRESH) or self._is_lost:
            return None
        state, heading = self._model.state(positions), self._heading(positions)
        soles = state.placements_in_base(self._model.soles)[:, 3] - state.com_in_base
        there = self.com.values + self._rotation(positions) @ soles.mean(axis=0)
        here = heading @ (*gait.plan.soles(0.0)[:, :2].mean(axis=0), 0.0)
        return Pose(heading, there - here)

    @property
    def _is_lost(self) -> bool:
        return self._imu is None or self._imu.stale(_FRESH)

    def _rotation(self, positions: Array) -> Array:
        """Return R_world_base by the IMU."""
        assert self._imu is not None
        R_base_imu = self._model.state(positions).pose_in_base(self._imu.frame).rotation
        R_world_imu = rotation_from_quaternion(self._imu.values[:4])
        return np.asarray(R_world_imu @ R_base_imu.T, dtype=float)

    def _heading(self, positions: Array) -> Array:
        """Return how the base is turned about the vertical."""
        return Pose.from_rpy((0.0, 0.0, yaw_of(self._rotation(positions))), np.zeros(3)).rotation


def _ignore(*_: Any) -> None:
    """Take a message that is only looked at later."""
