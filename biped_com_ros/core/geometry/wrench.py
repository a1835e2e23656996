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
Wrenches: 6-vectors, force first, of the environment on the robot.

A wrench belongs to a frame: its components are along the axes of that frame and its torque is
about that frame's origin. ``X_A_B`` takes a wrench of frame B to frame A, ``p_B_in_A`` is the
origin of B in A, ``R_A_B`` takes coordinates in B to coordinates in A.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Placement, Vector
import numpy as np
from numpy.typing import ArrayLike
import pinocchio as pin

Wrench = tuple[float, float, float, float, float, float]
"""A wrench as Python floats, N and N m: on single wrenches several times faster than arrays."""

_ORIGIN: Vector = (0.0, 0.0, 0.0)
_VERTICAL: Vector = (0.0, 0.0, 1.0)
_SKEW_OF_AXES: Array = np.array([pin.skew(axis).ravel() for axis in np.eye(3)])


def largest_credible_load(mass: float) -> float:
    """
    Return the largest load that a sensor of a robot of `mass` (kg) can measure, N or N m.

    About a hundred times the weight: hard landings reach ten times, simulated ones more.
    """
    return 1000.0 * mass


def skew(vector: ArrayLike) -> Array:
    """Return the matrices (..., 3, 3) whose product with `b` is the cross product with `b`."""
    v = np.asarray(vector, dtype=float)
    if v.ndim == 1:
        return pin.skew(v)
    return (v @ _SKEW_OF_AXES).reshape(*v.shape, 3)  # 1.3 instead of 3.0 us for four vectors


def wrench_adjoint(R_A_B: ArrayLike, p_B_in_A: ArrayLike) -> Array:
    """
    Return X_A_B, which moves wrenches from frame B to frame A.

    Parameters
    ----------
    R_A_B
        Rotation, (..., 3, 3).
    p_B_in_A
        Origin of B in A, (..., 3), m.

    Returns
    -------
    array (..., 6, 6)
        ``[[R, 0], [skew(p) R, R]]``: the force turns, the torque turns and gains p x f.

    """
    R, p = np.asarray(R_A_B), np.asarray(p_B_in_A)
    if R.ndim == 2 and p.ndim == 1:
        return pin.SE3(R, p).toDualActionMatrix()  # five times faster than arrays
    return set_wrench_adjoint(np.zeros((*R.shape[:-2], 6, 6)), R, p)


def set_wrench_adjoint(out: Array, R_A_B: Array, p_B_in_A: Array) -> Array:
    """Write :func:`wrench_adjoint` to `out` (..., 6, 6), all zero or written before."""
    out[..., :3, :3] = out[..., 3:, 3:] = R_A_B
    np.matmul(skew(p_B_in_A), R_A_B, out=out[..., 3:, :3])
    return out


def set_twist_adjoint(out: Array, placements: Array) -> Array:
    """
    Write what takes twists at the origin of a base to frames to `out` (..., 6, 6).

    Wrenches move from the frame to that origin by an adjoint, twists back by its transpose.

    Parameters
    ----------
    out
        All zero or written before.
    placements
        Axes of the frames in the base, and their origins, (..., 4, 3), m.

    """
    axes, origins = placements[..., :3, :], placements[..., 3, :]
    set_wrench_adjoint(out.swapaxes(-1, -2), axes.swapaxes(-1, -2), origins)
    return out


def inverse_wrench_adjoint(X_A_B: Array) -> Array:
    """Return X_B_A, (..., 6, 6): each block of :func:`wrench_adjoint` is transposed."""
    inverse = np.zeros_like(X_A_B)
    turned = X_A_B.swapaxes(-1, -2)
    inverse[..., :3, :3] = inverse[..., 3:, 3:] = turned[..., :3, :3]
    inverse[..., 3:, :3] = turned[..., :3, 3:]
    return inverse


def about_origin(wrench: Sequence[float], point: Sequence[float]) -> Wrench:
    """Return a wrench about a point (3,), m, as one about the origin: the torque gains p x f."""
    (fx, fy, fz, mx, my, mz), (x, y, z) = wrench, point
    return fx, fy, fz, mx + y * fz - z * fy, my + z * fx - x * fz, mz + x * fy - y * fx


def sum_wrenches(wrenches: Sequence[Sequence[float]], placements: Sequence[Placement],
                 about: Sequence[float] = _ORIGIN) -> Wrench:
    """
    Return the sum of wrenches of several frames along common axes.

    With Python floats: for the wrenches of two feet that takes half the time of arrays.

    Parameters
    ----------
    wrenches
        (K, 6), each in its own frame, N and N m.
    placements
        Of these frames in a common frame A, (K, 4, 3): axes, then origin, m.
    about
        Point about which the moments are taken, in A, (3,), m.

    Returns
    -------
    tuple of six floats
        Along the axes of A, about the point `about`, N and N m.

    """
    px, py, pz = about
    fx = fy = fz = mx = my = mz = 0.0
    # Force (u, v, w) and moment (a, b, c) along the frame's axes x, y and z; r: its origin.
    for (u, v, w, a, b, c), (
            (xx, xy, xz), (yx, yy, yz), (zx, zy, zz), (rx, ry, rz)) in zip(wrenches, placements):
        gx, gy, gz = u * xx + v * yx + w * zx, u * xy + v * yy + w * zy, u * xz + v * yz + w * zz
        rx, ry, rz = rx - px, ry - py, rz - pz
        fx, fy, fz = fx + gx, fy + gy, fz + gz
        mx += a * xx + b * yx + c * zx + ry * gz - rz * gy
        my += a * xy + b * yy + c * zy + rz * gx - rx * gz
        mz += a * xz + b * yz + c * zz + rx * gy - ry * gx
    return fx, fy, fz, mx, my, mz


def sum_covariance(covariance: Array, placements: Array) -> Array:
    """
    Return the covariance of the sum of wrenches of several frames about the origin, (6, 6).

    Parameters
    ----------
    covariance
        Of all wrenches, each in its own frame, one after another, (6 K, 6 K).
    placements
        Of these frames, (K, 4, 3): axes, then origin, m.

    """
    adjoints = np.zeros((len(placements), 6, 6))
    set_wrench_adjoint(adjoints, placements[:, :3].transpose(0, 2, 1), placements[:, 3])
    to_sum = adjoints.transpose(1, 0, 2).reshape(6, -1)
    found: Array = to_sum.dot(covariance).dot(to_sum.T)
    return found


def pressure_covariance(point: Sequence[float], normal: Sequence[float], height: float,
                        force: float, covariance: Array) -> Array:
    """
    Return the covariance of :func:`centre_of_pressure`, (3, 3), m^2, to first order.

    Parameters
    ----------
    point
        That point, (3,), m.
    normal, height
        Of the plane, as there.
    force
        Force along the normal, N; not zero.
    covariance
        Of the wrench, in its frame, (6, 6).

    """
    J = np.empty((3, 6))
    J[:, :3] = height * np.eye(3) - np.outer(point, normal)
    J[:, 3:] = skew(np.asarray(normal))
    J /= force
    found: Array = J.dot(covariance).dot(J.T)
    return found


def centre_of_pressure(wrench: Sequence[float], normal: Sequence[float] = _VERTICAL,
                       height: float = 0.0, minimum_force: float = 0.0) -> Vector | None:
    """
    Return the point of a plane about which a contact wrench has no moment along the plane.

    Of the wrench of one sole that is its centre of pressure, of the total contact wrench the
    zero-moment point. The plane holds the points p with ``normal . p == height``; by default it
    is the plane z = 0 of the wrench's frame. There ``p = (normal x M + height F) / (normal . F)``.

    Parameters
    ----------
    wrench
        (6,) in any frame, N and N m.
    normal
        Unit normal of the plane in that frame, (3,).
    height
        Distance of the plane from the frame's origin along `normal`, m.
    minimum_force
        Force along the normal, N, at or below which there is no such point.

    Returns
    -------
    tuple of three floats or None
        In the frame of the wrench, m; None where the force is too small, or not finite.

    """
    fx, fy, fz, mx, my, mz = wrench
    nx, ny, nz = normal
    force = nx * fx + ny * fy + nz * fz
    if not max(minimum_force, 0.0) < force < math.inf:
        return None
    return ((ny * mz - nz * my + height * fx) / force, (nz * mx - nx * mz + height * fy) / force,
            (nx * my - ny * mx + height * fz) / force)


def cop_on_sole(wrench: Sequence[float]) -> tuple[float, float]:
    """
    Return x and y of :func:`centre_of_pressure` in the plane z = 0 of the wrench's frame.

    For callers that know that the force along z, wrench[2], is not zero: it is not checked here.

    Parameters
    ----------
    wrench
        (6,), N and N m.

    Returns
    -------
    tuple of two floats
        In the frame of the wrench, m.

    """
    _, _, fz, mx, my, _ = wrench
    return -my / fz, mx / fz


class ComLine(NamedTuple):
    """
    The line that holds the CoM at rest: ``X = alpha + beta Z``, ``Y = gamma + delta Z``.

    `alpha` and `gamma` in m, `beta` and `delta` without unit, in a frame whose z axis opposes
    gravity (Muscolo et al. 2017, equations (10)-(15)).
    """

    alpha: float
    beta: float
    gamma: float
    delta: float

    def at_height(self, z: float) -> Array:
        """Return the point (3,) of the line at height `z`, m."""
        return np.array([self.alpha + self.beta * z, self.gamma + self.delta * z, z])


def com_line(wrench: ArrayLike) -> ComLine:
    """
    Return the line that must hold the CoM of a robot at rest under a total contact wrench.

    At rest the contacts carry the weight, so the moment of the total contact wrench about the
    CoM has no horizontal component. That gives, with the total force F and total moment M about
    the origin, ``alpha = -M_Y / F_Z``, ``beta = F_X / F_Z``, ``gamma = M_X / F_Z`` and
    ``delta = F_Y / F_Z`` (Muscolo et al. 2017, equations (8)-(15), for any number of contacts
    anywhere; their (8)-(9) are two contacts at (0, -l, 0) and (0, l, 0)). On level ground beta
    and delta vanish, so a single pose does not determine the height of the CoM.

    The paper adds the sum of the joint torques to M. Joint torques are internal and cancel;
    adding them moves X by ``-M_Y2 / F_Z``, up to 0.1 m. They are left out here
    (:func:`biped_com_ros.papers.muscolo_2017.com_line_as_printed` has them).

    Parameters
    ----------
    wrench
        Total (6,) about the origin of a gravity-aligned frame; from several contacts by
        :func:`sum_wrenches`.

    Raises
    ------
    InputError
        If the vertical force is not positive, or the line not finite.

    """
    fx, fy, fz, mx, my, _ = np.asarray(wrench, dtype=float).tolist()
    if not fz > 0.0:
        raise InputError(f'the total vertical force is {fz} N; the CoM line needs a positive one')
    alpha, gamma = cop_on_sole((fx, fy, fz, mx, my, 0.0))
    line = ComLine(alpha, fx / fz, gamma, fy / fz)
    if not all(map(math.isfinite, line)):
        raise InputError(f'the total wrench {[fx, fy, fz, mx, my]} gives no CoM line: its values '
                         'must be finite, and its vertical force that of a robot')
    return line


def set_weight_matrix(out: Array, mass: float, com_in_frame: Array) -> Array:
    """
    Write the matrix W that turns the gravity vector of a frame into the weight wrench of a body.

    ``W @ gravity_in_frame`` is the wrench (6,) that gravity exerts on a body of `mass` (kg) whose
    CoM is at `com_in_frame` (3,), m, about the origin of that frame.

    This is what a sensor carrying the body reads at rest when nothing touches it. The body's
    inertial force ``-m a`` is ignored: for a stance foot it is negligible, for a foot swinging at
    10 m/s2 it is as large as the weight.

    Parameters
    ----------
    out
        (6, 3), all zero or written before; also returned.
    mass, com_in_frame
        Of the body.

    """
    x, y, z = (mass * com_in_frame).tolist()
    out[0, 0] = out[1, 1] = out[2, 2] = mass
    out[3, 1], out[3, 2] = -z, y
    out[4, 0], out[4, 2] = z, -x
    out[5, 0], out[5, 1] = -y, x
    return out
