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
Gravity compensation on recorded walks: instants refused, and what is left of motor torques.

Efforts are compared with the motors' torques of the recording, which another controller commanded
without any feedforward.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.common import print_table
from benchmarks.recorded_walk import RecordedWalk
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import (
    CLOSED_FORM, CompensationSettings, GravityCompensator, MEASURED)
from biped_com_ros.core.gravity.effort_guard import SafetySettings
import numpy as np

_STEP_NS = 2_000_000
_START = 450  # the robots are dropped to the ground at the beginning of the recordings
_SETTLED = 250
#: Rate limits of efforts, shares of the joint's limit per second; the first is the default.
_RATES = 2.0, 20.0


def walk_efforts(walk: RecordedWalk, settings: CompensationSettings) -> tuple[Array, Array]:
    """Return efforts before and after the guard of each instant, (T, n); NaN where refused."""
    model, rotations = walk.model, walk.true_rotations
    compensator = GravityCompensator(model, settings)
    compensator.guard.start()
    computed, commanded = [], []
    for i in range(_START, len(walk.times)):
        stamp_ns, efforts = 10**9 + i * _STEP_NS, None
        for contact, wrench in enumerate(walk.wrenches[i].tolist()):
            compensator.update_wrench(contact, wrench, stamp_ns)
        load = compensator.gravity_model.load(
            model.state(walk.positions[i]), rotations[i, 2])
        try:
            efforts = compensator.efforts(load, stamp_ns)
        except InputError:
            pass
        computed.append(np.full(len(model.joint_names), np.nan) if efforts is None else efforts)
        commanded.append(compensator.guard.update(efforts, 1e-9 * _STEP_NS).copy())
    return np.array(computed), np.array(commanded)


def left(walk: RecordedWalk, efforts: Array) -> Array:
    """Return what efforts leave of the motors' torques, rms by rms, (n,)."""
    torques = walk.efforts[_START:]
    good = np.isfinite(efforts[:, 0])
    good[:_SETTLED] = False
    squares: Array = ((torques - efforts)[good] ** 2).mean(0) / (torques[good] ** 2).mean(0)
    return np.sqrt(squares)


def gravity_row(walk: RecordedWalk, distribution: str) -> tuple[str, ...]:
    """Return a line of the table."""
    cells, refused = [], 0.0
    for rate in _RATES:
        computed, commanded = walk_efforts(walk, CompensationSettings(
            distribution=distribution, safety=SafetySettings(
                clamp=1.0, max_rate=rate, start_time=0.1, default_limit=200.0)))
        refused = 100.0 * float(np.isnan(computed[:, 0]).mean())
        cells += [*([] if cells else [left(walk, computed)]), left(walk, commanded)]
    half = [f'{int((shares <= 0.5).sum())} of {len(shares)}' for shares in cells]
    return (walk.name, distribution, f'{refused:.2f}',
            f'{np.median(cells[0]):.2f}', *half)


def print_gravity(walks: Sequence[RecordedWalk]) -> None:
    """Print the table: joints of which at most half of the torque is left."""
    print_table('Gravity compensation: joints with at most half of their torque left', (
        'walk', 'distribution', 'refused, %', 'left, median', 'computed',
        *(f'rate {rate:g}/s' for rate in _RATES)),
        [gravity_row(walk, distribution)
         for walk in walks for distribution in (CLOSED_FORM, MEASURED)])
