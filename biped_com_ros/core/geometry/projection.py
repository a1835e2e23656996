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
The shadow of a polyhedron on a plane, corner by corner.

Where the combinations ``values @ coefficients`` of non-negative coefficients that satisfy linear
equations lie in two dimensions, is a convex polygon. Its corner furthest in one direction is the
solution of a linear programme; the simplex method then turns the direction once around, and passes
all corners in order, with one exchange of the basis from a corner to the next one. That takes a
few hundred microseconds where a solver called with one direction after the other takes tens of
milliseconds.
"""

from __future__ import annotations

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array
import numpy as np

#: Coefficients, slopes and pivots below this are zero; the columns have the size of one.
_ZERO = 1e-10
#: Ratios nearer to each other than this are equal: the solution has more than one basis.
_TIE = 1e-11
#: Reduced costs of zero are taken for this; cotangents below the other for a right angle.
_TINY, _QUARTER = 1e-12, 1e-3
_MOST_STEPS = 1000
_NO_END = 'the region of support was not found: check friction and contacts'


def project(equations: Array, right_side: Array, values: Array,
            limited: Array | None = None, limits: Array | None = None) -> list[Point] | None:
    """
    Return the corners of ``{values @ c : equations @ c = right_side, limited @ c <= limits}``.

    No coefficient in c is negative.

    Parameters
    ----------
    equations
        Shape (m, n); of the order of one.
    right_side
        Shape (m,).
    values
        Shape (2, n).
    limited
        Sums of coefficients that are limited, shape (k, n).
    limits
        Their limits, shape (k,), not negative.

    Returns
    -------
    list of (x, y)
        In the order in which a direction that turns counter-clockwise meets them; neighbours may
        be equal. One point or two if that is all. None if no coefficients satisfy the equations.

    Raises
    ------
    InputError
        If the polygon has no end, a limit is negative, or the numbers are not finite.

    """
    if limited is None or limits is None:
        limited, limits = np.zeros((0, equations.shape[1])), np.zeros(0)
    tableau = _Tableau(equations, right_side, values, limited, limits)
    return tableau.corners() if tableau.find_feasible() else None


class _Tableau:
    """
    Simplex tableau with two reduced costs per coefficient, one for each axis of the plane.

    One row for each coefficient, for what is left of each limit, for what each equation lacks,
    and for the values of the basis. In each row: first what the basis needs for one of it, where
    the limits come before the equations, then the reduced costs, which are read as one complex
    number; then the gain in what the equations lack. Limits begin with what is left of them in
    the basis, so that only equations have to be satisfied first.
    What is left and what lacks, the identity, become the inverse of the basis. By them ties are
    broken (lexicographic rule), so that the method cannot run in a circle.
    """

    def __init__(self, equations: Array, right_side: Array, values: Array, limited: Array,
                 limits: Array) -> None:
        k, n = limited.shape
        self._m = m = k + len(equations)
        #: Coefficients and what is left of limits: what may enter the basis.
        self._n = n + k
        table = np.zeros((n + m + 1, m + 3))
        signs = np.where(right_side < 0.0, -1.0, 1.0)
        table[:n, :k], table[-1, :k] = limited.T, limits
        np.multiply(equations.T, signs, out=table[:n, k:m])
        table[n:-1, :m].flat[::m + 1] = 1.0
        table[-1, k:m] = right_side * signs
        table[:n, m:-1] = values.T
        table[:n, -1] = table[:n, k:m].sum(axis=1)
        table[-1, -1] = table[-1, k:m].sum()
        if not np.isfinite(table).all():
            raise InputError('a region of support needs finite contacts')
        if min(table[-1, :k].tolist(), default=0.0) < 0.0:
            raise InputError(f'limits of sums of coefficients must not be negative, not {limits}')
        self._use(table)
        self._basis = list(range(n, n + m))

    def _use(self, table: Array) -> None:
        self._table, self._next = table, np.empty_like(table)
        self._identity = np.eye(table.shape[1])

    def find_feasible(self) -> bool:
        """Go to coefficients that satisfy the equations; return whether there are any."""
        m, n = self._m, self._n
        self._climb(m + 2)
        if self._table[-1, m + 2] > 1e-9:
            return False
        self._use(self._table[:, :m + 2].copy())
        for place in range(m):
            if self._basis[place] >= n:  # at zero; redundant if nothing can replace it
                column = int(np.abs(self._table[:n, place]).argmax())
                if abs(self._table[column, place]) > 1e-9:
                    self._exchange(place, column)
        return True

    def corners(self) -> list[Point]:
        """Turn the direction once around, from the x axis on."""
        n = self._n
        self._climb(self._m)
        # Along the direction, and across it: the reduced costs, <= 0 at the furthest corner, and
        # how they grow as the direction turns.
        costs, cotangents = self._costs.copy(), np.empty(n)
        along, across = costs.real, costs.imag
        corners, turned = [self._corner()], 0.0
        for _ in range(_MOST_STEPS):
            np.minimum(along, -_TINY, out=cotangents)
            np.divide(across, cotangents, out=cotangents)
            column = int(cotangents.argmin())
            cotangent = -cotangents.item(column)
            enters = cotangent > _QUARTER
            turned += math.atan2(1.0, cotangent) if enters else 0.5 * math.pi
            if turned >= 2.0 * math.pi:
                return corners
            if enters:
                self._enter(column)
                corners.append(self._corner())
            np.multiply(self._costs, complex(math.cos(turned), -math.sin(turned)), out=costs)
        raise InputError(_NO_END)

    @property
    def _costs(self) -> Array:
        """Return the reduced costs along x and y of what may enter, as complex numbers."""
        return self._table[:self._n, self._m:].view(complex)[:, 0]

    def _corner(self) -> Point:
        x, y = self._table[-1, self._m:].tolist()
        return -x, -y

    def _climb(self, objective: int) -> None:
        """Increase an objective as far as it goes."""
        for _ in range(_MOST_STEPS):
            gains = self._table[:self._n, objective]
            column = int(gains.argmax())
            if gains.item(column) < _ZERO:
                return
            self._enter(column)
        raise InputError(_NO_END)

    def _enter(self, column: int) -> None:
        """Take a coefficient into the basis, for the one that becomes zero first."""
        slopes, heights = self._table[column].tolist(), self._table[-1].tolist()
        least, ties = math.inf, []
        for place in range(self._m):
            if slopes[place] > 1e-9:
                ratio = heights[place] / slopes[place]
                if ratio < least - _TIE:
                    least, ties = ratio, [place]
                elif ratio <= least + _TIE:
                    ties.append(place)
        if not ties:
            raise InputError('the contacts can hold every centre of mass: limit their forces')
        if len(ties) > 1:
            inverse = self._table[-1 - self._m:-1]
            ties.sort(key=lambda place: (inverse[:, place] / slopes[place]).tolist())
        self._exchange(ties[0], column)

    def _exchange(self, place: int, column: int) -> None:
        """Take a coefficient into the basis at a place: one product of matrices."""
        entering, step = self._table[column], self._identity.copy()
        inverse = 1.0 / entering.item(place)
        np.multiply(entering, -inverse, out=step[place])
        step[place, place] = inverse
        np.dot(self._table, step, out=self._next)
        self._next[column] = self._identity[place]  # without errors of rounding
        self._table, self._next = self._next, self._table
        self._basis[place] = column
