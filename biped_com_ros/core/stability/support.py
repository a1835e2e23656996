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

The plane of support passes through the mean of the soles in contact, across the mean of their
normals. That is the ground itself under one sole or under soles in one plane, level or tilted. On
stairs it is a level plane halfway between the soles, to which their corners are dropped. A
zero-moment point inside the polygon is then necessary for all soles to stay put only as far as
the tangential forces at the soles are in balance: they shift it by ``sum(height f_tangential) /
f_normal``, with the heights of the soles over the plane (:attr:`SupportPolygon.unevenness`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, components, Pose
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

Point = tuple[float, float]
Vector = tuple[float, float, float]
Placement = Sequence[Sequence[float]]
Wrench = tuple[float, float, float, float, float, float]

_THIN = 1e-9
"""Nearer to an edge than this, m, a point is not known to be inside by the edges' lines."""


class Plane(NamedTuple):
    """
    A plane in the world, with axes of its own.

    Plain numbers: one is made at every instant.

    Attributes
    ----------
    x_axis, y_axis, normal
        Its axes along those of the world; the last one is the unit normal.
    origin
        A point of the plane, m.

    """

    x_axis: Vector
    y_axis: Vector
    normal: Vector
    origin: Vector

    @staticmethod
    def across(normal: Iterable[float], origin: Iterable[float]) -> Plane:
        """
        Build from a normal of any length and a point, three numbers each.

        The plane's x axis is the world's, turned as little as needed.

        Raises
        ------
        InputError
            If the normal has no direction, or the plane is upright.

        """
        nx, ny, nz = normal
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if not nz > 0.05 * length:
            raise InputError(
                f'the ground cannot have the normal ({nx:.3g}, {ny:.3g}, {nz:.3g}): its z must be '
                'positive (check the direction of the sole frames)')
        nx, ny, nz = nx / length, ny / length, nz / length
        level = math.hypot(nx, nz)
        xx, xz = nz / level, -nx / level  # across y and the normal
        x, y, z = origin
        return Plane((xx, 0.0, xz), (ny * xz, nz * xx - nx * xz, -ny * xx), (nx, ny, nz),
                     (x, y, z))

    @staticmethod
    def level(height: float) -> Plane:
        """Return the level plane at a height, m."""
        return Plane((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, height))

    @property
    def rotation(self) -> Array:
        """``R_world_plane``, shape (3, 3)."""
        return np.array(self[:3]).T

    def to_plane(self, points: Array) -> Array:
        """Return points (..., 3) of the world along the axes of the plane, the height last."""
        in_plane: Array = (points - self.origin).dot(self.rotation)
        return in_plane

    def coordinates(self, x: float, y: float, z: float) -> Vector:
        """Return what :meth:`to_plane` does, of one point in plain numbers."""
        ox, oy, oz = self.origin
        return components(self[:3], x - ox, y - oy, z - oz)

    def to_world(self, points: Array) -> Array:
        """Return points (..., 2) of the plane in the world, (..., 3)."""
        in_world: Array = points.dot(np.array((*self.x_axis, *self.y_axis)).reshape(2, 3))
        in_world += np.array(self.origin)
        return in_world

    def height_at(self, x: float, y: float) -> float:
        """Return how high the plane is above or below a point of the world, m."""
        (nx, ny, nz), (ox, oy, oz) = self.normal, self.origin
        return oz - ((x - ox) * nx + (y - oy) * ny) / nz

    def below(self, point: Array) -> Array:
        """Return the point (3,) of the plane straight above or below a point (3,)."""
        x, y, _ = point.tolist()
        return np.array((x, y, self.height_at(x, y)))


class Margin(NamedTuple):
    """
    How far a point is inside a polygon.

    Attributes
    ----------
    distance
        To the nearest edge, m: positive inside, negative outside.
    edge
        Index of that edge, which leads from corner `edge` to the next one.
    nearest
        Point of that edge nearest to the point, along the axes of the plane, (2,), m.

    """

    distance: float
    edge: int
    nearest: Point


class SupportPolygon:
    """
    A convex polygon in a plane.

    Parameters
    ----------
    plane
        The plane.
    corners
        Counter-clockwise seen against the normal, along the axes of the plane, m; two corners are
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
        self._found: dict[Vector, list[float]] = {}

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
        return 0.5 * sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in _edges(self.corners))

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
        """Return the distance of :meth:`margin`, m, of a point in plain numbers."""
        distances = self._distances(point)
        least = min(distances) if distances else 0.0
        return least if least > _THIN else self.margin(np.array(point)).distance

    def time_to_edge(self, dcm: Array, zmp: Array, omega_0: float) -> float:
        """Return :meth:`time_left` for arrays, shape (3,)."""
        return self.time_left(tuple(dcm.tolist()), tuple(zmp.tolist()), omega_0)

    def time_left(self, dcm: Vector, zmp: Vector, omega_0: float) -> float:
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
        """Return how far inside a point is of each edge's line; mostly asked twice."""
        found = self._found.get(point)
        if found is None:
            found = self._found[point] = _distances(
                self._half_planes, self.plane.coordinates(*point)[:2])
        return found


class KnownMargins(NamedTuple):
    """
    What the margins of an instant tell of those of others, as long as little moves.

    Attributes
    ----------
    normal, soles, in_contact
        Of the plane of support, placements of all soles, and which of them span the polygon.
    points, margins
        Points of the plane in the world, and how far each is inside of the polygon, m.
    give
        By how much a margin changes at most for what the soles and the normal move.

    """

    normal: Vector
    soles: Sequence[Placement]
    in_contact: Sequence[bool]
    points: Sequence[Vector | None]
    margins: Sequence[float | None]
    give: float

    def least(self, normal: Vector, soles: Sequence[Placement], in_contact: Sequence[bool],
              points: Iterable[Vector | None]) -> list[float | None]:
        """
        Return how far points are inside the polygon of another instant at least, m.

        Enough to know that nothing happens, for a tenth of the polygon's work.

        Parameters
        ----------
        normal, soles, in_contact, points
            Of that instant; for a point that is None, so is its margin.

        Notes
        -----
        A margin changes by no more than the point moves and the corners move along the plane.
        Corners move by no more than the origins of their soles and, times their coordinates, the
        axes; what a plane that turns does to a corner, and to a margin, is no more than its normal
        moves, times how far the corner is from the plane's origin.

        """
        if in_contact != self.in_contact:
            return [-math.inf for _ in points]
        moved = math.dist(normal, self.normal)
        for touches, sole, before in zip(in_contact, soles, self.soles):
            if touches:
                moved += sum(map(math.dist, sole, before))
        slack = self.give * moved + _THIN
        return [None if point is None else -math.inf if before is None or margin is None
                else margin - slack - math.dist(point, before)
                for point, before, margin in zip(points, self.points, self.margins)]


NOTHING_KNOWN = KnownMargins((0.0, 0.0, 1.0), (), (), (), (), 1.0)
"""Of margins at no instant."""


class Soles:
    """
    The soles of a robot, ready to span support polygons.

    Placements of soles are four rows of numbers: their axes in the common frame, then the
    position in it, m (:attr:`RobotState.sole_placements_in_world`). For a few soles plain numbers
    are faster than arrays.

    Parameters
    ----------
    polygons
        Corners of each sole in its sole frame, (k, 2) each, m.

    """

    def __init__(self, polygons: Iterable[Sequence[Point]]) -> None:
        self._outlines = [[(float(x), float(y)) for x, y in corners] for corners in polygons]
        self._reach = max(math.hypot(x, y) for outline in self._outlines for x, y in outline)

    @classmethod
    def of(cls, model: RobotModel) -> Soles:
        """Take the polygons of a robot's configuration."""
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

    def plane(self, soles: Sequence[Placement], in_contact: Sequence[bool]) -> Plane | None:
        """
        Return the plane of support; None while no sole is in contact.

        Parameters
        ----------
        soles
            Placements of all soles in the world.
        in_contact
            Which of them are on the ground.

        Raises
        ------
        InputError
            If the soles in contact look sideways or down.

        """
        count = 0
        nx = ny = nz = x = y = z = 0.0
        for touches, (_, _, (a, b, c), (d, e, f)) in zip(in_contact, soles):
            if touches:
                count += 1
                nx, ny, nz, x, y, z = nx + a, ny + b, nz + c, x + d, y + e, z + f
        return Plane.across((nx, ny, nz), (x / count, y / count, z / count)) if count else None

    def polygon(self, plane: Plane, soles: Sequence[Placement],
                in_contact: Sequence[bool]) -> SupportPolygon:
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

        """
        touching = [(sole, outline) for touches, sole, outline in zip(
            in_contact, soles, self._outlines) if touches]
        points: list[Point] = []
        for sole, outline in touching:
            points += _projected(plane, sole, outline)
        return SupportPolygon(plane, _hull(points), touching)

    def known(self, plane: Plane, soles: Sequence[Placement], in_contact: Sequence[bool],
              points: Sequence[Vector | None],
              margins: Sequence[float | None]) -> KnownMargins:
        """
        Return what margins tell of those at other instants.

        Parameters
        ----------
        plane, soles, in_contact
            As for :meth:`polygon`.
        points, margins
            Points of the plane in the world, and how far each is inside of the polygon, m.

        """
        size = self._reach + max(math.dist(sole[3], plane.origin)
                                 for sole, touches in zip(soles, in_contact) if touches)
        return KnownMargins(
            plane.normal, soles, in_contact, points, margins, max(1.0, 2.0 * size))


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


def convex_hull(points: Iterable[Sequence[float]]) -> tuple[Point, ...]:
    """
    Return the convex hull of points of a plane, counter-clockwise, without points on its edges.

    Andrew's monotone chain on plain numbers: for the corners of a few soles that is faster than
    any array.

    Parameters
    ----------
    points
        At least one; duplicates and points on one line are fine.

    Returns
    -------
    tuple of (x, y)
        Begins at the leftmost point. One point, or the two ends of a line, if that is all.

    Raises
    ------
    InputError
        If there is no point, or one is not finite.

    """
    corners = [(float(x), float(y)) for x, y in points]
    # A sum that is not finite has a term that is not.
    if not corners or not math.isfinite(sum(map(sum, corners))):
        raise InputError(f'a hull needs one or more finite points, not {corners}')
    return _hull(corners)


def _hull(points: list[Point]) -> tuple[Point, ...]:
    """Return :func:`convex_hull` of points that are known to be finite."""
    ordered = sorted(points)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return (first,)
    # What is above the line between both ends is none of the lower chain's business.
    (ax, ay), (bx, by) = first, last
    along_x, along_y = bx - ax, by - ay
    below, above = [first], [first]
    for point in ordered:
        side = along_x * (point[1] - ay) - along_y * (point[0] - ax)
        if side < 0.0:
            below.append(point)
        elif side > 0.0:
            above.append(point)
    below.append(last)
    above.append(last)
    above.reverse()
    return (*_half_hull(below)[:-1], *_half_hull(above)[:-1])


def margin(corners: Sequence[Point], point: Point) -> Margin:
    """
    Return the signed distance of a point from the boundary of a convex polygon.

    Parameters
    ----------
    corners
        As :func:`convex_hull` returns them: of a line or a point, no distance is positive.
    point
        (x, y).

    """
    lines = half_planes(corners)
    distances = _distances(lines, point)
    least = min(distances, default=0.0)
    if least <= _THIN:
        return _margin_by_segments(corners, point)
    edge, (x, y) = distances.index(least), point
    inward_x, inward_y, _ = lines[edge]
    return Margin(least, edge, (x - least * inward_x, y - least * inward_y))


def half_planes(corners: Sequence[Point]) -> list[Vector]:
    """
    Return what a convex polygon is the intersection of; nothing for a line or a point.

    Parameters
    ----------
    corners
        As :func:`convex_hull` returns them.

    Returns
    -------
    list of (a, b, c)
        For each edge ``a x + b y >= c``, (a, b) being a unit vector.

    """
    if len(corners) < 3:
        return []
    lines = []
    for (x0, y0), (x1, y1) in _edges(corners):
        along_x, along_y = x1 - x0, y1 - y0
        length = math.sqrt(along_x * along_x + along_y * along_y)
        a, b = -along_y / length, along_x / length
        lines.append((a, b, a * x0 + b * y0))
    return lines


def _distances(lines: Sequence[Vector], point: Point) -> list[float]:
    """Return how far inside a point is of each half plane; outside is negative."""
    x, y = point
    return [a * x + b * y - c for a, b, c in lines]


def _margin_by_segments(corners: Sequence[Point], point: Point) -> Margin:
    """Return :func:`margin` of any point, also outside or of a line."""
    x, y = point
    inside = len(corners) > 2
    best, best_edge, nearest = math.inf, 0, corners[0]
    for edge, ((x0, y0), (x1, y1)) in enumerate(_edges(corners)):
        along_x, along_y, to_x, to_y = x1 - x0, y1 - y0, x - x0, y - y0
        if along_x * to_y - along_y * to_x < 0.0:
            inside = False
        squared = along_x * along_x + along_y * along_y
        share = (along_x * to_x + along_y * to_y) / squared if squared else 0.0
        # Not min and max: twice as fast.
        share = 0.0 if share < 0.0 else 1.0 if share > 1.0 else share
        away_x, away_y = to_x - share * along_x, to_y - share * along_y
        distance = away_x * away_x + away_y * away_y
        if distance < best:
            best, best_edge, nearest = distance, edge, (x - away_x, y - away_y)
    distance = math.sqrt(best)
    return Margin(distance if inside else -distance, best_edge, nearest)


def _edges(corners: Sequence[Point]) -> Iterable[tuple[Point, Point]]:
    return zip(corners, (*corners[1:], corners[0]))


def _half_hull(ordered: Sequence[Point]) -> list[Point]:
    """Return the chain from the first to the last point that turns left all the way."""
    chain: list[Point] = []
    for point in ordered:
        x, y = point
        while len(chain) > 1:
            ax, ay = chain[-2]
            bx, by = chain[-1]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            chain.pop()
        chain.append(point)
    return chain
