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
from functools import cached_property

from biped_com_ros.core.settings import setting, settings_from_lines
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.parameters import read_only
from biped_com_ros.sim.faults import Fault, parse_faults
from biped_com_ros.sim.hidden import parse_errors
from biped_com_ros.sim.instruments import parse_instrument_errors
from biped_com_ros.sim.interface import ErrorSettings, PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions


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
    least_rate: float = read_only(
        0.0, 'Rate down to which that of the readings falls where the computer is too slow for '
        'all nodes; 0: it stays', 'Hz', 0.0, 2000.0)
    physics_rate: float = read_only(
        1000.0, 'Physics steps per second; a multiple of rate', 'Hz', 200.0, 20000.0)
    clock_rate: float = read_only(100.0, 'Rate of /clock; 0: not published', 'Hz', 0.0, 2000.0)
    real_time_factor: float = setting(
        1.0, 'Simulated seconds per second; 0: as fast as possible', '', 0.0, 100.0)
    command_timeout: float = setting(
        0.1, 'How long, in wall time, a step waits for the next of regular commands; 0: not at '
        'all, as a real robot', 's', 0.0, 1.0)
    world_frame: str = read_only('odom', 'frame_id of the world')
    friction: float = read_only(1.0, 'Coulomb friction of the soles', '', 0.0, 10.0)
    hidden_com_sigma: float = read_only(
        0.0, "Standard deviation of the hidden error of each link's centre of mass, per axis", 'm',
        0.0, 0.2)
    hidden_mass_sigma: float = read_only(
        0.0, "Standard deviation of the hidden error of each link's mass, as a share", '', 0.0,
        1.0)
    hidden_errors: list[str] = read_only(
        [], "Further hidden errors, each '<link> <kg> <x m> <y m> <z m>'")
    errors: list[str] = read_only(
        [], "Errors of sensors, drives and soles, each '<name> <value>', such as 'force_noise "
        "0.1'; config/simulator.yaml has the names")
    errors_at_mass: float = read_only(
        0.0, 'Mass of the robot for which errors in N and N m are given; they are scaled by the '
        "ratio of this robot's mass to it. 0: not scaled", 'kg', 0.0, 1000.0)
    instrument_errors: list[str] = read_only(
        [], "Errors that are not drawn, each '<joint, sensor or foot> <error> <values>'; see "
        'doc/robot.rst')
    wrench_faults: list[str] = setting(
        [], "Faults of force-torque sensors, each '<sensor> dead', '<sensor> frozen', '<sensor> "
        "late <s>' or '<sensor> turned <deg>'")
    floor_roll: float = setting(
        0.0, "Tilt of the floor about the world's x axis, from the next reset on", 'rad', -0.3,
        0.3)
    floor_pitch: float = setting(
        0.0, "Tilt of the floor about the world's y axis, from the next reset on", 'rad', -0.3,
        0.3)
    record: str = read_only(
        '', 'New directory of a rosbag2 for joint_states, IMUs and wrenches; empty: no recording')
    push_duration: float = setting(0.2, 'Duration of a push on ~/push', 's', 0.0, 60.0)

    @property
    def faults(self) -> dict[str, Fault]:
        """Return the faults of wrench sensors by name."""
        return parse_faults(filter(None, self.wrench_faults))

    @cached_property
    def error_settings(self) -> ErrorSettings:
        """Return the errors of sensors, drives and soles, as they are given."""
        return settings_from_lines(ErrorSettings, self.errors, 'error')

    def plant_options(self, mass: float) -> PlantOptions:
        """Return the options of a plant whose URDF has a total mass, kg."""
        given = self.error_settings
        return PlantOptions(
            dt=1.0 / self.rate, seed=self.seed, tendons=self.tendons,
            world=WorldOptions(timestep=1.0 / self.physics_rate, friction=self.friction,
                               floor_roll=self.floor_roll, floor_pitch=self.floor_pitch),
            sensors=given.sensors.scaled(
                mass / self.errors_at_mass if self.errors_at_mass else 1.0),
            drives=given.drives, sole_position=given.sole_position,
            instrument_errors=parse_instrument_errors(filter(None, self.instrument_errors)),
            errors=parse_errors(filter(None, self.hidden_errors)),
            com_sigma=self.hidden_com_sigma, mass_sigma=self.hidden_mass_sigma)
