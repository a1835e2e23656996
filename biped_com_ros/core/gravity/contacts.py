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
Where a robot may touch its environment: the soles of its feet, and its hands as points.

There, :func:`minimum_norm` finds wrenches that add up to a force and a moment, in closed form:
the minimum of ``sum (|force_k|^2 + |torque_k|^2 / L_k^2) / share_k``, about the mean p of the
contacts p_k weighted by their shares (r_k = p_k - p, F and m the force and its moment about p):

    force_k = share_k (F + mu x r_k)    torque_k = share_k L_k^2 mu    D mu = m
    D = sum share_k (L_k^2 + |r_k|^2 - r_k r_k^T)

A contact with share zero gets exactly zero, and wrenches are continuous in the shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.polygon import centroid, half_planes, Point
from biped_com_ros.core.geometry.pose import Pose, Vector
from biped_com_ros.core.geometry.wrench import Wrench
from biped_com_ros.core.model.config import HandConfig
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

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


UP = 0.0, 0.0, 1.0


class ContactPoint:
    """
    A foot or a hand.

    Parameters
    ----------
    name
        Of a foot or hand in the robot's configuration.
    polygon
        Corners (x, y) of the contact area in the contact's frame, counter-clockwise, m; empty
        for a hand.
    lever
        Torque length L_k, m: a torque of 1 N m costs as much as a force of 1/L_k N. Zero: the
        contact transmits no torque.
    normal
        Of the surface, in the contact's frame, towards the robot (3,), of any length; None where
        it is not known, or does not matter.
    grips
        Whether the contact may also pull, in any direction.

    Attributes
    ----------
    normal
        The same with length 1, or None.
    centre
        Centroid (x, y) of the area, m; the origin for a hand. The reference point of the torque:
        a sole with uniform pressure has its centre of pressure there.
    edges
        Per edge of the polygon (offset, along_x, along_y), m, 1 and 1: a wrench at the centre has
        its centre of pressure ``offset + (along_x m_x + along_y m_y) / f_z`` inside the edge, m.

    """

    def __init__(self, name: str, polygon: tuple[Point, ...], lever: float,
                 normal: Sequence[float] | None = UP, grips: bool = False) -> None:
        self.name, self.polygon, self.lever, self.grips = name, polygon, lever, grips
        self.normal = None if normal is None else tuple(
            component / math.hypot(*normal) for component in normal)
        self.centre: Point = centroid(polygon) if polygon else (0.0, 0.0)
        x, y = self.centre
        # The centre of pressure is (-m_y, m_x) / f_z; inside where a x + b y >= c.
        self.edges = [(-c, b, -a) for a, b, c in half_planes(
            [(px - x, py - y) for px, py in polygon])]

    def pressing(self, wrench: Sequence[float]) -> float:
        """Return the normal force of a wrench (6,) in the contact's axes; without one, any, N."""
        if self.normal is None:
            return math.hypot(*wrench[:3])
        return sum(component * force for component, force in zip(self.normal, wrench))


def find_contacts(model: RobotModel, names: Iterable[str] | None, lever: float,
                  ) -> tuple[tuple[ContactPoint, ...], FrameSet]:
    """
    Return contacts, and their frames moved to the contacts' centres.

    Parameters
    ----------
    model
        The robot.
    names
        Of feet and hands; None: the feet. A hand with the name of a foot is ``<name>_hand``.
    lever
        Of feet, m; of hands it is zero.

    Raises
    ------
    UnknownNameError
        If a name is of neither foot nor hand.

    """
    config = model.config
    feet = [ContactPoint(name, foot.polygon, lever) for name, foot in config.feet.items()]
    hands = [ContactPoint(config.hand_label(name), (), 0.0, _normal_of(hand),
                          hand.contact == 'grip') for name, hand in config.hands.items()]
    frames = model.soles + model.frames(hand.frame for hand in config.hands.values())
    index = {contact.name: i for i, contact in enumerate([*feet, *hands])}
    chosen = []
    for name in config.feet if names is None else names:
        if name not in index:
            raise UnknownNameError('contact', name, index, config.name)
        chosen.append(index[name])
    contacts = tuple([*feet, *hands][i] for i in chosen)
    in_joint = frames.poses_in_joint()
    poses = [in_joint[i] @ Pose(np.eye(3), np.array((*contact.centre, 0.0)))
             for i, contact in zip(chosen, contacts)]
    return contacts, FrameSet([contact.name for contact in contacts],
                              [int(frames.joints[i]) for i in chosen], poses)


def _normal_of(hand: HandConfig) -> Sequence[float] | None:
    return None if hand.contact == 'grip' or not any(hand.normal) else hand.normal
