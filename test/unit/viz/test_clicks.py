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
"""A click on the robot becomes a push of the link that it meets, at the point that it meets."""

import math
import time
from types import SimpleNamespace
import urllib.request

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.shapes import box
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz.clicks import Click, first_hit, push_of
from biped_com_ros.viz.controls import checked, GROUPS
import numpy as np
import pytest

BOX = box(np.array((0.2, 0.4, 0.6)))
MODEL = RobotModel.load('biped')
IDENTITY = Pose.identity()


@pytest.mark.parametrize(('origin', 'direction', 'distance'), [
    ((1.0, 0.05, 0.1), (-1.0, 0.0, 0.0), 0.9), ((-1.0, 0.05, 0.1), (1.0, 0.0, 0.0), 0.9),
    ((0.03, 0.02, 2.0), (0.0, 0.0, -1.0), 1.7), ((0.03, 0.02, 0.0), (0.0, 1.0, 0.0), 0.18),
    ((1.0, 0.25, 0.1), (-1.0, 0.0, 0.0), None), ((1.0, 0.05, 0.1), (1.0, 0.0, 0.0), None),
    ((1.1, 0.0, 0.0), (-0.8, 0.6, 0.0), None),
    ((0.5, 0.0, 0.0), (-0.8, 0.3, math.sqrt(0.27)), 0.5)])
def test_a_ray_meets_the_nearest_face(origin, direction, distance):
    found = first_hit(BOX, np.array(origin), np.array(direction))
    assert found == (distance if distance is None else pytest.approx(distance, abs=1e-12))


def push(ray, base, turn=IDENTITY.rotation):
    """Click on a box that the joint of the heaviest link carries, turned in the world."""
    index = int(np.argmax(MODEL.link_masses))
    joint = int(MODEL.frames([MODEL.link_names[index]]).joints[0])
    state = MODEL.state(MODEL.posture()).in_world(base)
    where = base.apply(state.link_coms_in_base[index]) + (0.0, 0.0, 0.07)
    origin = where - 2.0 * np.array(ray) / np.linalg.norm(ray)
    return where, push_of(Click(joint, BOX, origin, np.array(ray)), turn, where, MODEL, state)


def test_a_push_is_level_and_away_from_the_camera_and_acts_where_it_was_clicked():
    base = Pose.from_rpy((0.2, -0.1, 1.3), np.array((3.0, 4.0, 0.5)))
    turn = Pose.from_rpy((0.0, 0.0, math.pi / 2.0), np.zeros(3)).rotation
    where, found = push((-3.0, 0.0, -1.0), base, turn)
    assert found.link == MODEL.link_names[int(np.argmax(MODEL.link_masses))]
    np.testing.assert_allclose(found.direction, (-1.0, 0.0, 0.0), atol=1e-12)
    # The turned box is 0.4 m thick along x: the ray meets it 0.2 m before its middle.
    others = [i for i, joint in enumerate(MODEL.frames(MODEL.link_names).joints)
              if joint == MODEL.frames([found.link]).joints[0]]
    state = MODEL.state(MODEL.posture())
    com = base.apply(MODEL.link_masses[others] @ state.link_coms_in_base[others]
                     / MODEL.link_masses[others].sum())
    np.testing.assert_allclose(com + found.arm, where + (0.2, 0.0, 0.2 / 3.0), atol=1e-9)
    # From straight above there is no level direction.
    np.testing.assert_allclose(push((0.0, 0.0, -1.0), base)[1].direction, (0.0, 0.0, -1.0))


def test_what_no_click_can_be_is_refused():
    base = IDENTITY
    state = MODEL.state(MODEL.posture()).in_world(base)
    for ray in ((math.nan, 0.0, 0.0), (math.inf, 0.0, 0.0), (0.0, 0.0, 0.0)):
        for click in (Click(1, BOX, np.zeros(3), np.array(ray)),
                      Click(1, BOX, np.array(ray) + math.nan, np.array((1.0, 0.0, 0.0)))):
            assert push_of(click, np.eye(3), np.zeros(3), MODEL, state) is None
    miss = Click(1, BOX, np.full(3, 9.0), np.array((1.0, 0.0, 0.0)))
    assert push_of(miss, np.eye(3), np.zeros(3), MODEL, state) is None
    good = ('torso', (0.1, 0.0, 0.2), (1.0, 0.0, 0.0), 0.15)
    assert checked('push_at', good) == good
    for bad in ((*good[:3], 7.0), (good[0], (9.0, 0.0, 0.0), *good[2:]),
                (*good[:2], (2.0, 0.0, 0.0), 0.15), (*good[:2], (math.nan, 0.0, 0.0), 0.15)):
        with pytest.raises(InputError):
            checked('push_at', bad)


@pytest.fixture
def page():
    """Yield a page without a browser."""
    pytest.importorskip('viser', reason='the page needs viser: pip install viser')
    from biped_com_ros.viz.page import Page
    page = Page('127.0.0.1', 0, 'test', lambda *command: None)
    yield page
    page.close()


@pytest.mark.parametrize(('robot', 'missing'), [
    ('biped', set()), ('talos', {'torso'}), ('g1_as_sold', {'tare', 'torso'}),
    ('three_link', {'torso', 'walk'})])
def test_controls_that_a_robot_does_not_have_are_absent(page, robot, missing):
    page.set_robot(RobotModel.load(robot))
    with urllib.request.urlopen(page.url) as response:
        assert f'<title>{robot}</title>' in response.read().decode()
    folders = page.controls.folders
    assert {group for group, folder in folders.items() if not folder.visible} == missing
    assert set(folders) == set(GROUPS)


def test_the_sliders_of_the_torso_follow_the_keys_unless_they_are_moved(page):
    from biped_com_ros.viz.view import View
    page.set_robot(MODEL)
    controls, view = page.controls, View(torso=np.array((np.radians(10.0), np.radians(30.0), 0.0)))
    controls.update(view)
    assert [slider.value for slider in controls.bends] == [8.5, 5.0]
    view.torso = np.array((np.radians(10.3), np.radians(30.0), 0.0))  # noise
    controls.update(view)
    assert [slider.value for slider in controls.bends] == [8.5, 5.0]
    controls._torso_changed = time.monotonic()
    view.torso = np.zeros(3)
    controls.update(view)
    assert [slider.value for slider in controls.bends] == [8.5, 5.0]
    controls._torso_changed = -np.inf
    controls.update(view)
    assert [slider.value for slider in controls.bends] == [0.0, 0.0]


def test_the_page_turns_clicks_into_commands_while_pushes_are_possible(monkeypatch):
    """Each surface is a button then, and none where there is no simulator."""
    pytest.importorskip('viser', reason='the page needs viser: pip install viser')
    from biped_com_ros.viz.page import Page
    from biped_com_ros.viz.view import View
    from viser import MeshHandle
    commands, clickable = [], {}
    monkeypatch.setattr(MeshHandle, 'on_click',
                        lambda mesh, call: clickable.update({mesh.name: call}))
    monkeypatch.setattr(MeshHandle, 'remove_click_callback',
                        lambda mesh, which: clickable.pop(mesh.name, None))
    page = Page('127.0.0.1', 0, 'test', lambda *command: commands.append(command))
    try:
        page.set_robot(MODEL)
        view = View(positions=MODEL.posture(), base=Pose(np.eye(3), np.array((0.0, 0.0, 0.5))))
        page.controls.set_unavailable({'push': 'simulator is not running'})
        page.draw(view, 0.0)
        assert not clickable
        page.controls.set_unavailable({})
        page.draw(view, 1.0)
        assert clickable
        centre = MODEL.state(view.positions).in_world(view.base).com_in_world
        # From the front, at several heights: each surface is asked, as the browser asks the one
        # that it has drawn there.
        for height in np.arange(-0.1, 0.3, 0.04):
            event = SimpleNamespace(ray_origin=(centre[0] + 3.0, 0.01, centre[2] + height),
                                    ray_direction=(-1.0, 0.0, 0.0))
            for call in clickable.values():
                call(event)
                page.draw(view, 1.1)
        assert commands and {name for name, _ in commands} == {'push_at'}
        for _, value in commands:
            link, arm, direction, share = checked('push_at', value)
            assert link in MODEL.link_names and share == pytest.approx(0.15)
            assert direction == pytest.approx((-1.0, 0.0, 0.0))
            assert abs(arm[2]) < 0.4 and arm[0] > -0.2
        assert len({value[0] for _, value in commands}) > 1
        page.controls.set_unavailable({'push': 'simulator is not running'})
        page.draw(view, 2.0)
        assert not clickable
    finally:
        page.close()
