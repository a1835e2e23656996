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
"""Inputs and outputs of the simulated robot: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from biped_com_ros.core.settings import setting, Settings, settings
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.mjcf import WorldOptions

#: Temperature of the sensors when they are switched on, deg C.
ROOM_TEMPERATURE = 20.0


def _sigma(description: str, unit: str, largest: float) -> Any:
    return setting(0.0, f'Standard deviation of {description}', unit, 0.0, largest)


def _delay(description: str) -> Any:
    return setting(0.0, f'Age of {description}', 's', 0.0, 1.0)


def _share(description: str, of: str) -> Any:
    return setting(0.0, f'{description}, as a share of the {of}', '', 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class SensorOptions(Settings):
    """Errors of the sensors; noise is per sample, readings are stamped on arrival."""

    encoder_noise: float = _sigma("the joint positions' noise", 'rad', 0.5)
    encoder_offset: float = _sigma("the joint positions' constant errors", 'rad', 0.5)
    velocity_noise: float = _sigma("the joint velocities' noise", 'rad/s', 10.0)
    effort_noise: float = _sigma("the joint efforts' noise", 'N m', 1e5)
    force_noise: float = _sigma("the force sensors' noise", 'N', 1e6)
    torque_noise: float = _sigma("the torque sensors' noise", 'N m', 1e5)
    force_bias: float = _sigma("the force sensors' constant errors, per axis", 'N', 1e6)
    torque_bias: float = _sigma("the torque sensors' constant errors, per axis", 'N m', 1e5)
    gyro_noise: float = _sigma("the gyroscopes' noise", 'rad/s', 10.0)
    accelerometer_noise: float = _sigma("the accelerometers' noise", 'm/s2', 100.0)
    tilt_bias: float = _sigma("the IMUs' constant roll and pitch errors", 'rad', 0.5)
    effort_gain: float = _sigma(
        "the gain errors of the joints' measured efforts (motor constants)", '', 0.5)
    wrench_gain: float = _sigma(
        "the gain errors of the force-torque sensors' axes, as shares", '', 0.5)
    cross_talk: float = _sigma(
        "the force-torque sensors' cross-talk: the share of each axis that another one "
        'measures; 1 N m counts as 10 N', '', 0.2)
    force_drift: float = _sigma("the drift of the force sensors' biases", 'N/h', 1e6)
    torque_drift: float = _sigma("the drift of the torque sensors' biases", 'N m/h', 1e5)
    force_temperature: float = _sigma(
        "the temperature coefficients of the force sensors' biases", 'N/K', 1e5)
    torque_temperature: float = _sigma(
        "the temperature coefficients of the torque sensors' biases", 'N m/K', 1e4)
    warming: float = setting(
        0.0, 'How much warmer the force-torque sensors become', 'K', -100.0, 100.0)
    warming_time: float = setting(600.0, 'Time constant of the warming', 's', 0.1, 100000.0)
    force_range: float = setting(
        0.0, 'Largest absolute force that a sensor measures; 0: any', 'N', 0.0, 1e8)
    torque_range: float = setting(
        0.0, 'Largest absolute torque that a sensor measures; 0: any', 'N m', 0.0, 1e7)
    wrench_position: float = _sigma(
        "the misplacement of the force-torque sensors' frames, per axis", 'm', 0.1)
    wrench_rotation: float = _sigma(
        "the misplacement of the force-torque sensors' axes, about each of them", 'rad', 0.5)
    imu_rotation: float = _sigma("the IMUs' mounting, about each axis", 'rad', 0.5)
    joint_delay: float = _delay('joint_states at publication')
    wrench_delay: float = _delay('wrenches at publication')
    imu_delay: float = _delay('IMU data at publication')

    def scaled(self, factor: float) -> SensorOptions:
        """Return sensors whose errors in N and N m, ranges included, are `factor` larger."""
        return replace(self, **{
            name: factor * value for name, value in vars(self).items()
            if name.startswith(('force_', 'torque_')) or name == 'effort_noise'})


@dataclass(frozen=True, kw_only=True)
class DriveOptions(Settings):
    """What real drives do besides following their commands."""

    joint_friction: float = _share("The joints' Coulomb friction", 'effort limit')
    joint_stiction: float = _share(
        'How much more effort it takes to break a joint away from rest', 'effort limit')
    stribeck_velocity: float = setting(
        0.05, 'Speed at which most of joint_stiction is gone', 'rad/s', 1e-4, 10.0)
    viscous_friction: float = _share(
        "The joints' viscous friction at the velocity limit", 'effort limit')
    friction_scatter: float = _sigma("the logarithm of each joint's friction", '', 2.0)
    rotor_inertia: float = setting(
        0.0, 'Reflected inertia of the rotors, as a share of the inertia that the joint moves; '
        'raised to what stable drives need', '', 0.0, 10.0)
    drive_noise: float = _share("Standard deviation of the drives' efforts", 'effort limit')
    drive_speed: float = setting(
        0.0, "Largest speed of the drives' setpoints, as a share of the velocity limit; 0: any",
        '', 0.0, 1.0)
    command_delay: float = _delay('commands on arrival at the motors')
    tendon_delay: float = _delay('commands of tendon lengths, in addition to command_delay')
    tendon_noise: float = _sigma('the tendon lengths that are set', 'm', 0.01)
    tendon_speed: float = setting(0.0, 'Largest speed of the winches; 0: any', 'm/s', 0.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class ErrorSettings(Settings):
    """All errors of sensors, drives and soles that are given by name."""

    sensors: SensorOptions = settings(SensorOptions)
    drives: DriveOptions = settings(DriveOptions)
    sole_position: float = _sigma('the misplacement of the soles in the feet, per axis', 'm', 0.05)


@dataclass(frozen=True, kw_only=True)
class PlantOptions:
    """
    How a robot is simulated.

    Attributes
    ----------
    dt
        Time between two observations, s; a multiple of ``world.timestep``.
    seed
        Of all random numbers.
    errors
        Hidden errors by link.
    com_sigma, mass_sigma
        Standard deviations of further hidden errors, drawn for every link: m per axis, and
        share of its mass.
    drives
        What the drives do besides following their commands.
    sole_position
        Standard deviation of each sole's misplacement in its foot, per axis, m.
    instrument_errors
        Errors of instruments that are not drawn; see ``instruments``.
    tendons
        Whether to simulate the torso's tendons, if it has any; else its virtual joints.

    """

    dt: float = 0.002
    seed: int = 0
    world: WorldOptions = WorldOptions()
    sensors: SensorOptions = SensorOptions()
    errors: Mapping[str, LinkError] = field(default_factory=dict)
    com_sigma: float = 0.0
    mass_sigma: float = 0.0
    drives: DriveOptions = DriveOptions()
    sole_position: float = 0.0
    instrument_errors: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    tendons: bool = True


@dataclass(kw_only=True)
class Command:
    """
    Command to the motors, in the order of ``Plant.actuated_joint_names``.

    The effort is ``kp (position - q) + kd (velocity - v) + effort``, clamped to the URDF's limit.

    Attributes
    ----------
    position, velocity, effort
        Shape (n,): rad, rad/s, N m.
    tendon_lengths
        Shape (tendons,), m; empty without a tendon torso.

    """

    position: Array
    velocity: Array
    effort: Array
    tendon_lengths: Array


@dataclass(kw_only=True)
class Observation:
    """
    Sensor readings; the next step overwrites the arrays.

    Attributes
    ----------
    time
        Of the measurement, s.
    joint_positions, joint_velocities, joint_efforts
        In the order of ``Plant.joint_names``; the efforts are the motors', rad, rad/s, N m.
    wrenches
        Shape (sensors, 6), force first, as the sensors report them (``sign`` applied), N, N m.
    imu_quaternions, angular_velocities, linear_accelerations
        Shape (imus, 4) (x, y, z, w) in the gravity-aligned world, (imus, 3) in the IMU; an
        acceleration at rest is +g.
    tendon_lengths, tendon_tensions
        Shape (tendons,), m and N (positive pulls).
    temperature
        Of the force-torque sensors, deg C.

    """

    time: float
    joint_positions: Array
    joint_velocities: Array
    joint_efforts: Array
    wrenches: Array
    imu_quaternions: Array
    angular_velocities: Array
    linear_accelerations: Array
    tendon_lengths: Array
    tendon_tensions: Array
    temperature: float = ROOM_TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class Truth:
    """
    True state, in the world frame.

    Attributes
    ----------
    com, com_velocity
        Shape (3,), m and m/s.
    link_coms
        Shape (links, 3) in the order of ``Plant.link_names``, m.
    zmp
        Shape (3,) on the floor, NaN without contact, m.
    sole_wrenches
        Shape (feet, 6): ground on robot in each sole frame, N, N m.
    base_position, base_quaternion, base_twist
        Of the link `base_link`: (3,), (4,) x, y, z, w, and (6,) linear then angular in its axes.

    """

    com: Array
    com_velocity: Array
    link_coms: Array
    zmp: Array
    sole_wrenches: Array
    base_position: Array
    base_quaternion: Array
    base_twist: Array
