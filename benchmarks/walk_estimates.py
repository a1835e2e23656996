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
Fused CoM, margins of soles on an edge, and gravity compensation on recorded walks.

The robot carries 3 kg too much at the centre of mass of the pelvis. Its CoM is compared relative
to the base, whose own errors are those of the base filter.

Of soles those corners touch in truth that are not above the ground; the true margins are distances
from the edge of what these span. Instants count at which a foot carries 5 % of the weight or more.

Efforts are compared with the motors' torques of the recording, which another controller commanded
without any feedforward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
import xml.etree.ElementTree as ElementTree

from benchmarks.common import print_table
from benchmarks.recorded_walk import RecordedWalk
from benchmarks.walk_states import locate
from biped_com_ros.core.com.fused import FusedComEstimator, FusedComSettings
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import convex_hull, margin, Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import (
    CLOSED_FORM, CompensationSettings, GravityCompensator, MEASURED)
from biped_com_ros.core.gravity.effort_limiter import SafetySettings
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
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


#: Instants after which errors count, and least load of a foot, of the weight.
_SETTLED_SOLES, _LOADED = 250, 0.05
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
    for i, located in locate(walk, 'filter', seed=seed, delay=0.002)[0][_SETTLED_SOLES:]:
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


_STEP_NS = 2_000_000
_START = 450  # the robots are dropped to the ground at the beginning of the recordings
_SETTLED_EFFORTS = 250
#: Rate limits of efforts, shares of the joint's limit per second; the first is the default.
_RATES = 2.0, 20.0


def walk_efforts(walk: RecordedWalk, settings: CompensationSettings) -> tuple[Array, Array]:
    """Return efforts before and after the limiter of each instant, (T, n); NaN where refused."""
    model, rotations = walk.model, walk.true_rotations
    compensator = GravityCompensator(model, settings)
    compensator.limiter.start()
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
        commanded.append(compensator.limiter.update(efforts, 1e-9 * _STEP_NS).copy())
    return np.array(computed), np.array(commanded)


def left(walk: RecordedWalk, efforts: Array) -> Array:
    """Return what efforts leave of the motors' torques, rms by rms, (n,)."""
    torques = walk.efforts[_START:]
    good = np.isfinite(efforts[:, 0])
    good[:_SETTLED_EFFORTS] = False
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
