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

The same least weighted wrenches as :class:`biped_com_ros.core.gravity.model.MinimumNorm`, as a
quadratic program with, for each contact in its own axes,

    f_z >= 0                                unilateral
    (f_x, f_y) in an n-sided pyramid inside the friction cone of mu
    (-m_y, m_x) / f_z inside the polygon, `sole_margin` from its edges
    |m_z| <= torsional_friction f_z
    |effort| <= effort_fraction of its limit, for the joints between base and contacts

Scaled by ``sqrt(share)`` and L the cost is the plain norm and the conditions on the contacts do
not change, so the problem keeps its size and stays well scaled down to a share of zero. Where the
closed form keeps all limits it is the solution, and no solver runs.

The solver is ProxQP (package `proxsuite`), imported when the first problem is solved.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, cross
from biped_com_ros.core.gravity.model import (
    carry, ContactPoint, GravityLoad, GravityModel, MINIMUM_NORM, Support)
import numpy as np

_FACETS = 8
#: Of the body weight (and of an effort's limit): a limit missed by less counts as kept.
_TOLERANCE = 1e-9
_UNBOUNDED = 1e20
_LEAST_BOUND = 1e-9  # N m


@dataclass(frozen=True)
class SupportLimits:
    """
    What contacts and joints can bear.

    Attributes
    ----------
    friction
        mu, without unit.
    torsional_friction
        Largest torque about the normal per normal force, m.
    sole_margin
        Distance of the centre of pressure from the edges of the sole, m.
    effort_fraction
        Share of the URDF's effort limits that may be used; infinite: any effort.

    """

    friction: float = 0.5
    torsional_friction: float = 0.02
    sole_margin: float = 0.005
    effort_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not (self.friction > 0.0 and self.torsional_friction > 0.0
                and self.sole_margin >= 0.0 and self.effort_fraction > 0.0):
            raise ConfigurationError(
                f'support limits friction {self.friction}, torsional_friction '
                f'{self.torsional_friction} m and effort_fraction {self.effort_fraction} must be '
                f'positive, sole_margin {self.sole_margin} m not negative')


class BoundedNorm:
    """
    The weighted least wrenches within limits; remembers the last solution as a start.

    Parameters
    ----------
    gravity_model
        The robot and its contacts.
    limits
        What they bear.

    Attributes
    ----------
    iterations
        Of the last call; 0 if the closed form kept all limits.

    Raises
    ------
    ConfigurationError
        If `sole_margin` leaves nothing of a sole, or, at the first problem that needs it,
        if the solver is not installed.

    """

    def __init__(self, gravity_model: GravityModel, limits: SupportLimits | None = None) -> None:
        self.limits = limits or SupportLimits()
        contacts = gravity_model.contacts
        blocks = [contact_rows(contact, self.limits) for contact in contacts]
        scales = [(1.0, 1.0, 1.0, *([contact.lever] * 3)) for contact in contacts]
        self._scale = np.array(scales)
        self._cones = _diagonal_blocks(blocks)
        self._scaled_cones = self._cones * self._scale.ravel()
        self._zeros = np.zeros(len(self._cones))
        self._size = 6 * len(contacts)
        limited = _limited_joints(gravity_model)
        self._bounds = np.maximum(
            self.limits.effort_fraction * gravity_model.effort_limits[limited], _LEAST_BOUND)
        self._moves = np.repeat(gravity_model.supports.T, 6, axis=1)
        self._limited = limited
        self._select = gravity_model.fold_rows(np.eye(len(self._moves))).T[limited]
        self._solver: Any = None
        self.iterations = 0

    def support(self, load: GravityLoad, shares: list[float]) -> Support:
        """
        Return the robot on these wrenches; see :class:`WrenchDistribution`.

        Raises
        ------
        InputError
            If no wrenches within the limits carry the weight.

        """
        support = MINIMUM_NORM.support(load, shares)
        self.iterations = 0
        if self._keeps_limits(support):
            return support
        return Support(load, shares, self._solve(load, np.array(shares)).tolist())

    def _keeps_limits(self, support: Support) -> bool:
        # The item at argmin takes a quarter of the time of min.
        room = self._cones.dot(support.wrenches_at_centres.ravel())
        if not room.item(room.argmin()) >= -_TOLERANCE * support.load.gravity_model.weight:
            return False
        if not len(self._bounds):
            return True
        excess = np.abs(support.efforts.take(self._limited))
        excess -= self._bounds
        return not excess.item(excess.argmax()) > 0.0

    def _efforts(self, load: GravityLoad, grasp: Array) -> tuple[Array, Array]:
        """Return A, h with efforts = h - A wrenches (base axes), of the limited joints."""
        jacobian = load.columns.T.dot(grasp)
        jacobian *= self._moves
        return self._select.dot(jacobian), self._select.dot(load.gravity_forces)

    def _solve(self, load: GravityLoad, shares: Array) -> Array:
        """Return the wrenches (K, 6) at the contacts' centres along the axes of the base."""
        grasp = _grasp(load.placements[:, 3])
        jacobian, held = self._efforts(load, grasp)
        weight, bounds = load.gravity_model.weight, self._bounds
        # Unknown y with wrench_in_contact = weight sqrt(share) diag(1, 1, 1, L, L, L) y.
        scale = (np.sqrt(shares)[:, np.newaxis] * self._scale).ravel()
        to_base = _to_base(load.placements) * scale
        target = np.concatenate((load.up, cross(load.com, load.up)))
        A = grasp.dot(to_base)
        efforts = jacobian.dot(to_base) * (weight / bounds)[:, np.newaxis]
        # Efforts in parts of their bound: h/b - 1 <= E y <= h/b + 1.
        y = self._run(A, target, np.concatenate((self._scaled_cones, efforts)),
                      np.concatenate((self._zeros, held / bounds - 1.0)),
                      np.concatenate((self._zeros + _UNBOUNDED, held / bounds + 1.0)))
        wrenches: Array = (weight * to_base.dot(y)).reshape(-1, 6)
        # What the solver's tolerance left over, so that equilibrium is exact.
        rest = weight * (target - A.dot(y))
        wrenches += carry(rest[:3], rest[3:], load.placements[:, 3], shares,
                          np.array(load.gravity_model.levers))
        return wrenches

    def _run(self, A: Array, b: Array, C: Array, lower: Array, upper: Array) -> Array:
        """Solve for the least y with A y = b and lower <= C y <= upper."""
        if self._solver is None:
            self._solver = _make_solver(self._size, len(b), len(C))
            self._solver.init(np.eye(self._size), np.zeros(self._size), A, b, C, lower, upper)
        else:
            self._solver.update(A=A, b=b, C=C, l=lower, u=upper)
        self._solver.solve()
        results = self._solver.results
        self.iterations = int(results.info.iter)
        if results.info.status.name != 'PROXQP_SOLVED':
            self._solver = None  # what it remembers is no start
            raise InputError(
                'the contacts cannot carry the weight within friction, soles and effort limits '
                f'({results.info.status.name}): bring the centre of mass over them, or loosen '
                'the limits')
        return np.array(results.x)


def contact_rows(contact: ContactPoint, limits: SupportLimits) -> Array:
    """
    Return rows (R, 6) whose products with a wrench at the contact's centre must not be negative.

    Raises
    ------
    ConfigurationError
        If `sole_margin` leaves nothing of the sole.

    """
    facets = 2.0 * math.pi * np.arange(_FACETS) / _FACETS
    inner = limits.friction * math.cos(math.pi / _FACETS)
    rows = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    rows += [[-math.cos(a), -math.sin(a), inner, 0.0, 0.0, 0.0] for a in facets.tolist()]
    if contact.lever > 0.0:
        rows += [[0.0, 0.0, limits.torsional_friction, 0.0, 0.0, s] for s in (1.0, -1.0)]
        rows += _sole_rows(contact, limits.sole_margin)
    return np.array(rows)


def _sole_rows(contact: ContactPoint, margin: float) -> list[list[float]]:
    """Return the rows that keep the centre of pressure inside the polygon."""
    corners, rows = contact.polygon_about_centre, []
    middle = np.mean(corners, axis=0) if corners else np.zeros(2)
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
        length = math.hypot(x1 - x0, y1 - y0)
        nx, ny = (y0 - y1) / length, (x1 - x0) / length  # inwards, for counter-clockwise
        offset = nx * x0 + ny * y0 + margin
        if nx * middle[0] + ny * middle[1] <= offset:
            raise ConfigurationError(
                f"sole_margin {margin} m leaves nothing of the sole of '{contact.name}'")
        # p = (-m_y, m_x) / f_z and n . p >= offset
        rows.append([0.0, 0.0, -offset, ny, -nx, 0.0])
    return rows


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
    """Return the indices of the actuated joints that feel contacts and have limits."""
    felt = model.fold(model.supports.max(axis=0)) != 0.0
    return np.flatnonzero(felt & np.isfinite(model.effort_limits))


def _diagonal_blocks(blocks: list[Array]) -> Array:
    matrix = np.zeros((sum(map(len, blocks)), 6 * len(blocks)))
    row = 0
    for i, block in enumerate(blocks):
        matrix[row:row + len(block), 6 * i:6 * i + 6] = block
        row += len(block)
    return matrix


def _to_base(placements: Array) -> Array:
    """Return the matrix (6 K, 6 K) that turns wrenches to the axes of the base."""
    turn = np.zeros((6 * len(placements), 6 * len(placements)))
    for i, row in enumerate(placements):
        at = 6 * i
        turn[at:at + 3, at:at + 3] = turn[at + 3:at + 6, at + 3:at + 6] = row[:3].T
    return turn


def _grasp(points: Array) -> Array:
    """Return the matrix (6, 6 K) that adds wrenches at points up about the origin."""
    grasp = np.zeros((6, 6 * len(points)))
    for i, (x, y, z) in enumerate(points.tolist()):
        at = 6 * i
        for j in range(6):
            grasp[j, at + j] = 1.0
        grasp[3, at + 1], grasp[3, at + 2] = -z, y
        grasp[4, at], grasp[4, at + 2] = z, -x
        grasp[5, at], grasp[5, at + 1] = -y, x
    return grasp
