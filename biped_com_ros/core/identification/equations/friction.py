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
Friction of joints of which it is not known from which side they came to rest.

The error of a joint's torque is then +F or -F, as likely the one as the other, and scatters about
that: a mixture of two normal distributions. F and the scatter of each joint are learned from the
data. Where the other equations of a pose determine the sign, friction is subtracted; where they
do not, it is noise of variance F^2 as well. Friction that lies anywhere between -F and F is
learned as one with much scatter, which is nearly the normal noise of the same variance.

The mixture enters the normal equations by expectation propagation (T. Minka 2001, section 3.2):
for each torque as the normal distribution that has the same effect, given all other information on
its error.
"""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.instruments import directions_of
import numpy as np

FEWEST = 8
"""Friction of a joint is learned from at least this many torques."""

LEAST_SHARE = 0.02
"""Torques of whose error the other equations determine less than this share do not count."""

FRICTIONS = np.geomspace(0.05, 8.0, 20)
SCATTERS = np.geomspace(0.5, 100.0, 20)
"""Values of friction and scatter that are compared, times what is assumed; from the best one on
they are refined."""

STEP = FRICTIONS[1] / FRICTIONS[0]
"""Friction is refined within this factor: data with little information change it little."""

REFINEMENTS = 15
"""Number of steps of expectation maximisation that refine friction and scatter."""

LOG_SPREAD = 1.0
"""Standard deviation of the logarithms of both before the data."""


class UnknownFriction:
    """
    Friction of unknown sign, per capture and joint.

    Parameters
    ----------
    captures
        As they were measured.
    assumed
        Friction of each joint, (n,), N m; zero: none.

    Attributes
    ----------
    learned
        Which joints' friction has been learned, (n,).
    means
        Of the errors of torques, (captures, n), N m.
    ratio
        Learned variance of friction and noise over the assumed one, (n,).

    """

    def __init__(self, captures: Sequence[Capture], assumed: Array) -> None:
        torques = np.array([c.torques for c in captures])
        sides = np.array([directions_of(c) for c in captures])
        self._assumed = assumed
        self._unknown: BoolArray = np.isfinite(torques) & (sides == 0.0) & (assumed > 0.0)
        self._variances: Array = np.zeros(torques.shape)
        self.learned: BoolArray = np.zeros(len(assumed), dtype=bool)
        self.means: Array = np.zeros(torques.shape)
        self.ratio: Array = np.ones(len(assumed))

    def variances(self, k: int, nominal: Array) -> Array:
        """Return the variances of capture k's torques, given those that are assumed, (n,)."""
        return np.where(self.learned & self._unknown[k], self._variances[k], nominal)

    def update(self, errors: Array, shares: Array, variances: Array, noise: Array) -> float:
        """
        Learn from what the equations imply for the errors of torques.

        Parameters
        ----------
        errors, shares
            Of torques, (captures, n); see :meth:`WhitenedPose.input_errors`.
        variances
            With which these were found, (captures, n).
        noise
            Assumed variances of torques without friction, (captures, n).

        Returns
        -------
        float
            The largest change of an error, in standard deviations of noise and friction.

        """
        is_decided = self._unknown & (shares > LEAST_SHARE)
        share = np.where(is_decided, shares, 1.0)
        # The error of each torque by everything but itself.
        mean = self.means + np.sqrt(variances) * errors / share
        variance = variances * (1.0 - share) / share + 1e-9 * noise
        before, change = self.means, 0.0
        self.learned = is_decided.sum(axis=0) >= FEWEST
        self.means = np.zeros(before.shape)
        for j in np.flatnonzero(self.learned):
            k = is_decided[:, j]
            F, scatter = _fit(mean[k, j], variance[k, j], noise[k, j], self._assumed[j])
            own = scatter * noise[:, j]
            whole = F ** 2 + own
            m, v = _matched(mean[:, j], variance[:, j], F, own)
            self.means[:, j] = np.where(k, m, 0.0)
            self._variances[:, j] = np.where(k, v, whole)
            self.ratio[j] = np.mean(whole) / np.mean(noise[:, j] + self._assumed[j] ** 2)
            moved = np.abs(self.means[:, j] - before[:, j]) / np.sqrt(whole)
            change = max(change, float(moved.max()))
        return change


def _fit(mean: Array, variance: Array, noise: Array, assumed: float) -> tuple[float, float]:
    """Return the most likely friction, and the factor on the variance `noise`."""
    best, scatter = _best_of_grid(mean, variance, noise, assumed)
    F = best
    for _ in range(REFINEMENTS):
        own = scatter * noise
        total = own + variance
        sign = np.tanh(F * mean / total)
        F = float((sign * mean / total).sum() / (1.0 / total).sum())
        F = min(max(F, best / STEP), best * STEP)
        # What the error is expected to deviate from +F or -F, squared.
        left = own * variance / total + (own / total) ** 2 * (
            mean ** 2 - 2.0 * sign * F * mean + F ** 2)
        scatter = float((1.0 + (left / noise).sum()) / (1.0 + len(noise)))
    return F, max(scatter, SCATTERS[0] ** 2)


def _best_of_grid(mean: Array, variance: Array, noise: Array,
                  assumed: float) -> tuple[float, float]:
    F = assumed * FRICTIONS[:, np.newaxis, np.newaxis]
    total = SCATTERS[:, np.newaxis] ** 2 * noise + variance
    # The logarithm of the mean of two normal densities at +F and -F.
    densities = np.logaddexp(-0.5 * (mean - F) ** 2 / total, -0.5 * (mean + F) ** 2 / total)
    value = (densities - 0.5 * np.log(total)).sum(axis=2)
    value -= 0.5 * (np.log(FRICTIONS[:, np.newaxis]) ** 2
                    + np.log(SCATTERS) ** 2) / LOG_SPREAD ** 2
    i, j = np.unravel_index(int(value.argmax()), value.shape)
    return float(assumed * FRICTIONS[i]), float(SCATTERS[j] ** 2)


def _matched(mean: Array, variance: Array, F: float, own: Array) -> tuple[Array, Array]:
    """
    Return mean and variance of the normal distributions that act as the mixture does.

    Where the sign is open none does; there, friction is noise.
    """
    total = own + variance
    sign = np.tanh(F * mean / total)
    tilted = own * variance / total + (variance * F / total) ** 2 * (1.0 - sign ** 2)
    centre = (own * mean + variance * F * sign) / total
    information = 1.0 / tilted - 1.0 / variance
    is_informative = information > 1.0 / (own + F ** 2)
    matched = 1.0 / np.where(is_informative, information, 1.0)
    return (np.where(is_informative, centre + (centre - mean) * matched / variance, 0.0),
            np.where(is_informative, matched, own + F ** 2))
