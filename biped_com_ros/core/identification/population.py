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
Mean and scatter of a population of units, each of which is known from its own data only in part.

Unit k has unknowns x_k with the log-likelihood of its data ``-x^T G_k x / 2 + g_k^T x``; G_k may
be singular. The population is hierarchical and normal:

    x_k ~ N(mu, diag(s^2)),    mu ~ N(0, (1 - SHARE) sigma^2),

with sigma the standard deviation of a unit whose population is not known. What remains of the
scatter of estimates when their own covariance is removed is s^2, by MacKay's fixed point of the
evidence (empirical Bayes: Robbins 1956, Morris 1983). By logarithms it is blended with
``SHARE sigma^2``, which counts as ``PRIOR_UNITS``: a few units that agree may do so by chance. So
in directions that no data show, a new unit is known as well as without a population, no better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, BoolArray
import numpy as np

SHARE = 0.5
"""Share of the variance of a single unit that is assumed to be scatter, the rest is common."""

PRIOR_UNITS = 2.0
"""As many units the assumed scatter is worth."""

LEAST_UNITS = 0.02
"""The same within the fixed point, so that it has a solution where no data say anything."""

SMALLEST, LARGEST = 1e-8, 1e4
"""Bounds of the variance of the scatter, over that of a single unit."""

ITERATIONS, CONVERGED = 200, 0.01
"""Largest number of iterations, and the relative change of variances below which they end."""

OUTLIER = 4.5
"""A unit is an outlier beyond this many robust standard deviations in one of its unknowns: among
10,000 normal numbers 0.07 are."""

LEAST_KNOWN = 0.1
"""Unknowns of a unit are scored where the data determine at least this share of their variance."""

FEWEST_UNITS = 5
"""Units from which on outliers are looked for."""

MOST_OUTLIERS = 0.25
"""With a larger share of the units beyond the bound, they are scatter, not outliers."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """
    What units have in common, and by how much they differ.

    Attributes
    ----------
    mean, mean_covariance
        (d,) and (d, d).
    scatter
        Standard deviation of units about the mean, (d,).
    known
        By how many units the scatter of each unknown is determined, (d,).
    scores
        Deviation of each unit from the mean in robust standard deviations, (N, d); NaN where its
        data determine too little.
    members
        Units that mean and scatter are of, (N,): all but outliers.

    """

    mean: Array
    mean_covariance: Array
    scatter: Array
    known: Array
    scores: Array
    members: BoolArray

    @property
    def covariance(self) -> Array:
        """Return the covariance of a further unit about the mean, (d, d)."""
        return np.asarray(self.mean_covariance + np.diag(self.scatter ** 2))

    @property
    def mean_std(self) -> Array:
        """Return the standard deviations of the mean, (d,)."""
        return np.sqrt(np.diag(self.mean_covariance))


def estimate_population(information: Array, vectors: Array, sigma: Array) -> Population:
    """
    Return mean and scatter of units.

    Parameters
    ----------
    information, vectors
        G_k and g_k of the data of each unit, without any prior, (N, d, d) and (N, d).
    sigma
        Standard deviation of the unknowns of a single unit about zero before any data, (d,).

    Raises
    ------
    InputError
        If there is no unit, or a number is not finite.

    """
    if not len(information):
        raise InputError('there is no unit; give the data of one or more')
    if not (np.isfinite(information).all() and np.isfinite(vectors).all()):
        raise InputError('the information of a unit is not finite: calibrate it again')
    G = information * np.outer(sigma, sigma)
    g, members = vectors * sigma, np.ones(len(vectors), dtype=bool)
    for _ in range(3):
        found = _scored(G, g, _fit(G[members], g[members]), members)
        inside = _inside(found.scores)
        if (inside == members).all():
            break
        members = inside
    return replace(found, mean=found.mean * sigma, scatter=found.scatter * sigma,
                   mean_covariance=found.mean_covariance * np.outer(sigma, sigma))


def _inside(scores: Array) -> BoolArray:
    if len(scores) < FEWEST_UNITS:
        return np.ones(len(scores), dtype=bool)
    inside: BoolArray = np.nanmax(np.abs(scores), axis=1, initial=0.0) < OUTLIER
    return inside if inside.mean() > 1.0 - MOST_OUTLIERS else np.ones_like(inside)


def _fit(G: Array, g: Array) -> tuple[Array, Array, Array]:
    """Return mean (d,), its covariance (d, d) and variances of the scatter (d,)."""
    variances = np.full(G.shape[1], SHARE)
    known = np.zeros_like(variances)
    for _ in range(ITERATIONS):
        _, _, deviation, variance = _given(G, g, variances)
        shares = np.clip(1.0 - variance / variances, 0.0, 1.0)
        known = shares.sum(axis=0)
        updated = np.clip((LEAST_UNITS * SHARE + (deviation ** 2).sum(axis=0))
                          / (LEAST_UNITS + known), SMALLEST, LARGEST)
        change = float(np.abs(np.log(updated / variances)).max())
        variances = updated
        if change < CONVERGED:
            break
    variances = np.exp((known * np.log(variances) + PRIOR_UNITS * np.log(SHARE))
                       / (known + PRIOR_UNITS))
    mean, covariance, _, _ = _given(G, g, variances)
    return mean, covariance, variances


def _given(G: Array, g: Array, variances: Array) -> tuple[Array, Array, Array, Array]:
    """
    Return what follows from variances of the scatter.

    Mean (d,) and its covariance (d, d); expected deviation of each unit from the mean and its
    variance, (N, d) each.
    """
    P, d = 1.0 / variances, len(variances)
    V = np.linalg.inv(G + np.diag(P))
    W = np.eye(d) - V * P  # V G
    A = W.sum(axis=0).T * P + np.eye(d) / (1.0 - SHARE)
    covariance = np.linalg.inv(0.5 * (A + A.T))
    mean = covariance @ (P * np.einsum('nij,nj->i', V, g))
    deviation = np.einsum('nij,nj->ni', V, g - G @ mean)
    variance = np.diagonal(V, axis1=1, axis2=2) + np.einsum('nij,nij->ni', W @ covariance, W)
    return mean, covariance, deviation, variance


def _scored(G: Array, g: Array, fit: tuple[Array, Array, Array], members: BoolArray) -> Population:
    mean, covariance, variances = fit
    V = np.linalg.inv(G + np.diag(1.0 / variances))
    deviation = np.einsum('nij,nj->ni', V, g - G @ mean)
    shares = np.clip(1.0 - np.diagonal(V, axis1=1, axis2=2) / variances, 0.0, 1.0)
    with np.errstate(divide='ignore', invalid='ignore'):
        normal = np.where(shares > LEAST_KNOWN, deviation / np.sqrt(variances * shares), np.nan)
    return Population(
        mean=mean, mean_covariance=covariance, scatter=np.sqrt(variances),
        known=shares[members].sum(axis=0), members=members, scores=_robust(normal))


def _robust(normal: Array) -> Array:
    """Return columns about their medians over the median absolute deviation, if it is above 1."""
    scores = np.full_like(normal, np.nan)
    for i in np.flatnonzero(np.isfinite(normal).any(axis=0)).tolist():
        values = normal[:, i] - np.nanmedian(normal[:, i])
        scores[:, i] = values / max(1.0, 1.4826 * float(np.nanmedian(np.abs(values))))
    return scores
