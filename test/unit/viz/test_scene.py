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
"""The 3-D part of the page, on a server without a browser."""

from __future__ import annotations

import math

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz.scene import Scene
from biped_com_ros.viz.view import ContactView, View
import numpy as np
import pytest

viser = pytest.importorskip('viser')

MODEL = RobotModel.load('talos')
SQUARE = np.array(((0.1, 0.1, 0.0), (-0.1, 0.1, 0.0), (-0.1, -0.1, 0.0), (0.1, -0.1, 0.0)))


@pytest.fixture(scope='module')
def scene():
    server = viser.ViserServer(host='127.0.0.1', port=0, verbose=False)
    yield Scene(server, MODEL)
    server.stop()


def test_the_region_of_the_com_is_drawn_where_it_is_not_the_support(scene):
    view = View(polygon=SQUARE, com_region=SQUARE.copy(), margin=0.05)
    scene.draw(view, None)
    assert not scene.com_region.visible
    view.com_region = SQUARE + (0.2, -0.1, 0.0)
    scene.draw(view, None)
    assert scene.com_region.visible
    starts = scene.com_region.points[:, 0]
    np.testing.assert_allclose(starts[:, :2], view.com_region[:, :2], atol=1e-6)
    view.com_region = np.empty((0, 3))
    scene.draw(view, None)
    assert not scene.com_region.visible


def test_the_force_on_a_hand_is_an_arrow_from_it_along_the_world(scene):
    turn = Pose.from_rpy((0.3, -0.2, 1.1), np.array((0.5, -0.4, 1.0)))
    state = MODEL.state(MODEL.posture()).in_world(turn)
    hand = MODEL.frames([MODEL.config.hands['right'].frame])
    row = state.placements_in_base(hand)[0]
    force = np.array((0.0, 60.0, 120.0))
    in_hand = row[:3] @ turn.rotation.T @ force
    view = View(hands={'left': ContactView(), 'right': ContactView(np.array((*in_hand, 0, 0, 0)))})
    scene.draw(view, state)
    assert scene.hand_arrows.visible
    (tail, head), = scene.hand_arrows.points
    np.testing.assert_allclose(tail, turn.apply(row[3]), atol=1e-5)
    along = (head - tail) / np.linalg.norm(head - tail)
    np.testing.assert_allclose(along, force / np.linalg.norm(force), atol=1e-5)
    view.hands['right'].wrench[:] = math.nan
    scene.draw(view, state)
    assert not scene.hand_arrows.visible
