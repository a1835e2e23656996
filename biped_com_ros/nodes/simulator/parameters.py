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

from dataclasses import dataclass
from typing import Any

from biped_com_ros.nodes.simulator.bag_recorder import STORAGES
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.parameters import constant, parameter, settings_from
from biped_com_ros.sim.hidden import parse_errors
from biped_com_ros.sim.interface import PlantOptions, SensorOptions
from biped_com_ros.sim.mjcf import WorldOptions


def _sigma(description: str, unit: str, largest: float) -> Any:
    return constant(0.0, f'Standard deviation of {description}', unit, 0.0, largest)


def _delay(description: str) -> Any:
    return constant(0.0, f'Age of {description}', 's', 0.0, 1.0)


@dataclass(frozen=True)
class SimulatorParameters(RobotChoice):
    """Parameters of `simulator`."""

    posture: str = constant('stand', 'Initial posture')
    tendons: bool = constant(
        True, "Whether to simulate the torso's tendons, if it has any; else the torso is rigid")
    virtual_joints: bool = constant(
        True, "Whether joint_states has the torso's virtual joints, which a real robot's encoders "
        'do not measure; if false, torso_controller has to publish them')
    seed: int = constant(0, 'Seed of all random numbers', '', 0, 2 ** 31)
    rate: float = constant(500.0, 'Rate of sensor readings and commands', 'Hz', 10.0, 2000.0)
    physics_rate: float = constant(
        1000.0, 'Physics steps per second; a multiple of rate', 'Hz', 200.0, 20000.0)
    clock_rate: float = constant(100.0, 'Rate of /clock; 0: not published', 'Hz', 0.0, 2000.0)
    real_time_factor: float = parameter(
        1.0, 'Simulated seconds per second; 0: as fast as possible', '', 0.0, 100.0)
    command_timeout: float = parameter(
        0.1, 'How long, in wall time, a step waits for the next of regular commands; 0: not at '
        'all, as a real robot', 's', 0.0, 1.0)
    world_frame: str = constant('odom', 'frame_id of the world')
    friction: float = constant(1.0, 'Coulomb friction of the soles', '', 0.0, 10.0)
    hidden_com_sigma: float = _sigma(
        "the hidden error of each link's centre of mass, per axis", 'm', 0.2)
    hidden_mass_sigma: float = _sigma("the hidden error of each link's mass, as a share", '', 1.0)
    hidden_errors: list[str] = constant(
        [], "Further hidden errors, each '<link> <kg> <x m> <y m> <z m>'")
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
    record: str = constant(
        '', 'New directory of a rosbag2 for joint_states, IMUs and wrenches; empty: no recording')
    record_storage: str = constant('mcap', 'Storage of the rosbag2', options=STORAGES)
    push_duration: float = parameter(0.2, 'Duration of a push on ~/push', 's', 0.0, 60.0)

    def plant_options(self) -> PlantOptions:
        """Return the options of the plant."""
        return settings_from(
            self, PlantOptions, dt=1.0 / self.rate,
            world=settings_from(self, WorldOptions, timestep=1.0 / self.physics_rate),
            sensors=settings_from(self, SensorOptions),
            errors=parse_errors(filter(None, self.hidden_errors)),
            com_sigma=self.hidden_com_sigma, mass_sigma=self.hidden_mass_sigma)
