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
"""Meshes are found wherever the program runs, by everything that needs them."""

import re

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.estimation.prior import com_bounds, unreadable_shapes
from biped_com_ros.core.identification.poses.pose_safety import SelfCollision
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import resolve_in_urdf
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.sole_geometry import sole_polygon
from biped_com_ros.core.model.urdf import load_urdf, parse_urdf, resolve_meshes
from biped_com_ros.offline.robot_check import check_robot, verdict
from biped_com_ros.viz.visuals import looks_of
import numpy as np
import pytest

CONFIG = load_robot_config('biped')
URDF = load_urdf(CONFIG)
CORNERS = np.array([(x, y, z) for x in (-0.05, 0.09) for y in (-0.03, 0.04) for z in (0.0, 0.02)])
#: What public URDFs write, where the URDF is in my_robot/urdf and the meshes in my_robot.
URIS = ['meshes/a foot.stl', '../meshes/a foot.stl', 'package://my_robot/meshes/a foot.stl',
        'package:///my_robot/meshes/a foot.stl', 'package:///meshes/a foot.stl',
        'package://meshes/a foot.stl', 'model://my_robot/meshes/a foot.stl',
        '{}/my_robot/meshes/a foot.stl', 'file://{}/my_robot/meshes/a foot.stl',
        'file://{}/my_robot/meshes/a%20foot.stl']


def write_stl(path, corners=CORNERS):
    """Write a text STL with triangles whose corners are all pairs with the first one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facets = ''.join(
        'facet normal 0 0 1\nouter loop\n' + ''.join(
            f'vertex {x:.6f} {y:.6f} {z:.6f}\n' for x, y, z in (a, b, c)) + 'endloop\nendfacet\n'
        for a, b, c in zip(corners, np.roll(corners, -1, axis=0), np.roll(corners, -3, axis=0)))
    path.write_text(f'solid s\n{facets}endsolid s\n')


def with_mesh(uri, urdf=URDF):
    """Return the demo robot's URDF with one mesh as the shape of the left foot."""
    link = re.search(r'<link name="l_foot">.*?</link>', urdf, re.DOTALL)[0]
    bare = re.sub(r'<(visual|collision)\b.*?</\1>', '', link, flags=re.DOTALL)
    shapes = ''.join(f'<{tag}><geometry><mesh filename="{uri}"/></geometry></{tag}>'
                     for tag in ('visual', 'collision'))
    return urdf.replace(link, bare.replace('</link>', f'{shapes}</link>'))


def what_needs_meshes(path):
    """Return everything that depends on a mesh of the robot in a file."""
    pytest.importorskip('trimesh', reason='what is shown is read with it')
    model = RobotModel(CONFIG, load_urdf(CONFIG, str(path)))
    collision = SelfCollision(model)
    parsed = parse_urdf(model.urdf)
    return {
        'outline': np.array(sole_polygon(model, 'left')),
        'bounds': np.array(com_bounds(model)['l_foot']), 'unreadable': unreadable_shapes(model),
        'pairs': collision.pair_count, 'problems': looks_of(model).problems,
        'left out': resolve_meshes(parsed), 'verdict': verdict(check_robot(model))}


@pytest.mark.parametrize('uri', URIS)
def test_meshes_are_found_from_every_working_directory(uri, tmp_path, monkeypatch):
    write_stl(tmp_path / 'my_robot/meshes/a foot.stl')
    path = tmp_path / 'my_robot/urdf/robot.urdf'
    path.parent.mkdir()
    path.write_text(with_mesh(uri.format(tmp_path)))
    for directory in (path.parent, tmp_path / 'my_robot', tmp_path, '/'):
        monkeypatch.chdir(directory)
        found = what_needs_meshes(path)
        assert found['problems'] == found['left out'] == () and found['unreadable'] == {}
        assert 'not compared' not in found['verdict']
        assert np.ptp(found['outline'], axis=0) == pytest.approx((0.14, 0.07), abs=1e-6)
        assert found['bounds'] == pytest.approx(
            np.array((CORNERS.min(axis=0), CORNERS.max(axis=0))), abs=1e-6)
        assert found['pairs'] > 0


@pytest.mark.parametrize('uri', [
    'meshes/other.stl', 'package://my_robot/meshes/other.stl', 'package://nobodys/a foot.stl'])
def test_meshes_that_are_nowhere_are_counted_in_the_last_line(uri, tmp_path, monkeypatch):
    write_stl(tmp_path / 'my_robot/meshes/a foot.stl')
    path = tmp_path / 'my_robot/urdf/robot.urdf'
    path.parent.mkdir()
    path.write_text(with_mesh(uri))
    model = RobotModel(CONFIG, load_urdf(CONFIG, str(path)))
    # A file of that name where the program happens to run is another robot's.
    write_stl(tmp_path / uri.partition('my_robot/')[2] if 'my_robot' in uri else tmp_path / uri)
    monkeypatch.chdir(tmp_path)
    entries = check_robot(model)
    assert verdict(entries) == 'ready; 2 not compared: shapes, foot left'
    shapes = next(entry for entry in entries if entry.name == 'shapes')
    assert 'l_foot' in shapes.text and 'does not exist' in shapes.text
    assert ('was not found' in shapes.text) == ('nobodys' in uri)
    assert [*unreadable_shapes(model)] == ['l_foot'] and len(com_bounds(model)) > 3
    assert SelfCollision(model).pair_count > 0  # of the other links


def test_the_text_of_a_urdf_keeps_meshes_of_installed_packages(tmp_path, monkeypatch):
    """They are found on other machines, too."""
    write_stl(tmp_path / 'share/my_robot/meshes/a foot.stl')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    path = tmp_path / 'share/my_robot/urdf/robot.urdf'
    path.parent.mkdir()
    text = with_mesh('package://my_robot/meshes/a foot.stl')
    path.write_text(text)
    assert load_urdf(CONFIG, str(path)) == text
    path.write_text(with_mesh('../meshes/a foot.stl'))
    shown = load_urdf(CONFIG, str(path))
    assert f'file://{tmp_path}/share/my_robot/meshes/a foot.stl' in shown
    assert with_mesh('x', shown) == with_mesh('x')  # all else is as it was


def test_names_of_files_are_escaped(tmp_path):
    write_stl(tmp_path / 'R&D "1"/foot.stl')
    path = tmp_path / 'R&D "1"' / 'robot.urdf'
    path.write_text(with_mesh('foot.stl'))
    assert what_needs_meshes(path)['problems'] == ()


def test_a_mesh_that_is_missing_beside_its_urdf_is_named_by_its_path(tmp_path):
    """As where a repository keeps its large files elsewhere."""
    path = tmp_path / 'urdf' / 'robot.urdf'
    path.parent.mkdir()
    path.write_text(with_mesh('../meshes/foot.stl'))
    model = RobotModel(CONFIG, load_urdf(CONFIG, str(path)))
    problem, = unreadable_shapes(model).values()
    assert f'{tmp_path}/meshes/foot.stl' in problem and 'directory is not known' not in problem


@pytest.mark.parametrize('uri', ['package://', 'package:///', 'model://', ''])
def test_what_names_no_file_stays_as_it_is(uri, tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_text(with_mesh(uri))
    assert f'filename="{uri}"' in load_urdf(CONFIG, str(path))


def test_a_relative_path_needs_the_directory_of_its_urdf(tmp_path, monkeypatch):
    write_stl(tmp_path / 'foot.stl')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match='relative to a URDF whose directory is not kno'):
        resolve_in_urdf('foot.stl')
    assert resolve_in_urdf('foot.stl', tmp_path) == tmp_path / 'foot.stl'


def test_a_capsule_is_a_cylinder_with_round_ends():
    urdf = with_mesh('x').replace('<mesh filename="x"/>', '<capsule radius="0.02" length="0.1"/>')
    bounds = np.array(com_bounds(RobotModel(CONFIG, urdf))['l_foot'])
    assert bounds == pytest.approx(np.array([(-0.02, -0.02, -0.07), (0.02, 0.02, 0.07)]))
