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
"""Parameters of `com_calibrator`, and what follows from them for the calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import make_temporary_directory, remove_old_temporaries
from biped_com_ros.core.identification.captures.capture import (
    MotorConstants, noise_scale, SensorNoise)
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.identification.session import SessionOptions
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, settings, settings_from_lines
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.parameters import read_only
from biped_com_ros.ros.topics import names

POSTURE_TOLERANCE = 0.05
"""Largest distance of a joint from a posture in which the robot has arrived, rad."""


@dataclass(frozen=True)
class ComCalibratorParameters(RobotNodeParameters):
    """Parameters of `com_calibrator`."""

    directory: str = read_only(
        '~/.ros/biped_com_calibration', 'Directory of captures and results, which go to a '
        'subdirectory with the name of the robot; empty: a temporary directory, which is removed '
        '14 days after its last use')
    autostart: bool = read_only(True, 'Whether to begin at once; else with ~/start')
    session: SessionOptions = settings(SessionOptions, directory=Path())
    hoist_service: str = read_only(
        '', 'std_srvs/SetBool service that lifts the robot (true) and lowers it (false), like '
        'simulator/hang; empty: an operator does it')
    lift_feet: bool = setting(
        False, 'Whether poses on one foot are planned too: they give more information, but the '
        'robot must keep its balance on one foot under joint position control')
    trajectory_topic: str = read_only(
        names.JOINT_TRAJECTORY, 'Topic of the joint trajectory controller')
    joint_speed: float = setting(0.4, 'Largest speed of a joint between poses', 'rad/s', 0.01, 5.0)
    ramp: float = setting(
        1.0, 'Time to accelerate from rest to joint_speed, and to brake: the longer, the less the '
        'robot sways', 's', 0.05, 20.0)
    motor_joints: list[str] = read_only([''], 'Joints whose efforts are motor currents')
    motor_constants: list[float] = read_only(
        [0.0], 'Torque per current of each of motor_joints', 'N m/A')
    noise: list[str] = setting(
        [''], "Standard deviations of sensors that differ from their defaults, each '<name> "
        "<value>', such as 'force_noise 0.1'; config/com_calibrator.yaml has the names")
    noise_at_mass: float = setting(
        0.0, 'Mass of a robot for which noise, bias and drift of forces, moments and torques, and '
        "still_force_deviation, are given; they are multiplied by this robot's mass over it. 0: "
        'they are used as given', 'kg', 0.0, 1000.0)
    offsets_topic: str = read_only(
        names.OFFSETS, 'Topic of the offsets that a tare found, which are '
        'subtracted from the wrenches. Empty: none')
    sensor_timeout: float = setting(
        0.5, 'Time without a message after which an input is stale', 's', 0.001, 60.0)


def results_directory(params: ComCalibratorParameters, model: RobotModel) -> Path:
    """Return where results are written; without `directory`, a new temporary one."""
    directory = params.directory or _temporary_directory()
    return Path(directory).expanduser() / model.config.name


def _temporary_directory() -> Path:
    """Make a directory for the results of one run, and remove those of long ago."""
    prefix = 'biped_com_calibration.'
    remove_old_temporaries(prefix)
    return make_temporary_directory(prefix)


def session_options(params: ComCalibratorParameters, model: RobotModel,
                    directory: Path) -> SessionOptions:
    """Return the options of a calibration session."""
    given, noise = params.session, sensor_noise(params, model.mass)
    tolerance = given.arrival_tolerance
    if given.design.postures:  # They may be near to each other.
        tolerance = min(tolerance, POSTURE_TOLERANCE)
    force_deviation = given.stillness.force_deviation * noise_scale(
        model.mass, params.noise_at_mass)
    return replace(
        given, directory=directory, robot=params.robot, arrival_tolerance=tolerance,
        design=replace(_design_options(params, model), floor_tilt=noise.floor_tilt),
        stillness=replace(given.stillness, force_deviation=force_deviation))


def _design_options(params: ComCalibratorParameters, model: RobotModel) -> DesignOptions:
    given = params.session.design
    fixed = () if given.torso_bend else tuple(model.config.passive_joints)
    if given.postures:
        return replace(
            given, count=len(given.postures), fixed_joints=fixed, hoisted=0, approach='shortest',
            double_support=1.0)
    return replace(
        given, fixed_joints=fixed,
        approach=given.approach if params.session.move else 'shortest',
        double_support=0.34 if params.lift_feet else 1.0)


def sensor_noise(params: ComCalibratorParameters, mass: float) -> SensorNoise:
    """Return the noise of the sensors of a robot of `mass`, kg; see `noise_at_mass`."""
    return settings_from_lines(SensorNoise, params.noise, 'noise').scaled(
        noise_scale(mass, params.noise_at_mass))


def motor_constants(params: ComCalibratorParameters) -> MotorConstants:
    """Return torque per current by joint; ConfigurationError if the lists do not match."""
    joints = [name for name in params.motor_joints if name]
    constants = list(params.motor_constants)[:len(joints)] if joints else []
    if len(constants) != len(joints):
        raise ConfigurationError(
            f'motor_constants has {len(constants)} numbers for the {len(joints)} joints of '
            'motor_joints; give one per joint')
    return MotorConstants(dict(zip(joints, constants)))
