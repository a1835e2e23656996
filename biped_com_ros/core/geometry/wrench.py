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

Everything takes stacks of wrenches, (..., 6), and the functions on the path of every message
write into arrays of the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array
import numpy as np
from numpy.typing import ArrayLike
import pinocchio as pin

Z_AXIS = np.array([0.0, 0.0, 1.0])
Z_AXIS.setflags(write=False)


def largest_credible_load(mass: float) -> float:
    """
    Return what no sensor of a robot truly feels: N, or N m about a point of the robot.

    About a hundred times the weight: hard landings bring it to ten, simulated ones to more.

    Parameters
    ----------
    mass
        Of the robot, kg.

    """
    return 1000.0 * mass


def skew(vector: ArrayLike) -> Array:
    """Return the matrices (..., 3, 3) whose product with `b` is the cross product with `b`."""
    v = np.asarray(vector, dtype=float)
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2] = -v[..., 2], v[..., 1]
    matrix[..., 1, 0], matrix[..., 1, 2] = v[..., 2], -v[..., 0]
    matrix[..., 2, 0], matrix[..., 2, 1] = -v[..., 1], v[..., 0]
    return matrix


def wrench_adjoint(R_A_B: ArrayLike, p_B_in_A: ArrayLike) -> Array:
    """
    Build X_A_B, which moves wrenches from frame B to frame A.

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
        single: Array = pin.SE3(R, p).toDualActionMatrix()  # five times faster than arrays
        return single
    adjoint = np.zeros((*R.shape[:-2], 6, 6))
    adjoint[..., :3, :3] = R
    adjoint[..., 3:, 3:] = R
    np.matmul(skew(p), R, out=adjoint[..., 3:, :3])
    return adjoint


def transform_wrench(R_A_B: ArrayLike, p_B_in_A: ArrayLike, wrench_in_B: ArrayLike) -> Array:
    """Return wrenches (..., 6) of frame B as seen from frame A (:func:`wrench_adjoint`)."""
    R, p, wrench = np.asarray(R_A_B), np.asarray(p_B_in_A), np.asarray(wrench_in_B)
    if R.ndim == 2 and p.ndim == wrench.ndim == 1:
        single: Array = pin.SE3(R, p).act(pin.Force(wrench)).vector.copy()
        return single
    moved: Array = (wrench_adjoint(R, p) @ wrench[..., None])[..., 0]
    return moved


class WrenchSum:
    """
    Adds up the wrenches of n frames in one common frame, without allocating.

    Parameters
    ----------
    n
        Number of frames.

    """

    def __init__(self, n: int) -> None:
        self._turned = np.empty((n, 2, 3))
        self._columns = np.empty((2, 3))
        self._products = np.empty((3, 3))

    def into(self, out: Array, R_A_frames: Array, p_frames_in_A: Array, wrenches: Array) -> Array:
        """
        Write the total wrench in A to `out`.

        Parameters
        ----------
        out
            (6,), N and N m about the origin of A.
        R_A_frames, p_frames_in_A
            Rotations (n, 3, 3) and origins (n, 3) of the frames in A.
        wrenches
            (n, 6), each in its own frame; contiguous.

        """
        turned, S = self._turned, self._products
        np.matmul(wrenches.reshape(turned.shape), R_A_frames.transpose(0, 2, 1), out=turned)
        np.add.reduce(turned, axis=0, out=self._columns)
        np.matmul(p_frames_in_A.T, turned[:, 0], out=S)
        fx, fy, fz, mx, my, mz = self._columns.ravel().tolist()
        # The sum of all p x f is the antisymmetric part of the sum of all p fT.
        _, xy, xz, yx, _, yz, zx, zy, _ = S.ravel().tolist()
        out[:] = fx, fy, fz, mx + yz - zy, my + zx - xz, mz + xy - yx
        return out


def sum_wrenches(R_A_frames: ArrayLike, p_frames_in_A: ArrayLike, wrenches: ArrayLike) -> Array:
    """Return the total (6,) in A of wrenches (n, 6) given in n frames; see :class:`WrenchSum`."""
    stack = np.ascontiguousarray(wrenches, dtype=float)
    return WrenchSum(len(stack)).into(
        np.empty(6), np.asarray(R_A_frames, dtype=float),
        np.asarray(p_frames_in_A, dtype=float), stack)


def centre_of_pressure(wrench: ArrayLike, normal: ArrayLike = Z_AXIS, height: float = 0.0,
                       minimum_force: float = 0.0) -> Array:
    """
    Return where the wrench pierces a plane without a moment along the plane.

    The plane holds the points p with ``normal . p == height``; there
    ``p = (normal x M + height F) / (normal . F)``.

    Parameters
    ----------
    wrench
        (..., 6) in any frame, N and N m.
    normal
        Unit normal of the plane in that frame, (3,).
    height
        Distance of the plane from the frame's origin along `normal`, m.
    minimum_force
        Normal force, N, at or below which there is no centre of pressure.

    Returns
    -------
    array (..., 3)
        The point in the frame of the wrench, m; NaN where the force is too small.

    """
    w, n = np.asarray(wrench, dtype=float), np.asarray(normal, dtype=float)
    force = w[..., :3] @ n
    force = np.where(force > max(minimum_force, 0.0), force, np.nan)[..., None]
    return np.asarray((np.cross(n, w[..., 3:]) + height * w[..., :3]) / force)


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


def com_line(wrench: ArrayLike, joint_torque_sum: ArrayLike | None = None) -> ComLine:
    """
    Return the line that must hold the CoM of a robot at rest under a total contact wrench.

    At rest the contacts carry the weight, so the moment of the total contact wrench about the
    CoM has no horizontal component. That gives, with the total force F and total moment M about
    the origin, ``alpha = -M_Y / F_Z``, ``beta = F_X / F_Z``, ``gamma = M_X / F_Z`` and
    ``delta = F_Y / F_Z`` (Muscolo et al. 2017, equations (8)-(15), for any number of contacts
    anywhere; their (8)-(9) are two contacts at (0, -l, 0) and (0, l, 0)). On level ground beta
    and delta vanish, so a single pose says nothing about the height of the CoM.

    The paper adds the sum of the joint torques to M. Joint torques are internal and cancel;
    adding them moves X by ``-M_Y2 / F_Z``, up to 0.1 m. They are left out here.

    Parameters
    ----------
    wrench
        Total (6,) about the origin of a gravity-aligned frame; from several contacts by
        :func:`sum_wrenches`.
    joint_torque_sum
        The paper's M2 (3,), N m, added as printed; for reproducing the paper only.

    Raises
    ------
    ValueError
        If the vertical force is not positive.

    """
    fx, fy, fz, mx, my, _ = np.asarray(wrench, dtype=float).tolist()
    if not fz > 0.0:
        raise ValueError(f'the total vertical force is {fz} N; the CoM line needs a positive one')
    if joint_torque_sum is not None:
        extra_mx, extra_my, _ = np.asarray(joint_torque_sum, dtype=float).tolist()
        mx, my = mx + extra_mx, my + extra_my
    return ComLine(-my / fz, fx / fz, mx / fz, fy / fz)


def weight_matrix(mass: float, com_in_frame: ArrayLike) -> Array:
    """
    Return W (6, 3) that turns the gravity vector of a frame into the weight wrench of a body.

    ``W @ gravity_in_frame`` is the wrench (6,) that gravity exerts on a body of `mass` (kg) whose
    CoM is at `com_in_frame` (3,), m, about the origin of that frame.

    This is what a sensor carrying the body reads at rest when nothing touches it. The body's
    inertial force ``-m a`` is ignored: at the accelerations of a stance foot it is nothing, on a
    foot swinging at 10 m/s2 it is as large as its weight.
    """
    return set_weight_matrix(np.zeros((6, 3)), mass, np.asarray(com_in_frame, dtype=float))


def set_weight_matrix(out: Array, mass: float, com_in_frame: Array) -> Array:
    """Write :func:`weight_matrix` to `out` (6, 3), which is all zero or was written before."""
    x, y, z = (mass * com_in_frame).tolist()
    out[0, 0] = out[1, 1] = out[2, 2] = mass
    out[3, 1], out[3, 2] = -z, y
    out[4, 0], out[4, 2] = z, -x
    out[5, 0], out[5, 1] = -y, x
    return out
