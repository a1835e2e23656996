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
What quick steps of the demo robot survive without and with feedback, in one process.

Largest push at the torso in four headings, in the middle of a swing, and largest slope, to which
the floor tilts by 4 deg/s under the standing robot, before it walks down; both with the same
robots, whose true masses differ from the URDF's. The gait knows nothing of either. Counted are
pushes up to the first that fells a robot: a larger one may be survived by chance. The slope is
found by bisection. Feedback is that of :mod:`examples.slope`, with steps that may land elsewhere;
on slopes it acts while the robot stands, too::

    python -m benchmarks.walk_limits [--seeds 1 2 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
import math
import os
import sys

from benchmarks.common import console, print_table
from biped_com_ros.core.legs.balance import BalanceSettings, stepping
from biped_com_ros.core.legs.gait import Gait, QUICK, walk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.interface import PlantOptions
from examples.stepping import LENGTH, MASS_SIGMA, PUSH_TIME, SEEDS, Walker
import numpy as np

HEADINGS = {'forward': 0.0, 'backward': 180.0, 'to the foot in the air': 90.0,
            'away from it': 270.0}
"""Of the push, deg; the left foot swings."""

STEPS, PUSHED_SWING = 4, 1
PUSHES = np.arange(2.0, 20.1, 0.75)
"""N."""
SLOPES, SLOPE_RESOLUTION = (2.0, 30.0), 0.5
"""Downwards, deg."""
FEEDBACK = {'without': None, 'with': stepping(0.15)}
MAX_TILT = 0.35
"""Largest tilt of the ground that feedback follows on slopes, rad, as `gait_player` allows."""


def largest(survives: Callable[[float], bool], low: float, high: float,
            resolution: float) -> float:
    """Return the largest value that is survived, by bisection from one that is taken to be."""
    while high - low > resolution:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if survives(middle) else (low, middle)
    return low


def largest_pushes(gait: Gait, seed: int, balance: BalanceSettings | None) -> list[float]:
    """Return the largest push in each heading, N; the walk until then is simulated once."""
    options = PlantOptions(seed=seed, mass_sigma=MASS_SIGMA, tendons=False)
    walker = Walker(gait.model, options, balance=balance)
    swing = gait.swings[PUSHED_SWING]
    times = walker.play(gait)
    while next(times) < 0.5 * (swing.start + swing.end):
        pass

    def survives(force: float, heading: float) -> bool:
        walker.push(force, heading)
        for _ in times:
            pass
        return not walker.has_fallen

    return [last_survived(lambda force, heading=heading: _in_fork(
        lambda: survives(force, heading))) for heading in HEADINGS.values()]


def last_survived(survives: Callable[[float], bool]) -> float:
    """Return the last of all pushes up to the first that is not survived, N; 0 if none is."""
    last = 0.0
    for force in PUSHES.tolist():
        if not survives(force):
            break
        last = force
    return last


def largest_slope(gait: Gait, seed: int, balance: BalanceSettings | None) -> float:
    """Return the largest slope down which a robot walks, deg."""
    if balance is not None:
        balance = replace(balance, max_tilt=MAX_TILT)
    options = PlantOptions(seed=seed, mass_sigma=MASS_SIGMA, tendons=False)

    def survives(degrees: float) -> bool:
        walker = Walker(gait.model, options, balance=balance, balances_at_rest=True)
        for _ in walker.play(gait, math.radians(degrees)):
            pass
        return not walker.has_fallen

    return largest(survives, *SLOPES, SLOPE_RESOLUTION)


def _in_fork(outcome: Callable[[], bool]) -> bool:
    """Return the outcome of a copy of this process: what it changes is not changed here."""
    child = os.fork()
    if not child:
        os._exit(0 if outcome() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main() -> int:
    """Print both tables; fail unless feedback reaches 1.5 times the push in each heading."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--seeds', type=int, nargs='+', default=SEEDS, help='one robot each')
    seeds: Sequence[int] = parser.parse_args().seeds
    gait = walk(RobotModel.load('biped'), STEPS, LENGTH, options=QUICK)
    pushes, slopes = {}, {}
    for kept, find, unit in ((pushes, largest_pushes, 'N'), (slopes, largest_slope, 'deg')):
        for name, balance in FEEDBACK.items():
            kept[name] = np.array([find(gait, seed, balance) for seed in seeds])
            console.print(f'{name} feedback: {kept[name].tolist()} {unit}', highlight=False)
    rows = [(heading, *(_cell(pushes[name][:, i]) for name in FEEDBACK),
             _ratio(pushes['with'][:, i], pushes['without'][:, i]))
            for i, heading in enumerate(HEADINGS)]
    rows.append(('slope down, deg', *(_cell(slopes[name]) for name in FEEDBACK),
                 _ratio(slopes['with'], slopes['without'])))
    print_table(f'Largest push for {PUSH_TIME:g} s in a swing, N, and largest slope', (
        'push', 'without feedback', 'with feedback', 'ratio of the means'), rows)
    return 0 if (pushes['with'].mean(axis=0) >= 1.5 * pushes['without'].mean(axis=0)).all() else 1


def _cell(values: np.ndarray) -> str:
    return f'{values.mean():.1f} ({values.min():.1f} to {values.max():.1f})'


def _ratio(ours: np.ndarray, others: np.ndarray) -> str:
    return f'{ours.mean() / others.mean():.2f}'


if __name__ == '__main__':
    sys.exit(main())
