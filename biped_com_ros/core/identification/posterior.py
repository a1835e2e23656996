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
"""The posterior of masses, first moments and sensor offsets, given whitened equations."""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import SensorNoise
from biped_com_ros.core.identification.first_moments import (
    Equations, parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.prior import PriorTerms
from biped_com_ros.core.identification.residuals import Offsets
import numpy as np
from numpy.typing import NDArray

NEWTON_STEPS = 60


def whiten(covariance: Array, columns: Array) -> Array:
    """Return columns (rows, k) divided by the Cholesky factor of their noise's covariance."""
    L = np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)))
    return np.asarray(np.linalg.solve(L, columns), dtype=float)


class PosteriorSystem:
    """
    The negative log posterior of the unknowns x = (u, w, v), and its optimum.

    u and w are the coordinates of :mod:`prior`; v are the sensors' offsets in standard deviations.

    Parameters
    ----------
    regressor
        Of the robot.
    equations
        Of each capture.
    terms
        The prior.
    noise
        Of the sensors.
    scale
        Factor on the standard deviation of the noise.

    Attributes
    ----------
    information, right
        Normal equations of each capture, (poses, dimension, dimension) and (poses, dimension).
    sizes
        Number of equations of each capture, (poses,).
    T
        Masses and first moments are the URDF's plus T times (u, w), (4 L, 4 L).

    """

    def __init__(self, regressor: StaticsRegressor, equations: Sequence[Equations],
                 terms: PriorTerms, noise: SensorNoise, scale: float) -> None:
        self.terms, self.scale, self.T = terms, scale, terms.scaling()
        self._theta0 = parameters_of(regressor.model)
        self._joint_count = len(regressor.model.joint_names)
        self._offset_sigmas = _offset_sigmas(regressor, noise)
        self._used = np.flatnonzero(self._offset_sigmas)
        self._blocks = [self._whiten(e) for e in equations]
        # By capture, so that captures can be left out.
        self.information = np.array([A.T @ A for A, _ in self._blocks])
        self.right = np.array([A.T @ y for A, y in self._blocks])
        self.sizes = np.array([len(y) for _, y in self._blocks])

    @property
    def dimension(self) -> int:
        """Return the number of unknowns."""
        return len(self.T) + len(self._used)

    def block(self, pose: int) -> Array:
        """Return the whitened equations of one pose."""
        return self._blocks[pose][0]

    def parameters(self, x: Array) -> Array:
        """Return masses and first moments, (L, 4)."""
        flat: Array = self._theta0.ravel() + self.T @ x[:len(self.T)]
        return flat.reshape(-1, 4)

    def offsets(self, x: Array) -> Offsets:
        """Return the constant errors of the sensors."""
        values = np.zeros(len(self._offset_sigmas))
        values[self._used] = self._offset_sigmas[self._used] * x[len(self.T):]
        return Offsets.from_vector(values, self._joint_count)

    def optimum(self, mass_sigma: float,
                left_out: NDArray[np.intp] | None = None) -> tuple[Array, Array]:
        """Return where the posterior is largest, (dimension,), and the Hessian there."""
        G, g = self.information.sum(axis=0), self.right.sum(axis=0)
        if left_out is not None:
            G = G - self.information[left_out].sum(axis=0)
            g = g - self.right[left_out].sum(axis=0)
        return self._newton(G, g, mass_sigma)

    def best_mass_sigma(self) -> float:
        """Return the candidate with the largest evidence (Laplace)."""
        G, g = self.information.sum(axis=0), self.right.sum(axis=0)
        evidence = {}
        for sigma in self.terms.prior.mass_sigmas:
            x, hessian = self._newton(G, g, sigma)
            _, log_determinant = np.linalg.slogdet(hessian)
            evidence[sigma] = -(self._objective(x, G, g, sigma) + 0.5 * log_determinant
                                + self.terms.log_normalisation(sigma))
        return max(evidence, key=lambda sigma: evidence[sigma])

    def misfit(self, x: Array) -> Array:
        """Return each pose's mean squared normalised residual, (poses,)."""
        return np.array([float(np.mean((A @ x - y) ** 2)) for A, y in self._blocks])

    def refined_scale(self, x: Array) -> float:
        """Return the standard deviation of the residuals in units of the assumed noise, >= 1."""
        rows = int(self.sizes.sum())
        # As many degrees of freedom as the data determine are used up by the estimate.
        G = self.information.sum(axis=0)
        used_up = float(np.trace(np.linalg.solve(G + np.eye(len(G)), G)))
        chi = sum(float(np.sum((A @ x - y) ** 2)) for A, y in self._blocks)
        ratio = self.scale * math.sqrt(chi / max(rows - used_up, 1.0))
        # Within sampling error of 1 the assumption stands.
        return ratio if ratio > 1.0 + 3.0 / math.sqrt(2.0 * rows) else 1.0

    def _whiten(self, e: Equations) -> tuple[Array, Array]:
        offsets = self._offset_columns(e)[:, self._used] * self._offset_sigmas[self._used]
        whitened = whiten(e.covariance * self.scale ** 2, np.column_stack(
            (e.A @ self.T, offsets, e.residual(self._theta0))))
        return whitened[:, :-1], -whitened[:, -1]

    def _offset_columns(self, e: Equations) -> Array:
        """Return how encoder, inclination, wrench and torque offsets enter the residual."""
        n = self._joint_count
        direct = np.eye(6 + n + e.J_reading.shape[1])[e.rows, 6:]
        return np.concatenate(
            (-e.J_position, -e.J_up, direct[:, n:] - e.J_reading, direct[:, :n]), axis=1)

    def _objective(self, x: Array, G: Array, g: Array, mass_sigma: float) -> float:
        v = x[len(self.T):]
        return float(0.5 * x @ G @ x - g @ x + 0.5 * v @ v) + self.terms.value(x, mass_sigma)

    def _newton(self, G: Array, g: Array, mass_sigma: float) -> tuple[Array, Array]:
        x, size = np.zeros(self.dimension), len(self.T)
        value = self._objective(x, G, g, mass_sigma)
        for _ in range(NEWTON_STEPS):
            gradient, hessian = G @ x - g, G.copy()
            prior_gradient, prior_hessian = self.terms.derivatives(x, mass_sigma)
            gradient[:size] += prior_gradient
            gradient[size:] += x[size:]
            hessian[:size, :size] += prior_hessian
            hessian[np.arange(size, len(x)), np.arange(size, len(x))] += 1.0
            step = np.asarray(-np.linalg.solve(hessian, gradient), dtype=float)
            decrement = float(-gradient @ step)
            if decrement < 1e-12:
                break
            x, value = self._line_search(x, step, value, decrement, G, g, mass_sigma)
            if decrement < 1e-9:
                break
        return x, hessian

    def _line_search(self, x: Array, step: Array, value: float, decrement: float, G: Array,
                     g: Array, mass_sigma: float) -> tuple[Array, float]:
        length = 1.0
        while length > 1e-9:
            trial = x + length * step
            if self.terms.is_inside(trial):
                reached = self._objective(trial, G, g, mass_sigma)
                if reached <= value - 1e-4 * length * decrement + 1e-9 * abs(value):
                    return trial, reached
            length *= 0.5
        return x, value


def _offset_sigmas(regressor: StaticsRegressor, noise: SensorNoise) -> Array:
    sensors = len(regressor.model.config.wrench_sensors)
    n = len(regressor.model.joint_names)
    encoder = np.where(regressor.is_prismatic, 0.0, noise.encoder_offset)
    wrench = np.tile([noise.force_bias] * 3 + [noise.moment_bias] * 3, sensors)
    return np.concatenate((encoder, np.full(3, noise.tilt_bias), wrench,
                           np.full(n, noise.torque_bias)))
