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
"""Parameters of `simulator`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from biped_com_ros.nodes.simulator.bag_recorder import STORAGES
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from
from biped_com_ros.sim.faults import Fault, parse_faults
from biped_com_ros.sim.hidden import parse_errors
from biped_com_ros.sim.instruments import parse_instrument_errors
from biped_com_ros.sim.interface import DriveOptions, PlantOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions


def _sigma(description: str, unit: str, largest: float) -> Any:
    return read_only(0.0, f'Standard deviation of {description}', unit, 0.0, largest)


def _delay(description: str) -> Any:
    return read_only(0.0, f'Age of {description}', 's', 0.0, 1.0)


def _share(description: str, of: str) -> Any:
    return read_only(0.0, f'{description}, as a share of the {of}', '', 0.0, 1.0)


@dataclass(frozen=True)
class SimulatorParameters(RobotChoice):
    """Parameters of `simulator`."""

    posture: str = read_only('stand', 'Initial posture')
    tendons: bool = read_only(
        True, "Whether to simulate the torso's tendons, if it has any; else the torso is rigid")
    virtual_joints: bool = read_only(
        True, "Whether joint_states has the torso's virtual joints, which a real robot's encoders "
        'do not measure; if false, torso_controller has to publish them')
    seed: int = read_only(0, 'Seed of all random numbers', '', 0, 2 ** 31)
    rate: float = read_only(500.0, 'Rate of sensor readings and commands', 'Hz', 10.0, 2000.0)
    physics_rate: float = read_only(
        1000.0, 'Physics steps per second; a multiple of rate', 'Hz', 200.0, 20000.0)
    clock_rate: float = read_only(100.0, 'Rate of /clock; 0: not published', 'Hz', 0.0, 2000.0)
    real_time_factor: float = parameter(
        1.0, 'Simulated seconds per second; 0: as fast as possible', '', 0.0, 100.0)
    command_timeout: float = parameter(
        0.1, 'How long, in wall time, a step waits for the next of regular commands; 0: not at '
        'all, as a real robot', 's', 0.0, 1.0)
    world_frame: str = read_only('odom', 'frame_id of the world')
    friction: float = read_only(1.0, 'Coulomb friction of the soles', '', 0.0, 10.0)
    hidden_com_sigma: float = _sigma(
        "the hidden error of each link's centre of mass, per axis", 'm', 0.2)
    hidden_mass_sigma: float = _sigma("the hidden error of each link's mass, as a share", '', 1.0)
    hidden_errors: list[str] = read_only(
        [], "Further hidden errors, each '<link> <kg> <x m> <y m> <z m>'")
    errors_at_mass: float = read_only(
        0.0, 'Mass of the robot for which errors in N and N m are given; they are scaled by the '
        "ratio of this robot's mass to it. 0: not scaled", 'kg', 0.0, 1000.0)
    encoder_noise: float = _sigma("the joint positions' noise", 'rad', 0.5)
    encoder_offset: float = _sigma("the joint positions' constant errors", 'rad', 0.5)
    velocity_noise: float = _sigma("the joint velocities' noise", 'rad/s', 10.0)
    effort_noise: float = _sigma("the joint efforts' noise", 'N m', 100.0)
    force_noise: float = _sigma("the force sensors' noise", 'N', 1000.0)
    torque_noise: float = _sigma("the torque sensors' noise", 'N m', 100.0)
    force_bias: float = _sigma("the force sensors' constant errors, per axis", 'N', 1000.0)
    torque_bias: float = _sigma("the torque sensors' constant errors, per axis", 'N m', 100.0)
    gyro_noise: float = _sigma("the gyroscopes' noise", 'rad/s', 10.0)
    accelerometer_noise: float = _sigma("the accelerometers' noise", 'm/s2', 100.0)
    tilt_bias: float = _sigma("the IMUs' constant roll and pitch errors", 'rad', 0.5)
    joint_delay: float = _delay('joint_states at publication')
    wrench_delay: float = _delay('wrenches at publication')
    imu_delay: float = _delay('IMU data at publication')
    command_delay: float = _delay('commands on arrival at the motors')
    effort_gain: float = _sigma(
        "the gain errors of the joints' measured efforts (motor constants)", '', 0.5)
    wrench_gain: float = _sigma(
        "the gain errors of the force-torque sensors' axes, as shares", '', 0.5)
    cross_talk: float = _sigma(
        "the force-torque sensors' cross-talk: the share of each axis that another one "
        'measures; 1 N m counts as 10 N', '', 0.2)
    force_drift: float = _sigma("the drift of the force sensors' biases", 'N/h', 1000.0)
    torque_drift: float = _sigma("the drift of the torque sensors' biases", 'N m/h', 100.0)
    force_temperature: float = _sigma(
        "the temperature coefficients of the force sensors' biases", 'N/K', 100.0)
    torque_temperature: float = _sigma(
        "the temperature coefficients of the torque sensors' biases", 'N m/K', 10.0)
    warming: float = read_only(
        0.0, 'How much warmer the force-torque sensors become', 'K', -100.0, 100.0)
    warming_time: float = read_only(
        600.0, 'Time constant of the warming', 's', 0.1, 100000.0)
    force_range: float = read_only(
        0.0, 'Largest absolute force that a sensor measures; 0: any', 'N', 0.0, 100000.0)
    torque_range: float = read_only(
        0.0, 'Largest absolute torque that a sensor measures; 0: any', 'N m', 0.0, 10000.0)
    wrench_position: float = _sigma(
        "the misplacement of the force-torque sensors' frames, per axis", 'm', 0.1)
    wrench_rotation: float = _sigma(
        "the misplacement of the force-torque sensors' axes, about each of them", 'rad', 0.5)
    imu_rotation: float = _sigma("the IMUs' mounting, about each axis", 'rad', 0.5)
    sole_position: float = _sigma('the misplacement of the soles in the feet, per axis', 'm', 0.05)
    instrument_errors: list[str] = read_only(
        [], "Errors that are not drawn, each '<joint, sensor or foot> <error> <values>'; see "
        'doc/robot.rst')
    wrench_faults: list[str] = parameter(
        [], "Faults of force-torque sensors, each '<sensor> dead', '<sensor> frozen', '<sensor> "
        "late <s>' or '<sensor> turned <deg>'")
    floor_roll: float = parameter(
        0.0, "Tilt of the floor about the world's x axis, from the next reset on", 'rad', -0.3,
        0.3)
    floor_pitch: float = parameter(
        0.0, "Tilt of the floor about the world's y axis, from the next reset on", 'rad', -0.3,
        0.3)
    joint_friction: float = _share("The joints' Coulomb friction", 'effort limit')
    joint_stiction: float = _share(
        'How much more effort it takes to break a joint away from rest', 'effort limit')
    stribeck_velocity: float = read_only(
        0.05, 'Speed at which most of joint_stiction is gone', 'rad/s', 1e-4, 10.0)
    viscous_friction: float = _share(
        "The joints' viscous friction at the velocity limit", 'effort limit')
    friction_scatter: float = _sigma("the logarithm of each joint's friction", '', 2.0)
    rotor_inertia: float = read_only(
        0.0, 'Reflected inertia of the rotors, as a share of the inertia that the joint moves; '
        'raised to what stable drives need', '', 0.0, 10.0)
    drive_noise: float = _share("Standard deviation of the drives' efforts", 'effort limit')
    drive_speed: float = read_only(
        0.0, "Largest speed of the drives' setpoints, as a share of the velocity limit; 0: any",
        '', 0.0, 1.0)
    tendon_delay: float = _delay('commands of tendon lengths, in addition to command_delay')
    tendon_noise: float = _sigma('the tendon lengths that are set', 'm', 0.01)
    tendon_speed: float = read_only(
        0.0, 'Largest speed of the winches; 0: any', 'm/s', 0.0, 10.0)
    record: str = read_only(
        '', 'New directory of a rosbag2 for joint_states, IMUs and wrenches; empty: no recording')
    record_storage: str = read_only('mcap', 'Storage of the rosbag2', options=STORAGES)
    push_duration: float = parameter(0.2, 'Duration of a push on ~/push', 's', 0.0, 60.0)

    @property
    def faults(self) -> dict[str, Fault]:
        """Return the faults of wrench sensors by name."""
        return parse_faults(filter(None, self.wrench_faults))

    def plant_options(self, mass: float) -> PlantOptions:
        """Return the options of a plant whose URDF has a total mass, kg."""
        sensors = settings_from(self, SensorOptions)
        if self.errors_at_mass:
            sensors = _scaled(sensors, mass / self.errors_at_mass)
        return settings_from(
            self, PlantOptions, dt=1.0 / self.rate,
            world=settings_from(self, WorldOptions, timestep=1.0 / self.physics_rate),
            sensors=sensors, drives=settings_from(self, DriveOptions),
            instrument_errors=parse_instrument_errors(filter(None, self.instrument_errors)),
            errors=parse_errors(filter(None, self.hidden_errors)),
            com_sigma=self.hidden_com_sigma, mass_sigma=self.hidden_mass_sigma)


def _scaled(sensors: SensorOptions, factor: float) -> SensorOptions:
    """Return sensors whose errors in N and N m, their ranges included, are `factor` larger."""
    return replace(sensors, **{
        name: factor * value for name, value in vars(sensors).items()
        if name.startswith(('force_', 'torque_')) or name == 'effort_noise'})
