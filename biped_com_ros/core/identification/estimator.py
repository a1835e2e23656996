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

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture, SensorNoise
from biped_com_ros.core.identification.estimates import (
    Identifiability, Identification, LinkEstimate)
from biped_com_ros.core.identification.first_moments import (
    parameters_of, stack_equations, StaticsRegressor, TYPICAL_NOISE)
from biped_com_ros.core.identification.plausibility import (
    check_variety, fit_warnings, model_warnings, without_constant_torques,
    without_end_stop_torques)
from biped_com_ros.core.identification.posterior import PosteriorSystem, whiten
from biped_com_ros.core.identification.prior import Prior, PriorTerms
from biped_com_ros.core.identification.residuals import Residuals, residuals_of
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

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
