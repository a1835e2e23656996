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
"""Shadows of polyhedra on a plane, against vertices enumerated one by one."""

from itertools import combinations

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.polygon import area, convex_hull
from biped_com_ros.core.geometry.projection import project
import numpy as np
import pytest


def enumerated(equations, right_side, values):
    """Return the hull of all basic solutions, from the definition."""
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
    np.testing.assert_allclose((np.array(corners) @ directions).max(axis=0),
                               (np.array(expected) @ directions).max(axis=0), atol=1e-9)


def test_limits_that_leave_nothing_leave_no_polygon():
    equations, right_side, values, limited, _ = drawn(0)
    tight = np.array((1e-3, 1e-3))
    assert project(equations, right_side, values, limited, tight) is None


@pytest.mark.parametrize('limit, problem', [(-0.1, 'negative'), (np.nan, 'finite')])
def test_limits_that_cannot_be_are_refused(limit, problem):
    equations, right_side, values, limited, _ = drawn(0)
    with pytest.raises(InputError, match=problem):
        project(equations, right_side, values, limited, np.array((1.0, limit)))


@pytest.mark.filterwarnings('ignore:overflow')
def test_corners_beyond_all_numbers_are_refused():
    with pytest.raises(InputError, match='too large'):
        project(np.ones((1, 1)), np.array((1e308,)), np.full((2, 1), 2.0))


@pytest.mark.parametrize('turned', [0.0, 1e-5, 0.3])
def test_edges_almost_across_to_an_axis_keep_their_corners(turned):
    normals = np.add.outer(0.5 * np.pi * np.arange(4),
                           (-3e-4, -1e-4, 0.0, 1e-4, 3e-4)).ravel() + turned
    along = np.array((-np.sin(normals), np.cos(normals)))
    points = np.cumsum(0.1 * along, axis=1)
    corners = convex_hull(project(np.ones((1, 20)), np.ones(1), points))
    assert len(corners) == 20
    np.testing.assert_allclose(sorted(corners), sorted(points.T.tolist()), atol=1e-12)
