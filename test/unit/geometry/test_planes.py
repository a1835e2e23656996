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
"""Planes, polygons in them, and shadows of polyhedra; see also the oracle with shapely."""

from itertools import combinations
import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import area, convex_hull, half_planes, margin
from biped_com_ros.core.geometry.projection import project
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

SQUARE = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0))


def test_a_plane_has_axes_heights_and_points():
    normal = np.array((0.3, -0.2, 0.8))
    plane = Plane.with_normal(normal, np.array((1.0, 2.0, 3.0)))
    assert_allclose(plane.rotation.T @ plane.rotation, np.eye(3), atol=1e-15)
    assert np.linalg.det(plane.rotation) == pytest.approx(1.0)
    assert_allclose(plane.normal, normal / np.linalg.norm(normal), atol=1e-15)
    assert plane.rotation[1, 0] == 0.0 and plane.rotation[0, 0] > 0.0
    point = np.array((0.4, 0.7, 5.0))
    below = plane.below(point)
    assert_array_equal(below[:2], point[:2])
    in_plane = plane.to_plane(below)
    assert abs(in_plane[2]) < 1e-15
    assert_allclose(plane.to_world(in_plane[:2]), below, atol=1e-15)
    assert plane.height == pytest.approx(np.dot(plane.normal, below))


@pytest.mark.parametrize('normal', [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.1, -1.0)])
def test_the_ground_looks_up(normal):
    with pytest.raises(InputError, match='its z must be positive'):
        Plane.with_normal(normal, (0.0, 0.0, 0.0))


@pytest.mark.parametrize(('point', 'distance', 'edge', 'nearest'), [
    ((0.5, 0.2), 0.2, 0, (0.5, 0.0)), ((1.9, 0.5), 0.1, 1, (2.0, 0.5)),
    ((1.0, 1.5), -0.5, 2, (1.0, 1.0)), ((-3.0, -4.0), -5.0, 0, (0.0, 0.0)),
    ((0.0, 0.5), 0.0, 3, (0.0, 0.5))])
def test_margin(point, distance, edge, nearest):
    found = margin(SQUARE, point)
    assert found.distance == pytest.approx(distance, abs=1e-15)
    assert (found.edge, found.nearest) == (edge, nearest)


@pytest.mark.parametrize('points', [[], [(0.0, math.nan)], [(1.0, 2.0), (math.inf, 0.0)]])
def test_a_hull_needs_finite_points(points):
    with pytest.raises(InputError, match='one or more finite points'):
        convex_hull(points)


@pytest.mark.parametrize(('points', 'hull'), [
    ([*reversed(SQUARE), (1.0, 0.0), (0.5, 0.5), (2.0, 0.0)], SQUARE),
    ([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], ((0.0, 0.0), (2.0, 2.0))),
    ([(1.0, 2.0)] * 3, ((1.0, 2.0),))])
def test_a_hull_is_counter_clockwise_and_has_no_point_on_an_edge(points, hull):
    assert convex_hull(points) == hull


def test_half_planes_and_area():
    assert half_planes(SQUARE) == [
        (0.0, 1.0, 0.0), (-1.0, 0.0, -2.0), (0.0, -1.0, -1.0), (1.0, 0.0, 0.0)]
    assert half_planes(SQUARE[:2]) == []
    assert area(SQUARE) == 2.0 and area(SQUARE[::-1]) == -2.0


def enumerated(equations, right_side, values):
    """Return the hull of all basic solutions of a polyhedron, from the definition."""
    rows, found = len(equations), []
    for columns in map(list, combinations(range(equations.shape[1]), rows)):
        basis = equations[:, columns]
        if abs(np.linalg.det(basis)) > 1e-9:
            coefficients = np.linalg.solve(basis, right_side)
            if coefficients.min() > -1e-12:
                found.append(values[:, columns] @ coefficients)
    return convex_hull(found)


def drawn(seed):
    rng = np.random.default_rng(seed)
    equations = rng.uniform(-1.0, 1.0, (2, 8))
    return (equations, equations @ rng.uniform(0.0, 0.5, 8), rng.uniform(-1.0, 1.0, (2, 8)),
            np.vstack((np.ones(8), np.arange(8) < 3)).astype(float), np.array((4.5, 1.4)))


@pytest.mark.parametrize('seed', range(10))
def test_limits_hold_as_equations_with_what_is_left_of_them_do(seed):
    equations, right_side, values, limited, limits = drawn(seed)
    complete = np.block([[equations, np.zeros((2, 2))], [limited, np.eye(2)]])
    expected = enumerated(complete, np.concatenate((right_side, limits)),
                          np.hstack((values, np.zeros((2, 2)))))
    corners = convex_hull(project(equations, right_side, values, limited, limits))
    assert area(corners) == pytest.approx(area(expected), abs=1e-9)
    angles = np.linspace(0.0, 2.0 * np.pi, 16)
    directions = np.array((np.cos(angles), np.sin(angles)))
    assert_allclose((np.array(corners) @ directions).max(axis=0),
                    (np.array(expected) @ directions).max(axis=0), atol=1e-9)


def test_limits_that_leave_nothing_or_cannot_be():
    *polyhedron, _ = drawn(0)
    assert project(*polyhedron, np.array((1e-3, 1e-3))) is None
    for limit, problem in ((-0.1, 'negative'), (np.nan, 'finite')):
        with pytest.raises(InputError, match=problem):
            project(*polyhedron, np.array((1.0, limit)))


@pytest.mark.filterwarnings('ignore:overflow')
def test_corners_beyond_all_numbers_are_refused():
    with pytest.raises(InputError, match='too large'):
        project(np.ones((1, 1)), np.array((1e308,)), np.full((2, 1), 2.0),
                np.zeros((0, 1)), np.zeros(0))


@pytest.mark.parametrize('turned', [0.0, 1e-5, 0.3])
def test_edges_almost_across_to_an_axis_keep_their_corners(turned):
    normals = np.add.outer(0.5 * np.pi * np.arange(4),
                           (-3e-4, -1e-4, 0.0, 1e-4, 3e-4)).ravel() + turned
    along = np.array((-np.sin(normals), np.cos(normals)))
    points = np.cumsum(0.1 * along, axis=1)
    corners = convex_hull(project(
        np.ones((1, 20)), np.ones(1), points, np.zeros((0, 20)), np.zeros(0)))
    assert len(corners) == 20
    assert_allclose(sorted(corners), sorted(points.T.tolist()), atol=1e-12)
