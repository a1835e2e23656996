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

The base moves along the ground, axes kept, and the limbs follow (:mod:`.ik`). Where a leg would be
stretched, the base is lowered on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

#: Smallest distance of joints from their limits, rad (or m).
LIMIT_MARGIN = 0.01
#: Largest step of the centre of mass while a way is looked for, m.
_LARGEST_STEP = 0.01
#: By how much the base is lowered at a time if a leg does not reach, m.
#: By how much the base may be lowered where a leg would be stretched, and the steps of it, m.
_MAX_LOWERING, _LOWER_BY = 0.1, 0.005
_REMEDY = 'begin with more bent knees and elbows, or move less'


def com_in_sole(model: RobotModel, foot: str, positions: Array) -> Array:
    """Return the centre of mass at joint positions (n,) in the frame of a sole, (3,), m."""
    state = model.state(positions)
    sole = state.pose_in_base(model.config.sole_frame(foot))
    return sole.inverse().apply(state.com_in_base)


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
    holding
        Names of the hands that stay where they are.
    up
        Direction against gravity in the base, (3,); default: the normal of the sole over which
        the centre of mass moves, or of the first one.

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

    def __init__(self, model: RobotModel, positions: Array,
                 holding: Sequence[str] = (), up: Array | None = None) -> None:
        self._model, self._up = model, up
        self.positions: Array = np.array(positions, dtype=float)
        self.holding = tuple(holding)
        self.joints = PostureIk(model, self.positions, holding).joints
        self.lowered = 0.0

    def offset_from(self, contact: str, point: tuple[float, float] | None = None) -> Array:
        """
        Return the horizontal displacement of the centre of mass to over a sole or below a hand.

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
            In base axes, (3,), m.

        Raises
        ------
        UnknownNameError
            If there is no such foot, and no such hand holds on.
        InputError
            If there is a point for a hand.

        """
        goal, up = self._goal(contact, point)
        offset = goal - self._model.state(self.positions).com_in_base
        return np.asarray(offset - offset @ up * up, dtype=float)

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
            If it cannot get there, with the joint or limb; it stays where it is.

        """
        return self.path(contact, 2, point, share)[-1].copy()

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
            If it cannot get there, with the joint or limb; it stays where it is.

        """
        offset, (_, up) = share * self.offset_from(contact, point), self._goal(contact, point)
        steps = max(int(np.ceil(np.linalg.norm(offset) / _LARGEST_STEP)), 1)
        shares = np.linspace(0.0, 1.0, steps + 1).tolist()
        down, way = 0.0, self._way(offset, up, 0.0)
        while True:
            try:
                reached = [way(part) for part in shares]
                break
            except InputError as error:
                down += _LOWER_BY
                if self.lowered + down > _MAX_LOWERING:
                    raise InputError(
                        f'the centre of mass of {self._model.config.name} cannot be moved over '
                        f"'{contact}': {error}; {_REMEDY}") from error
                way = self._way(offset, up, down)
        way = self._way(offset, up, down)
        rows = np.array([reached[0], reached[-1]] if count == 2 else [
            way(minimum_jerk(phase)) for phase in np.linspace(0.0, 1.0, count).tolist()])
        self.positions, self.lowered = rows[-1].copy(), self.lowered + down
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
        y = float(com_in_sole(self._model, foot, self.positions)[1])
        return self.path(foot, count, (toes + distance, y))

    # -- inside

    def _goal(self, contact: str, point: tuple[float, float] | None) -> tuple[Array, Array]:
        """Return the point of a contact below or above the goal, (3,), and up, in the base."""
        model, config = self._model, self._model.config
        state, hands = model.state(self.positions), {config.hand_label(h): h for h in self.holding}
        if contact in hands:
            if point is not None:
                raise InputError(f"'{contact}' is a hand; only soles have points")
            goal = state.pose_in_base(config.hands[hands[contact]].frame).position
            sole = state.pose_in_base(config.sole_frame(next(iter(config.feet))))
        elif contact in config.feet:
            sole = state.pose_in_base(config.sole_frame(contact))
            x, y = self._below_ankle(contact, sole) if point is None else point
            goal = sole.apply(np.array((x, y, 0.0)))
        else:
            raise UnknownNameError('foot or held hand', contact, (*config.feet, *hands),
                                   config.name)
        return goal, sole.rotation[:, 2] if self._up is None else self._up

    def _below_ankle(self, foot: str, sole: Pose) -> tuple[float, float]:
        ankle = self._model.config.feet[foot].ankle
        if not ankle:
            return 0.0, 0.0
        position = self._model.state(self.positions).pose_in_base(ankle).position
        x, y, _ = sole.inverse().apply(position).tolist()
        return x, y

    def _way(self, offset: Array, up: Array, down: float) -> Callable[[float], Array]:
        """
        Return what gives the positions (n,) for a share of the way.

        Parameters
        ----------
        offset
            Of the centre of mass, base axes, (3,), m.
        up
            Unit vector against gravity in the base, (3,).
        down
            By how much the base is lower at the end, m.

        """
        ik = PostureIk(self._model, self.positions, self.holding, LIMIT_MARGIN)
        level = Pose(pin.Quaternion.FromTwoVectors(
            up, np.array((0.0, 0.0, 1.0))).toRotationMatrix(), np.zeros(3))
        ends = [level @ end for end in ik.ends]
        start = level.apply(self._model.state(self.positions).com_in_base)
        along = level.rotation @ offset

        def at(share: float) -> Array:
            base = Pose(level.rotation, np.array((0.0, 0.0, -share * down)))
            return ik.over((start + share * along)[:2], base, ends)[0]

        return at
