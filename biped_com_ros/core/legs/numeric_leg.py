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
Inverse kinematics of a leg of any six joints, by Levenberg's and Newton's methods.

Most humanoids' hips and ankles do not have their axes in one point, in another order than Wang's,
or tilted (Unitree G1, iCub, JVRC-1). Six joints still determine the sole's pose; of the up to
sixteen solutions the one near the last is taken, at first near posture ``stand``, with the knee
bent the same way as there.
"""

from __future__ import annotations

import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.legs.kinematics import describe_outside, LegSolution
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

JOINT_COUNT = 6
"""Joints that determine the pose of a sole."""

_KNEE = 3
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
_LIMIT_TOLERANCE = 1e-9
_SOLE = 'biped_com_ros/sole'


class NumericLeg:
    """
    The leg between the base and one sole of a robot.

    It begins each solution at the last one, so that a motion stays on its branch: one object per
    motion.

    Parameters
    ----------
    model
        The robot.
    foot
        Name of a foot in its configuration.

    Attributes
    ----------
    name
        For messages.
    joint_names
        Of the six joints, from the base.
    index
        Indices of the joints in ``model.joint_names``, shape (6,).
    lower, upper
        Limits of the joints, shape (6,), rad.
    rest
        Positions in posture ``stand``, or zeros, (6,), rad.
    length
        From hip to knee to ankle, m.

    Raises
    ------
    UnknownNameError
        If there is no such foot.
    ConfigurationError
        If the leg has not six joints that are measured.

    """

    def __init__(self, model: RobotModel, foot: str) -> None:
        number = model.foot_index(foot)
        joint = int(model.soles.joints[number])
        self.name = f'the {foot} leg of {model.config.name}'
        chain = [int(i) for i in model.pin_model.supports[joint] if i > 1]
        self.joint_names = tuple(model.pin_model.names[i] for i in chain)
        self._check_joints(model)
        self.index = model.joint_index(self.joint_names)
        self._pin_model = _reduced(model, number, chain)
        self._data = pin.Data(self._pin_model)
        self._frame = self._pin_model.getFrameId(_SOLE)
        self.lower: Array = np.array(self._pin_model.lowerPositionLimit)
        self.upper: Array = np.array(self._pin_model.upperPositionLimit)
        posture = model.posture('stand') if 'stand' in model.config.postures else np.zeros(
            len(model.joint_names))
        self.rest: Array = posture[self.index]
        self._last: Array = self.rest
        self._measure()

    def pose(self, positions: Array) -> Pose:
        """Return the pose of the sole in the base for joint positions (6,)."""
        pin.forwardKinematics(self._pin_model, self._data, np.asarray(positions, dtype=float))
        placement = pin.updateFramePlacement(self._pin_model, self._data, self._frame)
        return Pose(placement.rotation.copy(), placement.translation.copy())

    def jacobian_in_sole(self, positions: Array) -> Array:
        """Return the sole's Jacobian along its own axes ("body"), (6, 6): m/s, then rad/s."""
        pin.computeJointJacobians(self._pin_model, self._data, np.asarray(positions, dtype=float))
        return np.asarray(pin.getFrameJacobian(
            self._pin_model, self._data, self._frame, pin.ReferenceFrame.LOCAL), dtype=float)

    def inverse(self, sole_in_base: Pose) -> LegSolution:
        """
        Return joint positions that bring the sole to a pose.

        Parameters
        ----------
        sole_in_base
            Required pose of the sole.

        Returns
        -------
        LegSolution
            Near the last one, or else near posture ``stand``. ``excess`` is the distance, m,
            that is left where it does not reach; ``singular`` has ``'knee'`` if it is stretched
            there.

        """
        target = pin.SE3(sole_in_base.rotation, sole_in_base.position)
        positions, error = self._search(self._last, target)
        if error and self._last is not self.rest:
            positions, error = self._search(self.rest, target)
        if not error:
            positions, error = self._on_the_knees_side(positions, target)
        positions = np.remainder(positions + math.pi, 2.0 * math.pi) - math.pi
        outside = np.flatnonzero((positions < self.lower - _LIMIT_TOLERANCE)
                                 | (positions > self.upper + _LIMIT_TOLERANCE))
        solution = LegSolution(positions, error, tuple(outside.tolist()),
                               self._singularities(positions) if error else ())
        if solution.is_valid:
            self._last = positions
        return solution

    def positions(self, sole_in_base: Pose) -> Array:
        """
        Return the valid solution of :meth:`inverse`, (6,).

        Raises
        ------
        InputError
            If the pose is out of reach of the leg or of its joints.

        """
        solution = self.inverse(sole_in_base)
        if solution.is_valid:
            return solution.positions
        reason = describe_outside(self, solution) if solution.is_reachable else (
            f'{solution.excess:.4f} m are left' + (
                ' with the leg stretched; lower the hips or step shorter'
                if solution.singular else ''))
        raise InputError(f'{self.name} cannot bring its sole to '
                         f'{np.round(sole_in_base.position, 4).tolist()} m in the base: {reason}')

    # -- inside

    def _singularities(self, positions: Array) -> tuple[str, ...]:
        least = np.linalg.svd(self.jacobian_in_sole(positions), compute_uv=False)[-1]
        return ('knee',) if least < _STRETCHED * self.length else ()

    def _search(self, start: Array, target: pin.SE3) -> tuple[Array, float]:
        """
        Return joint positions, and the distance from the target that is left, m: 0 if none.

        Levenberg's damping is raised where a step does not reduce the error, and vanishes towards
        a solution, where steps are Newton's.
        """
        positions: Array = start.copy()
        jacobian, error = self._linearize(positions, target)
        damping, longest = _LEAST_DAMPING, math.inf
        for _ in range(_MAX_STEPS):
            normal = jacobian.T @ jacobian
            normal.reshape(-1)[::JOINT_COUNT + 1] += damping
            step = np.linalg.solve(normal, jacobian.T @ error)
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

    def _linearize(self, positions: Array, target: pin.SE3) -> tuple[Array, Array]:
        """Return Jacobian (6, 6) and error (6,) along the sole's axes: m, then rad."""
        jacobian = self.jacobian_in_sole(positions)
        placement = pin.updateFramePlacement(self._pin_model, self._data, self._frame)
        return jacobian, np.asarray(pin.log6(placement.actInv(target)).vector, dtype=float)

    def _on_the_knees_side(self, positions: Array, target: pin.SE3) -> tuple[Array, float]:
        """Search once more with the knee bent as in `rest`, if it is bent the other way."""
        bend = positions[_KNEE] - self._straight
        if bend * (self.rest[_KNEE] - self._straight) >= 0.0:
            return positions, 0.0
        mirrored: Array = positions.copy()
        mirrored += bend * self._mirroring
        found, distance = self._search(mirrored, target)
        return (positions, 0.0) if distance else (found, 0.0)

    def _measure(self) -> None:
        """Find the length, the straight knee (rad), and what bends it to the other side."""
        pin.computeJointJacobians(self._pin_model, self._data, self.rest)
        axes = self._data.J[3:].T
        points = np.array([self._data.oMi[i].translation for i in range(1, JOINT_COUNT + 1)])
        # Where the axes of hip and ankle nearly meet.
        hip, ankle = (_nearest_to(axes[of], points[of]) for of in (slice(0, 3), slice(4, 6)))
        # The knee is where its axis passes the line from hip to ankle.
        axis = axes[_KNEE]
        knee = points[_KNEE] + axis * axis.dot(0.5 * (hip + ankle) - points[_KNEE])
        thigh, shin = knee - hip, ankle - knee
        bend = math.atan2(axis.dot(np.cross(thigh, shin)),
                          thigh.dot(shin) - axis.dot(thigh) * axis.dot(shin))
        self.length = float(np.linalg.norm(thigh) + np.linalg.norm(shin))
        self._straight = float(self.rest[_KNEE]) - bend
        # Twice the bend back, and by as much as it at the pitch axes of hip and ankle.
        along = axes @ axis
        self._mirroring: Array = np.zeros(JOINT_COUNT)
        self._mirroring[_KNEE] = -2.0
        for pitch in (int(np.abs(along[:3]).argmax()), 4 + int(np.abs(along[4:]).argmax())):
            self._mirroring[pitch] = along[pitch]

    def _check_joints(self, model: RobotModel) -> None:
        names = self.joint_names
        if len(names) != JOINT_COUNT:
            raise ConfigurationError(
                f'{self.name} cannot step: it has {len(names)} joints '
                f'({", ".join(names) or "none"}); six are needed to place a sole')
        for name in names:
            if name not in model.joint_names:
                raise ConfigurationError(
                    f"{self.name} cannot step: its joint '{name}' follows another or is locked")


def _nearest_to(axes: Array, points: Array) -> Array:
    """Return the point (3,) nearest to lines along `axes` through `points`, both (n, 3)."""
    across = np.eye(3) - axes[:, :, np.newaxis] * axes[:, np.newaxis]
    return np.asarray(np.linalg.lstsq(
        across.sum(axis=0), np.einsum('nij,nj->i', across, points), rcond=None)[0], dtype=float)


def _reduced(model: RobotModel, foot: int, chain: list[int]) -> pin.Model:
    """Return a model of the leg alone, with the base at the origin and the sole as a frame."""
    pin_model = pin.Model(model.pin_model)
    pose = model.soles.poses_in_joint()[foot]
    pin_model.addFrame(pin.Frame(
        _SOLE, int(model.soles.joints[foot]), pin.SE3(pose.rotation, pose.position),
        pin.FrameType.OP_FRAME), False)
    fixed = [i for i in range(1, pin_model.njoints) if i not in chain]
    q = model.configuration(np.zeros(len(model.joint_names)))
    return pin.buildReducedModel(pin_model, fixed, q)
