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
Postures over standing feet for robots with legs of any kind, by differential inverse kinematics.

For Wang's legs :mod:`kinematics` has the solution in closed form. Here ``pin-pink`` (Caron et al.)
solves quadratic programs for the velocities of all leg joints, within their limits, that reduce
the errors of soles, centre of mass, trunk and, with the least weight, of a posture. Other joints
do not move. An optional dependency: ``pip install pin-pink``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.pinocchio_model import pose_of
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin

SOLVERS = ('proxqp', 'quadprog', 'daqp')
"""Solvers of quadratic programs that are tried, in this order; others may be chosen by name."""

TOLERANCE = 1e-6
"""Largest final error of soles (m and rad), centre of mass (m) and trunk."""

_MAX_STEPS = 200
#: Weights of the tasks.
_SOLE, _COM, _TRUNK, _POSTURE = 1.0, 1.0, 0.3, 1e-4
_BASE = 'biped_com_ros/base'
#: Rotations of the soles are weighted as the motion of points at this distance, m.
_LEVER = 0.2


class DifferentialIk:
    """
    Postures of a robot for poses of its soles and its centre of mass, with the trunk upright.

    The origin of the world is on the ground below the base in the first posture.

    Parameters
    ----------
    model
        The robot, with legs of any kind.
    positions
        Positions of all joints (n,) at the start: upright, on both soles.
    solver
        Of quadratic programs, by its name in ``qpsolvers``; empty: the first of :data:`SOLVERS`
        that is installed.

    Attributes
    ----------
    positions
        Present positions, (n,).
    base
        Present pose of the base in the world.

    Raises
    ------
    ConfigurationError
        If pin-pink or the solver is not installed.

    """

    def __init__(self, model: RobotModel, positions: Array, solver: str = '') -> None:
        self._pink, self._solver = _load(solver)
        self._model = model
        self._rest: Array = np.array(positions, dtype=float)
        q = model.configuration(self._rest)
        root_in_base = pin.XYZQUATToSE3(q[:7])
        heights = model.state(self._rest).placements_in_base(model.soles)[:, 3, 2]
        base = pin.SE3(np.eye(3), np.array((0.0, 0.0, -heights.mean())))
        q[:7] = pin.SE3ToXYZQUAT(base * root_in_base)
        self._pin_model, q = _of_the_legs(model, q)
        names = list(self._pin_model.names)[2:]
        self._index = model.joint_index(names)
        self._q_of, self._v_of = ([getattr(self._pin_model.joints[
            self._pin_model.getJointId(name)], column) for name in names]
            for column in ('idx_q', 'idx_v'))
        self._configuration = self._pink.Configuration(
            self._pin_model, pin.Data(self._pin_model), q)
        self._make_tasks(q)

    @property
    def positions(self) -> Array:
        """Present positions of all joints, (n,)."""
        positions = self._rest.copy()
        positions[self._index] = self._configuration.q[self._q_of]
        return positions

    @property
    def base(self) -> Pose:
        """Present pose of the base in the world."""
        return pose_of(self._transform(_BASE))

    @property
    def soles(self) -> list[Pose]:
        """Present poses of the soles in the world."""
        return [pose_of(self._transform(task.frame)) for task in self._soles]

    @property
    def com(self) -> Array:
        """Present centre of mass in the world, (3,), m."""
        return np.asarray(pin.centerOfMass(
            self._pin_model, self._configuration.data, self._configuration.q), dtype=float).copy()

    def solve(self, com: Array | tuple[float, float], soles: Sequence[Pose] = (),
              height: float | None = None) -> Array:
        """
        Find the posture for a centre of mass and poses of the soles.

        Parameters
        ----------
        com
            Centre of mass, (2,), m.
        soles
            Poses of the soles; default: the present ones.
        height
            Of the base, m; default: free, near that of the first posture.

        Returns
        -------
        numpy.ndarray
            Positions of all joints, (n,).

        Raises
        ------
        InputError
            If it cannot be reached; the robot stays where it got.

        """
        self._aim(com, soles, height)
        tasks = [*self._soles, self._com, self._trunk]
        if height is None:
            tasks.append(self._posture)
        for _ in range(_MAX_STEPS):
            if self._error() < TOLERANCE:
                return self.positions
            try:
                velocity = self._pink.solve_ik(
                    self._configuration, tasks, 1.0, solver=self._solver, safety_break=False)
            except self._pink.exceptions.PinkError:
                break
            self._configuration.integrate_inplace(velocity, 1.0)
        raise InputError(
            f'{self._model.config.name} cannot bring its centre of mass over '
            f'{np.round(np.asarray(com), 4).tolist()} m with its soles in these poses: '
            f'{self._error():.4f} m of error remain; step shorter, or leave the height open')

    def over(self, foot: str, share: float = 1.0) -> Array:
        """
        Move the centre of mass over the origin of a sole, or part of the way; see :meth:`solve`.

        Parameters
        ----------
        foot
            Name of the foot.
        share
            Of the way.

        """
        sole = self.soles[self._model.foot_index(foot)]
        here = self.com[:2]
        return self.solve(here + share * (sole.position[:2] - here))

    def rates(self, com_velocity: Array | tuple[float, float]) -> Array:
        """
        Return joint velocities (n,) that move the centre of mass over standing soles.

        Parameters
        ----------
        com_velocity
            Forward and left, (2,), m/s.

        """
        step = 1e-4
        self._aim(self.com[:2] + step * np.asarray(com_velocity), self.soles,
                  float(self.base.position[2]))
        velocity = self._pink.solve_ik(
            self._configuration, [*self._soles, self._com, self._trunk], 1.0,
            solver=self._solver, limits=(), safety_break=False)
        rates = np.zeros(len(self._rest))
        rates[self._index] = velocity[self._v_of] / step
        return rates

    # -- inside

    def _make_tasks(self, q: Array) -> None:
        tasks = self._pink.tasks
        self._soles = [tasks.FrameTask(_sole(name), _SOLE, _SOLE * _LEVER)
                       for name in self._model.soles.names]
        self._com = tasks.ComTask([_COM, _COM, 0.0])
        self._trunk = tasks.FrameTask(_BASE, [0.0, 0.0, 0.0], _TRUNK)
        self._posture = tasks.PostureTask(_POSTURE)
        self._posture.set_target(q)

    def _aim(self, com: Array | tuple[float, float], soles: Sequence[Pose],
             height: float | None) -> None:
        targets = list(soles) or self.soles
        for task, pose in zip(self._soles, targets):
            task.set_target(pin.SE3(pose.rotation, pose.position))
        self._com.set_target(np.array((*com, 0.0)))
        yaw = float(np.mean([np.arctan2(p.rotation[1, 0], p.rotation[0, 0]) for p in targets]))
        self._trunk.set_position_cost([0.0, 0.0, 0.0 if height is None else _TRUNK])
        self._trunk.set_target(pin.SE3(
            pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array((0.0, 0.0, height or 0.0))))

    def _error(self) -> float:
        """Return the largest error of the tasks that have to be exact, m or rad."""
        configuration = self._configuration
        errors = [task.compute_error(configuration) for task in self._soles]
        errors.append(self._com.compute_error(configuration)[:2])
        trunk = self._trunk.compute_error(configuration)
        errors.append(trunk[3:] if not self._trunk.cost[2] else trunk[2:])
        return float(max(np.abs(error).max() for error in errors))

    def _transform(self, frame: str) -> pin.SE3:
        return self._configuration.get_transform_frame_to_world(frame)


def _load(solver: str) -> tuple[Any, str]:
    """Return the library and the solver; ConfigurationError if one is missing."""
    try:
        import pink
        import pink.exceptions
        import pink.tasks
        import qpsolvers
    except ImportError as error:
        raise ConfigurationError(
            f"differential inverse kinematics needs the package 'pin-pink' ({error}): pip install "
            'pin-pink, and a solver: proxsuite, quadprog or daqp') from None
    found = qpsolvers.available_solvers
    if solver and solver not in found:
        raise ConfigurationError(
            f"no solver '{solver}'; installed: {', '.join(found) or 'none'}")
    chosen = solver or next((name for name in SOLVERS if name in found), '')
    if not chosen:
        raise ConfigurationError(
            'pin-pink finds no solver of quadratic programs: pip install proxsuite (or quadprog, '
            'daqp)')
    return pink, chosen


def _of_the_legs(model: RobotModel, q: Array) -> tuple[pin.Model, Array]:
    """Return Pinocchio's model with only the legs free, and with soles and base as frames."""
    pin_model = pin.Model(model.pin_model)
    for name, joint, pose in zip(
            model.soles.names, model.soles.joints, model.soles.poses_in_joint()):
        pin_model.addFrame(pin.Frame(_sole(name), int(joint), pin.SE3(
            pose.rotation, pose.position), pin.FrameType.OP_FRAME), False)
    root = pin.XYZQUATToSE3(model.configuration(np.zeros(len(model.joint_names)))[:7])
    pin_model.addFrame(pin.Frame(_BASE, 1, root.inverse(), pin.FrameType.OP_FRAME), False)
    legs = {i for joint in model.soles.joints for i in pin_model.supports[int(joint)]}
    fixed = [i for i in range(2, pin_model.njoints) if i not in legs]
    reduced = pin.buildReducedModel(pin_model, fixed, q)
    moved = [k for i in sorted(legs - {0}) for k in range(
        pin_model.joints[i].idx_q, pin_model.joints[i].idx_q + pin_model.joints[i].nq)]
    return reduced, q[moved]


def _sole(name: str) -> str:
    return f'biped_com_ros/sole/{name}'
