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
``demo``: demonstrates the package with a simulated robot, in chapters.

Each chapter ends with a small table of results. Meanwhile a live table compares the centre of mass
with the simulator's true one and the weight with the URDF's. If standard output is not a terminal,
plain lines are printed. After the last chapter the robot stands and is measured until Ctrl-C.

=========================== ======================= =========================================
topic or service            type                    what
=========================== ======================= =========================================
joint_states                sensor_msgs/JointState  in; the clock of the motion
com_estimator/com           geometry_msgs/          in; the estimate
                            PointStamped
simulator/truth/com         geometry_msgs/          in; the truth, compared stamp by stamp
                            PointStamped
/tf, odom                   tf2_msgs/TFMessage,     in; the base by com_estimator, and the true
                            nav_msgs/Odometry       one, relative to which the CoMs are compared
wrench_aggregator/          geometry_msgs/          in; the z forces add up to the weight
<foot>/wrench               WrenchStamped
wrench_aggregator/          std_msgs/Bool           in
<foot>/contact
wrench_aggregator/wrench    geometry_msgs/          in; its rate is shown
                            WrenchStamped
/diagnostics                diagnostic_msgs/        in; the worst status is shown
                            DiagnosticArray
position_controller/        std_msgs/               out; positions of the actuated joints
commands                    Float64MultiArray
simulator/push              geometry_msgs/          in; a pushed robot is not judged
                            WrenchStamped
viewer/url                  std_msgs/String         in; the address of the page
~/story                     std_msgs/String         out, latched; chapter and activity
~/results                   std_msgs/String         out, latched; the table of the last chapter:
                                                    a row per line, cells with tabs between them
simulator/reset             std_srvs/Trigger        called after a fall
=========================== ======================= =========================================

Further interfaces of a chapter are described in its module of the package ``biped_com_ros.demo``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import sys
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import printable
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.demo import ALL
from biped_com_ros.demo.measurements import Health, Measurements
from biped_com_ros.demo.screen import make_screen, Screen
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.story import chosen_chapters, Story
from biped_com_ros.demo.terminal import save_picture, Snapshot, summary
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, read_only
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.whole_messages import subscribe
from rclpy.node import Node
from std_msgs.msg import String

_SETTLING = 1.0
"""Time before the first measurement and motion, s."""
_TABLE_PERIOD = 1.0  # s
_COMMAND_RATE = 100.0
"""Position commands per second."""
_EXPECTED = ('simulator', 'wrench_aggregator', 'com_estimator', 'zmp_monitor')
"""Nodes that have to report on /diagnostics."""

_EXACT_SENSORS = ('none', 'masses')  # values of `hidden` without errors of sensors


@dataclass(frozen=True)
class DemoParameters(RobotChoice):
    """Parameters of `demo`."""

    chapters: str = read_only(
        ALL, "Chapters to run, separated by commas; 'all', but slope and rail; or 'none': "
        'the robot stands')
    once: bool = read_only(False, 'Whether to end after the last chapter')
    duration: float = read_only(0.0, 'Time after which the demo ends; 0: at Ctrl-C', 's', 0.0)
    hidden: str = read_only('', 'Hidden errors of the simulator, for the title')
    picture: str = read_only('', 'SVG file for the last table with results; empty: none')


class Demo(Node):
    """Runs the chapters at the rate of the joint states, and shows the measurements."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('demo', **node_kwargs)
        self.params = declare_parameters(self, DemoParameters)
        self._chapters = chosen_chapters(self.params.chapters)
        self.stage: Stage | None = None
        self._health, self._published = Health(self, _EXPECTED), ''
        self._page, self._rate = '', 0.0
        self._story_out = self.create_publisher(String, '~/story', LATCHED)
        self._results_out = self.create_publisher(String, '~/results', LATCHED)
        self._results = ''
        self._shown = Snapshot(waiting=['the robot description'])
        # The last table with results: after the last chapter there may be none.
        self._pictured = self._shown, self._shown
        self._screen: Screen = make_screen(_title(self.params))
        self.finished = False
        subscribe(self, String, names.PAGE_URL, self._on_url, LATCHED)
        self._source = RobotSource(self, self.params, self._on_robot)
        self.create_timer(_TABLE_PERIOD, self._show, clock=steady_clock())

    def _on_url(self, message: String) -> None:
        text = f'Page for the browser: {printable(message.data)}'
        if text != self._page:
            self._page = text
            self._screen.show_message(text)

    def _on_robot(self, model: RobotModel) -> None:
        self._actuated = model.joint_index(model.actuated_joint_names)
        self._out = float_array_publisher(
            self, names.POSITION_COMMANDS, len(self._actuated),
            labels=model.actuated_joint_names)
        measurements = Measurements(self, model, self.params.hidden in _EXACT_SENSORS)
        self.stage = Stage(self, model, measurements)
        self.story = Story(self._chapters, self.stage, self._screen)
        self._commands: Iterator[Array | None] | None = None
        self._begin_time, self._pace = 0.0, StampThrottle(_COMMAND_RATE)
        self._joints = JointStateInput(self, model.joint_names, self._on_joints, max_age=0.0,
                                       **model.corrections_of(model.joint_names))

    # -- the story

    def _on_joints(self, stamp_ns: int, positions: Array, *_: Array) -> None:
        stage = self.stage
        if stage is None or self.finished or not self._pace.is_due(stamp_ns):
            return
        stage.measurements.now_ns = stamp_ns
        stage.advance_to(stamp_ns)
        stage.positions = positions.copy()
        if self._commands is None:
            if self._missing():
                return
            self._begin(stage, stamp_ns)
        self._step(stage)
        ended = 0.0 < self.params.duration <= stage.time - self._begin_time
        if ended or (self.params.once and self.story.is_over):
            self.finished = True
            self.context.try_shutdown()

    def _begin(self, stage: Stage, stamp_ns: int) -> None:
        """Start the chapters, and the measurements once the robot has settled."""
        self._commands = self.story.run(_SETTLING)
        self._begin_time = stage.time + _SETTLING
        stage.measurements.start(stamp_ns + nanoseconds(_SETTLING))

    def _step(self, stage: Stage) -> None:
        assert self._commands is not None
        stage.commanded = command = next(self._commands)
        if command is not None:
            # A drive controls what its encoder measures.
            self._out.fields['data'][...] = (
                command + stage.model.joint_offsets)[self._actuated]
            self._out.publish()
        heading = self.story.heading
        text = f'{heading}: {stage.activity}' if heading else stage.activity
        if text != self._published:
            self._published = text
            self._story_out.publish(String(data=text))
        if self.story.results != self._results:
            self._results = self.story.results
            self._results_out.publish(String(data=self._results))

    # -- what is shown

    def _missing(self) -> list[str]:
        """Return the inputs that have not arrived yet."""
        if self.stage is None:
            return ['the robot description']
        inputs = {'joint_states (the simulator)': self._joints, **self.stage.measurements.inputs}
        return [name for name, source in inputs.items() if source.count == 0]

    def _announce_rate(self) -> None:
        """Print that the simulator gives fewer readings, as the computer is too slow."""
        rate, full = (self._health.number('simulator: simulation', key)
                      for key in (names.RATE, names.FULL_RATE))
        if rate < full and rate != self._rate:
            self._rate = rate
            self._screen.show_message(
                f'This computer is too slow for {full:g} readings per second, or too busy: the '
                f'simulator gives {rate:g} from now on (rate:={rate:g} begins with that).')

    def _show(self) -> None:
        self._announce_rate()
        if self.stage is None:
            self._screen.update(self._shown, self._shown)
        elif not self.finished:
            self._shown = self.stage.measurements.period_snapshot(
                self.stage.activity, self._joints.rate, self._health.worst(), self._missing())
            whole = self._whole(self.stage)
            self._screen.update(self._shown, whole)
            if whole.has_results:
                self._pictured = self._shown, whole

    def _whole(self, stage: Stage) -> Snapshot:
        return stage.measurements.whole_snapshot(
            self._joints.rate, self._health.worst(), self._missing())

    @property
    def problem(self) -> str:
        """Chapters that failed, with the reasons; '' if none did."""
        failures = self.story.failures if self.stage is not None else {}
        return '; '.join(f'{name}: {reason}' for name, reason in failures.items())

    def close(self) -> None:
        """Release the terminal and print the results."""
        if self.stage is None:
            self._screen.close('')
            return
        whole = self._whole(self.stage)
        # The result of a single chapter is in its table, just above.
        outcomes = [self.story.summary()] if len(self.story.outcomes) > 1 else []
        measured = [] if self.story.outcomes and not whole.has_results else [summary(whole)]
        self._screen.close('\n'.join([*outcomes, *measured]))
        if self.params.picture:
            save_picture(*self._pictured, _title(self.params), self.params.picture)


def _title(params: DemoParameters) -> str:
    real = {'': '', 'none': ', whose URDF is exact',
            'real': ', whose real masses and sensors differ from its URDF (hidden:=real)'}.get(
        params.hidden, f', whose real masses differ from its URDF (hidden:={params.hidden})')
    name = load_robot_config(params.robot).name  # not the path of its file
    return f'biped_com_ros demo: {name}{real}. Press Ctrl-C to end it.'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    nodes: list[Demo] = []

    def create(**node_kwargs: Any) -> Demo:
        nodes.append(Demo(**node_kwargs))
        return nodes[-1]

    code = run(create, argv)
    for node in nodes:
        node.close()
        if node.problem and not code:
            print(f'[ERROR] [demo]: chapters failed: {node.problem}', file=sys.stderr, flush=True)
            code = 1
    return code


if __name__ == '__main__':
    sys.exit(main())
