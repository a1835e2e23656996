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
Weighted minimum-norm contact wrenches that add up to a force and a moment, in closed form.

The minimum of ``sum (|force_k|^2 + |torque_k|^2 / L_k^2) / share_k``, about the mean p of the
contacts p_k weighted by their shares (r_k = p_k - p, F and m the force and its moment about p):

    force_k = share_k (F + mu x r_k)    torque_k = share_k L_k^2 mu    D mu = m
    D = sum share_k (L_k^2 + |r_k|^2 - r_k r_k^T)

A contact with share zero gets exactly zero, and wrenches are continuous in the shares.
"""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Vector
from biped_com_ros.core.geometry.wrench import Wrench

#: Determinant of D below which it counts as singular, over the cube of its largest diagonal.
_SINGULAR = 1e-12


def minimum_norm_wrenches(force: Sequence[float], moment: Sequence[float],
                          points: Sequence[Sequence[float]], shares: Sequence[float],
                          levers: Sequence[float]) -> list[Wrench]:
    """
    Return the wrench at each contact point.

    Computed with Python floats: for few contacts that takes a third of the time of arrays.

    Parameters
    ----------
    force, moment
        The sum of the wrenches (3,), N, and its moment about the origin (3,), N m.
    points
        Where the wrenches act, (K, 3), m.
    shares, levers
        Weights (K,), sum 1, and L_k (K,), m.

    Raises
    ------
    InputError
        If the contacts with a share are points on one line: no moment about it is possible.

    """
    px = py = pz = 0.0
    for share, (x, y, z) in zip(shares, points):
        px, py, pz = px + share * x, py + share * y, pz + share * z
    arms = []
    xx = yy = zz = xy = xz = yz = 0.0  # of D
    for share, (x, y, z), lever in zip(shares, points, levers):
        x, y, z, torque = x - px, y - py, z - pz, share * lever * lever
        ax, ay, az = share * x, share * y, share * z
        xx += torque + ay * y + az * z
        yy += torque + ax * x + az * z
        zz += torque + ax * x + ay * y
        xy, xz, yz = xy - ax * y, xz - ax * z, yz - ay * z
        arms.append((share, x, y, z, torque))
    (fx, fy, fz), (mx, my, mz) = force, moment
    ux, uy, uz = _solve_symmetric(
        (xx, yy, zz, xy, xz, yz),
        (mx - py * fz + pz * fy, my - pz * fx + px * fz, mz - px * fy + py * fx))
    return [(share * (fx + uy * z - uz * y), share * (fy + uz * x - ux * z),
             share * (fz + ux * y - uy * x), torque * ux, torque * uy, torque * uz)
            for share, x, y, z, torque in arms]


def _solve_symmetric(matrix: Wrench, rhs: Vector) -> Vector:
    """Solve D u = rhs by cofactors, D given as (xx, yy, zz, xy, xz, yz)."""
    (xx, yy, zz, xy, xz, yz), (a, b, c) = matrix, rhs
    c00, c01, c02 = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    c11, c12, c22 = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    det = xx * c00 + xy * c01 + xz * c02
    if not det > _SINGULAR * max(xx, yy, zz) ** 3:
        raise InputError(
            'the contacts are points on one line and cannot balance a moment about it: add a '
            'foot, or a contact beside the line')
    return ((c00 * a + c01 * b + c02 * c) / det, (c01 * a + c11 * b + c12 * c) / det,
            (c02 * a + c12 * b + c22 * c) / det)
