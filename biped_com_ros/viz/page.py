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

Nothing in here knows ROS: a `View` comes in, commands go out by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import re
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.limits import effort_limits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz import palette, widgets
from biped_com_ros.viz.charts import Chart, Strips
from biped_com_ros.viz.scene import Scene
from biped_com_ros.viz.server import open_server, url_of
from biped_com_ros.viz.view import View
import numpy as np

#: Seconds between two updates of words and charts; the scene moves with every frame.
_WORDS, _CHARTS = 0.25, 0.25
#: Limits above this, N m, are those of URDFs without any.
_LARGEST_EFFORT = 1e6
_CAPTURED = re.compile(r'(\d+) of (\d+) captured')

CommandHandler = Callable[[str, Any], None]

#: What a command needs, in words for those who miss it.
NEEDS = {
    'tare': 'wrench_aggregator', 'untare': 'wrench_aggregator', 'push': 'simulator',
    'reset': 'simulator', 'hang': 'simulator', 'torso': 'torso_controller',
    'freeze': 'torso_controller',
    'feedforward': 'gravity_compensation', 'step': 'gait_player', 'walk': 'gait_player',
    'stop': 'gait_player',
    **{f'calibration/{what}': 'com_calibrator'
       for what in ('start', 'reset', 'capture', 'skip', 'solve', 'publish')}}
#: Directions of a push: forward and left.
PUSHES = {'forward': (1.0, 0.0), 'back': (-1.0, 0.0), 'left': (0.0, 1.0), 'right': (0.0, -1.0)}


class Page:
    """
    The page and its web server.

    Parameters
    ----------
    host, port, title
        See `open_server`.
    on_command
        Called with the name of a command and its value whenever somebody uses a control; from a
        thread of its own.

    Attributes
    ----------
    url : str
        What to open in a browser.

    """

    def __init__(self, host: str, port: int, title: str, on_command: CommandHandler) -> None:
        self._server = open_server(host, port, title)
        self.url = url_of(self._server)
        self._on_command = on_command
        self._controls: dict[str, list[Any]] = {}
        self._notes: dict[str, Any] = {}
        self._reasons: dict[str, str] = {}
        self._charts: list[Chart] = []
        self._scene: Scene | None = None
        self._model: RobotModel | None = None
        self._words_at = self._charts_at = -np.inf
        self._set_theme(False)
        self._make_controls()
        self._server.on_client_connect(self._frame)

    # -- from the node

    @property
    def visitors(self) -> int:
        """How many browsers look at it."""
        return len(self._server.get_clients())

    def on_visitors(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when a browser comes or goes."""
        self._server.on_client_connect(lambda client: callback())
        self._server.on_client_disconnect(lambda client: callback())

    def set_robot(self, model: RobotModel) -> tuple[str, ...]:
        """Draw a robot from now on; return what could not be drawn, in words."""
        self._model = model
        limits = effort_limits(model)
        self._limits = np.where(limits < _LARGEST_EFFORT, limits, 0.0)
        self._driven = tuple(name for name in model.joint_names
                             if name not in model.config.passive_joints)
        self._make_figures(model)
        self._scene = Scene(self._server, model)
        self._apply_looks()
        for client in self._server.get_clients().values():
            self._frame(client)
        self._waiting.visible = False
        return self._scene.looks.problems

    def draw(self, view: View, time: float) -> None:
        """Show a view; `time` in seconds paces what need not move with every frame."""
        if self._scene is None or self._model is None:
            return
        with self._server.atomic():
            state = None if view.positions is None else self._model.state(
                view.positions).in_world(view.base)
            self._scene.draw(view, state)
            self._sample(view, time)
            if time >= self._words_at:
                self._words_at = time + _WORDS
                self._write(view)
            if time >= self._charts_at:
                self._charts_at = time + _CHARTS
                for chart in self._charts:
                    chart.update()

    def set_missing(self, reasons: Mapping[str, str]) -> None:
        """Grey the controls of commands that cannot be carried out; the values say why."""
        for command, controls in self._controls.items():
            reason = reasons.get(command, '')
            for control in controls:
                if control.disabled != bool(reason):
                    control.disabled = bool(reason)
        groups = {'tare': 'sensors', 'push': 'push', 'torso': 'torso', 'step': 'walk',
                  'feedforward': 'feedforward', 'calibration/start': 'calibration'}
        for command, group in groups.items():
            reason = reasons.get(command, '')
            if self._reasons.get(command) != reason:
                self._reasons[command] = reason
                self.say(group, reason, None)

    def say(self, group: str, words: str, good: bool | None = None) -> None:
        """Write under a group of controls how it went; nothing: clear it."""
        handle = self._notes[group]
        handle.visible = bool(words)
        if words:
            self._put(handle, widgets.note(words, good))

    def set_feedforward(self, is_on: bool) -> None:
        """Show whether gravity feedforward is on."""
        label = 'Turn off' if is_on else 'Turn on'
        if self._feedforward.label != label:
            self._feedforward.label = label
            self._feedforward_on = is_on
            self.say('feedforward', 'on' if is_on else 'off', is_on or None)

    def close(self) -> None:
        """Stop to serve."""
        self._server.stop()

    # -- set-up

    def _set_theme(self, is_dark: bool) -> None:
        self._server.gui.configure_theme(
            show_logo=False, show_share_button=False, dark_mode=is_dark, control_width='medium',
            brand_color=palette.FORCE)

    def _frame(self, client: Any) -> None:
        """Have a browser see all of the robot."""
        if self._scene is not None:
            self._scene.frame(client.camera)

    def _make_controls(self) -> None:
        gui = self._server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(330)
        gui.add_html(widgets.NARROW)
        self._brief = gui.add_html('')
        self._waiting = gui.add_html(widgets.note('waiting for the robot description'))
        tabs = gui.add_tab_group()
        with tabs.add_tab('Controls'):
            self._make_sensor_controls(gui)
            self._make_push_controls(gui)
            self._make_torso_controls(gui)
            self._make_walk_controls(gui)
            self._make_calibration_controls(gui)
        with tabs.add_tab('Health'):
            self._health = gui.add_html('')
        with tabs.add_tab('Look'):
            self._make_look_controls(gui)
        with tabs.add_tab('Words'):
            gui.add_html(widgets.glossary())

    def _make_sensor_controls(self, gui: Any) -> None:
        with gui.add_folder('Foot sensors'):
            self._button(gui, 'tare', 'Tare', 'While the feet are in the air: what the sensors '
                         'read beyond their own weight is taken off from now on')
            self._button(gui, 'untare', 'Forget the tare', 'Use the readings as they come',
                         main=False)
            self._note(gui, 'sensors')
        with gui.add_folder('Gravity feedforward'):
            self._feedforward_on = False
            self._feedforward: Any = gui.add_button(
                'Turn on', hint='Efforts that hold the robot against its weight')
            self._controls['feedforward'] = [self._feedforward]
            self._feedforward.on_click(
                lambda event: self._on_command('feedforward', not self._feedforward_on))
            self._note(gui, 'feedforward')

    def _make_push_controls(self, gui: Any) -> None:
        with gui.add_folder('Simulated robot'):
            strength = gui.add_slider(
                'force [% of weight]', min=2, max=60, step=1, initial_value=15)
            towards = gui.add_dropdown('towards', tuple(PUSHES))
            button = gui.add_button('Push', hint='A short shove at the heaviest link')
            button.on_click(lambda event: self._on_command(
                'push', (towards.value, 0.01 * strength.value)))
            self._controls['push'] = [strength, towards, button]
            hang = gui.add_checkbox('hangs in the air', False, hint='Off the ground, to tare')
            hang.on_update(lambda event: self._on_command('hang', hang.value))
            self._controls['hang'] = [hang]
            self._button(gui, 'reset', 'Put it on its feet again', 'Begin anew, standing',
                         main=False)
            self._note(gui, 'push')

    def _make_torso_controls(self, gui: Any) -> None:
        with gui.add_folder('Torso'):
            sliders = [gui.add_slider(label, min=-15.0, max=15.0, step=0.5, initial_value=0.0)
                       for label in ('forward [deg]', 'left [deg]')]

            def send(_: Any = None) -> None:
                self._on_command('torso', tuple(slider.value for slider in sliders))

            def centre(_: Any) -> None:
                for slider in sliders:
                    slider.value = 0.0
                send()

            for slider in sliders:
                slider.on_update(lambda event: send() if event.client is not None else None)
            button = gui.add_button('Upright', hint='Both to zero', color='gray')
            button.on_click(centre)
            freeze = gui.add_checkbox('hold still', False, hint='Stop, and take no targets')
            freeze.on_update(lambda event: self._on_command('freeze', freeze.value))
            self._controls['torso'] = [*sliders, button]
            self._controls['freeze'] = [freeze]
            self._note(gui, 'torso')

    def _make_walk_controls(self, gui: Any) -> None:
        with gui.add_folder('Walk'):
            self._button(gui, 'step', 'Single step', 'Shift the weight, lift a foot, set it down')
            self._button(gui, 'walk', 'Walk', 'As many steps as the parameter says')
            self._button(gui, 'stop', 'Stop', 'Finish the step and stand on both feet', main=False)
            self._gait = gui.add_html('', visible=False)
            self._note(gui, 'walk')

    def _make_calibration_controls(self, gui: Any) -> None:
        with gui.add_folder('Calibration of the masses'):
            self._progress = gui.add_progress_bar(0.0)
            self._progress_words = gui.add_html('')
            for command, label, hint in (
                    ('start', 'Start', 'Plan poses and take them'),
                    ('reset', 'Start anew', 'Plan poses and take them; what was captured so far '
                     'is kept aside'),
                    ('capture', 'Capture now', 'Take the posture as it is'),
                    ('skip', 'Skip this pose', 'Go on to the next one'),
                    ('solve', 'Solve', 'Estimate the masses from what was captured'),
                    ('publish', 'Use the result', 'Publish the calibrated URDF on '
                     'robot_description; the page then compares before and after')):
                self._button(gui, f'calibration/{command}', label, hint,
                             main=command in ('start', 'solve'))
            self._before_after = gui.add_html('', visible=False)
            self._note(gui, 'calibration')

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

    def _make_figures(self, model: RobotModel) -> None:
        """Fill the left side, which depends on the robot."""
        gui = self._server.gui
        panel = gui.add_panel()
        feet = tuple(model.config.feet)
        self._strips = Strips((
            'URDF', 'fused', 'calibrated', 'ZMP', 'DCM', 'CoM y', 'ZMP y', 'DCM y', 'bend',
            'total', *(f'foot {foot}' for foot in feet), *(f'tendon {i}' for i in range(4))))
        with panel.add_tab('Balance'):
            self._headline = gui.add_html('')
            self._legend = gui.add_html('')
            marks = palette.MARKS
            self._chart('error of the CoM [mm]', {
                'URDF': marks['com'].colour, 'fused': marks['fused'].colour,
                'calibrated': marks['calibrated'].colour}, (0.0, 1.0))
            self._chart('distance to the edge of support [mm]', {
                'ZMP': marks['zmp'].colour, 'DCM': marks['dcm'].colour}, (0.0, 20.0))
            colours = (palette.FORCE, palette.TENDON, palette.GOOD, palette.FAIR)
            self._chart('vertical force [N]', {
                'total': palette.QUIET,
                **{f'foot {foot}': colour for foot, colour in zip(feet, colours)}}, (0.0, 1.0))
            self._chart('to the left [mm]', {
                'CoM y': marks['com'].colour, 'ZMP y': marks['zmp'].colour,
                'DCM y': marks['dcm'].colour}, (-20.0, 20.0))
        with panel.add_tab('Joints'):
            self._efforts = gui.add_html('')
        if model.config.torso is not None:
            with panel.add_tab('Torso'):
                self._tendons = gui.add_html('')
                colours = (palette.FORCE, palette.TENDON, palette.GOOD, palette.FAIR)
                self._chart('tension [N]', {
                    f'tendon {i}': colour for i, colour in enumerate(colours)}, (0.0, 5.0))
                self._chart('bend [deg]', {'bend': palette.BAD}, (0.0, 2.0))
        panel.dock_left()
        panel.set_width(370)

    def _chart(self, title: str, series: Mapping[str, palette.Colour],
               at_least: tuple[float, float]) -> None:
        self._charts.append(Chart(self._server.gui, self._strips, title, series, at_least))

    def _button(self, gui: Any, command: str, label: str, hint: str,
                main: bool = True) -> None:
        button = gui.add_button(label, hint=hint, color=None if main else 'gray')
        button.on_click(lambda event: self._on_command(command, None))
        self._controls.setdefault(command, []).append(button)

    def _note(self, gui: Any, group: str) -> None:
        self._notes[group] = gui.add_html('', visible=False)

    # -- drawing

    def _sample(self, view: View, time: float) -> None:
        forces = {f'foot {name}': float(foot.wrench[2]) for name, foot in view.feet.items()}
        sideways = {f'{words} y': 1e3 * float(point[1]) for words, kind in (
            ('CoM', 'com'), ('ZMP', 'zmp'), ('DCM', 'dcm'))
            if (point := view.point(kind)) is not None}
        self._strips.add(time, {
            'URDF': 1e3 * view.error('com'), 'fused': 1e3 * view.error('fused'),
            'calibrated': 1e3 * view.error('calibrated'), 'ZMP': 1e3 * view.margin,
            'DCM': 1e3 * view.dcm_margin, 'bend': float(np.degrees(view.torso[0])), **forces,
            **sideways, 'total': sum(forces.values()) if forces else float('nan'),
            **{f'tendon {i}': float(tension) for i, tension in enumerate(view.tensions)}})

    def _write(self, view: View) -> None:
        model = self._model
        assert model is not None
        self._put(self._brief, widgets.brief(view))
        self._put(self._headline, widgets.headline(view, model.mass * GRAVITY))
        self._put(self._legend, widgets.legend(view))
        efforts = view.efforts
        index = model.joint_index(self._driven)
        self._put(self._efforts, widgets.effort_bars(
            self._driven, model.config.groups, None if efforts is None else efforts[index],
            self._limits[index], view.feedforward))
        if model.config.torso is not None:
            self._put(self._tendons, widgets.tendons(view, 60.0))
        self._put(self._health, widgets.health(view.health))
        self._gait.visible = bool(view.gait)
        self._put(self._gait, widgets.words(f'gait_player: {view.gait}'))
        self._write_calibration(view)

    def _write_calibration(self, view: View) -> None:
        captured = _CAPTURED.search(view.calibration)
        if captured:
            self._progress.value = 100.0 * int(captured[1]) / max(int(captured[2]), 1)
        self._put(self._progress_words, widgets.words(view.calibration))
        before, after = view.error('com'), view.error('calibrated')
        self._before_after.visible = bool(np.isfinite(after))
        if np.isfinite(after):
            self._put(self._before_after, widgets.before_after(before, after))

    @staticmethod
    def _put(handle: Any, content: str) -> None:
        """Send HTML unless it is there already."""
        if handle.content != content:
            handle.content = content
