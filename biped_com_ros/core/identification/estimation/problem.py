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
The captures of a robot as a non-linear problem, solved by repeated linearisation.

Everything that is measured is noisy, and much of it multiplies an unknown: readings of wrench
sensors their gains and cross-talk, joint positions the first moments. Derivatives taken at the
readings would contain the same noise as the residuals; the product of both does not average out,
and pulls gains towards too large and the mass towards too small (attenuation by errors in
variables). So both are taken at the estimated true inputs, which are as unknown as the rest:
Gauss-Newton in the Gauss-Helmert model f(inputs - noise, unknowns) = 0 with the noise that is most
likely given the residuals (W. Förstner and B. Wrobel, Photogrammetric Computer Vision, 2016,
section 4.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.com_measurements import (
    ComInformation, ComMeasurement)
from biped_com_ros.core.identification.equations.first_moments import (
    Equations, parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.equations.friction import UnknownFriction
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.equations.instruments import (
    directions_of, InstrumentErrors, times_of)
from biped_com_ros.core.identification.equations.soles import SoleContacts
from biped_com_ros.core.identification.estimation.estimates import (
    com_offset_of_whole, DataInformation, residuals_of)
from biped_com_ros.core.identification.estimation.noise_scales import NoiseScales, WhitenedPose
from biped_com_ros.core.identification.estimation.posterior import NormalEquations, Posterior
from biped_com_ros.core.identification.estimation.prior import Prior, PriorTerms, Spread
from biped_com_ros.core.model.efforts import effort_limits
import numpy as np
import pinocchio as pin
from scipy.linalg import solve_triangular


FEWEST_PASSES, MOST_PASSES, CONVERGED = 4, 12, 0.1
"""Numbers of linearisations, each at the estimate before, and the relative change of variances
below which they end."""

NOISE_PASSES = 2
"""Number of passes after which the spreads of instrument errors are learned as well."""

LARGEST_SCALE = 4.0
"""Instrument errors spread by at most this many times what is assumed, or at least its inverse."""

SIDED = 0.1
"""Share of friction that counts as noise where the side is known from which a joint came."""

SMALLER_OBSERVATIONS, LARGER_OBSERVATIONS = 10.0, 1.0
"""As many observations the assumed spread of a kind of instrument error is worth where the data
show a smaller and a larger one: from few errors that happen to be small, or that the data hardly
determine, it does not follow that those of the same kind that nothing shows are small as well."""

STRONGEST = 10.0
"""Effort limits beyond this many times what any joint needs are not credible; then each motor is
taken to be this many times as strong as it needs to be."""


@dataclass
class _Iterate:
    """
    What is estimated, as it stands after a pass.

    Attributes
    ----------
    theta
        Masses and first moments, (L, 4).
    values, scales
        Of the instruments' errors (V,), and factors on their prior standard deviations (V,).
    spread
        Of the links.
    noise
        Of what was measured, (captures, inputs); see :class:`first_moments.InputSlices`.

    """

    theta: Array
    values: Array
    scales: Array
    spread: Spread
    noise: Array


class CalibrationProblem:
    """
    The captures of one robot, linearised at an iterate.

    Parameters
    ----------
    regressor
        Of the robot.
    captures
        As they were measured.
    noise, prior
        Of sensors and links.
    known
        Total centres of mass that are known otherwise.

    """

    def __init__(self, regressor: StaticsRegressor, captures: Sequence[Capture],
                 noise: SensorNoise, prior: Prior,
                 known: Sequence[ComMeasurement] = ()) -> None:
        self.regressor, self.captures, self._noise = regressor, captures, noise
        self._theta0 = parameters_of(regressor.model)
        strength = strength_of(regressor, captures)
        self.instruments = InstrumentParameters(regressor, noise, captures, strength)
        self._torques = regressor.inputs.torques
        self.noise = NoiseScales(regressor.model, len(captures), regressor.is_prismatic)
        self.terms = PriorTerms(regressor.model, prior)
        self._friction = noise.friction * strength
        self._unknown = UnknownFriction(captures, self._friction)
        self._known = ComInformation(regressor, known, noise)
        self.soles = SoleContacts(regressor.model, captures, noise)
        V = len(self.instruments.sigma)
        self.at = _Iterate(self._theta0, np.zeros(V), np.ones(V), prior.spreads[0],
                           np.zeros((len(captures), regressor.inputs.size)))
        self._linearise()

    @property
    def T(self) -> Array:
        """Return the matrix (4 L, 4 L): parameters are the URDF's plus it times (u, w)."""
        return self.terms.scaling()

    def solve(self) -> Posterior:
        """Iterate until links, instruments and noise agree, and return their posterior."""
        for i in range(MOST_PASSES):
            self._linearise()
            self._whiten()
            equations = self.normal_equations()
            if i < 2:
                self.at.spread = equations.mixture(self.terms.prior.spreads).spread
            posterior = equations.at(self.at.spread)
            # First the noise: instruments must not explain what is scatter.
            change = self._update(posterior)
            if i >= NOISE_PASSES:
                change = max(change, self._rescale(posterior))
            if change < CONVERGED and i + 1 >= FEWEST_PASSES:
                break
        self._linearise()
        self._whiten()
        return self.normal_equations().mixture(self.terms.prior.spreads)

    def normal_equations(self, left_out: IndexArray | None = None) -> NormalEquations:
        """Return the normal equations of all captures, or of all but some."""
        if left_out is None:
            return self._all
        poses = [self.poses[k] for k in left_out.tolist()]
        H, y = np.concatenate([p.H for p in poses]), np.concatenate([p.y for p in poses])
        return NormalEquations(self.terms, self._G - H.T @ H, self._g - H.T @ y)

    def parameters(self, x: Array) -> Array:
        """Return masses and first moments, (L, 4)."""
        flat: Array = self._theta0.ravel() + self.T @ x[:self._theta0.size]
        return flat.reshape(-1, 4)

    def values(self, x: Array) -> Array:
        """Return the errors of the instruments, (V,)."""
        return np.asarray(self.instruments.sigma * self.at.scales * x[self._theta0.size:])

    def corrected(self, x: Array) -> list[Capture]:
        """Return the captures without the errors of the instruments."""
        return self._corrected(self.instruments.errors(self.values(x)))

    def _corrected(self, errors: InstrumentErrors) -> list[Capture]:
        times = times_of(self.captures)
        return [errors.corrected(replace(capture, torques=capture.torques - friction), when)
                for capture, friction, when in zip(self.captures, self._unknown.means, times)]

    def in_prior_units(self, posterior: Posterior) -> Array:
        """Return the covariance of all unknowns in standard deviations of their priors, (d, d)."""
        sigma = np.concatenate((self.terms.deviations(posterior.spread),
                                np.ones(len(self.instruments.sigma))))
        return np.asarray(posterior.covariance / np.outer(sigma, sigma))

    def data_information(self, spread: Spread) -> DataInformation:
        """Return what the data alone determine of masses and first moments, and their spread."""
        inverse, equations = np.linalg.inv(self.T), self.normal_equations()
        return DataInformation(inverse.T @ equations.G @ inverse, inverse.T @ equations.g,
                               self.instruments.sigma * self.at.scales, np.array(
                                   (spread.mass, spread.com * self.terms.prior.com_sigma)))

    def misfit(self, x: Array) -> Array:
        """Return each pose's mean squared residual, normalised by its group's noise, (poses,)."""
        return np.array([self._misfit(k, x) for k in range(len(self.captures))])

    def _misfit(self, k: int, x: Array) -> float:
        e, columns, right = self._linear[k]
        plain = WhitenedPose(e, self._scaled(columns), right,
                             self.noise.variances(k, self._nominal(k), False))
        return float(np.mean((plain.H @ x - plain.y) ** 2))

    def com_variance(self, k: int, covariance: Array) -> float:
        """Return the predicted mean square of a capture's residual of the CoM, m^2; NaN in air."""
        e, columns, _ = self._linear[k]
        if not (e.rows < 6).any():
            return float('nan')
        L = com_offset_of_whole(self.regressor, self.captures[k], self.at.theta)
        is_whole = e.rows < 6
        H, J = L @ self._scaled(columns[is_whole]), L @ e.J[is_whole]
        return float(np.trace(H @ covariance @ H.T + (J * self.poses[k].variances) @ J.T))

    def equations_of(self, capture: Capture) -> Array:
        """Return the equations of one more capture, divided by their noise, (rows, d)."""
        errors, theta = self.instruments.errors(self.at.values), self.at.theta
        e = self.regressor.linearised(capture, theta, self._noise)
        columns = np.concatenate(
            (e.A, self.instruments.columns(capture, e, theta, errors)), axis=1)
        return WhitenedPose(e, self._scaled(columns), np.zeros(len(e.rows)),
                            self._with_friction(e, capture)).H

    @property
    def nominal(self) -> Array:
        """Return the mean of the assumed variances of the inputs over captures, (inputs,)."""
        return np.asarray(np.mean(
            [self._with_friction(linear[0], capture)
             for linear, capture in zip(self._linear, self.captures)], axis=0))

    def _with_friction(self, e: Equations, capture: Capture) -> Array:
        """Return the variances of a capture's inputs with friction, (inputs,)."""
        variances = e.variances.copy()
        unknown = np.where(directions_of(capture) == 0.0, 1.0, SIDED)
        variances[self._torques] += (unknown * self._friction) ** 2
        return variances

    def _nominal(self, k: int) -> Array:
        """Return the variances of a pose's inputs, less what is learned as a scale, (inputs,)."""
        variances = self._with_friction(self._linear[k][0], self.captures[k])
        # What is learned of friction is not scaled once more.
        variances[self._torques] = self._unknown.variances(
            k, variances[self._torques] * self._unknown.ratio) / self._unknown.ratio
        return variances

    def _linearise(self) -> None:
        errors = self.instruments.errors(self.at.values)
        times = times_of(self.captures)
        self._linear = []
        for k, (corrected, t, noise) in enumerate(zip(
                self._corrected(errors), times, self.at.noise)):
            capture = self._without_noise(corrected, noise)
            e = self.regressor.linearised(capture, self.at.theta, self._noise)
            e = self.soles.extended(k, capture, e, errors, noise[e.inputs.soles])
            C = self.instruments.columns(capture, e, self.at.theta, errors, t)
            right = C @ self.at.values - e.residual(self._theta0) - e.J @ noise
            self._linear.append((e, np.concatenate((e.A, C), axis=1), right))
        self._known_linear = self._known.linearised(
            self.instruments, errors, self.at.values, self.at.theta, self._theta0)

    def _without_noise(self, capture: Capture, noise: Array) -> Capture:
        """Return a corrected capture less the noise of what was measured, (inputs,)."""
        inputs = self.regressor.inputs
        return replace(
            capture, positions=capture.positions - noise[inputs.positions],
            up=pin.exp3(-noise[inputs.up]) @ capture.up,
            wrenches=capture.wrenches - noise[inputs.readings].reshape(-1, 6),
            torques=capture.torques - noise[inputs.torques])

    def _scaled(self, columns: Array) -> Array:
        n = self._theta0.size
        return np.concatenate(
            (columns[:, :n] @ self.T,
             columns[:, n:] * (self.instruments.sigma * self.at.scales)), axis=1)

    def _whiten(self) -> None:
        self.poses = [WhitenedPose(e, self._scaled(columns), right,
                                   self.noise.variances(k, self._nominal(k)))
                      for k, (e, columns, right) in enumerate(self._linear)]
        known = [solve_triangular(
            factor, np.column_stack((self._scaled(columns), right)), lower=True)
            for columns, right, factor in self._known_linear]
        H = np.concatenate([*(p.H for p in self.poses), *(k[:, :-1] for k in known)])
        y = np.concatenate([*(p.y for p in self.poses), *(k[:, -1] for k in known)])
        self._G, self._g = H.T @ H, H.T @ y
        self._all = NormalEquations(self.terms, self._G, self._g)

    def _update(self, posterior: Posterior) -> float:
        """Take over the estimate and learn scales; return how much those of noise change."""
        x = posterior.mean
        change = self.noise.update(self.poses, x, posterior.covariance)
        change = max(change, self._update_friction(posterior))
        self.at.theta, self.at.values = self.parameters(x), self.values(x)
        self.at.noise = np.array([pose.noise(x) for pose in self.poses])
        self.terms.reference = np.maximum(self.at.theta[:, 0], 0.2 * self.terms.masses)
        return change

    def _update_friction(self, posterior: Posterior) -> float:
        torques, friction = self._torques, self._unknown
        errors, shares = np.array([pose.input_errors(posterior.mean, posterior.covariance)
                                   for pose in self.poses]).swapaxes(0, 1)[:, :, torques]
        change = friction.update(
            errors, shares, np.array([pose.variances[torques] for pose in self.poses]),
            np.array([e.variances[torques] for e, _, _ in self._linear]))
        self.noise.fix_torques(friction.learned, friction.ratio)
        return change

    def _rescale(self, posterior: Posterior) -> float:
        """Learn the spreads of the instruments' errors; return the change of their logarithms."""
        x, n, before = posterior.mean, self._theta0.size, self.at.scales
        group, size = self.instruments.group, int(self.instruments.group.max(initial=-1)) + 1
        known = np.clip(1.0 - np.diag(posterior.covariance)[n:], 0.0, 1.0)
        square = self.at.scales ** 2 * x[n:] ** 2
        found, count = np.bincount(group, square, size), np.bincount(group, known, size)
        assumed = np.where(found < count, SMALLER_OBSERVATIONS, LARGER_OBSERVATIONS)
        scales = (assumed + found) / (assumed + count)
        self.at.scales = np.clip(np.sqrt(scales), 1.0 / LARGEST_SCALE, LARGEST_SCALE)[group]
        return float(np.abs(np.log(self.at.scales / before)).max(initial=0.0))


def strength_of(regressor: StaticsRegressor, captures: Sequence[Capture]) -> Array:
    """Return the largest torque of each joint, (n,), that is credible for these captures."""
    expected = residuals_of(regressor, captures, parameters_of(regressor.model)).torque_expected
    needed = np.sqrt(np.mean(np.nan_to_num(expected) ** 2, axis=0))
    limits = effort_limits(regressor.model)
    return np.where(limits < STRONGEST * needed.max(initial=1.0), limits, STRONGEST * needed)
