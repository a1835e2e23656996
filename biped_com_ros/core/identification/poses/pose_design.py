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
Plans the poses of a calibration: safe ones with the most information, and safe paths.

Candidates are random postures on the left, the right and all feet, and some hanging. Of them K
are chosen that are D-optimal for the maximum a posteriori estimate (:mod:`pose_candidates`). They
keep the limits of :mod:`pose_safety`, and are connected by paths that keep them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import TYPICAL_NOISE
from biped_com_ros.core.identification.estimation.estimator import Estimator, TYPICAL_PRIOR
from biped_com_ros.core.identification.estimation.prior import Prior
from biped_com_ros.core.identification.poses.approach import ApproachPlanner
from biped_com_ros.core.identification.poses.pose_candidates import (
    Candidate, CandidateSampler, choose_greedily, exchange, project, total_information)
from biped_com_ros.core.identification.poses.pose_safety import (
    DesignOptions, no_progress, PathPlanner, PoseSafety, Progress, STEP)
from biped_com_ros.core.identification.poses.stances import PosturePoint, Stances
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


FEWEST = 0.5
"""A plan with fewer poses than this share of those requested is an error."""


@dataclass(frozen=True, kw_only=True)
class PlannedPose:
    """
    A pose and the path to it.

    Attributes
    ----------
    name
        ``pose 7``: the seventh of the design, also when only some poses are taken.
    placement
        The posture by the coordinates of balance.
    positions
        Of the joints, (n,), rad or m.
    path
        Joint positions from the pose before (excluded) to this one (included), (steps, n).
    margin
        Of the centre of mass within the support polygon, m; infinite where it hangs.
    torque_share
        Largest share of any motor's torque.
    slow_steps
        Number of the last steps of the path that are to be taken slowly, so that friction alone
        acts against them.

    """

    name: str
    placement: PosturePoint
    positions: Array
    path: Array
    margin: float
    torque_share: float
    slow_steps: int = 0

    @staticmethod
    def locate(model: RobotModel, positions: Array, tolerance: float, stands: Sequence[Array],
               poses: Sequence[PlannedPose]) -> PlannedPose | None:
        """
        Return the pose that the robot is in, None if it is in posture ``stand``.

        Parameters
        ----------
        model
            The robot.
        positions
            Of the joints, (n,), rad or m.
        tolerance
            Largest distance of the motors' joints from it, rad.
        stands
            What counts as posture ``stand``.
        poses
            The planned ones.

        Raises
        ------
        InputError
            If it is in none: no safe path from there is known.

        """
        motors = model.joint_index(model.actuated_joint_names)
        places = [*((None, q) for q in stands), *((pose, pose.positions) for pose in poses)]
        distances = [np.abs(positions - q)[motors] for _, q in places]
        index = int(np.argmin([distance.max() for distance in distances]))
        worst = int(np.argmax(distances[index]))
        if distances[index][worst] > tolerance:
            raise InputError(
                'the robot is neither in posture stand nor in a planned pose (joint '
                f"'{model.joint_names[motors[worst]]}' is {distances[index][worst]:.2f} rad away "
                'from the nearest one), and no safe path from here is known: bring it to posture '
                'stand')
        return places[index][0]

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the feet on the ground, by name; none where the robot hangs."""
        return self.placement.standing

    @property
    def support(self) -> str:
        """Return the support as text."""
        return f'standing on {" and ".join(self.standing)}' if self.standing else 'hoisted'


@dataclass(frozen=True)
class PoseDesign:
    """
    Poses in the sequence in which to take them.

    Attributes
    ----------
    poses
        Of which the first path begins in the home posture.
    information, random_information
        Of the chosen poses, and on average of as many random candidates, nats.
    com_std, random_com_std
        Predicted standard deviation of the total centre of mass, root mean square over the
        candidates and over axes along the ground, m.
    grounded_com_std
        The same standard deviation without the hoisted poses, m.
    unreachable
        Number of poses that were not chosen because no safe path leads to them.
    candidates, limits
        Number of safe postures from which they were chosen, and what made most others unsafe.

    """

    poses: tuple[PlannedPose, ...]
    information: float
    random_information: float
    com_std: float
    random_com_std: float
    grounded_com_std: float
    unreachable: int
    candidates: int = 0
    limits: str = ''

    @property
    def lift_request(self) -> str:
        """Return the instruction to an operator who is to lift the robot."""
        return (
            'hoist the robot with its feet clear of the ground: only hoisted poses weigh the '
            f'feet (predicted CoM uncertainty {1e3 * self.com_std:.2f} mm instead of '
            f'{1e3 * self.grounded_com_std:.2f} mm); ~/skip skips a hoisted pose')

    def summary(self) -> str:
        """Return the number of poses and the predicted gain over random ones as text."""
        gain = 1.0 - self.com_std / self.random_com_std
        return (f'{len(self.poses)} poses, information gain {self.information:.0f} nat (random '
                f'{self.random_information:.0f}); predicted uncertainty of the centre of mass '
                f'{1e3 * self.com_std:.2f} mm (random {1e3 * self.random_com_std:.2f}, '
                f'{100.0 * gain:.0f} % better)'
                + (f'; {self.unreachable} others have no safe path'
                   if self.unreachable else '')
                + (f'; chosen from {self.candidates} safe postures, most others were unsafe by '
                   f'{self.limits}' if self.limits else ''))


class PoseDesigner:
    """
    Plans poses for a robot.

    Parameters
    ----------
    model
        The robot as the URDF describes it.
    options
        Number and limits of poses.
    noise, prior
        As for the estimate.

    """

    def __init__(self, model: RobotModel, options: DesignOptions | None = None,
                 noise: SensorNoise = TYPICAL_NOISE, prior: Prior = TYPICAL_PRIOR) -> None:
        given = options or DesignOptions()
        # At least one pose stands.
        self.model, self.options = model, replace(
            given, candidates=max(given.candidates, given.count),
            hoisted=min(given.hoisted, given.count - 1))
        self._estimator = Estimator(model, noise, prior)
        self._stances = Stances(model)
        safety = PoseSafety(self._estimator.regressor, self._stances, self.options)
        self._paths = PathPlanner(self._stances, safety, STEP)
        self._approaches = ApproachPlanner(self._stances, safety, self._paths, self.options)
        self._sampler = CandidateSampler(self._estimator, self._stances, safety, self.options)

    def design(self, progress: Progress = no_progress) -> PoseDesign:
        """
        Choose poses, put them into a sequence and find paths between them.

        Parameters
        ----------
        progress
            Reports what is being done.

        Raises
        ------
        InputError
            If there are not enough safe poses.

        """
        self._check_weight_shifts()
        standing = self.candidates(progress)
        hanging = self._sampler.hanging(self._paths.is_reachable)
        candidates = [*hanging, *standing]
        chosen, unreachable = self._choose(candidates, len(hanging), progress)
        poses = self._connect(self._in_sequence([candidates[i] for i in chosen]), progress)
        random = [self._random_choice(len(hanging), len(candidates)) for _ in range(5)]
        information = [total_information([candidates[i].rows for i in draw]) for draw in random]
        stds = [self._com_std(candidates, draw) for draw in random]
        return PoseDesign(
            poses=poses, information=total_information([candidates[i].rows for i in chosen]),
            random_information=float(np.mean(information)),
            com_std=self._com_std(candidates, chosen), random_com_std=float(np.mean(stds)),
            grounded_com_std=self._com_std(
                candidates, [i for i in chosen if candidates[i].placement.standing]),
            unreachable=unreachable, candidates=len(candidates),
            limits=self._sampler.limits if len(standing) < self.options.candidates else '')

    def candidates(self, progress: Progress = no_progress) -> list[Candidate]:
        """Return safe random poses that stand; InputError if there are too few."""
        return self._sampler.standing(progress)

    def remaining(self, design: PoseDesign, done: Collection[str]) -> list[PlannedPose]:
        """
        Return the visits of poses whose names are not in `done`.

        The first path begins in ``stand``. With the option `approach` both, a pose is visited
        again from the other side, as ``pose 7 again``; not so if that is not safe.
        """
        at, poses = self._paths.home(), []
        for pose in design.poses:
            for name, side in self._visits(pose):
                if name not in done:
                    path, slow = self._path(at, side, pose.placement)
                    poses.append(replace(
                        pose, name=name, path=np.array([*path, *slow]), slow_steps=len(slow)))
                    at = pose.placement
        return poses

    def _path(self, start: PosturePoint, side: PosturePoint | None,
              end: PosturePoint) -> tuple[list[Array], list[Array]]:
        """Return the steps of a safe path to a side of its end, if any, and from there on."""
        if side is None:
            return self._paths.steps(start, end), []
        same = start.standing == end.standing
        direct = self._paths.straight(start, side) if same else None
        if direct is None:
            direct = [*self._paths.steps(start, end), *self._paths.steps(end, side)]
        return direct, self._paths.steps(side, end)

    def _visits(self, pose: PlannedPose) -> list[tuple[str, PosturePoint | None]]:
        """Return the names of a pose's visits, and from where it is approached; None: from any."""
        approach = (self._approaches.sides(pose.placement)
                    if self.options.approach == 'both' else None)
        if approach is None:
            return [(pose.name, None)]
        return [(pose.name, approach.below), (f'{pose.name} again', approach.above)]

    def way_home(self, pose: PlannedPose) -> Array:
        """Return a safe path to the home posture, standing or hanging as in `pose`, (steps, n)."""
        home = self._paths.home() if pose.standing else self._stances.home(())
        return np.array(self._paths.steps(pose.placement, home))

    def locate(self, design: PoseDesign, positions: Array, tolerance: float) -> PlannedPose | None:
        """Return the pose that the robot is in, see :meth:`PlannedPose.locate`."""
        home = self._stances.positions(self._paths.home())
        return PlannedPose.locate(
            self.model, positions, tolerance, (home, self.model.posture('stand')), design.poses)

    def _check_weight_shifts(self) -> None:
        """Raise InputError, naming joint or foot, if a foot cannot carry the weight alone."""
        standing = self._paths.solve(self._paths.home())
        if standing is None:
            return  # no candidate will be found, which is reported then
        for foot in sorted({feet[0] for feet in self._sampler.supports() if len(feet) == 1}):
            try:
                ComShift(self.model, standing).over(foot, self._stances.target_on(foot))
            except InputError as error:
                raise InputError(
                    f"{self.model.config.name} cannot stand on foot '{foot}' alone: {error}; or "
                    'set double_support to 1') from error

    # -- choice

    def _choose(self, candidates: list[Candidate], hanging: int,
                progress: Progress) -> tuple[list[int], int]:
        """
        Return the indices of the chosen candidates, and the number of unreachable ones.

        The first `hanging` candidates are hoisted; `hoisted` of these are chosen. Candidates
        without a safe path are replaced, as far as there are others.
        """
        rows, count = project([c.rows for c in candidates]), self.options.count
        hoisted = choose_greedily(rows[:hanging], self.options.hoisted) if hanging else []
        rows = [A if i >= hanging or i in hoisted else A[:0] for i, A in enumerate(rows)]
        reachable: dict[int, bool] = {}
        chosen = exchange(rows, choose_greedily(rows, count, hoisted, progress), len(hoisted),
                          progress)
        while True:
            for done, i in enumerate(chosen):
                if i not in reachable:
                    reachable[i] = self._is_reachable(candidates[i].placement)
                progress('checking paths', done + 1, count)
            kept = [i for i in chosen if reachable[i]]
            allowed = [A if reachable.get(i, True) else A[:0] for i, A in enumerate(rows)]
            left = min(count, sum(len(A) > 0 for A in allowed))
            if len(kept) == left:
                break
            chosen = choose_greedily(allowed, left, kept, progress)
        if len(kept) < max(FEWEST * count, self.options.hoisted + 1):
            raise InputError(
                f'only {len(kept)} of {count} poses can be reached safely from posture stand of '
                f'{self.model.config.name}, of {len(candidates)} safe ones ('
                f'{self._sampler.limits}); reduce count, spread or lean')
        return kept, sum(not value for value in reachable.values())

    def _is_reachable(self, placement: PosturePoint) -> bool:
        """Whether a safe path leads there, and from both sides if that is requested."""
        is_sided = (self.options.approach != 'both' or not placement.standing
                    or self._approaches.sides(placement) is not None)
        return is_sided and self._paths.is_reachable(placement)

    def _random_choice(self, hanging: int, count: int) -> list[int]:
        """Return as many hoisted and other candidates as are chosen, at random."""
        o, rng = self.options, self._sampler.rng
        return [*rng.choice(hanging, o.hoisted, replace=False).tolist(),
                *(hanging + rng.choice(
                    count - hanging, o.count - o.hoisted, replace=False)).tolist()]

    def _com_std(self, candidates: list[Candidate], chosen: Sequence[int]) -> float:
        """Return the predicted standard deviation of the total CoM over the candidates, m."""
        size = candidates[0].rows.shape[1]
        information = np.eye(size) + sum(candidates[i].rows.T @ candidates[i].rows for i in chosen)
        return self._estimator.predicted_com_std(
            information, [candidate.positions for candidate in candidates[::4]])

    # -- sequence and paths

    def _in_sequence(self, chosen: list[Candidate]) -> list[Candidate]:
        """Sort: hanging, on all feet, on each foot; within these the nearest pose next."""
        feet = tuple(self.model.config.feet)
        groups = [(), feet, *[(foot,) for foot in feet]]
        sequence: list[Candidate] = []
        at = self.model.posture('stand')
        for group in groups:
            left = [c for c in chosen if c.placement.standing == group]
            while left:
                nearest = min(left, key=lambda c: float(np.abs(c.positions - at).max()))
                left.remove(nearest)
                sequence.append(nearest)
                at = nearest.positions
        return sequence

    def _connect(self, candidates: list[Candidate], progress: Progress) -> tuple[PlannedPose, ...]:
        at, poses = self._paths.home(), []
        for i, candidate in enumerate(candidates):
            poses.append(PlannedPose(
                name=f'pose {i + 1}', placement=candidate.placement, positions=candidate.positions,
                path=np.array(self._paths.steps(at, candidate.placement)), margin=candidate.margin,
                torque_share=candidate.torque_share))
            at = candidate.placement
            progress('finding paths', i + 1, len(candidates))
        return tuple(poses)
