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
What each imperfection of instruments and drives does to live estimates, before any calibration.

Each row has one group of errors of config/hidden/real.yaml, on a robot whose masses are those of
its URDF; it sways with both feet on the ground. Errors are against the simulator's truth relative
to the middle of the true soles, root mean square over instants and seeds:

- CoM: of joints, URDF and IMU, along the ground and z; fused: that of com_estimator; covers: share
  of instants in which the truth is within its stated 95 % ellipse along the ground;
- ZMP: measured by the feet, with the default low-pass; weight: its mean; both while
  wrench_aggregator publishes them: it withholds those of sensors that stopped or froze (-);
- torque: change of the measured joint efforts, against the perfect robot in the same motion.

    python benchmarks/imperfections.py [--robot NAME] [--seeds N] [--rows NAME ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
import functools
import math
from typing import Any

from benchmarks.common import print_table
from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting_fields
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.leg_odometry import LegOdometry
from biped_com_ros.core.wrench.aggregation import WrenchAggregation
from biped_com_ros.core.wrench.tare import JointStillness
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.nodes.wrench_aggregator.faults import SensorFaults
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from biped_com_ros.sim.faults import Fault, parse_faults
from biped_com_ros.sim.interface import ErrorSettings
from biped_com_ros.sim.plant import Plant
import numpy as np
import yaml

ROBOTS = ('biped', 'talos')
RATE = 250.0  # Hz
BEGIN, END = 2.0, 4.0
"""When the robot sways and is measured, after the estimators have settled, s."""

ROWS: dict[str, tuple[str, ...]] = {
    'nothing': (),
    'noise': ('encoder_noise', 'velocity_noise', 'effort_noise', 'force_noise', 'torque_noise',
              'gyro_noise', 'accelerometer_noise'),
    'sensor delays': ('joint_delay', 'wrench_delay', 'imu_delay'),
    'encoder offsets': ('encoder_offset',),
    'motor constants': ('effort_gain',),
    'IMU: roll and pitch': ('tilt_bias',),
    'IMU: mounting': ('imu_rotation',),
    'FT: bias': ('force_bias', 'torque_bias'),
    'FT: gains': ('wrench_gain',),
    'FT: cross-talk': ('cross_talk',),
    'FT: drift and warming': (
        'force_drift', 'torque_drift', 'force_temperature', 'torque_temperature', 'warming'),
    'FT: misplaced frames': ('wrench_position', 'wrench_rotation'),
    'soles misplaced': ('sole_position',),
    'floor tilted': ('floor_roll', 'floor_pitch'),
    'friction': ('joint_friction', 'joint_stiction', 'viscous_friction', 'friction_scatter'),
    'friction 5 %': ('joint_stiction', 'viscous_friction', 'friction_scatter'),
    'rotors': ('rotor_inertia',),
    'drives and tendons': ('drive_noise', 'drive_speed', 'command_delay', 'tendon_delay',
                           'tendon_noise', 'tendon_speed'),
    'masses': ('hidden_com_sigma', 'hidden_mass_sigma'),
}
FAULTS = ('late 0.02', 'dead', 'frozen', 'turned 90')
AGE = 0.5
"""Drift is that of half an hour, and the sensors are warm; h."""


def real_errors() -> dict[str, Any]:
    """Return the parameters of config/hidden/real.yaml."""
    file = package_share() / 'config' / 'hidden' / 'real.yaml'
    values: dict[str, Any] = yaml.safe_load(file.read_text())
    found: dict[str, Any] = values['/**/simulator']['ros__parameters']
    pairs = (line.split() for line in found.pop('errors'))
    return {**found, **{name: float(value) for name, value in pairs}}


def parameters_of(row: str, seed: int) -> SimulatorParameters:
    """Return the simulator's parameters of a row of the table."""
    real = real_errors()
    names = [n for n in real if n != 'errors_at_mass'] if row == 'all of it' else ROWS.get(row, ())
    given = {name: real[name] for name in names}
    if row == 'friction 5 %':
        given['joint_friction'] = 0.05
    if 'warming' in given:  # a run is shorter: what they come to is a bias
        for kind in ('force', 'torque'):
            given[f'{kind}_bias'] = math.hypot(
                given.get(f'{kind}_bias', 0.0), AGE * given.pop(f'{kind}_drift'),
                given['warming'] * given.pop(f'{kind}_temperature'))
        del given['warming']
    names = setting_fields(ErrorSettings)
    return SimulatorParameters(
        rate=RATE, seed=seed, errors_at_mass=real['errors_at_mass'],
        errors=[f'{name} {value}' for name, value in given.items() if name in names],
        **{name: value for name, value in given.items() if name not in names})


@dataclass
class ImperfectRun:
    """Errors at the instants of a run: see the head of this file."""

    com: list[Any]
    fused: list[Any]
    is_covered: list[bool]
    zmp: list[Any]
    forces: list[float]
    efforts: list[Any]


class Live:
    """A simulated robot and what the nodes estimate."""

    def __init__(self, robot: str, row: str, seed: int, fault: dict[str, Fault]) -> None:
        self.model = model = RobotModel.load(robot)
        params = parameters_of(row, seed)
        self.plant = Plant(model.config, model.urdf, params.plant_options(model.mass),
                           model.joint_names, model.link_names)
        self._fault = fault
        self._ik = PostureIk(model, model.posture())
        self._odometry = LegOdometry(model, model.config.imu.frame)
        aggregator = WrenchAggregatorParameters()
        self._aggregation = WrenchAggregation(model, aggregator.aggregation)
        self._stillness = JointStillness(model.joint_names, aggregator.tare.joint_speed)
        self._faults = SensorFaults(self._aggregation, aggregator.balance)
        estimator = ComEstimatorParameters()
        self._fusion = FusedComEstimator(model, estimator.fusion, estimator.load_link)
        self._imu = list(model.config.imus.values()).index(model.config.imu)
        self._motors = model.joint_index(self.plant.actuated_joint_names)
        self.found = ImperfectRun([], [], [], [], [], [])

    def run(self) -> ImperfectRun:
        """Sway and return the errors."""
        sway = 0.03 * self._odometry_height()
        for i in range(round(END / self.plant.dt)):
            t = i * self.plant.dt
            if t >= 1.0:
                self.plant.faults.replace(self._fault)
            phase = 2.0 * math.pi * 0.5 * t
            ramp = min(t, 1.0)
            command = self.plant.hold()
            command.position[:] = self._ik.positions(Pose.translation((
                0.5 * sway * ramp * math.sin(0.7 * phase), sway * ramp * math.sin(phase), 0.0,
            )))[self._motors]
            self.plant.step(command)
            self._estimate(t)
        return self.found

    def _odometry_height(self) -> float:
        state = self.model.state(self.model.posture())
        return float(state.com_in_world[2] - state.soles_in_world[:, 2].min())

    def _estimate(self, t: float) -> None:
        observed, model = self.plant.observation, self.model
        ns = round(1e9 * observed.time)
        state = model.state(observed.joint_positions, observed.joint_velocities)
        R_world_imu = rotation_from_quaternion(observed.imu_quaternions[self._imu])
        self._aggregation.set_state(state, R_world_imu)
        self._stillness.update(observed.joint_velocities, ns)
        for i, wrench in enumerate(observed.wrenches):
            body = self._aggregation.update(i, wrench, ns)
            self._faults.add_reading(i, ns, self._stillness.moved_ns)
            total = None if body is None else self._aggregation.total(body, ns)
            if total is not None:
                self._faults.add_forces(total.item(2), ns)
        wrenches = None if self._faults.found else np.array([
            body.wrench for body in self._aggregation.bodies if body.detector is not None])
        base = self._odometry.update(state, R_world_imu, [True] * len(model.config.feet))
        twist = self._odometry.twist(state, observed.angular_velocities[self._imu])
        state = state.in_world(base, self._odometry.sole_placements)
        self._fusion.update(self.plant.dt, LocatedState(
            ns, state, self._odometry.stance, True, lambda _: twist,
            wrenches=None if wrenches is None else wrenches.tolist()))
        if t >= BEGIN:
            self._note(state, wrenches)

    def _note(self, state: Any, wrenches: np.ndarray | None) -> None:
        truth, found = self.plant.truth(), self.found
        sites = [self.plant.data.site(f'sole/{foot}').xpos for foot in self.model.config.feet]
        true_soles, soles = np.mean(sites, axis=0), state.soles_in_world.mean(axis=0)
        true_com = truth.com - true_soles
        error = np.array(self._fusion.now()[0]) - soles - true_com
        covariance = self._fusion.com_covariance[:2, :2]
        found.com.append(state.com_in_world - soles - true_com)
        found.fused.append(error)
        found.is_covered.append(
            bool(error[:2] @ np.linalg.solve(covariance, error[:2]) < 2.45 ** 2))
        found.efforts.append(self.plant.observation.joint_efforts[self._motors].copy())
        if wrenches is None:
            return
        total = np.zeros(6)
        for row, wrench in zip(state.sole_placements_in_world, wrenches):
            force = wrench[:3] @ row[:3]
            total += np.concatenate((force, wrench[3:] @ row[:3] + np.cross(row[3], force)))
        height = soles[2]
        zmp = np.array((-total[4] + height * total[0], total[3] + height * total[1])) / total[2]
        found.zmp.append(zmp - soles[:2] - (truth.zmp - true_soles)[:2])
        found.forces.append(float(total[2]))


@functools.cache
def perfect_efforts(robot: str) -> np.ndarray:
    """Return the efforts of the perfect robot."""
    return np.array(Live(robot, 'nothing', 1, {}).run().efforts)


def row_of(robot: str, row: str, seeds: int, fault: str = '') -> tuple[str, ...]:
    """Return a row of the table."""
    runs = []
    for seed in range(1, seeds + 1):
        foot = next(iter(RobotModel.load(robot).config.wrench_sensors))
        runs.append(Live(robot, row, seed, parse_faults([f'{foot} {fault}'] if fault else []))
                    .run())
    perfect = perfect_efforts(robot)
    com, fused = (1e3 * np.concatenate([getattr(run, what) for run in runs])
                  for what in ('com', 'fused'))
    zmp = [1e3 * error for run in runs for error in run.zmp]
    weight = GRAVITY * RobotModel.load(robot).mass
    heavier = [100.0 * (np.mean(run.forces) / weight - 1.0) for run in runs if run.forces]
    torque = [np.array(run.efforts) - perfect for run in runs]
    return (f'FT of a foot: {fault}' if fault else row, _rms(com[:, :2]), _rms(com[:, 2:]),
            _rms(fused[:, :2]), _rms(fused[:, 2:]),
            f'{100.0 * np.mean(np.concatenate([run.is_covered for run in runs])):.0f}',
            _rms(np.array(zmp)) if zmp else '-',
            f'{math.sqrt(np.mean(np.square(heavier))):.2f}' if heavier else '-',
            f'{math.sqrt(np.mean(np.square(torque))):.3g}')


def _rms(errors: np.ndarray) -> str:
    return f'{math.sqrt((errors ** 2).sum(axis=1).mean()):.2f}'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--robot', action='append', help='default: ' + ', '.join(ROBOTS))
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--rows', nargs='*', default=[*ROWS, 'all of it', *FAULTS])
    options = parser.parse_args(argv)
    for robot in options.robot or ROBOTS:
        rows = [row_of(robot, 'nothing', 1, row) if row in FAULTS
                else row_of(robot, row, options.seeds) for row in options.rows]
        print_table(f'{robot}: rms errors of live estimates, {options.seeds} seeds', (
            '', 'CoM mm', 'z mm', 'fused mm', 'z mm', 'covers %', 'ZMP mm', 'weight %',
            'torque N m'), rows)
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
