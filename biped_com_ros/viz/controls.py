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
"""The page's controls, by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import re
import reprlib
import time
from typing import Any, NamedTuple

from biped_com_ros.core.errors import BipedComError, InputError, UnknownNameError
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz import widgets
from biped_com_ros.viz.view import View
import numpy as np

CommandHandler = Callable[[str, Any], None]

#: Directions of a push: forward and left.
PUSH_DIRECTIONS = {
    'forward': (1.0, 0.0), 'back': (-1.0, 0.0), 'left': (0.0, 1.0), 'right': (0.0, -1.0)}


class PageCommand(NamedTuple):
    """
    What a control does.

    Attributes
    ----------
    group
        Of the parameter `controls`, which permits it.
    note
        Under which controls its results are shown.
    node, service
        Who executes it; without a service by topics.
    is_switch
        Whether the service turns something on and off.

    """

    group: str
    note: str
    node: str
    service: str = ''
    is_switch: bool = False


COMMANDS = {
    'tare': PageCommand('tare', 'sensors', 'wrench_aggregator', 'tare'),
    'untare': PageCommand('tare', 'sensors', 'wrench_aggregator', 'untare'),
    'feedforward': PageCommand('feedforward', 'feedforward', 'gravity_compensation'),
    'push': PageCommand('simulator', 'push', 'simulator'),
    'push_at': PageCommand('simulator', 'push', 'simulator'),
    'hang': PageCommand('simulator', 'push', 'simulator', 'hang', is_switch=True),
    'reset': PageCommand('simulator', 'push', 'simulator', 'reset'),
    'torso': PageCommand('torso', 'torso', 'torso_controller'),
    'freeze': PageCommand('torso', 'torso', 'torso_controller', 'freeze', is_switch=True),
    'step': PageCommand('walk', 'walk', 'gait_player', 'single_step'),
    'walk': PageCommand('walk', 'walk', 'gait_player', 'walk'),
    'stop': PageCommand('walk', 'walk', 'gait_player', 'stop'),
    'balance': PageCommand('walk', 'walk', 'gait_player', 'balance', is_switch=True),
    'record': PageCommand('record', 'record', 'viewer'),
    **{f'calibration/{name}': PageCommand('calibration', 'calibration', 'com_calibrator', name)
       for name in ('start', 'reset', 'capture', 'skip', 'solve', 'publish')}}
#: Groups that the parameter `controls` permits.
GROUPS = tuple(dict.fromkeys(command.group for command in COMMANDS.values()))
#: Command whose reason for not being available is shown, the first one of each note.
_EXPLAINED = {command.note: name for name, command in reversed(COMMANDS.items())}
#: Ranges of the sliders: force, share of the weight; angles, deg.
_PUSH, _BEND = (0.02, 0.6), (-15.0, 15.0)
#: Longest distance of a clicked point from the centre of mass of its link, m.
_LONGEST_ARM = 5.0
#: Time after a change of a slider of the torso in which it does not follow the robot, s, and least
#: difference that it follows, deg.
_HELD, _FOLLOWED = 2.0, 0.75
_CAPTURED = re.compile(r'(\d+) of (\d+) captured')


def missing_controls(model: RobotModel) -> frozenset[str]:
    """Return the groups of controls that make no sense for a robot."""
    config = model.config
    try:
        legs_of(model)
    except BipedComError:
        can_walk = False
    else:
        can_walk = True
    has = {'tare': bool(config.wrench_sensors), 'torso': config.torso is not None,
           'walk': can_walk,
           'calibration': bool(config.wrench_sensors) or config.has_foot_wrenches}
    return frozenset(group for group, is_there in has.items() if not is_there)


def permitted(controls: str) -> frozenset[str]:
    """
    Return the commands of groups of controls.

    Parameters
    ----------
    controls
        Names of :data:`GROUPS` separated by commas, ``all`` or ``none``.

    Raises
    ------
    UnknownNameError
        If there is no such group.

    """
    names = [name.strip() for name in controls.split(',')]
    if names == ['none']:
        return frozenset()
    for name in names:
        if name not in GROUPS and names != ['all']:
            raise UnknownNameError('group of controls', name, ('all', 'none', *GROUPS),
                                   'parameter controls')
    groups = GROUPS if names == ['all'] else names
    return frozenset(name for name, command in COMMANDS.items() if command.group in groups)


def checked(command: str, value: Any) -> Any:
    """
    Return the value of a command as a control sends it.

    A browser can send anything, also what no slider can be set to.

    Raises
    ------
    InputError
        If no control of that command sends such a value.

    """
    if command == 'push':
        direction, share = value
        if direction in PUSH_DIRECTIONS and _is_within(share, _PUSH):
            return value
    elif command == 'push_at':
        _, arm, direction, share = value
        if (_is_within(share, _PUSH) and np.linalg.norm(arm) < _LONGEST_ARM
                and abs(np.linalg.norm(direction) - 1.0) < 1e-6):
            return value
    elif command == 'torso':
        if len(value) == 2 and all(_is_within(angle, _BEND) for angle in value):
            return value
    elif isinstance(value, bool) or value is None:
        return value
    raise InputError(f"value {reprlib.repr(value)} of command '{command}' is refused: no control "
                     'of the page has it')


def _is_within(value: Any, limits: tuple[float, float]) -> bool:
    return isinstance(value, (int, float)) and limits[0] - 1e-9 <= value <= limits[1] + 1e-9


class _Switch:
    """A button whose label says what it will do: turn something on, or off."""

    def __init__(self, button: Any, labels: tuple[str, str]) -> None:
        self._button, self._labels, self.is_on = button, labels, False

    def show(self, is_on: bool) -> bool:
        """Show what is on now; return whether that changed."""
        if self.is_on == is_on:
            return False
        self.is_on, self._button.label = is_on, self._labels[is_on]
        return True


class Controls:
    """
    Buttons, sliders and switches; each sends a command.

    Parameters
    ----------
    gui
        viser's, inside the container of the controls.
    on_command
        Called with the name of a command and its value.

    Attributes
    ----------
    folders
        viser's folder of each group of controls.
    bends
        The sliders of the torso.

    """

    def __init__(self, gui: Any, on_command: CommandHandler) -> None:
        self._on_command = on_command
        self._controls: dict[str, list[Any]] = {}
        self._notes: dict[str, Any] = {}
        self._reasons: dict[str, str] = {}
        self.folders: dict[str, Any] = {}
        self._torso_changed = -np.inf
        self._make_sensor_controls(gui)
        self._make_feedforward_control(gui)
        self._make_push_controls(gui)
        self._make_torso_controls(gui)
        self._make_walk_controls(gui)
        self._make_calibration_controls(gui)
        self._make_record_control(gui)

    def set_robot(self, model: RobotModel) -> None:
        """Show the controls that a robot has, and no others."""
        missing = missing_controls(model)
        for group, folder in self.folders.items():
            folder.visible = group not in missing

    @property
    def can_push(self) -> bool:
        """Whether pushes are possible now."""
        return not any(control.disabled for control in self._controls['push'])

    @property
    def push_share(self) -> float:
        """Force of a push as a share of the weight."""
        return 0.01 * float(self._strength.value)

    def set_unavailable(self, reasons: Mapping[str, str]) -> None:
        """Disable the controls of these commands, and show the reasons."""
        for command, controls in self._controls.items():
            for control in controls:
                control.disabled = bool(reasons.get(command))
        for note, command in _EXPLAINED.items():
            reason = reasons.get(command, '')
            if self._reasons.get(command) != reason:
                self._reasons[command] = reason
                self.show_note(note, reason)

    def show_note(self, group: str, text: str, good: bool | None = None) -> None:
        """Show the result of a command under its group; an empty text hides the note."""
        handle = self._notes[group]
        handle.visible = bool(text)
        if text:
            handle.content = widgets.note(text, good)

    def set_feedforward(self, is_on: bool) -> None:
        """Show whether gravity feedforward is on."""
        if self._feedforward.show(is_on):
            self.show_note('feedforward', 'on' if is_on else 'off', is_on or None)

    def update(self, view: View) -> None:
        """Show the progress of the gait and of the calibration."""
        (gait, gait_age), (progress, progress_age) = map(view.latest, ('gait', 'calibration'))
        self._gait.visible = bool(gait)
        self._gait.content = widgets.paragraph(f'gait_player: {gait}', gait_age)
        # While the robot walks, its state does not tell whether it will balance afterwards.
        if gait in ('balancing', 'standing'):
            self._balance.show(gait == 'balancing')
        self._follow_torso(view)
        captured = _CAPTURED.search(view.calibration)
        if captured:
            self._progress.value = 100.0 * int(captured[1]) / max(int(captured[2]), 1)
        self._progress_text.content = widgets.paragraph(progress, progress_age)
        before, after = view.error('uncalibrated'), view.error('com')
        self._before_after.visible = bool(np.isfinite(before))
        if np.isfinite(before):
            self._before_after.content = widgets.before_after(before, after)

    def _follow_torso(self, view: View) -> None:
        """Let the sliders show how the torso is bent, unless they are being moved."""
        bend, direction, _ = view.torso
        if not np.isfinite(bend) or time.monotonic() < self._torso_changed + _HELD:
            return
        for slider, angle in zip(self.bends, np.degrees(bend) * np.array(
                (np.cos(direction), np.sin(direction)))):
            shown = float(np.clip(0.5 * round(2.0 * float(angle)), *_BEND))
            if abs(float(angle) - slider.value) > _FOLLOWED and shown != slider.value:
                slider.value = shown

    # -- set-up

    def _make_sensor_controls(self, gui: Any) -> None:
        with self._folder(gui, 'tare', 'Foot sensors'):
            self._button(gui, 'tare', 'Tare', 'With the feet in the air: measure the offsets of '
                         'the force sensors, and subtract them from now on')
            self._button(gui, 'untare', 'Clear the tare', 'Use the readings without a tare',
                         main=False)
            self._note(gui, 'sensors')

    def _make_feedforward_control(self, gui: Any) -> None:
        with self._folder(gui, 'feedforward', 'Gravity feedforward'):
            self._feedforward = self._switch(
                gui, 'feedforward', ('Turn on', 'Turn off'),
                'Joint efforts that carry the weight of the robot')
            self._note(gui, 'feedforward')

    def _make_push_controls(self, gui: Any) -> None:
        with self._folder(gui, 'simulator', 'Simulated robot'):
            strength = self._strength = gui.add_slider(
                'force [% of weight]', min=round(100.0 * _PUSH[0]), max=round(100.0 * _PUSH[1]),
                step=1, initial_value=15)
            towards = gui.add_dropdown('towards', tuple(PUSH_DIRECTIONS))
            button = gui.add_button(
                'Push', hint='A short push on the heaviest link; click a link in the picture to '
                'push it there, away from you')
            button.on_click(lambda event: self._on_command(
                'push', (towards.value, 0.01 * strength.value)))
            self._controls['push'] = [strength, towards, button]
            hang = gui.add_checkbox('hangs in the air', False,
                                    hint='Lift the robot off the ground, for a tare')
            hang.on_update(lambda event: self._on_command('hang', hang.value))
            self._controls['hang'] = [hang]
            self._button(gui, 'reset', 'Put it on its feet again', 'Reset the simulation',
                         main=False)
            self._note(gui, 'push')

    def _make_torso_controls(self, gui: Any) -> None:
        with self._folder(gui, 'torso', 'Torso'):
            sliders = self.bends = [gui.add_slider(
                label, min=_BEND[0], max=_BEND[1], step=0.5, initial_value=0.0)
                       for label in ('forward [deg]', 'left [deg]')]

            def send(_: Any = None) -> None:
                self._torso_changed = time.monotonic()
                self._on_command('torso', tuple(slider.value for slider in sliders))

            def centre(_: Any) -> None:
                for slider in sliders:
                    slider.value = 0.0
                send()

            for slider in sliders:
                slider.on_update(lambda event: send() if event.client is not None else None)
            button = gui.add_button('Upright', hint='Set both angles to zero', color='gray')
            button.on_click(centre)
            freeze = gui.add_checkbox('hold still', False, hint='Stop, and ignore targets')
            freeze.on_update(lambda event: self._on_command('freeze', freeze.value))
            self._controls['torso'] = [*sliders, button]
            self._controls['freeze'] = [freeze]
            self._note(gui, 'torso')

    def _make_walk_controls(self, gui: Any) -> None:
        with self._folder(gui, 'walk', 'Walk'):
            self._button(gui, 'step', 'Single step', 'Shift the weight, lift a foot, set it down')
            self._button(gui, 'walk', 'Walk', 'As many steps as parameter steps of gait_player')
            self._button(gui, 'stop', 'Stop', 'Finish the step and stand on both feet', main=False)
            self._balance = self._switch(
                gui, 'balance', ('Keep the balance', 'Stop balancing'), 'Correct the posture '
                'while the robot stands, too, by the measured ZMP, CoM and attitude')
            self._gait = gui.add_html('', visible=False)
            self._note(gui, 'walk')

    def _make_calibration_controls(self, gui: Any) -> None:
        with self._folder(gui, 'calibration', 'Calibration of the masses'):
            self._progress = gui.add_progress_bar(0.0)
            self._progress_text = gui.add_html('')
            for command, label, hint in (
                    ('start', 'Start', 'Plan poses and move through them'),
                    ('reset', 'Start anew', 'Discard the poses captured so far (a backup is '
                     'kept), and start again'),
                    ('capture', 'Capture now', 'Measure the present posture'),
                    ('skip', 'Skip this pose', 'Go on to the next one'),
                    ('solve', 'Solve', 'Estimate the masses from the captured poses'),
                    ('publish', 'Use the result', 'Publish the calibrated URDF on '
                     'robot_description; the page then compares the errors before and after')):
                self._button(gui, f'calibration/{command}', label, hint,
                             main=command in ('start', 'solve'))
            self._before_after = gui.add_html('', visible=False)
            self._note(gui, 'calibration')

    def _make_record_control(self, gui: Any) -> None:
        with self._folder(gui, 'record', 'Recording'):
            self._button(gui, 'record', 'Save the last minutes', 'Write what the sensors measured '
                         'and the nodes estimated as a rosbag2 (MCAP), for calibrate, too')
            self._note(gui, 'record')

    def _folder(self, gui: Any, group: str, label: str) -> Any:
        self.folders[group] = gui.add_folder(label)
        return self.folders[group]

    def _button(self, gui: Any, command: str, label: str, hint: str,
                main: bool = True) -> None:
        button = gui.add_button(label, hint=hint, color=None if main else 'gray')
        button.on_click(lambda event: self._on_command(command, None))
        self._controls.setdefault(command, []).append(button)

    def _switch(self, gui: Any, command: str, labels: tuple[str, str], hint: str) -> _Switch:
        button = gui.add_button(labels[0], hint=hint)
        switch = _Switch(button, labels)
        button.on_click(lambda event: self._on_command(command, not switch.is_on))
        self._controls[command] = [button]
        return switch

    def _note(self, gui: Any, group: str) -> None:
        self._notes[group] = gui.add_html('', visible=False)
