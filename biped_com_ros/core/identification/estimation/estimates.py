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
"""What a calibration estimates, with its uncertainty and the residuals of the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.geometry.wrench import centre_of_pressure, skew
from biped_com_ros.core.identification.captures.capture import Capture, check_capture
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.instruments import InstrumentCalibration
from biped_com_ros.core.identification.estimation.confounding import Ambiguity
from biped_com_ros.core.identification.estimation.noise_scales import NoiseEstimate
import numpy as np
from numpy.typing import ArrayLike

#: Errors on poses not used over the predicted ones that contradict the stated uncertainty.
CONTRADICTED = 2.0
#: Number of poses below which cross-validation says little.
FEW_POSES = 10
#: Shorter level parts of forward have no direction.
_VERTICAL = 1e-6


@dataclass(frozen=True)
class Residuals:
    """
    Measured minus expected, by capture.

    Attributes
    ----------
    com
        Centre of pressure minus the model's centre of mass, along the levelled base axes, shape
        (captures, 2), m; NaN where no foot stands, or its wrench is not measured.
    weight
        Measured minus expected, N, shape (captures,).
    torque, torque_expected
        Joint torques, shape (captures, n), N m; NaN where not measured.

    """

    com: Array
    weight: Array
    torque: Array
    torque_expected: Array

    @staticmethod
    def joined(parts: Sequence[Residuals], index: IndexArray) -> Residuals:
        """Concatenate parts and select captures by index."""
        return Residuals(*(np.concatenate([getattr(part, name) for part in parts])[index]
                           for name in ('com', 'weight', 'torque', 'torque_expected')))

    @property
    def com_rms(self) -> float:
        """Root mean square distance of the centre of mass, m; NaN without a standing foot."""
        return root_mean((self.com ** 2).sum(axis=1))

    @property
    def torque_rms(self) -> float:
        """Root mean square of the joint torques, N m; NaN without torques."""
        return root_mean(self.torque ** 2)

    @property
    def torque_max(self) -> float:
        """Largest joint torque residual, N m; NaN without torques."""
        return float(np.fmax.reduce(np.abs(self.torque), axis=None, initial=np.nan))

    @property
    def weight_mean(self) -> float:
        """Mean of the weight's residual, N; NaN without a standing foot."""
        known = self.weight[np.isfinite(self.weight)]
        return float(known.mean()) if len(known) else math.nan


def root_mean(squares: ArrayLike) -> float:
    """Return the root of the mean of those that are known; NaN if none is."""
    known = np.asarray(squares)[np.isfinite(squares)]
    return math.sqrt(known.mean()) if len(known) else math.nan


def residuals_of(regressor: StaticsRegressor, captures: Sequence[Capture],
                 theta: Array) -> Residuals:
    """
    Compare captures with a robot of the parameters `theta`.

    Parameters
    ----------
    regressor
        Of the robot.
    captures
        At least one.
    theta
        Masses and first moments (L, 4), kg and kg m.

    """
    if not captures:
        raise InputError('there is no capture to compare with; capture one pose or more at rest')
    for capture in captures:
        check_capture(regressor.model, capture)
    compared = [_compare(regressor, capture, theta) for capture in captures]
    com, weight, torque, expected = (np.array(values) for values in zip(*compared))
    return Residuals(com, weight, torque, expected)


def _compare(regressor: StaticsRegressor, capture: Capture,
             theta: Array) -> tuple[Array, float, Array, Array]:
    n = len(regressor.model.joint_names)
    fitted = regressor.with_fitted_contacts(capture, theta)
    rows, residual = regressor.residual(fitted, theta)
    torque = np.full(n, np.nan)
    is_joint = (rows >= 6) & (rows < 6 + n)
    torque[rows[is_joint] - 6] = -residual[is_joint]
    if fitted is not capture or not capture.in_contact.any():
        return np.full(2, np.nan), float('nan'), torque, capture.torques - torque
    com, weight = _compare_contact(regressor, capture, theta)
    return com, weight, torque, capture.torques - torque


def _carried(regressor: StaticsRegressor, capture: Capture,
             theta: Array) -> tuple[Array, float, Array, float]:
    """Return CoM (3,) and mass of what the feet carry, `up` and the soles' height in the base."""
    model, up = regressor.model, regressor.up_in_base(capture)
    soles = model.state(capture.positions).placements_in_base(model.soles)[:, 3]
    carried = np.where(regressor.carried_links(capture)[:, np.newaxis], theta, 0.0)
    mass = float(carried[:, 0].sum())
    com = regressor.com_matrix(capture.positions) @ carried.ravel() / mass
    return com, mass, up, float((soles[capture.in_contact] @ up).mean())


def _compare_contact(regressor: StaticsRegressor, capture: Capture,
                     theta: Array) -> tuple[Array, float]:
    """Return centre of pressure minus centre of mass, levelled, and the weight's residual."""
    com, mass, up, height = _carried(regressor, capture, theta)
    total = regressor.total_contact(capture)
    # Horizontal forces are noise at rest; at the height of the soles they have no lever.
    pressure = centre_of_pressure(total.tolist(), up.tolist(), height)
    offset = (np.nan if pressure is None else np.array(pressure)) - com
    return level_rotation(up)[:2] @ offset, float(total[:3] @ up) - GRAVITY * mass


def com_offset_of_whole(regressor: StaticsRegressor, capture: Capture, theta: Array) -> Array:
    """
    Return the matrix (2, 6) from residuals of the whole to the centre of mass's, levelled, m.

    The derivative of :attr:`Residuals.com` by the first six rows of the equations; NaN where no
    foot stands or where nothing but the model says what it carries.
    """
    if (not capture.in_contact.any()
            or regressor.with_fitted_contacts(capture, theta) is not capture):
        return np.full((2, 6), np.nan)
    com, mass, up, height = _carried(regressor, capture, theta)
    below = com + (height - com @ up) * up
    # A moment about the point below it divided by the weight, turned by a quarter.
    moment = np.concatenate((-skew(below), np.eye(3)), axis=1)
    return np.asarray(level_rotation(up)[:2] @ skew(up) @ moment / (GRAVITY * mass))


def level_rotation(up: Array) -> Array:
    """
    Return the rotation (3, 3) that makes `up` vertical and keeps forward ahead.

    Where forward is vertical, left stays on the left.
    """
    forward = np.array((1.0, 0.0, 0.0)) - up[0] * up
    if np.linalg.norm(forward) < _VERTICAL:
        forward = np.cross((0.0, 1.0, 0.0), up)
    forward /= np.linalg.norm(forward)
    return np.array((forward, np.cross(up, forward), up))


@dataclass(frozen=True, kw_only=True)
class LinkEstimate:
    """
    Mass and centre of mass of one link, by the URDF (before) and estimated.

    Attributes
    ----------
    name
        URDF link.
    mass, mass_std, mass_before
        kg.
    com, com_std, com_before
        In the link's frame, shape (3,), m.
    data_share
        Share of the centre of mass's variance that the data removed, per axis, shape (3,): one
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


@dataclass(frozen=True, kw_only=True)
class Identifiability:
    """
    What the data determine, and what comes from the prior alone.

    Attributes
    ----------
    unknowns
        Number of masses and first moments, 4 per link.
    rank
        Number of combinations of them about which the data give any information.
    determined
        Number of these that the data determine better than the prior.
    condition_number
        Of the whitened data within that rank.
    strengths
        Eigenvalues of the data's information in units of the prior's, largest first, (4 L,).
    prior_only_links
        Links of whose centre of mass, on every axis, the data remove less than a twentieth of
        the variance.
    repeat_gain
        Information that one more capture of the same pose would add, nats, by capture.

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
        """Return the number of combinations about which the data give no information."""
        return self.unknowns - self.rank


class DataInformation(NamedTuple):
    """
    What the data alone determine of the links, without any prior of them.

    Attributes
    ----------
    matrix
        Inverse covariance of masses and first moments, (4 L, 4 L), singular where the data
        determine nothing; the errors of the instruments are integrated over.
    vector
        The matrix times their maximum-likelihood deviation from the URDF's, (4 L,).
    instrument_spread
        Standard deviations of the instruments' errors before the data, as they were learned, by
        estimate.
    link_spread
        Those of masses, as a share, and of centres of mass, m, about the URDF's; (2,).

    """

    matrix: Array
    vector: Array
    instrument_spread: Array
    link_spread: Array


@dataclass(frozen=True, kw_only=True)
class Identification:
    """
    Masses and centres of mass with their uncertainty and residuals.

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
    instruments
        Estimated errors of the instruments.
    noise
        Estimated noise of the sensors.
    before, after, validated
        Residuals with the URDF's parameters, with the estimate, and in cross-validation.
    identifiability
        What the data determine.
    mass_sigma
        The prior's relative standard deviation of masses with the largest weight.
    noise_scale
        Noise of all sensors together over the assumed one.
    pose_misfit
        Mean squared normalised residual of each capture; near 1 when it fits.
    validated_com, com_error
        Predicted root mean square distances of the centre of mass, m: of `validated`, with the
        noise of the sensors (NaN where nothing measures it), and its error in the captured poses.
    validation_ratio
        Residuals of captures that were left out, over what is predicted for them; near 1 when
        the stated uncertainty is right.
    data
        What the data alone determine.
    ambiguities
        What the captures cannot distinguish, with what would.
    warnings
        Problems with remedies.

    """

    robot: str
    links: tuple[LinkEstimate, ...]
    parameters: Array
    covariance: Array
    mass: float
    mass_std: float
    instruments: InstrumentCalibration
    noise: tuple[NoiseEstimate, ...]
    before: Residuals
    after: Residuals
    validated: Residuals
    identifiability: Identifiability
    mass_sigma: float
    noise_scale: float
    pose_misfit: Array
    validated_com: float
    com_error: float
    validation_ratio: float
    data: DataInformation
    ambiguities: tuple[Ambiguity, ...]
    warnings: tuple[str, ...]

    @property
    def residuals(self) -> tuple[tuple[str, Residuals], ...]:
        """Residuals with the names that results and report give them."""
        return ('before', self.before), ('after', self.after), ('left out', self.validated)

    @property
    def verdict(self) -> str:
        """Return in a sentence whether to use the result, and why."""
        what, amount = 'horizontal centre of mass is', '{:.2f} mm'
        before, after = 1e3 * self.before.com_rms, 1e3 * self.validated.com_rms
        if math.isnan(before):  # without foot sensors
            what, amount = 'joint torques are', '{:.3g} N m'
            before, after = self.before.torque_rms, self.validated.torque_rms
        count = len(self.pose_misfit)
        compared = (f'on poses not used the {what} {amount.format(after)} off the measurements, '
                    f'{amount.format(before)} by the URDF')
        if not after < before:
            return f'keep the URDF: {compared} ({count} poses)'
        if self.validation_ratio > CONTRADICTED:
            return (f'do not use it yet: errors on poses not used are {self.validation_ratio:.1f} '
                    'times the predicted ones, so that the stated uncertainty is too small; see '
                    'the warnings')
        if count < FEW_POSES:
            return f'use it with care: {compared}, but {count} poses are few; take {FEW_POSES}'
        return f'use it: {compared} ({count} poses)'

    def com_std(self, regressor: StaticsRegressor, positions: Array) -> Array:
        """Return the standard deviation of the total centre of mass in the base, (3,), m."""
        C = regressor.com_derivative(positions, self.parameters)
        return np.sqrt(np.einsum('ij,jk,ik->i', C, self.covariance, C))
