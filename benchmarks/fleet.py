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
A fleet of simulated robots: what its units teach about the next one.

    python -m benchmarks.fleet --robot sabian --units 40 --poses 18 --few 6

All units share errors of the CAD (8 % and 5 mm per axis) and differ by production (1 % and 1 mm);
each has its own wrong instruments, as ``benchmarks.identification`` draws them. ``calibrate
--fleet`` calibrates them in processes; new units then are calibrated from few poses with its prior,
and from few and many without. CoM errors are of poses left out. Processor time is measured, since wall time
is that of the machine's other work, too.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.common import console, machine, print_table
from benchmarks.identification import (
    ALL, com_covered, NOISE, Spoiler, Study, WrongInstruments)
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.estimation.prior import prior_of
from biped_com_ros.core.identification.fleet import read_prior
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.hidden import draw, LinkError
from examples.static_robot import StaticRobot
import numpy as np

COMMON, SCATTER = (0.005, 0.08), (0.001, 0.01)
"""Of centres of mass, m per axis, and of masses as a share."""
WRONG = replace(ALL, is_known=True)


class FleetStudy(Study):
    """A robot whose units share most of their errors."""

    def draw(self, wrong: WrongInstruments,
             seed: int) -> tuple[StaticRobot, Spoiler, list[Capture]]:
        """Return a true unit, its instruments, and what they measure."""
        description = parse(self.model.urdf)
        common, own = draw(description, 1, *COMMON), draw(description, 1000 + seed, *SCATTER)
        errors = {}
        for name, error in common.items():
            x, y, z = (np.array(error.com) + own[name].com).tolist()
            errors[name] = LinkError(error.mass + own[name].mass, (x, y, z))
        robot = StaticRobot(
            self.model.config, self.model.urdf, errors, self.model.joint_names)
        return self.measured(robot, wrong, seed)


def write_units(study: FleetStudy, directory: Path, units: int) -> None:
    """Write the captures of each unit."""
    for k in range(units):
        path = directory / f'unit_{k:04d}'
        path.mkdir()
        log = CaptureLog(path / 'captures.json', study.model)
        for capture in study.draw(WRONG, k)[2]:
            log.append(capture)


def calibrate(study: FleetStudy, units: Path, out: Path, workers: int) -> tuple[float, float]:
    """Run the command; return wall and processor time, s."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.offline.calibrate', '--fleet', str(units),
         '--robot', study.name, '--out', str(out), '--workers', str(workers)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, sum(
        getattr(after, what) - getattr(before, what) for what in ('ru_utime', 'ru_stime'))


def compare(studies: dict[str, tuple[FleetStudy, Estimator]],
            seeds: range) -> list[tuple[str, ...]]:
    """Return CoM error, what was predicted, and coverage, of new units by each way."""
    rows = []
    for name, (study, estimator) in studies.items():
        errors, covered, predicted = [], [], []
        for seed in seeds:
            robot, _, captures = study.draw(WRONG, seed)
            found = estimator.solve(captures)
            errors.append(study.com_rms(found.parameters, robot))
            inside, sd = com_covered(study, robot, found.parameters, found.covariance)
            covered += inside
            predicted.append(sd)
        rows.append((name, f'{1e3 * np.mean(errors):.2f}', f'{1e3 * np.max(errors):.2f}',
                     f'{1e3 * np.mean(predicted):.2f}', f'{100.0 * np.mean(covered):.0f} %'))
    return rows


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--robot', default='sabian')
    for name, value in (('units', 40), ('poses', 18), ('few', 6), ('new', 10), ('workers', 2)):
        parser.add_argument(f'--{name}', type=int, default=value)
    options = parser.parse_args(argv)
    console.print(machine())
    many, few = (FleetStudy(options.robot, n) for n in (options.poses, options.few))
    with tempfile.TemporaryDirectory() as name:
        units, out = Path(name) / 'units', Path(name) / 'out'
        units.mkdir()
        write_units(many, units, options.units)
        wall, used = calibrate(many, units, out, options.workers)
        fleet = Estimator(few.model, NOISE, prior_of(
            few.model, fleet=read_prior(out / 'prior.json', few.model)))
    console.print(f'{options.units} units: {60.0 * options.units / wall:.1f} per minute with '
                  f'{options.workers} workers, {used / options.units:.2f} s processor time each')
    print_table(f'{options.robot}: {options.new} new units, CoM in mm on poses left out', (
        'poses, prior', 'rms', 'worst', 'predicted', 'covered'), compare({
            f'{options.poses}, URDF': (many, many.estimator),
            f'{options.few}, URDF': (few, few.estimator),
            f'{options.few}, fleet of {options.units}': (few, fleet)},
            range(500, 500 + options.new)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
