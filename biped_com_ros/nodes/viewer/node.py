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
``viewer``: the robot and its measurements on a page in the browser, with buttons.

It serves the page to this computer only (parameter `host`), from the installed package: no
internet is needed. It subscribes only while a browser shows the page. Drawing has its own thread;
the services of the buttons are called from the node's executor.

Data without a source are not shown, such as the true state of a real robot. A control whose node
is not running is disabled, and the node is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, Full, Queue
import sys
import threading
import time
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.geometry.pose import yaw_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import gravity_setting
from biped_com_ros.nodes.viewer.actions import PageActions
from biped_com_ros.nodes.viewer.inputs import PageInputs
from biped_com_ros.nodes.viewer.polled_node import PolledNode
from biped_com_ros.nodes.viewer.rolling_recording import recorded_topics, RollingRecording
from biped_com_ros.ros.node.background import BackgroundTask
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import Diagnostics, OK, Report
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, read_only
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz.controls import GROUPS, permitted
from biped_com_ros.viz.page import Page
from biped_com_ros.viz.server import import_viser
from rclpy.node import Node
from std_msgs.msg import String

_COMMAND_PERIOD, _CHECK_PERIOD = 0.05, 1.0
_MAX_BROWSERS = 8
_MAX_PENDING_COMMANDS = 100  # more than anybody can click in one period


@dataclass(frozen=True)
class ViewerParameters(RobotChoice):
    """Parameters of `viewer`."""

    host: str = read_only(
        '127.0.0.1', 'Address to serve: 127.0.0.1 for this computer only, 0.0.0.0 for the whole '
        'network, where anybody with the printed token can use the buttons, too')
    port: int = read_only(
        8080, 'Port of the page; if it is in use, the next free one; 0: any', '', 0, 65535)
    rate: float = read_only(20.0, 'Frames per second', 'Hz', 1.0, 60.0)
    controls: str = read_only(
        'all', f'Groups of controls that may be used: all, none, or some of {", ".join(GROUPS)}, '
        'separated by commas; others are shown, but disabled')
    recording: float = read_only(
        120.0, 'Time that the button for a recording saves, by the stamps of the joint states, of '
        'messages that are kept while the page is open; 0: none', 's', 0.0, 600.0)
    recording_memory: int = read_only(
        250, 'Memory for the messages that the button for a recording saves; of longer '
        'recordings only the end is kept', 'MB', 1, 2000)
    recording_directory: str = read_only(
        '', 'Where recordings are written; empty: a temporary directory')
    gravity: float = gravity_setting()
    optional: bool = read_only(False, 'Whether to exit without an error if viser is not installed')


class Viewer(Node):
    """Connects the page to topics and services."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('viewer', **node_kwargs)
        self.params = declare_parameters(self, ViewerParameters)
        self._exit_if_viser_is_missing()
        self.diagnostics = Diagnostics(self)
        permitted(self.params.controls)  # raises if a group does not exist
        self._commands: Queue[tuple[str, Any]] = Queue(_MAX_PENDING_COMMANDS)
        self._renderer: RenderThread | None = None
        self._actions: PageActions | None = None
        self._rolling: RollingRecording | None = None
        self._writing: BackgroundTask[str] = BackgroundTask()
        self.page = Page(self.params.host, self.params.port, 'biped_com_ros', self._on_command,
                         _MAX_BROWSERS)
        if self.params.port and not self.page.address.endswith(f':{self.params.port}'):
            self.get_logger().warning(
                f'port {self.params.port} is in use; the page is at {self.page.address}')
        # Printed, so that it stands out from the log lines.
        print(f'\n  Open {self.page.url} in a browser.\n', flush=True)
        self._url = self.create_publisher(String, '~/url', LATCHED)
        # Without the token, which readers of topics and bags must not get.
        self._url.publish(String(data=self.page.address))
        self.diagnostics.add('page', self._report)
        self._source = RobotSource(self, self.params, self._on_robot, self.diagnostics)

    def _exit_if_viser_is_missing(self) -> None:
        try:
            import_viser()
        except ConfigurationError as error:
            if not self.params.optional:
                raise
            self.get_logger().info(f'the page is not served: {error}')
            raise SystemExit(0) from None

    def _on_robot(self, model: RobotModel) -> None:
        for problem in self.page.set_robot(model):
            self.get_logger().warning(f'not drawn: {problem}')
        self._actions = PageActions(
            self, model, self.page.controls.show_note, self.params.controls, self.params.gravity)
        if self.params.recording:
            self._rolling = RollingRecording(
                self, recorded_topics(model.config), self.params.recording,
                self.params.recording_memory * 1_000_000)
        # Pinocchio's data must not be shared between threads: the renderer has its own model.
        own = RobotModel(model.config, model.urdf)
        self._renderer = RenderThread(self, self.page, own, self.params)
        self.page.on_browsers(self._renderer.resume)
        self.create_timer(_COMMAND_PERIOD, self._execute_commands, clock=steady_clock())
        self.create_timer(_CHECK_PERIOD, self._check, clock=steady_clock())
        self._check()
        self._renderer.start()

    def _on_command(self, *command: Any) -> None:
        try:
            self._commands.put_nowait(command)
        except Full:
            self.get_logger().warning(
                f"command '{command[0]}' dropped: {_MAX_PENDING_COMMANDS} others are waiting",
                throttle_duration_sec=5.0)

    def _execute_commands(self) -> None:
        assert self._actions is not None and self._renderer is not None
        self._poll_writing()
        while True:
            try:
                command, value = self._commands.get_nowait()
            except Empty:
                return
            if command == 'record':
                self._record()
            else:
                self._actions.execute(command, value, self._renderer.yaw)

    def _record(self) -> None:
        """Write the kept messages in the background."""
        show = self.page.controls.show_note
        try:
            if self._rolling is None or 'record' not in permitted(self.params.controls):
                raise ConfigurationError('recordings are turned off by a parameter')
            if self._writing.is_busy:
                return
            recording = self._rolling.snapshot()
        except BipedComError as error:
            show('record', str(error), False)
            return
        show('record', f'writing {len(recording)} messages')
        directory = self.params.recording_directory

        def write() -> str:
            return (f'the last {recording.duration:.0f} s, {len(recording)} messages: '
                    f'{recording.write(directory)}')
        self._writing.start(write, lambda text: show('record', text, True))

    def _poll_writing(self) -> None:
        try:
            self._writing.poll()
        except BipedComError as error:
            self.page.controls.show_note('record', str(error), False)
            self.get_logger().error(str(error))

    def _check(self) -> None:
        """Update which controls are available."""
        assert self._actions is not None
        self._actions.update_feedforward()
        missing = self._actions.unavailable()
        if self._rolling is None:
            missing['record'] = 'turned off by parameter recording'
        elif not self.page.browsers:
            self._rolling.stop()
        elif 'record' not in missing:
            self._rolling.start()
        self.page.controls.set_unavailable(missing)
        if self._actions.feedforward_is_on is not None:
            self.page.controls.set_feedforward(self._actions.feedforward_is_on)

    def _report(self) -> Report:
        browsers = self.page.browsers
        drawn = self._renderer.rate if self._renderer is not None else 0.0
        return OK, f'{self.page.address}, {browsers} browser(s) connected', {
            'browsers': browsers, 'frames per second': drawn if browsers else 0.0}

    def destroy_node(self) -> None:
        """Stop drawing and close the page, too."""
        renderer, page = getattr(self, '_renderer', None), getattr(self, 'page', None)
        if renderer is not None:
            renderer.end()
        if page is not None:
            page.close()
        super().destroy_node()


class RenderThread(threading.Thread):
    """
    Draws the page while a browser shows it.

    Parameters
    ----------
    node
        Logs errors.
    page, model
        The page and the robot.
    rate
        Frames per second.

    Attributes
    ----------
    yaw : float
        Heading of the robot, rad.
    rate : float
        Measured frames per second.

    """

    def __init__(self, node: Node, page: Page, model: RobotModel,
                 params: ViewerParameters) -> None:
        super().__init__(name='renderer', daemon=True)
        self._node, self._page, self._model = node, page, model
        self._period, self._gravity = 1.0 / params.rate, params.gravity
        self._browsers_changed, self._ending = threading.Event(), False
        self.yaw = self.rate = 0.0

    def resume(self) -> None:
        """Draw from now on, if a browser shows the page."""
        self._browsers_changed.set()

    def end(self) -> None:
        """Stop the thread, and wait for its end."""
        self._ending = True
        self._browsers_changed.set()
        if self.is_alive():
            self.join(timeout=2.0)

    def run(self) -> None:
        """Subscribe and draw while a browser shows the page, else wait."""
        polled = PolledNode(f'{self._node.get_name()}_inputs', self._node.context,
                            frame_prefix(self._node))
        while not self._ending:
            if not self._page.browsers:
                self._browsers_changed.wait()
                self._browsers_changed.clear()
                continue
            inputs = PageInputs(polled, self._model, self._gravity)
            try:
                self._draw(inputs)
            except Exception as error:  # noqa: B902 - drawing continues after any error
                log_exception(self._node, error)
                time.sleep(self._period)
            polled.unsubscribe()
        polled.destroy()

    def _draw(self, inputs: PageInputs) -> None:
        due = counted_from = time.monotonic()
        frames = 0
        while self._page.browsers and not self._ending:
            now = time.monotonic()
            view = inputs.update(now)
            self._page.draw(view, now)
            self.yaw = yaw_of(view.base.rotation)
            frames += 1
            if now - counted_from >= 1.0:
                self.rate, frames, counted_from = frames / (now - counted_from), 0, now
            due = max(due + self._period, now)
            time.sleep(max(due - time.monotonic(), 0.0))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run(Viewer, argv)


if __name__ == '__main__':
    sys.exit(main())
