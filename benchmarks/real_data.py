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
What the estimators make of recordings of real robots, against the truth that was recorded beside.

::

    python -m benchmarks.real_data [--data DIR] [--source filter|imu]

``DIR``, or the environment variable ``BIPED_COM_REAL_DATA``, holds the recordings;
``doc/appendix/results.rst`` says which they are and where they come from. They are not part of the
package, and what is missing is left out with a line. All settings are the defaults.

Columns for the base of iCub: error of the position at its end and root mean square (x, y, z),
deviation of the position as stated at the end, share of instants in which the 95 % interval of
each axis holds, NEES of position and velocity (3 is right), root mean square error of the velocity
while it walks, slips, and CPU time per instant. The estimate is put to the truth at the first
instant, by its position and heading.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
import os
from pathlib import Path
import sys
import time

from benchmarks.common import console, machine, print_table
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation, yaw_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import BaseSettings, FilterBase, LocatedState
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
import numpy as np
import pinocchio as pin

VARIABLE = 'BIPED_COM_REAL_DATA'
SOURCES = ('filter', 'imu')
_ICUB = 'icub_genova04'
#: By recording: when the robot begins to move, s.
ICUB_RECORDINGS = {'walk_1m': 5.4, 'sway': 0.0}
_OF_LEG = ('hip_pitch', 'hip_roll', 'hip_yaw', 'knee', 'ankle_pitch', 'ankle_roll')
_OF_ARM = ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow')
JOINTS = (
    'neck_pitch', 'neck_roll', 'neck_yaw', 'torso_pitch', 'torso_roll', 'torso_yaw',
    *(f'{side}_{joint}' for part in (_OF_ARM, _OF_LEG) for side in 'lr' for joint in part))
#: What is done to the samples.
VARIANTS = ('as recorded', 'every 10th dropped', '10 % dropped', 'even stamps')
_SMOOTHED = 0.07
"""Velocities are compared over means of so long, s: the truth is differences of positions."""


def directory(given: str = '') -> Path | None:
    """Return where the recordings are, by an option or the environment; None without them."""
    path = Path(given or os.environ.get(VARIABLE, '/nowhere'))
    return path if path.is_dir() else None


@dataclass(frozen=True, kw_only=True)
class BaseRecording:
    """
    A robot whose base was measured by cameras: T instants.

    Attributes
    ----------
    name
        Of the recording and what was done to its samples.
    model
        The robot.
    moves_from
        When it begins to move, s.
    times
        s, (T,).
    positions, velocities
        Of the joints, (T, n), rad and rad/s.
    gyro, acceleration
        Of the IMU along its axes, (T, 3), rad/s and m/s^2.
    forces
        Vertical force under each sole, (T, F), N.
    true_times, true_positions, true_rotations
        Of the base as the project defines it, (T', 3) and (T', 3, 3): of all samples.

    """

    name: str
    model: RobotModel
    moves_from: float
    times: Array
    positions: Array
    velocities: Array
    gyro: Array
    acceleration: Array
    forces: Array
    true_times: Array
    true_positions: Array
    true_rotations: Array


def icub(path: Path, name: str, variant: str = 'as recorded', seed: int = 0) -> BaseRecording:
    """Read a recording of the iCub of Genoa; `seed` of the samples that are dropped."""
    with np.load(path / _ICUB / f'{name}.npz') as file:
        data = {key: file[key].astype(float) for key in file.files if file[key].dtype.kind == 'f'}
    times = data['time'] - data['time'][0]
    if variant == 'even stamps':
        times = np.linspace(0.0, times[-1], len(times))
    kept = np.ones(len(times), bool)
    if variant == 'every 10th dropped':
        kept[9::10] = False
    elif variant == '10 % dropped':
        kept[1:-1] = np.random.default_rng(seed).random(len(times) - 2) > 0.1
    model = RobotModel.load(str(path / _ICUB / f'{_ICUB}.yaml'))
    columns = model.joint_index(JOINTS)
    joints = np.zeros((2, len(times), len(model.joint_names)))
    joints[0][:, columns], joints[1][:, columns] = data['positions'], data['velocities']
    # The x axis of root_link points backward.
    forward = pin.exp3(np.array((0.0, 0.0, np.pi)))
    rotations = np.array([pin.rpy.rpyToMatrix(*rpy) @ forward for rpy in data['vicon_rpy']])
    return BaseRecording(
        name=f'{name}, {variant}', model=model, moves_from=ICUB_RECORDINGS[name],
        times=times[kept], positions=joints[0][kept], velocities=joints[1][kept],
        gyro=data['gyroscope'][kept], acceleration=data['accelerometer'][kept],
        forces=np.column_stack((data['left_force_z'], data['right_force_z']))[kept],
        true_times=times, true_positions=data['vicon_position'], true_rotations=rotations)


@dataclass(frozen=True, kw_only=True)
class BaseErrors:
    """
    Errors of the base against the truth; vectors along the truth's axes.

    Attributes
    ----------
    end, rms
        Of the position at the end, and root mean square, (3,), m.
    distance
        That the robot went, m.
    stated
        Standard deviation at the end as stated, (3,), m; NaN without a covariance.
    cover
        Share of instants in which the 95 % interval of the position holds, (3,).
    nees, velocity_nees
        Mean normalised squared error of three components.
    velocity
        Root mean square error while it moves, (3,), m/s.
    heading
        Error of the heading at the end, rad.
    slips, restarts
        Numbers of slips, and of restarts after the first.
    unstable
        Share of time in which the level of stability is UNSTABLE or worse.
    seconds
        CPU time per instant.

    """

    end: Array
    rms: Array
    distance: float
    stated: Array
    cover: Array
    nees: float
    velocity_nees: float
    velocity: Array
    heading: float
    slips: int
    restarts: int
    unstable: float
    seconds: float


def locate(recording: BaseRecording, base: BaseSettings,
           ) -> tuple[list[tuple[float, LocatedState]], StateEstimator, float]:
    """Return located states with their times (s), the estimator, and its time per instant (s)."""
    model = recording.model
    frames = [model.config.sole_frame(foot) for foot in model.config.feet]
    estimator = StateEstimator(model, base, synchronized=SynchronizedSettings(
        wrenches=True, thresholds=ComEstimatorParameters().contact,
        body_weight=GRAVITY * model.mass))
    in_link = model.state(recording.positions[0]).placements_in_base(
        model.frames((model.config.imu.frame,)))[0, :3].T
    found, seconds, origin_ns = [], 0.0, 10**9
    for k, at in enumerate(recording.times):
        ns = origin_ns + round(1e9 * at)
        state = model.state(recording.positions[k], recording.velocities[k])
        begin = time.process_time()
        if base.source == 'filter':  # as of an IMU without an orientation
            sample = (np.zeros(4), recording.gyro[k], recording.acceleration[k])
        else:  # the orientation as the truth has it
            at_truth = np.searchsorted(recording.true_times, at)
            sample = (quaternion_from_rotation(recording.true_rotations[at_truth] @ in_link),
                      recording.gyro[k])
        located = [*estimator.add_joints(ns, state), *estimator.add_base(ns, *sample)]
        for foot, (force, frame) in enumerate(zip(recording.forces[k], frames)):
            located += estimator.add_wrench(
                foot, ns, np.array((0.0, 0.0, force, 0.0, 0.0, 0.0)), frame)
        seconds += time.process_time() - begin
        found += [(1e-9 * (one.stamp_ns - origin_ns), one) for one in located]
    return found, estimator, seconds / len(recording.times)


def base_errors(recording: BaseRecording, base: BaseSettings) -> BaseErrors:
    """Return the errors of a recording with these settings."""
    found, estimator, seconds = locate(recording, base)
    monitor = StabilityMonitor(recording.model, MonitorSettings())
    levels = []
    for _, one in found:
        monitor.update(one)
        levels.append(monitor.classifier.level)
    times = np.array([at for at, _ in found])
    located = [one for _, one in found]
    true = _at(times, recording.true_times, recording.true_positions)
    rotations = np.array([one.state.base.rotation for one in located])
    first, last = (np.searchsorted(recording.true_times, at - 1e-8) for at in times[[0, -1]])
    heading = pin.exp3(np.array((0.0, 0.0, yaw_of(recording.true_rotations[first])
                                 - yaw_of(rotations[0]))))
    positions = np.array([one.state.base.position for one in located])
    error = (positions - positions[0]) @ heading.T - (true - true[0])
    stated, nees, cover = np.full(3, np.nan), np.nan, np.full(3, np.nan)
    if located[0].filtered is not None:
        covariances = np.array([heading @ one.filtered.pose_covariance[:3, :3] @ heading.T
                                for one in located])
        deviations = np.sqrt(np.einsum('nii->ni', covariances))
        stated, nees = deviations[-1], _nees(error[1:], covariances[1:])
        cover = np.mean(np.abs(error[1:]) < 1.96 * deviations[1:], axis=0)
    velocity, velocity_nees = _velocity_errors(recording, times, located, rotations, heading)
    turned = (yaw_of(heading @ rotations[-1]) - yaw_of(recording.true_rotations[last])
              + np.pi) % (2.0 * np.pi) - np.pi
    filtered = isinstance(estimator.base, FilterBase)
    return BaseErrors(
        end=error[-1], rms=np.sqrt(np.mean(error ** 2, axis=0)),
        distance=float(np.linalg.norm((true[-1] - true[0])[:2])), stated=stated, cover=cover,
        nees=nees, velocity_nees=velocity_nees, velocity=velocity, heading=turned,
        slips=estimator.base.estimate.slips.count if filtered else 0,
        restarts=sum(one.restarted for one in located[1:]),
        unstable=float(np.mean(np.array(levels) >= Level.UNSTABLE)), seconds=seconds)


def _velocity_errors(recording: BaseRecording, times: Array, located: list[LocatedState],
                     rotations: Array, heading: Array) -> tuple[Array, float]:
    """Return rms errors (3,), m/s, and the NEES of the velocity while the robot moves."""
    grid = np.arange(0.2, recording.true_times[-1] - 0.2, 0.01)
    width = round(_SMOOTHED / 0.01)
    true = np.gradient(_smooth(_at(
        grid, recording.true_times, recording.true_positions), width), 0.01, axis=0)
    velocities = np.array([R @ one.twist.linear for R, one in zip(rotations, located)])
    errors = _smooth(_at(grid, times, velocities @ heading.T), width) - true
    moves = grid > recording.moves_from
    nees = np.nan
    if located[0].filtered is not None:
        index = np.minimum(np.searchsorted(times, grid[moves]), len(times) - 1)
        turns = heading @ rotations[index]
        covariances = np.array([located[k].filtered.twist_covariance[:3, :3] for k in index])
        nees = _nees(errors[moves], turns @ covariances @ turns.transpose(0, 2, 1))
    return np.sqrt(np.mean(errors[moves] ** 2, axis=0)), nees


def _at(times: Array, known: Array, values: Array) -> Array:
    """Return values (N, 3) by interpolation; instants with the same stamp count once."""
    known, index = np.unique(known, return_index=True)
    return np.column_stack([np.interp(times, known, column[index]) for column in values.T])


def _smooth(values: Array, width: int) -> Array:
    """Return the moving means of the columns, whose ends are as they are."""
    half, smooth = width // 2, values.copy()
    sums = np.cumsum(np.vstack((np.zeros(3), values)), axis=0)
    smooth[half:len(values) - half] = (sums[width:] - sums[:-width]) / width
    return smooth


def _nees(errors: Array, covariances: Array) -> float:
    regular = covariances + 1e-10 * np.eye(3)
    return float(np.mean(np.einsum(
        'ni,ni->n', errors, np.linalg.solve(regular, errors[:, :, None])[:, :, 0])))


def print_bases(path: Path, source: str) -> None:
    """Print the errors of the base for all recordings of iCub and all variants."""
    rows = []
    for name in ICUB_RECORDINGS:
        for variant in VARIANTS:
            found = base_errors(icub(path, name, variant), BaseSettings(source=source))
            level = 1e3 * np.linalg.norm(found.end[:2])
            rows.append((
                f'{name}, {variant}', f'{level:.0f} of {1e3 * found.distance:.0f}',
                _numbers(1e3 * found.end, 0), _numbers(1e3 * found.rms, 1),
                _numbers(1e3 * found.stated, 0), _numbers(100.0 * found.cover, 0),
                f'{found.nees:.1f}, {found.velocity_nees:.1f}',
                _numbers(1e3 * found.velocity, 0), f'{np.degrees(found.heading):.1f}',
                f'{found.slips}, {found.restarts}', f'{100.0 * found.unstable:.0f}',
                f'{1e6 * found.seconds:.0f}'))
    print_table(f'base of a real iCub, base_source: {source}', (
        'recording', 'end, mm', 'x y z, mm', 'rms, mm', 'stated, mm', 'cover, %', 'NEES p, v',
        'v, mm/s', 'yaw, deg', 'slips, restarts', 'UNSTABLE, %', 'us'), rows)


def _numbers(values: Array, decimals: int) -> str:
    return ' '.join(f'{value:.{decimals}f}' for value in values)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--data', default='', help=f'directory of the recordings ({VARIABLE})')
    parser.add_argument('--source', choices=SOURCES, help='default: both')
    given = parser.parse_args()
    path = directory(given.data)
    if path is None:
        print(f'no recordings: name their directory by --data or {VARIABLE}; see '
              'doc/appendix/results.rst')
        return 0
    console.print(machine())
    for source in SOURCES if given.source is None else (given.source,):
        print_bases(path, source)
    return 0


if __name__ == '__main__':
    sys.exit(main())
