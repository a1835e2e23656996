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
The whole calibration, through simulator and nodes, on robots whose truth is known.

`simulator` and `com_calibrator` run as processes of their own, as a user starts them: the robot
has 15 mm per axis and 5 kg hidden, its sensors are noisy and its encoders off by 0.1 degrees. It
is hoisted, let down, moved from pose to pose and captured; `calibration.json` at the
end is tested on other poses, with the truth from MuJoCo.

    python benchmarks/calibration.py [--robot NAME] [--poses K] [--seed N] [--factor F]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.common import console, machine, print_table, print_targets, Target
from benchmarks.identification import NOISE, Score, scores_of
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.poses.pose_design import PoseDesigner
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.model.robot import RobotModel
from examples.static_robot import hidden_lumps, StaticRobot
import numpy as np
import yaml

ROBOTS = ('sabian', 'talos', 'g1')
GOAL = {'sabian': 0.26, 'talos': 0.30, 'g1': 0.46}
"""What identification.py reaches without a simulator, mm."""

SENSORS = {'force_noise': 0.5, 'torque_noise': 0.02, 'effort_noise': 0.3, 'encoder_noise': 0.0005,
           'encoder_offset': 0.00175, 'tilt_bias': 0.0009, 'force_bias': 0.3, 'torque_bias': 0.01}


def start(node: str, parameters: dict[str, Any], directory: Path,
          environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a node with parameters; what it prints goes to a file."""
    file = directory / f'{node}.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
    return subprocess.Popen(
        [sys.executable, '-m', f'biped_com_ros.nodes.{node}.node', '--ros-args', '--params-file',
         str(file)], env=environment, stdout=(directory / f'{node}.log').open('wb'),
        stderr=subprocess.STDOUT)


def run(name: str, options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Calibrate one robot and return the contents of calibration.json."""
    model = RobotModel.load(name)
    errors = hidden_lumps(dict(zip(model.link_names, model.link_masses.tolist())), options.seed)
    lines = [f'{link} {e.mass:.17g} {" ".join(f"{x:.17g}" for x in e.com)}'
             for link, e in errors.items()]
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(random.randint(1, 100)),
                   'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    processes = [
        start('simulator', {
            'robot': name, 'hidden_errors': lines, 'seed': options.seed, 'rate': 100.0,
            'real_time_factor': options.factor, **SENSORS}, directory, environment),
        start('com_calibrator', {
            'robot': name, 'directory': str(directory), 'poses': options.poses, 'move': True,
            'lift_feet': options.lift_feet, 'torso_bend': 0.2, 'use_sim_time': True,
            'hoist_service': 'simulator/hang', 'max_stamp_age': 5.0}, directory, environment)]
    try:
        return wait_for(directory / name, directory / 'com_calibrator.log', processes,
                        options.timeout)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def wait_for(directory: Path, log: Path, processes: list[subprocess.Popen[bytes]],
             timeout: float) -> dict[str, Any]:
    """Show how far it is until the results are there."""
    results, shown, end = directory / 'calibration.json', 0, time.monotonic() + timeout
    while not results.exists():
        if time.monotonic() > end or any(process.poll() is not None for process in processes):
            raise SystemExit(
                f'no result; last output of the calibrator:\n{log.read_text()[-2000:]}')
        lines = log.read_text().splitlines()
        for line in lines[shown:]:
            console.print(f'  {line}', highlight=False, markup=False, soft_wrap=True)
        shown = len(lines)
        time.sleep(1.0)
    time.sleep(0.5)
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def score(name: str, seed: int, found: dict[str, Any]) -> tuple[Score, Score]:
    """Return how good CAD and the estimate are on poses that were not taken."""
    model = RobotModel.load(name)
    errors = hidden_lumps(dict(zip(model.link_names, model.link_masses.tolist())), seed)
    truth = StaticRobot(model.config, model.urdf, errors, model.joint_names)
    others = PoseDesigner(model, DesignOptions(count=1, candidates=24, seed=77), NOISE)
    held_out = [(c.positions, c.placement.standing) for c in others.candidates()]
    masses = np.array([found['links'][link]['mass'] for link in model.link_names])
    coms = np.array([found['links'][link]['com'] for link in model.link_names])
    theta = np.column_stack((masses, masses[:, np.newaxis] * coms))
    return (scores_of(model, parameters_of(model), truth, held_out),
            scores_of(model, theta, truth, held_out))


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', action='append', help='default: ' + ', '.join(ROBOTS))
    parser.add_argument('--poses', type=int, default=40)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--factor', type=float, default=4.0, help='simulated seconds per second')
    parser.add_argument('--lift-feet', action='store_true', help='poses on one foot, too')
    parser.add_argument('--timeout', type=float, default=1800.0, help='s')
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the nodes end, too
    console.print(machine())
    targets = []
    for name in options.robot or ROBOTS:
        with tempfile.TemporaryDirectory() as directory:
            began = time.monotonic()
            found = run(name, options, Path(directory))
            took = time.monotonic() - began
        before, after = score(name, options.seed, found)
        print_table(f'{name}: {options.poses} poses, seed {options.seed}, {took:.0f} s', (
            '', 'CoM mm', 'torque rms Nm', 'total mass kg', 'link CoMs mm'), [
            (what, f'{1e3 * s.com:.3f}', f'{s.torque:.3f}', f'{s.mass:+.3f}',
             f'{1e3 * s.links:.2f}') for what, s in (('CAD', before), ('calibrated', after))])
        for warning in found['warnings']:
            console.print(f'  {warning}', highlight=False, markup=False, soft_wrap=True)
        targets.append(Target(name, 'held-out CoM through the nodes', 1e3 * after.com,
                              1.5 * GOAL.get(name, 0.5), unit='mm'))
    print_targets(targets)
    return 0 if all(target.met for target in targets) else 1


if __name__ == '__main__':
    sys.exit(main())
