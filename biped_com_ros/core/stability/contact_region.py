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
The region of support of contacts anywhere: feet on stairs and slopes, hands on rails and walls.

Feet on one plane span a polygon (:mod:`~biped_com_ros.core.stability.support`). With contacts at
other heights and tilts it depends on friction, and on how hard a hand can push or pull, where the
robot may be: its centre of mass, at rest, above the points for which forces within the friction
cones balance gravity (Bretl and Lall 2008), and the zero-moment point, in motion, where such
forces pass through the centre of mass (Caron, Pham, Nakamura 2017). Both are polygons: shadows of
the polyhedron of admissible forces (:func:`~biped_com_ros.core.geometry.projection.project`).
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import hull_of, Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.projection import project
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.stability.contacts import Contact
from biped_com_ros.core.stability.support import SupportPolygon
import numpy as np

#: Limit of the sum of the contacts' coefficients, over the weight: without it, contacts that face
#: each other could be pressed together with any force, and hold everything.
LARGEST_LOAD = 4.0
#: By how much contacts and centre of mass may move until the region is computed anew, m and rad.
_SAME = 5e-4


def com_region(contacts: Sequence[Contact], weight: float,
               height: float = 0.0) -> SupportPolygon | None:
    """
    Return where the projected centre of mass of a robot at rest may be.

    Parameters
    ----------
    contacts
        At least one.
    weight
        Of the robot, N.
    height
        Of the level plane in which the region is returned, m; its shape does not depend on it.

    Returns
    -------
    SupportPolygon or None
        None if the contacts cannot carry the robot, wherever its centre of mass is.

    Raises
    ------
    InputError
        If a number is not finite, or the weight not positive.

    """
    centre = np.mean([contact.pose.position for contact in contacts], axis=0)
    generators = _generators_about(centre, contacts)
    x, y, _ = centre.tolist()
    # The force is (0, 0, 1) and the moment about the mean of the contacts (y, -x, 0), in weights.
    corners = _corners(contacts, weight, generators[[2, 0, 1, 5]], 1.0,
                       np.array((-generators[4], generators[3])), (x, y))
    return None if corners is None else SupportPolygon(Plane.level(height), corners)


def zmp_region(contacts: Sequence[Contact], weight: float, com_in_world: Array,
               plane: Plane) -> SupportPolygon | None:
    """
    Return where the zero-moment point may be on a plane, with the centre of mass where it is.

    The centre of mass keeps its distance from the plane, and the angular momentum about it stays,
    as in a linear inverted pendulum: the sum of the forces passes through it.

    Parameters
    ----------
    contacts
        At least one.
    weight
        Of the robot, N.
    com_in_world
        Centre of mass, shape (3,), m.
    plane
        Below the centre of mass.

    Returns
    -------
    SupportPolygon or None
        None if the contacts cannot exert such forces.

    Raises
    ------
    InputError
        If the centre of mass is not above the plane, a number is not finite, or the weight not
        positive.

    """
    x, y, height = plane.coordinates(*com_in_world.tolist())
    if not height > 0.0:
        raise InputError(f'the centre of mass is {-height:.3g} m below the plane of support')
    generators = _generators_about(com_in_world, contacts)
    along_plane = np.array(plane[:3]) @ generators[:3]
    # Normal to the plane, the force balances that part of gravity; its line from the centre of
    # mass meets the plane at the zero-moment point.
    normal_force = plane.normal[2]
    corners = _corners(contacts, weight, np.vstack((along_plane[2], generators[3:])), normal_force,
                       -height / normal_force * along_plane[:2], (x, y))
    return None if corners is None else SupportPolygon(plane, corners)


class LastZmpRegion:
    """The region of :func:`zmp_region`, computed anew only when something has moved."""

    def __init__(self) -> None:
        self._inputs: Array = np.zeros(0)
        self._region: SupportPolygon | None = None

    def update(self, contacts: Sequence[Contact], weight: float, com_in_world: Array,
               plane: Plane) -> SupportPolygon | None:
        """Return the region; the last one if contacts, weight and CoM are those of it."""
        parts = [contact.generators_in_world.ravel() for contact in contacts]
        loads = [weight / contact.largest_force for contact in contacts]  # 0 without a limit
        inputs = np.concatenate((
            *parts, loads, [len(part) for part in parts], com_in_world, plane.normal,
            [plane.height]))
        if inputs.shape != self._inputs.shape or not (
                np.abs(inputs - self._inputs).max() < _SAME):  # NaN neither
            self._region = zmp_region(contacts, weight, com_in_world, plane)
            self._inputs = inputs
        return self._region


def _generators_about(point: Array, contacts: Sequence[Contact]) -> Array:
    """Return the generators of all contacts, shape (6, n), about a point of the world."""
    generators = np.hstack([contact.generators_in_world for contact in contacts])
    generators[3:] -= skew(point) @ generators[:3]
    return generators


def _corners(contacts: Sequence[Contact], weight: float, equations: Array, first_right_side: float,
             values: Array, origin: Point) -> tuple[Point, ...] | None:
    """
    Return the corners of the region around `origin`, with forces in weights.

    The first equation has a right side, the others have none.
    """
    if not 0.0 < weight < math.inf:
        raise InputError(f'the weight must be positive and finite, not {weight:g} N')
    right_side = np.zeros(len(equations))
    right_side[0] = first_right_side
    points = project(equations, right_side, values, *_limits(contacts, weight))
    if points is None:
        return None
    x, y = origin
    return hull_of([(x + dx, y + dy) for dx, dy in points])


def _limits(contacts: Sequence[Contact], weight: float) -> tuple[Array, Array]:
    """Return the sums of coefficients that are limited, (k, n), and their limits in weights."""
    sums, limits, begin = [], [LARGEST_LOAD], 0
    for contact in contacts:
        end = begin + contact.generators.shape[1]
        if contact.largest_force < math.inf:
            sums.append((begin, end))
            limits.append(contact.largest_force / weight)
        begin = end
    limited = np.zeros((len(limits), begin))
    limited[0] = 1.0
    for row, (first, last) in enumerate(sums, 1):
        limited[row, first:last] = 1.0
    return limited, np.array(limits)
