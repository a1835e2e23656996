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
"""Smooth quasi-static motions: from posture to posture, and of the hips over standing feet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
import math
from types import MappingProxyType

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray, Pose
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin


class LimbChain:
    """
    The joints between the base and a frame at the end of a leg or an arm.

    Parameters
    ----------
    model
        The robot.
    frames
        Frames of the robot.
    index
        Which of them.
    excluded
        Names of joints that move other limbs, too, and are not used.

    Attributes
    ----------
    name
        Of the frame.
    joints
        IndexArray of its actuated joints, into ``model.joint_names``.

    Raises
    ------
    ConfigurationError
        If no actuated joint moves the frame.

    """

    def __init__(self, model: RobotModel, frames: FrameSet, index: int,
                 excluded: Collection[str] = ()) -> None:
        pin_model = model.pin_model
        self.name = frames.names[index]
        self._joint = int(frames.joints[index])
        pose = frames.poses_in_joint()[index]
        self._in_joint = pin.SE3(pose.rotation, pose.position)
        chain = [pin_model.names[i] for i in pin_model.supports[self._joint]]
        actuated = [name for name in chain
                    if name in model.actuated_joint_names and name not in excluded]
        if not actuated:
            raise ConfigurationError(f"no motor moves '{self.name}' of {model.config.name}")
        self.joints = model.joint_index(actuated)
        self._columns = [int(pin_model.joints[pin_model.getJointId(n)].idx_v) for n in actuated]

    def end(self, data: pin.Data) -> pin.SE3:
        """Return the pose of the frame in the base."""
        return data.oMi[self._joint] * self._in_joint

    def jacobian(self, data: pin.Data) -> Array:
        """
        Return the Jacobian (6, joints) of the twist of the frame at its origin, base axes.

        Joint Jacobians must have been computed in `data`.
        """
        jacobian: Array = self.columns(data.J).copy()
        # From the origin of the base to that of the frame: v + w x p.
        jacobian[:3] -= skew(self.end(data).translation) @ jacobian[3:]
        return jacobian

    def columns(self, matrix: Array) -> Array:
        """Return the columns of this limb's joints in a matrix (k, nv)."""
        return matrix[:, self._columns]


class LegChain(LimbChain):
    """
    The joints between the base and one sole.

    Parameters
    ----------
    model
        The robot.
    foot
        Index of the foot in ``model.soles``.

    """

    def __init__(self, model: RobotModel, foot: int) -> None:
        super().__init__(model, model.soles, foot)


Offset = tuple[float, float, float]

#: Largest error of a sole, m and rad.
TOLERANCE = 1e-6
_MAX_ITERATIONS = 50
_DAMPING = 1e-9
_LARGEST_SWAY = 2.0


def minimum_jerk(phase: float) -> float:
    """
    Return the minimum-jerk polynomial from 0 to 1, at rest at both ends.

    Parameters
    ----------
    phase
        Share of the duration that has passed; clipped to [0, 1].

    """
    s = min(max(phase, 0.0), 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


class HipShift:
    """
    Moves the base while every sole stays where it is: inverse kinematics of the legs.

    Newton's method on the pose of each sole in the base, starting from the last solution, so that
    a small step takes one or two iterations.

    Parameters
    ----------
    model
        The robot.
    posture
        Joint positions (n,) at which the shift is zero, in the order of ``model.joint_names``.

    Attributes
    ----------
    leg_joints
        IndexArray of all joints between the base and the soles, into ``model.joint_names``.

    """

    def __init__(self, model: RobotModel, posture: Array) -> None:
        self._model, self._data = model, pin.Data(model.pin_model)
        self._home_positions: Array = np.array(posture, dtype=float)
        self._positions = self._home_positions.copy()
        self._legs = [LegChain(model, foot) for foot in range(len(model.soles.names))]
        self.leg_joints: IndexArray = np.unique(
            np.concatenate([leg.joints for leg in self._legs]))
        rows = model.state(self._positions).placements_in_base(model.soles)
        self._home = [Pose(row[:3].T.copy(), row[3].copy()) for row in rows]

    def positions(self, offset: Offset | Array, rotation: Array | None = None,
                  sole_moves: Mapping[int, Pose] = MappingProxyType({})) -> Array:
        """
        Return the positions of all joints (n,) with the base moved by `offset`.

        Parameters
        ----------
        offset
            Displacement of the base with respect to the soles, (3,), in base axes, m.
        rotation
            Rotation (3, 3) of the base about its origin after that; default: none.
        sole_moves
            Displacements of soles that move, by index of the foot: along the axes of the base in
            `posture`, and the rotation about the sole.

        Raises
        ------
        InputError
            If the legs do not reach.

        """
        shift = np.asarray(offset, dtype=float)
        turn = np.eye(3) if rotation is None else rotation
        for _ in range(_MAX_ITERATIONS):
            if self._newton_step(shift, turn, sole_moves) < TOLERANCE:
                return self._positions.copy()
        self._positions[:] = self._home_positions  # so that the next search does not start here
        raise InputError(
            f'the legs of {self._model.config.name} cannot move the base by {shift.tolist()} m '
            'over standing feet; choose a smaller displacement')

    def reset(self) -> None:
        """Start the next search from `posture`, so that it does not depend on earlier ones."""
        self._positions[:] = self._home_positions

    def _newton_step(self, shift: Array, turn: Array, sole_moves: Mapping[int, Pose]) -> float:
        """Improve the leg joints once; return the largest error (m, rad) before the step."""
        q = self._model.configuration(self._positions)
        pin.computeJointJacobians(self._model.pin_model, self._data, q)  # placements included
        worst = 0.0
        for i, (leg, home) in enumerate(zip(self._legs, self._home)):
            if i in sole_moves:
                move = sole_moves[i]
                home = Pose(move.rotation @ home.rotation, move.position + home.position)
            target = pin.SE3(turn.T @ home.rotation, turn.T @ (home.position - shift))
            error, jacobian = _error_and_jacobian(leg, self._data, target)
            worst = max(worst, float(np.abs(error).max()))
            self._positions[leg.joints] += _damped_solve(jacobian, error)
        return worst


def _error_and_jacobian(leg: LegChain, data: pin.Data, target: pin.SE3) -> tuple[Array, Array]:
    """Return the twist (6,) from the sole to its target, and its Jacobian, in sole axes."""
    sole = leg.end(data)
    error = pin.log6(sole.actInv(target)).vector
    jacobian = sole.rotation.T @ leg.jacobian(data).reshape(2, 3, -1)
    return error, jacobian.reshape(6, -1)


def _damped_solve(jacobian: Array, error: Array) -> Array:
    """Return the least-norm step of the joints, damped against singularities."""
    square = jacobian @ jacobian.T + _DAMPING * np.eye(6)
    return jacobian.T @ np.linalg.solve(square, error)


@dataclass(frozen=True)
class Keyframe:
    """
    A posture of a motion.

    Attributes
    ----------
    duration
        Time from the keyframe before to this one, s.
    posture
        Name of a configured posture; its leg joints are replaced by those of the hip shift.
    offset
        Displacement of the base over the feet, in base axes, m.
    label
        Description of the motion for users.

    """

    duration: float
    posture: str = 'stand'
    offset: Offset = (0.0, 0.0, 0.0)
    label: str = ''

    def __post_init__(self) -> None:
        if not 0.0 < self.duration < math.inf:
            raise ConfigurationError(
                f"keyframe '{self.label}' lasts {self.duration} s; it must be a positive time")


class KeyframeMotion:
    """
    A minimum-jerk motion through keyframes, at rest at each, repeated forever.

    It begins in posture ``stand``; so that repetition is smooth the last keyframe should be that
    posture, unshifted.

    Parameters
    ----------
    model
        The robot.
    keyframes
        At least one.

    Attributes
    ----------
    duration
        Time of one round, s.

    """

    def __init__(self, model: RobotModel, keyframes: Sequence[Keyframe]) -> None:
        if not keyframes:
            raise ConfigurationError('a motion needs at least one keyframe')
        self.keyframes = tuple(keyframes)
        self._ends = np.cumsum([keyframe.duration for keyframe in keyframes])
        self.duration = float(self._ends[-1])
        self._postures = {k.posture: model.posture(k.posture) for k in keyframes}
        self._start = Keyframe(1.0, 'stand')
        self._postures['stand'] = model.posture('stand')
        self._hips = HipShift(model, self._postures['stand'])

    def label(self, time: float) -> str:
        """Return the description of the motion at `time`, s."""
        return self._segment(time)[1].label

    def positions(self, time: float) -> Array:
        """Return the positions of the joints (n,) at `time`, s, in the model's order."""
        before, after, phase = self._segment(time)
        share = minimum_jerk(phase)
        positions = _between(self._postures[before.posture], self._postures[after.posture], share)
        offset = _between(np.array(before.offset), np.array(after.offset), share)
        legs = self._hips.leg_joints
        positions[legs] = self._hips.positions(offset)[legs]
        return positions

    def _segment(self, time: float) -> tuple[Keyframe, Keyframe, float]:
        """Return the keyframes before and after `time`, and the phase between them."""
        time = time % self.duration if time > 0.0 else 0.0
        index = min(int(np.searchsorted(self._ends, time, side='right')), len(self._ends) - 1)
        after = self.keyframes[index]
        before = self.keyframes[index - 1] if index else self._start
        return before, after, 1.0 - (float(self._ends[index]) - time) / after.duration


def _between(start: Array, end: Array, share: float) -> Array:
    return start + share * (end - start)


def show_keyframes(model: RobotModel, sway: float = 0.35, arms: str = 'arms_up') -> list[Keyframe]:
    """
    Return a motion that shifts the weight: sideways, forward, down, arms up and down.

    Parameters
    ----------
    model
        A robot with two or more feet and a posture ``stand``.
    sway
        Sideways amplitude as a share of half the distance between the soles.
    arms
        Posture that lifts the arms; omitted if the robot has no such posture.

    Raises
    ------
    ConfigurationError
        If `sway` is not finite and within a foot's distance.

    """
    if not -_LARGEST_SWAY <= sway <= _LARGEST_SWAY:
        raise ConfigurationError(
            f'sway is {sway}; valid: shares of half the distance between the soles, up to '
            f'{_LARGEST_SWAY:g}')
    soles = model.state(model.posture('stand')).placements_in_base(model.soles)[:, 3]
    side = sway * 0.5 * float(np.ptp(soles[:, 1]))
    height = float(-soles[:, 2].mean())
    forward, down = 0.02 * height, 0.03 * height
    frames = [
        Keyframe(1.0, label='stands'),
        Keyframe(1.5, offset=(0.0, side, 0.0), label='sways to the left'),
        Keyframe(2.5, offset=(0.0, -side, 0.0), label='sways to the right'),
        Keyframe(1.5, label='comes back')]
    if arms in model.config.postures:
        frames += [
            Keyframe(2.5, arms, label='lifts its arms'),
            Keyframe(1.5, arms, (forward, 0.0, 0.0), label='leans forward'),
            Keyframe(1.5, arms, label='comes back'),
            Keyframe(2.5, label='lowers its arms')]
    return [*frames,
            Keyframe(1.5, offset=(0.0, 0.0, -down), label='bends its knees'),
            Keyframe(1.5, label='stands up')]
