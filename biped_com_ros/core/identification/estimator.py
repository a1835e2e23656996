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
Maximum a posteriori estimate of every link's mass and centre of mass, with its uncertainty.

A centre of mass per link is not observable from statics: plain least squares fits the data and
returns links that are wrong by half a metre. So the URDF is the prior (:mod:`prior`), which the
data correct as far as they are informative, each equation weighted by the noise of force sensors,
joint torques, encoders and inclination (:mod:`first_moments`). Masses and first moments are
estimated jointly: where the weight disagrees with the URDF, fixing or scaling masses would move
the disagreement into the centres of mass.

The posterior is Laplace's approximation at the optimum. Noise that turns out larger than assumed
widens it (:attr:`Identification.noise_scale`).
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.identification.captures import Capture, SensorNoise
from biped_com_ros.core.identification.estimates import (
    Identifiability, Identification, LinkEstimate, Offsets, Residuals, residuals_of)
from biped_com_ros.core.identification.first_moments import (
    Equations, parameters_of, stack_equations, StaticsRegressor, TYPICAL_NOISE)
from biped_com_ros.core.identification.plausibility import (
    check_variety, fit_warnings, model_warnings, without_constant_torques,
    without_end_stop_torques)
from biped_com_ros.core.identification.prior import Prior, PriorTerms
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

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
                left_out: IndexArray | None = None) -> tuple[Array, Array]:
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


TYPICAL_PRIOR = Prior()
PASSES = 3
"""Number of linearisations, each at the estimate before."""


class Estimator:
    """
    Estimates a robot's masses and first moments from captures.

    Parameters
    ----------
    model
        The robot as the URDF describes it.
    noise
        Of its sensors.
    prior
        Uncertainty of the URDF.

    """

    def __init__(self, model: RobotModel, noise: SensorNoise = TYPICAL_NOISE,
                 prior: Prior = TYPICAL_PRIOR) -> None:
        self.model, self.noise, self.prior = model, noise, prior
        self.regressor = StaticsRegressor(model)

    def solve(self, captures: Sequence[Capture], folds: int = 5) -> Identification:
        """
        Estimate.

        Parameters
        ----------
        captures
            At least two different poses.
        folds
            Number of parts of the captures in cross-validation.

        Raises
        ------
        InputError
            If the captures cannot be used, are too few or all alike.

        """
        captures, warnings = without_constant_torques(self.regressor, captures, self.noise)
        captures, end_stop_warnings = without_end_stop_torques(self.model, captures)
        check_variety(self.model, captures)
        system, mass_sigma = self._iterate(captures)
        x, hessian = system.optimum(mass_sigma)
        return self._result(captures, system, x, hessian, mass_sigma,
                            [*warnings, *end_stop_warnings], folds)

    def rows(self, capture: Capture, mass_sigma: float = 0.12) -> Array:
        """
        Return a capture's whitened equations in standard deviations of the prior, (rows, 4 L).

        ``rows.T @ rows`` is the information it adds where the prior has the identity.

        Parameters
        ----------
        capture
            Measured or planned.
        mass_sigma
            The prior's relative standard deviation of masses.

        """
        e = self.regressor.equations(capture, parameters_of(self.model), self.noise)
        return whiten(e.covariance, e.A @ self.prior_scaling(mass_sigma))

    def prior_scaling(self, mass_sigma: float = 0.12) -> Array:
        """Return T (4 L, 4 L): parameters are the URDF's plus T times standard deviations."""
        T = PriorTerms(self.model, self.prior).scaling()
        T[:, :len(self.model.link_names)] *= mass_sigma
        return T

    def predicted_com_std(self, information: Array, poses: Sequence[Array]) -> float:
        """
        Return the predicted standard deviation of the total CoM, m per horizontal axis.

        Parameters
        ----------
        information
            In units of the prior, itself included, (4 L, 4 L); see `rows`.
        poses
            Joint positions (n,) over which the mean square is taken.

        """
        theta, scaling = parameters_of(self.model), self.prior_scaling()
        covariance, total = np.linalg.inv(information), 0.0
        for positions in poses:
            C = self.regressor.com_derivative(positions, theta) @ scaling
            total += float(np.trace((C @ covariance @ C.T)[:2, :2])) / 2.0
        return math.sqrt(total / len(poses))

    def _iterate(self, captures: Sequence[Capture]) -> tuple[PosteriorSystem, float]:
        """Linearise at each estimate: noise, reference masses, and scale of the noise."""
        theta, terms = parameters_of(self.model), PriorTerms(self.model, self.prior)
        scale, mass_sigma = 1.0, math.nan
        for _ in range(PASSES):
            equations = stack_equations(self.regressor, captures, theta, self.noise)
            system = PosteriorSystem(self.regressor, equations, terms, self.noise, scale)
            mass_sigma = self.prior.mass_sigma or system.best_mass_sigma()
            x, _ = system.optimum(mass_sigma)
            theta = system.parameters(x)
            scale = system.refined_scale(x)
            terms.reference = np.maximum(theta[:, 0], 0.2 * terms.masses)
        return PosteriorSystem(self.regressor, equations, terms, self.noise, scale), mass_sigma

    def _result(self, captures: Sequence[Capture], system: PosteriorSystem, x: Array,
                hessian: Array, mass_sigma: float, warnings: list[str],
                folds: int) -> Identification:
        theta, offsets, T = system.parameters(x), system.offsets(x), system.T
        posterior: Array = np.asarray(np.linalg.inv(hessian), dtype=float)
        covariance = T @ posterior[:len(T), :len(T)] @ T.T
        links = _link_estimates(self.model, theta, covariance, system.terms)
        ones, misfit = np.tile((1.0, 0.0, 0.0, 0.0), len(links)), system.misfit(x)
        return Identification(
            robot=self.model.config.name, links=links, parameters=theta, covariance=covariance,
            mass=float(theta[:, 0].sum()), mass_std=math.sqrt(ones @ covariance @ ones),
            offsets=offsets,
            before=residuals_of(self.regressor, captures, parameters_of(self.model)),
            after=residuals_of(self.regressor, captures, theta, offsets),
            validated=self._validate(captures, system, mass_sigma, folds),
            identifiability=_identifiability(system, posterior, mass_sigma, links),
            mass_sigma=mass_sigma, noise_scale=system.scale, pose_misfit=misfit,
            warnings=(*warnings, *model_warnings(self.model, system.information.sum(axis=0)),
                      *fit_warnings(captures, misfit, system.scale)))

    def _validate(self, captures: Sequence[Capture], system: PosteriorSystem, mass_sigma: float,
                  folds: int) -> Residuals:
        """Cross-validate: leave out a part of the captures, estimate, and test on the part."""
        tested: list[Residuals] = []
        fold_of = np.arange(len(captures)) % max(2, min(folds, len(captures)))
        for fold in np.unique(fold_of):
            left_out = np.flatnonzero(fold_of == fold)
            x, _ = system.optimum(mass_sigma, left_out)
            tested.append(residuals_of(
                self.regressor, [captures[i] for i in left_out.tolist()], system.parameters(x),
                system.offsets(x)))
        inverse = np.argsort(np.argsort(fold_of, kind='stable'), kind='stable')
        return Residuals.joined(tested, inverse)


def _link_estimates(model: RobotModel, theta: Array, covariance: Array,
                    terms: PriorTerms) -> tuple[LinkEstimate, ...]:
    estimates = []
    for i, name in enumerate(model.link_names):
        mass, com = float(theta[i, 0]), theta[i, 1:] / theta[i, 0]
        block = covariance[4 * i:4 * i + 4, 4 * i:4 * i + 4]
        J = np.column_stack((-com, np.eye(3))) / mass
        variance = np.diag(J @ block @ J.T)
        prior = (terms.moment_sigma[i] / mass) ** 2
        estimates.append(LinkEstimate(
            name=name, mass=mass, mass_std=math.sqrt(block[0, 0]),
            mass_before=float(model.link_masses[i]), com=com, com_std=np.sqrt(variance),
            com_before=np.array(model.link_coms_in_link[i]),
            data_share=np.clip(1.0 - variance / prior, 0.0, 1.0)))
    return tuple(estimates)


def _identifiability(system: PosteriorSystem, posterior: Array, mass_sigma: float,
                     links: tuple[LinkEstimate, ...]) -> Identifiability:
    size = len(system.T)
    G = system.information.sum(axis=0)
    # Offsets are unknown as well: what they could explain is no information.
    if len(G) > size:
        across = G[:size, size:]
        inner = G[size:, size:] + np.eye(len(G) - size)
        G = G[:size, :size] - across @ np.linalg.solve(inner, across.T)
    sigma = np.ones(size)
    sigma[:len(links)] = mass_sigma
    strengths = np.maximum(np.linalg.eigvalsh(G * np.outer(sigma, sigma))[::-1], 0.0)
    rank = int((strengths > 1e-10 * strengths[0]).sum())
    gains = [0.5 * np.linalg.slogdet(np.eye(len(A)) + A @ posterior @ A.T)[1]
             for A in map(system.block, range(len(system.sizes)))]
    return Identifiability(
        unknowns=size, rank=rank, determined=int((strengths > 1.0).sum()),
        condition_number=float(strengths[0] / strengths[rank - 1]), strengths=strengths,
        prior_only_links=tuple(link.name for link in links if (link.data_share < 0.05).all()),
        repeat_gain=np.array(gains))


class CaptureInformation:
    """
    Sums the information of captures, in units of the prior.

    Parameters
    ----------
    estimator
        Of the robot.
    captures
        Those there are at the start.

    """

    def __init__(self, estimator: Estimator, captures: Sequence[Capture]) -> None:
        self._estimator = estimator
        self._information: Array = np.eye(4 * len(estimator.model.link_names))
        self._poses: list[Array] = [estimator.model.posture('stand')]
        for capture in captures:
            self.add(capture)

    def add(self, capture: Capture) -> None:
        """Add the information of one more."""
        rows = self._estimator.rows(capture)
        self._information += rows.T @ rows
        self._poses.append(capture.positions)

    @property
    def com_std(self) -> float:
        """Return the predicted standard deviation of the total CoM over the poses, m per axis."""
        return self._estimator.predicted_com_std(self._information, self._poses[-20:])

    def describe(self) -> str:
        """Return the predicted uncertainty as text."""
        return f'CoM uncertainty {1e3 * self.com_std:.2f} mm'
