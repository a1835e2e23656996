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
"""Points the browsers' cameras at the robot."""

from __future__ import annotations

from typing import Any

from biped_com_ros.viz.scene import is_high, Scene


class Framing:
    """
    Lets each browser look at the whole robot.

    Parameters
    ----------
    server
        Of viser.

    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._scene: Scene | None = None
        #: Whether each browser's page was high, as on a phone, when its camera was set.
        self._was_high: dict[int, bool] = {}
        server.on_client_connect(self._connect)
        server.on_client_disconnect(lambda client: self._was_high.pop(client.client_id, None))

    def set_scene(self, scene: Scene) -> None:
        """Look at a robot, from now on, also in browsers that were there before it."""
        self._scene = scene
        for client in self._server.get_clients().values():
            self._frame(client)

    def _connect(self, client: Any) -> None:
        self._frame(client)
        # The first size may be that before the layout. A page that changes its shape later tells
        # its size as soon as its camera moves.
        client.camera.on_update(lambda camera: self._frame_anew(client))

    def _frame_anew(self, client: Any) -> None:
        """Frame again what was framed for a page of the other shape."""
        if self._was_high.get(client.client_id) == (not is_high(client.camera)):
            self._frame(client)

    def _frame(self, client: Any) -> None:
        if self._scene is not None:
            self._was_high[client.client_id] = is_high(client.camera)
            self._scene.frame(client.camera)
