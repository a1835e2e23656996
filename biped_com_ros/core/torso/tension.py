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
Tensions of the tendons for a bending moment, within limits.

The moment determines two combinations of the tensions; the others are co-contraction, which
stiffens the torso. Of all tensions with that moment those nearest to preferred ones are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.torso.constant_curvature import Backbone, make_shape
from biped_com_ros.core.torso.statics import Load, no_load, TorsoStatics
import numpy as np

PENALTY = 1e4
"""Root of the weight of the missing pull against that of deviations from preferred tensions."""

PULL_TOLERANCE = 1e-5
"""Missing pull up to which tensions are feasible, N."""


@dataclass(frozen=True, kw_only=True)
class TensionLimits(Settings):
    """Limits of the tension of every tendon."""

    lowest: float = setting(3.0, 'Smallest tension of a tendon', 'N', 0.0, 1e4, name='min_tension')
    highest: float = setting(
        60.0, 'Largest tension of a tendon', 'N', 0.1, 1e5, name='max_tension')

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, 'lowest', self.lowest < self.highest,
                      f"below 'highest', {self.highest} N", 'N')


class Tensions(NamedTuple):
    """
    Tensions, and the part of the required pull that they lack.

    Attributes
    ----------
    tensions
        Of all tendons, within their limits, N.
    shortfall
        Missing pull, forward + i left, N; zero unless limits are reached.

    """

    tensions: list[float]
    shortfall: complex

    @property
    def is_feasible(self) -> bool:
        """Whether the tensions have the required pull."""
        return abs(self.shortfall) < PULL_TOLERANCE


def distribute(directions: Array, pull: Array, preferred: Array, limits: TensionLimits) -> Array:
    """
    Solve ``min |F - preferred|^2`` with ``directions F = pull`` and F (n,) within its limits.

    If the limits do not allow the pull, the nearest possible one is used.

    Parameters
    ----------
    directions
        Of the tendons' attachments, unit vectors, shape (2, n).
    pull
        (2,), N.
    preferred
        Tensions (n,), N.
    limits
        Of all tendons.

    """
    # Slow to import, and tendons that are two pairs never need it.
    from scipy.optimize import lsq_linear

    def nearest(missing: Array, deviations: Array) -> Array:
        found = lsq_linear(
            np.vstack((PENALTY * directions, np.eye(len(preferred)))),
            np.concatenate((PENALTY * missing, deviations)),
            (limits.lowest, limits.highest), method='bvls', tol=1e-15)
        return np.clip(found.x, limits.lowest, limits.highest)
    tensions = nearest(pull, preferred)
    # What the penalty left over, if the pull is possible.
    left = pull - directions @ tensions
    return nearest(pull + left, preferred) if np.abs(left).max() < 1e-3 else tensions


class TensionDistributor:
    """
    Distributes a pull to the tendons of a backbone.

    Without limits the solution is the least-norm one on top of the preferred tensions. If a limit
    is reached, four evenly spaced tendons are two antagonistic pairs with a closed form, which is
    a hundred times as fast as :func:`distribute`; that is used for all others.

    Parameters
    ----------
    backbone, limits
        The tendons, and the limits of their tensions.

    """

    def __init__(self, backbone: Backbone, limits: TensionLimits) -> None:
        self.backbone, self.limits = backbone, limits
        directions = np.array(backbone.directions)
        self._directions = np.array((directions.real, directions.imag))
        pairs = antagonists(backbone.angles)
        self._pairs = None if pairs is None else tuple(
            (*pair, *self._directions[:, pair[0]].tolist()) for pair in pairs)
        #: Tensions per co-contraction, which have no pull, and per pull.
        uniform = backbone.pull([1.0] * backbone.count)
        self._parts = [(1.0 - (share * uniform).real, share) for share in backbone.shares]

    def distribute(self, pull: complex, co_contraction: float, margin: float = 0.0) -> Tensions:
        """
        Return tensions with a pull.

        Parameters
        ----------
        pull
            Forward + i left, N: the required moment divided by :meth:`.Backbone.lever`.
        co_contraction
            Preferred tension of every tendon, N.
        margin
            Added to the smallest tension as far as the moment allows, N.

        """
        limits = self.limits
        tensions = [even * co_contraction + (share * pull).real for even, share in self._parts]
        if limits.lowest + margin <= min(tensions) and max(tensions) <= limits.highest:
            return Tensions(tensions, 0j)
        if self._pairs is not None:
            return self._by_pairs(pull, co_contraction, margin)
        preferred = np.full(self.backbone.count, co_contraction)
        if margin > 0.0 and limits.lowest + margin < limits.highest:
            raised = TensionLimits(lowest=limits.lowest + margin, highest=limits.highest)
            found = self._in_general(pull, preferred, raised)
            if found.is_feasible:
                return found
        return self._in_general(pull, preferred, limits)

    def _in_general(self, pull: complex, preferred: Array, limits: TensionLimits) -> Tensions:
        found = distribute(self._directions, np.array((pull.real, pull.imag)), preferred, limits)
        tensions = found.tolist()
        return Tensions(tensions, pull - self.backbone.pull(tensions))

    def _by_pairs(self, pull: complex, co_contraction: float, margin: float) -> Tensions:
        """Each pair has the part of the pull along its direction; the two are orthogonal."""
        assert self._pairs is not None
        low, high, tensions = self.limits.lowest, self.limits.highest, [0.0] * 4
        missing, forward, left, most = 0j, pull.real, pull.imag, 0.5 * (high - low)
        for i, k, ahead, aside in self._pairs:
            half = 0.5 * (ahead * forward + aside * left)
            if half < 0.0:
                i, k, half, ahead, aside = k, i, -half, -ahead, -aside
            if half > most:
                missing += 2.0 * (half - most) * complex(ahead, aside)
                half = most
            # Limits have priority over the margin, and that over the preferred tension.
            center = min(max(co_contraction, low + margin + half), high - half)
            # Clamped against rounding.
            tensions[i], tensions[k] = min(center + half, high), max(center - half, low)
        return Tensions(tensions, missing)


def antagonists(angles: Array) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the two pairs of opposite tendons of four evenly spaced ones; None for others."""
    if len(angles) != 4:
        return None
    order = np.argsort(np.mod(angles, 2.0 * math.pi))
    gaps = np.diff(np.mod(angles, 2.0 * math.pi)[order])
    if not np.allclose(gaps, 0.5 * math.pi, atol=1e-9):
        return None
    first, second, third, fourth = order.tolist()
    return (first, third), (second, fourth)


class ClosureMap(NamedTuple):
    """
    Feasible tensions over the workspace.

    Attributes
    ----------
    reserve
        :func:`moment_reserve` of each bend and direction, shape (b, d), N m.

    """

    reserve: Array

    @property
    def is_held(self) -> BoolArray:
        """Which of these shapes can be held, shape (b, d)."""
        return np.asarray(self.reserve >= 0.0)


def map_closure(statics: TorsoStatics, limits: TensionLimits, bends: Array, directions: Array,
                load: Load = no_load) -> ClosureMap:
    """Return in which shapes tendons within their limits hold the torso under a load."""
    shapes = [[make_shape(float(bend), float(direction)) for direction in directions]
              for bend in bends]
    return ClosureMap(np.array([[moment_reserve(
        statics.backbone, shape, statics.bending_moment(shape, load), limits)
        for shape in row] for row in shapes]))


def moment_reserve(backbone: Backbone, shape: Array, moment: Array,
                   limits: TensionLimits) -> float:
    """
    Return the distance of a moment (2,) from the edge of the feasible set, N m; < 0 outside.

    The feasible moments are a zonogon with two sides perpendicular to each tendon; the reserve is
    the distance to the line of the nearest side.
    """
    columns = backbone.moment_columns(shape)
    normals = np.vstack((-columns[1], columns[0])) / np.linalg.norm(columns, axis=0)
    normals = np.hstack((normals, -normals))
    pulls = normals.T @ columns
    most = np.where(pulls > 0.0, limits.highest * pulls, limits.lowest * pulls).sum(axis=1)
    return float((most - normals.T @ moment).min())
