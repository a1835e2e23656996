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
"""
The page: figures and charts on the left, the robot in the middle, controls on the right.

It does not use ROS: it shows a `View`, and calls a function with the commands of its controls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.viz import palette, widgets
from biped_com_ros.viz.clicks import Click
from biped_com_ros.viz.controls import CommandHandler, Controls
from biped_com_ros.viz.figures import Figures
from biped_com_ros.viz.scene import is_high, Scene
from biped_com_ros.viz.server import open_server, url_of
from biped_com_ros.viz.view import View
import numpy as np

#: Periods of text and charts, s; the scene is drawn with every frame.
_TEXT_PERIOD, _CHART_PERIOD = 0.25, 0.25
_MOST_CLICKS = 4  # that wait for the next frame


class Page:
    """
    The page and its web server.

    Parameters
    ----------
    host, port, title, most_browsers
        See `open_server`.
    on_command
        Called from another thread with the name and the value of a command when a control is
        used.

    Attributes
    ----------
    url : str
        Address for the browser, on a network with the secret token.
    address : str
        The same without the token.
    controls : Controls
        On the right.

    """

    def __init__(self, host: str, port: int, title: str, on_command: CommandHandler,
                 most_browsers: int = 8) -> None:
        self._title = title
        self._server, access = open_server(
            host, port, title, most_browsers, lambda: self._title)
        self.address = url_of(self._server)
        self.url = f'{self.address}/?token={access.token}' if access.token else self.address
        self._figures: Figures | None = None
        self._scene: Scene | None = None
        self._model: RobotModel | None = None
        self._text_due = self._charts_due = -np.inf
        self._on_command = on_command
        self._clicks: deque[Click] = deque(maxlen=_MOST_CLICKS)
        self._is_clickable = False
        self._set_theme(False)
        self._make_panel(on_command)
        self._framing = Framing(self._server)

    @property
    def browsers(self) -> int:
        """Return the number of browsers that show it."""
        return len(self._server.get_clients())

    def on_browsers(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a browser connects or disconnects."""
        self._server.on_client_connect(lambda client: callback())
        self._server.on_client_disconnect(lambda client: callback())

    def set_robot(self, model: RobotModel) -> tuple[str, ...]:
        """Draw a robot from now on; return the problems of its visuals."""
        self._model = model
        self._title = model.config.name
        self._server.gui.set_panel_label(self._title)
        self.controls.set_robot(model)
        self._figures = Figures(self._server.gui, model)
        self._scene = Scene(self._server, model)
        self._is_clickable = False
        self._apply_looks()
        self._framing.set_scene(self._scene)
        self._waiting.visible = False
        return self._scene.looks.problems

    def draw(self, view: View, time: float) -> None:
        """Show a view; `time` in s."""
        if self._scene is None or self._model is None or self._figures is None:
            return
        with self._server.atomic():
            state = None if view.positions is None else self._model.state(
                view.positions).in_world(view.base)
            self._scene.draw(view, state)
            self._push(state)
            self._figures.sample(view, time)
            if time >= self._text_due:
                self._text_due = time + _TEXT_PERIOD
                self._brief.content = widgets.brief(view)
                self._story.visible = bool(view.story)
                self._story.content = widgets.story(view)
                self._results.visible = bool(view.results)
                self._results.content = widgets.results(view)
                self._health.content = widgets.health(view.health)
                self._figures.update_text(view)
                self.controls.update(view)
                self._update_clickable(self._scene)
            if time >= self._charts_due:
                self._charts_due = time + _CHART_PERIOD
                self._figures.update_charts()

    def _update_clickable(self, scene: Scene) -> None:
        """Let links be clicked while pushes are possible: otherwise they would only look so."""
        if self.controls.can_push != self._is_clickable:
            self._is_clickable = self.controls.can_push
            scene.set_clickable(self._clicks.append if self._is_clickable else None)

    def _push(self, state: RobotState | None) -> None:
        """Execute the clicks since the last frame."""
        while self._clicks:
            click = self._clicks.popleft()
            if state is None or self._scene is None or not self._is_clickable:
                continue
            push = self._scene.push_of(click, state)
            if push is not None:
                self._on_command('push_at', (*push, self.controls.push_share))

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()

    def _set_theme(self, is_dark: bool) -> None:
        self._server.gui.configure_theme(
            show_logo=False, show_share_button=False, dark_mode=is_dark, control_width='medium',
            brand_color=palette.FORCE)

    def _make_panel(self, on_command: CommandHandler) -> None:
        gui = self._server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(330)
        gui.add_html(widgets.NARROW)
        self._brief = gui.add_html('')
        self._story = gui.add_html('', visible=False)
        # By itself, so that a table that was closed stays so until there is another one.
        self._results = gui.add_html('', visible=False)
        self._waiting = gui.add_html(widgets.note('waiting for the robot description'))
        tabs = gui.add_tab_group()
        with tabs.add_tab('Controls'):
            self.controls = Controls(gui, on_command)
        with tabs.add_tab('Health'):
            self._health = gui.add_html('')
        with tabs.add_tab('Look'):
            self._make_look_controls(gui)
        with tabs.add_tab('Glossary'):
            gui.add_html(widgets.glossary())

    def _make_look_controls(self, gui: Any) -> None:
        dark = gui.add_checkbox('dark', False)
        dark.on_update(lambda event: self._set_theme(dark.value))
        opacity = gui.add_slider('robot is solid [%]', min=0, max=100, step=5, initial_value=45)
        links = gui.add_checkbox('centres of mass of the links', True)
        forces = gui.add_checkbox('forces of the ground', True)

        def look(_: Any = None) -> None:
            if self._scene is not None:
                self._scene.show('robot', opacity.value > 0)
                self._scene.set_opacity(0.01 * opacity.value)
                self._scene.show('links', links.value)
                self._scene.show('forces', forces.value)

        self._apply_looks = look
        for control in (opacity, links, forces):
            control.on_update(look)


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
