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
"""Convex polygons in a plane: hull, area and margins; see also the oracle with shapely."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import area, convex_hull, half_planes, margin
import pytest

SQUARE = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0))


@pytest.mark.parametrize(('point', 'distance', 'edge', 'nearest'), [
    ((0.5, 0.2), 0.2, 0, (0.5, 0.0)), ((1.9, 0.5), 0.1, 1, (2.0, 0.5)),
    ((1.0, 1.5), -0.5, 2, (1.0, 1.0)), ((-3.0, -4.0), -5.0, 0, (0.0, 0.0)),
    ((0.0, 0.5), 0.0, 3, (0.0, 0.5))])
def test_margin(point, distance, edge, nearest):
    found = margin(SQUARE, point)
    assert found.distance == pytest.approx(distance, abs=1e-15)
    assert (found.edge, found.nearest) == (edge, nearest)


def test_lines_and_points_have_no_inside():
    assert margin(((0.0, 0.0), (1.0, 0.0)), (0.5, 0.25)).distance == -0.25
    assert margin(((1.0, 1.0),), (1.0, 3.0)).distance == -2.0
    assert margin(((0.0, 0.0), (1.0, 0.0)), (0.5, 0.0)).distance <= 0.0


@pytest.mark.parametrize('points', [[], [(0.0, math.nan)], [(1.0, 2.0), (math.inf, 0.0)]])
def test_a_hull_needs_finite_points(points):
    with pytest.raises(InputError, match='one or more finite points'):
        convex_hull(points)


def test_a_hull_is_counter_clockwise_and_has_no_point_on_an_edge():
    points = [*reversed(SQUARE), (1.0, 0.0), (0.5, 0.5), (2.0, 0.0)]
    assert convex_hull(points) == SQUARE
    assert convex_hull([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]) == ((0.0, 0.0), (2.0, 2.0))
    assert convex_hull([(1.0, 2.0)] * 3) == ((1.0, 2.0),)


def test_half_planes_and_area():
    assert half_planes(SQUARE) == [
        (0.0, 1.0, 0.0), (-1.0, 0.0, -2.0), (0.0, -1.0, -1.0), (1.0, 0.0, 0.0)]
    assert half_planes(SQUARE[:2]) == []
    assert area(SQUARE) == 2.0 and area(SQUARE[::-1]) == -2.0
