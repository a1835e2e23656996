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
The n + 1 poses of Muscolo et al. 2017: first moments of links from total centres of mass.

With known masses, the horizontal centre of mass of each pose, from the foot wrenches or known
otherwise (:mod:`com_measurements`), is linear in the first moments of the links. Some combinations
of them no pose can distinguish; of the others the poses determine as many as :func:`rank_of`
gives. The solution changes the URDF's first moments by as little as explains the measurements, so
that the total centre of mass is right in every pose whose combinations are determined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.com_measurements import (
    check_measurement, com_rows, ComMeasurement)
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.estimation.estimates import level_rotation
import numpy as np
from scipy.linalg import qr, solve_triangular

_RANK_TOLERANCE = 1e-9  # of the largest singular value
_WORST = 0.02  # m; combinations whose standard deviation is this times the mass are not determined
_SHOWN = 0.1  # share of a combination's largest term below which a term is left out
_LARGEST = 4  # number of terms, combinations and joints that are named
_MOVE = 0.4  # rad, by which a joint is moved to find out whether that helps


@dataclass(frozen=True)
class RankReport:
    """
    What the horizontal centres of mass of some poses determine, with known masses.

    Attributes
    ----------
    poses
        Number of poses with a standing foot.
    rank
        Number of combinations of first moments that they determine.
    possible
        Number that any poses on these feet, one at a time, can determine: 2 n + 2 with n joints
        of which none follows another and one foot; one more on alternating feet.
    condition
        Condition number of the determined ones.
    confounded
        Changes of first moments that these poses cannot see, though others would: in words.
    joints
        Joints that would show some of them if they were moved, the most useful first.

    """

    poses: int
    rank: int
    possible: int
    condition: float
    confounded: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the result and what is missing in a sentence."""
        missing = max(0, math.ceil((self.possible - self.rank) / 2.0))
        remedy = f'; at least {missing} more poses are needed' if missing else '; poses suffice'
        more = len(self.confounded) - _LARGEST
        shown = '; '.join(self.confounded[:_LARGEST]) + (f' and {more} more' if more > 0 else '')
        apart = f'; confounded: {shown}' if self.confounded else ''
        moves = f'; move {", ".join(self.joints[:_LARGEST])}' if self.joints else ''
        return (f'{self.poses} poses determine {self.rank} of {self.possible} combinations of '
                f'first moments (condition {self.condition:.3g}){remedy}{apart}{moves}')


def rank_of(regressor: StaticsRegressor, captures: Sequence[Capture]) -> RankReport:
    """
    Return what poses determine: the mode of n + 1 poses of the paper, with known masses.

    Raises
    ------
    InputError
        If no foot stands in any pose.

    """
    standing = [capture for capture in captures if capture.in_contact.any()]
    if not standing:
        raise InputError('no foot stands in any pose')
    poses = [(capture.positions, regressor.up_in_base(capture)) for capture in standing]
    here, values = _row_space(_rows(regressor, poses))
    feet = np.flatnonzero(np.any([capture.in_contact for capture in standing], axis=0))
    model, rng, others = regressor.model, np.random.default_rng(0), []
    for k in range(2 * model.pin_model.nv):
        q = rng.uniform(-0.5, 0.5, len(model.joint_names))
        others.append((q, _up_of_sole(regressor, q, int(feet[k % len(feet)]))))
    anywhere, _ = _row_space(_rows(regressor, others))
    unseen = _outside(anywhere, here)
    return RankReport(
        len(standing), len(values), len(anywhere), float(values[0] / values[-1]),
        tuple(_in_words(row, model.link_names) for row in _sparse(unseen)),
        _helpful_joints(regressor, standing[0].positions, feet.tolist(), unseen))


@dataclass(frozen=True, kw_only=True)
class MeasuredMoments:
    """
    First moments from total centres of mass.

    Attributes
    ----------
    parameters, covariance
        The masses that were given and the first moments, (L, 4), kg and kg m; covariance of the
        first moments, (3 L, 3 L), kg^2 m^2, zero along what the poses do not determine.
    determined
        Orthonormal combinations of first moments that they determine, (rank, 3 L).
    misfit
        Mean squared residual over what the noise predicts; near 1.

    """

    parameters: Array
    covariance: Array
    determined: Array
    misfit: float

    def com(self, regressor: StaticsRegressor, positions: Array) -> tuple[Array, Array]:
        """Return the total centre of mass in the base, (3,), and its covariance, (3, 3), m."""
        C, mass = regressor.com_matrix(positions), self.parameters[:, 0].sum()
        J = _moments(C) / mass
        return C @ self.parameters.ravel() / mass, J @ self.covariance @ J.T

    def describe(self) -> str:
        """Return the result in a sentence."""
        return (f'{len(self.determined)} combinations of first moments from total centres of '
                f'mass, residuals {math.sqrt(self.misfit):.2f} times the assumed noise')


def moments_from_com(regressor: StaticsRegressor, captures: Sequence[Capture],
                     noise: SensorNoise, known: Sequence[ComMeasurement] = (),
                     masses: Array | None = None) -> MeasuredMoments:
    """
    Return first moments of the links from total centres of mass, with known masses.

    Parameters
    ----------
    regressor
        Of the robot.
    captures
        Of which the foot wrenches give the horizontal centre of mass; hoisted ones are not used.
    noise
        Of the sensors.
    known
        Centres of mass that are known otherwise.
    masses
        Of the links, (L,), kg; None: the URDF's.

    Raises
    ------
    InputError
        If nothing is measured, or a measurement cannot be used.

    """
    theta = parameters_of(regressor.model)
    if masses is not None:
        theta[:, 0] = masses
    parts = [_by_wrenches(regressor, capture, theta, noise)
             for capture in captures if capture.in_contact.any()]
    parts += [_by_measurement(regressor, m, theta, noise) for m in known]
    if not parts:
        raise InputError('no foot stands in any pose, and no centre of mass is known')
    whitened = [solve_triangular(np.linalg.cholesky(cov), np.column_stack((A, r)), lower=True)
                for A, r, cov in parts]
    stacked = np.concatenate(whitened)
    A, r = _moments(stacked[:, :-1]), stacked[:, -1]
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    # Noise of the inclination shows combinations that no exact sensor can see: only just.
    rank = int((s > max(_RANK_TOLERANCE * s[0], 1.0 / (_WORST * theta[:, 0].sum()))).sum())
    if not rank:
        raise InputError('the measurements are too noisy to determine any first moment')
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    change = Vt.T @ (U.T @ -r / s)
    theta[:, 1:] += change.reshape(-1, 3)
    residual, freedom = A @ change + r, max(1, len(r) - rank)
    return MeasuredMoments(parameters=theta, covariance=(Vt.T / s ** 2) @ Vt, determined=Vt,
                           misfit=float(residual @ residual) / freedom)


def describe_poses(regressor: StaticsRegressor, captures: Sequence[Capture],
                   noise: SensorNoise, known: Sequence[ComMeasurement] = ()) -> str:
    """
    Return in words what poses determine, what they do not distinguish, and the last one's CoM.

    Raises
    ------
    InputError
        If nothing is measured, or a measurement cannot be used.

    """
    found = moments_from_com(regressor, captures, noise, known)
    com, covariance = found.com(regressor, captures[-1].positions)
    place, sd = (np.round(1e3 * v, 2).tolist() for v in (com, np.sqrt(np.diag(covariance))))
    return (f'{rank_of(regressor, captures).describe()}; {found.describe()}; total centre of '
            f"mass of '{captures[-1].name}' in the base {place} +- {sd} mm")


def _by_wrenches(regressor: StaticsRegressor, capture: Capture, theta: Array,
                 noise: SensorNoise) -> tuple[Array, Array, Array]:
    """Return A (2, 4 L), residual and covariance of the horizontal moments of the whole, N m."""
    e = regressor.equations(capture, theta, noise)
    if not np.isin(np.arange(6), e.rows).all():
        raise InputError(f"the wrenches of capture '{capture.name}' were not measured")
    level = np.zeros((2, len(e.rows)))
    level[:, 3:6] = level_rotation(regressor.up_in_base(capture))[:2]
    return level @ e.A, level @ e.residual(theta), level @ e.covariance @ level.T


def _by_measurement(regressor: StaticsRegressor, measurement: ComMeasurement, theta: Array,
                    noise: SensorNoise) -> tuple[Array, Array, Array]:
    check_measurement(regressor.model, measurement)
    rows = com_rows(regressor, measurement, theta)
    variances = np.where(regressor.is_prismatic, noise.slide, noise.encoder) ** 2
    return rows.A, rows.A @ theta.ravel(), (
        rows.covariance + (rows.J_position * variances) @ rows.J_position.T)


def _up_of_sole(regressor: StaticsRegressor, positions: Array, foot: int) -> Array:
    model = regressor.model
    up: Array = model.state(positions).placements_in_base(model.soles)[foot, 2]
    return up


def _moments(rows: Array) -> Array:
    """Return the columns of first moments, (rows, 3 L)."""
    return np.asarray(rows.reshape(len(rows), -1, 4)[:, :, 1:].reshape(len(rows), -1))


def _rows(regressor: StaticsRegressor, poses: Sequence[tuple[Array, Array]]) -> Array:
    """Return the first moments' rows of horizontal centres of mass in poses (positions, up)."""
    return _moments(np.concatenate(
        [level_rotation(up)[:2] @ regressor.com_matrix(q) for q, up in poses]))


def _row_space(rows: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis (rank, 3 L) of what rows determine, and singular values."""
    _, values, Vt = np.linalg.svd(rows, full_matrices=False)
    rank = int((values > _RANK_TOLERANCE * values[0]).sum())
    return Vt[:rank], values[:rank]


def _outside(whole: Array, part: Array) -> Array:
    """Return an orthonormal basis of what `whole` spans beyond `part`."""
    rest = whole - (whole @ part.T) @ part
    _, values, Vt = np.linalg.svd(rest, full_matrices=False)
    basis: Array = Vt[values > 1e-6]
    return basis


def _sparse(basis: Array) -> Array:
    """Return combinations of the rows of a basis with few terms, each with a 1."""
    if not len(basis):
        return basis
    _, _, columns = qr(basis, mode='economic', pivoting=True)
    return np.asarray(np.linalg.solve(basis[:, columns[:len(basis)]], basis))


def _in_words(combination: Array, links: Sequence[str]) -> str:
    scaled = combination / np.abs(combination).max()
    order = np.argsort(-np.abs(scaled), kind='stable')
    terms = [f'{scaled[i]:+.2f} {"xyz"[i % 3]} of {links[i // 3]}'
             for i in order.tolist() if abs(scaled[i]) > _SHOWN]
    return ' '.join(terms[:_LARGEST]) + (' ...' if len(terms) > _LARGEST else '')


def _helpful_joints(regressor: StaticsRegressor, positions: Array, feet: Sequence[int],
                    unseen: Array) -> tuple[str, ...]:
    """Return the joints that show most of what is not observable if they alone are moved."""
    if not len(unseen):
        return ()
    gains = []
    for step in _MOVE * np.eye(len(positions)):
        poses = [(q, _up_of_sole(regressor, q, foot)) for foot in feet
                 for q in (positions + step, positions - step)]
        values = np.linalg.svd(_rows(regressor, poses) @ unseen.T, compute_uv=False)
        gains.append(int((values > 1e-6).sum()))
    order = np.argsort(-np.array(gains), kind='stable')
    return tuple(regressor.model.joint_names[i] for i in order.tolist() if gains[i])
