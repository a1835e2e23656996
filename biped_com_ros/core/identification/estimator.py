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

A bare centre of mass per link is not observable from statics: least squares fits the data and
returns links that are wrong by half a metre. So the URDF is the prior (:mod:`prior`), and the data
moves it as far as they say anything, each equation counted by what the noise of force sensors,
joint torques, encoders and inclination makes of it (:mod:`first_moments`). Masses and first
moments are estimated jointly: where the weight disagrees with the URDF, fixing or scaling masses
would push the disagreement into the centres of mass.

The posterior is Laplace's approximation at the optimum. Noise that turns out larger than assumed
widens it (:attr:`Identification.noise_scale`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture, SensorNoise
from biped_com_ros.core.identification.first_moments import (
    Equations, parameters_of, stack_equations, StaticsRegressor, TYPICAL_NOISE)
from biped_com_ros.core.identification.geometry import missing_inertials
from biped_com_ros.core.identification.prior import Prior, PriorTerms
from biped_com_ros.core.identification.residuals import (
    Offsets, Residuals, residuals_of)
from biped_com_ros.core.model.limits import position_limits
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import NDArray

SMALLEST_MOTION = 0.02
"""Poses whose joints all stay within this, rad, are one pose."""

END_STOP = (0.02, 0.003)
"""
From so far beyond its limit to so far before it, rad, a joint may lean on the end stop.

Its motor does not tell the load then. Further beyond, the URDF has the limit wrong.
"""

TYPICAL_PRIOR = Prior()
_PASSES = 3
_NEWTON_STEPS = 60


@dataclass(frozen=True)
class LinkEstimate:
    """
    One link before and after.

    Attributes
    ----------
    name
        URDF link.
    mass, mass_std, mass_before
        kg.
    com, com_std, com_before
        In the link's frame, shape (3,), m.
    data_share
        How much of the centre of mass's uncertainty the data removed, per axis, shape (3,): one
        minus posterior over prior variance. Near zero, the estimate is the prior's.

    """

    name: str
    mass: float
    mass_std: float
    mass_before: float
    com: Array
    com_std: Array
    com_before: Array
    data_share: Array


@dataclass(frozen=True)
class Identifiability:
    """
    What the poses tell, and what only the prior says.

    Attributes
    ----------
    unknowns
        Number of masses and first moments, 4 per link.
    rank
        Of them, combinations that the data say anything about.
    determined
        Of these, combinations about which the data say more than the prior.
    condition_number
        Of the whitened data within that rank.
    strengths
        Eigenvalues of the data's information in units of the prior's, largest first, (4 L,).
    prior_only_links
        Links of whose centre of mass, on every axis, the data remove less than a twentieth of
        the variance.
    repeat_gain
        What each pose would add if it were taken once more, in nats of information, by capture.

    """

    unknowns: int
    rank: int
    determined: int
    condition_number: float
    strengths: Array
    prior_only_links: tuple[str, ...]
    repeat_gain: Array

    @property
    def prior_only(self) -> int:
        """Return the number of combinations that no pose of these says anything about."""
        return self.unknowns - self.rank


@dataclass(frozen=True)
class Identification:
    """
    Masses and centres of mass, how sure they are, and how well they explain what was measured.

    Attributes
    ----------
    robot
        Name of the robot.
    links
        In the order of ``model.link_names``.
    parameters, covariance
        Masses and first moments (L, 4), kg and kg m, and their covariance (4 L, 4 L).
    mass, mass_std
        Total, kg.
    offsets
        Constant errors of the sensors, estimated along.
    before, after, validated
        Residuals with the URDF's parameters, with the estimate, and with estimates made without
        the pose that they are tested on.
    identifiability
        What the poses tell.
    mass_sigma
        The prior's relative standard deviation of masses that was used.
    noise_scale
        By how much the residuals exceed the assumed noise (1: not at all); the noise was widened
        by it.
    pose_misfit
        Mean squared normalised residual of each capture; near 1 when it fits.
    warnings
        What does not look right, and what to do about it.

    """

    robot: str
    links: tuple[LinkEstimate, ...]
    parameters: Array
    covariance: Array
    mass: float
    mass_std: float
    offsets: Offsets
    before: Residuals
    after: Residuals
    validated: Residuals
    identifiability: Identifiability
    mass_sigma: float
    noise_scale: float
    pose_misfit: Array
    warnings: tuple[str, ...]

    @property
    def residuals(self) -> tuple[tuple[str, Residuals], ...]:
        """Residuals with the names that results and report give them."""
        return ('before', self.before), ('after', self.after), ('left out', self.validated)

    def com_std(self, regressor: StaticsRegressor, positions: Array) -> Array:
        """Return the standard deviation of the total centre of mass in the base, (3,), m."""
        C = regressor.com_derivative(positions, self.parameters)
        std: Array = np.sqrt(np.einsum('ij,jk,ik->i', C, self.covariance, C))
        return std


class Estimator:
    """
    Estimates a robot's masses and first moments from captures.

    Parameters
    ----------
    model
        The robot as the URDF says.
    noise
        Of its sensors.
    prior
        How far the URDF may be off.

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
            Into how many parts the poses are divided for cross-validation.

        Raises
        ------
        InputError
            If the captures cannot be used, are too few or all alike.

        """
        captures, complaints = self._without_dead_torques(captures)
        captures, leaning = self._without_stopped_torques(captures)
        complaints += leaning
        _check_variety(self.model, captures)
        system, mass_sigma = self._iterate(captures)
        x, hessian = system.optimum(mass_sigma)
        return self._result(captures, system, x, hessian, mass_sigma, complaints, folds)

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
        scaled = e.A @ self.prior_scaling(mass_sigma)
        L = np.linalg.cholesky(e.covariance + 1e-12 * np.diag(np.diag(e.covariance)))
        return np.asarray(np.linalg.solve(L, scaled), dtype=float)

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

    def _iterate(self, captures: Sequence[Capture]) -> tuple[_System, float]:
        """Linearise anew at each estimate: noise, reference masses, and scale of the noise."""
        theta, terms = parameters_of(self.model), PriorTerms(self.model, self.prior)
        scale, mass_sigma = 1.0, math.nan
        for _ in range(_PASSES):
            equations = stack_equations(self.regressor, captures, theta, self.noise)
            system = _System(self.regressor, equations, terms, self.noise, scale)
            mass_sigma = self.prior.mass_sigma or system.best_mass_sigma()
            x, _ = system.optimum(mass_sigma)
            theta = system.parameters(x)
            scale = system.refined_scale(x)
            terms.reference = np.maximum(theta[:, 0], 0.2 * terms.masses)
        return _System(self.regressor, equations, terms, self.noise, scale), mass_sigma

    def _result(self, captures: Sequence[Capture], system: _System, x: Array, hessian: Array,
                mass_sigma: float, complaints: list[str], folds: int) -> Identification:
        theta, offsets = system.parameters(x), system.offsets(x)
        posterior: Array = np.asarray(np.linalg.inv(hessian), dtype=float)
        T = system.T
        covariance = T @ posterior[:len(T), :len(T)] @ T.T
        links = _link_estimates(self.model, theta, covariance, system.terms)
        ones = np.tile((1.0, 0.0, 0.0, 0.0), len(links))
        misfit = system.misfit(x)
        return Identification(
            self.model.config.name, links, theta, covariance, float(theta[:, 0].sum()),
            math.sqrt(ones @ covariance @ ones), offsets,
            residuals_of(self.regressor, captures, parameters_of(self.model)),
            residuals_of(self.regressor, captures, theta, offsets),
            self._validate(captures, system, mass_sigma, folds),
            _identifiability(system, posterior, mass_sigma, links), mass_sigma, system.scale,
            misfit, (*complaints, *_untold(self.model, system),
                     *_complaints(captures, misfit, system.scale)))

    def _validate(self, captures: Sequence[Capture], system: _System, mass_sigma: float,
                  folds: int) -> Residuals:
        """Leave out a part of the poses, estimate from the others, test on the part."""
        tested: list[Residuals] = []
        order = np.arange(len(captures)) % max(2, min(folds, len(captures)))
        for fold in np.unique(order):
            left_out = np.flatnonzero(order == fold)
            x, _ = system.optimum(mass_sigma, left_out)
            tested.append(residuals_of(
                self.regressor, [captures[i] for i in left_out.tolist()], system.parameters(x),
                system.offsets(x)))
        inverse = np.argsort(np.argsort(order, kind='stable'), kind='stable')
        return Residuals.joined(tested, inverse)

    def _without_dead_torques(
            self, captures: Sequence[Capture]) -> tuple[list[Capture], list[str]]:
        """Leave out torques that never change although the load does."""
        if not captures:
            raise InputError('there is no capture; take at least two poses at rest')
        theta, noise = parameters_of(self.model), self.noise
        expected = residuals_of(self.regressor, captures, theta).torque_expected
        measured = np.array([capture.torques for capture in captures])
        complaints, dead = [], np.zeros(measured.shape[1], dtype=bool)
        for j, name in enumerate(self.model.joint_names):
            both = np.isfinite(measured[:, j]) & np.isfinite(expected[:, j])
            if both.sum() < 3:
                continue
            spread = float(np.std(expected[both, j]))
            if np.ptp(measured[both, j]) < 1e-3 * noise.torque and spread > 3.0 * noise.torque:
                dead[j] = True
                complaints.append(
                    f"the torque of joint '{name}' always reads {measured[both, j][0]:.3g} N m "
                    f'while the load changes by {spread:.1f} N m: its sensor is dead; left out')
        return [_without_torques(capture, dead) for capture in captures], complaints

    def _without_stopped_torques(
            self, captures: Sequence[Capture]) -> tuple[list[Capture], list[str]]:
        """Leave out torques of joints at their limits, where the end stop carries as well."""
        lower, upper = position_limits(self.model)
        q = np.array([capture.positions for capture in captures])
        measured = np.isfinite([capture.torques for capture in captures])
        beyond, before = END_STOP
        stopped = np.zeros(q.shape, dtype=bool)
        for over in (lower - q, q - upper):
            stopped |= (over > -before) & (over < beyond)
        lost, known = (stopped & measured).sum(axis=0), measured.sum(axis=0)
        names = [f'{self.model.joint_names[j]} ({lost[j]} of {known[j]})'
                 for j in np.flatnonzero(lost > 0.1 * known)]
        complaints = [f'joints at their limits may lean on the end stop, so that their torques '
                      f'are left out there: {", ".join(names)}'] if names else []
        return [_without_torques(c, row) for c, row in zip(captures, stopped)], complaints


class _System:
    """All equations, whitened, in the coordinates u, w of the prior and offsets v in sigmas."""

    def __init__(self, regressor: StaticsRegressor, equations: Sequence[Equations],
                 terms: PriorTerms, noise: SensorNoise, scale: float) -> None:
        self.terms, self.scale, self.T = terms, scale, terms.scaling()
        self._theta0 = parameters_of(regressor.model)
        self._offset_sigmas = _offset_sigmas(regressor, noise)
        self._used = np.flatnonzero(self._offset_sigmas)
        self._blocks = [self._whiten(e) for e in equations]
        # Each pose's share, so that poses can be left out.
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
        """Return the sensors' constant errors."""
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
        # About as many equations as are determined are spent on the estimate itself.
        G = self.information.sum(axis=0)
        spent = float(np.trace(np.linalg.solve(G + np.eye(len(G)), G)))
        chi = sum(float(np.sum((A @ x - y) ** 2)) for A, y in self._blocks)
        ratio = self.scale * math.sqrt(chi / max(rows - spent, 1.0))
        # Within sampling error of 1 the assumption stands.
        return ratio if ratio > 1.0 + 3.0 / math.sqrt(2.0 * rows) else 1.0

    def _whiten(self, e: Equations) -> tuple[Array, Array]:
        n = e.J_position.shape[1]
        self._joint_count = n
        columns = np.concatenate(
            (e.A @ self.T, self._offset_columns(e) * self._offset_sigmas), axis=1)
        columns = columns[:, np.r_[:len(self.T), len(self.T) + self._used]]
        noise = e.covariance * self.scale ** 2
        L = np.linalg.cholesky(noise + 1e-12 * np.diag(np.diag(noise)))
        whitened = np.linalg.solve(L, np.column_stack((columns, e.residual(self._theta0))))
        return whitened[:, :-1], -whitened[:, -1]

    def _offset_columns(self, e: Equations) -> Array:
        """Return how encoder, inclination, wrench and torque offsets enter the residual."""
        n, S6 = e.J_position.shape[1], e.J_reading.shape[1]
        wrench, torque = -e.J_reading.copy(), np.zeros((len(e.rows), n))
        for i, row in enumerate(e.rows):
            if 6 <= row < 6 + n:
                torque[i, row - 6] = 1.0
            elif row >= 6 + n:
                wrench[i, row - 6 - n] += 1.0
        assert wrench.shape[1] == S6
        return np.concatenate((-e.J_position, -e.J_up, wrench, torque), axis=1)

    def _objective(self, x: Array, G: Array, g: Array, mass_sigma: float) -> float:
        v = x[len(self.T):]
        return float(0.5 * x @ G @ x - g @ x + 0.5 * v @ v) + self.terms.value(x, mass_sigma)

    def _newton(self, G: Array, g: Array, mass_sigma: float) -> tuple[Array, Array]:
        x, size = np.zeros(self.dimension), len(self.T)
        value = self._objective(x, G, g, mass_sigma)
        for _ in range(_NEWTON_STEPS):
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
    encoder = np.where(regressor.sliding, 0.0, noise.encoder_offset)
    wrench = np.tile([noise.force_bias] * 3 + [noise.moment_bias] * 3, sensors)
    return np.concatenate((encoder, np.full(3, noise.tilt_bias), wrench,
                           np.full(n, noise.torque_bias)))


def _without_torques(capture: Capture, dead: Array) -> Capture:
    if not dead.any():
        return capture
    values = {**vars(capture), 'torques': np.where(dead, np.nan, capture.torques)}
    return Capture(**values)


def _check_variety(model: RobotModel, captures: Sequence[Capture]) -> None:
    if len(captures) < 2:
        raise InputError(
            f'{len(captures)} capture: at least two different poses are needed, and about 40 to '
            'pin down what statics can tell')
    motion = float(np.ptp([capture.positions for capture in captures], axis=0).max())
    tilt = float(np.ptp([capture.up for capture in captures], axis=0).max())
    if max(motion, tilt) < SMALLEST_MOTION:
        raise InputError(
            f'all {len(captures)} captures are one pose: no joint of {model.config.name} moves '
            f'by more than {math.degrees(motion):.2f} deg; move arms, legs and trunk between '
            'captures')


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
            name, mass, math.sqrt(block[0, 0]), float(model.link_masses[i]), com,
            np.sqrt(variance), np.array(model.link_coms_in_link[i]),
            np.clip(1.0 - variance / prior, 0.0, 1.0)))
    return tuple(estimates)


def _identifiability(system: _System, posterior: Array, mass_sigma: float,
                     links: tuple[LinkEstimate, ...]) -> Identifiability:
    size = len(system.T)
    G = system.information.sum(axis=0)
    # Offsets are unknown as well: what they could explain is not information.
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
        size, rank, int((strengths > 1.0).sum()), float(strengths[0] / strengths[rank - 1]),
        strengths, tuple(link.name for link in links if (link.data_share < 0.05).all()),
        np.array(gains))


def _untold(model: RobotModel, system: _System) -> list[str]:
    """Name links without mass, and those of which no capture tells: feet never lifted, mostly."""
    told = system.information.sum(axis=0).diagonal()[:len(model.link_names)] > 1e-9
    names = [name for name, known in zip(model.link_names, told) if not known]
    missing = missing_inertials(model)
    found = [missing] if missing else []
    if not names:
        return found
    return [*found, (
        f'no capture tells the mass of {", ".join(names)}, which hang below the sensors of '
        'standing feet: add captures with each foot in the air, or weigh them')]


def _complaints(captures: Sequence[Capture], misfit: Array, scale: float) -> list[str]:
    found = []
    usual = max(1.0, float(np.median(misfit)))
    for capture, value in zip(captures, misfit):
        if value > 6.0 * usual:
            found.append(
                f"capture '{capture.name}' does not fit the others ({math.sqrt(value):.1f} times "
                'the noise): the robot moved or touched something; take it again')
    if scale > 1.5:
        found.append(
            f'the residuals are {scale:.1f} times the assumed noise: uncertainties were widened '
            'by that; look for friction in the torques, sensor biases (tare), encoder offsets')
    return found
