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
Calibration of robots without foot sensors: the wrenches on their feet are unknowns.

A virtual foot gets a sensor at its sole whose readings may be wrong by the weight of the robot.
The wrench then explains whatever the equations of the whole and of the leg have in common, and
what remains of them are equations of joint torques alone: those of the other leg, of the arms, and
of how a stance leg's torques change from pose to pose. What joint torques and the model imply for
the wrench is used for deciding which feet stand, not as a measurement, since it depends on the
masses that are sought.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.config import WrenchSensorConfig
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import Synchronizer
from biped_com_ros.core.wrench.virtual_feet import VirtualFeet
from biped_com_ros.core.wrench.virtual_foot_wrenches import VirtualWrenchSettings
import numpy as np

_SUFFIX = '_virtual'


def with_virtual_sensors(model: RobotModel) -> RobotModel:
    """
    Return the robot with an uncertain sensor at the sole of each virtual foot.

    The sensor is called ``<foot>_virtual``; its topic is that of the foot's wrench. Robots without
    virtual feet are returned as they are.

    Raises
    ------
    ConfigurationError
        If a sensor measures the vertical force alone.

    """
    config = model.config
    if pads := [name for name, sensor in config.wrench_sensors.items() if sensor.measures_force_z]:
        raise ConfigurationError(
            f'{", ".join(pads)} of {config.name} measure the vertical force alone (measures: '
            'force_z), but a calibration needs the moments of the ground: leave them out of the '
            "YAML for it, with 'source: virtual' of the feet where joint torques are measured")
    virtual = {name: foot for name, foot in config.feet.items() if foot.is_virtual}
    if not virtual:
        return model
    sensors = {f'{name}{_SUFFIX}': WrenchSensorConfig(
        foot.sole, f'wrench_aggregator/{name}/wrench', deviation=GRAVITY * model.mass)
        for name, foot in virtual.items()}
    feet = {name: replace(foot, source='sensor', wrench_sensors=(f'{name}{_SUFFIX}',))
            if foot.is_virtual else foot for name, foot in config.feet.items()}
    return RobotModel(replace(
        config, feet=feet, wrench_sensors={**config.wrench_sensors, **sensors}), model.urdf)


def frame_of_readings(model: RobotModel, sensor: str) -> str:
    """Return the frame in which the readings of a sensor arrive: of virtual ones, the sole's."""
    foot = _virtual_foot(model, sensor)
    config = model.config
    return config.sole_frame(foot) if foot else config.wrench_sensors[sensor].frame


def reading_to_sensor(model: RobotModel, sensor: str) -> Array:
    """Return the matrix (6, 6) that takes readings to the frame of their sensor."""
    foot = _virtual_foot(model, sensor)
    if not foot:
        return np.eye(6)
    pose = sole_in_link(model.config.feet[foot])
    return wrench_adjoint(pose.rotation, pose.position)


def virtual_sensors(model: RobotModel) -> dict[str, str]:
    """Return the foot of each virtual sensor of a robot of :func:`with_virtual_sensors`."""
    feet = {name: _virtual_foot(model, name) for name in model.config.wrench_sensors}
    return {name: foot for name, foot in feet.items() if foot}


def force_deviations(model: RobotModel, covariance: Array) -> Array:
    """
    Return the standard deviation of the force of each sensor, zero of real ones, (S,), N.

    Parameters
    ----------
    model
        The robot, of :func:`with_virtual_sensors`.
    covariance
        Of the wrenches of all feet, (6 F, 6 F).

    """
    feet, virtual = list(model.config.feet), virtual_sensors(model)
    of_feet = np.sqrt(covariance.diagonal()[2::6])
    return np.array([of_feet[feet.index(virtual[name])] if name in virtual else 0.0
                     for name in model.config.wrench_sensors])


def _virtual_foot(model: RobotModel, sensor: str) -> str:
    """Return the foot of a virtual sensor; empty for a real one."""
    if not model.config.wrench_sensors[sensor].deviation:
        return ''
    return next((name for name, foot in model.config.feet.items()
                 if sensor == f'{name}{_SUFFIX}' and sensor in foot.wrench_sensors), '')


class VirtualReadings:
    """
    Readings of the sensors of virtual feet, estimated from a recording of joints and IMU.

    Parameters
    ----------
    model
        The robot, of :func:`with_virtual_sensors`.

    Attributes
    ----------
    sensors
        Indices of these sensors among all of the robot.
    readings
        Last wrenches in the frames of the sensors (len(sensors), 6); NaN before the first.
    deviations
        Standard deviations of the normal forces of these, (len(sensors),), N.

    """

    def __init__(self, model: RobotModel) -> None:
        names, feet = list(model.config.wrench_sensors), list(model.config.feet)
        virtual = virtual_sensors(model)
        self.sensors = [names.index(name) for name in virtual]
        self._model = model
        self._feet = [feet.index(foot) for foot in virtual.values()]
        self._matrices = np.array([reading_to_sensor(model, name) for name in virtual])
        self._estimator = (VirtualFeet(model, VirtualWrenchSettings()) if self.sensors else None)
        self._pairs = Synchronizer(2)
        self.readings = np.full((len(self.sensors), 6), np.nan)
        self.deviations = np.zeros(len(self.sensors))

    def add_imu(self, stamp_ns: int, R_world_imu: Array, angular_velocity: Array,
                acceleration: Array) -> None:
        """Take a sample of the IMU; rad/s and m/s^2 in its frame."""
        self._add(1, stamp_ns, (angular_velocity.copy(), acceleration.copy(), R_world_imu))

    def add_joints(self, stamp_ns: int, positions: Array, velocities: Array,
                   torques: Array) -> None:
        """Take a joint state, in the order of the model; without torques nothing happens."""
        if self._estimator is not None and np.isfinite(torques).all():
            self._add(0, stamp_ns, (
                stamp_ns, self._model.state(positions, velocities), torques.copy()))

    def _add(self, source: int, stamp_ns: int, sample: tuple[Any, ...]) -> None:
        if self._estimator is None:
            return
        for _, (joints, imu) in self._pairs.add(source, stamp_ns, sample):
            if self._estimator.update(*joints, *imu):
                self._read(self._estimator)

    def _read(self, found: VirtualFeet) -> None:
        self.deviations = found.deviations[self._feet, 2]
        self.readings = np.einsum('sij,sj->si', self._matrices, found.sensors.wrenches[self._feet])
