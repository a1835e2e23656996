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
"""What a calibration estimates: masses, centres of mass, uncertainty, identifiability."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.first_moments import StaticsRegressor
from biped_com_ros.core.identification.residuals import Offsets, Residuals
import numpy as np


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
    offsets
        Estimated constant errors of the sensors.
    before, after, validated
        Residuals with the URDF's parameters, with the estimate, and in cross-validation.
    identifiability
        What the data determine.
    mass_sigma
        The prior's relative standard deviation of masses that was used.
    noise_scale
        Standard deviation of the residuals over the assumed noise, at least 1; the noise was
        scaled by it.
    pose_misfit
        Mean squared normalised residual of each capture; near 1 when it fits.
    warnings
        Problems with remedies.

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
        return np.sqrt(np.einsum('ij,jk,ik->i', C, self.covariance, C))
