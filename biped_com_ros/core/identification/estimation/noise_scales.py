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
How much sensors scatter, by their readings.

Each kind of input (encoders, direction of gravity, each axis of a wrench sensor, each joint's
torque) has a scale of its noise. Given a posterior of the unknowns, the scales are updated
by MacKay's fixed point of the evidence: squared estimated errors over the number of errors that
the data determine, with a few prior observations of the assumed noise. Single inputs beyond
three standard deviations count as much less (Huber), so that a moved pose or a sticking joint
does not pull the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.identification.captures.virtual_contacts import virtual_sensors
from biped_com_ros.core.identification.equations.first_moments import Equations
from biped_com_ros.core.identification.equations.instruments import AXES
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from scipy.linalg import solve_triangular

PRIOR_OBSERVATIONS = 0.5
"""As many observations the assumed noise is worth: little, since friction is a guess."""

OUTLIER = 3.0
"""Errors beyond this many standard deviations are outliers."""

WRONG_POSE = 6.0
"""Poses whose mean squared residual is this many times the usual one are wrong as a whole."""

MEDIAN = 0.455
"""Median of the square of a normal number of unit variance."""

SMALLEST, LARGEST = 0.05, 1e4
"""Bounds of the scale of noise."""


@dataclass(frozen=True, kw_only=True)
class NoiseEstimate:
    """
    Noise of one kind of sensor.

    Attributes
    ----------
    kind
        ``encoder``, ``tilt``, ``force``, ``moment``, ``sole tilt``, ``sole height`` or ``torque``.
    name
        Of the wrench sensor or joint; '' for all.
    axis
        Of a wrench sensor, ``fx``; else ''.
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
    axis: str = ''

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
        kinds = [('encoder', '', 'rad', ''), ('tilt', '', 'rad', '')]
        groups = [0] * n + [1] * 3
        for name in sensors:
            groups += range(len(kinds), len(kinds) + 6)
            kinds += [('force' if i < 3 else 'moment', name, 'N' if i < 3 else 'N m', AXES[i])
                      for i in range(6)]
        groups += [len(kinds), len(kinds), len(kinds) + 1] * len(model.config.feet)
        kinds += [('sole tilt', '', 'rad', ''), ('sole height', '', 'm', '')]
        groups += list(range(len(kinds), len(kinds) + n))
        kinds += [('torque', name, 'N' if slides else 'N m', '')
                  for name, slides in zip(model.joint_names, is_prismatic)]
        self._kinds, self._group = kinds, np.array(groups, dtype=np.intp)
        # The wrenches on virtual feet are unknowns: nothing measures them.
        self._unmeasured = virtual_sensors(model)
        self.squares: Array = np.ones(len(kinds))
        self._counts: Array = np.zeros(len(kinds))
        self._poses: Array = np.ones(poses)
        self._inputs: Array = np.ones((poses, len(groups)))
        self._is_fixed: BoolArray = np.zeros(len(kinds), dtype=bool)

    def variances(self, pose: int, nominal: Array, with_outliers: bool = True) -> Array:
        """Return the variances of a pose's inputs, given the nominal ones, (inputs,)."""
        variances: Array = nominal * self.squares[self._group]
        return variances * self._poses[pose] * self._inputs[pose] if with_outliers else variances

    def update(self, poses: Sequence[WhitenedPose], mean: Array, covariance: Array) -> float:
        """Update all scales, given the moments; return the largest change of a logarithm."""
        before = self.squares
        self._update_poses(poses, mean)
        moments = [pose.input_errors(mean, covariance) for pose in poses]
        errors, share = (np.array(values) for values in zip(*moments))
        kept = self._poses == 1.0
        with np.errstate(divide='ignore', invalid='ignore'):
            normal = np.where(share > 1e-3, errors ** 2 / share, np.nan) * self._inputs
        bound = OUTLIER ** 2 * self._usual(normal[kept])
        # An outlier counts for its group up to its bound; a wrong pose does not count.
        squares = self._sum(np.minimum(errors ** 2 * self._inputs, bound * share)[kept])
        counts = self._sum(share[kept])
        # In units of the group's present noise, without what was added for an outlier.
        self._inputs = np.where(
            kept[:, np.newaxis], np.fmax(1.0, np.nan_to_num(normal) / bound), 1.0)
        self._counts = counts
        self.squares = np.where(self._is_fixed, before, np.clip(
            (PRIOR_OBSERVATIONS + self.squares * squares) / (PRIOR_OBSERVATIONS + counts),
            SMALLEST ** 2, LARGEST ** 2))
        return float(np.abs(np.log(self.squares / before)).max())

    def fix_torques(self, joints: BoolArray, squares: Array) -> None:
        """Give the squared scales of some joints' torques (n,), which `update` then leaves."""
        n = len(joints)
        self._is_fixed[-n:] = joints
        self.squares[-n:] = np.where(joints, squares, self.squares[-n:])

    def estimates(self, nominal: Array) -> tuple[NoiseEstimate, ...]:
        """Return the noise by group, given the nominal variances (inputs,)."""
        found = []
        for i, (kind, name, unit, axis) in enumerate(self._kinds):
            assumed = float(np.sqrt(nominal[self._group == i].mean()))
            if self._counts[i] > 0.5 and assumed > 0.0 and name not in self._unmeasured:
                found.append(NoiseEstimate(
                    kind=kind, name=name, unit=unit, axis=axis, assumed=assumed,
                    estimated=assumed * float(np.sqrt(self.squares[i])),
                    count=float(self._counts[i])))
        return tuple(found)

    @property
    def overall(self) -> float:
        """Return the scale of all inputs together, each weighted by its information."""
        total = self._counts.sum()
        return float(np.sqrt((self._counts * self.squares).sum() / total)) if total else 1.0

    def _update_poses(self, poses: Sequence[WhitenedPose], mean: Array) -> None:
        """Find poses that do not fit at all: the robot moved or touched something."""
        misfit = self._poses * np.array(
            [float(np.mean((pose.H @ mean - pose.y) ** 2)) for pose in poses])
        ratio = misfit / max(1.0, float(np.median(misfit)))
        self._poses = np.where(ratio > WRONG_POSE, ratio, 1.0)

    def _usual(self, normal: Array) -> Array:
        """Return by input the median square of its group, over that of a normal one, >= 1."""
        usual = np.ones(len(self.squares))
        for group in range(len(usual)):
            values = normal[:, self._group == group]
            values = values[np.isfinite(values)]
            if len(values):
                usual[group] = max(1.0, float(np.median(values)) / MEDIAN)
        return usual[self._group]

    def _sum(self, values: Array) -> Array:
        """Return the sum (groups,) of values (poses, inputs)."""
        return np.asarray(
            np.bincount(self._group, values.sum(axis=0), len(self.squares)), dtype=float)


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
    variances
        Of the inputs.

    """

    def __init__(self, e: Equations, columns: Array, right: Array, variances: Array) -> None:
        self.variances = variances
        covariance = (e.J * variances) @ e.J.T
        covariance[np.diag_indices_from(covariance)] *= 1.0 + 1e-12
        whitened = solve_triangular(
            np.linalg.cholesky(covariance), np.column_stack((columns, right, e.J)), lower=True,
            check_finite=False)
        size = columns.shape[1]
        self.H: Array = whitened[:, :size]
        self.y: Array = whitened[:, size]
        self._J: Array = whitened[:, size + 1:]

    def misfit(self, mean: Array, covariance: Array) -> float:
        """Return the squared residual, normalised by what is predicted for it."""
        residual = self.H @ mean - self.y
        predicted = np.eye(len(residual)) + self.H @ covariance @ self.H.T
        return float(residual @ np.linalg.solve(predicted, residual))

    def noise(self, mean: Array) -> Array:
        """Return the most likely errors of the inputs, (inputs,), in their units."""
        return np.asarray(self.variances * (self._J.T @ (self.H @ mean - self.y)))

    def input_errors(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """
        Return estimated errors of the inputs, and the share of each that the data determine.

        Both (inputs,), in standard deviations of the input.
        """
        scaled = self._J * np.sqrt(self.variances)
        errors = scaled.T @ (self.H @ mean - self.y)
        known = scaled - (self.H @ covariance @ self.H.T) @ scaled
        return errors, np.clip((scaled * known).sum(axis=0), 0.0, 1.0)
