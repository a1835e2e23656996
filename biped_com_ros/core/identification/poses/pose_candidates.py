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
Random safe postures with the information that each gives, and the D-optimal choice of them.

A_k are the whitened equations of posture k in units of the prior. The chosen postures have the
largest ``log det(I + sum A_k^T A_k)``: greedy first, then exchange of single ones. The gain of a
posture is the information that it adds, in nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
import heapq
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.estimation.estimator import Estimator, gravity_frame
from biped_com_ros.core.identification.poses.pose_safety import (
    DesignOptions, no_progress, PoseSafety, Progress)
from biped_com_ros.core.identification.poses.stances import PosturePoint, Stances
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
import numpy as np

HANGING_SPREAD = 0.5
"""Spread of the joints while the robot hangs, as a share of that while it stands."""

TRIES = 20
"""Number of random postures per candidate before the search is given up."""

SHARES = (1.0, 0.6, 0.35)
"""An unsafe posture is tried again at these shares of the way from the home posture to it."""

NAMED = 6
"""Number of reasons that are given why postures were not safe."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """
    A safe posture.

    Attributes
    ----------
    placement, positions
        The posture; positions (n,), rad or m.
    margin
        Of the centre of mass within the support polygon, m; infinite where it hangs.
    torque_share
        Largest share of any motor's torque.
    rows
        Whitened equations in units of the prior, (k, d).

    """

    placement: PosturePoint
    positions: Array
    margin: float
    torque_share: float
    rows: Array


class CandidateSampler:
    """
    Draws safe random postures.

    Parameters
    ----------
    estimator
        Of the robot.
    stances, safety
        Of the robot.
    options
        Number and limits of poses.

    Attributes
    ----------
    rng
        The random numbers.

    """

    def __init__(self, estimator: Estimator, stances: Stances, safety: PoseSafety,
                 options: DesignOptions) -> None:
        self._model, self._options, self._estimator = estimator.model, options, estimator
        self._stances, self._safety = stances, safety
        self.rng = np.random.default_rng(options.seed)
        self._torso = _bending_torso(self._model, options)
        torso = self._model.config.torso
        self._bending = self._model.joint_index(torso.joints if torso is not None else ())
        self._rejections: dict[str, int] = {}
        self._homes: dict[tuple[str, ...], PosturePoint] = {}

    def standing(self, progress: Progress = no_progress) -> list[Candidate]:
        """
        Return candidates that stand: as many as requested, or what is found.

        Raises
        ------
        InputError
            If there are fewer than poses to choose; the reasons are in the message.

        """
        candidates: list[Candidate] = []
        supports, count = self.supports(), self._options.candidates
        for i in range(1, TRIES * count + 1):
            candidate = self._near(self._random_placement(supports[i % len(supports)]))
            if candidate is not None:
                candidates.append(candidate)
                progress('looking for safe poses', len(candidates), count)
                if len(candidates) == count:
                    return candidates
        needed = self._options.count - self._options.hoisted
        if len(candidates) < needed:
            raise self._shortage(len(candidates), needed, TRIES * count)
        return candidates

    @property
    def limits(self) -> str:
        """Return what made most postures unsafe, joints and links by name, as text."""
        worst = sorted(self._rejections.items(), key=lambda item: -item[1])[:NAMED]
        return ', '.join(f'{reason} {number} times' for reason, number in worst)

    def _near(self, placement: PosturePoint) -> Candidate | None:
        """Return a safe posture on the way from the home posture to a placement, or None."""
        home = self._homes.get(placement.standing)
        if home is None:
            home = self._stances.home(placement.standing)
            self._homes[placement.standing] = home
        # As high as it should be lifted, or the foot in the air would touch the ground.
        home = replace(home, swing_offset=placement.swing_offset)
        joints = home.free_joints.copy()
        # Between two shapes of a tendon torso are shapes that tendons do not reach.
        joints[self._bending] = placement.free_joints[self._bending]
        home, found = replace(home, free_joints=joints), None
        for share in SHARES:
            found = self._candidate(home.towards(placement, share))
            if found is not None:
                break
        return found

    def hanging(self, is_reachable: Callable[[PosturePoint], bool]) -> list[Candidate]:
        """Return reachable candidates that hang, eight per hoisted pose; see `standing`."""
        count = 8 * self._options.hoisted
        candidates: list[Candidate] = []
        for _ in range(TRIES * count):
            if len(candidates) == count:
                break
            placement = PosturePoint((), self._random_joints(HANGING_SPREAD))
            candidate = self._candidate(placement)
            if candidate is not None and is_reachable(placement):
                candidates.append(candidate)
        if len(candidates) < self._options.hoisted:
            raise self._shortage(len(candidates), self._options.hoisted, TRIES * count)
        return candidates

    def supports(self) -> list[tuple[str, ...]]:
        """Return 12 sets of feet to stand on, in the shares of `double_support`."""
        feet, share = tuple(self._model.config.feet), self._options.double_support
        doubles = round(12 * share)
        single = [(feet[i % len(feet)],) for i in range(12 - doubles)]
        mixed: list[tuple[str, ...]] = [*single, *[feet] * doubles]
        # Neighbours alternate, so that any number of tries has about these shares.
        return [mixed[(5 * i) % 12] for i in range(12)]

    def _candidate(self, placement: PosturePoint) -> Candidate | None:
        try:
            positions = self._stances.positions(placement)
        except InputError:
            self._reject('legs do not reach')
            return None
        try:
            capture, margin, share = self._safety.check(positions, placement.standing)
        except InputError as error:
            self._reject(str(error))
            return None
        capture = self._as_measured(capture)
        return Candidate(
            placement, positions, margin, share, compress(self._estimator.rows(capture)))

    def _as_measured(self, capture: Capture) -> Capture:
        """Return a predicted capture with gravity from the IMU, and sides if they are known."""
        frame, up = gravity_frame(self._model), self._estimator.regressor.up_in_base(capture)
        if frame:
            up = self._model.state(capture.positions).pose_in_base(frame).rotation.T @ up
        known = self._options.approach == 'both'
        sides = self.rng.choice((-1.0, 1.0), len(capture.positions)) if known else None
        return replace(capture, up=up, up_frame=frame, approach=sides)

    def _reject(self, reason: str) -> None:
        self._rejections[reason] = self._rejections.get(reason, 0) + 1

    def _shortage(self, found: int, count: int, tries: int) -> InputError:
        return InputError(
            f'only {found} of {count} safe poses of {self._model.config.name} found in {tries} '
            f'tries ({self.limits}); reduce count, margin, spread or lean, widen the limits of '
            'these joints, or allow more torque')

    def _random_placement(self, standing: tuple[str, ...]) -> PosturePoint:
        rng, o, stances = self.rng, self._options, self._stances
        corners = stances.polygon(standing)
        center = corners.mean(axis=0)
        weights = rng.dirichlet(np.ones(len(corners)))
        target = center + 0.7 * (weights @ corners - center)
        height = stances.leg_length
        one_foot = len(standing) < len(self._model.config.feet)
        swing = rng.uniform((-0.12, -0.04, 0.05), (0.12, 0.04, 0.2)) * height
        return PosturePoint(
            standing, self._random_joints(), height=-height * rng.uniform(0.01, o.crouch),
            rpy=rng.uniform(-o.lean, o.lean, 3), com_target=target,
            swing_offset=swing if one_foot else np.zeros(3),
            swing_rpy=rng.uniform(-0.35, 0.35, 3) if one_foot else np.zeros(3))

    def _random_joints(self, share: float = 1.0) -> Array:
        """Return random positions: half of the joints within their range, half at its ends."""
        stand, spread = self._model.posture('stand'), share * self._options.spread
        is_prismatic = self._estimator.regressor.is_prismatic
        reach = np.where(is_prismatic, 0.0, spread)
        reach[self._model.joint_index(self._options.fixed_joints)] = 0.0
        # Joints that are approached from both sides need room beyond the pose.
        room = self._options.approach_angle if self._options.approach == 'both' else 0.0
        lower = np.maximum(self._safety.lower + room, stand - reach)
        upper = np.minimum(self._safety.upper - room, stand + reach)
        lower, upper = np.minimum(lower, stand), np.maximum(upper, stand)
        where = self.rng.uniform(0.0, 1.0, len(stand))
        at_end = self.rng.uniform(size=len(stand)) < 0.5
        where = np.where(at_end, np.round(where), where)
        positions: Array = lower + where * (upper - lower)
        if self._torso is not None and self._model.config.torso is not None:
            index = self._model.joint_index(self._model.config.torso.joints)
            positions[index] = self._torso.joint_positions(self._random_bend())
        return positions

    def _random_bend(self) -> Array:
        """Return the shape of a torso with a random bend and no elongation."""
        bend = self._options.torso_bend * math.sqrt(self.rng.uniform())
        return make_shape(bend, self.rng.uniform(-math.pi, math.pi))


def _bending_torso(model: RobotModel, options: DesignOptions) -> TorsoBody | None:
    torso = model.config.torso
    if torso is None or set(torso.joints) & set(options.fixed_joints):
        return None
    return TorsoBody(model) if options.torso_bend > 0.0 else None


SHORTLIST = 12
"""Number of poses whose gain is computed as replacements of one."""


def choose_greedily(rows: Sequence[Array], count: int, chosen: Sequence[int] = (),
                    progress: Progress = no_progress) -> list[int]:
    """
    Return `chosen` and further poses, each the one with the largest gain, until there are `count`.

    A gain only shrinks as others are chosen (log det is submodular), so an old gain is an upper
    bound of the present one and most need not be computed again.

    Parameters
    ----------
    rows
        Whitened equations (k, d) of each pose in units of the prior; poses without rows are
        not chosen.
    count
        Number of poses.
    chosen
        Indices of those that are chosen already.
    progress
        Reports how many are chosen.

    """
    covariance, selected = np.eye(rows[0].shape[1]), list(chosen)
    for i in selected:
        covariance = _added(covariance, rows[i])
    queue = [(-_gain(A, covariance), i, len(selected)) for i, A in enumerate(rows)
             if i not in selected and len(A)]
    heapq.heapify(queue)
    while queue and len(selected) < count:
        _, i, age = heapq.heappop(queue)
        if age < len(selected):
            heapq.heappush(queue, (-_gain(rows[i], covariance), i, len(selected)))
            continue
        selected.append(i)
        covariance = _added(covariance, rows[i])
        progress('choosing', len(selected), count)
    return selected


def exchange(rows: Sequence[Array], chosen: Sequence[int], kept: int = 0,
             progress: Progress = no_progress) -> list[int]:
    """
    Return `chosen` with single poses replaced by others with a larger gain; one pass.

    Parameters
    ----------
    rows
        As in `choose_greedily`.
    chosen
        Indices of poses.
    kept
        Number of them, from the first, that are not replaced.
    progress
        Reports how many are examined.

    """
    selected = list(chosen)
    information = np.eye(rows[0].shape[1]) + sum(rows[i].T @ rows[i] for i in selected)
    for k, old in enumerate(selected):
        if k < kept:
            continue
        without = np.asarray(np.linalg.inv(information - rows[old].T @ rows[old]))
        others = [i for i in range(len(rows)) if i not in selected and len(rows[i])]
        # Half of the trace is a cheap upper bound of the gain.
        bounds = {i: float(((rows[i] @ without) * rows[i]).sum()) for i in others}
        best = sorted(others, key=lambda i: -bounds[i])[:SHORTLIST]
        gains = {i: _gain(rows[i], without) for i in [old, *best]}
        new = max(gains, key=lambda i: gains[i])
        if new != old and gains[new] > gains[old] + 1e-3:
            information += rows[new].T @ rows[new] - rows[old].T @ rows[old]
            selected[k] = new
        progress('exchanging', k + 1, len(selected))
    return selected


def compress(A: Array) -> Array:
    """Return fewer rows (k, d) with the same information, but for a 500th of the prior's."""
    squares, directions = np.linalg.eigh(A @ A.T)
    return np.asarray(directions[:, squares > 0.04 ** 2].T @ A)


def project(rows: Sequence[Array], smallest: float = 0.05) -> list[Array]:
    """
    Return rows in fewer dimensions, (k, d') each, those in which any of them differs.

    Parameters
    ----------
    rows
        As in `choose_greedily`.
    smallest
        Directions in which all rows together have less information than this share of the prior's
        are dropped.

    """
    values, directions = np.linalg.eigh(sum((A.T @ A for A in rows), np.zeros(
        (rows[0].shape[1], rows[0].shape[1]))))
    kept = directions[:, values > smallest]
    return [A @ kept for A in rows]


def _gain(A: Array, covariance: Array) -> float:
    """Return the information that rows add to a posterior, nats."""
    _, log_determinant = np.linalg.slogdet(np.eye(len(A)) + A @ covariance @ A.T)
    return 0.5 * float(log_determinant)


def _added(covariance: Array, A: Array) -> Array:
    """Return the covariance after rows are added."""
    across = covariance @ A.T
    return covariance - across @ np.linalg.solve(np.eye(len(A)) + A @ across, across.T)


def total_information(rows: Sequence[Array]) -> float:
    """Return the information of poses together, ``log det(I + sum A^T A) / 2``, nats."""
    _, log_determinant = np.linalg.slogdet(np.eye(rows[0].shape[1]) + sum(A.T @ A for A in rows))
    return 0.5 * float(log_determinant)
