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
Limbs between the base and a sole or a hand, and their inverse kinematics for any joints.

Most humanoids' hips and ankles do not have their axes in one point, in another order than Wang's,
or tilted (Unitree G1, iCub, JVRC-1); arms have fewer or more joints than six. Of the solutions
the one near the last is taken, at first near the posture to begin with, by Levenberg's and
Newton's methods; a leg of six joints keeps its knee bent the way it is there. Joints that are
coupled (mimic) move together: what counts are the motors. Limbs with more motors than needed move
as little as possible, and joints at their limits stay there while others suffice.
"""

from __future__ import annotations

from collections.abc import Collection
import math
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray, Pose
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.pinocchio_model import pose_of
from biped_com_ros.core.model.robot import position_limits, RobotModel
import numpy as np
import pinocchio as pin

LEG_MOTORS = 6
"""Motors that determine the pose of a sole."""

_KNEE = 3
#: For joints that turn about x, y and z.
_REMEDIES = (
    'the way to the side is too wide: check the limits in the URDF, and that the feet are not far '
    'apart', 'step shorter, or lower the hips less (crouch)', 'turn less with each step')
_LIMIT_TOLERANCE = 1e-9
#: The error after a step as short as this, rad, is that of rounding: convergence is quadratic.
_LAST_STEP = 1e-6
_MAX_STEPS = 100
#: Largest turn of a joint in one step, rad.
_LARGEST_TURN = 0.3
_LEAST_DAMPING = 1e-14
#: Smaller errors, m and rad, are none.
_REACHED = 1e-9
#: Smallest singular value of the Jacobian, m, relative to the leg's length: stretched below that.
_STRETCHED = 0.03


class SidewaysLimitError(InputError):
    """A leg's joint about the axis that points forward would exceed its limits."""


class LegSolution(NamedTuple):
    """
    Solution of the inverse kinematics of a limb.

    Attributes
    ----------
    positions
        Of its joints, shape (m,), rad; if out of reach, near ones: in closed form with the
        required orientation.
    excess
        0 if the end can be reached; otherwise the distance that is left, m. In closed form it is
        by how much the hip is too far from the ankle (positive) or too near (negative).
    outside
        Indices of the joints that would be outside their limits.
    singular
        Singularities, where a joint is undetermined or the end cannot move in every direction:
        ``'hip roll'`` at 90 deg (yaw and pitch turn about one axis; here the yaw is zero),
        ``'ankle roll'`` with the hip on its axis (here zero), ``'knee'`` straight or folded.

    """

    positions: Array
    excess: float
    outside: tuple[int, ...]
    singular: tuple[str, ...]

    @property
    def is_reachable(self) -> bool:
        """Whether the limb is long enough, joint limits aside."""
        return self.excess == 0.0

    @property
    def is_valid(self) -> bool:
        """Whether the limb is long enough and its joints are within their limits."""
        return self.excess == 0.0 and not self.outside


class Limb:
    """
    A limb whose joints bring its end to a pose.

    Parameters
    ----------
    name
        For messages.
    joint_names
        Of its joints, from the base.
    lower, upper
        Their limits, shape (m,), rad.

    Attributes
    ----------
    name, joint_names, lower, upper
        As given.
    index
        Indices of the joints in ``model.joint_names``, shape (m,), for limbs of a robot.

    """

    index: IndexArray
    _is_leg = True

    def __init__(self, name: str, joint_names: tuple[str, ...], lower: Array,
                 upper: Array) -> None:
        self.name, self.joint_names = name, joint_names
        self.set_limits(lower, upper)

    def set_limits(self, lower: Array, upper: Array) -> None:
        """Set the limits of the joints, (m,) each, rad."""
        self.lower, self.upper = lower, upper
        is_limited = np.isfinite(lower) & np.isfinite(upper)
        #: Angles are given within half a turn of these.
        self._middles = np.zeros(len(lower))
        self._middles[is_limited] = 0.5 * (lower[is_limited] + upper[is_limited])
        self._limits = [(a - _LIMIT_TOLERANCE, b + _LIMIT_TOLERANCE)
                        for a, b in zip(lower.tolist(), upper.tolist())]

    def pose(self, positions: Array) -> Pose:
        """Return the pose of the end in the base for joint positions (m,)."""
        raise NotImplementedError

    def inverse(self, end_in_base: Pose) -> LegSolution:
        """Return joint positions that bring the end to a pose in the base."""
        raise NotImplementedError

    def hold(self, positions: Array) -> None:
        """Take over the positions of all joints (n,): others may move the limb, too."""

    def restart(self) -> None:
        """Forget the last solution: the next one does not depend on it."""

    def positions(self, end_in_base: Pose) -> Array:
        """
        Return the valid solution of :meth:`inverse`, (m,).

        Raises
        ------
        InputError
            If the pose is out of reach of the limb or of its joints.

        """
        solution, kind = self.inverse(end_in_base), InputError
        if solution.is_valid:
            return solution.positions
        if solution.is_reachable:
            reason = 'joints would exceed their limits: ' + ', '.join(
                f'{self.joint_names[i]} at {solution.positions[i]:.4f} rad (limits '
                f'{self.lower[i]:.4f} to {self.upper[i]:.4f})' for i in solution.outside)
            if self._is_leg:
                axis = self._axis_of(solution)
                reason += f'; {_REMEDIES[axis]}'
                kind = SidewaysLimitError if axis == 0 else InputError
        else:
            reason = self._describe_excess(solution)
        raise kind(f'{self.name} cannot bring its end to '
                   f'{np.round(end_in_base.position, 4).tolist()} m in the base: {reason}')

    def jacobian_in_sole(self, positions: Array) -> Array:
        """Return the end's Jacobian along its own axes ("body"), (6, m): m/s, then rad/s."""
        raise NotImplementedError

    def _axis_of(self, solution: LegSolution) -> int:
        """Return the axis of the sole, 0 to 2, about which joints beyond their limits turn."""
        turns = self.jacobian_in_sole(solution.positions)[3:, list(solution.outside)]
        return int(np.abs(turns).sum(axis=1).argmax())

    def _describe_excess(self, solution: LegSolution) -> str:
        """Return by how much a pose is out of reach, and why."""
        raise NotImplementedError

    def _outside(self, positions: list[float]) -> tuple[int, ...]:
        """Return the indices of the joints that are outside their limits."""
        return tuple([i for i, (q, (low, high)) in enumerate(zip(positions, self._limits))
                      if not low <= q <= high])


class NumericLimb(Limb):
    """
    A limb of a robot, solved numerically.

    It begins each solution at the last one, so that a motion stays on its branch: one object per
    motion.

    Parameters
    ----------
    name
        For messages.
    model
        The robot.
    frames, number
        The frame at its end is this one of these.
    posture
        Positions of all joints (n,) to begin with.
    shared
        Names of motors that move other limbs, too, and stay where they are.
    turns
        Whether the orientation of the end matters, not only its position.

    Attributes
    ----------
    rest
        Positions in the posture, (m,), rad.
    length
        From hip to knee to ankle, m.

    Raises
    ------
    ConfigurationError
        If no motor moves the frame.

    """

    def __init__(self, name: str, model: RobotModel, frames: FrameSet, number: int,
                 posture: Array, shared: Collection[str] = (), turns: bool = True) -> None:
        pin_model = model.pin_model
        chain = [int(i) for i in pin_model.supports[int(frames.joints[number])] if i > 1]
        names = tuple(pin_model.names[i] for i in chain)
        own = tuple(joint for joint in names
                    if joint in model.actuated_joint_names and joint not in shared)
        if not own:
            raise ConfigurationError(f'no motor moves {name}')
        self.index = model.joint_index(own)
        lower, upper = (limits[self.index] for limits in position_limits(model))
        super().__init__(name, own, lower, upper)
        self._model, self._rows, self._is_leg = model, slice(0, 6 if turns else 3), turns
        self._q_rows = [pin_model.joints[i].idx_q for i in chain]
        # Coupled joints turn with their motors.
        coupling = model.coupling[[i - 2 for i in chain]]
        self._gains = coupling[:, self.index]
        self._is_moved_by_others = bool(np.delete(coupling, self.index, axis=1).any())
        self._pin_model, end = _chain_alone(model, chain), frames.poses_in_joint()[number]
        self._frame = self._pin_model.addFrame(pin.Frame(
            'end', len(chain), pin.SE3(end.rotation, end.position), pin.FrameType.OP_FRAME))
        self._data = pin.Data(self._pin_model)
        self._firsts = [chain.index(pin_model.getJointId(joint)) + 1 for joint in own]
        self._set_posture(posture)
        self._measure()

    def _set_posture(self, positions: Array) -> None:
        self.rest: Array = np.array(positions[self.index])
        self._last = self.rest
        q = self._model.configuration(positions)[self._q_rows]
        self._held: Array = q - self._gains @ self.rest

    def hold(self, positions: Array) -> None:
        """Take over the positions of all joints (n,): others may move the limb, too."""
        if self._is_moved_by_others:
            q = self._model.configuration(positions)[self._q_rows]
            self._held = q - self._gains @ positions[self.index]

    def restart(self) -> None:
        """Forget the last solution: the next one begins at :attr:`rest`."""
        self._last = self.rest

    def pose(self, positions: Array) -> Pose:
        """Return the pose of the end in the base for joint positions (m,)."""
        pin.forwardKinematics(self._pin_model, self._data, self._q(positions))
        return pose_of(pin.updateFramePlacement(self._pin_model, self._data, self._frame))

    def jacobian_in_sole(self, positions: Array) -> Array:
        """Return the end's Jacobian along its own axes ("body"), (6, m): m/s, then rad/s."""
        pin.computeJointJacobians(self._pin_model, self._data, self._q(positions))
        jacobian = pin.getFrameJacobian(
            self._pin_model, self._data, self._frame, pin.ReferenceFrame.LOCAL)
        return np.asarray(jacobian.reshape(6, -1) @ self._gains)

    def inverse(self, end_in_base: Pose) -> LegSolution:
        """
        Return joint positions that bring the end to a pose.

        Parameters
        ----------
        end_in_base
            Required pose of the end.

        Returns
        -------
        LegSolution
            Near the last one, or else near :attr:`rest`. ``singular`` has ``'knee'`` if it is out
            of reach and stretched.

        """
        target = pin.SE3(end_in_base.rotation, end_in_base.position)
        positions, error = self._search(self._last, target)
        if error and self._last is not self.rest:
            positions, error = self._search(self.rest, target)
        if not error:
            positions = self._on_the_knees_side(positions, target)
        outside = self._outside(positions.tolist())
        if outside:  # perhaps after a whole turn
            first = self._middles - math.pi
            positions = first + np.remainder(positions - first, 2.0 * math.pi)
            outside = self._outside(positions.tolist())
        solution = LegSolution(positions, error, outside,
                               self._singularities(positions) if error else ())
        if solution.is_valid:
            self._last = positions
        return solution

    # -- inside

    def _q(self, positions: Array) -> Array:
        """Return Pinocchio's q of the chain."""
        return self._held + self._gains.dot(positions)

    def _describe_excess(self, solution: LegSolution) -> str:
        return f'{solution.excess:.4f} m are left' + (
            ' with the limb stretched; lower the hips or step shorter'
            if solution.singular else '')

    def _singularities(self, positions: Array) -> tuple[str, ...]:
        jacobian = self.jacobian_in_sole(positions)[self._rows]
        least = np.linalg.svd(jacobian, compute_uv=False)[-1]
        return ('knee',) if least < _STRETCHED * self.length else ()

    def _search(self, start: Array, target: pin.SE3) -> tuple[Array, float]:
        """
        Return joint positions, and the distance from the target that is left, m: 0 if none.

        Levenberg's damping is raised where a step does not reduce the error, and vanishes towards
        a solution, where steps are Newton's.
        """
        positions: Array = start.copy()
        jacobian, error = self._linearize(positions, target)
        damping = _LEAST_DAMPING
        for _ in range(_MAX_STEPS):
            step = self._step(jacobian, error, damping, positions)
            longest = float(np.abs(step).max())
            step *= min(1.0, _LARGEST_TURN / max(longest, _LAST_STEP))
            next_jacobian, next_error = self._linearize(positions + step, target)
            if next_error @ next_error < error @ error or longest < _LAST_STEP:
                positions, jacobian, error = positions + step, next_jacobian, next_error
                damping = max(0.1 * damping, _LEAST_DAMPING)
            else:
                damping *= 10.0
            if longest < _LAST_STEP:
                break
        distance = float(np.linalg.norm(error))
        return positions, 0.0 if distance < _REACHED else max(
            float(np.linalg.norm(error[:3])), _REACHED)

    def _step(self, jacobian: Array, error: Array, damping: float, positions: Array) -> Array:
        """Return a damped step; with motors to spare those at their limits stay there."""
        rows, columns = jacobian.shape
        if rows >= columns:
            return _damped_step(jacobian, error, damping)
        moves, step = np.ones(columns, dtype=bool), np.zeros(columns)
        while True:
            step[moves] = _damped_step(jacobian[:, moves], error, damping)
            inside = (positions + step >= self.lower) & (positions + step <= self.upper)
            if inside[moves].all() or (moves & inside).sum() < rows:
                return step
            moves &= inside
            step[:] = 0.0

    def _linearize(self, positions: Array, target: pin.SE3) -> tuple[Array, Array]:
        """Return Jacobian (k, m) and error (k,) along the end's axes: m, then rad if it turns."""
        jacobian = self.jacobian_in_sole(positions)
        error = pin.updateFramePlacement(self._pin_model, self._data, self._frame).actInv(target)
        if self._rows.stop == 3:
            return jacobian[:3], np.array(error.translation)
        return jacobian, np.asarray(pin.log6(error).vector, dtype=float)

    def _on_the_knees_side(self, positions: Array, target: pin.SE3) -> Array:
        """Search once more with the knee bent as in `rest`, if it is bent the other way."""
        if self._mirroring is None:
            return positions
        bend = positions[_KNEE] - self._straight
        if bend * (self.rest[_KNEE] - self._straight) >= 0.0:
            return positions
        found, distance = self._search(positions + bend * self._mirroring, target)
        return positions if distance else found

    def _measure(self) -> None:
        """Find the length, the straight knee (rad), and what bends it to the other side."""
        pin.computeJointJacobians(self._pin_model, self._data, self._q(self.rest))
        points = np.array([self._data.oMi[i].translation for i in self._firsts])
        # One column alone comes as a vector.
        axes = (self._data.J.reshape(6, -1) @ self._gains)[3:].T
        speeds = np.linalg.norm(axes, axis=1)  # 2 where one motor bends a knee of two joints
        self._mirroring: Array | None = None
        if len(axes) != LEG_MOTORS or self._rows.stop == 3 or not speeds.all():
            self.length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
            return
        axes = axes / speeds[:, np.newaxis]
        # Where the axes of hip and ankle nearly meet.
        hip, ankle = (_nearest_to(axes[of], points[of]) for of in (slice(0, 3), slice(4, 6)))
        # The knee is where its axis passes the line from hip to ankle.
        axis = axes[_KNEE]
        knee = points[_KNEE] + axis * axis.dot(0.5 * (hip + ankle) - points[_KNEE])
        thigh, shin = knee - hip, ankle - knee
        bend = math.atan2(axis.dot(np.cross(thigh, shin)),
                          thigh.dot(shin) - axis.dot(thigh) * axis.dot(shin))
        self.length = float(np.linalg.norm(thigh) + np.linalg.norm(shin))
        self._straight = float(self.rest[_KNEE] - bend / speeds[_KNEE])
        # Twice the bend back, and by as much as it at the pitch axes of hip and ankle.
        along = axes @ axis
        self._mirroring = np.zeros(LEG_MOTORS)
        self._mirroring[_KNEE] = -2.0
        for pitch in (int(np.abs(along[:3]).argmax()), 4 + int(np.abs(along[4:]).argmax())):
            self._mirroring[pitch] = speeds[_KNEE] * along[pitch]


def _damped_step(J: Array, error: Array, damping: float) -> Array:
    """Return the damped least-squares solution of ``J x = error``, the shortest one, (m,)."""
    rows, columns = J.shape
    square: Array = J.T @ J if rows >= columns else J @ J.T
    square.reshape(-1)[::len(square) + 1] += damping
    if rows >= columns:
        return np.asarray(np.linalg.solve(square, J.T @ error), dtype=float)
    return np.asarray(J.T @ np.linalg.solve(square, error), dtype=float)


def _nearest_to(axes: Array, points: Array) -> Array:
    """Return the point (3,) nearest to lines along `axes` through `points`, both (n, 3)."""
    across = np.eye(3) - axes[:, :, np.newaxis] * axes[:, np.newaxis]
    return np.asarray(np.linalg.lstsq(
        across.sum(axis=0), np.einsum('nij,nj->i', across, points), rcond=None)[0], dtype=float)


def _chain_alone(model: RobotModel, chain: list[int]) -> pin.Model:
    """Return a model of the joints of a chain, with the base at the origin."""
    # Not Pinocchio's reduced model, which refuses a link and a joint of one name.
    whole, alone, parent = model.pin_model, pin.Model(), 0
    root = model.configuration(np.zeros(len(model.joint_names)))[:7]
    placement = pin.XYZQUATToSE3(root)
    for i in chain:
        parent = alone.addJoint(
            parent, whole.joints[i], placement * whole.jointPlacements[i], whole.names[i])
        placement = pin.SE3.Identity()
    return alone
