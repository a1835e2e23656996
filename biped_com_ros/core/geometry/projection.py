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
few hundred microseconds where a solver asked for one direction after the other takes tens of
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


def project(equations: Array, right_side: Array, values: Array) -> list[Point] | None:
    """
    Return the corners of ``{values @ c : equations @ c = right_side, c >= 0}``.

    Parameters
    ----------
    equations
        Shape (m, n); of the order of one.
    right_side
        Shape (m,).
    values
        Shape (2, n).

    Returns
    -------
    list of (x, y)
        In the order in which a direction that turns counter-clockwise meets them; neighbours may
        be equal. One point or two if that is all. None if no coefficients satisfy the equations.

    Raises
    ------
    InputError
        If the polygon has no end, or the numbers are not finite.

    """
    if not (np.isfinite(equations).all() and np.isfinite(values).all()
            and np.isfinite(right_side).all()):
        raise InputError('a region of support needs finite contacts')
    tableau = _Tableau(equations, right_side, values)
    return tableau.corners() if tableau.find_feasible() else None


class _Tableau:
    """
    Simplex tableau with two rows of reduced costs, one for each axis of the plane.

    The columns of the identity behind those of the coefficients become the inverse of the basis.
    By them ties are broken (lexicographic rule), so that the method cannot run in a circle.
    """

    def __init__(self, equations: Array, right_side: Array, values: Array) -> None:
        self._m, self._n = m, n = equations.shape
        signs = np.where(right_side < 0.0, -1.0, 1.0)
        self._rows = rows = np.zeros((m + 3, n + m + 1))
        rows[:m, :n] = equations * signs[:, None]
        rows[:m, n:-1] = np.eye(m)
        rows[:m, -1] = right_side * signs
        rows[m:m + 2, :n] = values
        # What the equations still lack, as a function of the coefficients.
        rows[m + 2, :n] = rows[:m, :n].sum(axis=0)
        rows[m + 2, -1] = rows[:m, -1].sum()
        self._basis = list(range(n, n + m))

    def find_feasible(self) -> bool:
        """Go to coefficients that satisfy the equations; return whether there are any."""
        m, n = self._m, self._n
        self._climb(m + 2)
        if self._rows[m + 2, -1] > 1e-9:
            return False
        self._rows = self._rows[:m + 2]
        for row in range(m):
            if self._basis[row] >= n:  # at zero; the equation is redundant if none can replace it
                column = int(np.abs(self._rows[row, :n]).argmax())
                if abs(self._rows[row, column]) > 1e-9:
                    self._exchange(row, column)
        return True

    def corners(self) -> list[Point]:
        """Turn the direction once around, from the x axis on."""
        m, n = self._m, self._n
        self._climb(m)
        # Along the direction, and across it: the reduced costs, <= 0 at the furthest corner, and
        # how they grow as the direction turns.
        objectives = self._rows[m:]
        along, across = objectives[:, :n]
        corners, turned = [self._corner(0.0)], 0.0
        for _ in range(_MOST_STEPS):
            cotangents = across / np.minimum(along, -_TINY)
            column = int(cotangents.argmin())
            cotangent = -cotangents.item(column)
            enters = cotangent > _QUARTER
            angle = math.atan2(1.0, cotangent) if enters else 0.5 * math.pi
            turned += angle
            if turned >= 2.0 * math.pi:
                return corners
            cosine, sine = math.cos(angle), math.sin(angle)
            objectives[...] = np.array(((cosine, sine), (-sine, cosine))).dot(objectives)
            if enters:
                self._enter(column)
                corners.append(self._corner(turned))
        raise InputError(_NO_END)

    def _corner(self, turned: float) -> Point:
        """Return the corner in the axes of the plane, from which the objectives are turned."""
        along, across = self._rows[self._m:, -1].tolist()
        cosine, sine = math.cos(turned), math.sin(turned)
        return sine * across - cosine * along, -sine * along - cosine * across

    def _climb(self, objective: int) -> None:
        """Increase the objective of a row as far as it goes."""
        for _ in range(_MOST_STEPS):
            column = int(self._rows[objective, :self._n].argmax())
            if self._rows.item(objective, column) < _ZERO:
                return
            self._enter(column)
        raise InputError(_NO_END)

    def _enter(self, column: int) -> None:
        """Take a column into the basis, for the row whose coefficient becomes zero first."""
        m = self._m
        slopes, heights = self._rows[:m, column].tolist(), self._rows[:m, -1].tolist()
        ratios = {row: heights[row] / slopes[row] for row in range(m) if slopes[row] > 1e-9}
        if not ratios:
            raise InputError('the contacts can hold every centre of mass: limit their forces')
        least = min(ratios.values()) + _TIE
        ties = [row for row, ratio in ratios.items() if ratio <= least]
        if len(ties) > 1:
            inverse = self._rows[:m, self._n:-1]
            ties.sort(key=lambda row: (inverse[row] / slopes[row]).tolist())
        self._exchange(ties[0], column)

    def _exchange(self, row: int, column: int) -> None:
        rows = self._rows
        pivot = rows[row] / rows[row, column]
        rows -= rows[:, column, None] * pivot
        rows[row] = pivot
        self._basis[row] = column
