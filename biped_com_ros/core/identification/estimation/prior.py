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
The prior: the URDF, its uncertainty, and physical consistency.

Per link, in the coordinates of the solution: u, the mass as ``m = m0 (1 + u)``, and w (3,), the
first moment as ``h = m c0 + m_ref sigma w`` with the reference mass m_ref near m. The prior's
negative logarithm is

    (u - ln(1 + u)) / rho^2  +  |w|^2 / 2,

a Gamma distribution of the mass with relative standard deviation rho, which keeps it positive,
and sigma per axis for the centre of mass. A term with a small weight is added for physical
consistency in statics, which needs no semidefinite program:

    m (c - c0)^T inv(Sigma0) (c - c0) / m0  +  m / m0 - ln(m / m0) - 1

with Sigma0 the spread of the link's mass in the URDF; and a barrier that keeps the centre of mass
within the link's geometry where that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
import math
from pathlib import Path
from typing import Any, NamedTuple

from biped_com_ros.core.errors import BipedComError, ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.shapes import box, Triangles
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.inertias import link_inertias
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

#: Values over which the unknown spread of masses is integrated, as shares.
_MASS_SIGMAS = 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.35, 0.6
SMALLEST_MASS_SIGMA = 1e-4
SMALLEST_SPREAD = 0.01
"""Smallest radius of gyration, m; inertias in a URDF are often tiny or zero."""

Bounds = tuple[ArrayLike, ArrayLike]
"""Lowest and highest corner of a box, (3,) each, m."""


def spread_of_links(model: RobotModel) -> Array:
    """
    Return the spread of each link's mass about its centre, from the URDF's inertias.

    Returns
    -------
    numpy.ndarray
        ``Sigma0 = (tr(I) / 2 - I) / m``, the second central moment, along the link's axes, (L,
        3, 3), m^2; every eigenvalue at least :data:`SMALLEST_SPREAD` squared.

    """
    inertias = link_inertias(urdf_tools.parse_urdf(model.urdf))
    spreads = []
    for name, mass in zip(model.link_names, model.link_masses):
        inertia = inertias[name].inertia
        values, vectors = np.linalg.eigh((0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass)
        spreads.append((vectors * np.maximum(values, SMALLEST_SPREAD ** 2)) @ vectors.T)
    return np.array(spreads)


def com_bounds(model: RobotModel, margin: float = 0.0) -> dict[str, Bounds]:
    """
    Return the box around each link's geometry, in the link's frame, where it is known.

    Parameters
    ----------
    model
        The robot; collision shapes and, where a link has none, visual ones. Links with a shape
        that cannot be read are left out: :func:`unreadable_shapes`.
    margin
        Added on every side, m.

    """
    boxes, _ = _boxes(model)
    return {name: (low - margin, high + margin) for name, (low, high) in boxes.items()}


def unreadable_shapes(model: RobotModel) -> dict[str, str]:
    """Return why links with mass and a shape have no bounds, by name of the link."""
    return _boxes(model)[1]


def _boxes(model: RobotModel) -> tuple[dict[str, tuple[Array, Array]], dict[str, str]]:
    """Return the corners of the box around each link, and why a link has none."""
    boxes: dict[str, tuple[Array, Array]] = {}
    problems: dict[str, str] = {}
    for link in urdf_tools.parse_urdf(model.urdf).findall('link'):
        name = str(link.get('name'))
        shapes = link.findall('collision') or link.findall('visual')
        if name not in model.link_names or not shapes:
            continue
        try:
            points = np.concatenate([urdf_tools.shape_in_link(shape, name, _mesh_box).vertices
                                     for shape in shapes])
        except BipedComError as error:
            problems[name] = str(error)
        else:
            boxes[name] = points.min(axis=0), points.max(axis=0)
    return boxes, problems


def missing_inertials(model: RobotModel) -> str:
    """
    Return a warning about moving links with a shape but without mass in the URDF, or ''.

    Their mass would be attributed to the links that they are attached to.
    """
    robot = urdf_tools.parse_urdf(model.urdf)
    moved = {child.get('link') for joint in robot.findall('joint')
             if joint.get('type') != 'fixed' for child in joint.findall('child')}
    missing = [f"'{link.get('name')}'" for link in robot.findall('link')
               if link.get('name') in moved and link.get('name') not in model.link_names
               and (link.find('visual') is not None or link.find('collision') is not None)]
    if not missing:
        return ''
    return (f'{", ".join(missing)} of the URDF: a shape but no mass, which is attributed to other '
            'links; add an <inertial>, a rough one is enough')


@lru_cache(maxsize=256)
def _load_box(path: Path) -> tuple[Array, Array]:
    """Return the corners of the box around a mesh, (3,) each."""
    try:
        import coal  # only needed for meshes
        mesh: Any = coal.MeshLoader().load(str(path))
    except (RuntimeError, ValueError, ImportError) as error:
        raise ConfigurationError(f"mesh '{path}' cannot be read: {error}") from None
    mesh.computeLocalAABB()
    return np.array(mesh.aabb_local.min_), np.array(mesh.aabb_local.max_)


def _mesh_box(path: Path, scale: Array) -> Triangles:
    """Return the box around a mesh as a surface."""
    low, high = (scale * corner for corner in _load_box(path))
    return box(high - low).moved(np.eye(3), 0.5 * (low + high))


BARRIER = 1e-3
"""Weight of the barriers: far inside the bounds their effect is negligible."""


class Spread(NamedTuple):
    """Relative standard deviation of masses, and the factor on that of centres of mass."""

    mass: float
    com: float = 1.0


BESIDE_FLEET = Spread(3.0, 20.0)
"""So wide is the URDF's prior beside that of a fleet that it only keeps masses positive."""


@dataclass(frozen=True, eq=False)
class FleetPrior:
    """
    Masses and first moments of a robot as its other units have them.

    Attributes
    ----------
    mean
        (L, 4), kg and kg m, in the order of ``model.link_names``.
    covariance
        Of a further unit about the mean, (4 L, 4 L).

    """

    mean: Array
    covariance: Array


@dataclass(frozen=True, kw_only=True)
class Prior:
    """
    Uncertainty of the URDF.

    Attributes
    ----------
    com_sigma
        Standard deviation of each link's centre of mass per axis, m, about as it is known.
    mass_sigma
        Standard deviation of each link's mass as a share of it; None: unknown.
    com_factors
        Values over which the spread of centres of mass in units of :attr:`com_sigma` is
        integrated, each by its evidence, as is the unknown spread of masses.
    consistency
        Weight of the physical-consistency term.
    com_bounds
        Lowest and highest centre of mass, in the link's frame, m, by link.
    fleet
        What is known from other units of the robot; it takes the place of the spreads above.

    """

    com_sigma: float = 0.015
    mass_sigma: float | None = None
    com_factors: tuple[float, ...] = (0.25, 0.4, 0.65, 1.0, 1.6)
    consistency: float = 0.02
    com_bounds: Mapping[str, Bounds] = field(default_factory=dict)
    fleet: FleetPrior | None = None

    def __post_init__(self) -> None:
        if not 1e-6 <= self.com_sigma <= 1.0:
            raise ConfigurationError(
                f'com_sigma must be between 1e-6 and 1 m, not {self.com_sigma}')
        if self.mass_sigma is not None and not SMALLEST_MASS_SIGMA <= self.mass_sigma <= 3.0:
            raise ConfigurationError('mass_sigma must be between 0.0001 and 3 (a share of the '
                                     f'mass), not {self.mass_sigma}')
        if not self.com_factors or not all(0.01 <= f <= 100.0 for f in self.com_factors):
            raise ConfigurationError(
                f'com_factors must be between 0.01 and 100, not {self.com_factors}')

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """Return the pairs of spreads of masses and centres of mass."""
        if self.fleet is not None:
            return (BESIDE_FLEET,)
        masses = _MASS_SIGMAS if self.mass_sigma is None else (self.mass_sigma,)
        return tuple(Spread(mass, com) for com in self.com_factors for mass in masses)


def prior_of(model: RobotModel, com_sigma: float = 0.015,
             fleet: FleetPrior | None = None) -> Prior:
    """
    Return the prior of a robot, each centre of mass within its link's geometry.

    Parameters
    ----------
    model
        The robot; its shapes are read, which takes about a second for meshes.
    com_sigma
        As in :class:`Prior`; also the margin around the geometry, for cables and screws.
    fleet
        What is known from other units.

    """
    return Prior(com_sigma=com_sigma, com_bounds=com_bounds(model, com_sigma), fleet=fleet)


def with_known_masses(prior: Prior) -> Prior:
    """
    Return a prior for links whose masses are known, weighed for example; only their CoMs are not.

    The URDF's masses are then kept within 0.01 %. With a total weight that differs from the
    sensors' the estimate has to put the difference into centres of mass: weigh all links first.
    """
    return replace(prior, mass_sigma=SMALLEST_MASS_SIGMA)


def link_scaling(theta: Array, moments: Array) -> Array:
    """
    Return T (4 L, 4 L): changes of masses and first moments by those of (u, w), link by link.

    Parameters
    ----------
    theta
        Masses and first moments, (L, 4), which change by the share u.
    moments
        Unit of w, by which first moments change further, (L,), kg m or, of metres, kg.

    """
    L, axes = len(theta), np.arange(1, 4)
    T, links = np.zeros((L, 4, L, 4)), np.arange(L)
    T[links, :, links, 0] = theta
    T[links[:, np.newaxis], axes, links[:, np.newaxis], axes] = moments[:, np.newaxis]
    return T.reshape(4 * L, 4 * L)


class PriorTerms:
    """
    The prior as a function of u and w, with gradient and Hessian.

    Parameters
    ----------
    model
        The robot as the URDF describes it.
    prior
        Its uncertainty.

    Attributes
    ----------
    masses, coms
        The URDF's, (L,) kg and (L, 3) m.
    reference
        Masses that scale first moments, (L,), kg.

    """

    def __init__(self, model: RobotModel, prior: Prior) -> None:
        self.prior = prior
        self.masses = np.array(model.link_masses)
        self.coms = np.array(model.link_coms_in_link)
        self._urdf = np.column_stack((self.masses, self.masses[:, np.newaxis] * self.coms))
        self.reference = self.masses.copy()
        self._inverse_spread = np.linalg.inv(spread_of_links(model))
        self._lower, self._upper = _bounds(model, prior)
        self._fleet = None if prior.fleet is None else (
            np.linalg.inv(np.linalg.cholesky(prior.fleet.covariance)),
            (prior.fleet.mean - self._urdf).ravel())

    @property
    def moment_sigma(self) -> Array:
        """Return the standard deviation of each link's first moment about ``m c0``, (L,), kg m."""
        return self.reference * self.prior.com_sigma

    def scaling(self) -> Array:
        """Return T (4 L, 4 L): parameters are the URDF's plus T times (u, w), link by link."""
        return link_scaling(self._urdf, self.moment_sigma)

    def deviations(self, spread: Spread) -> Array:
        """Return the prior's standard deviations of (u, w), (4 L,)."""
        if self.prior.fleet is not None:
            inverse = np.linalg.inv(self.scaling())
            return np.sqrt(np.diag(inverse @ self.prior.fleet.covariance @ inverse.T))
        return np.tile((spread.mass, spread.com, spread.com, spread.com), len(self.masses))

    def _from_fleet(self, x: Array) -> tuple[Array, Array] | None:
        """Return the deviation from the fleet's mean, whitened, and its derivative by x."""
        if self._fleet is None:
            return None
        whitener, offset = self._fleet
        T = whitener @ self.scaling()
        return T @ x - whitener @ offset, T

    def is_inside(self, x: Array) -> bool:
        """Whether masses are positive and centres of mass within their bounds."""
        return bool((x[::4] > -1.0).all() and (self._slack(x)[0] > 0.0).all())

    def value(self, x: Array, spread: Spread) -> float:
        """Return the negative logarithm of the prior, up to a constant."""
        u, w = self._split(x)
        a, kappa = 1.0 / spread.mass ** 2 + self.prior.consistency, self.prior.consistency
        shape = np.einsum('li,lij,lj->l', w, self._shape(), w) / (1.0 + u)
        fleet = self._from_fleet(x)
        return float((0.0 if fleet is None else 0.5 * fleet[0] @ fleet[0])
                     + a * (u - np.log1p(u)).sum() + 0.5 * (w * w).sum() / spread.com ** 2
                     + kappa * shape.sum() - BARRIER * np.log(self._slack(x)[0]).sum())

    def derivatives(self, x: Array, spread: Spread) -> tuple[Array, Array]:
        """Return gradient (4 L,) and Hessian (4 L, 4 L) of :meth:`value`."""
        u, w = self._split(x)
        L = len(u)
        gradient, hessian = np.zeros((L, 4)), np.zeros((L, 4, 4))
        a = 1.0 / spread.mass ** 2 + self.prior.consistency
        gradient[:, 0], hessian[:, 0, 0] = a * u / (1.0 + u), a / (1.0 + u) ** 2
        gradient[:, 1:], hessian[:, 1:, 1:] = w / spread.com ** 2, np.eye(3) / spread.com ** 2
        self._add_shape(u, w, gradient, hessian)
        slack, A = self._slack(x)
        gradient -= BARRIER * np.einsum('lki,lk->li', A, 1.0 / slack)
        hessian += BARRIER * np.einsum('lki,lkj,lk->lij', A, A, slack ** -2)
        full_gradient, full_hessian = gradient.ravel(), block_diag(*hessian)
        if (fleet := self._from_fleet(x)) is not None:
            full_gradient += fleet[1].T @ fleet[0]
            full_hessian += fleet[1].T @ fleet[1]
        return full_gradient, full_hessian

    def log_normalisation(self, spread: Spread) -> float:
        """Return the logarithm of the prior's integral, less what is common to all spreads."""
        a = 1.0 / spread.mass ** 2
        mass = a + math.lgamma(a + 1.0) - (a + 1.0) * math.log(a)
        return len(self.masses) * (mass + 3.0 * math.log(spread.com))

    def _split(self, x: Array) -> tuple[Array, Array]:
        by_link = x.reshape(-1, 4)
        return by_link[:, 0], by_link[:, 1:]

    def _shape(self) -> Array:
        """Return S with ``w S w / (1 + u)`` the first part of the consistency term."""
        ratio = self.moment_sigma / self.masses
        return self._inverse_spread * (ratio ** 2)[:, np.newaxis, np.newaxis]

    def _add_shape(self, u: Array, w: Array, gradient: Array, hessian: Array) -> None:
        kappa, S, one = self.prior.consistency, self._shape(), 1.0 + u
        Sw = np.einsum('lij,lj->li', S, w)
        q = (w * Sw).sum(axis=1)
        gradient[:, 0] -= kappa * q / one ** 2
        gradient[:, 1:] += 2.0 * kappa * Sw / one[:, np.newaxis]
        hessian[:, 0, 0] += 2.0 * kappa * q / one ** 3
        cross = -2.0 * kappa * Sw / (one ** 2)[:, np.newaxis]
        hessian[:, 0, 1:] += cross
        hessian[:, 1:, 0] += cross
        hessian[:, 1:, 1:] += 2.0 * kappa * S / one[:, np.newaxis, np.newaxis]

    def _slack(self, x: Array) -> tuple[Array, Array]:
        """
        Return how far inside of six bounds each w is, (L, 6), and the derivatives, (L, 6, 4).

        A bound that is not known is always one away.
        """
        ratio = (self.masses / self.moment_sigma)[:, np.newaxis]
        bounds = np.concatenate((self._upper, -self._lower), axis=1) * ratio
        by_w = np.broadcast_to(np.concatenate((-np.eye(3), np.eye(3))), (len(bounds), 6, 3))
        is_known = np.isfinite(bounds)[:, :, np.newaxis]
        A = np.where(is_known, np.concatenate((bounds[:, :, np.newaxis], by_w), axis=2), 0.0)
        at_zero = np.where(is_known[:, :, 0], bounds, 1.0)
        return at_zero + np.einsum('lki,li->lk', A, x.reshape(-1, 4)), A


def _bounds(model: RobotModel, prior: Prior) -> tuple[Array, Array]:
    """Return bounds of c - c0 (L, 3), infinite where unknown; the URDF's own is always inside."""
    lower = np.full((len(model.link_names), 3), -np.inf)
    upper = -lower
    for name, (low, high) in prior.com_bounds.items():
        if name not in model.link_names:
            raise UnknownNameError('link with mass', name, model.link_names, 'com_bounds')
        i = model.link_names.index(name)
        com, margin = model.link_coms_in_link[i], 0.5 * prior.com_sigma
        lower[i] = np.minimum(np.array(low) - com, -margin)
        upper[i] = np.maximum(np.array(high) - com, margin)
    return lower, upper
