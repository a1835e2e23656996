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

from dataclasses import dataclass
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import make_temporary_directory, remove_old_temporaries
from biped_com_ros.core.identification.captures.capture import (
    MotorConstants, noise_scale as scale_at_mass, SensorNoise)
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.identification.poses.pose_safety import APPROACHES, DesignOptions
from biped_com_ros.core.identification.session import SessionOptions
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from

POSTURE_TOLERANCE = 0.05
"""Largest distance of a joint from a posture in which the robot has arrived, rad."""


@dataclass(frozen=True)
class ComCalibratorParameters(RobotNodeParameters):
    """Parameters of `com_calibrator`."""

    directory: str = read_only(
        '~/.ros/biped_com_calibration', 'Directory of captures and results, which go to a '
        'subdirectory with the name of the robot; empty: a temporary directory, which is removed '
        '14 days after its last use')
    mjcf: str = read_only(
        '', 'Path of a MuJoCo model whose bodies have the names of the links; it is written with '
        'the calibrated inertials; empty: none')
    known_coms: str = read_only(
        '', 'Path of a YAML file of total centres of mass that are known otherwise, which ~/solve '
        'and ~/poses use as measurements; empty: none')
    autostart: bool = read_only(True, 'Whether to begin at once; else with ~/start')
    poses: int = parameter(40, 'Number of planned poses', '', 2, 500)
    candidates: int = parameter(
        300, 'Number of safe random poses from which the planned ones are chosen', '', 2, 10000)
    hoisted: int = parameter(
        2, 'Number of planned poses with the robot hoisted, its feet in the air: only these '
        "measure the mass below the feet's sensors", '', 0, 20)
    hoist_service: str = read_only(
        '', 'std_srvs/SetBool service that lifts the robot (true) and lowers it (false), like '
        'simulator/hang; empty: an operator does it')
    lift_feet: bool = parameter(
        False, 'Whether poses on one foot are planned too: they give more information, but the '
        'robot must keep its balance on one foot under joint position control')
    margin: float = parameter(
        0.02, 'Distance kept from the edge of the support polygon', 'm', 0.001, 0.5)
    floor_tilt: float = parameter(
        0.0087, 'Largest tilt of the floor: margin is increased by it times the height of the '
        'centre of mass. It is also the standard deviation of the tilt before it is estimated',
        'rad', 0.0, 0.2)
    spread: float = parameter(
        1.2, 'Largest distance of joints outside of the legs from posture stand', 'rad', 0.05, 3.2)
    lean: float = parameter(0.2, 'Largest lean and turn of the base', 'rad', 0.0, 0.8)
    torso_bend: float = read_only(
        0.0, 'Largest bend of a tendon torso; its virtual joints are sent with the others. 0: it '
        'stays straight', 'rad', 0.0, 0.5)
    torque_share: float = parameter(
        0.8, "Largest share of a motor's torque that is used", '', 0.05, 1.0)
    approach: str = parameter(
        'both', 'With move: whether each pose is visited once (shortest) or twice, and its joints '
        'come to rest from opposite sides (both), so that their friction can be distinguished '
        'from mass',
        options=APPROACHES)
    approach_angle: float = parameter(
        0.05, 'With approach both: how far from a pose the last move of each joint into it begins',
        'rad', 0.005, 0.2)
    approach_speed: float = parameter(
        0.03, 'With approach both: speed of the last move into a pose: the slower, the more it is '
        'friction, not inertia, that the joints come to rest with', 'rad/s', 0.001, 1.0)
    seed: int = parameter(0, 'Seed of the random poses', '', 0, 1000000)
    postures: list[str] = parameter(
        [], "Postures of the robot's YAML, in this sequence, instead of planned poses; the joints "
        'move between them on straight lines, with all soles on the ground')
    move: bool = read_only(False, 'Whether to send trajectories; else an operator moves the robot')
    automatic: bool = parameter(
        True, 'Whether to capture as soon as the robot is still in the next pose, and to solve '
        'after the last one; else with ~/capture and ~/solve')
    trajectory_topic: str = read_only(
        'joint_trajectory_controller/joint_trajectory', 'Topic of the joint trajectory controller')
    joint_speed: float = parameter(
        0.4, 'Largest speed of a joint between poses', 'rad/s', 0.01, 5.0)
    ramp: float = parameter(
        1.0, 'Time to accelerate from rest to joint_speed, and to brake: the longer, the less the '
        'robot sways', 's', 0.05, 20.0)
    arrival_tolerance: float = parameter(
        0.3, 'Largest distance of a joint from a pose in which the robot has arrived', 'rad',
        0.001, 1.0)
    settling_time: float = parameter(
        0.0, 'Time after arrival until readings count, for a robot that sways longer than the '
        'limits of stillness show', 's', 0.0, 60.0)
    pose_timeout: float = parameter(
        60.0, 'Time after arrival until a pose that cannot be captured is skipped, with move; 0: '
        'never', 's', 0.0, 3600.0)
    still_duration: float = parameter(
        1.0, 'Duration for which the robot must be still, and over which a capture averages', 's',
        0.1, 30.0)
    still_joint_range: float = parameter(
        0.004, 'Largest movement of a joint within still_duration', 'rad', 1e-6, 0.1)
    still_force_deviation: float = parameter(
        6.0, 'Largest standard deviation of a force within still_duration', 'N', 0.001, 1000.0)
    motor_joints: list[str] = read_only([''], 'Joints whose efforts are motor currents')
    motor_constants: list[float] = read_only(
        [0.0], 'Torque per current of each of motor_joints', 'N m/A')
    force_noise: float = parameter(
        0.5, 'Standard deviation of forces, in addition to the variation within a capture', 'N',
        1e-4, 100.0)
    moment_noise: float = parameter(0.02, 'Standard deviation of moments', 'N m', 1e-5, 10.0)
    torque_noise: float = parameter(
        0.3, 'Standard deviation of joint torques', 'N m', 1e-4, 100.0)
    encoder_noise: float = parameter(
        0.00175, 'Standard deviation of joint positions', 'rad', 0.0, 0.1)
    tilt_noise: float = parameter(
        0.0009, 'Standard deviation of the direction of gravity', 'rad', 0.0, 0.1)
    force_bias: float = parameter(
        3.0, 'Standard deviation of the constant bias of forces, which is estimated; 0: no bias',
        'N', 0.0, 100.0)
    moment_bias: float = parameter(
        0.1, 'Standard deviation of the bias of moments', 'N m', 0.0, 10.0)
    force_drift: float = parameter(
        3.0, 'Standard deviation of the change of the bias of forces from the first to the last '
        'pose', 'N', 0.0, 100.0)
    moment_drift: float = parameter(
        0.1, 'Standard deviation of the change of the bias of moments', 'N m', 0.0, 10.0)
    recording_gain: float = parameter(
        0.02, 'Standard deviation of the gain of all wrenches and torques from one recording to '
        'the next, as a share; part of the deviations of masses', '', 0.0, 0.5)
    wrench_gain: float = parameter(
        0.02, "Standard deviation of the gain errors of a wrench sensor's axes, as shares", '',
        0.0, 0.5)
    cross_talk: float = parameter(
        0.01, 'Standard deviation of the cross-talk of a wrench sensor: the share of one axis '
        'that another one measures; 1 N m counts as 10 N', '', 0.0, 0.2)
    sensor_shift: float = parameter(
        0.003, "Standard deviation of the misplacement of wrench sensors' frames, per axis", 'm',
        0.0, 0.1)
    sensor_turn: float = parameter(
        0.005, "Standard deviation of how wrench sensors' frames are turned, about each axis",
        'rad', 0.0, 0.2)
    torque_bias: float = parameter(
        0.3, 'Standard deviation of the bias of joint torques', 'N m', 0.0, 100.0)
    torque_gain: float = parameter(
        0.02, 'Standard deviation of the errors of torque constants, as shares', '', 0.0, 0.5)
    friction: float = parameter(
        0.02, "Standard deviation of joints' static friction, as a share of the effort limit; it "
        'is estimated where approach shows it with both signs', '', 0.0, 1.0)
    encoder_offset: float = parameter(
        0.005, 'Standard deviation of the bias of joint positions', 'rad', 0.0, 0.1)
    tilt_bias: float = parameter(
        0.005, 'Standard deviation of the bias of the direction of gravity', 'rad', 0.0, 0.1)
    sole_turn: float = parameter(
        0.005, "Standard deviation of how soles' frames are turned, about x and y", 'rad', 0.0,
        0.2)
    sole_height: float = parameter(
        0.003, "Standard deviation of the misplacement of soles' frames along z", 'm', 0.0, 0.1)
    sole_contact: float = parameter(
        0.003, 'Standard deviation of the angle between the floor and a sole that stands on it; '
        '0: soles are not used to calibrate joint offsets and IMU', 'rad', 0.0, 0.2)
    noise_at_mass: float = parameter(
        0.0, 'Mass of a robot for which noise, bias and drift of forces, moments and torques, and '
        "still_force_deviation, are given; they are multiplied by this robot's mass over it. 0: "
        'they are used as given', 'kg', 0.0, 1000.0)
    offsets_topic: str = read_only(
        'wrench_aggregator/offsets', 'Topic of the offsets that a tare found, which are '
        'subtracted from the wrenches. Empty: none')
    com_sigma: float = parameter(
        0.015, "Standard deviation of a link's centre of mass about the URDF's, per axis", 'm',
        1e-4, 0.5)
    sensor_timeout: float = parameter(
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
    tolerance = params.arrival_tolerance
    if params.postures:  # They may be near to each other.
        tolerance = min(tolerance, POSTURE_TOLERANCE)
    return settings_from(
        params, SessionOptions, directory=directory, arrival_tolerance=tolerance,
        design=_design_options(params, model),
        stillness=settings_from(
            params, StillnessOptions, 'still_',
            force_deviation=params.still_force_deviation * noise_scale(params, model.mass)))


def _design_options(params: ComCalibratorParameters, model: RobotModel) -> DesignOptions:
    fixed = () if params.torso_bend else tuple(model.config.passive_joints)
    if params.postures:
        return settings_from(
            params, DesignOptions, count=len(params.postures), fixed_joints=fixed, hoisted=0,
            candidates=max(params.candidates, len(params.postures)), approach='shortest',
            postures=tuple(params.postures), double_support=1.0)
    return settings_from(
        params, DesignOptions, count=params.poses, fixed_joints=fixed, postures=(),
        candidates=max(params.candidates, params.poses),
        approach=params.approach if params.move else 'shortest',
        hoisted=min(params.hoisted, params.poses - 1),
        double_support=0.34 if params.lift_feet else 1.0)


def noise_scale(params: ComCalibratorParameters, mass: float) -> float:
    """Return by what errors in N and N m of a robot of `mass`, kg, are multiplied."""
    return scale_at_mass(mass, params.noise_at_mass)


def sensor_noise(params: ComCalibratorParameters, mass: float) -> SensorNoise:
    """Return the noise of the sensors of a robot of `mass`, kg; see `noise_at_mass`."""
    noise: SensorNoise = settings_from(
        params, SensorNoise, force=params.force_noise, moment=params.moment_noise,
        torque=params.torque_noise, encoder=params.encoder_noise, tilt=params.tilt_noise)
    return noise.scaled(noise_scale(params, mass))


def motor_constants(params: ComCalibratorParameters) -> MotorConstants:
    """Return torque per current by joint; ConfigurationError if the lists do not match."""
    joints = [name for name in params.motor_joints if name]
    constants = list(params.motor_constants)[:len(joints)] if joints else []
    if len(constants) != len(joints):
        raise ConfigurationError(
            f'motor_constants has {len(constants)} numbers for the {len(joints)} joints of '
            'motor_joints; give one per joint')
    return MotorConstants(dict(zip(joints, constants)))
