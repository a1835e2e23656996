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
from dataclasses import dataclass, field

from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.mjcf import WorldOptions

#: Temperature of the sensors when they are switched on, deg C.
ROOM_TEMPERATURE = 20.0


@dataclass(frozen=True, kw_only=True)
class SensorOptions:
    """
    Errors of the sensors; the standard deviations of noise are per sample.

    Attributes
    ----------
    encoder_noise, encoder_offset
        Standard deviation of the joint positions' noise and of their constant offsets, rad.
    velocity_noise
        Of the joint velocities, rad/s.
    effort_noise
        Of the joint efforts, N m.
    force_noise, torque_noise
        Of the force-torque sensors, N and N m.
    force_bias, torque_bias
        Standard deviation of their constant biases per axis, N and N m.
    gyro_noise, accelerometer_noise
        Of the IMUs, rad/s and m/s^2.
    tilt_bias
        Standard deviation of the IMUs' constant roll and pitch errors, rad.
    effort_gain
        Of the gain errors of the joints' measured efforts (motor constants), share.
    wrench_gain, cross_talk
        Of the gain errors of the force-torque sensors' axes, and of how much of each axis the
        others read, shares; see ``instruments.LEVER``.
    force_drift, torque_drift
        Of the drift of their biases, N/h and N m/h.
    force_temperature, torque_temperature
        Of the temperature coefficients of their biases, N/K and N m/K.
    warming, warming_time
        How much warmer they become, K, and the time constant, s.
    force_range, torque_range
        Largest absolute readings, N and N m; zero: no limit.
    wrench_position, wrench_rotation
        Of the misplacement of their frames, per axis, m and rad.
    imu_rotation
        Of the IMUs' mounting, about each axis, rad.
    joint_delay, wrench_delay, imu_delay
        Age of the readings, s; they are stamped on arrival, as on a real robot.

    """

    encoder_noise: float = 0.0
    encoder_offset: float = 0.0
    velocity_noise: float = 0.0
    effort_noise: float = 0.0
    force_noise: float = 0.0
    torque_noise: float = 0.0
    force_bias: float = 0.0
    torque_bias: float = 0.0
    gyro_noise: float = 0.0
    accelerometer_noise: float = 0.0
    tilt_bias: float = 0.0
    effort_gain: float = 0.0
    wrench_gain: float = 0.0
    cross_talk: float = 0.0
    force_drift: float = 0.0
    torque_drift: float = 0.0
    force_temperature: float = 0.0
    torque_temperature: float = 0.0
    warming: float = 0.0
    warming_time: float = 600.0
    force_range: float = 0.0
    torque_range: float = 0.0
    wrench_position: float = 0.0
    wrench_rotation: float = 0.0
    imu_rotation: float = 0.0
    joint_delay: float = 0.0
    wrench_delay: float = 0.0
    imu_delay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DriveOptions:
    """
    What real drives do besides following their commands.

    Attributes
    ----------
    joint_friction
        Coulomb friction, as a share of a joint's effort limit.
    joint_stiction
        Excess of breakaway over Coulomb friction, as such a share.
    stribeck_velocity
        Speed at which most of that excess is gone, rad/s or m/s.
    viscous_friction
        At the joint's velocity limit, as such a share.
    friction_scatter
        Standard deviation of the logarithm of each joint's friction.
    rotor_inertia
        Reflected inertia of the rotors, as a share of the inertia that the joint moves.
    drive_noise
        Standard deviation of the drives' efforts, as a share of the effort limit.
    drive_speed
        Largest speed of the drives' setpoints, as a share of the velocity limit; zero: any.
    command_delay
        Age of the commands when they reach the motors, s.
    tendon_delay
        The same of tendon lengths, in addition, s.
    tendon_noise
        Standard deviation of the tendon lengths, m.
    tendon_speed
        Largest speed of the winches, m/s; zero: any.

    """

    joint_friction: float = 0.0
    joint_stiction: float = 0.0
    stribeck_velocity: float = 0.05
    viscous_friction: float = 0.0
    friction_scatter: float = 0.0
    rotor_inertia: float = 0.0
    drive_noise: float = 0.0
    drive_speed: float = 0.0
    command_delay: float = 0.0
    tendon_delay: float = 0.0
    tendon_noise: float = 0.0
    tendon_speed: float = 0.0


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
