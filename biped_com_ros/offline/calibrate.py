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
``calibrate``: masses and centres of mass from a recording, without a robot.

    ros2 run biped_com_ros calibrate BAG --robot talos --out results

Reads rosbag2 (sqlite3 or MCAP) or CSV, finds the still segments, estimates, and writes
``calibrated.urdf``, ``calibration.json``, ``captures.json`` and ``report.html``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import math
from pathlib import Path
import sys

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.identification.captures import Capture, MotorConstants, SensorNoise
from biped_com_ros.core.identification.estimator import Estimator
from biped_com_ros.core.identification.prior import prior_of
from biped_com_ros.core.identification.recordings import CaptureFinder, read_recording
from biped_com_ros.core.identification.report import summary, write_results
from biped_com_ros.core.identification.stillness import StillnessOptions
from biped_com_ros.core.identification.storage import CaptureLog
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from rich.console import Console
from rich.progress import Progress


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(
        prog='calibrate', description='Find masses and centres of mass from a recording.')
    found.add_argument('recording', type=Path, help='rosbag2 directory, .mcap, .db3 or .csv')
    found.add_argument('--robot', required=True, help='name of a robot, or path of its YAML')
    found.add_argument('--urdf', default='', help="overrides the robot's URDF")
    found.add_argument('--out', type=Path, default=Path('calibration'), help='directory')
    found.add_argument('--namespace', default='', help='of the topics in the bag')
    found.add_argument('--still', type=float, default=1.0, metavar='SECONDS',
                       help='how long the robot has to be still to be captured')
    found.add_argument('--still-range', type=float, default=0.004, metavar='RAD',
                       help='largest movement of a joint meanwhile')
    found.add_argument('--current', action='append', default=[], metavar='JOINT=K',
                       help="the joint's efforts are currents; K is torque per ampere")
    for name, default, unit in (('force', 0.5, 'N'), ('moment', 0.02, 'Nm'),
                                ('torque', 0.3, 'Nm'), ('encoder', math.radians(0.1), 'rad'),
                                ('tilt', 0.0009, 'rad')):
        found.add_argument(f'--{name}-noise', type=float, default=default, metavar=unit)
    found.add_argument('--com-sigma', type=float, default=0.015, metavar='M',
                       help="how far a link's centre of mass may be from the URDF")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; what goes wrong is one line."""
    options, console = parser().parse_args(argv), Console(stderr=True)
    try:
        calibrate(options, console)
    except BipedComError as error:
        console.print(f'calibrate: {error}', style='bold red', highlight=False, markup=False)
        return 1
    return 0


def calibrate(options: argparse.Namespace, console: Console) -> None:
    """Do it all."""
    config = load_robot_config(options.robot)
    model = RobotModel(config, load_urdf(config, options.urdf))
    captures = find_captures(options, model, console)
    log = CaptureLog(options.out / 'captures.json', model)
    log.clear()
    for capture in captures:
        log.append(capture)
    noise = SensorNoise(
        force=options.force_noise, moment=options.moment_noise, torque=options.torque_noise,
        encoder=options.encoder_noise, tilt=options.tilt_noise, encoder_offset=0.002, force_bias=0.5, moment_bias=0.02,
        tilt_bias=0.003)
    with console.status(f'solving {len(captures)} poses'):
        found = Estimator(model, noise, prior_of(model, options.com_sigma)).solve(captures)
    paths = write_results(options.out, model, captures, found)
    print(summary(found))
    for what, path in paths.items():
        print(f'{what}: {path}')


def find_captures(options: argparse.Namespace, model: RobotModel,
                  console: Console) -> list[Capture]:
    """Read the recording, showing how far it is."""
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
    for why, count in finder.refused.items():
        console.print(f'{count} segment(s) left out: {why}', style='yellow', markup=False)
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
