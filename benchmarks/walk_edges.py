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
Soles that stand on an edge on recorded walks: what touches, and what that makes of the margins.

In truth those corners touch that are not above the ground; the true margins are distances from
the edge of what these span. Instants count at which a foot carries at least 5 % of the weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from benchmarks.common import print_table
from benchmarks.recorded_walk import RecordedWalk
from benchmarks.walk_states import locate
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.polygon import convex_hull, margin, Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
import numpy as np

_SETTLED, _LOADED = 250, 0.05
#: Error of a margin up to which it is right, m.
_RIGHT = 0.005


@dataclass(frozen=True)
class EdgeErrors:
    """
    Errors of one walk.

    Attributes
    ----------
    edges
        Share of the time in which a foot stands on less than all corners of its sole.
    found
        Share of corners of feet that carry which are rightly taken for touching or not.
    zmp_margin, dcm_margin
        Root mean square of their errors, m.
    right
        Share of the margins of the ZMP that are less than 5 mm wrong.
    slope
        Largest error of the slope of the ground.

    """

    edges: float
    found: float
    zmp_margin: float
    dcm_margin: float
    right: float
    slope: float


def corners_in_world(walk: RecordedWalk) -> Array:
    """Return the true corners of the soles, (T, F, k, 3), m."""
    outlines = [np.array(foot.polygon) for foot in walk.model.config.feet.values()]
    found = []
    for q, R, base in zip(walk.truth['positions'], walk.true_rotations,
                          walk.truth['base_position']):
        soles = walk.model.state(q).placements_in_base(walk.model.soles)
        found.append([base + (sole[3] + outline @ sole[:2]) @ R.T
                      for sole, outline in zip(soles, outlines)])
    return np.array(found)


def edge_errors(walk: RecordedWalk, edge_height: float, seed: int = 0) -> EdgeErrors:
    """Return the errors of a walk; `edge_height` zero: whole soles touch."""
    corners, weight = corners_in_world(walk), GRAVITY * walk.model.mass
    monitor = StabilityMonitor(walk.model, MonitorSettings(edge_height=edge_height))
    outlines = [foot.polygon for foot in walk.model.config.feet.values()]
    edges, found, errors, slopes = [], [], [], []
    for i, located in locate(walk, 'filter', seed=seed, delay=0.002)[0][_SETTLED:]:
        report = monitor.update(located)
        loads = walk.true_wrenches[i, :, 2] > _LOADED * weight
        touches = (corners[i, :, :, 2] <= 0.0) & loads[:, np.newaxis]
        if not touches.any() or report.support is None:
            continue
        edges.append(not touches[loads].all())
        found += _agreement(monitor, outlines, touches, loads)
        slopes.append(math.hypot(*monitor.rolling.slope))
        true = _true_margins(walk, i, corners[i][touches])
        if report.zmp_margin is not None and report.dcm_margin is not None:
            errors.append((report.zmp_margin - true[0], report.dcm_margin - true[1]))
    table = np.array(errors)
    zmp, dcm = np.sqrt((table ** 2).mean(axis=0)).tolist()
    return EdgeErrors(float(np.mean(edges)), float(np.mean(found)), zmp, dcm,
                      float((np.abs(table[:, 0]) < _RIGHT).mean()), max(slopes))


def _agreement(monitor: StabilityMonitor, outlines: Sequence[Sequence[Point]], touches: Array,
               loads: Array) -> list[bool]:
    agree = []
    for foot in np.flatnonzero(loads):
        part = monitor.parts[foot] if monitor.parts else None
        agree += [(part is None or corner in part) == true
                  for corner, true in zip(outlines[foot], touches[foot].tolist())]
    return agree


def _true_margins(walk: RecordedWalk, i: int, touching: Array) -> tuple[float, float]:
    truth = walk.truth
    forces, torques = truth['foot_wrenches_in_world'][i].reshape(2, 2, 3).transpose(1, 0, 2)
    fx, fy, fz = forces.sum(0)
    mx, my, _ = (torques + np.cross(truth['foot_positions'][i], forces)).sum(0)
    com, omega_0 = truth['com'][i], math.sqrt(GRAVITY / truth['com'][i, 2])
    hull = convex_hull(touching[:, :2].tolist())
    x, y = (com[:2] + truth['com_velocity'][i, :2] / omega_0).tolist()
    return (margin(hull, (-my / fz, mx / fz)).distance, margin(hull, (x, y)).distance)


def print_edges(walks: Sequence[RecordedWalk], seed: int = 0) -> None:
    """Print the table, with whole soles and with what touches of them."""
    rows = []
    for walk in walks:
        for title, height in (('whole soles', 0.0),
                              ('edges', MonitorSettings().edge_height)):
            found = edge_errors(walk, height, seed)
            rows.append((walk.name, title, f'{100.0 * found.edges:.0f}',
                         f'{100.0 * found.found:.1f}', f'{1e3 * found.zmp_margin:.1f}',
                         f'{100.0 * found.right:.0f}', f'{1e3 * found.dcm_margin:.1f}',
                         f'{100.0 * found.slope:.1f}'))
    print_table('Soles on an edge', (
        'walk', 'touches', 'on an edge, %', 'corners right, %', 'ZMP margin, mm rms',
        '< 5 mm, %', 'DCM margin', 'slope, %'), rows)
