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
"""What `gait_player` measures of the robot besides its joints, while it plans and walks."""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.legs.feedback import WalkMeasurement
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.legs.walk_session import com_offset, gait_origin
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.robot_state import RobotState
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.core.state.estimator import StateEstimator
from biped_com_ros.nodes.gait_player.parameters import GaitPlayerParameters
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import ImuInput, Input, PointInput, Vector3Input, WrenchInput
import numpy as np
from rclpy.node import Node

#: Age after which a measurement is not used, s.
_TIMEOUT = 1.0


class WalkInputs:
    """
    Subscriptions that exist while the robot walks or balances, and before a shift.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, the parameters.

    Attributes
    ----------
    com
        The kinematic centre of mass, in the world.

    """

    def __init__(self, node: Node, model: RobotModel, params: GaitPlayerParameters) -> None:
        self._model, self._params, self._clock = model, params, node.get_clock()
        self._since_ns = self._clock.now().nanoseconds
        self._restriction = model.config.force_z_restriction
        options: dict[str, Any] = {'required': False, 'max_age': params.max_stamp_age}
        self.com = PointInput(node, names.COM, '', _keep, **options)
        self._zmp = PointInput(
            node, f'{params.monitor or "zmp_monitor"}/zmp', '', _keep, **options)
        self._inputs: list[Input] = [self.com, self._zmp]
        self._estimator: StateEstimator | None = None
        self._bias: Vector3Input | None = None
        if model.config.imus:
            self._estimator = StateEstimator(model, BaseSettings(source='imu', timeout=_TIMEOUT))
            imu = model.config.imu
            self._imu = ImuInput(
                node, imu.topic, imu.frame, self._on_imu,
                tilt=model.config.instruments.tilt(imu.frame), **options)
            self._inputs.append(self._imu)
        self._wrenches = [WrenchInput(
            node, names.wrench_of(foot), '', _keep,
            largest=largest_credible_load(model.mass), **options)
            for foot in model.config.feet] if params.feedback and not self._restriction else []
        self._inputs.extend(self._wrenches)
        if params.use_fused_com:
            self._bias = Vector3Input(node, names.COM_BIAS, '', _keep, **options)
            self._inputs.append(self._bias)

    def destroy(self) -> None:
        """Unsubscribe."""
        for source in self._inputs:
            source.destroy()

    @property
    def have_settled(self) -> bool:
        """Whether they have been received for `settling_time`, or the clock was set back."""
        elapsed = 1e-9 * (self._clock.now().nanoseconds - self._since_ns)
        return not 0.0 <= elapsed < self._params.settling_time

    @property
    def zmp_in_world(self) -> Array | None:
        """Return the measured ZMP, (3,), in the frame of :attr:`com`; None if unknown."""
        if self._zmp.stale(0.1) or self._zmp.frame != self.com.frame:
            return None
        return self._zmp.values

    def com_offset(self, stamp_ns: int, positions: Array) -> Array:
        """
        Return the offset of the measured CoM from the model's; zero if it is not measured.

        Parameters
        ----------
        stamp_ns, positions
            Time, ns, and positions of the joints.

        Raises
        ------
        InputError
            If it is larger than `max_com_offset`.

        """
        state = self._located(stamp_ns, positions)
        if state is None or self._bias is None or self._bias.stale(_TIMEOUT):
            return np.zeros(2)
        return com_offset(state.base.rotation, self._bias.values, self._params.max_com_offset)

    def up(self, stamp_ns: int, positions: Array) -> Array | None:
        """Return the direction against gravity in the base, (3,); None without an IMU."""
        state = self._located(stamp_ns, positions)
        return None if state is None else state.base.rotation[2].copy()

    def balance(self, stamp_ns: int, positions: Array) -> WalkMeasurement | None:
        """
        Return what the feedback needs; None while any of it is unknown or stale.

        Parameters
        ----------
        stamp_ns, positions
            Time, ns, and positions of the joints.

        """
        if self.missing_for_balance(self._params.feedback_timeout):
            return None
        state = self._located(stamp_ns, positions)
        if state is None:
            return None
        return WalkMeasurement(positions.copy(), state.base.rotation,
                               np.array([wrench.values for wrench in self._wrenches]))

    def missing_for_balance(self, timeout: float) -> str:
        """Return what the feedback lacks; '' if nothing is older than the timeout, s."""
        if self._estimator is None:
            return "the robot's YAML has no IMU"
        if self._restriction:
            return self._restriction
        if not self._wrenches:
            return "the parameter 'feedback' is false"
        stale = [source.topic for source in (self._imu, *self._wrenches) if source.stale(timeout)]
        return f'nothing received for {timeout:g} s on {", ".join(stale)}' if stale else ''

    def origin(self, stamp_ns: int, positions: Array, gait: Gait) -> Pose | None:
        """Return the pose of a gait's frame in that of :attr:`com`; None if unknown."""
        state = self._located(stamp_ns, positions)
        if state is None or self.com.stale(_TIMEOUT):
            return None
        return gait_origin(state, self.com.values, gait)

    def _located(self, stamp_ns: int, positions: Array) -> RobotState | None:
        """Return the robot with the attitude of its base; None if that is unknown."""
        if self._estimator is None:
            return None
        located = self._estimator.add_joints(stamp_ns, self._model.state(positions))
        return located[0].state if located else None

    def _on_imu(self, stamp_ns: int, quaternion: Array, gyro: Array, _: Array) -> None:
        assert self._estimator is not None
        self._estimator.add_base(stamp_ns, quaternion.copy(), gyro.copy())


def _keep(*_: Any) -> None:
    """Only the latest message is used, when it is needed."""
