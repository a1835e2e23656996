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
Estimates what a hand carries, from joint torques, foot wrenches and wrenches of the hands.

Joint states, IMU and wrenches are averaged, and compared with the model `rate` times a second. At
the start the hands have to be empty for a second: a payload is found by what it changes. What is
estimated is added to the model by `com_estimator`, `zmp_monitor` and `gravity_compensation`.

==================== ============================== =========================================
topic                type                           what
==================== ============================== =========================================
joint_states         sensor_msgs/JointState         in; with efforts, if it has them
imu (robot's YAML)   sensor_msgs/Imu                in
<foot>/wrench        geometry_msgs/WrenchStamped    in, of wrench_aggregator
<hand>/wrench        geometry_msgs/WrenchStamped    in, of wrench_aggregator
~/payload            geometry_msgs/InertiaStamped   mass and centre of mass in the frame of the
                                                    hand's link; mass 0: the hands are empty
~/covariance         std_msgs/Float64MultiArray     of mass, kg, and first moment, kg m, row by
                                                    row, (4, 4); while something is carried
==================== ============================== =========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
import sys
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.estimator import Payload, PayloadEstimator, PayloadSettings
from biped_com_ros.core.payload.residuals import PayloadMeasurement
from biped_com_ros.core.settings import setting, settings
from biped_com_ros.core.signals.filters import RecentMean
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.diagnostics import OK, Report, WARN
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.input_watch import waiting_for
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.frames import frame_prefix, with_prefix
from biped_com_ros.ros.topics.input_base import inputs_of
from biped_com_ros.ros.topics.inputs import ImuInput, JointStateInput, WrenchInput
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import copy_of, STATE_OUTPUT
from biped_com_ros.ros.topics.services import trigger_service
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from geometry_msgs.msg import InertiaStamped
import numpy as np


@dataclass(frozen=True)
class PayloadEstimatorParameters(RobotNodeParameters):
    """Parameters of `payload_estimator`."""

    rate: float = setting(
        50.0, 'Rate of the estimate and of ~/payload; sensors are averaged in between', 'Hz', 5.0,
        500.0)
    sensor_timeout: float = setting(
        0.5, 'Time without messages after which an input is stale', 's', 0.001, 60.0)
    payload: PayloadSettings = settings(PayloadSettings)


class PayloadEstimation(RobotNode[PayloadEstimatorParameters]):
    """
    Sensors in, payload out, see the module.

    Attributes
    ----------
    imu_mean, wrench_means
        Means of gyroscope and accelerometer, and of the wrench of each foot and hand by name.

    """

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('payload_estimator', PayloadEstimatorParameters, **node_kwargs)

    def build(self, model: RobotModel) -> None:
        """Make the estimator, its inputs and its outputs."""
        self._start()
        self._efforts, self.imu_mean = RecentMean(len(model.joint_names)), RecentMean(6)
        self.wrench_means: dict[str, RecentMean] = {}
        self._make_inputs(model)
        hands = {name: hand.frame for name, hand in model.config.hands.items()}
        prefix = frame_prefix(self)
        self._messages = {}
        for name, frame in hands.items():
            message = InertiaStamped()
            message.header.frame_id = frame
            self._messages[name] = with_prefix(message, prefix)
        self._last_hand = next(iter(hands))
        self._publisher = self.create_publisher(InertiaStamped, '~/payload', copy_of(STATE_OUTPUT))
        self._covariance = float_array_publisher(self, '~/covariance', 16)
        self._throttle = StampThrottle(self.params.rate)
        self.diagnostics.add('payload', self._report)
        trigger_service(self, '~/reset', self._reset)

    def _start(self) -> None:
        self.estimator = PayloadEstimator(self.model, self.params.payload)
        self._reported: str | None = None

    def _make_inputs(self, model: RobotModel) -> None:
        config, options = model.config, self.input_options(self.params.sensor_timeout)
        imu = config.imu
        self.joints = JointStateInput(
            self, model.joint_names, self._on_joints, limits=model.credible_positions,
            **model.corrections_of(model.joint_names), **options)
        self.imu = ImuInput(self, imu.topic, imu.frame, self._on_imu, need_acceleration=True,
                            tilt=config.instruments.tilt(imu.frame), **options)
        # Wrenches of virtual feet come from the model, and do not know the payload.
        feet = {name: config.sole_frame(name) for name, foot in config.feet.items()}
        is_measured = not config.feet_with_force_z and all(
            foot.used_sensors for foot in config.feet.values())
        self._feet = tuple(feet) if is_measured else ()
        frames = {name: feet[name] for name in self._feet} | {
            config.hand_label(name): hand.frame for name, hand in config.hands.items()
            if hand.wrench_sensors}
        self._hands = tuple(name for name in frames if name not in self._feet)
        for name, frame in frames.items():
            self.wrench_means[name] = RecentMean(6)
            WrenchInput(self, names.wrench_of(name), frame,
                        partial(self._on_wrench, name), required=False,
                        largest=largest_credible_load(model.mass), **options)
        self.watch_inputs({'joint states': self.joints, 'acceleration': self.imu})

    def apply_parameters(self, params: PayloadEstimatorParameters) -> None:
        """Use another rate, and another age of stale inputs."""
        self._throttle.set_rate(params.rate)
        for source in list(inputs_of(self)):
            source.timeout = params.sensor_timeout

    def use_inertials(self) -> None:
        """Compare with calibrated masses; what is carried then becomes part of the baseline."""
        self._start()

    def _reset(self) -> str:
        self.estimator.reset()
        return 'estimate reset: assuming empty hands'

    # -- on every message

    def _on_imu(self, stamp_ns: int, quaternion: Array, angular_velocity: Array,
                acceleration: Array) -> None:
        self.imu_mean.add(stamp_ns, angular_velocity, acceleration)

    def _on_wrench(self, name: str, stamp_ns: int, wrench: Array) -> None:
        self.wrench_means[name].add(stamp_ns, wrench)

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array,
                   efforts: Array) -> None:
        self._efforts.add(stamp_ns, efforts)
        if not self._throttle.is_due(stamp_ns):
            return
        imu, mean_efforts = self.imu_mean.take(stamp_ns), self._efforts.take(stamp_ns)
        feet, hands = self._wrenches_of(stamp_ns, self._feet), self._wrenches_of(
            stamp_ns, self._hands)
        if imu is None:
            return
        payload = self.estimator.update(stamp_ns, PayloadMeasurement(
            self.model.state(positions, velocities),
            mean_efforts if self.joints.efforts_measured else None, imu[:3], imu[3:], feet,
            hands))
        self._publish(stamp_ns, payload)

    def _wrenches_of(self, stamp_ns: int, names: Sequence[str]) -> Array | None:
        taken = [self.wrench_means[name].take(stamp_ns) for name in names]
        found = [wrench for wrench in taken if wrench is not None]
        return np.array(found) if names and len(found) == len(names) else None

    def _publish(self, stamp_ns: int, payload: Payload | None) -> None:
        if payload is not None:
            self._last_hand = payload.hand
        message = self._messages[self._last_hand]
        message.header.stamp = stamp_to_msg(stamp_ns)
        inertia, com = message.inertia, message.inertia.com
        inertia.m = 0.0 if payload is None else payload.mass
        com.x, com.y, com.z = (
            (0.0, 0.0, 0.0) if payload is None else payload.com_in_hand.tolist())
        self._publisher.publish(message)
        if payload is not None:
            self._covariance.publish_value(payload.covariance.reshape(-1))
        self._log(payload)

    def _log(self, payload: Payload | None) -> None:
        hand = '' if payload is None else payload.hand
        if hand == (self._reported or ''):
            return
        self._reported = hand
        self.get_logger().info(
            'payload removed: the hands are empty' if payload is None else
            f"payload of about {payload.mass:.1f} kg in hand '{hand}'")

    def _report(self) -> Report:
        payload, problem = self.estimator.payload, self.estimator.problem
        if missing := self.missing_inputs:
            return WARN, f'not estimated: {waiting_for(missing)}', {}
        if payload is None:
            return (WARN, problem, {}) if problem else (OK, 'the hands are empty', {})
        x, y, z = payload.com_in_hand.tolist()
        return OK, f"{payload.mass:.2f} kg in the hand '{payload.hand}'", {
            'mass [kg]': payload.mass, 'standard deviation [kg]': payload.mass_deviation,
            'centre of mass in the hand [m]': f'{x:.3f}, {y:.3f}, {z:.3f}'}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(PayloadEstimation, argv)


if __name__ == '__main__':
    sys.exit(main())
