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
Total centre of mass from two captured poses, Muscolo et al. 2017, section 2, in three dimensions.

Between the poses everything above the ankles leans as one body, about any horizontal axis. Of
each pose the foot wrenches give the vertical line on which the total centre of mass is. Two lines
in one body determine its centre of mass, without the URDF's masses or centres of mass of that
body. Only of what does not lean with the base, as the feet, the URDF's values are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
import math
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.geometry.wrench import centre_of_pressure
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.equations.instruments import times_of
from biped_com_ros.core.identification.estimation.estimates import level_rotation
import numpy as np
import pinocchio as pin

SMALLEST_TILT = math.radians(1.0)
"""Below this tilt an error of 0.1 deg in it, or 1 mm in a line, moves the height by 0.1 m."""

_RIGID = 0.002  # m; by how much the leaning links may move relative to each other
_LEAST_SHARE = 0.2  # of the mass that leans
_SIGNIFICANT = 5.0  # standard deviations by which a joint moved


@dataclass(frozen=True, kw_only=True)
class MeasuredCom:
    """
    Centre of mass from two poses.

    Attributes
    ----------
    tilt
        Lean between the poses, rad.
    r_w, q_w, l_w
        Centre of mass of the leaning part in the first pose from the middle of the ankles:
        forward, left, up, m.
    deviations
        Standard deviations of these three, m: by noise of each pose, and by errors of encoders,
        IMU and force sensors that are the same in both.
    mass
        Everything that the sensors carry, by its weight, kg.
    com_in_base
        Total centre of mass of that in the first and second pose, (2, 3), m.
    heights
        Of these above the soles, (2,), m.

    """

    tilt: float
    r_w: float
    q_w: float
    l_w: float
    deviations: Array
    mass: float
    com_in_base: Array
    heights: Array

    @property
    def polar(self) -> tuple[float, float]:
        """Return distance (m) and angle from the vertical (rad) of it in the x-z plane."""
        return math.hypot(self.r_w, self.l_w), math.atan2(self.r_w, self.l_w)

    def describe(self) -> str:
        """Return the result in a sentence."""
        (distance, angle), sd = self.polar, 1e3 * self.deviations
        return (
            f'two poses, {math.degrees(self.tilt):.2f} deg apart: {self.mass:.3f} kg, centre of '
            f'mass above the ankles r_w = {1e3 * self.r_w:.2f} +- {sd[0]:.2f} mm, q_w = '
            f'{1e3 * self.q_w:.2f} +- {sd[1]:.2f} mm, l_w = {1e3 * self.l_w:.2f} +- {sd[2]:.2f} '
            f'mm (polar {1e3 * distance:.2f} mm, {math.degrees(angle):.3f} deg); total '
            f'{1e3 * self.heights[0]:.2f} and {1e3 * self.heights[1]:.2f} mm above the soles')


def com_from_captures(regressor: StaticsRegressor, first: Capture, second: Capture,
                      noise: SensorNoise) -> MeasuredCom:
    """
    Return the centre of mass from two poses.

    Parameters
    ----------
    regressor
        Of the robot.
    first, second
        On the same feet, leaning differently, with all joints above the ankles alike.
    noise
        Of the sensors.

    Raises
    ------
    InputError
        If other joints moved, different feet stand, or the lean is below 1 deg.

    """
    poses = first, second
    if not first.in_contact.any() or (first.in_contact != second.in_contact).any():
        raise InputError('both poses must be on the same feet')
    lines = [_line(regressor, pose) for pose in poses]
    tilt = float(np.arccos(np.clip(lines[0].up @ lines[1].up, -1.0, 1.0)))
    if tilt < SMALLEST_TILT:
        raise InputError(
            f'the poses differ by a lean of {math.degrees(tilt):.2f} deg: lean further about the '
            'ankles, 5 to 10 deg')
    leans = _leaning_links(regressor, first, second, noise)
    found = _solve(regressor, poses, leans)
    r, q, h = found.from_ankles.tolist()
    changes = [_solve(regressor, varied, leans).from_ankles - found.from_ankles
               for varied in _variations(regressor, poses, noise)]
    return MeasuredCom(
        tilt=tilt, r_w=r, q_w=q, l_w=h, mass=found.mass, com_in_base=found.totals,
        heights=np.array([
            (total - _standing_soles(regressor, pose).mean(axis=0)) @ line.up
            for total, pose, line in zip(found.totals, poses, lines)]),
        deviations=np.linalg.norm(changes, axis=0))


def best_pair(regressor: StaticsRegressor, captures: Sequence[Capture],
              noise: SensorNoise) -> tuple[Capture, Capture, MeasuredCom]:
    """
    Return the two captures that determine the height best, and what they give.

    Raises
    ------
    InputError
        If no two of them differ by a lean about the ankles only.

    """
    found, problem = [], 'there are fewer than two captures'
    for first, second in combinations(captures, 2):
        try:
            found.append((first, second, com_from_captures(regressor, first, second, noise)))
        except InputError as error:
            problem = str(error)
    if not found:
        raise InputError(f'no two poses differ by a lean about the ankles only: {problem}')
    return min(found, key=lambda pair: float(pair[2].deviations[2]))


def last_pair(regressor: StaticsRegressor, captures: Sequence[Capture],
              noise: SensorNoise) -> tuple[Capture, Capture, MeasuredCom]:
    """
    Return the latest two captures that differ by a lean about the ankles, and what they give.

    Raises
    ------
    InputError
        If no two of them do; the message is what keeps the last two from it.

    """
    if len(captures) < 2:
        raise InputError('capture an upright pose, then one that leans about the ankles')
    problems = []
    pairs = [(i, j) for j in range(len(captures) - 1, 0, -1) for i in range(j - 1, -1, -1)]
    for i, j in pairs:
        first, second = captures[i], captures[j]
        try:
            return first, second, com_from_captures(regressor, first, second, noise)
        except InputError as error:
            problems.append(error)
    raise problems[0]


class _Line(NamedTuple):
    """Vertical line through the centre of mass: point and direction in the base, and mass, kg."""

    point: Array
    up: Array
    mass: float


def _line(regressor: StaticsRegressor, capture: Capture) -> _Line:
    up, total = regressor.up_in_base(capture), regressor.total_contact(capture)
    point = centre_of_pressure(
        total.tolist(), up.tolist(), float(_standing_soles(regressor, capture).mean(axis=0) @ up))
    if point is None:
        raise InputError(f"the feet carry nothing in pose '{capture.name}'")
    return _Line(np.array(point), up, float(total[:3] @ up) / GRAVITY)


def _standing_soles(regressor: StaticsRegressor, capture: Capture) -> Array:
    model = regressor.model
    soles: Array = model.state(capture.positions).placements_in_base(model.soles)[:, 3]
    return soles[capture.in_contact]


def _leaning_links(regressor: StaticsRegressor, first: Capture, second: Capture,
                   noise: SensorNoise) -> BoolArray:
    """
    Return which links have the same place in the base in both poses: they lean with it.

    Of the others, the feet and what moved with them, the URDF's values are used.
    """
    model, positions = regressor.model, regressor.inputs.positions
    variances = [regressor.variances(pose, noise)[positions] for pose in (first, second)]
    change = second.positions - first.positions
    change[np.abs(change) <= _SIGNIFICANT * np.sqrt(sum(variances))] = 0.0  # noise moves no link
    coms = [model.state(first.positions + moved).link_coms_in_base
            for moved in (np.zeros_like(change), change)]
    moved = np.linalg.norm(coms[0] - coms[1], axis=1)
    leans: BoolArray = moved <= _RIGID
    if not change.any():
        raise InputError('the noise of the encoders hides what moved: lean further about the '
                         'ankles')
    if model.link_masses[leans].sum() < _LEAST_SHARE * model.mass:
        heaviest = int(np.argmax(np.where(leans, 0.0, model.link_masses)))
        raise InputError(
            f"link '{model.link_names[heaviest]}' moved by {1e3 * moved[heaviest]:.1f} mm "
            'relative to the base: move only the ankles between the two poses')
    return leans


def _ankle_links(regressor: StaticsRegressor, capture: Capture) -> list[str]:
    feet = regressor.model.config.feet.values()
    return [foot.ankle or foot.sole for foot, stands in zip(feet, capture.in_contact) if stands]


class _Solution(NamedTuple):
    mass: float
    totals: Array
    from_ankles: Array


def _solve(regressor: StaticsRegressor, poses: Sequence[Capture], leans: BoolArray) -> _Solution:
    """Return the total centres of mass in the base, and that above the ankles from these."""
    model, lines = regressor.model, [_line(regressor, pose) for pose in poses]
    mass = float(np.mean([line.mass for line in lines]))
    fixed = regressor.carried_links(poses[0]) & ~leans
    masses = np.where(fixed, model.link_masses, 0.0)
    body = mass - float(masses.sum())
    # Of the part that does not lean, and of what joints that yield change in the part that does.
    moments = [masses @ model.state(pose.positions).link_coms_in_base + body * shift
               for pose, shift in zip(poses, _shifts(regressor, poses, leans))]
    levels = [level_rotation(line.up)[:2] for line in lines]
    com, *_ = np.linalg.lstsq(
        np.concatenate([level * body / mass for level in levels]),
        np.concatenate([level @ (line.point - moment / mass)
                        for level, line, moment in zip(levels, lines, moments)]), rcond=None)
    ankles = model.state(poses[0].positions).placements_in_base(
        model.frames(_ankle_links(regressor, poses[0])))[:, 3]
    return _Solution(mass, np.array([(moment + body * com) / mass for moment in moments]),
                     level_rotation(lines[0].up) @ (com - ankles.mean(axis=0)))


def _shifts(regressor: StaticsRegressor, poses: Sequence[Capture],
            leans: BoolArray) -> list[Array]:
    """
    Return by how much the centre of mass of the leaning part moved in the base, (3,) each, m.

    Joints under position control yield to the other load of another pose. It is so little that
    the URDF's masses are good enough for it.
    """
    model, first = regressor.model, poses[0]
    masses = np.where(leans, model.link_masses, 0.0)
    before = masses @ model.state(first.positions).link_coms_in_base
    return [(masses @ model.state(pose.positions).link_coms_in_base - before) / masses.sum()
            for pose in poses]


def _variations(regressor: StaticsRegressor, poses: Sequence[Capture],
                noise: SensorNoise) -> Iterator[list[Capture]]:
    """Go through the poses with one reading, or an instrument in both, off by its deviation."""
    for i, pose in enumerate(poses):
        for varied in _noisy(regressor, pose, noise):
            yield [varied if k == i else other for k, other in enumerate(poses)]
    without = [replace(pose, torques=np.full_like(pose.torques, np.nan)) for pose in poses]
    unknown = InstrumentParameters(
        regressor, noise, without, np.zeros(len(regressor.model.joint_names)))
    for values in np.diag(unknown.sigma):
        errors = unknown.errors(values)
        yield [errors.corrected(pose, when) for pose, when in zip(without, times_of(without))]


def _noisy(regressor: StaticsRegressor, pose: Capture, noise: SensorNoise) -> Iterator[Capture]:
    """Go through a pose with one reading off by one standard deviation of its noise."""
    inputs, deviations = regressor.inputs, np.sqrt(regressor.variances(pose, noise))
    for change in np.diag(deviations[inputs.positions]):
        yield replace(pose, positions=pose.positions + change)
    for turn in np.diag(deviations[inputs.up]):
        yield replace(pose, up=pin.exp3(turn) @ pose.up)
    for change in np.diag(deviations[inputs.readings])[np.isfinite(pose.wrenches).ravel()]:
        yield replace(pose, wrenches=pose.wrenches + change.reshape(-1, 6))
