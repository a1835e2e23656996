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
The fused CoM and external forces on recorded walks of a robot that carries 3 kg too much.

The load is a point at the centre of mass of the pelvis, which is lighter in the model.
Errors of positions are seen from the base, whose own are those of the base filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import xml.etree.ElementTree as ElementTree

from benchmarks.common import print_table
from benchmarks.recorded_walk import RecordedWalk
from benchmarks.walk_states import locate
from biped_com_ros.core.com.fused import FusedComEstimator, FusedComSettings
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

HIDDEN = 3.0
"""Mass of the load, kg."""
_SETTLED = 1000  # instants of a walk after which errors count
_AFTER_PUSH = 250  # instants after a push that are not calm


@dataclass(frozen=True)
class ComErrors:
    """
    Errors of one walk.

    Attributes
    ----------
    level, height
        Root mean squares of the centre of mass, m.
    velocity
        Of its velocity, m/s.
    mass
        Of the mass at the end, as a share.
    covered
        Share of the time in which 1.96 deviations cover each axis of the position, (3,).
    false_level, false_up
        Percentile 99 of the external force while nothing pushes, N.
    pushes
        External force along each push 20, 30, 50 and 100 ms after it began, over its size, (P, 4).

    """

    level: float
    height: float
    velocity: float
    mass: float
    covered: Array
    false_level: float
    false_up: float
    pushes: Array


def without_load(walk: RecordedWalk, mass: float = HIDDEN) -> RecordedWalk:
    """Return the walk of a robot whose model does not have the load."""
    root = ElementTree.fromstring(walk.model.urdf)
    link = next(link for link in root.findall('link') if link.get('name') == 'pelvis')
    element = link.find('inertial/mass')
    assert element is not None
    element.set('value', repr(float(element.get('value', '0')) - mass))
    return replace(walk, model=RobotModel(
        walk.model.config, ElementTree.tostring(root, encoding='unicode')))


def com_errors(walk: RecordedWalk, seed: int = 0, delay: float = 0.002) -> ComErrors:
    """Return the errors of a walk with a hidden load."""
    light, truth, rows = without_load(walk), walk.truth, []
    estimator = FusedComEstimator(light.model, FusedComSettings(wrench_delay=delay))
    rotations = walk.true_rotations
    found, _ = locate(light, 'filter', seed=seed)
    last_ns = found[0][1].stamp_ns
    for i, located in found:
        estimator.update(1e-9 * (located.stamp_ns - last_ns), located)
        last_ns = located.stamp_ns
        (com, velocity), R = estimator.now(), rotations[i]
        base = located.state.base
        # Both seen from the base, along the axes of the true world.
        error = R.dot(base.rotation.T.dot(com - base.position)) - (
            truth['com'][i] - truth['base_position'][i])
        speed = R.dot(base.rotation.T.dot(velocity)) - truth['com_velocity'][i]
        turn = R.dot(base.rotation.T)
        deviations = np.sqrt(np.diag(turn.dot(estimator.com_covariance).dot(turn.T)))
        rows.append((i, *error, *speed, *deviations, *turn.dot(estimator.external_force)))
    return _errors(walk, estimator, np.array(rows))


def _errors(walk: RecordedWalk, estimator: FusedComEstimator, table: Array) -> ComErrors:
    instants, table = table[:, 0].astype(int), table[:, 1:]
    settled, push = table[_SETTLED:], walk.truth['push'][instants]
    pushed = np.any(push != 0.0, axis=1)
    calm = ~np.convolve(pushed, np.ones(_AFTER_PUSH))[:len(pushed)].astype(bool)
    calm[:_SETTLED] = False
    begins = np.flatnonzero(np.diff(pushed.astype(int)) == 1) + 1
    ratios = [[table[b + ms // 2, 9:] @ push[b + 1] / (push[b + 1] @ push[b + 1])
               for ms in (20, 30, 50, 100)] for b in begins if b + 50 < len(table)]
    force = table[calm, 9:]
    return ComErrors(
        _rms(settled[:, :2]), _rms(settled[:, 2:3]), _rms(settled[:, 3:6]),
        estimator.mass / walk.model.mass - 1.0,
        (np.abs(settled[:, :3]) < 1.96 * settled[:, 6:9]).mean(axis=0),
        float(np.percentile(np.linalg.norm(force[:, :2], axis=1), 99)),
        float(np.percentile(np.abs(force[:, 2]), 99)), np.array(ratios).reshape(-1, 4))


def _rms(errors: Array) -> float:
    return float(np.sqrt((errors ** 2).sum(axis=1).mean()))


def com_row(name: str, found: ComErrors) -> tuple[str, ...]:
    """Return a line of the table."""
    pushes = ' '.join(f'{x:.2f}' for x in found.pushes.mean(axis=0)) if len(found.pushes) else '-'
    return (name, f'{1e3 * found.level:.1f}', f'{1e3 * found.height:.1f}',
            f'{1e3 * found.velocity:.1f}', f'{100.0 * found.mass:+.2f}',
            ' '.join(f'{100.0 * share:.0f}' for share in found.covered),
            f'{found.false_level:.1f}', f'{found.false_up:.1f}', pushes)


def print_com(walks: Sequence[RecordedWalk], seed: int = 0) -> None:
    """Print the errors of the fused CoM and of external forces."""
    print_table(f'CoM with {HIDDEN:g} kg hidden on the pelvis, and external forces', (
        'walk', 'level, mm', 'height, mm', 'v, mm/s', 'mass, %', 'covered xyz, %',
        'false level, N', 'up, N', 'push at 20 30 50 100 ms'),
        [com_row(walk.name, com_errors(walk, seed)) for walk in walks])
