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
``calibrate``: estimate masses and centres of mass from a recording, without a robot.

    ros2 run biped_com_ros calibrate BAG --robot talos --out results

Reads rosbag2 (sqlite3 or MCAP) or CSV, captures the segments at rest, estimates, and writes
``calibrated.urdf``, ``calibration.json``, ``captures.json``, ``report.html``, ``inertials.yaml``,
the robot's YAML with the estimated errors of the instruments and, with ``--mjcf``, a MuJoCo model.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import math
from pathlib import Path
import sys

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.identification.captures import (
    Capture, CaptureLog, MotorConstants, SensorNoise)
from biped_com_ros.core.identification.exports import write_exports
from biped_com_ros.core.identification.first_moments import StaticsRegressor
from biped_com_ros.core.identification.paper.captures import best_pair, rank_of
from biped_com_ros.core.identification.recordings import CaptureFinder, read_recording
from biped_com_ros.core.identification.results import solve_and_write, summary
from biped_com_ros.core.identification.stillness import StillnessOptions
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from rich.console import Console
from rich.progress import Progress


INSTRUMENTS = (
    ('force_bias', 'N', 'the bias of forces'), ('moment_bias', 'Nm', 'the bias of moments'),
    ('force_drift', 'N', 'the change of the bias of forces over the recording'),
    ('moment_drift', 'Nm', 'the change of the bias of moments'),
    ('wrench_gain', 'SHARE', 'the gains of wrench sensors'),
    ('cross_talk', 'SHARE', 'the cross-talk of wrench sensors'),
    ('sensor_shift', 'M', "the places of wrench sensors' frames"),
    ('sensor_turn', 'RAD', "the axes of wrench sensors' frames"),
    ('torque_bias', 'Nm', 'the bias of joint torques'),
    ('torque_gain', 'SHARE', 'the torque constants'),
    ('friction', 'SHARE', "the joints' friction over their effort limit"),
    ('encoder_offset', 'RAD', 'the offsets of joint positions'),
    ('tilt_bias', 'RAD', 'the bias of the direction of gravity'))
"""Errors of `SensorNoise` that stay the same over a recording: name, unit, description."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(
        prog='calibrate', description='Estimate masses and centres of mass from a recording.')
    result.add_argument('recording', type=Path, help='rosbag2 directory, .mcap, .db3 or .csv')
    result.add_argument('--robot', required=True, help='name of a robot, or path of its YAML')
    result.add_argument('--urdf', default='', help="overrides the robot's URDF")
    result.add_argument('--out', type=Path, default=Path('calibration'),
                        help='directory of the results (default: calibration)')
    result.add_argument('--mjcf', type=Path, metavar='FILE',
                        help='MuJoCo model whose bodies have the names of the links; it is '
                             'written with the calibrated inertials')
    result.add_argument('--two-pose', action='store_true',
                        help='also print the total centre of mass from two poses that differ by '
                             'a lean about the ankles, without the masses of the URDF')
    result.add_argument('--namespace', default='', help='of the topics in the bag')
    result.add_argument('--still', type=float, default=1.0, metavar='SECONDS',
                        help='time for which the robot must be still to be captured')
    result.add_argument('--still-range', type=float, default=0.004, metavar='RAD',
                        help='largest movement of a joint in this time')
    result.add_argument('--current', action='append', default=[], metavar='JOINT=K',
                        help="the joint's efforts are currents; K is torque per ampere")
    for name, default, unit, what in (
            ('force', 0.5, 'N', 'forces'), ('moment', 0.02, 'Nm', 'moments'),
            ('torque', 0.3, 'Nm', 'joint torques'),
            ('encoder', math.radians(0.1), 'rad', 'joint positions'),
            ('tilt', 0.0009, 'rad', 'the direction of gravity')):
        result.add_argument(f'--{name}-noise', type=float, default=default, metavar=unit,
                            help=f'standard deviation of {what}')
    for name, unit, what in INSTRUMENTS:
        result.add_argument(
            f'--{name.replace("_", "-")}', type=float, default=getattr(SensorNoise(), name),
            metavar=unit, help=f'standard deviation of {what}, which is estimated '
            '(default: %(default)g; 0: exact)')
    result.add_argument('--com-sigma', type=float, default=0.015, metavar='M',
                        help="standard deviation of a link's centre of mass about the URDF's")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; errors are printed as one line."""
    options, console = parser().parse_args(argv), Console(stderr=True)
    try:
        calibrate(options, console)
    except BipedComError as error:
        console.print(f'calibrate: {error}', style='bold red', highlight=False, markup=False)
        return 1
    return 0


def calibrate(options: argparse.Namespace, console: Console) -> None:
    """Read the recording, estimate, and write and print the results."""
    config = load_robot_config(options.robot)
    model = RobotModel(config, load_urdf(config, options.urdf))
    for question in model.questions:
        console.print(f'warning: {question}', style='yellow', highlight=False, markup=False)
    captures = find_captures(options, model, console)
    log = CaptureLog(options.out / 'captures.json', model)
    log.clear()
    for capture in captures:
        log.append(capture)
    noise = SensorNoise(
        force=options.force_noise, moment=options.moment_noise, torque=options.torque_noise,
        encoder=options.encoder_noise, tilt=options.tilt_noise,
        **{name: getattr(options, name) for name, _, _ in INSTRUMENTS})
    with console.status(f'solving {len(captures)} poses'):
        found, paths = solve_and_write(options.out, model, captures, noise, options.com_sigma)
        paths |= write_exports(
            options.out, model, found, robot=options.robot, mjcf=options.mjcf)
    print(summary(found))
    if options.two_pose:
        print_two_pose(model, captures, noise)
    for what, path in paths.items():
        print(f'{what}: {path}')


def print_two_pose(model: RobotModel, captures: Sequence[Capture], noise: SensorNoise) -> None:
    """Print the paper's total centre of mass and rank; an error where no two poses allow it."""
    regressor = StaticsRegressor(model)
    print(rank_of(regressor, captures).describe())
    first, second, measured = best_pair(regressor, captures, noise)
    print(f"poses '{first.name}' and '{second.name}': {measured.describe()}")


def find_captures(options: argparse.Namespace, model: RobotModel,
                  console: Console) -> list[Capture]:
    """Return the captures of the recording; show the progress of reading."""
    finder = CaptureFinder(
        model, StillnessOptions(duration=options.still, joint_range=options.still_range),
        MotorConstants(dict(map(_constant, options.current))))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task('reading', total=1.0)
        for event in read_recording(options.recording, model, options.namespace):
            finder.add(event)
            if event.share:
                progress.update(task, completed=event.share,
                                description=f'reading, {len(finder.captures)} poses')
    captures = finder.require_captures()
    for problem, count in finder.rejected.items():
        console.print(f'{count} segment(s) without a capture: {problem}', style='yellow',
                      markup=False)
    return captures


def _constant(text: str) -> tuple[str, float]:
    name, _, value = text.partition('=')
    try:
        return name, float(value)
    except ValueError:
        raise ConfigurationError(
            f"--current '{text}' must be JOINT=K with K in N m/A") from None


if __name__ == '__main__':
    sys.exit(main())
