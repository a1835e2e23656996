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
"""Hull and signed margin against shapely (GEOS), on 10,000 random cases, degenerate ones too."""

import math

from biped_com_ros.core.geometry.polygon import convex_hull, margin
import numpy as np
import shapely

CASES = 10_000
TOLERANCE = 1e-12  # m


def cloud(rng):
    return rng.normal(size=(rng.integers(1, 13), 2))


def lattice(rng):
    """Full of duplicates and of points on one line, exactly so."""
    return rng.integers(-2, 3, (rng.integers(1, 10), 2)) * 0.25


def line(rng):
    steps = rng.integers(-8, 9, rng.integers(1, 7))
    return np.outer(steps, rng.integers(-4, 5, 2)) / 16.0 + rng.integers(-9, 9, 2)


def crooked_line(rng):
    """On a line but for rounding."""
    angle = rng.uniform(0.0, 2.0 * math.pi)
    direction = np.array((math.cos(angle), math.sin(angle)))
    return np.outer(rng.normal(size=rng.integers(2, 7)), direction) + rng.normal(size=2)


def foot(rng, size=(0.2, 0.1)):
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * 0.5 * np.array(size)
    angle = rng.choice((0.0, rng.uniform(-1.0, 1.0)))
    c, s = math.cos(angle), math.sin(angle)
    return corners @ np.array(((c, s), (-s, c)))


def one_foot(rng):
    return foot(rng) + rng.normal(size=2)


def two_feet(rng):
    return np.concatenate((foot(rng), foot(rng) + rng.normal(0.0, 0.3, 2)))


def touching_feet(rng):
    return np.concatenate((foot(np.random.default_rng(0)), one_foot(rng) * 0.0 + (0.1, 0.05),
                           np.array([(0.1, 0.05), (0.1, -0.05), (0.3, 0.05), (0.3, -0.05)])))


def far_away(rng):
    return two_feet(rng) + rng.uniform(-1.0, 1.0, 2) * 20.0


KINDS = (cloud, lattice, line, crooked_line, one_foot, two_feet, touching_feet, far_away)


def probe(rng, points, hull):
    """Return a point inside, outside, on a corner, on an edge, or anywhere."""
    kind = rng.integers(5)
    corner = hull[rng.integers(len(hull))]
    if kind == 0:
        return rng.dirichlet(np.ones(len(points))) @ points
    if kind == 1:
        return corner
    if kind == 2:
        return 0.5 * (np.array(corner) + hull[rng.integers(len(hull))])
    spread = 0.3 if kind == 3 else 3.0
    return points.mean(axis=0) + rng.normal(0.0, spread, 2)


def signed(geometry, point):
    """Return shapely's distance from the edge, positive inside; a line has no inside."""
    if geometry.geom_type != 'Polygon':
        return -geometry.distance(point)
    inside = geometry.contains(point)
    return (1.0 if inside else -1.0) * geometry.exterior.distance(point)


def test_hull_and_margin():
    rng = np.random.default_rng(2026)
    signs = set()
    for case in range(CASES):
        points = KINDS[case % len(KINDS)](rng)
        hull = convex_hull(points.tolist())
        expected = shapely.convex_hull(shapely.MultiPoint(points))
        ours = (shapely.Polygon(hull) if len(hull) > 2 else shapely.LineString(hull)
                if len(hull) > 1 else shapely.Point(hull[0]))
        assert shapely.hausdorff_distance(ours, expected) < TOLERANCE, points
        point = probe(rng, points, hull)
        found = margin(hull, tuple(map(float, point)))
        signed_distance = signed(expected, shapely.Point(point))
        assert abs(found.distance - signed_distance) < TOLERANCE, (points, point)
        assert abs(math.dist(found.nearest, point) - abs(found.distance)) < TOLERANCE
        edge = shapely.LineString((hull[found.edge], hull[(found.edge + 1) % len(hull)]))
        assert edge.distance(shapely.Point(found.nearest)) < TOLERANCE
        signs.add(math.copysign(1.0, found.distance) if abs(signed_distance) > 1e-6 else 0.0)
    assert signs == {1.0, 0.0, -1.0}, 'points inside, on the edge and outside'


def test_counter_clockwise_without_needless_points():
    rng = np.random.default_rng(7)
    for _ in range(300):
        hull = convex_hull(two_feet(rng).tolist())
        assert shapely.Polygon(hull).exterior.is_ccw
        for i in range(len(hull)):
            without = hull[:i] + hull[i + 1:]
            assert shapely.Polygon(without).area < shapely.Polygon(hull).area
