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
Convex polygons in a plane: hull, half planes, and the distance of a point from the boundary.

With Python floats: for the corners of a few soles they are faster than arrays, and files of robots
are read without NumPy and Pinocchio.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.errors import InputError

Point = tuple[float, float]
HalfPlane = tuple[float, float, float]
"""(a, b, c): the points with ``a x + b y >= c``; (a, b) is a unit vector."""

THIN = 1e-9
"""Points nearer to an edge than this, m, may be on either side of it by rounding."""


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
        Point of that edge nearest to the point, (x, y), m.

    """

    distance: float
    edge: int
    nearest: Point


def convex_hull(points: Iterable[Sequence[float]]) -> tuple[Point, ...]:
    """
    Return the convex hull of points, counter-clockwise, without points on its edges.

    Andrew's monotone chain.

    Parameters
    ----------
    points
        At least one (x, y); duplicates and points on one line are allowed.

    Returns
    -------
    tuple of (x, y)
        Begins at the leftmost point. One point, or the two ends of a line, if that is all.

    Raises
    ------
    InputError
        If there is no point, or one is not finite.

    """
    ordered = [(float(x), float(y)) for x, y in points]
    # A sum that is not finite has a term that is not.
    if not ordered or not math.isfinite(sum(map(sum, ordered))):
        raise InputError(f'a hull needs one or more finite points, not {ordered}')
    return hull_of(ordered)


def hull_of(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return :func:`convex_hull` of points that are known to be finite floats."""
    ordered = sorted(points)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return (first,)
    # Points above the line between both ends cannot be part of the lower chain.
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
    return (*_left_turning_chain(below)[:-1], *_left_turning_chain(above)[:-1])


def _left_turning_chain(ordered: Sequence[Point]) -> list[Point]:
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


def edges(corners: Sequence[Point]) -> Iterable[tuple[Point, Point]]:
    """Return each corner with the next one; the last one with the first."""
    return zip(corners, (*corners[1:], corners[0]))


def area(corners: Sequence[Point]) -> float:
    """Return the area of a polygon with counter-clockwise corners, m^2."""
    return 0.5 * sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in edges(corners))


def centroid(corners: Sequence[Point]) -> Point:
    """
    Return the centroid of the area of a polygon, m.

    Raises
    ------
    InputError
        If it has no area.

    """
    x = y = 0.0
    for (x0, y0), (x1, y1) in edges(corners):
        doubled_area = x0 * y1 - x1 * y0
        x += (x0 + x1) * doubled_area
        y += (y0 + y1) * doubled_area
    scale = 6.0 * area(corners)
    if not abs(scale) > THIN * THIN:
        raise InputError(f'the polygon {list(corners)} has no area, and no centroid')
    return x / scale, y / scale


def half_planes(corners: Sequence[Point]) -> list[HalfPlane]:
    """
    Return the half planes whose intersection is a convex polygon, one per edge.

    Parameters
    ----------
    corners
        As :func:`convex_hull` returns them; a line or a point has no half planes.

    """
    if len(corners) < 3:
        return []
    planes = []
    for (x0, y0), (x1, y1) in edges(corners):
        along_x, along_y = x1 - x0, y1 - y0
        length = math.sqrt(along_x * along_x + along_y * along_y)
        a, b = -along_y / length, along_x / length
        planes.append((a, b, a * x0 + b * y0))
    return planes


def distances_inside(planes: Sequence[HalfPlane], point: Point) -> list[float]:
    """Return how far inside each half plane a point is, m; negative outside."""
    x, y = point
    return [a * x + b * y - c for a, b, c in planes]


def margin(corners: Sequence[Point], point: Point) -> Margin:
    """
    Return the signed distance of a point from the boundary of a convex polygon.

    Parameters
    ----------
    corners
        As :func:`convex_hull` returns them: of a line or a point, no distance is positive.
    point
        (x, y), m.

    """
    planes = half_planes(corners)
    distances = distances_inside(planes, point)
    least = min(distances, default=0.0)
    if least <= THIN:
        return _margin_by_segments(corners, point)
    edge, (x, y) = distances.index(least), point
    inward_x, inward_y, _ = planes[edge]
    return Margin(least, edge, (x - least * inward_x, y - least * inward_y))


def _margin_by_segments(corners: Sequence[Point], point: Point) -> Margin:
    """Return :func:`margin` of any point, also outside or of a line."""
    x, y = point
    inside = len(corners) > 2
    best, best_edge, nearest = math.inf, 0, corners[0]
    for edge, ((x0, y0), (x1, y1)) in enumerate(edges(corners)):
        along_x, along_y, to_x, to_y = x1 - x0, y1 - y0, x - x0, y - y0
        if along_x * to_y - along_y * to_x < 0.0:
            inside = False
        squared = along_x * along_x + along_y * along_y
        share = (along_x * to_x + along_y * to_y) / squared if squared else 0.0
        share = min(max(share, 0.0), 1.0)
        away_x, away_y = to_x - share * along_x, to_y - share * along_y
        distance = away_x * away_x + away_y * away_y
        if distance < best:
            best, best_edge, nearest = distance, edge, (x - away_x, y - away_y)
    distance = math.sqrt(best)
    return Margin(distance if inside else -distance, best_edge, nearest)
