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
Maximum a posteriori estimate of links and instruments together, with its uncertainty.

A centre of mass per link is not observable from statics: plain least squares fits the data and
returns links that are wrong by half a metre. So the URDF is the prior (:mod:`prior`), which the
data correct as far as they are informative, each equation weighted by the noise of force sensors,
joint torques, encoders and inclination (:mod:`first_moments`). Masses and first moments are
estimated jointly: where the weight disagrees with the URDF, fixing or scaling masses would move
the disagreement into the centres of mass.

No instrument is perfect. Offsets, gains, cross-talk, frames and friction
(:mod:`instrument_parameters`) are unknowns as well, each kind with a spread estimated from the
data, so that the uncertainty of masses contains them. How much sensors scatter is estimated, too
(:mod:`noise_scales`), and the unknown spread of the links is integrated over (:mod:`posterior`).
The equations are not linear in all of that: :mod:`problem` solves them.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.com_measurements import ComMeasurement
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor, TYPICAL_NOISE)
from biped_com_ros.core.identification.equations.instrument_parameters import InstrumentParameters
from biped_com_ros.core.identification.equations.instruments import (
    directions_of, InstrumentCalibration, times_of)
from biped_com_ros.core.identification.estimation.confounding import (
    best_candidates, candidates_of, confounded)
from biped_com_ros.core.identification.estimation.estimates import (
    Identifiability, Identification, level_rotation, LinkEstimate, Residuals, residuals_of,
    root_mean)
from biped_com_ros.core.identification.estimation.noise_scales import WhitenedPose
from biped_com_ros.core.identification.estimation.plausibility import (
    check_variety, fit_warnings, model_warnings, without_constant_torques,
    without_end_stop_torques)
from biped_com_ros.core.identification.estimation.posterior import Posterior
from biped_com_ros.core.identification.estimation.prior import Prior, PriorTerms, Spread
from biped_com_ros.core.identification.estimation.problem import CalibrationProblem
from biped_com_ros.core.model.efforts import effort_scales
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


def gravity_frame(model: RobotModel) -> str:
    """Return the link in which the direction of gravity is measured, '' (the base) without IMU."""
    return model.config.imu.frame if model.config.imus else ''


def planned_instruments(regressor: StaticsRegressor, noise: SensorNoise) -> InstrumentParameters:
    """Return the unknown errors of instruments where captures measure all there is."""
    model = regressor.model
    n, sensors = len(model.joint_names), len(model.config.wrench_sensors)
    frame = gravity_frame(model)
    stands = np.ones(len(model.config.feet), dtype=bool)
    full = Capture(
        positions=np.zeros(n), wrenches=np.zeros((sensors, 6)), in_contact=stands,
        up=np.array((0.0, 0.0, 1.0)), up_frame=frame, torques=np.zeros(n), approach=np.ones(n))
    return InstrumentParameters(regressor, noise, [full], _strengths(model))


def _strengths(model: RobotModel) -> Array:
    """Return how strong the motor of each joint is, (n,), N m or N; 0 without one."""
    return effort_scales(model) * np.isin(model.joint_names, model.actuated_joint_names)


TYPICAL_PRIOR = Prior()


class Estimator:
    """
    Estimates a robot's masses, first moments and instruments from captures.

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
        self._scaling = PriorTerms(model, prior).scaling()
        self._friction = noise.friction * _strengths(model)
        self._instruments = planned_instruments(self.regressor, noise)

    def solve(self, captures: Sequence[Capture], folds: int = 5,
              known: Sequence[ComMeasurement] = ()) -> Identification:
        """
        Estimate.

        Parameters
        ----------
        captures
            At least two different poses.
        folds
            Number of parts of the captures in cross-validation.
        known
            Total centres of mass that are known otherwise; they are in every part.

        Raises
        ------
        InputError
            If the captures cannot be used, are too few or all alike.

        """
        captures, warnings = without_constant_torques(self.regressor, captures, self.noise)
        captures, end_stop_warnings = without_end_stop_torques(self.model, captures)
        check_variety(self.model, captures)
        problem = CalibrationProblem(self.regressor, captures, self.noise, self.prior, known)
        posterior = problem.solve()
        return self._result(problem, posterior, [*warnings, *end_stop_warnings], folds)

    @property
    def dimension(self) -> int:
        """Return the number of unknowns of `rows`."""
        return len(self._scaling) + len(self._instruments.sigma)

    def rows(self, capture: Capture, mass_sigma: float = 0.12) -> Array:
        """
        Return a capture's whitened equations in standard deviations of the prior, (rows, d).

        ``rows.T @ rows`` is the information it adds where the prior has the identity. The unknowns
        are masses and first moments, 4 L, then the errors of the instruments.

        Parameters
        ----------
        capture
            Measured or planned.
        mass_sigma
            The prior's relative standard deviation of masses.

        """
        theta = parameters_of(self.model)
        e = self.regressor.equations(capture, theta, self.noise)
        unknown = self._instruments
        C = unknown.columns(capture, e, theta, unknown.errors(np.zeros(len(unknown.sigma))))
        variances = e.variances.copy()
        variances[e.inputs.torques] += np.where(
            directions_of(capture) == 0.0, self._friction, 0.0) ** 2
        columns = np.concatenate((e.A @ self.prior_scaling(mass_sigma), C * unknown.sigma), axis=1)
        return WhitenedPose(e, columns, np.zeros(len(e.rows)), variances).H

    def prior_scaling(self, mass_sigma: float = 0.12) -> Array:
        """Return T (4 L, 4 L): parameters are the URDF's plus T times standard deviations."""
        T = self._scaling.copy()
        T[:, ::4] *= mass_sigma
        return T

    def predicted_com_std(self, information: Array, poses: Sequence[Array]) -> float:
        """
        Return the predicted standard deviation of the total CoM, m per horizontal axis.

        Parameters
        ----------
        information
            In units of the prior, itself included, (d, d); see `rows`.
        poses
            Joint positions (n,) over which the mean square is taken.

        """
        theta, scaling = parameters_of(self.model), self.prior_scaling()
        size, total = len(scaling), 0.0
        covariance = np.linalg.inv(information)[:size, :size]
        for positions in poses:
            C = self.regressor.com_derivative(positions, theta) @ scaling
            total += float(np.trace((C @ covariance @ C.T)[:2, :2])) / 2.0
        return math.sqrt(total / len(poses))

    def _result(self, problem: CalibrationProblem, posterior: Posterior, warnings: list[str],
                folds: int) -> Identification:
        x, T, captures = posterior.mean, problem.T, problem.captures
        theta, n = problem.parameters(x), len(T)
        data = problem.data_information(posterior.spread)
        covariance = T @ posterior.covariance[:n, :n] @ T.T
        # A parameter to consider (Schmidt): the share that the data determine scales by the gain.
        scaled = self.noise.recording_gain * covariance @ data.matrix @ theta.ravel()
        covariance += np.outer(scaled, scaled)
        links = _link_estimates(self.model, theta, covariance, problem.terms, posterior.spread)
        ones, misfit = np.tile((1.0, 0.0, 0.0, 0.0), len(links)), problem.misfit(x)
        sd = problem.values(np.sqrt(np.diag(posterior.covariance)))
        instruments = problem.instruments.estimates(problem.values(x), sd)
        virtual = {name for name, sensor in self.model.config.wrench_sensors.items()
                   if sensor.deviation}  # nothing is an error of what is not a sensor
        noise = problem.noise.estimates(problem.nominal)
        validated, validated_com, ratio = self._validate(problem, posterior.spread, folds)
        real = [i for i, e in enumerate(instruments) if e.name not in virtual]
        return Identification(
            robot=self.model.config.name, links=links, parameters=theta, covariance=covariance,
            mass=float(theta[:, 0].sum()), mass_std=math.sqrt(ones @ covariance @ ones),
            instruments=InstrumentCalibration(
                tuple(instruments[i] for i in real)), noise=noise,
            data=data._replace(instrument_spread=data.instrument_spread[real]),
            before=residuals_of(self.regressor, captures, parameters_of(self.model)),
            after=residuals_of(self.regressor, problem.corrected(x), theta),
            validated=validated, validated_com=validated_com,
            com_error=self._com_error(captures, theta, covariance), validation_ratio=ratio,
            ambiguities=confounded(
                problem.in_prior_units(posterior), instruments, self.model.link_names,
                lambda unknowns: best_candidates(
                    posterior.covariance, unknowns, _candidate_rows(problem))),
            identifiability=_identifiability(problem, posterior, links),
            mass_sigma=posterior.spread.mass, noise_scale=problem.noise.overall,
            pose_misfit=misfit,
            warnings=(*warnings, *problem.soles.warnings,
                      *model_warnings(self.model, problem.normal_equations().G),
                      *fit_warnings(captures, misfit, noise)))

    def _validate(self, problem: CalibrationProblem, spread: Spread,
                  folds: int) -> tuple[Residuals, float, float]:
        """
        Cross-validate: leave out a part of the captures, estimate, and test on the part.

        Returns the residuals, the root mean square that is predicted for those of the centre of
        mass, and the ratio of all residuals to those that are predicted.
        """
        tested: list[Residuals] = []
        variances: list[float] = []
        squares, count = 0.0, 0
        in_time = np.argsort(np.argsort(times_of(problem.captures), kind='stable'))
        fold_of = in_time % max(2, min(folds, len(problem.captures)))
        for fold in np.unique(fold_of):
            left_out = np.flatnonzero(fold_of == fold)
            posterior = problem.normal_equations(left_out).at(spread)
            x = posterior.mean
            for pose in (problem.poses[i] for i in left_out.tolist()):
                squares += pose.misfit(x, posterior.covariance)
                count += len(pose.y)
            variances += [problem.com_variance(i, posterior.covariance) for i in left_out.tolist()]
            tested.append(residuals_of(
                self.regressor, [problem.corrected(x)[i] for i in left_out.tolist()],
                problem.parameters(x)))
        inverse = np.argsort(np.argsort(fold_of, kind='stable'), kind='stable')
        return (Residuals.joined(tested, inverse), root_mean(variances),
                math.sqrt(squares / max(count, 1)))

    def _com_error(self, captures: Sequence[Capture], theta: Array, covariance: Array) -> float:
        """Return the predicted horizontal error of the CoM in the captures, rms, m."""
        variances = []
        for capture in captures:
            level = level_rotation(self.regressor.up_in_base(capture))[:2]
            D = level @ self.regressor.com_derivative(capture.positions, theta)
            variances.append(float(np.trace(D @ covariance @ D.T)))
        return root_mean(variances)


def _candidate_rows(problem: CalibrationProblem) -> list[tuple[str, Array]]:
    """Return the equations of each posture that may be captured next, with its description."""
    return [(what, problem.equations_of(capture)) for what, capture in candidates_of(
        problem.regressor, problem.captures, problem.at.theta)]


def _link_estimates(model: RobotModel, theta: Array, covariance: Array,
                    terms: PriorTerms, spread: Spread) -> tuple[LinkEstimate, ...]:
    estimates, before = [], terms.deviations(spread).reshape(-1, 4)[:, 1:]
    for i, name in enumerate(model.link_names):
        mass, com = float(theta[i, 0]), theta[i, 1:] / theta[i, 0]
        block = covariance[4 * i:4 * i + 4, 4 * i:4 * i + 4]
        J = np.column_stack((-com, np.eye(3))) / mass
        variance = np.diag(J @ block @ J.T)
        prior = (before[i] * terms.moment_sigma[i] / mass) ** 2
        estimates.append(LinkEstimate(
            name=name, mass=mass, mass_std=math.sqrt(block[0, 0]),
            mass_before=float(model.link_masses[i]), com=com, com_std=np.sqrt(variance),
            com_before=np.array(model.link_coms_in_link[i]),
            data_share=np.clip(1.0 - variance / prior, 0.0, 1.0)))
    return tuple(estimates)


def _identifiability(problem: CalibrationProblem, posterior: Posterior,
                     links: tuple[LinkEstimate, ...]) -> Identifiability:
    G = problem.normal_equations().G
    sigma = problem.terms.deviations(posterior.spread)
    strengths = np.maximum(np.linalg.eigvalsh(G * np.outer(sigma, sigma))[::-1], 0.0)
    rank = int((strengths > 1e-10 * strengths[0]).sum())
    gains = [0.5 * np.linalg.slogdet(
        np.eye(len(pose.H)) + pose.H @ posterior.covariance @ pose.H.T)[1]
        for pose in problem.poses]
    return Identifiability(
        unknowns=len(G), rank=rank, determined=int((strengths > 1.0).sum()),
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
        self._information: Array = np.eye(estimator.dimension)
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
