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
"""Planes in the world: their axes, and points on them."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.plane import Plane
import numpy as np
import pytest


def test_planes():
    normal = np.array((0.3, -0.2, 0.8))
    plane = Plane.with_normal(normal, np.array((1.0, 2.0, 3.0)))
    np.testing.assert_allclose(plane.rotation.T @ plane.rotation, np.eye(3), atol=1e-15)
    assert np.linalg.det(plane.rotation) == pytest.approx(1.0)
    np.testing.assert_allclose(plane.normal, normal / np.linalg.norm(normal), atol=1e-15)
    assert plane.rotation[1, 0] == 0.0 and plane.rotation[0, 0] > 0.0
    point = np.array((0.4, 0.7, 5.0))
    below = plane.below(point)
    np.testing.assert_array_equal(below[:2], point[:2])
    in_plane = plane.to_plane(below)
    assert abs(in_plane[2]) < 1e-15
    np.testing.assert_allclose(plane.to_world(in_plane[:2]), below, atol=1e-15)
    assert plane.height == pytest.approx(np.dot(plane.normal, below))


@pytest.mark.parametrize('normal', [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.1, -1.0)])
def test_the_ground_looks_up(normal):
    with pytest.raises(InputError, match='its z must be positive'):
        Plane.with_normal(normal, (0.0, 0.0, 0.0))
