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
from dataclasses import dataclass
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.pose import Array, Pose
from biped_com_ros.core.robot import RobotModel
import numpy as np

Point = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """
    A plane in the world, with axes of its own.

    Attributes
    ----------
    rotation
        ``R_world_plane``, shape (3, 3); its last column is the normal.
    origin
        A point of the plane, shape (3,), m.

    """

    rotation: Array
    origin: Array

    @staticmethod
    def across(normal: Array, origin: Array) -> Plane:
        """
        Build from a normal of any length and a point, both (3,).

        The plane's x axis is the world's, turned as little as needed.

        Raises
        ------
        InputError
            If the normal has no direction, or the plane is upright.

        """
        nx, ny, nz = np.asarray(normal, dtype=float).tolist()
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if not nz > 0.05 * length:
            raise InputError(
                f'the ground cannot have the normal ({nx:.3g}, {ny:.3g}, {nz:.3g}): its z must be '
                'positive (check the direction of the sole frames)')
        nx, ny, nz = nx / length, ny / length, nz / length
        level = math.hypot(nx, nz)
        xx, xz = nz / level, -nx / level  # across y and the normal
        return Plane(np.array((
            (xx, ny * xz, nx), (0.0, nz * xx - nx * xz, ny), (xz, -ny * xx, nz))),
            np.asarray(origin, dtype=float))

    @staticmethod
    def level(height: float) -> Plane:
        """Return the level plane at a height, m."""
        return Plane(np.eye(3), np.array((0.0, 0.0, height)))

    @property
    def normal(self) -> Array:
        """Return the unit normal in the world, shape (3,)."""
        return self.rotation[:, 2]

    def to_plane(self, points: Array) -> Array:
        """Return points (..., 3) of the world along the axes of the plane, the height last."""
        in_plane: Array = (points - self.origin).dot(self.rotation)
        return in_plane

    def level_coordinates(self, point: Array) -> Point:
        """Return the first two of :meth:`to_plane` of one point (3,), as plain numbers."""
        x, y, _ = (point - self.origin).dot(self.rotation).tolist()
        return x, y

    def to_world(self, points: Array) -> Array:
        """Return points (..., 2) of the plane in the world, (..., 3)."""
        in_world: Array = points.dot(self.rotation[:, :2].T)
        in_world += self.origin
        return in_world

    def below(self, point: Array) -> Array:
        """Return the point (3,) of the plane straight above or below a point (3,)."""
        x, y, z = point.tolist()
        height = (point - self.origin).dot(self.rotation[:, 2]).item()
        return np.array((x, y, z - height / self.rotation.item(2, 2)))


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


@dataclass(frozen=True)
class SupportPolygon:
    """
    A convex polygon in a plane.

    Attributes
    ----------
    plane
        The plane.
    corners
        Counter-clockwise seen against the normal, shape (k, 2), along the axes of the plane, m;
        two corners are a line, one is a point.
    unevenness
        Largest distance of a sole's corner from the plane, m: zero where all soles in contact
        lie in it.

    """

    plane: Plane
    corners: tuple[Point, ...]
    unevenness: float = 0.0

    @property
    def corners_in_world(self) -> Array:
        """Return the corners, shape (k, 3), m."""
        return self.plane.to_world(np.array(self.corners))

    @property
    def area(self) -> float:
        """Area of the polygon, m^2."""
        following = self.corners[1:] + self.corners[:1]
        return 0.5 * sum(
            x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(self.corners, following))

    def margin(self, point: Array) -> Margin:
        """
        Return how far a point of the plane is from the edge.

        Parameters
        ----------
        point
            In the world, shape (3,), m; its height over the plane does not count.

        """
        return margin(self.corners, self.plane.level_coordinates(point))

    def time_to_edge(self, dcm: Array, zmp: Array, omega_0: float,
                     dcm_margin: Margin | None = None) -> float:
        """
        Return when the DCM will leave the polygon if the ZMP stays where it is, s.

        From there on no ZMP inside the polygon brings the robot to rest: it has to step, to hold
        on, or falls.

        Parameters
        ----------
        dcm, zmp
            Points of the plane in the world, shape (3,), m.
        omega_0
            Natural frequency of the pendulum, rad/s.
        dcm_margin
            :meth:`margin` of the DCM, if it is at hand.

        Returns
        -------
        float
            0 if the DCM is outside already, infinite if it never gets there.

        Notes
        -----
        ``dcm(t) = zmp + exp(omega_0 t) (dcm - zmp)``, a straight line through each edge in turn.

        """
        if (dcm_margin or self.margin(dcm)).distance <= 0.0:
            return 0.0
        dcm_x, dcm_y = self.plane.level_coordinates(dcm)
        zmp_x, zmp_y = self.plane.level_coordinates(zmp)
        growth = math.inf
        for (x0, y0), (x1, y1) in _edges(self.corners):
            outward_x, outward_y = y1 - y0, x0 - x1
            speed = outward_x * (dcm_x - zmp_x) + outward_y * (dcm_y - zmp_y)
            room = outward_x * (x0 - zmp_x) + outward_y * (y0 - zmp_y)
            if speed > 0.0 and room < growth * speed:
                growth = room / speed
        return math.log(max(growth, 1.0)) / omega_0


class Soles:
    """
    The soles of a robot, ready to span support polygons.

    Parameters
    ----------
    polygons
        Corners of each sole in its sole frame, (k, 2) each, m.

    """

    def __init__(self, polygons: Iterable[Sequence[Point]]) -> None:
        self._rows = [np.array([(x, y, 0.0, 1.0) for x, y in corners]) for corners in polygons]

    @classmethod
    def of(cls, model: RobotModel) -> Soles:
        """Take the polygons of a robot's configuration."""
        return cls(foot.polygon for foot in model.config.feet.values())

    def support(self, placements: Array, in_contact: Sequence[bool]) -> SupportPolygon | None:
        """
        Return the polygon that the soles in contact span.

        Parameters
        ----------
        placements
            Of all soles in the world, shape (F, 4, 3): rows 0-2 are ``R_world_sole`` transposed,
            row 3 the position, m (:meth:`RobotState.placements_in_base`, moved to the world).
        in_contact
            Which of them are on the ground.

        Returns
        -------
        SupportPolygon or None
            None while no sole is in contact.

        Raises
        ------
        InputError
            If the soles in contact look sideways or down.

        """
        standing = [i for i, touches in enumerate(in_contact) if touches]
        if not standing:
            return None
        if len(standing) == 1:
            row = placements[standing[0]]
            plane = Plane.across(row[2], row[3])
        else:
            mean = np.add.reduce(placements.take(standing, axis=0), axis=0)
            mean /= len(standing)
            plane = Plane.across(mean[2], mean[3])
        corners: list[list[float]] = []
        for i in standing:
            corners += plane.to_plane(self._rows[i].dot(placements[i])).tolist()
        heights = [height for _, _, height in corners]
        return SupportPolygon(plane, convex_hull([(x, y) for x, y, _ in corners]),
                              max(max(heights), -min(heights)))


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
    ordered = sorted({(float(x), float(y)) for x, y in points})
    # A sum that is not finite has a term that is not.
    if not ordered or not math.isfinite(sum([x + y for x, y in ordered])):
        raise InputError(f'a hull needs one or more finite points, not {ordered}')
    if len(ordered) < 3:
        return tuple(ordered)
    lower, upper = _half_hull(ordered), _half_hull(ordered[::-1])
    return (*lower[:-1], *upper[:-1])


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
    x, y = point
    inside = len(corners) > 2
    best, best_edge, nearest = math.inf, 0, corners[0]
    x0, y0 = corners[0]
    for edge, (x1, y1) in enumerate((*corners[1:], corners[0])):
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
        x0, y0 = x1, y1
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
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            chain.pop()
        chain.append(point)
    return chain
