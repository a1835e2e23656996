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
"""Surfaces for the page: closed, outward, in place, light; and what cannot be drawn is told."""

from pathlib import Path
from xml.etree import ElementTree

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.geometry.shapes import box, joined, Triangles
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz.scene import wxyz_of
from biped_com_ros.viz.shapes import mesh_file, thinned
from biped_com_ros.viz.visuals import looks_of
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.surfaces import middle, volume

trimesh = pytest.importorskip('trimesh', reason='meshes need trimesh, which comes with viser')


def test_thinning_keeps_the_shape_and_closes_what_was_closed():
    fine = trimesh.creation.icosphere(subdivisions=5, radius=0.1)
    whole = Triangles(np.array(fine.vertices), np.array(fine.faces))
    light = thinned(whole, 0.01)
    assert len(light.faces) < 0.2 * len(whole.faces)
    assert volume(light) == pytest.approx(volume(whole), rel=0.03)
    # No gaps: every edge is run along as often in one direction as in the other.
    merged = trimesh.Trimesh(light.vertices, light.faces, process=True, validate=False)
    edges = merged.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    balance = np.zeros((len(merged.vertices),) * 2)
    np.add.at(balance, tuple(edges.T), 1)
    assert np.array_equal(balance, balance.T)
    assert np.abs(np.linalg.norm(light.vertices, axis=1) - 0.1).max() < 0.01


def test_thinning_leaves_edges_sharp():
    surface = thinned(joined([box(np.array((0.1, 0.1, 0.1)))]), 0.002)
    assert len(surface.vertices) == 24  # each corner three times, once per side
    assert volume(surface) == pytest.approx(0.001)


@pytest.mark.parametrize('suffix', ['stl', 'dae', 'obj', 'ply', 'glb'])
def test_mesh_files_of_all_kinds_are_read_with_their_scale(tmp_path, suffix):
    if suffix == 'dae':
        pytest.importorskip('collada', reason='DAE files need pycollada')
    mesh = trimesh.creation.box((100.0, 200.0, 300.0))
    mesh.apply_translation((50.0, 0.0, 0.0))
    mesh.export(tmp_path / f'part.{suffix}')
    surface = mesh_file(tmp_path / f'part.{suffix}', np.full(3, 0.001))
    assert volume(surface) == pytest.approx(0.006, rel=1e-4)
    np.testing.assert_allclose(middle(surface), (0.05, 0.0, 0.0), atol=1e-5)


@pytest.mark.parametrize('is_turned', [False, True])
def test_a_mesh_file_is_drawn_from_outside_whichever_way_it_is_turned(tmp_path, is_turned):
    mesh = trimesh.creation.box((0.1, 0.2, 0.3))
    mesh.apply_translation((5.0, 0.0, 0.0))
    if is_turned:
        mesh.invert()
    mesh.export(tmp_path / 'part.stl')
    assert volume(mesh_file(tmp_path / 'part.stl', np.ones(3))) == pytest.approx(0.006, rel=1e-4)


def test_of_thin_walls_only_the_outer_sides_are_drawn(monkeypatch):
    """Thinned, both sides are at one place, and would look shattered."""
    from biped_com_ros.viz.page import Page
    from viser import SceneApi
    sides = {}
    add = SceneApi.add_mesh_simple

    def note(scene, name, *arguments, side='front', **options):
        sides[name] = side
        return add(scene, name, *arguments, side=side, **options)

    monkeypatch.setattr(SceneApi, 'add_mesh_simple', note)
    page = Page('127.0.0.1', 0, 'test', lambda *command: None)
    try:
        page.set_robot(RobotModel.load('talos'))
    finally:
        page.close()
    of_robot = {side for name, side in sides.items() if name.startswith('/robot/')}
    assert of_robot == {'front'}


def test_a_broken_mesh_file_is_named(tmp_path):
    (tmp_path / 'part.stl').write_text('no mesh')
    with pytest.raises(RobotDescriptionError, match=r'part\.stl'):
        mesh_file(tmp_path / 'part.stl', np.ones(3))


def test_robots_are_drawn_where_their_links_are():
    model = RobotModel.load('biped')
    looks = looks_of(model)
    assert not looks.problems
    # As tall as its configuration says, and symmetric.
    state = model.state(model.posture())
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    from biped_com_ros.core.geometry.pose import Pose
    from biped_com_ros.core.model.frames import FrameSet
    for surface in looks.surfaces:
        row = state.placements_in_base(FrameSet(
            ['joint'], [surface.joint], [Pose.identity()]))[0]
        points = surface.triangles.vertices @ row[:3] + row[3]
        low, high = np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))
    assert high[2] - low[2] == pytest.approx(0.83, abs=0.04)
    assert low[1] == pytest.approx(-high[1], abs=0.01)
    assert (237, 107, 26) in {surface.colour for surface in looks.surfaces}  # its orange


@pytest.mark.parametrize('name', ['talos', *[
    pytest.param(name, marks=pytest.mark.thorough) for name in ('g1', 'icub')]])
def test_foreign_robots_are_drawn_completely_and_lightly(name):
    looks = looks_of(RobotModel.load(name))
    assert not looks.problems
    assert len(looks.surfaces) > 25
    assert sum(len(surface.triangles.faces) for surface in looks.surfaces) < 120_000


def small_robot(visuals):
    """Return a model of one box-shaped link with visuals, hanging on the pelvis."""
    data = Path(__file__).parents[2] / 'data'
    robot = ElementTree.fromstring((data / 'sim_robot.urdf').read_text())
    for link in robot.findall('link'):
        for visual in link.findall('visual'):
            link.remove(visual)
    robot.findall('link')[0].extend(ElementTree.fromstring(f'<a>{visuals}</a>'))
    return RobotModel(load_robot_config(data / 'sim_robot.yaml'), ElementTree.tostring(
        robot, encoding='unicode'))


def test_what_cannot_be_drawn_is_reported_and_the_rest_is_drawn():
    looks = looks_of(small_robot(
        '<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual>'
        '<visual><geometry><sphere radius="big"/></geometry></visual>'
        '<visual><geometry><cone/></geometry></visual><visual/>'
        '<visual><origin rpy="0 0"/><geometry><sphere radius="1"/></geometry></visual>'
        '<visual><geometry><sphere radius="1"/></geometry><material name="pale"><color '
        'rgba="1 1 1"/></material></visual>'
        '<visual><origin xyz="1 2 3"/><geometry><box size="1 1 1"/></geometry></visual>'))
    assert len(looks.surfaces) == 1
    np.testing.assert_allclose(middle(looks.surfaces[0].triangles), (1.0, 2.0, 3.0), atol=1e-12)
    problems = '\n'.join(looks.problems)
    assert len(looks.problems) == 6
    for word in ("'nowhere'", "'big'", 'cone', '<geometry>', "not '0 0'", "not '1 1 1'"):
        assert word in problems


def test_a_robot_without_looks_is_drawn_as_sticks():
    model = small_robot('')
    looks = looks_of(model)
    assert not looks.problems and len(looks.surfaces) >= len(model.joint_names)


def test_quaternions_agree_with_scipy_also_at_half_turns():
    rotations = Rotation.random(200, random_state=1).as_matrix()
    half_turns = np.array([np.diag((1.0, -1.0, -1.0)), np.diag((-1.0, 1.0, -1.0)),
                           np.diag((-1.0, -1.0, 1.0)), np.eye(3)])
    rotations = np.concatenate((rotations, half_turns))
    found = wxyz_of(rotations)
    np.testing.assert_allclose(
        Rotation.from_quat(np.roll(found, -1, axis=1)).as_matrix(), rotations, atol=1e-12)
    assert (found[:, 0] >= 0.0).all()
