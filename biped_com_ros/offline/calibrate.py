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
    ros2 run biped_com_ros calibrate --fleet UNITS --robot talos --out results

Reads rosbag2 (sqlite3 or MCAP) or CSV, of robots of Unitree also with ``LowState`` instead of
joint states and IMU. Captures the segments at rest, estimates, and writes ``calibrated.urdf``,
``calibration.json``, ``captures.json``, ``report.html``, ``inertials.yaml``, the robot's YAML with
the estimated errors of the instruments and, with ``--mjcf``, a MuJoCo model.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import math
from pathlib import Path
import sys

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.recordings import STILL
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.moments_from_com import describe_poses, rank_of
from biped_com_ros.core.identification.estimation.two_poses import best_pair
from biped_com_ros.core.identification.output.results import summary
from biped_com_ros.offline.estimation import Calibrated, estimate, INSTRUMENTS
from biped_com_ros.offline.fleet import calibrate_fleet
from rich.console import Console

COLUMNS = """\
A recording has, as a bag, the topics joint_states, those of the wrench sensors and of the IMU in
the robot's file. A CSV has a header line and one instant per line, with the columns
  time                          s
  position/<joint>              every joint, rad
  effort/<joint>                where known, N m; or A, with --current
  <sensor>/fx fy fz tx ty tz    every wrench sensor of the robot's file, N and N m
  imu/qx qy qz qw               orientation of the IMU
A CSV of averaged captures, one at rest per line, has position/, effort/ and <sensor>/ as above and
  name                          of the capture
  time                          s; sensors drift by it
  up/x y z                      unit vector against gravity in the frame of the robot's IMU, in
                                the base without one
Which feet stand follows from the sensors' forces, unless --hanging is given.
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(
        prog='calibrate', formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Estimate masses and centres of mass from a recording.', epilog=COLUMNS)
    source = result.add_mutually_exclusive_group(required=True)
    source.add_argument('recording', type=Path, nargs='?',
                        help='rosbag2 directory, .mcap, .db3, .csv of instants or of averaged '
                        'captures, or captures.json of a calibration')
    source.add_argument('--fleet', type=Path, metavar='DIR',
                        help='directory with a recording of each of many units, or with a '
                        'directory for each that holds one; an interrupted run is continued')
    _add_robot(result)
    _add_fleet(result)
    _add_extras(result)
    _add_captures(result)
    _add_noise(result)
    _add_priors(result)
    return result


def _add_robot(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group('robot and results')
    group.add_argument('--robot', required=True, help='name of a robot, or path of its YAML')
    group.add_argument('--urdf', default='', help="overrides the robot's URDF")
    group.add_argument('--out', type=Path, default=Path('calibration'),
                       help='directory of the results (default: calibration)')
    group.add_argument('--mjcf', type=Path, metavar='FILE',
                       help='MuJoCo model whose bodies have the names of the links; it is '
                            'written with the calibrated inertials')


def _add_fleet(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group('many units')
    group.add_argument('--workers', type=int, default=0, metavar='COUNT',
                       help='number of processes for --fleet (default: the number of cores)')
    group.add_argument('--prior', type=Path, metavar='FILE',
                       help='prior.json of a fleet: what is known from other units')


def _add_extras(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group('also')
    group.add_argument('--two-pose', action='store_true',
                       help='print the total centre of mass from two poses that differ by '
                            'a lean about the ankles, without the masses of the URDF')
    group.add_argument('--known-com', type=Path, metavar='FILE',
                       help='YAML list of total centres of mass that are known otherwise, used '
                       'as measurements: com, sd or covariance, positions or capture, frame')
    group.add_argument('--poses', action='store_true',
                       help='print what the poses determine of the first moments with the '
                            "URDF's masses, and what they cannot distinguish")


def _add_captures(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group('what is captured of a recording')
    group.add_argument('--namespace', default='', help='namespace of the topics in the bag')
    group.add_argument('--still', type=float, metavar='SECONDS',
                       help='time for which the robot must be still to be captured (default: '
                       f'the longest of {", ".join(f"{s:g}" for s in STILL)} with most captures)')
    group.add_argument('--still-range', type=float, default=0.004, metavar='RAD',
                       help='largest movement of a joint in this time (default: %(default)g)')
    group.add_argument('--still-force', type=float, default=StillnessOptions.force_deviation,
                       metavar='NEWTON', help='largest standard deviation of a force in this '
                       'time (default: %(default)g)')
    group.add_argument('--hanging', action='store_true',
                       help='the robot hangs all the time, no foot touches anything, whatever '
                       'its sensors read; the base may be tilted')
    group.add_argument('--current', action='append', default=[], metavar='JOINT=K',
                       help="the joint's efforts are currents; K is its torque per current, N m/A")


def _add_noise(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group('standard deviations of the measurements')
    group.add_argument('--noise-at-mass', type=float, default=0.0, metavar='KG',
                       help='errors in N and N m, here and below, are those of a robot of this '
                       'mass, and are scaled to this robot, as by the parameter noise_at_mass of '
                       'com_calibrator (64 for the simulated ones; default: 0, not scaled)')
    for name, default, unit, what in (
            ('force', 0.5, 'NEWTON', 'forces'), ('moment', 0.02, 'NEWTON_METRE', 'moments'),
            ('torque', 0.3, 'NEWTON_METRE', 'joint torques'),
            ('encoder', math.radians(0.1), 'RAD', 'joint positions'),
            ('tilt', 0.0009, 'RAD', 'the direction of gravity')):
        group.add_argument(f'--{name}-noise', type=float, default=default, metavar=unit,
                           help=f'{what} (default: %(default).4g)')


def _add_priors(result: argparse.ArgumentParser) -> None:
    group = result.add_argument_group(
        "standard deviations of what is estimated; 0: it is as the robot's file says")
    group.add_argument('--com-sigma', type=float, default=0.015, metavar='METRE',
                       help="a link's centre of mass about the URDF's (default: %(default)g)")
    for name, unit, what in INSTRUMENTS:
        group.add_argument(
            f'--{name.replace("_", "-")}', type=float, default=getattr(SensorNoise(), name),
            metavar=unit, help=f'{what} (default: %(default)g)')
    group.add_argument('--sole-contact', type=float, default=SensorNoise().sole_contact,
                       metavar='RAD', help='the angles between standing soles and the floor '
                       '(default: %(default)g; 0: soles are not used to calibrate joint offsets '
                       'and IMU)')


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; errors are printed as one line."""
    options, console = parser().parse_args(argv), Console(stderr=True)
    try:
        if options.fleet is None:
            calibrate(options, console)
        else:
            calibrate_fleet(options, console)
    except BipedComError as error:
        console.print(f'calibrate: {error}', style='bold red', highlight=False, markup=False)
        return 1
    return 0


def calibrate(options: argparse.Namespace, console: Console) -> None:
    """Read the recording, estimate, and write and print the results."""
    result = estimate(options, console)
    print(summary(result.found))
    if options.poses:
        print_poses(result)
    if options.two_pose:
        print_two_pose(result)
    for what, path in result.paths.items():
        print(f'{what}: {path}')


def print_poses(result: Calibrated) -> None:
    """Print what the n + 1 poses of the paper determine, with the URDF's masses."""
    text = describe_poses(
        StaticsRegressor(result.model), result.captures, result.noise, result.known)
    print(text.replace('; ', '\n'))


def print_two_pose(result: Calibrated) -> None:
    """Print the paper's total centre of mass and rank; an error where no two poses allow it."""
    regressor = StaticsRegressor(result.model)
    print(rank_of(regressor, result.captures).describe())
    first, second, measured = best_pair(regressor, result.captures, result.noise)
    print(f"poses '{first.name}' and '{second.name}': {measured.describe()}")


if __name__ == '__main__':
    sys.exit(main())
