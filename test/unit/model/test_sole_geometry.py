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
"""Outlines of soles from collision geometry: shapes, meshes, and what is refused."""

import struct

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError, UnknownNameError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.sole_geometry import sole_polygon
import numpy as np
import pytest
from support.small_robot import small_config, URDF

BOX = [(0.2, 0.1), (-0.1, 0.1), (-0.1, -0.02), (0.2, -0.02)]


def robot(collision):
    """Return the small robot with collision geometry on its left foot, whose sole is turned."""
    shapes = f'<collision><origin xyz="0.05 0.04 -0.02"/><geometry>{collision}</geometry>'
    urdf = URDF.replace('<link name="left_foot">', f'<link name="left_foot">{shapes}</collision>')
    assert urdf != URDF
    return RobotModel(small_config(), urdf)


def in_foot(corners):
    """Take corners from the sole frame (0.03, 0, -0.05, yaw 0.1 in the foot) to the foot."""
    c, s = np.cos(0.1), np.sin(0.1)
    return np.array(corners) @ np.array(((c, s), (-s, c))) + (0.03, 0.0)


def same(found, expected):
    return len(found) == len(expected) and all(
        np.abs(np.array(found) - corner).sum(axis=1).min() < 1e-6 for corner in expected)


def test_a_box_on_a_turned_sole():
    found = in_foot(sole_polygon(robot('<box size="0.3 0.12 0.05"/>'), 'left'))
    assert same(found, BOX)


def test_a_lying_cylinder_touches_along_a_strip_and_a_sphere_in_a_spot():
    round_foot = in_foot(sole_polygon(robot('<cylinder radius="0.06" length="0.04"/>'), 'left'))
    radii = np.linalg.norm(round_foot - (0.05, 0.04), axis=1)
    np.testing.assert_allclose(radii, 0.06, atol=1e-6)
    spot = in_foot(sole_polygon(robot('<sphere radius="0.1"/>'), 'left'))
    assert np.linalg.norm(spot - (0.05, 0.04), axis=1).max() < 0.032


@pytest.fixture(params=['binary.stl', 'text.STL', 'text.obj'])
def mesh(request, tmp_path):
    """Write a tetrahedron, its base below, in millimetres."""
    corners = np.array([(200, 100, -45), (-100, 100, -45), (-100, -20, -45), (0, 0, 90)]) - (
        50, 40, -20)
    faces = [(0, 1, 2), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    path = tmp_path / request.param
    if 'binary' in path.name:
        data = b''.join(struct.pack('<12fH', 0, 0, 0, *corners[list(f)].ravel(), 0)
                        for f in faces)
        path.write_bytes(b'solid, it says'.ljust(80) + struct.pack('<I', 4) + data)
    elif path.suffix == '.STL':
        path.write_text('solid x\n' + '\n'.join(
            'facet normal 0 0 0\nouter loop\n' + ''.join(
                'vertex {} {} {}\n'.format(*corners[i]) for i in f) + 'endloop\nendfacet'
            for f in faces) + '\nendsolid x\n')
    else:
        path.write_text('# made by hand\nvn 9 9 9\n' + ''.join(
            'v {} {} {}\n'.format(*c) for c in corners) + 'f 1 2 3\n')
    return path


def test_meshes_with_scale(mesh):
    model = robot(f'<mesh filename="file://{mesh}" scale="0.001 0.001 0.001"/>')
    assert same(in_foot(sole_polygon(model, 'left')), BOX[:3])


@pytest.mark.parametrize('foot', ['left', 'right'])
def test_the_demo_robot_s_collision_boxes_are_its_configured_polygons(foot):
    model = RobotModel.load('biped')
    assert same(sole_polygon(model, foot), model.config.feet[foot].polygon)


@pytest.mark.parametrize(('shape', 'foot', 'message'), [
    ('<mesh filename="{}/foot.dae"/>', 'left', 'convert it to STL or OBJ'),
    ('<mesh filename="nowhere.stl"/>', 'left', 'does not exist'),
    ('<mesh filename="{}/empty.obj"/>', 'left', 'has no vertices'),
    ('<box size="1 2"/>', 'left', "must be 3 finite number.s., not '1 2'"),
    ('<cone radius="1"/>', 'left', '<cone> of link .*: valid are box, cyl'),
    ('<box size="1 1 1"/>', 'right', r'no collision geometry.*feet.right.polygon'),
    ('<box size="0.2 0 0.1"/>', 'left', 'touches the ground only along'),
    ('<box size="1 1 1"/>', 'lefd', "unknown foot 'lefd'.*did you mean 'left'")])
def test_what_gives_no_polygon_is_refused_with_the_remedy(tmp_path, shape, foot, message):
    (tmp_path / 'foot.dae').write_text('<COLLADA/>')
    (tmp_path / 'empty.obj').write_text('')
    with pytest.raises((ConfigurationError, RobotDescriptionError, UnknownNameError),
                       match=message):
        sole_polygon(robot(shape.format(tmp_path)), foot)
