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
"""The camera of a browser sees the whole robot, however large it is."""

from __future__ import annotations

from types import SimpleNamespace

from biped_com_ros.viz.page import Framing
from biped_com_ros.viz.scene import Scene
import numpy as np
import pytest


class Camera:
    """A browser's camera as viser has it: a new position moves what it looks at along."""

    def __init__(self, width, height):
        self.image_width, self.image_height = width, height
        self.fov, self.look_at = np.radians(75.0), np.zeros(3)
        self._position = np.array((3.0, 3.0, 3.0))

    @property
    def position(self):
        """Return where it is, m."""
        return self._position

    @position.setter
    def position(self, position):
        self.look_at = self.look_at + position - self._position
        self._position = np.asarray(position)

    def row(self, point):
        """Return where a point is seen: 0 at the top, 1 at the bottom of the picture."""
        ahead = self.look_at - self.position
        ahead = ahead / np.linalg.norm(ahead)
        right = np.cross(ahead, (0.0, 0.0, 1.0))
        up = np.cross(right / np.linalg.norm(right), ahead)
        offset = point - self.position
        return 0.5 - 0.5 * (up @ offset) / (ahead @ offset) / np.tan(0.5 * self.fov)


@pytest.mark.parametrize('height', (0.5, 1.75))
@pytest.mark.parametrize('size, lowest', (
    ((1000, 700), 1.0), ((792, 797), 1.0), ((390, 844), 0.5)))
def test_the_whole_robot_fills_the_picture(height, size, lowest):
    """
    On a phone in the upper half: the controls cover the lower one.

    Between the panels of a window of 1500 x 797 there are 792 x 797 pixels.
    """
    camera = Camera(*size)
    Scene.frame(SimpleNamespace(height=height), camera)
    top, feet = camera.row(np.array((0.0, 0.0, height))), camera.row(np.zeros(3))
    assert 0.02 < top < feet < lowest - 0.01
    assert feet - top > 0.6 * lowest


class Server:
    """Viser with one browser."""

    def __init__(self):
        self.updates = []
        self.camera = SimpleNamespace(
            image_width=1000, image_height=700, on_update=self.updates.append)

    def on_client_connect(self, callback):
        callback(SimpleNamespace(client_id=3, camera=self.camera))

    def on_client_disconnect(self, callback):
        """Never call it."""

    def get_clients(self):
        return {3: SimpleNamespace(client_id=3, camera=self.camera)}

    def move_camera(self):
        for update in self.updates:
            update(self.camera)


def test_a_page_that_was_not_laid_out_yet_is_framed_again():
    """The first size may be that of a desktop; a camera that the user moves stays."""
    server, framed = Server(), []
    framing = Framing(server)
    server.move_camera()  # there is no robot yet
    framing.set_scene(SimpleNamespace(frame=lambda camera: framed.append(camera.image_width)))
    server.move_camera()
    assert framed == [1000]
    server.camera.image_width, server.camera.image_height = 390, 844
    server.move_camera()
    server.move_camera()
    assert framed == [1000, 390]
