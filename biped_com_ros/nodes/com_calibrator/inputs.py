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
"""Subscriptions of `com_calibrator`: joint states, IMU, wrenches, and the offsets of a tare."""

from __future__ import annotations

from functools import partial
from typing import Any

from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.identification.captures.virtual_contacts import (
    force_deviations, frame_of_readings, reading_to_sensor, virtual_sensors)
from biped_com_ros.core.identification.session import CalibrationSession
from biped_com_ros.core.wrench.aggregation import ReadingCorrection
from biped_com_ros.core.wrench.tare import AXES
from biped_com_ros.nodes.com_calibrator.parameters import ComCalibratorParameters, motor_constants
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import (
    ImuInput, JointStateInput, StampedArrayInput, WrenchInput)
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.whole_messages import subscribe
import numpy as np
from std_msgs.msg import Float64MultiArray


class CalibratorInputs:
    """
    Passes readings to the session with every joint state.

    Parameters
    ----------
    node
        The node, whose `model` is known.
    session
        Gets the readings.

    Attributes
    ----------
    offsets
        Subtracted from the wrenches, (sensors, 6), N and N m.

    """

    def __init__(self, node: RobotNode[ComCalibratorParameters],
                 session: CalibrationSession) -> None:
        model, params = node.model, node.params
        self._model, self._session = model, session
        self._motors = motor_constants(params)
        options: dict[str, Any] = node.input_options(params.sensor_timeout)
        sensors = model.config.wrench_sensors
        self._to_sensors = [reading_to_sensor(model, name) for name in sensors]
        self._corrections = [ReadingCorrection(model.config, name) for name in sensors]
        self.offsets = self._configured = np.array(
            [correction.bias for correction in self._corrections]).reshape(-1, 6)
        self._wrenches, self._up = np.full((len(sensors), 6), np.nan), np.full(3, np.nan)
        self._wrench_inputs = {
            f'wrench of {name}': WrenchInput(
                node, sensor.topic, frame_of_readings(model, name), partial(self._on_wrench, i),
                largest=largest_credible_load(model.mass), **options)
            for i, (name, sensor) in enumerate(sensors.items())}
        if virtual_sensors(model):
            self._size = 6 * len(model.config.feet)
            StampedArrayInput(
                node, names.WRENCH_COVARIANCE, self._size ** 2, self._on_covariance,
                largest=largest_credible_load(model.mass) ** 2, required=False, **options)
        imu = model.config.imu
        self._imu = ImuInput(node, imu.topic, imu.frame, self._on_imu,
                             tilt=model.config.instruments.tilt(imu.frame), **options)
        self._joints = JointStateInput(node, model.joint_names, self._on_joints,
                                       limits=model.credible_positions,
                                       offsets=tuple(model.joint_offsets.tolist()), **options)
        if params.offsets_topic:
            subscribe(node, Float64MultiArray, params.offsets_topic, self._on_offsets, LATCHED)
        node.watch_inputs({'joint states': self._joints, 'imu': self._imu, **self._wrench_inputs})

    def set_timeout(self, timeout: float) -> None:
        """Consider inputs stale after another time, s."""
        for source in (self._joints, self._imu, *self._wrench_inputs.values()):
            source.timeout = timeout

    def _on_wrench(self, index: int, stamp_ns: int, wrench: Array) -> None:
        correction = self._corrections[index]
        self._wrenches[index] = correction.corrected(
            self._to_sensors[index].dot(wrench) * correction.scale, self.offsets[index])

    def _on_covariance(self, stamp_ns: int, values: Array) -> None:
        self._session.window.force_deviations = force_deviations(
            self._model, values.reshape(self._size, self._size))

    def _on_offsets(self, message: Float64MultiArray) -> None:
        """Use the offsets of a tare; the labels are ``<sensor>/<axis>``."""
        offsets = self._configured.copy()
        sensors = tuple(self._model.config.wrench_sensors)
        for dimension, value in zip(message.layout.dim, message.data):
            sensor, _, axis = dimension.label.partition('/')
            if sensor in sensors and axis in AXES and np.isfinite(value):
                offsets[sensors.index(sensor), AXES.index(axis)] = value
        self.offsets = self._session.biases = offsets
        self._session.window.clear()

    def _on_imu(self, stamp_ns: int, quaternion: Array, *_: Any) -> None:
        self._up = rotation_from_quaternion(quaternion)[2]

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array,
                   efforts: Array) -> None:
        torques = np.full(len(efforts), np.nan)
        if self._joints.efforts_measured:
            # Errors of torques, not of the currents that may be reported.
            torques = self._model.corrected_torques(
                self._motors.torques_of_efforts(self._model, efforts))
        self._session.add_readings(1e-9 * stamp_ns, positions, torques, self._wrenches, self._up)
        if any(source.stale() for source in (self._imu, *self._wrench_inputs.values())):
            self._session.window.clear()
