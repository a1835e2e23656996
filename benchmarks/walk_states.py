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
Errors of base, DCM, ZMP, contacts and level of stability on recorded walks.

The estimators run as in the nodes: samples with stamps go into `StateEstimator`, located states
into `StabilityMonitor`. Before the walk the robot stands for two seconds, from which the filter
learns the bias of the gyroscope, as a robot does after start-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
import time
from typing import NamedTuple

from benchmarks.common import print_table
from benchmarks.recorded_walk import RecordedWalk
from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor, StabilityReport
from biped_com_ros.core.state.base import BaseSettings, LocatedState
from biped_com_ros.core.state.base_filter import FilterSettings
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
import numpy as np
import pinocchio as pin

_STEP_NS = 2_000_000
_STANDING = 1000  # instants
_SETTLED = 250  # instants of a walk after which errors count
_THRESHOLDS = ContactThresholds(engage_dwell=0.0)
_START = 450  # the robots are dropped to the ground at the beginning of the recordings
#: A change belongs to one in truth that is no further away, instants.
_NEAR = 25


class ContactErrors(NamedTuple):
    """
    Errors of the contacts of a walk.

    Attributes
    ----------
    right
        Share of the time in which the contact of a foot is right.
    false
        Changes per 100 steps that have none in the same direction within 50 ms in truth.
    touch_down, lift_off
        Mean delays of those that have one, s; negative: too early.

    """

    right: float
    false: float
    touch_down: float
    lift_off: float

    def cells(self) -> tuple[str, ...]:
        """Return those as text."""
        return (f'{100.0 * self.right:.1f}', f'{1e3 * self.touch_down:+.0f}',
                f'{1e3 * self.lift_off:+.0f}', f'{self.false:.0f}')


def contact_errors(found: np.ndarray, truth: np.ndarray) -> ContactErrors:
    """Return the errors of contacts (T, F)."""
    false = steps = 0
    delays: dict[int, list[int]] = {1: [], -1: []}
    for foot in range(truth.shape[1]):
        changes, true_changes = (np.diff(c[:, foot].astype(int)) for c in (found, truth))
        steps += int((true_changes > 0).sum())
        for sign, of_sign in delays.items():
            true = np.flatnonzero(true_changes == sign)
            for instant in np.flatnonzero(changes == sign).tolist():
                late = instant - true[np.abs(true - instant).argmin()] if len(true) else 2 * _NEAR
                if abs(late) > _NEAR:
                    false += 1
                else:
                    of_sign.append(int(late))
    down, up = (1e-9 * _STEP_NS * float(np.mean(late)) if late else np.nan
                for late in delays.values())
    return ContactErrors(
        float((found == truth).mean()), 100.0 * false / max(steps, 1), down, up)


@dataclass(frozen=True)
class StateErrors:
    """
    Errors of one walk.

    Attributes
    ----------
    drift, height, largest_height
        Of the position at the end, per distance: level (1) and up (m/m); largest of the height, m.
    velocity, dcm
        Root mean squares, m/s and m; the DCM is seen from the base.
    pose_nees, velocity_nees
        Mean normalised squared errors for three degrees of freedom; NaN without a covariance.
    zmp, zmp_difference
        Root mean squares of the measured ZMP, and of the model's minus the measured one, m.
    contacts
        Of the contacts of the feet.
    unstable, outside
        Share of time at level UNSTABLE or worse, and with the DCM outside the support.
    seconds
        CPU time per instant of estimating the state.

    """

    drift: float
    height: float
    largest_height: float
    velocity: float
    dcm: float
    pose_nees: float
    velocity_nees: float
    zmp: float
    zmp_difference: float
    unstable: float
    outside: float
    contacts: ContactErrors
    seconds: float


class _Feeder:
    """Feeds samples to an estimator and measures its CPU time."""

    def __init__(self, walk: RecordedWalk, source: str, level_floor: bool, delay: float,
                 thresholds: ContactThresholds, has_probabilities: bool) -> None:
        self.walk, self.seconds, self._has_all = walk, 0.0, source == 'filter'
        model = walk.model
        self._frames = [model.config.sole_frame(foot) for foot in model.config.feet]
        self._estimator = StateEstimator(
            model, BaseSettings(
                source=source, base_filter=FilterSettings(level_floor=level_floor)),
            synchronized=SynchronizedSettings(
                wrenches=True, body_weight=GRAVITY * model.mass,
                thresholds=thresholds, wrench_delay=delay,
                probabilities=(True,) * len(self._frames) if has_probabilities else ()))

    def add(self, ns: int, positions: Array, velocities: Array, imu: Sequence[Array],
            wrenches: Array, probabilities: Array | None = None) -> LocatedState | None:
        state, located = self.walk.model.state(positions, velocities), []
        sample = imu if self._has_all else imu[:2]
        begin = time.process_time()
        self._estimator.add_joints(ns, state)
        self._estimator.add_base(ns, *sample)
        for foot, (wrench, frame) in enumerate(zip(wrenches, self._frames)):
            located += self._estimator.add_wrench(foot, ns, wrench, frame)
        if probabilities is not None:
            located += self._estimator.add_auxiliary(
                'contact probabilities', ns, probabilities.tolist())
        self.seconds += time.process_time() - begin
        return located[0] if located else None


def locate(walk: RecordedWalk, source: str = 'filter', level_floor: bool = True,
           bias: float = 0.003, wrenches: Array | None = None, seed: int = 0, delay: float = 0.0,
           thresholds: ContactThresholds = _THRESHOLDS,
           probabilities: Array | None = None) -> tuple[list[tuple[int, LocatedState]], float]:
    """
    Return the located states of a walk by their instants, and the CPU time per instant, s.

    Parameters
    ----------
    walk
        With the errors of its sensors.
    source, level_floor
        See :class:`BaseSettings` and :class:`FilterSettings`.
    bias
        Deviation of the gyroscope's bias, rad/s.
    wrenches
        Of the feet, (T, F, 6), instead of the walk's.
    seed
        Of the random numbers while the robot stands.
    delay
        Known delay of the wrenches, s; see :class:`SynchronizedSettings`.
    thresholds
        Of the forces of feet in contact.
    probabilities
        Of contact, (T, F), which decide instead.

    """
    random, model = np.random.default_rng(seed), walk.model
    feeder = _Feeder(walk, source, level_floor, delay, thresholds, probabilities is not None)
    count, stands = len(model.joint_names), None if probabilities is None else np.ones(2)
    offset = bias * random.standard_normal(3)
    half_weight = np.array((0.0, 0.0, 0.5 * GRAVITY * model.mass, 0.0, 0.0, 0.0))
    for k in range(_STANDING if source == 'filter' else 0):
        imu = (np.zeros(4), offset + 0.005 * random.standard_normal(3),
               np.array((0.0, 0.0, GRAVITY)) + 0.05 * random.standard_normal(3))
        feeder.add(2 * 10**10 + k * _STEP_NS,  # the walk sets the clock back
                   1e-4 * random.standard_normal(count), np.zeros(count), imu,
                   half_weight + random.standard_normal((2, 6)), stands)
    feeder.seconds, found = 0.0, []
    measured = walk.wrenches if wrenches is None else wrenches
    quaternions = [quaternion_from_rotation(R) for R in walk.true_rotations]
    for i in range(_START, len(measured)):
        located = feeder.add(
            10**10 + i * _STEP_NS, walk.positions[i], walk.velocities[i],
            (quaternions[i], walk.angular_velocity[i] + offset, walk.acceleration[i]), measured[i],
            None if probabilities is None else probabilities[i])
        if located is not None:
            found.append(((located.stamp_ns - 10**10) // _STEP_NS, located))
    return found, feeder.seconds / (len(measured) - _START)


def state_errors(walk: RecordedWalk, source: str = 'filter', **options: object) -> StateErrors:
    """Return the errors of a walk; options as for :func:`locate`."""
    found, seconds = locate(walk, source, **options)  # type: ignore[arg-type]
    monitor = StabilityMonitor(walk.model, MonitorSettings())
    first, begin = found[0]
    truth = walk.truth
    # The estimate has an origin and a heading of its own.
    turn = pin.log3(begin.state.base.rotation @ walk.true_rotations[first].T)
    heading = pin.exp3(np.array((0.0, 0.0, turn[2])))
    positions = (truth['base_position'] - truth['base_position'][first]) @ heading.T
    velocities = truth['base_linear_velocity_in_world'] @ heading.T
    rows, levels, margins = [], [], []
    for i, located in found:
        report = monitor.update(located)
        position = located.state.base.position - begin.state.base.position - positions[i]
        rows.append(_row(walk, i, report, heading, position, velocities[i]))
        levels.append(monitor.classifier.level)
        margins.append(report.dcm_margin)
    table = np.array(rows)
    distance = np.linalg.norm(np.diff(positions[first:, :2], axis=0), axis=1).sum()
    settled, end = table[_SETTLED:], table[-1]
    return StateErrors(
        np.linalg.norm(end[:2]) / distance, end[2] / distance, np.abs(table[:, 2]).max(),
        *(_rms(settled[:, columns]) for columns in (slice(3, 6), slice(6, 8))),
        *(_mean(settled[:, k]) for k in (8, 9)),
        *(_rms(settled[:, columns]) for columns in (slice(10, 12), slice(12, 14))),
        float(np.mean(np.array(levels) >= Level.UNSTABLE)),
        float(np.mean([margin is not None and margin < 0.0 for margin in margins])),
        contact_errors(np.array([located.stance.in_contact for _, located in found[_SETTLED:]]),
                       walk.true_contacts[[i for i, _ in found[_SETTLED:]]]), seconds)


def _row(walk: RecordedWalk, i: int, report: StabilityReport, heading: Array, position: Array,
         true_velocity: Array) -> Array:
    """Return errors: position, velocity, DCM, two NEES, ZMP, its difference; 14 numbers."""
    truth, located = walk.truth, report.located
    base, twist = located.state.base, located.twist
    velocity, dcm = np.full(3, np.nan), np.full(2, np.nan)
    if twist is not None:
        velocity = base.rotation @ twist.linear - true_velocity
        dcm = _dcm_error(walk, i, located, heading)
    nees = np.full(2, np.nan)
    if located.filtered is not None and i % 10 == 0:
        nees[0] = _nees(position, located.filtered.pose_covariance[:3, :3])
        along_base = base.rotation.T @ velocity
        nees[1] = _nees(along_base, located.filtered.twist_covariance[:3, :3])
    zmp = np.full(2, np.nan)
    total, moment = _total(truth, i)
    if report.zmp_in_world is not None and total[2] > 0.1 * GRAVITY * walk.model.mass:
        true_zmp = np.array((-moment[1], moment[0])) / total[2] - truth['base_position'][i, :2]
        from_base = heading[:2, :2].T @ (np.array(report.zmp_in_world) - base.position)[:2]
        zmp = from_base - true_zmp
    # A push is no error of the model.
    is_pushed = np.any(truth['push'][max(i - _SETTLED, 0):i + 1])
    difference = (np.full(2, np.nan) if report.zmp_difference is None or is_pushed
                  else report.zmp_difference[:2])
    return np.concatenate((position, velocity, dcm, nees, zmp, difference))


def _total(truth: dict[str, Array], i: int) -> tuple[Array, Array]:
    forces, torques = truth['foot_wrenches_in_world'][i].reshape(2, 2, 3).transpose(1, 0, 2)
    return forces.sum(0), (torques + np.cross(truth['foot_positions'][i], forces)).sum(0)


def _dcm_error(walk: RecordedWalk, i: int, located: LocatedState, heading: Array) -> Array:
    truth, estimate = walk.truth, ComEstimate(located, GRAVITY)
    omega_0 = math.sqrt(GRAVITY / truth['com'][i, 2])
    found = (np.array(estimate.position) - located.state.base.position
             + np.array(estimate.velocity) / omega_0)
    true = truth['com'][i] - truth['base_position'][i] + truth['com_velocity'][i] / omega_0
    error: Array = (found - heading @ true)[:2]
    return error


def _nees(error: Array, covariance: Array) -> float:
    return float(error @ np.linalg.solve(covariance + 1e-12 * np.eye(3), error))


def _mean(values: Array) -> float:
    """Return the mean of those that are known; NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _rms(errors: Array) -> float:
    """Return the root mean square length of rows, without those that are unknown."""
    return float(np.sqrt(np.nanmean((errors ** 2).sum(axis=1))))


def print_states(walks: Sequence[RecordedWalk], title: str, source: str = 'filter',
                 each: Sequence[dict[str, object]] = (), **options: object) -> list[StateErrors]:
    """Print the errors of base, DCM, ZMP and level, and return all; `each`: options by walk."""
    found = [state_errors(walk, source, **options, **own)
             for walk, own in zip(walks, each or [{}] * len(walks))]
    print_table(title, (
        'walk', 'drift, %', 'height, mm/m', 'v, mm/s', 'NEES p, v', 'DCM, mm', 'ZMP, mm',
        'model, mm', 'UNSTABLE, %', 'outside, %', 'us'),
        [state_row(walk.name, errors) for walk, errors in zip(walks, found)])
    return found


def state_row(name: str, found: StateErrors) -> tuple[str, ...]:
    """Return a line of the table."""
    return (name, f'{100.0 * found.drift:.2f}', f'{1e3 * found.height:.1f}',
            f'{1e3 * found.velocity:.1f}', f'{found.pose_nees:.1f}, {found.velocity_nees:.1f}',
            f'{1e3 * found.dcm:.1f}', f'{1e3 * found.zmp:.1f}',
            f'{1e3 * found.zmp_difference:.1f}',
            f'{100.0 * found.unstable:.1f}', f'{100.0 * found.outside:.0f}',
            f'{1e6 * found.seconds:.0f}')
