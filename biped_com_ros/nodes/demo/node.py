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
``demo``: moves the simulated robot through a story and shows how well everything works.

The story has chapters (:mod:`biped_com_ros.demo`), each of which ends with a small table of
before and after; a live table compares meanwhile the centre of mass with the simulator's truth
and the weight with the URDF's. Where standard output is no terminal, it prints plain lines.
After the last chapter the robot stands and is measured until ctrl-C.

=========================== ======================= =========================================
topic or service            type                    what
=========================== ======================= =========================================
joint_states                sensor_msgs/JointState  in; the clock of the motion
com_estimator/com           geometry_msgs/          in; the estimate
                            PointStamped
simulator/truth/com         geometry_msgs/          in; the truth, compared stamp by stamp
                            PointStamped
wrench_aggregator/          geometry_msgs/          in; the z forces add up to the weight
<foot>/wrench               WrenchStamped
wrench_aggregator/          std_msgs/Bool           in
<foot>/contact
wrench_aggregator/wrench    geometry_msgs/          in; watched for its rate
                            WrenchStamped
/diagnostics                diagnostic_msgs/        in; the worst of it is shown
                            DiagnosticArray
position_controller/        std_msgs/               out; positions of the actuated joints
commands                    Float64MultiArray
viewer/url                  std_msgs/String         in; the address of the page
~/story                     std_msgs/String         out, latched; the chapter, and what the robot
                                                    does
simulator/reset             std_srvs/Trigger        called when the robot has fallen
=========================== ======================= =========================================

What a chapter reads, publishes and calls besides is said in its module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import math
import sys
from typing import Any

from biped_com_ros.core.constants import GRAVITY, nanoseconds
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.measurements import Health, Measurements
from biped_com_ros.demo.screen import make_screen, Screen
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.story import ALL, chosen_chapters, Story
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, parameter
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import float_array_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz.terminal import save_picture, Snapshot, summary
import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

_EXACT_SENSORS = ('none', 'masses')  # what may be hidden with sensors that tell the truth


@dataclass(frozen=True)
class Parameters(RobotChoice):
    """Parameters of the node."""

    chapters: str = parameter(
        ALL, "Chapters of the story, in this order, separated by commas; 'all' of them; or "
        "'none': the robot stands", read_only=True)
    once: bool = parameter(
        False, 'Whether to end after the last chapter, instead of standing on', read_only=True)
    duration: float = parameter(0.0, 'Time after which the demo ends; 0: at ctrl-C', unit='s',
                                minimum=0.0, read_only=True)
    period: float = parameter(1.0, 'Time between two updates of what is shown', unit='s',
                              minimum=0.1, maximum=60.0, read_only=True)
    command_rate: float = parameter(100.0, 'Position commands per second', unit='Hz',
                                    minimum=1.0, maximum=1000.0, read_only=True)
    settle: float = parameter(1.0, 'Time before anything is measured or moved', unit='s',
                              minimum=0.0, read_only=True)
    display: str = parameter('auto', 'A live table or plain lines; auto: as the terminal can',
                             options=('auto', 'table', 'plain'), read_only=True)
    hidden: str = parameter('', 'What the simulator hides, for the headline', read_only=True)
    picture: str = parameter('', 'SVG file for a picture of the table at the end; empty: none',
                             read_only=True)


class Demo(Node):
    """Lets the story go on with the joint states, and shows it."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('demo', **node_kwargs)
        self.params = declare_parameters(self, Parameters)
        self._chapters = chosen_chapters(self.params.chapters)
        self.stage: Stage | None = None
        self._health, self._said = Health(self), ''
        self._told = self.create_publisher(String, '~/story', LATCHED)
        self._shown = _nothing_yet(['the robot description'])
        self._screen: Screen = make_screen(self.params.display, _title(self.params))
        self.finished = False
        self.create_subscription(String, 'viewer/url', self._on_url, LATCHED)
        self._source = RobotSource(self, self.params, self._on_robot)
        self.create_timer(self.params.period, self._show, clock=steady_clock())

    def _on_url(self, message: String) -> None:
        self._screen.say(f'The page in the browser: {message.data}')

    def _on_robot(self, model: RobotModel) -> None:
        self._actuated = model.joint_index(model.actuated_joint_names)
        self._out = float_array_publisher(
            self, 'position_controller/commands', len(self._actuated),
            labels=model.actuated_joint_names)
        measurements = Measurements(self, model, self.params.hidden in _EXACT_SENSORS)
        self.stage = Stage(self, model, measurements, self.params.hidden)
        self.story = Story(self._chapters, self.stage, self._screen)
        self._commands: Iterator[Array | None] | None = None
        self._begin_ns = self._next_ns = 0
        self._joints = JointStateInput(self, model.joint_names, self._on_joints, max_age=0.0)

    # -- the story

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        stage = self.stage
        if stage is None or self.finished or stamp_ns < self._next_ns:
            return
        stage.measurements.now_ns = stamp_ns
        stage.stamp_ns, stage.time = stamp_ns, 1e-9 * stamp_ns
        stage.positions, stage.velocities = positions.copy(), velocities.copy()
        if self._commands is None:
            if self._missing():
                return
            self._begin(stage, stamp_ns)
        self._next_ns = stamp_ns + nanoseconds(1.0 / self.params.command_rate)
        self._go_on(stage)
        ended = 0.0 < self.params.duration <= 1e-9 * (stamp_ns - self._begin_ns)
        if ended or (self.params.once and self.story.over):
            self.finished = True
            self.context.try_shutdown()

    def _begin(self, stage: Stage, stamp_ns: int) -> None:
        """Start the story; what is measured while the robot settles does not count."""
        self._commands = self.story.play(self.params.settle)
        self._begin_ns = stamp_ns + nanoseconds(self.params.settle)
        stage.measurements.begin(self._begin_ns)

    def _go_on(self, stage: Stage) -> None:
        assert self._commands is not None
        stage.commanded = wanted = next(self._commands)
        if wanted is not None:
            self._out.fields['data'][...] = wanted[self._actuated]
            self._out.publish()
        said = f'{self.story.heading}: {stage.doing}' if self.story.heading else stage.doing
        if said != self._said:
            self._said = said
            self._told.publish(String(data=said))

    # -- what is shown

    def _missing(self) -> list[str]:
        """Return what has not arrived yet, in words."""
        if self.stage is None:
            return ['the robot description']
        inputs = {'joint_states (the simulator)': self._joints, **self.stage.measurements.inputs}
        return [name for name, source in inputs.items() if source.count == 0]

    def _show(self) -> None:
        if self.stage is None:
            self._screen.show(self._shown, self._shown)
        elif not self.finished:
            self._shown = self.stage.measurements.take(
                self.stage.doing, self._joints.rate, self._health.worst(), self._missing())
            self._screen.show(self._shown, self._whole(self.stage))

    def _whole(self, stage: Stage) -> Snapshot:
        return stage.measurements.whole(self._joints.rate, self._health.worst(), self._missing())

    def close(self) -> None:
        """Give the terminal back and say what the run showed."""
        if self.stage is None:
            self._screen.close('')
            return
        whole = self._whole(self.stage)
        told = [self.story.summary()] if self.story.outcomes else []
        nothing = math.isnan(whole.com_distance) or whole.time < 1.0  # after the last chapter
        measured = [] if told and nothing else [summary(whole)]
        self._screen.close('\n'.join([*told, *measured]))
        if self.params.picture:
            save_picture(self._shown, whole, _title(self.params), self.params.picture)


def _title(params: Parameters) -> str:
    real = {'': '', 'none': ', whose URDF is exact',
            'real': ', whose real masses and sensors differ from its URDF (hidden:=real)'}.get(
        params.hidden, f', whose real masses differ from its URDF (hidden:={params.hidden})')
    return f'biped_com_ros demo: {params.robot}{real}. Ctrl-C ends it.'


def _nothing_yet(missing: Sequence[str]) -> Snapshot:
    return Snapshot(0.0, '', np.full(3, math.nan), math.nan, math.nan, math.nan, GRAVITY, {}, {},
                    math.nan, (1, 'nothing yet'), missing)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node."""
    nodes: list[Demo] = []

    def create(**node_kwargs: Any) -> Demo:
        nodes.append(Demo(**node_kwargs))
        return nodes[-1]

    code = run([create], argv)
    for node in nodes:
        node.close()
    return code


if __name__ == '__main__':
    sys.exit(main())
