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
Inverse kinematics of a whole robot: for soles, hands that hold on, base and centre of mass.

For given poses of the base and of the ends of the limbs each limb is solved by itself: legs in
Wang's closed form (:mod:`.kinematics`) where it fits, all else numerically (:mod:`.limb`). For a
centre of mass the base is moved along the ground until it is there. With the base moved by d, axes
kept, each limb follows by ``dq = J^+ (-d, 0)``, and the centre of mass moves by

    A d,    A = I - sum J_com,limb J^+ [I; 0]

(Newman 2013, last section). The inverse of A is not computed but learned from the steps that are
taken anyway, by Broyden's method: along a motion one or two steps suffice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, IndexArray, Pose
from biped_com_ros.core.legs.kinematics import RobotLeg
from biped_com_ros.core.legs.limb import LEG_MOTORS, Limb, NumericLimb
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

#: Of the centre of mass, m: small enough for smooth accelerations.
_TOLERANCE = 1e-11
_MAX_ITERATIONS = 30
#: Errors below this, m, are too close to rounding to learn from.
_LEARNED_FROM = 1e-8


def legs_of(model: RobotModel) -> dict[str, RobotLeg | NumericLimb]:
    """
    Return the legs of a robot that can step, by the names of their feet.

    Raises
    ------
    ConfigurationError
        If a leg has not six motors.

    """
    legs = _legs(model, model.usual_posture())
    for leg in legs.values():
        if (count := len(leg.joint_names)) != LEG_MOTORS:
            raise ConfigurationError(
                f'{leg.name} cannot step: it has {count} motors ({", ".join(leg.joint_names)}); '
                'six are needed to place a sole')
    return legs


def _legs(model: RobotModel, posture: Array) -> dict[str, RobotLeg | NumericLimb]:
    return {foot: _leg(model, number, posture) for number, foot in enumerate(model.soles.names)}


def _leg(model: RobotModel, number: int, posture: Array) -> RobotLeg | NumericLimb:
    foot = model.soles.names[number]
    try:
        return RobotLeg(model, foot)
    except ConfigurationError:
        return NumericLimb(f'the {foot} leg of {model.config.name}', model, model.soles, number,
                           posture, _shared_joints(model))


def _arms(model: RobotModel, posture: Array, hands: Sequence[str]) -> list[NumericLimb]:
    """Return the arms of hands, of which only the position matters."""
    known = tuple(model.config.hands)
    for hand in hands:
        if hand not in known:
            raise UnknownNameError('hand', hand, known, model.config.name)
    frames = model.frames([hand.frame for hand in model.config.hands.values()])
    return [NumericLimb(f"the arm of '{model.config.hands[hand].frame}'", model, frames,
                        known.index(hand), posture, _shared_joints(model), turns=False)
            for hand in hands]


def _shared_joints(model: RobotModel) -> set[str]:
    """Return the joints that move more than one foot or hand."""
    hands = model.frames([hand.frame for hand in model.config.hands.values()])
    pin_model, ends = model.pin_model, (*model.soles.joints.tolist(), *hands.joints.tolist())
    used = Counter(int(joint) for end in ends for joint in pin_model.supports[end])
    return {pin_model.names[joint] for joint, count in used.items() if count > 1}


class PostureIk:
    """
    Postures of a robot for where its soles, its hands that hold on, its base and its CoM are.

    All poses are in one frame, whose z axis is up: the centre of mass is given by its x and y.

    Parameters
    ----------
    model
        The robot.
    posture
        Positions of all joints to begin with, (n,), in the order of ``model.joint_names``.
    holding
        Names of the hands whose positions matter, too.
    margin
        Smallest distance of the limbs' joints from their limits, rad; None: beyond them, too.

    Attributes
    ----------
    joints
        Indices of the joints that move the limbs, into ``model.joint_names``.
    ends
        Poses of the ends of the limbs in the base in `posture`: soles, then hands.
    com_offset
        Measured minus modelled centre of mass in the base, (3,), m.

    Raises
    ------
    ConfigurationError
        If no motor moves a sole or hand.
    UnknownNameError
        If there is no such hand.

    """

    def __init__(self, model: RobotModel, posture: Array, holding: Sequence[str] = (),
                 margin: float | None = None) -> None:
        self._model, self._posture = model, np.array(posture, dtype=float)
        self._limbs: list[Limb] = [
            *_legs(model, self._posture).values(), *_arms(model, self._posture, holding)]
        for limb in self._limbs:
            limb.set_limits(*_narrowed(limb, margin))
        self.joints: IndexArray = np.unique(np.concatenate([limb.index for limb in self._limbs]))
        self.ends = [limb.pose(self._posture[limb.index]) for limb in self._limbs]
        self.com_offset: Array = np.zeros(3)
        self.restart()

    def restart(self) -> None:
        """Forget earlier solutions: the next one does not depend on them."""
        for limb in self._limbs:
            limb.restart()
        # Of the base from the centre of mass: last solution, its last change, and that one's.
        self._offset: Array | None = None
        self._trend, self._bend = np.zeros((2, 2))
        self._gain = np.eye(2)

    def positions(self, base: Pose, ends: Sequence[Pose] = (),
                  posture: Array | None = None) -> Array:
        """
        Return the positions of all joints (n,) for poses of base and ends.

        Parameters
        ----------
        base
            Pose of the base.
        ends
            Poses of the ends; default: :attr:`ends`, where they are with the base at the origin.
        posture
            Positions (n,) of the other joints; default: as at first.

        Raises
        ------
        InputError
            If a limb does not reach, or would leave its limits, with its name.

        """
        to_base, positions = base.inverse(), (self._posture if posture is None else posture).copy()
        for limb, end in zip(self._limbs, ends or self.ends):
            if posture is not None:
                limb.hold(posture)
            positions[limb.index] = limb.positions(to_base @ end)
        return positions

    def over(self, com: Array, base: Pose, ends: Sequence[Pose] = (),
             posture: Array | None = None) -> tuple[Array, Pose]:
        """
        Return positions (n,) and the pose of the base with the centre of mass over a point.

        It begins with what the solutions before this one suggest, so that a motion takes few
        steps.

        Parameters
        ----------
        com
            x and y of the centre of mass, (2,), m.
        base
            Orientation and height of the base; its x and y are found.
        ends, posture
            As of :meth:`positions`.

        Raises
        ------
        InputError
            If a limb does not reach, or would leave its limits, or the centre of mass cannot get
            there.

        """
        offset, last, step = self._first_offset(base, posture), None, np.zeros(2)
        for _ in range(_MAX_ITERATIONS):
            base = Pose(base.rotation, np.array((*(com + offset), base.position[2])))
            positions = self.positions(base, ends, posture)
            found = base.apply(self._model.state(positions).com_in_base + self.com_offset)
            error = com - found[:2]
            if float(np.abs(error).max()) < _TOLERANCE:
                before = offset if self._offset is None else self._offset
                trend = offset - before
                self._offset, self._trend, self._bend = offset, trend, trend - self._trend
                return positions, base
            if last is not None:
                self._learn_gain(step, last, error)
            last, step = error, self._gain @ error
            offset = offset + step
        raise InputError(f'{self._model.config.name} cannot bring its centre of mass over '
                         f'{np.round(com, 4).tolist()} m; step shorter or lower the hips')

    def _first_offset(self, base: Pose, posture: Array | None) -> Array:
        """Return where the base probably has to be, from the centre of mass, (2,), m."""
        if self._offset is None:
            posture = self._posture if posture is None else posture
            com = self._model.state(posture).com_in_base + self.com_offset
            return -(base.rotation @ com)[:2]
        offset = self._offset + self._trend
        if np.abs(self._bend).max() < 0.5 * np.abs(self._trend).max():  # it moves smoothly
            offset = offset + self._bend
        return np.asarray(offset)

    def _learn_gain(self, step: Array, before: Array, after: Array) -> None:
        """Update the gain by a step of the base and the errors of the CoM (Broyden's method)."""
        size, left = float(np.abs(before).max()), float(np.abs(after).max())
        if left > 0.5 * size:
            self._gain = np.eye(2)
        elif size > _LEARNED_FROM:
            found = self._gain @ (before - after)
            self._gain = self._gain + np.outer(step - found, step @ self._gain) / (step @ found)


def _narrowed(limb: Limb, margin: float | None) -> tuple[Array, Array]:
    """Return lower and upper limits of a limb's joints with a margin, in ascending order."""
    if margin is None:
        return np.full_like(limb.lower, -np.inf), np.full_like(limb.upper, np.inf)
    span = limb.upper - limb.lower
    kept = np.where(np.isfinite(span), np.minimum(margin, span / 4.0), 0.0)
    return limb.lower + kept, limb.upper - kept
