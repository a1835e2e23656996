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
"""Surfaces of boxes, cylinders and spheres."""

from biped_com_ros.core.geometry.shapes import box, cylinder, sphere
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.surfaces import middle, volume


@pytest.mark.parametrize(('surface', 'expected', 'tolerance'), [
    (box(np.array((0.1, 0.2, 0.3))), 0.006, 1e-12),
    (cylinder(0.1, 0.5), np.pi * 0.01 * 0.5, 0.02),
    (sphere(0.2), 4.0 / 3.0 * np.pi * 0.008, 0.04)])
def test_primitives_are_closed_outward_and_of_the_right_size(surface, expected, tolerance):
    assert volume(surface) == pytest.approx(expected, rel=tolerance)
    np.testing.assert_allclose(middle(surface), 0.0, atol=1e-12)
    # Every edge is shared by two faces that run along it in opposite directions.
    trimesh = pytest.importorskip('trimesh', reason='it comes with viser')
    mesh = trimesh.Trimesh(surface.vertices, surface.faces, process=True)
    assert mesh.is_watertight and mesh.is_winding_consistent


def test_moving_turns_faces_around_where_it_mirrors():
    surface = box(np.array((0.1, 0.2, 0.3)))
    at = np.array((0.3, -0.2, 0.5))
    for matrix in (Rotation.from_euler('xyz', (0.3, -1.0, 2.0)).as_matrix(),
                   np.diag((-1.0, 1.0, 1.0))):
        moved = surface.moved(matrix, at)
        assert volume(moved) == pytest.approx(0.006)
        np.testing.assert_allclose(middle(moved), at, atol=1e-12)
