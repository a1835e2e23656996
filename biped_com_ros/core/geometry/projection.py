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
#: What does not gain along an axis is taken to gain as little as this.
_TINY = 1e-12
#: Columns of the tableau.
_HEIGHTS, _CHANGES = -2, -1
#: In place of a column, in the basis.
_LACKING = -1
_MOST_STEPS = 1000
_TOO_LARGE = 'the region of support is too large for numbers: check contacts and weight'
_NO_END = 'the region of support was not found: check friction and contacts'


def project(equations: Array, right_side: Array, values: Array,
            limited: Array, limits: Array) -> list[Point] | None:
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
    tableau = _Tableau(equations, right_side, values, limited, limits)
    if not tableau.find_feasible():
        return None
    corners = tableau.corners()
    # A sum that is not finite has a term that is not.
    if not math.isfinite(sum(map(sum, corners))):
        raise InputError(_TOO_LARGE)
    return corners


class _Tableau:
    """
    Simplex tableau with two objectives, one along each of two axes of the plane.

    One row for each coefficient in the basis, then the reduced costs of the objectives, and at
    first of what the equations lack. One column for each coefficient, and for what is left of each
    limit, which the basis begins with; then the values of the basis, and what small changes of the
    right sides would add to them. By these ties are broken (perturbation), so that the method
    cannot run in a circle.
    """

    def __init__(self, equations: Array, right_side: Array, values: Array, limited: Array,
                 limits: Array) -> None:
        k, n = limited.shape
        self._m = m = k + len(equations)
        #: Coefficients and what is left of limits: what may enter the basis.
        self._n = n + k
        table = np.zeros((m + 3, n + k + 2))
        signs = np.where(right_side < 0.0, -1.0, 1.0)
        table[:k, :n], table[:k, _HEIGHTS] = limited, limits
        table[:k, n:n + k] = np.eye(k)
        np.multiply(equations, signs[:, None], out=table[k:m, :n])
        np.multiply(right_side, signs, out=table[k:m, _HEIGHTS])
        table[m:m + 2, :n] = values
        table[k:m].sum(axis=0, out=table[m + 2])
        if not np.isfinite(table).all():
            raise InputError('a region of support needs finite contacts')
        if limits.min(initial=0.0) < 0.0:
            raise InputError(f'limits of sums of coefficients must not be negative, not {limits}')
        #: What an equation lacks has no column, since it never enters again.
        self._basis = [*range(n, n + k), *[_LACKING] * len(equations)]
        self._use(table)

    def _use(self, table: Array) -> None:
        m = self._m
        table[:m, _CHANGES] = np.sqrt(np.arange(2.0, m + 2.0))
        self._table, self._product = table, np.empty_like(table)
        self._heights, self._changes = table[:m, _HEIGHTS], table[:m, _CHANGES]
        self._corner = table[m:m + 2, _HEIGHTS]

    def find_feasible(self) -> bool:
        """Go to coefficients that satisfy the equations; return whether there are any."""
        m, n = self._m, self._n
        self._climb(m + 2)
        if self._table[m + 2, _HEIGHTS] > 1e-9:
            return False
        for place in range(m):
            if self._basis[place] == _LACKING:  # at zero; redundant if nothing can replace it
                column = int(np.abs(self._table[place, :n]).argmax())
                if abs(self._table[place, column]) > 1e-9:
                    self._exchange(place, column)
        self._use(self._table[:m + 2].copy())
        return True

    def corners(self) -> list[Point]:
        """Turn the direction once around, from the x axis on."""
        self._climb(self._m)
        # The heights of objectives are their negative values.
        (x, y), ahead, after = self._corner.tolist(), (0.0, -1.0), (1.0, 0.0)
        corners = [(-x, -y)]
        for _ in range(4):
            corners += [(a * ahead[0] + b * after[0], a * ahead[1] + b * after[1])
                        for a, b in self._quarter_turn()]
            ahead, after = after, (-ahead[0], -ahead[1])
        return corners

    def _quarter_turn(self) -> list[list[float]]:
        """Turn direction and axes; return the corners along these, with the other sign."""
        first, second = self._table[self._m:]
        first[:], second[:] = second.copy(), -first
        ahead, after = first[:self._n], second[:self._n]
        tangents, tiny = np.empty(self._n), np.full(self._n, _TINY)
        heights: list[list[float]] = []
        for _ in range(_MOST_STEPS):
            # Nothing gains along the direction yet. What will along the axis after the one ahead
            # begins to this angle before the latter.
            np.maximum(after, tiny, out=tangents)
            np.divide(ahead, tangents, out=tangents)
            column = int(tangents.argmax())
            while ahead.item(column) < _ZERO and tangents.item(column) > 0.0 and (
                    after.item(column) < _ZERO):
                tangents[column] = 0.0  # rounding
                column = int(tangents.argmax())
            if tangents.item(column) <= 0.0:
                return heights
            self._enter(column)
            heights.append(self._corner.tolist())
        raise InputError(_NO_END)

    def _climb(self, objective: int) -> None:
        """Increase an objective as far as it goes."""
        gains = self._table[objective, :self._n]
        for _ in range(_MOST_STEPS):
            column = int(gains.argmax())
            if gains[column] < _ZERO:
                return
            self._enter(column)
        raise InputError(_NO_END)

    def _enter(self, column: int) -> None:
        """Take a coefficient into the basis, for the one that becomes zero first."""
        changes = self._changes
        slopes, heights = self._table[:, column].tolist(), self._heights.tolist()
        least, leaving = math.inf, -1
        for place, height, slope in zip(range(self._m), heights, slopes):
            if slope > 1e-9:
                ratio = height / slope
                if ratio < least - _TIE or (ratio <= least + _TIE and (
                        changes[place] * slopes[leaving] < changes[leaving] * slope)):
                    least, leaving = ratio, place
        if leaving < 0:
            raise InputError('the contacts can hold every centre of mass: limit their forces')
        self._exchange(leaving, column)

    def _exchange(self, place: int, column: int) -> None:
        """Take a coefficient into the basis at a place."""
        table = self._table
        row = table[place] / table.item(place, column)
        np.dot(table[:, column, None], row[None], out=self._product)
        np.subtract(table, self._product, out=table)
        table[place] = row
        self._basis[place] = column
