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
"""Converts MuJoCo's sensor data to the readings of the robot's sensors, with their errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.sim.faults import WrenchFaults
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.instruments import ErrorSource, ImuMounting, WrenchErrors
from biped_com_ros.sim.interface import (
    Observation, PlantOptions, ROOM_TEMPERATURE, SensorOptions)
from biped_com_ros.sim.sensors import DelayedSensors, steps_of
import numpy as np

WRENCH_SENSOR_SIGN = -1.0
"""MuJoCo's force and torque sensors times this are environment on robot."""

WXYZ_TO_XYZW = np.array((1, 2, 3, 0))
"""Indices that put MuJoCo's quaternion (w, x, y, z) into ROS's order (x, y, z, w)."""


class Readings:
    """
    Reads encoders, force-torque sensors and IMUs into an :class:`Observation`.

    Parameters
    ----------
    model, data
        MuJoCo's.
    config
        Names and signs of the sensors.
    joints
        Joints with an encoder.
    options
        Noise, biases, delays, and the seed.
    source
        Of the systematic errors.

    Attributes
    ----------
    encoder_offsets
        Constant errors of the joint positions, shape (n,), rad.
    faults
        Of the wrench sensors; none at first.

    """

    def __init__(self, model: Any, data: Any, config: RobotConfig, joints: tuple[str, ...],
                 options: PlantOptions, source: ErrorSource) -> None:
        self._data, s, dt = data, options.sensors, options.dt
        self._motor_dofs = np.array([model.joint(f'joint/{n}').dofadr[0] for n in joints],
                                    dtype=int)
        self._index(model, config, joints)
        self._draw_errors(s, np.random.default_rng((options.seed, 1)), source, config, joints)
        self.faults = WrenchFaults(tuple(config.wrench_sensors), dt)
        self._dt, self._count = dt, 0  # readings since the sensors were switched on
        seeds = np.random.SeedSequence((options.seed, 2)).spawn(3)
        self._joints = DelayedSensors(
            (3, len(joints)), [[s.encoder_noise], [s.velocity_noise], [s.effort_noise]], seeds[0],
            steps_of(s.joint_delay, dt, 'joint_delay'))
        self._wrenches = DelayedSensors(
            self._wrench_slots.shape, [s.force_noise] * 3 + [s.torque_noise] * 3, seeds[1],
            steps_of(s.wrench_delay, dt, 'wrench_delay'))
        self._imus = DelayedSensors(
            self._imu_slots.shape,
            [0.0] * 4 + [s.gyro_noise] * 3 + [s.accelerometer_noise] * 3, seeds[2],
            steps_of(s.imu_delay, dt, 'imu_delay'))

    def clear(self) -> None:
        """Discard delayed readings."""
        for sensors in (self._joints, self._wrenches, self._imus):
            sensors.clear()

    def read(self, observation: Observation, real: Any) -> None:
        """
        Fill `observation`, in whose joint arrays the encoders' joints have the indices `real`.

        Joints are read at the instant of the forces, not after the step.
        """
        joints = self._read_joints()
        self._count += 1
        observation.temperature = ROOM_TEMPERATURE + self._wrench_errors.warmth(self._time)
        observation.joint_positions[real] = joints[0]
        observation.joint_velocities[real] = joints[1]
        observation.joint_efforts[real] = joints[2]
        observation.wrenches[:] = self._read_wrenches()
        imus = self._read_imus()
        observation.imu_quaternions[:] = imus[:, :4]
        observation.angular_velocities[:] = imus[:, 4:7]
        observation.linear_accelerations[:] = imus[:, 7:]

    def _read_joints(self) -> Array:
        joints = self._joints.values
        self._data.sensordata.take(self._joint_slots, out=joints[:2])
        self._data.qfrc_actuator.take(self._motor_dofs, out=joints[2])
        joints[0] += self.encoder_offsets
        joints[2] *= self._effort_gains
        return self._joints.read()

    @property
    def _time(self) -> float:
        """Time since the sensors were switched on, s."""
        return (self._count - 1) * self._dt

    def _read_wrenches(self) -> Array:
        wrenches = self._wrenches.values
        self._data.sensordata.take(self._wrench_slots, out=wrenches)
        wrenches *= self._wrench_signs
        self._wrench_errors.apply(wrenches, self._time)
        return self.faults.apply(self._wrench_errors.saturate(self._wrenches.read()))

    def _read_imus(self) -> Array:
        self._data.sensordata.take(self._imu_slots, out=self._imus.values)
        if self._is_tilted:
            self._tilt(self._imus.values)
        self._mounting.apply(self._imus.values)
        return self._imus.read()

    def _tilt(self, imus: Array) -> None:
        """Multiply each orientation by its constant small rotation about the world's x and y."""
        for row, (roll, pitch) in zip(imus, self._tilts):
            x, y, z, w = row[:4]
            a, b = 0.5 * roll, 0.5 * pitch
            tilted = np.array((x + a * w + b * z, y + b * w - a * z, z + a * y - b * x,
                               w - a * x - b * y))
            row[:4] = tilted / np.linalg.norm(tilted)

    def _index(self, model: Any, config: RobotConfig, joints: tuple[str, ...]) -> None:
        """Find the indices of each quantity in MuJoCo's array of sensor data."""
        self._joint_slots = sensor_slots(
            model, (f'{kind}/{n}' for kind in ('jointpos', 'jointvel') for n in joints)
        ).reshape(2, -1)
        self._wrench_slots = sensor_slots(model, (
            f'wrench/{n}/{k}' for n in config.wrench_sensors for k in ('force', 'torque'))
        ).reshape(-1, 6)
        # Quaternion, angular velocity, acceleration: ten numbers per IMU.
        slots = sensor_slots(model, (
            f'imu/{n}/{k}' for n in config.imus
            for k in ('quaternion', 'gyro', 'accelerometer'))).reshape(-1, 10)
        self._imu_slots = np.concatenate((slots[:, WXYZ_TO_XYZW], slots[:, 4:]), axis=1)
        self._wrench_signs = WRENCH_SENSOR_SIGN / np.array(
            [sensor.factors for sensor in config.wrench_sensors.values()]).reshape(-1, 6)

    def _draw_errors(self, s: SensorOptions, generator: np.random.Generator,
                     source: ErrorSource, config: RobotConfig, joints: tuple[str, ...]) -> None:
        sensors, imus = tuple(config.wrench_sensors), tuple(config.imus)
        self.encoder_offsets = source.settle('offset', joints, s.encoder_offset * (
            generator.standard_normal((len(joints), 1))))[:, 0]
        biases = np.array([s.force_bias] * 3 + [s.torque_bias] * 3) * generator.standard_normal(
            self._wrench_slots.shape)
        self._tilts = s.tilt_bias * generator.standard_normal((len(imus), 2))
        self._is_tilted = s.tilt_bias > 0.0
        self._wrench_errors = WrenchErrors(sensors, s, source, biases)
        self._effort_gains = 1.0 + source.draw('effort_gain', joints, s.effort_gain)[:, 0]
        self._mounting = ImuMounting(source.draw('rotation', imus, s.imu_rotation))


def sensor_slots(model: Any, names: Iterable[str]) -> Any:
    """Return the indices of the named sensors' values in MuJoCo's ``sensordata``, in order."""
    slots: list[int] = []
    for name in names:
        sensor = model.sensor(name)
        slots.extend(range(sensor.adr[0], sensor.adr[0] + sensor.dim[0]))
    return np.array(slots, dtype=int)
