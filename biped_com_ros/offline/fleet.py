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
``calibrate --fleet DIR``: calibrate many units of a robot, and compare them.

Units are calibrated in processes, side by side.
The result of each is a file that appears as a whole, so that a run that was ended goes on where it
was: only units without a result of the same recording and options are calibrated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import hashlib
import json
import os
from pathlib import Path
import time
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.files import make_directory, read_text, write_atomically
from biped_com_ros.core.identification.fleet import (
    describe_fleet, fleet_numbers, fleet_report, unit_result, UnitResult, write_prior)
from biped_com_ros.offline.estimation import estimate
from biped_com_ros.offline.workers import run_in_processes
from rich.console import Console
from rich.progress import (
    BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn)

RECORDINGS = ('.csv', '.mcap', '.db3', '.json')
CAPTURES, RESULT = 'captures.json', 'unit.json'
_NOT_OF_UNITS = ('fleet', 'workers', 'recording', 'out', 'two_pose', 'poses')


def find_units(directory: Path) -> dict[str, Path]:
    """
    Return the recording of each unit by the unit's name.

    Raises
    ------
    ConfigurationError
        If the directory cannot be read, holds no unit, or a unit has no or several recordings.

    """
    try:
        entries = sorted(path for path in directory.iterdir() if path.name[0] != '.')
    except OSError as error:
        raise ConfigurationError(f"fleet '{directory}' cannot be read: {error.strerror}") from None
    units: dict[str, Path] = {}
    for entry in entries:
        if not entry.is_dir() and entry.suffix not in RECORDINGS:
            continue
        name = entry.name if entry.is_dir() else entry.stem
        if name in units:
            raise ConfigurationError(f"fleet '{directory}' has unit '{name}' twice: "
                                     f"'{units[name].name}' and '{entry.name}'")
        units[name] = _recording_in(entry) if entry.is_dir() else entry
    if not units:
        raise ConfigurationError(
            f"fleet '{directory}' has no recording: put one per unit there, {_kinds()}")
    return units


def _recording_in(directory: Path) -> Path:
    if (directory / 'metadata.yaml').exists():
        return directory
    if (directory / CAPTURES).exists():
        return directory / CAPTURES
    found = [path for path in sorted(directory.iterdir())
             if path.suffix in RECORDINGS or (path / 'metadata.yaml').exists()]
    if len(found) != 1:
        raise ConfigurationError(
            f"unit '{directory.name}' has {len(found)} recordings, not one: {_kinds()}")
    return found[0]


def _kinds() -> str:
    return f'a rosbag2 directory, {", ".join(RECORDINGS[:-1])} or {CAPTURES}'


def calibrate_fleet(options: argparse.Namespace, console: Console) -> None:
    """Calibrate the units that have no result yet, and write and print the comparison."""
    units = find_units(options.fleet)
    make_directory(options.out)
    jobs = {name: _options_of(options, name, path) for name, path in units.items()}
    open_jobs = [job for job in jobs.values() if not is_done(job)]
    if len(open_jobs) < len(jobs):
        console.print(f'{len(jobs) - len(open_jobs)} of {len(jobs)} units are done already')
    failed = run_jobs(open_jobs, options, console) if open_jobs else {}
    for name, problem in failed.items():
        console.print(f'{name}: {problem}', style='yellow', highlight=False, markup=False)
    results = [read_result(job) for name, job in jobs.items() if name not in failed]
    report = fleet_report(results)
    write_atomically(options.out / 'fleet.json', json.dumps(
        {**fleet_numbers(report), 'failed': failed}, indent=1))
    write_prior(options.out / 'prior.json', report)
    print(describe_fleet(report))
    if failed:
        print(f'{len(failed)} of {len(jobs)} units failed; run the same command to retry '
              f'them: {", ".join(failed)}')
    for what in ('fleet', 'prior'):
        print(f'{what}: {options.out / what}.json')


def run_jobs(jobs: Sequence[argparse.Namespace], options: argparse.Namespace,
             console: Console) -> dict[str, str]:
    """Calibrate units; return the problems of those that failed, by name."""
    failed: dict[str, str] = {}
    begin = time.monotonic()
    count = options.workers or os.cpu_count() or 1
    console.print(f'{len(jobs)} units in {count} processes', highlight=False)
    with Progress(TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(),
                  TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task('calibrating', total=len(jobs))
        for index, problem in run_in_processes(calibrate_unit, jobs, count):
            if problem:
                failed[jobs[index].unit] = problem
            progress.update(task, advance=1, description=f'calibrated {jobs[index].unit}')
    minutes = (time.monotonic() - begin) / 60.0
    console.print(f'{len(jobs)} units in {minutes:.1f} min: {len(jobs) / minutes:.1f} per minute, '
                  f'{1000.0 * minutes / len(jobs) / 60.0:.1f} h for 1,000', highlight=False)
    return failed


def calibrate_unit(job: argparse.Namespace) -> str:
    """Calibrate a unit in a worker; return what went wrong, '' if nothing."""
    try:
        result = estimate(job, Console(quiet=True))
        unit = unit_result(job.unit, result.model, result.found)
        # Last, since it marks the unit as done.
        write_atomically(job.out / RESULT, json.dumps(
            {'fingerprint': fingerprint(job), **unit.to_plain()}))
    except BipedComError as error:
        return str(error)
    return ''


def is_done(job: argparse.Namespace) -> bool:
    """Whether there is a result of the same recording and options."""
    try:
        return (job.out / RESULT).exists() and _plain(job)['fingerprint'] == fingerprint(job)
    except (ConfigurationError, ValueError, KeyError, TypeError):
        return False


def read_result(job: argparse.Namespace) -> UnitResult:
    """Return the result of a unit that is done."""
    try:
        return UnitResult.from_plain(_plain(job))
    except (ConfigurationError, ValueError) as error:
        raise ConfigurationError(f"'{job.out / RESULT}' is damaged ({error}): remove it") from None


def fingerprint(job: argparse.Namespace) -> str:
    """Return what changes with the recording and the options of a unit."""
    files = [job.recording, *sorted(job.recording.rglob('*'))] if job.recording.is_dir() else [
        job.recording]
    values: list[Any] = sorted(
        (key, str(value)) for key, value in vars(job).items() if key not in _NOT_OF_UNITS)
    values += [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    for path in (job.prior, job.known_com, job.urdf, job.robot):
        if path and Path(path).is_file():
            values.append(Path(path).stat().st_mtime_ns)
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _options_of(options: argparse.Namespace, name: str, recording: Path) -> argparse.Namespace:
    values = {**vars(options), 'recording': recording.resolve(), 'unit': name,
              'out': (options.out / 'units' / name).resolve()}
    return argparse.Namespace(**values)


def _plain(job: argparse.Namespace) -> dict[str, Any]:
    plain = json.loads(read_text(job.out / RESULT, 'result of a unit'))
    if not isinstance(plain, dict):
        raise ConfigurationError('it holds no object')
    return plain
