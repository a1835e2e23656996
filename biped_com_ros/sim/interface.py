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

from biped_com_ros.sim.description import Array
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.mjcf import WorldOptions


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
    joint_delay: float = 0.0
    wrench_delay: float = 0.0
    imu_delay: float = 0.0


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
    command_delay
        Age of the commands when they reach the motors, s.
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
    command_delay: float = 0.0
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
