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
The support polygon: what the soles on the ground span, and how far a point is from its edge.

The plane of support passes through the mean of the soles in contact and is perpendicular to the
mean of their normals. That is the ground itself under one sole or under soles in one plane, level
or tilted. On stairs it is a level plane halfway between the soles, onto which their corners are
projected. There a zero-moment point inside the polygon is necessary for all soles to keep their
contact only if the tangential forces at the soles are in balance: otherwise these shift it by
``sum(height f_tangential) / f_normal``, with the heights of the soles over the plane
(:attr:`SupportPolygon.unevenness`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math

from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import (
    area, distances_inside, half_planes, hull_of, Margin, margin, Point, THIN)
from biped_com_ros.core.geometry.pose import Array, Placement, Pose, Vector
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.contacts import Contact, surface_contact
from biped_com_ros.core.stability.rolling import Part
import numpy as np

#: Cosine of the angle between soles from which one of them rolls instead of standing on a step.
_PARALLEL = 0.995


class SupportPolygon:
    """
    A convex polygon in a plane.

    Parameters
    ----------
    plane
        The plane.
    corners
        Counter-clockwise about the normal, along the axes of the plane, m; two corners are
        a line, one is a point.
    soles
        Placement of each sole in contact, and its outline: what spans it.

    Attributes
    ----------
    plane, corners
        The same.

    """

    def __init__(self, plane: Plane, corners: tuple[Point, ...],
                 soles: Sequence[tuple[Placement, Sequence[Point]]] = ()) -> None:
        self.plane, self.corners = plane, corners
        self._soles = soles
        self._half_planes = half_planes(corners)
        self._edge_distances: dict[Vector, list[float]] = {}

    @property
    def unevenness(self) -> float:
        """
        Largest distance of a sole's corner from the plane, m.

        Zero where all soles in contact lie in it.
        """
        heights = [0.0]
        for (x_axis, y_axis, _, origin), outline in self._soles:
            points = np.array(outline).dot((x_axis, y_axis)) + origin
            heights += np.abs(self.plane.to_plane(points)[:, 2]).tolist()
        return max(heights)

    @property
    def corners_in_world(self) -> Array:
        """Return the corners, shape (k, 3), m."""
        (xx, xy, xz), (yx, yy, yz), _, (ox, oy, oz) = self.plane
        numbers: list[float] = []  # one flat list: an array of tuples takes twice as long
        for x, y in self.corners:
            numbers += (ox + x * xx + y * yx, oy + x * xy + y * yy, oz + x * xz + y * yz)
        return np.array(numbers).reshape(-1, 3)

    @property
    def area(self) -> float:
        """Area of the polygon, m^2."""
        return area(self.corners)

    def margin(self, point: Array) -> Margin:
        """
        Return how far a point of the plane is from the edge.

        Parameters
        ----------
        point
            In the world, shape (3,), m; its height over the plane does not count.

        """
        return margin(self.corners, self.plane.coordinates(*point.tolist())[:2])

    def distance(self, point: Vector) -> float:
        """Return the distance of :meth:`margin`, m, of a point as Python floats."""
        distances = self._distances(point)
        least = min(distances) if distances else 0.0
        return least if least > THIN else self.margin(np.array(point)).distance

    def time_to_edge(self, dcm: Vector, zmp: Vector, omega_0: float) -> float:
        """
        Return when the DCM will leave the polygon if the ZMP stays where it is, s.

        From there on no ZMP inside the polygon brings the robot to rest: it has to step, to hold
        on, or falls.

        Parameters
        ----------
        dcm, zmp
            Points of the plane in the world, m.
        omega_0
            Natural frequency of the pendulum, rad/s.

        Returns
        -------
        float
            0 if the DCM is outside already, infinite if it never gets there.

        Notes
        -----
        ``dcm(t) = zmp + exp(omega_0 t) (dcm - zmp)``, a straight line through each edge in turn.

        """
        at_dcm = self._distances(dcm)
        if min(at_dcm, default=0.0) <= 0.0:
            return 0.0
        growth = math.inf
        for now, first in zip(at_dcm, self._distances(zmp)):
            if first > now and first < growth * (first - now):
                growth = first / (first - now)
        return math.log(max(growth, 1.0)) / omega_0

    def _distances(self, point: Vector) -> list[float]:
        """Return the distance of a point from the line of each edge, positive inside, m."""
        found = self._edge_distances.get(point)
        if found is None:
            found = self._edge_distances[point] = distances_inside(
                self._half_planes, self.plane.coordinates(*point)[:2])
        return found


class Soles:
    """
    The soles of a robot, ready to span support polygons.

    Placements of soles are four rows of numbers: their axes in the common frame, then the
    position in it, m (:attr:`RobotState.sole_placements_in_world`). For a few soles Python floats
    are faster than arrays.

    Parameters
    ----------
    polygons
        Corners of each sole in its sole frame, (k, 2) each, m.

    """

    def __init__(self, polygons: Iterable[Sequence[Point]]) -> None:
        self._outlines = [[(float(x), float(y)) for x, y in corners] for corners in polygons]

    @classmethod
    def of(cls, model: RobotModel) -> Soles:
        """Return the polygons of a robot's configuration."""
        return cls(foot.polygon for foot in model.config.feet.values())

    def support(self, placements: Array, in_contact: Sequence[bool]) -> SupportPolygon | None:
        """
        Return the polygon that the soles in contact span; None while no sole is in contact.

        Parameters
        ----------
        placements
            Of all soles in the world, shape (F, 4, 3).
        in_contact
            Which of them are on the ground.

        Raises
        ------
        InputError
            If the soles in contact look sideways or down.

        """
        soles = placements.tolist()
        plane = self.plane(soles, in_contact)
        return None if plane is None else self.polygon(plane, soles, in_contact)

    def plane(self, soles: Sequence[Placement], in_contact: Sequence[bool],
              parts: Sequence[Part] = (), normal: Vector = (0.0, 0.0, 1.0)) -> Plane | None:
        """
        Return the plane of support; None while no sole is in contact.

        Parameters
        ----------
        soles
            Placements of all soles in the world.
        in_contact
            Which of them are on the ground.
        parts, normal
            What touches of soles that roll, and the normal of the ground below these; see
            :class:`RollingSoles`.

        Raises
        ------
        InputError
            If the soles in contact look sideways or down.

        """
        count = 0
        nx = ny = nz = x = y = z = 0.0
        if parts:
            soles = [sole if part is None else _grounded(sole, part, normal)
                     for sole, part in zip(soles, parts)]
        for touches, (_, _, (a, b, c), (d, e, f)) in zip(in_contact, soles):
            if touches:
                count += 1
                nx, ny, nz, x, y, z = nx + a, ny + b, nz + c, x + d, y + e, z + f
        return None if not count else Plane.with_normal(
            (nx, ny, nz), (x / count, y / count, z / count))

    def are_steps(self, plane: Plane, soles: Sequence[Placement], in_contact: Sequence[bool],
                  height: float) -> bool:
        """Return whether parallel soles are further than `height`, m, from the plane."""
        (nx, ny, nz), (px, py, pz) = plane.normal, plane.origin
        furthest = 0.0
        for touches, (_, _, (a, b, c), (x, y, z)) in zip(in_contact, soles):
            if touches:
                if a * nx + b * ny + c * nz < _PARALLEL:  # a foot that rolls
                    return False
                furthest = max(furthest, abs((x - px) * nx + (y - py) * ny + (z - pz) * nz))
        return furthest > height

    def contacts(self, soles: Sequence[Placement], in_contact: Sequence[bool], friction: float,
                 parts: Sequence[Part] = (), normal: Vector = (0.0, 0.0, 1.0)) -> list[Contact]:
        """Return the soles in contact as contacts with friction; see :meth:`plane`."""
        found = []
        for touches, sole, outline, part in zip(
                in_contact, soles, self._outlines, parts or (None,) * len(soles)):
            if touches and part is not None:
                ground = _grounded(sole, part, normal)
                outline, sole = _projected(ground, sole, part), ground
            if touches:
                found.append(surface_contact(
                    Pose(np.array(sole[:3]).T, np.array(sole[3])), outline, friction))
        return found

    def polygon(self, plane: Plane, soles: Sequence[Placement], in_contact: Sequence[bool],
                parts: Sequence[Part] = ()) -> SupportPolygon:
        """
        Return the polygon that the soles in contact span in the plane.

        Parameters
        ----------
        plane
            The plane of support.
        soles
            Placements of all soles in the world.
        in_contact
            Which of them, at least one, are on the ground.
        parts
            What touches of soles that roll; empty: none rolls.

        """
        outlines = [outline if part is None else part for outline, part in zip(
            self._outlines, parts)] if parts else self._outlines
        touching = [(sole, outline) for touches, sole, outline in zip(
            in_contact, soles, outlines) if touches]
        points: list[Point] = []
        for sole, outline in touching:
            points += _projected(plane, sole, outline)
        return SupportPolygon(plane, hull_of(points), touching)


def _grounded(sole: Placement, part: Sequence[Point], normal: Vector) -> Plane:
    """Return the ground below the middle of a part of a sole."""
    (a, b, c), (d, e, f), _, (x, y, z) = sole
    s, t = (sum(column) / len(part) for column in zip(*part))
    return Plane.with_normal(normal, (x + s * a + t * d, y + s * b + t * e, z + s * c + t * f))


def _projected(plane: Plane, sole: Placement, outline: Sequence[Point]) -> list[Point]:
    """Return corners of a sole along the axes of the plane."""
    (xx, xy, xz), (yx, yy, yz), _, (ox, oy, oz) = plane
    (a, b, c), (d, e, f), _, (x, y, z) = sole
    x, y, z = x - ox, y - oy, z - oz
    from_x, from_y = x * xx + y * xy + z * xz, x * yx + y * yy + z * yz
    # The sole's axes, each along those of the plane.
    ux, uy = a * xx + b * xy + c * xz, a * yx + b * yy + c * yz
    vx, vy = d * xx + e * xy + f * xz, d * yx + e * yy + f * yz
    return [(from_x + s * ux + t * vx, from_y + s * uy + t * vy) for s, t in outline]


def support_polygon(poses: Sequence[Pose], polygons: Sequence[Sequence[Point]],
                    in_contact: Sequence[bool] | None = None) -> SupportPolygon | None:
    """
    Return what soles at `poses` in the world span; :class:`Soles` for the loop.

    Parameters
    ----------
    poses
        Of each sole frame in the world.
    polygons
        Corners of each sole in its frame, m.
    in_contact
        Which soles are on the ground; by default all.

    """
    placements = np.array([(*pose.rotation.T, pose.position) for pose in poses])
    return Soles(polygons).support(placements, in_contact or (True,) * len(polygons))
