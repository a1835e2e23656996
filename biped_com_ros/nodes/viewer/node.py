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
``viewer``: the robot and all its measurements on a page in the browser, with buttons.

It serves the page to this computer only (parameter `host`), out of the installed package: no
internet is needed. It subscribes while a browser looks on, and costs next to nothing otherwise. A
thread of its own draws; the buttons' services are called from the node's executor.

Whatever is missing leaves a gap on the page: with a real robot there is no truth, and without
torso_controller no torso; a control whose node does not run is grey and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
import sys
import threading
import time
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import yaw_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.viewer.actions import PageActions
from biped_com_ros.nodes.viewer.inputs import PageInputs
from biped_com_ros.ros.fast.polling import PolledNode
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import Diagnostics, OK, Report
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz.page import Page
from biped_com_ros.viz.server import import_viser
from rclpy.node import Node
from std_msgs.msg import String

_COMMAND_PERIOD, _CHECK_PERIOD = 0.05, 1.0


@dataclass(frozen=True)
class ViewerParameters(RobotChoice):
    """Parameters of `viewer`."""

    host: str = parameter(
        '127.0.0.1', 'Who may look: 127.0.0.1 this computer only, 0.0.0.0 everybody in the '
        'network, who may press the buttons, too', read_only=True)
    port: int = parameter(
        8080, 'Port of the page; if it is taken, the next one that is free; 0: any', '', 0,
        65535, read_only=True)
    rate: float = parameter(
        20.0, 'How often the page is drawn', 'Hz', 1.0, 60.0, read_only=True)
    optional: bool = parameter(
        False, 'Whether to end quietly, and not with an error, where viser is not installed',
        read_only=True)


class Viewer(Node):
    """Wires messages to the page and its buttons to services, as the module says."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('viewer', **node_kwargs)
        self.params = declare_parameters(self, ViewerParameters)
        self._leave_if_optional()
        self.diagnostics = Diagnostics(self)
        self._commands: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._drawer: Drawer | None = None
        self._actions: PageActions | None = None
        self.page = Page(self.params.host, self.params.port, 'biped_com_ros',
                         lambda *command: self._commands.put(command))
        if self.params.port and not self.page.url.endswith(f':{self.params.port}'):
            self.get_logger().warning(f'port {self.params.port} is taken')
        # To the terminal itself: people have to see it among the log lines.
        print(f'\n  The page is ready: open {self.page.url} in a browser.\n', flush=True)
        self._url = self.create_publisher(String, '~/url', LATCHED)
        self._url.publish(String(data=self.page.url))
        self.diagnostics.add('page', self._report)
        self._source = RobotSource(self, self.params, self._on_robot, self.diagnostics)

    def _leave_if_optional(self) -> None:
        try:
            import_viser()
        except ConfigurationError as error:
            if not self.params.optional:
                raise
            self.get_logger().info(f'no page in the browser: {error}')
            raise SystemExit(0) from None

    def _on_robot(self, model: RobotModel) -> None:
        for problem in self.page.set_robot(model):
            self.get_logger().warning(f'not drawn: {problem}')
        self._actions = PageActions(self, model, self.page.say)
        # Pinocchio's memory must not be shared between threads: the drawer has its own model.
        own = RobotModel(model.config, model.urdf)
        self._drawer = Drawer(self, self.page, own, self.params.rate)
        self.page.on_visitors(self._drawer.wake)
        self.create_timer(_COMMAND_PERIOD, self._work, clock=steady_clock())
        self.create_timer(_CHECK_PERIOD, self._check, clock=steady_clock())
        self._check()
        self._drawer.start()

    def _work(self) -> None:
        """Carry out what was asked for on the page."""
        assert self._actions is not None and self._drawer is not None
        while True:
            try:
                command, value = self._commands.get_nowait()
            except Empty:
                return
            self._actions.carry_out(command, value, self._drawer.yaw)

    def _check(self) -> None:
        """See which controls can work now; nobody needs to know while nobody looks."""
        assert self._actions is not None
        self.page.set_missing(self._actions.missing())
        if self._actions.feedforward_is_on is not None:
            self.page.set_feedforward(self._actions.feedforward_is_on)

    def _report(self) -> Report:
        visitors = self.page.visitors
        drawn = self._drawer.rate if self._drawer is not None else 0.0
        return OK, f'{self.page.url}, {visitors} browser(s) look on', {
            'browsers': visitors, 'frames per second': drawn if visitors else 0.0}

    def destroy_node(self) -> None:
        """End the drawing and the page, too."""
        drawer, page = getattr(self, '_drawer', None), getattr(self, 'page', None)
        if drawer is not None:
            drawer.end()
        if page is not None:
            page.close()
        super().destroy_node()


class Drawer(threading.Thread):
    """
    Draws while somebody looks on.

    Parameters
    ----------
    node
        Where complaints go.
    page, model, rate
        What is drawn, of which robot, and how often, Hz.

    Attributes
    ----------
    yaw : float
        Where the robot faces, rad.
    rate : float
        Frames per second, measured.

    """

    def __init__(self, node: Node, page: Page, model: RobotModel, rate: float) -> None:
        super().__init__(name='drawer', daemon=True)
        self._node, self._page, self._model = node, page, model
        self._period = 1.0 / rate
        self._woken, self._ending = threading.Event(), False
        self.yaw = self.rate = 0.0

    def wake(self) -> None:
        """Look whether there are visitors."""
        self._woken.set()

    def end(self) -> None:
        """Stop, and wait for it."""
        self._ending = True
        self._woken.set()
        if self.is_alive():
            self.join(timeout=2.0)

    def run(self) -> None:
        """Subscribe and draw while there are visitors; wait while there are none."""
        polled = PolledNode(f'{self._node.get_name()}_inputs', self._node.context)
        while not self._ending:
            if not self._page.visitors:
                self._woken.wait()
                self._woken.clear()
                continue
            inputs = PageInputs(polled, self._model)
            try:
                self._draw_while_seen(inputs)
            except Exception as error:  # noqa: B902 - whatever it is, the page has to go on
                log_exception(self._node, error)
                time.sleep(self._period)
            polled.unsubscribe()
        polled.destroy()

    def _draw_while_seen(self, inputs: PageInputs) -> None:
        due = counted_from = time.monotonic()
        frames = 0
        while self._page.visitors and not self._ending:
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
