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
Contact wrenches within limits: friction, centre of pressure, torsion, efforts.

The weighted minimum-norm wrenches of :mod:`biped_com_ros.core.gravity.contacts`, as a
quadratic program with, for each contact in its own axes,

    f_z >= 0                                unilateral
    (f_x, f_y) in an n-sided pyramid inside the friction cone of mu
    (-m_y, m_x) / f_z inside the polygon, `sole_margin` from its edges
    |m_z| <= torsional_friction f_z
    |effort| <= effort_fraction of its limit, for the joints between base and contacts

Scaled by ``sqrt(share)`` and L the cost is the plain norm and the constraints on the contacts do
not change, so the problem keeps its size and stays well scaled down to a share of zero. Where the
closed form meets all limits it is the solution, and no solver runs.

The solver is ProxQP (package `proxsuite`), imported when the first problem is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, cross
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.gravity.contacts import ContactPoint, minimum_norm_wrenches, UP
from biped_com_ros.core.gravity.model import (
    ContactSolution, GravityLoad, GravityModel, minimum_norm)
from biped_com_ros.core.settings import setting, Settings
import numpy as np
import pinocchio as pin

_FACETS = 8
#: A limit exceeded by less than this fraction of the body weight counts as met.
_TOLERANCE = 1e-9
_UNBOUNDED = 1e20
_LEAST_BOUND = 1e-9  # N m


@dataclass(frozen=True, kw_only=True)
class SupportLimits(Settings):
    """Limits of contact wrenches and efforts."""

    friction: float = setting(
        0.5, "Friction coefficient, with distribution 'bounded'", '', 0.01, 10.0)
    #: Largest torque about the normal per normal force, m.
    torsional_friction: float = 0.02
    #: Distance of the centre of pressure from the edges of the sole, m.
    sole_margin: float = 0.005
    #: Share of the URDF's effort limits that may be used; infinite: any effort.
    effort_fraction: float = 1.0


class BoundedNorm:
    """
    Weighted minimum-norm contact wrenches within limits; each solution starts the next one.

    Parameters
    ----------
    gravity_model
        The robot and its contacts.
    limits
        Of wrenches and efforts.

    Attributes
    ----------
    iterations
        Of the last call; 0 if the closed form met all limits.

    Raises
    ------
    ConfigurationError
        If `sole_margin` leaves nothing of a sole, or, at the first problem that needs it,
        if the solver is not installed.

    """

    def __init__(self, gravity_model: GravityModel, limits: SupportLimits | None = None) -> None:
        self.limits = limits or SupportLimits()
        contacts = gravity_model.contacts
        self._scale = np.array([(1.0, 1.0, 1.0, *([c.lever] * 3)) for c in contacts])
        self._cones = _diagonal_blocks([contact_rows(c, self.limits) for c in contacts])
        self._limited = _limited_joints(gravity_model)
        self._bounds = np.maximum(
            self.limits.effort_fraction * gravity_model.effort_limits[self._limited],
            _LEAST_BOUND)
        self._solver: Any = None
        self.iterations = 0

    def __call__(self, load: GravityLoad, shares: Sequence[float]) -> ContactSolution:
        """
        Return the minimum-norm contact solution; a `Distribution` of `model`.

        Raises
        ------
        InputError
            If no wrenches within the limits balance the weight.

        """
        support = minimum_norm(load, shares)
        self.iterations = 0
        if self._meets_limits(support):
            return support
        return ContactSolution(load, shares, self._solve(load, np.array(shares)).tolist())

    def _meets_limits(self, support: ContactSolution) -> bool:
        slack = self._cones.dot(support.wrenches_at_centres.ravel())
        excess = np.abs(support.efforts.take(self._limited)) - self._bounds
        return bool(slack.min() >= -_TOLERANCE * support.load.gravity_model.weight
                    and excess.max(initial=-math.inf) <= 0.0)

    def _efforts(self, load: GravityLoad, grasp: Array) -> tuple[Array, Array]:
        """Return A, h with efforts = h - A wrenches (base axes), of the limited joints."""
        model = load.gravity_model
        moves = np.repeat(model.joint_moves_contact.T, 6, axis=1)
        jacobian = model.to_measured_joints((load.joint_twists.T.dot(grasp) * moves).T).T
        return jacobian[self._limited], load.fixed_base_efforts()[self._limited]

    def _solve(self, load: GravityLoad, shares: Array) -> Array:
        """Return the wrenches (K, 6) at the contacts' centres along the axes of the base."""
        axes, points = load.placements[:, :3].transpose(0, 2, 1), load.placements[:, 3]
        grasp = np.hstack(list(wrench_adjoint(np.broadcast_to(np.eye(3), axes.shape), points)))
        jacobian, fixed = self._efforts(load, grasp)
        weight, bounds = load.gravity_model.weight, self._bounds
        # Unknown y with wrench_in_contact = weight sqrt(share) diag(1, 1, 1, L, L, L) y.
        scale = (np.sqrt(shares)[:, np.newaxis] * self._scale).ravel()
        to_base = _diagonal_blocks(list(wrench_adjoint(axes, np.zeros_like(points)))) * scale
        target = np.concatenate((load.up, cross(np.array(load.com), np.array(load.up))))
        A = grasp.dot(to_base)
        efforts = jacobian.dot(to_base) * (weight / bounds)[:, np.newaxis]
        # Efforts in parts of their bound: h/b - 1 <= E y <= h/b + 1.
        cones, zeros = self._cones * self._scale.ravel(), np.zeros(len(self._cones))
        y = self._run(A, target, np.concatenate((cones, efforts)),
                      np.concatenate((zeros, fixed / bounds - 1.0)),
                      np.concatenate((zeros + _UNBOUNDED, fixed / bounds + 1.0)))
        # The solver's tolerance leaves a residual, which is distributed so that equilibrium is
        # exact.
        residual = weight * (target - A.dot(y))
        return weight * to_base.dot(y).reshape(-1, 6) + minimum_norm_wrenches(
            residual[:3].tolist(), residual[3:].tolist(), load.points, shares.tolist(),
            load.gravity_model.levers)

    def _run(self, A: Array, b: Array, C: Array, lower: Array, upper: Array) -> Array:
        """Solve for the least y with A y = b and lower <= C y <= upper."""
        if self._solver is None:
            size = A.shape[1]
            self._solver = _make_solver(size, len(b), len(C))
            self._solver.init(np.eye(size), np.zeros(size), A, b, C, lower, upper)
        else:
            self._solver.update(A=A, b=b, C=C, l=lower, u=upper)
        self._solver.solve()
        results = self._solver.results
        self.iterations = int(results.info.iter)
        if results.info.status.name != 'PROXQP_SOLVED':
            self._solver = None  # its state is no start for the next problem
            raise InputError(
                'the contacts cannot balance the weight within friction, soles and effort limits '
                f'({results.info.status.name}): move the centre of mass over them, or increase '
                'the limits')
        return np.array(results.x)


def contact_rows(contact: ContactPoint, limits: SupportLimits) -> Array:
    """
    Return rows (R, 6) whose products with a wrench at the contact's centre must not be negative.

    Raises
    ------
    ConfigurationError
        If `sole_margin` leaves nothing of the sole, or a hand leans on what has no normal.

    """
    facets = 2.0 * math.pi * np.arange(_FACETS) / _FACETS
    inner, margin = limits.friction * math.cos(math.pi / _FACETS), limits.sole_margin
    if contact.grips:
        return np.zeros((0, 6))
    if contact.normal is None:
        raise ConfigurationError(
            f"what contact '{contact.name}' leans on has no direction: give the hand a normal "
            "in the robot's YAML, or contact: grip, or choose distribution closed_form")
    rows = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    rows += [[-math.cos(a), -math.sin(a), inner, 0.0, 0.0, 0.0] for a in facets.tolist()]
    if contact.lever > 0.0:
        rows += [[0.0, 0.0, limits.torsional_friction, 0.0, 0.0, s] for s in (1.0, -1.0)]
        # The centroid is inside of each edge by its offset.
        if min((offset for offset, _, _ in contact.edges), default=math.inf) <= margin:
            raise ConfigurationError(
                f"sole_margin {margin} m leaves nothing of the sole of '{contact.name}'")
        rows += [[0.0, 0.0, offset - margin, along_x, along_y, 0.0]
                 for offset, along_x, along_y in contact.edges]
    found = np.array(rows)
    if contact.normal != UP:
        turn = pin.Quaternion.FromTwoVectors(np.array(contact.normal), np.array(UP)).matrix()
        found[:, :3] = found[:, :3] @ turn
    return found


def _make_solver(size: int, equalities: int, inequalities: int) -> Any:
    try:
        from proxsuite import proxqp
    except ImportError:
        raise ConfigurationError(
            "the wrench distribution within limits needs the package 'proxsuite' (pip install "
            'proxsuite); install it, or choose the closed form') from None
    solver = proxqp.dense.QP(size, equalities, inequalities)
    solver.settings.eps_abs = 1e-9
    solver.settings.eps_rel = 0.0
    solver.settings.max_iter = 200
    solver.settings.initial_guess = proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    return solver


def _limited_joints(model: GravityModel) -> Any:
    """Return the indices of the actuated joints that move contacts and have limits."""
    moves = model.to_measured_joints(model.joint_moves_contact.max(axis=0)) != 0.0
    return np.flatnonzero(moves & np.isfinite(model.effort_limits))


def _diagonal_blocks(blocks: Sequence[Array]) -> Array:
    matrix = np.zeros((sum(map(len, blocks)), 6 * len(blocks)))
    row = 0
    for i, block in enumerate(blocks):
        matrix[row:row + len(block), 6 * i:6 * i + 6] = block
        row += len(block)
    return matrix
