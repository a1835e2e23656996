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
Ten quick steps of the demo robot down slopes, without and with feedback.

The gait knows nothing of the slope. Feedback has the true attitude and wrenches at 50 Hz, and its
increments are reached one period later. Printed are the errors of the zero-moment point, its least
margin and slips, worst of five robots whose true masses differ from the URDF's. With a directory,
draws the walks of the first robot down 6 deg (``slope_zmp.svg``)::

    python -m examples.slope [DIRECTORY]
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from pathlib import Path
import sys
from typing import Any

from biped_com_ros import RobotModel
from biped_com_ros.core.legs import Gait, walk
from biped_com_ros.core.legs.balance import BalanceSettings
from biped_com_ros.core.legs.gait import QUICK
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from examples.figures import chart, COLOURS, GREY, save
from examples.stepping import LENGTH, MASS_SIGMA, SEEDS, StepRecord, Walker
import numpy as np

SLOPES = (0.0, 6.0, 8.0)
"""Downwards, deg."""

_SHOWN = 6.0
_EVERY = 10


def walk_down(gait: Gait, degrees: float, seed: int, *, feedback: bool) -> StepRecord:
    """Walk down a slope with masses of a seed."""
    options = PlantOptions(seed=seed, mass_sigma=MASS_SIGMA, world=WorldOptions(
        floor_pitch=math.radians(degrees)))
    balance = BalanceSettings() if feedback else None
    return Walker(gait.model, options, balance=balance).walk(gait)


def row(degrees: float, feedback: bool, records: Sequence[StepRecord]) -> tuple[str, ...]:
    """Return a line of the table: the worst of several walks, mm."""
    x, y = 1e3 * np.max([record.zmp_rms for record in records], axis=0)
    margin = 1e3 * min(float(np.nanmin(record.margins)) for record in records)
    slip = 1e3 * max(max(record.slips()) for record in records)
    falls = sum(record.has_fallen for record in records)
    return (f'{degrees:g} deg', 'with' if feedback else 'without', f'{x:.1f}, {y:.1f}',
            f'{margin:.1f}', f'{slip:.2f}', f'{falls} fell' if falls else '')


def draw(open_loop: StepRecord, closed: StepRecord, directory: Path) -> Path:
    """Draw the forward error of the zero-moment point in two walks; return the file."""
    axes = chart(f'Zero-moment point of quick steps, {_SHOWN:g} deg down', 'time [s]',
                 'error forward [mm]')
    axes.axhline(0.0, color=GREY, linewidth=1.0)
    for record, name, colour in ((open_loop, 'without feedback', COLOURS[1]),
                                 (closed, 'with feedback', COLOURS[0])):
        error = 1e3 * (record.zmp - record.reference)[:, 0]
        axes.plot(record.times[::_EVERY], error[::_EVERY], color=colour, linewidth=1.2,
                  label=name)
    low, high = axes.get_ylim()
    axes.set(xlim=(0.0, closed.times[-1]), ylim=(low, high + 0.3 * (high - low)))
    return save(axes, directory / 'slope_zmp.svg')


def main(directory: str = '') -> None:
    """Walk, print, and draw."""
    from benchmarks.common import console, print_table
    gait = walk(RobotModel.load('biped'), 10, LENGTH, options=QUICK)
    rows, shown = [], dict[bool, Any]()
    for degrees in SLOPES:
        for feedback in (False, True):
            records = [walk_down(gait, degrees, seed, feedback=feedback) for seed in SEEDS]
            rows.append(row(degrees, feedback, records))
            if degrees == _SHOWN:
                shown[feedback] = records[0]
    print_table('Ten quick steps down a slope, worst of five robots, mm', (
        'down', 'feedback', 'ZMP rms x, y', 'least margin', 'largest slip', ''), rows)
    if directory:
        console.print(f'wrote {draw(shown[False], shown[True], Path(directory))}')


if __name__ == '__main__':
    main(*sys.argv[1:])
