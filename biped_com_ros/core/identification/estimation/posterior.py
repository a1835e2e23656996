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
The posterior of links and instruments, given the equations of all captures.

The unknowns are x = (u, w, z): u and w of :mod:`prior`, and z the instruments' errors in standard
deviations. The prior of z is normal; it is eliminated first, so that the optimum over (u, w) is
found in the small problem, once for each spread of the prior. What remains unknown of the spreads
is integrated over: the posterior is a mixture over them, weighted by their evidence (Laplace).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.estimation.prior import PriorTerms, Spread
import numpy as np
from scipy.linalg import cho_factor, cho_solve

NEWTON_STEPS = 60
LEAST_WEIGHT = 0.003
"""Spreads with a smaller weight are left out of the mixture."""


@dataclass(frozen=True)
class Posterior:
    """
    Moments of the unknowns.

    Attributes
    ----------
    mean, covariance
        (d,) and (d, d).
    spread
        The one with the largest weight.

    """

    mean: Array
    covariance: Array
    spread: Spread


class NormalEquations:
    """
    Sum of the information of whitened equations ``H x = y + noise``, with z eliminated.

    Parameters
    ----------
    terms
        The prior of (u, w).
    G, g
        ``H^T H`` (d, d) and ``H^T y`` (d,).

    """

    def __init__(self, terms: PriorTerms, G: Array, g: Array) -> None:
        self._terms, self._size = terms, 4 * len(terms.masses)
        n = self._size
        self._inner = cho_factor(G[n:, n:] + np.eye(len(G) - n)) if len(G) > n else None
        self._B = self._eliminate(G[n:, :n])
        self._z0 = self._eliminate(g[n:])
        self.G: Array = G[:n, :n] - G[:n, n:] @ self._B
        self.g: Array = g[:n] - G[:n, n:] @ self._z0

    def _eliminate(self, right: Array) -> Array:
        return right if self._inner is None else np.asarray(cho_solve(self._inner, right))

    def optimum(self, spread: Spread, start: Array | None = None) -> tuple[Array, Array]:
        """Return the best (u, w) for a spread, (4 L,), and the Hessian there."""
        x = np.zeros(self._size) if start is None else start
        value = self._objective(x, spread)
        for _ in range(NEWTON_STEPS):
            gradient, hessian = self._terms.derivatives(x, spread)
            gradient, hessian = gradient + self.G @ x - self.g, hessian + self.G
            step = np.asarray(-cho_solve(cho_factor(hessian), gradient))
            decrement = float(-gradient @ step)
            if decrement < 1e-9:
                break
            x, value = self._line_search(x, step, value, decrement, spread)
        return x, hessian

    def mixture(self, spreads: Sequence[Spread]) -> Posterior:
        """Return the posterior, integrated over spreads."""
        optima: list[tuple[Array, Array]] = []
        start = None
        for spread in spreads:
            optima.append(self.optimum(spread, start))
            start = optima[-1][0]
        evidence = np.array([self._log_evidence(*o, s) for o, s in zip(optima, spreads)])
        weights = np.exp(evidence - evidence.max())
        weights = np.where(weights < LEAST_WEIGHT * weights.sum(), 0.0, weights)
        weights /= weights.sum()
        used = np.flatnonzero(weights)
        mean = sum(weights[i] * optima[i][0] for i in used)
        covariance = sum(weights[i] * (
            np.linalg.inv(optima[i][1])
            + np.outer(optima[i][0] - mean, optima[i][0] - mean)) for i in used)
        return self._joint(np.asarray(mean), np.asarray(covariance),
                           spreads[int(weights.argmax())])

    def at(self, spread: Spread) -> Posterior:
        """Return the posterior of one spread."""
        x, hessian = self.optimum(spread)
        return self._joint(x, np.asarray(np.linalg.inv(hessian)), spread)

    def _joint(self, mean: Array, covariance: Array, spread: Spread) -> Posterior:
        """Return the moments of (u, w, z), given those of (u, w)."""
        if self._inner is None:
            return Posterior(mean, covariance, spread)
        across = -covariance @ self._B.T
        zz = self._eliminate(np.eye(len(self._B))) - self._B @ across
        return Posterior(
            np.concatenate((mean, self._z0 - self._B @ mean)),
            np.block([[covariance, across], [across.T, zz]]), spread)

    def _log_evidence(self, x: Array, hessian: Array, spread: Spread) -> float:
        _, log_determinant = np.linalg.slogdet(hessian)
        return -(self._objective(x, spread) + 0.5 * float(log_determinant)
                 + self._terms.log_normalisation(spread) + 0.5 * math.log(spread.com) ** 2)

    def _objective(self, x: Array, spread: Spread) -> float:
        return float(0.5 * x @ self.G @ x - self.g @ x) + self._terms.value(x, spread)

    def _line_search(self, x: Array, step: Array, value: float, decrement: float,
                     spread: Spread) -> tuple[Array, float]:
        length = 1.0
        while length > 1e-9:
            trial = x + length * step
            if self._terms.is_inside(trial):
                reached = self._objective(trial, spread)
                if reached <= value - 1e-4 * length * decrement + 1e-9 * abs(value):
                    return trial, reached
            length *= 0.5
        return x, value
