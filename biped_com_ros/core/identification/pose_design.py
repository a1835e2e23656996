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
Which poses to take: safe ones, of these the ones that tell most, in an order that is safe too.

Candidates are random postures on the left, the right and all feet, and some hanging; those that
stand have the centre of mass inside the support polygon by a margin, and all are inside the
joints' limits and motors' torques, and free of self-collision. Of them K are chosen that are
D-optimal for the maximum a posteriori estimate: the largest ``log det(I + sum A_k^T A_k)``, where
A_k are the whitened equations of pose k in units of the prior; the gain of a pose in nats, so, is
what it adds to what is known. Greedy first, then exchange of single poses.

Paths go straight in the coordinates of :class:`~.stances.Placement`, so that standing soles stay
level and the centre of mass moves straight over the ground, and every step of them is checked as
the poses are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
import heapq
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import SensorNoise
from biped_com_ros.core.identification.collisions import SelfCollision
from biped_com_ros.core.identification.estimator import Estimator, TYPICAL_PRIOR
from biped_com_ros.core.identification.first_moments import parameters_of, TYPICAL_NOISE
from biped_com_ros.core.identification.prediction import predict_capture
from biped_com_ros.core.identification.prior import Prior
from biped_com_ros.core.identification.stances import Placement, Stances
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.limits import effort_limits, position_limits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
import numpy as np

HANGING_SPREAD = 0.5
"""How far joints go while the robot hangs, as a share of how far they go while it stands."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """
    What poses may be.

    Attributes
    ----------
    count
        How many are chosen, K.
    candidates
        Out of how many.
    hoisted
        How many of them are taken with the robot hanging, its feet in the air. These come first,
        and tell what hangs below the sensors of standing feet.
    double_support
        Share of candidates on all feet; the others stand on one foot each in turn. 1 for robots
        that must not lift a foot.
    margin
        Smallest distance of the centre of mass from the edge of the support polygon, m.
    torque_share
        Largest share of a motor's torque that is used.
    limit_margin
        Distance kept from joint limits, rad.
    spread
        How far joints that are not in the legs may be from posture ``stand``, rad.
    lean
        How far the base may lean or turn, rad.
    crouch
        How far the base may go down, as a share of its height.
    clearance
        Distance between links that counts as a collision, m.
    step
        Largest change of a joint between two checked points of a path, rad.
    torso_bend
        How far a tendon torso bends, rad; its virtual joints only go where tendons bring them.
    fixed_joints
        Names of joints that stay where they are in posture ``stand``.
    seed
        Of everything random.

    """

    count: int = 40
    candidates: int = 300
    hoisted: int = 0
    double_support: float = 0.34
    margin: float = 0.015
    torque_share: float = 0.8
    limit_margin: float = 0.03
    spread: float = 1.2
    lean: float = 0.2
    crouch: float = 0.08
    clearance: float = 0.005
    step: float = 0.1
    torso_bend: float = 0.2
    fixed_joints: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.candidates:
            raise ConfigurationError(
                f'{self.count} poses cannot be chosen from {self.candidates} candidates')
        if not 0 <= self.hoisted < self.count:
            raise ConfigurationError(
                f'{self.hoisted} of {self.count} poses cannot be hoisted ones; at least one '
                'stands')
        if not 0.0 <= self.double_support <= 1.0:
            raise ConfigurationError(
                f'double_support must be between 0 and 1, not {self.double_support}')
        if not self.margin > 0.0 or not self.step > 0.0:
            raise ConfigurationError('margin and step must be above zero')


@dataclass(frozen=True)
class PlannedPose:
    """
    A pose and the way there.

    Attributes
    ----------
    name
        ``pose 7``: the seventh of the design, also when only a part of it is taken.
    placement
        The posture by what matters for balance.
    positions
        Of the joints, (n,), rad or m.
    path
        Joint positions from the pose before (excluded) to this one (included), (steps, n).
    margin
        Of the centre of mass within the support polygon, m; infinite where it hangs.
    torque_share
        Largest share of any motor's torque.

    """

    name: str
    placement: Placement
    positions: Array
    path: Array
    margin: float
    torque_share: float

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the feet on the ground, by name; none where the robot hangs."""
        return self.placement.standing

    @property
    def support(self) -> str:
        """Say what the robot stands on."""
        return f'standing on {" and ".join(self.standing)}' if self.standing else 'hoisted'


@dataclass(frozen=True)
class PoseDesign:
    """
    Poses in the order in which to take them.

    Attributes
    ----------
    poses
        Beginning from posture ``stand``.
    information, random_information
        Of the chosen poses, and on average of as many random candidates, nats.
    com_std, random_com_std
        Predicted standard deviation of the total centre of mass, root mean square over the
        candidates and over axes along the ground, m.
    grounded_com_std
        The same standard deviation without the hoisted poses, m.
    unreachable
        How many that would have been chosen have no safe way there.

    """

    poses: tuple[PlannedPose, ...]
    information: float
    random_information: float
    com_std: float
    random_com_std: float
    grounded_com_std: float
    unreachable: int

    def summary(self) -> str:
        """Say what the design gains."""
        gain = 1.0 - self.com_std / self.random_com_std
        return (f'{len(self.poses)} poses, {self.information:.0f} nats of information (random '
                f'{self.random_information:.0f}); predicted uncertainty of the centre of mass '
                f'{1e3 * self.com_std:.2f} mm (random {1e3 * self.random_com_std:.2f}, '
                f'{100.0 * gain:.0f} % better)'
                + (f'; {self.unreachable} others have no safe way there'
                   if self.unreachable else ''))


@dataclass(frozen=True, eq=False)
class _Candidate:
    placement: Placement
    positions: Array
    margin: float
    torque_share: float
    rows: Array


class PoseDesigner:
    """
    Plans poses for a robot.

    Parameters
    ----------
    model
        The robot as the URDF says.
    options
        What poses may be.
    noise, prior
        As for the estimate.

    """

    def __init__(self, model: RobotModel, options: DesignOptions | None = None,
                 noise: SensorNoise = TYPICAL_NOISE, prior: Prior = TYPICAL_PRIOR) -> None:
        self.model, self.options = model, options or DesignOptions()
        self._estimator = Estimator(model, noise, prior)
        self._theta = parameters_of(model)
        self._stances = Stances(model)
        self._collision = SelfCollision(
            model, [model.posture(name) for name in model.config.postures], self.options.clearance)
        self._rng = np.random.default_rng(self.options.seed)
        self._torso = self._bending_torso()
        self._lower, self._upper = _limits(model, self.options.limit_margin)
        self._effort = effort_limits(model)
        self.refusals: dict[str, int] = {}

    def design(self, progress: Progress | None = None) -> PoseDesign:
        """
        Choose poses, order them and find ways between them.

        Parameters
        ----------
        progress
            Called with what is done, how much of it and of how much.

        Raises
        ------
        InputError
            If there are not enough safe poses.

        """
        self._examine_weight_shifts()
        candidates = self.candidates(progress)
        hanging = self._hanging_candidates()
        chosen, unreachable = self._choose([*hanging, *candidates], len(hanging), progress)
        candidates = [*hanging, *candidates]
        poses = self._connect(self._in_order([candidates[i] for i in chosen]), progress)
        random = [self._random_choice(len(hanging), len(candidates)) for _ in range(5)]
        information = [_information([candidates[i].rows for i in draw]) for draw in random]
        stds = [self._com_std(candidates, draw) for draw in random]
        return PoseDesign(
            poses, _information([candidates[i].rows for i in chosen]),
            float(np.mean(information)), self._com_std(candidates, chosen), float(np.mean(stds)),
            self._com_std(candidates, [i for i in chosen if candidates[i].placement.standing]),
            unreachable)

    def remaining(self, design: PoseDesign, done: Collection[str]) -> list[PlannedPose]:
        """Return the poses whose names are not among `done`, with ways that begin in `stand`."""
        at, poses = self._home(), []
        for pose in design.poses:
            if pose.name not in done:
                poses.append(replace(pose, path=np.array(self._way(at, pose.placement))))
                at = pose.placement
        return poses

    def way_home(self, pose: PlannedPose) -> Array:
        """
        Return a safe path from a pose back to posture ``stand``, (steps, n).

        On all feet, or hanging where the robot hangs in the pose.
        """
        home = self._home() if pose.standing else self._stances.home(())
        return np.array(self._way(pose.placement, home))

    def locate(self, design: PoseDesign, positions: Array,
                    tolerance: float) -> PlannedPose | None:
        """
        Return the pose that a robot is in, None if it is in posture ``stand``.

        Parameters
        ----------
        design
            The poses.
        positions
            Of the joints, (n,), rad or m.
        tolerance
            How far motors' joints may be from it, rad.

        Raises
        ------
        InputError
            If it is in none: no safe way from there is known.

        """
        motors = self.model.joint_index(self.model.actuated_joint_names)
        home = self._stances.positions(self._home())
        places = [*((None, q) for q in (home, self.model.posture('stand'))),
                  *((pose, pose.positions) for pose in design.poses)]
        away = [float(np.abs(positions - q)[motors].max()) for _, q in places]
        nearest = int(np.argmin(away))
        if away[nearest] > tolerance:
            off = np.abs(positions - home)
            worst = int(motors[np.argmax(off[motors])])
            raise InputError(
                f"the robot is neither in posture stand (joint '{self.model.joint_names[worst]}' "
                f'is {off[worst]:.2f} rad away) nor in a planned pose, and no safe way from here '
                'is known: bring it to posture stand')
        return places[nearest][0]

    def candidates(self, progress: Progress | None = None) -> list[_Candidate]:
        """Return safe random poses; InputError if they are too hard to find."""
        found: list[_Candidate] = []
        stances = self._supports()
        tries, limit = 0, 40 * self.options.candidates
        while len(found) < self.options.candidates:
            tries += 1
            if tries > limit:
                raise InputError(self._explain(len(found), tries))
            candidate = self._candidate(stances[tries % len(stances)])
            if candidate is not None:
                found.append(candidate)
                if progress:
                    progress('looking for safe poses', len(found), self.options.candidates)
        return found

    def _home(self) -> Placement:
        return self._stances.home(tuple(self.model.config.feet))

    def _examine_weight_shifts(self) -> None:
        """Raise InputError, naming joint or foot, if the weight cannot go over a single foot."""
        standing = self._solve(self._home())
        if standing is None:
            return  # no pose will be found at all, and that is what is said
        for foot in sorted({feet[0] for feet in self._supports() if len(feet) == 1}):
            try:
                ComShift(self.model, standing).over(foot, self._stances.target_on(foot))
            except InputError as error:
                raise InputError(
                    f"{self.model.config.name} cannot stand on foot '{foot}' alone: {error}; or "
                    'set double_support to 1') from error

    # -- candidates

    def _hanging_candidates(self) -> list[_Candidate]:
        """Return safe random postures of a robot that hangs, if any are asked for."""
        wanted, found = 8 * self.options.hoisted, list[_Candidate]()
        for _ in range(40 * wanted):
            if len(found) == wanted:
                break
            placement = Placement((), self._random_joints(share=HANGING_SPREAD))
            candidate = self._checked(placement, placement.free_joints)
            if candidate is not None and self._is_reachable(placement):
                found.append(candidate)
        if len(found) < self.options.hoisted:
            raise InputError(self._explain(len(found), 40 * wanted))
        return found

    def _bending_torso(self) -> TorsoBody | None:
        torso = self.model.config.torso
        if torso is None or set(torso.joints) & set(self.options.fixed_joints):
            return None
        return TorsoBody(self.model) if self.options.torso_bend > 0.0 else None

    def _random_choice(self, hanging: int, count: int) -> list[int]:
        """Return as many hoisted and other candidates as are chosen, drawn blindly."""
        o, rng = self.options, self._rng
        return [*rng.choice(hanging, o.hoisted, replace=False).tolist(),
                *(hanging + rng.choice(count - hanging, o.count - o.hoisted,
                                       replace=False)).tolist()]

    def _supports(self) -> list[tuple[str, ...]]:
        """Return feet to stand on, each as often as it shall be tried."""
        feet, share = tuple(self.model.config.feet), self.options.double_support
        doubles = round(12 * share)
        single = [(feet[i % len(feet)],) for i in range(12 - doubles)]
        mixed: list[tuple[str, ...]] = [*single, *[feet] * doubles]
        # Neighbours alternate, so that any number of tries has about the right shares.
        return [mixed[(5 * i) % 12] for i in range(12)]

    def _candidate(self, standing: tuple[str, ...]) -> _Candidate | None:
        placement = self._random_placement(standing)
        try:
            positions = self._stances.positions(placement)
        except InputError:
            self._refuse('legs do not reach')
            return None
        return self._checked(placement, positions)

    def _checked(self, placement: Placement, positions: Array) -> _Candidate | None:
        standing = placement.standing
        checked = self._check(positions, standing, self.options.margin)
        if isinstance(checked, str):
            self._refuse(checked)
            return None
        capture = predict_capture(self._estimator.regressor, positions, standing, self._theta)
        rows = _compressed(self._estimator.rows(capture))
        return _Candidate(placement, positions, *checked, rows)

    def _refuse(self, why: str) -> None:
        self.refusals[why] = self.refusals.get(why, 0) + 1

    def _random_placement(self, standing: tuple[str, ...]) -> Placement:
        rng, o, stances = self._rng, self.options, self._stances
        corners = stances.polygon(standing)
        center = corners.mean(axis=0)
        weights = rng.dirichlet(np.ones(len(corners)))
        target = center + 0.7 * (weights @ corners - center)
        height = stances.leg_length
        one_foot = len(standing) < len(self.model.config.feet)
        swing = rng.uniform((-0.12, -0.04, 0.05), (0.12, 0.04, 0.2)) * height
        return Placement(
            standing, self._random_joints(), height=-height * rng.uniform(0.01, o.crouch),
            rpy=rng.uniform(-o.lean, o.lean, 3), com_target=target,
            swing_offset=swing if one_foot else np.zeros(3),
            swing_rpy=rng.uniform(-0.35, 0.35, 3) if one_foot else np.zeros(3))

    def _random_joints(self, share: float = 1.0) -> Array:
        """Every other joint anywhere within a share of its range, the others at its ends."""
        stand, spread = self.model.posture('stand'), share * self.options.spread
        sliding = self._estimator.regressor.sliding
        reach = np.where(sliding, 0.0, spread)
        reach[self.model.joint_index(self.options.fixed_joints)] = 0.0
        lower = np.maximum(self._lower, stand - reach)
        upper = np.minimum(self._upper, stand + reach)
        lower, upper = np.minimum(lower, stand), np.maximum(upper, stand)
        where = self._rng.uniform(0.0, 1.0, len(stand))
        at_end = self._rng.uniform(size=len(stand)) < 0.5
        where = np.where(at_end, np.round(where), where)
        positions: Array = lower + where * (upper - lower)
        if self._torso is not None and self.model.config.torso is not None:
            index = self.model.joint_index(self.model.config.torso.joints)
            positions[index] = self._torso.joint_positions(self._random_bend())
        return positions

    def _random_bend(self) -> Array:
        """Return the shape of a torso that bends anywhere, elongated by nothing."""
        bend = self.options.torso_bend * math.sqrt(self._rng.uniform())
        return make_shape(bend, self._rng.uniform(-math.pi, math.pi))

    def _check(self, positions: Array, standing: tuple[str, ...],
               margin: float) -> tuple[float, float] | str:
        """Return margin and torque share of a safe posture, or what is wrong with it."""
        if ((positions < self._lower) | (positions > self._upper)).any():
            return 'joint limits'
        found = math.inf
        if standing:
            if self._stances.swing_height(positions, standing) < 0.01:
                return 'foot in the air touches the ground'
            found = self._stances.stability_margin(positions, standing)
            if found < margin:
                return 'centre of mass too near the edge'
        share = self._torque_share(positions, standing)
        if share > self.options.torque_share:
            return 'motor torques'
        if self._collision.touching(positions) is not None:
            return 'self-collision'
        return found, share

    def _torque_share(self, positions: Array, standing: tuple[str, ...]) -> float:
        capture = predict_capture(self._estimator.regressor, positions, standing, self._theta)
        shares = np.abs(np.nan_to_num(capture.torques)) / self._effort
        return float(shares.max(initial=0.0))

    def _explain(self, found: int, tries: int) -> str:
        reasons = ', '.join(f'{why} {count} times' for why, count in sorted(
            self.refusals.items(), key=lambda item: -item[1]))
        return (f'only {found} of {self.options.candidates} safe poses of '
                f'{self.model.config.name} found in {tries} tries ({reasons}); reduce candidates, '
                'margin, spread or lean, or allow more torque')

    # -- choice

    def _choose(self, candidates: list[_Candidate], hanging: int,
                progress: Progress | None) -> tuple[list[int], int]:
        """
        Choose greedily, exchange while it pays, and choose anew what cannot be reached.

        The first `hanging` are hoisted ones; of these as many are chosen as are asked for.
        """
        rows, count = [c.rows for c in candidates], self.options.count
        hoisted = _greedy(rows[:hanging], self.options.hoisted, [], None) if hanging else []
        rows = [A if i >= hanging or i in hoisted else A[:0] for i, A in enumerate(rows)]
        reachable: dict[int, bool] = {}
        chosen = _exchange(rows, _greedy(rows, count, hoisted, progress), progress,
                           len(hoisted))
        while True:
            for done, i in enumerate(chosen):
                if i not in reachable:
                    reachable[i] = self._is_reachable(candidates[i].placement)
                if progress:
                    progress('checking ways', done + 1, count)
            kept = [i for i in chosen if reachable[i]]
            allowed = [A if reachable.get(i, True) else A[:0] for i, A in enumerate(rows)]
            if len(kept) == count:
                return kept, sum(not value for value in reachable.values())
            if sum(len(A) > 0 for A in allowed) < count:
                raise InputError(
                    f'{count} poses cannot be reached safely from the posture stand of '
                    f'{self.model.config.name}; reduce count, spread or lean')
            chosen = _greedy(allowed, count, kept, progress)

    def _is_reachable(self, placement: Placement) -> bool:
        """Whether there is a safe way from the plain posture on the same feet."""
        return self._straight(self._lifted_home(placement.standing), placement) is not None

    def _lifted_home(self, standing: tuple[str, ...]) -> Placement:
        alone = len(standing) < len(self.model.config.feet)
        return self._stances.home(standing, 0.05 * self._stances.leg_length if alone else 0.0)

    def _com_std(self, candidates: list[_Candidate], chosen: Sequence[int]) -> float:
        """Return the predicted standard deviation of the total centre of mass over candidates."""
        size = candidates[0].rows.shape[1]
        information = np.eye(size) + sum(candidates[i].rows.T @ candidates[i].rows
                                         for i in chosen)
        inverse = np.linalg.inv(information)
        regressor, scaling = self._estimator.regressor, self._estimator.prior_scaling()
        total = 0.0
        for candidate in candidates[::4]:
            C = regressor.com_derivative(candidate.positions, self._theta) @ scaling
            total += float(np.trace((C @ inverse @ C.T)[:2, :2])) / 2.0
        return math.sqrt(total / len(candidates[::4]))

    # -- order and paths

    def _in_order(self, chosen: list[_Candidate]) -> list[_Candidate]:
        """Hang first, then stand on all feet, then on one after the other; the nearest next."""
        feet = tuple(self.model.config.feet)
        groups = [(), feet, *[(foot,) for foot in feet]]
        ordered: list[_Candidate] = []
        at = self.model.posture('stand')
        for group in groups:
            left = [c for c in chosen if c.placement.standing == group]
            while left:
                nearest = min(left, key=lambda c: float(np.abs(c.positions - at).max()))
                left.remove(nearest)
                ordered.append(nearest)
                at = nearest.positions
        return ordered

    def _connect(self, ordered: list[_Candidate],
                 progress: Progress | None) -> tuple[PlannedPose, ...]:
        at, poses = self._home(), []
        for i, candidate in enumerate(ordered):
            path = self._way(at, candidate.placement)
            poses.append(PlannedPose(
                f'pose {i + 1}', candidate.placement, candidate.positions, np.array(path),
                candidate.margin, candidate.torque_share))
            at = candidate.placement
            if progress:
                progress('finding ways', i + 1, len(ordered))
        return tuple(poses)

    def _way(self, start: Placement, end: Placement) -> list[Array]:
        """
        Return a safe path, straight if possible, else through plain postures.

        Between hanging and standing the robot is lifted or let down in the plain posture: the
        way begins there.
        """
        if bool(start.standing) != bool(end.standing):
            start = self._home() if end.standing else self._stances.home(())
        if start.standing == end.standing:
            direct = self._straight(start, end)
            if direct is not None:
                return direct
        via = self._detour(start, end)
        path: list[Array] = []
        for one, other in zip([start, *via], [*via, end]):
            part = self._straight(one, other)
            if part is None:
                raise InputError(
                    f'{self.model.config.name} cannot shift its weight from '
                    f'{" and ".join(start.standing)} to {" and ".join(end.standing)} safely; set '
                    'double_support to 1, or widen the margin of its limits')
            path.extend(part)
        return path

    def _detour(self, start: Placement, end: Placement) -> list[Placement]:
        if start.standing == end.standing:
            return [self._lifted_home(start.standing)]
        feet = tuple(self.model.config.feet)
        via: list[Placement] = [self._lifted_home(start.standing)]
        if len(start.standing) < len(feet):
            via += [*self._step(start.standing)[::-1], self._stances.home(feet)]
        if len(end.standing) < len(feet):
            via += [*self._step(end.standing), self._lifted_home(end.standing)]
        return via

    def _step(self, standing: tuple[str, ...]) -> list[Placement]:
        """Return how weight goes over one foot: on all feet, then with the others unloaded."""
        feet, home = tuple(self.model.config.feet), self._stances.home(standing)
        on_all = Placement(feet, home.free_joints, home.height, com_target=home.com_target)
        return [on_all, home]

    def _straight(self, start: Placement, end: Placement) -> list[Array] | None:
        """Return checked steps from one placement (excluded) to another, or None."""
        if start.standing != end.standing:
            # Same posture, other feet loaded: the foot is just being lifted or put down.
            return []
        positions = self._solve(end)
        before = self._solve(start)
        if positions is None or before is None:
            return None
        steps = max(1, math.ceil(float(np.abs(positions - before).max()) / self.options.step))
        path = []
        for i in range(1, steps + 1):
            q = self._solve(start.towards(end, i / steps))
            if q is None or self._problem_on_the_way(q, start.standing):
                return None
            path.append(q)
        return path

    def _solve(self, placement: Placement) -> Array | None:
        try:
            return self._stances.positions(placement)
        except InputError:
            return None

    def _problem_on_the_way(self, positions: Array, standing: tuple[str, ...]) -> str:
        if ((positions < self._lower) | (positions > self._upper)).any():
            return 'joint limits'
        if standing and self._stances.swing_height(positions, standing) < -1e-3:
            return 'foot in the air touches the ground'
        if standing and (self._stances.stability_margin(positions, standing)
                         < 0.5 * self.options.margin):
            return 'centre of mass too near the edge'
        return 'self-collision' if self._collision.touching(positions) else ''


def _greedy(rows: list[Array], count: int, begun: list[int],
            progress: Progress | None) -> list[int]:
    """
    Go on choosing rows one after the other, each time those that add most.

    What rows add only shrinks as others are chosen (log det is submodular), so an old gain is an
    upper bound of the present one and most need not be computed again.
    """
    covariance, chosen = np.eye(rows[0].shape[1]), list(begun)
    for i in chosen:
        covariance = _added(covariance, rows[i])
    queue = [(-_gain(A, covariance), i, len(chosen)) for i, A in enumerate(rows)
             if i not in chosen and len(A)]
    heapq.heapify(queue)
    while len(chosen) < count:
        _, i, age = heapq.heappop(queue)
        if age < len(chosen):
            heapq.heappush(queue, (-_gain(rows[i], covariance), i, len(chosen)))
            continue
        chosen.append(i)
        covariance = _added(covariance, rows[i])
        if progress:
            progress('choosing', len(chosen), count)
    return chosen


def _exchange(rows: list[Array], chosen: list[int], progress: Progress | None, kept: int = 0,
              shortlist: int = 12) -> list[int]:
    """Replace single choices, but the first `kept`, by others that add more, once through."""
    chosen = list(chosen)
    information = np.eye(rows[0].shape[1]) + sum(rows[i].T @ rows[i] for i in chosen)
    for k, old in enumerate(chosen):
        if k < kept:
            continue
        without = np.asarray(np.linalg.inv(information - rows[old].T @ rows[old]))
        others = [i for i in range(len(rows)) if i not in chosen and len(rows[i])]
        # A cheap first look: half of the trace is an upper bound of the gain.
        looks = {i: float(((rows[i] @ without) * rows[i]).sum()) for i in others}
        best = sorted(others, key=lambda i: -looks[i])[:shortlist]
        gains = {i: _gain(rows[i], without) for i in [old, *best]}
        new = max(gains, key=lambda i: gains[i])
        if new != old and gains[new] > gains[old] + 1e-3:
            information += rows[new].T @ rows[new] - rows[old].T @ rows[old]
            chosen[k] = new
        if progress:
            progress('exchanging', k + 1, len(chosen))
    return chosen


def _compressed(A: Array) -> Array:
    """Return fewer rows with all information but what is below a 500th of the prior's."""
    _, strengths, directions = np.linalg.svd(A, full_matrices=False)
    kept = strengths > 0.04
    compressed: Array = strengths[kept, np.newaxis] * directions[kept]
    return compressed


def _gain(A: Array, covariance: Array) -> float:
    _, log_determinant = np.linalg.slogdet(np.eye(len(A)) + A @ covariance @ A.T)
    return 0.5 * float(log_determinant)


def _added(covariance: Array, A: Array) -> Array:
    across = covariance @ A.T
    updated: Array = covariance - across @ np.linalg.solve(np.eye(len(A)) + A @ across, across.T)
    return updated


def _information(rows: Sequence[Array]) -> float:
    _, log_determinant = np.linalg.slogdet(
        np.eye(rows[0].shape[1]) + sum(A.T @ A for A in rows))
    return 0.5 * float(log_determinant)


def _limits(model: RobotModel, margin: float) -> tuple[Array, Array]:
    """Return lower and upper limits of the measured joints, kept from by `margin`, (n,) each."""
    low, high = position_limits(model)
    low, high = np.maximum(low, -np.pi), np.minimum(high, np.pi)
    # Joints that hardly move, and postures at a limit by design, keep what they have.
    kept = np.minimum(margin, 0.2 * (high - low))
    stand = model.posture('stand')
    return np.minimum(low + kept, stand), np.maximum(high - kept, stand)
