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
How much sensors scatter, by what their readings say.

Each kind of input (encoders, direction of gravity, each wrench sensor's forces and moments, each
joint's torque) has a scale of its noise. Given a posterior of the unknowns, the scales are updated
by MacKay's fixed point of the evidence: squared estimated errors over the number of errors that
the data determine, with a few prior observations of the assumed noise. Single inputs beyond
three standard deviations count as much less (Huber), so that a moved pose or a sticking joint
does not pull the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.first_moments import Equations
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from scipy.linalg import solve_triangular

PRIOR_OBSERVATIONS = 4.0
"""As many observations the assumed noise is worth."""

OUTLIER = 3.0
"""Errors beyond this many standard deviations are outliers."""

SMALLEST, LARGEST = 0.2, 1e4
"""Bounds of the scale of noise."""


@dataclass(frozen=True, kw_only=True)
class NoiseEstimate:
    """
    Noise of one kind of sensor.

    Attributes
    ----------
    kind
        ``encoder``, ``tilt``, ``force``, ``moment`` or ``torque``.
    name
        Of the wrench sensor or joint; '' for all.
    unit
        Of the numbers.
    assumed, estimated
        Standard deviations.
    count
        Number of its errors that the data determine.

    """

    kind: str
    name: str
    unit: str
    assumed: float
    estimated: float
    count: float

    @property
    def scale(self) -> float:
        """Return the estimated over the assumed noise."""
        return self.estimated / self.assumed


class NoiseScales:
    """
    Scales of the noise of all inputs.

    Parameters
    ----------
    model
        The robot.
    poses
        Number of captures.
    is_prismatic
        Which joints slide, (n,).

    Attributes
    ----------
    squares
        Squared scale by group.

    """

    def __init__(self, model: RobotModel, poses: int, is_prismatic: Array) -> None:
        n, sensors = len(model.joint_names), tuple(model.config.wrench_sensors)
        kinds = [('encoder', '', 'rad'), ('tilt', '', 'rad')]
        groups = [0] * n + [1] * 3
        for name in sensors:
            groups += [len(kinds)] * 3 + [len(kinds) + 1] * 3
            kinds += [('force', name, 'N'), ('moment', name, 'N m')]
        groups += list(range(len(kinds), len(kinds) + n))
        kinds += [('torque', name, 'N' if slides else 'N m')
                  for name, slides in zip(model.joint_names, is_prismatic)]
        self._kinds, self._group = kinds, np.array(groups, dtype=np.intp)
        self.squares: Array = np.ones(len(kinds))
        self._counts: Array = np.zeros(len(kinds))
        self._outliers: Array = np.ones((poses, len(groups)))

    def variances(self, pose: int, nominal: Array, with_outliers: bool = True) -> Array:
        """Return the variances of a pose's inputs, given the nominal ones, (inputs,)."""
        variances: Array = nominal * self.squares[self._group]
        return variances * self._outliers[pose] if with_outliers else variances

    def update(self, poses: Sequence[WhitenedPose], mean: Array, covariance: Array) -> None:
        """Update all scales, given the moments of the unknowns."""
        size = len(self.squares)
        squares, counts = np.zeros(size), np.zeros(size)
        for k, pose in enumerate(poses):
            errors, share = pose.input_errors(mean, covariance)
            with np.errstate(divide='ignore', invalid='ignore'):
                normal = np.where(share > 1e-3, errors ** 2 / share, 0.0)
            kept = self._outliers[k]
            # In units of the group's present noise, without what was added for an outlier.
            self._outliers[k] = np.maximum(1.0, normal * kept / OUTLIER ** 2)
            # An outlier tells its bound about its group, no more.
            squares += self._sum(np.minimum(errors ** 2 * kept, OUTLIER ** 2 * share))
            counts += self._sum(share)
        self._counts = counts
        self.squares = np.clip(
            (PRIOR_OBSERVATIONS + self.squares * squares) / (PRIOR_OBSERVATIONS + counts),
            SMALLEST ** 2, LARGEST ** 2)

    def estimates(self, nominal: Array) -> tuple[NoiseEstimate, ...]:
        """Return the noise by group, given the nominal variances (inputs,)."""
        found = []
        for i, (kind, name, unit) in enumerate(self._kinds):
            assumed = float(np.sqrt(nominal[self._group == i].mean()))
            if self._counts[i] > 0.5 and assumed > 0.0:
                found.append(NoiseEstimate(
                    kind=kind, name=name, unit=unit, assumed=assumed,
                    estimated=assumed * float(np.sqrt(self.squares[i])),
                    count=float(self._counts[i])))
        return tuple(found)

    @property
    def overall(self) -> float:
        """Return the scale of all inputs together, each by what the data tell of it."""
        total = self._counts.sum()
        return float(np.sqrt((self._counts * self.squares).sum() / total)) if total else 1.0

    def _sum(self, values: Array) -> Array:
        return np.asarray(np.bincount(self._group, values, len(self.squares)), dtype=float)


class WhitenedPose:
    """
    Equations of one capture, divided by the Cholesky factor of their noise.

    Parameters
    ----------
    e
        The equations.
    columns, right
        Derivative of the residual by the unknowns (rows, d), and what it explains (rows,).
    variances
        Of the inputs.

    Attributes
    ----------
    H, y
        ``H x = y`` plus noise of unit variance.

    """

    def __init__(self, e: Equations, columns: Array, right: Array, variances: Array) -> None:
        J, self._variances = e.J, variances
        covariance = (J * variances) @ J.T
        covariance[np.diag_indices_from(covariance)] *= 1.0 + 1e-12
        whitened = solve_triangular(
            np.linalg.cholesky(covariance), np.column_stack((columns, right, J)), lower=True,
            check_finite=False)
        size = columns.shape[1]
        self.H: Array = whitened[:, :size]
        self.y: Array = whitened[:, size]
        self._J: Array = whitened[:, size + 1:]

    def input_errors(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """
        Return estimated errors of the inputs, and the share of each that the data determine.

        Both (inputs,), in standard deviations of the input.
        """
        scaled = self._J * np.sqrt(self._variances)
        errors = scaled.T @ (self.H @ mean - self.y)
        known = scaled - (self.H @ covariance @ self.H.T) @ scaled
        return errors, np.clip((scaled * known).sum(axis=0), 0.0, 1.0)
