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
Moves the centre of mass over a foot or towards a hand, with standing feet and hands that hold on.

Newman (2013), last section: relative to the pelvis, standing soles move by minus the motion of
the pelvis. With the base moved by d, axes kept, each leg follows by
``dq = J_leg^+ (-d, 0)``, and the centre of mass moves over the soles by

    A d,    A = I - sum J_com,leg J_leg^+ [I; 0]

so that the base has to be moved by ``d = A^-1 dc`` for an increment dc of the centre of mass. The
arm of a hand on a rail follows in the same way; only the position of the hand is kept, and J_arm
has three rows. Limbs are solved by damped least squares, which keeps joint velocities small near a
stretched knee or elbow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import LegChain, LimbChain, minimum_jerk
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pinocchio as pin

#: Smallest distance of joints from their limits, rad (or m).
LIMIT_MARGIN = 0.01
#: Largest increment of the centre of mass, m.
_LARGEST_STEP = 0.01
#: By how much the base is lowered at a time if a leg does not reach, m.
_LOWER_BY = 0.005
#: A leg whose Jacobian's least singular value is below this counts as singular.
_SINGULAR = 0.02
_TOLERANCE = 1e-7
_MAX_STEPS = 200
_REMEDY = 'begin with more bent knees and elbows, or move less'
#: Lower and upper, (n,) each.
Limits = tuple[Array, Array]


def com_in_sole(model: RobotModel, foot: str, positions: Array) -> Array:
    """Return the centre of mass at joint positions (n,) in the frame of a sole, (3,), m."""
    state = model.state(positions)
    sole = state.placements_in_base(model.soles)[model.soles.names.index(foot)]
    found: Array = sole[:3] @ (state.com_in_base - sole[3])
    return found


class ComShift:
    """
    Moves the centre of mass of a standing robot.

    Parameters
    ----------
    model
        The robot.
    positions
        Joint positions to begin with, (n,), in the order of ``model.joint_names``; the soles stay
        where they are with respect to each other.
    max_lowering
        By how much the base may be lowered where a leg would be stretched, m.
    holding
        Names of the hands that stay where they are.

    Attributes
    ----------
    positions
        Present positions, (n,).
    joints
        Indices of the joints that may move: of the legs, and of the arms whose hands hold on.
    lowered
        By how much it has been lowered, m.
    holding
        As given.

    Raises
    ------
    UnknownNameError
        If there is no such hand.

    """

    def __init__(self, model: RobotModel, positions: Array, max_lowering: float = 0.1,
                 holding: Sequence[str] = ()) -> None:
        self._model, self._data = model, pin.Data(model.pin_model)
        self.positions: Array = np.array(positions, dtype=float)
        self._legs = [_Leg(model, foot) for foot in range(len(model.soles.names))]
        self.holding = tuple(holding)
        self._arms = dict(zip(map(model.config.hand_label, holding), _arms_of(model, holding)))
        self._limbs: list[_Limb] = [*self._legs, *self._arms.values()]
        self._update()
        self._homes = [limb.end(self._data).copy() for limb in self._limbs]
        self._moved = np.zeros(3)
        self.lowered, self.max_lowering = 0.0, max_lowering
        self._lower, self._upper = _limits(model)
        self.joints = np.unique(np.concatenate([limb.joints for limb in self._limbs]))

    @property
    def least_singular_value(self) -> float:
        """Least singular value of the limbs' Jacobians: zero if one is stretched."""
        return min(limb.least_singular_value(self._data) for limb in self._limbs)

    def offset_from(self, contact: str, point: tuple[float, float] | None = None) -> Array:
        """
        Return the displacement (3,) of the centre of mass to over a sole or below a hand, m.

        Parameters
        ----------
        contact
            Name of a foot, or label of a hand that holds on (``config.hand_label``: 'left_hand').
        point
            (x, y) in its sole frame, m; default: below the ankle, or the origin of the sole if
            the configuration has no ankle. Not for a hand.

        Returns
        -------
        numpy.ndarray
            In base axes, along the plane of the sole; for a hand, of the first sole.

        Raises
        ------
        UnknownNameError
            If there is no such foot, and no such hand holds on.
        InputError
            If there is a point for a hand.

        """
        if contact in self._arms:
            if point is not None:
                raise InputError(f"'{contact}' is a hand; only soles have points")
            offset = self._arms[contact].end(self._data).translation - self._data.com[0]
            return np.asarray(offset - offset @ self._normal * self._normal, dtype=float)
        sole, in_sole = self._sole(contact), self.com_in_sole(contact)
        x, y = self._below_ankle(contact, sole) if point is None else point
        return sole.rotation @ np.array((x - in_sole[0], y - in_sole[1], 0.0))

    def com_in_sole(self, foot: str) -> Array:
        """Return the present centre of mass in the frame of a sole, (3,), m."""
        return np.asarray(self._sole(foot).actInv(self._data.com[0]), dtype=float)

    def increment(self, displacement: Array) -> Array:
        """
        Move the centre of mass by a small displacement.

        Parameters
        ----------
        displacement
            With respect to the soles, (3,), base axes, m; its part along the normal of the first
            sole raises or lowers the base instead.

        Returns
        -------
        numpy.ndarray
            :attr:`positions`; within limits, and with the soles where they were.

        Raises
        ------
        InputError
            If a joint limit or a singularity is reached, with the joint or foot; nothing has
            moved then.

        """
        step = self._base_step(np.asarray(displacement, dtype=float))
        before = self.positions.copy()
        self._moved += step
        try:
            self._follow()
        except InputError:
            self._moved -= step
            self.positions[:] = before
            self._update()
            raise
        return self.positions

    def over(self, contact: str, point: tuple[float, float] | None = None,
             share: float = 1.0) -> Array:
        """
        Move the centre of mass over a foot or below a hand, see :meth:`offset_from`.

        Parameters
        ----------
        contact, point
            As for :meth:`offset_from`.
        share
            Of the way.

        Returns
        -------
        numpy.ndarray
            Positions of all joints, (n,).

        Raises
        ------
        InputError
            If it cannot get there; it stays where it got.

        """
        remaining = (1.0 - share) * self.offset_from(contact, point)
        for _ in range(_MAX_STEPS):
            offset = self.offset_from(contact, point) - remaining
            distance = float(np.linalg.norm(offset))
            if distance < _TOLERANCE:
                return self.positions.copy()
            self._advance(offset * min(1.0, _LARGEST_STEP / distance))
        raise InputError(
            f'the centre of mass of {self._model.config.name} cannot be moved over '
            f"'{contact}': it stays {distance:.4f} m away; {_REMEDY}")

    def path(self, contact: str, count: int, point: tuple[float, float] | None = None,
             share: float = 1.0) -> Array:
        """
        Return positions (count, n) of a minimum-jerk motion to there, at equal time steps.

        Parameters
        ----------
        contact, point, share
            As for :meth:`over`.
        count
            Number of positions.

        Raises
        ------
        InputError
            If it cannot get there.

        """
        there = ComShift(self._model, self.positions, self.max_lowering - self.lowered,
                         self.holding)
        there.over(contact, point, share)
        whole, down, done = self.offset_from(contact, point), there.lowered, 0.0
        remaining, whole = (1.0 - share) * whole, share * whole
        rows = np.empty((count, len(self.positions)))
        for i, phase in enumerate(np.linspace(0.0, 1.0, count)):
            end = minimum_jerk(float(phase))
            for part in self._parts(done, end, float(np.linalg.norm(whole))):
                left = self.offset_from(contact, point) - remaining - (1.0 - part) * whole
                self.increment(left - down * (part - done) * self._normal)
                done = part
            rows[i] = self.positions
        self.lowered += down
        return rows

    def path_beyond_toes(self, distance: float, count: int) -> Array:
        """
        Return positions (count, n) of leaning until the centre of mass is beyond the toes.

        Parameters
        ----------
        distance
            From the front edge of the first sole, m.
        count
            Number of positions.

        Raises
        ------
        InputError
            If it cannot get there.

        """
        foot, config = next(iter(self._model.config.feet.items()))
        toes = max(x for x, _ in config.polygon)
        return self.path(foot, count, (toes + distance, float(self.com_in_sole(foot)[1])))

    # -- inside

    @property
    def _normal(self) -> Array:
        """Return the normal of the first sole, base axes, (3,)."""
        return np.asarray(self._legs[0].end(self._data).rotation[:, 2], dtype=float)

    def _sole(self, foot: str) -> pin.SE3:
        feet = self._model.soles.names
        if foot not in feet:
            raise UnknownNameError('foot or held hand', foot, (*feet, *self._arms),
                                   self._model.config.name)
        return self._legs[feet.index(foot)].end(self._data)

    @staticmethod
    def _parts(start: float, end: float, distance: float) -> list[float]:
        """Return shares from `start` to `end` in small steps of a distance."""
        count = max(int(np.ceil((end - start) * distance / _LARGEST_STEP)), 1)
        return [start + (end - start) * (k + 1) / count for k in range(count)]

    def _advance(self, offset: Array) -> None:
        """Move by an increment; if a leg does not reach, lower the base first."""
        while True:
            try:
                self.increment(offset)
                return
            except InputError:
                if self.lowered >= self.max_lowering:
                    raise
            self.increment(-_LOWER_BY * self._normal)
            self.lowered += _LOWER_BY

    def _below_ankle(self, foot: str, sole: pin.SE3) -> tuple[float, float]:
        ankle = self._model.config.feet[foot].ankle
        if not ankle:
            return 0.0, 0.0
        frame = self._model.frames((ankle,))
        placement = self._data.oMi[int(frame.joints[0])]
        x, y, _ = sole.actInv(placement.act(frame.placement_in_joint[0, 3, :3])).tolist()
        return float(x), float(y)

    def _update(self) -> None:
        # Joint Jacobians included, along the axes of the base.
        pin.jacobianCenterOfMass(
            self._model.pin_model, self._data, self._model.configuration(self.positions), True)

    def _base_step(self, displacement: Array) -> Array:
        """Return the displacement d of the base, see the module."""
        com = self._data.Jcom
        matrix: Array = np.eye(3)
        for limb in self._limbs:
            matrix -= limb.columns(com) @ limb.inverse(self._data)[:, :3]
        normal = self._normal
        # Along the normal the displacement is that of the base.
        matrix += np.outer(normal, normal @ (np.eye(3) - matrix))
        return np.asarray(np.linalg.solve(matrix, displacement), dtype=float)

    def _follow(self) -> None:
        """Bring soles and hands back to their places in the world after the base was moved."""
        for _ in range(20):
            worst = 0.0
            for limb, home in zip(self._limbs, self._homes):
                error = limb.error(
                    self._data, pin.SE3(home.rotation, home.translation - self._moved))
                worst = max(worst, float(np.abs(error).max()))
                limb.approach(self._data, error, self.positions, (self._lower, self._upper))
            self._require_within_limits()
            self._update()
            if worst < 1e-10:
                return
        raise InputError(self._describe_failure())

    def _require_within_limits(self) -> None:
        outside = (self.positions < self._lower) | (self.positions > self._upper)
        for i in self.joints[outside[self.joints]]:
            raise InputError(
                f"joint '{self._model.joint_names[i]}' would leave its limits, "
                f'{self._lower[i]:.3f} to {self._upper[i]:.3f}; {_REMEDY}')

    def _describe_failure(self) -> str:
        values = {limb.description: limb.least_singular_value(self._data) for limb in self._limbs}
        worst = min(values, key=lambda name: values[name])
        why = 'is stretched' if values[worst] < _SINGULAR else 'does not reach'
        return f'{worst} {why}; {_REMEDY}'


class _Limb(LimbChain):
    """A limb that is moved by damped least squares, given rows of its Jacobian."""

    rows = slice(0, 6)

    @property
    def description(self) -> str:
        """For messages."""
        return f"the leg of foot '{self.name}'"

    def inverse(self, data: pin.Data) -> Array:
        """Return the damped pseudo-inverse for the twist of the end at its origin, base axes."""
        return _damped_inverse(self.jacobian(data)[self.rows])

    def least_singular_value(self, data: pin.Data) -> float:
        """Return the least singular value of the limb's Jacobian."""
        return float(np.linalg.svd(self.jacobian(data)[self.rows], compute_uv=False)[-1])

    def error(self, data: pin.Data, target: pin.SE3) -> Array:
        """Return how far the end has to go to a pose, (rows,), m and rad, base axes."""
        end = self.end(data)
        return np.concatenate((target.translation - end.translation,
                               pin.log3(target.rotation @ end.rotation.T)))[self.rows]

    def approach(self, data: pin.Data, error: Array, positions: Array, limits: Limits) -> None:
        """Move the limb's joints so that its end goes as far as :meth:`error` says."""
        positions[self.joints] += self.inverse(data) @ error


class _Leg(_Limb, LegChain):
    """A leg, whose sole keeps its pose."""


class _Arm(_Limb):
    """An arm, whose hand keeps its position."""

    rows = slice(0, 3)

    @property
    def description(self) -> str:
        """For messages."""
        return f"the arm of '{self.name}'"

    def approach(self, data: pin.Data, error: Array, positions: Array, limits: Limits) -> None:
        """Leave joints where they are that would leave their limits, while others suffice."""
        J, joints = self.jacobian(data)[self.rows], self.joints
        moves = np.ones(len(joints), dtype=bool)
        while True:
            moved = positions[joints]
            moved[moves] += _damped_inverse(J[:, moves]) @ error
            inside = (moved >= limits[0][joints]) & (moved <= limits[1][joints])
            if inside[moves].all() or (moves & inside).sum() < len(J):
                break
            moves &= inside
        positions[joints] = moved


def _damped_inverse(J: Array) -> Array:
    """Return the pseudo-inverse of J, (joints, rows), damped where J is nearly singular."""
    least = float(np.linalg.svd(J, compute_uv=False)[-1])
    damping = 1e-12 + (0.0 if least > _SINGULAR else 0.02 * (1.0 - least / _SINGULAR)) ** 2
    return np.asarray(J.T @ np.linalg.inv(J @ J.T + damping * np.eye(len(J))), dtype=float)


def _arms_of(model: RobotModel, hands: Sequence[str]) -> list[_Arm]:
    """Return the arms of hands; they do not use joints that move other limbs, too."""
    for hand in hands:
        if hand not in model.config.hands:
            raise UnknownNameError('hand', hand, model.config.hands, model.config.name)
    frames = model.frames([hand.frame for hand in model.config.hands.values()])
    ends = (*model.soles.joints.tolist(), *frames.joints.tolist())
    pin_model = model.pin_model
    used = Counter(joint for end in ends for joint in pin_model.supports[end])
    shared = {pin_model.names[joint] for joint, count in used.items() if count > 1}
    return [_Arm(model, frames, list(model.config.hands).index(hand), shared) for hand in hands]


def _limits(model: RobotModel) -> Limits:
    """Return lower and upper limits (n,) with the margin, in ascending order."""
    lower, upper = position_limits(model)
    margin = np.where(np.isfinite(upper - lower), np.minimum(LIMIT_MARGIN, (upper - lower) / 4), 0)
    return lower + margin, upper - margin
