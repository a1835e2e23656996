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
``demo``: moves the simulated robot and shows how well it is measured.

Once every input is there the robot sways, lifts its arms, leans and bends its knees, slowly; a
table compares, every second, the centre of mass with the simulator's truth and the weight with
the URDF's. Run where standard output is no terminal, it prints one line per second instead.

=========================== ======================= =========================================
topic                       type                    what
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
zmp_monitor/event, margin   diagnostic_msgs/        in, with motion push; what is told of a push
                            DiagnosticArray, Float64
simulator/push              geometry_msgs/          out, with motion push
                            WrenchStamped
=========================== ======================= =========================================
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
import math
import shutil
import sys
import time
from typing import Any

from biped_com_ros.core.com import GRAVITY
from biped_com_ros.core.motion import Keyframe, KeyframeMotion, show_keyframes
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.executor import run
from biped_com_ros.ros.inputs import BoolInput, Input, JointStateInput, PointInput, WrenchInput
from biped_com_ros.ros.outputs import float_array_publisher, wrench_publisher
from biped_com_ros.ros.parameters import declare_parameters, parameter
from biped_com_ros.ros.qos import LATCHED, STATE_OUTPUT
from biped_com_ros.ros.robot import RobotSource
from biped_com_ros.viz.terminal import line, Mean, Period, save_picture, Snapshot, summary, table
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import Float64

_REMEMBERED = 2000  # truths kept until the estimate of the same stamp comes
_DIAGNOSTICS_LAST = 3.0  # s
_EXACT_SENSORS = ('none', 'masses')  # what may be hidden with sensors that tell the truth


@dataclass(frozen=True)
class Parameters:
    """Parameters of the node."""

    robot: str = parameter('biped', 'Name of a robot or path of its YAML', read_only=True)
    urdf: str = parameter('', 'URDF to use instead of the one the robot names', read_only=True)
    motion: str = parameter('show', 'What the robot does: sways and lifts its arms, stands, or is '
                            'pushed harder and harder', options=('show', 'stand', 'push'),
                            read_only=True)
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
    """Commands the motion, collects the measurements, shows them."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('demo', **node_kwargs)
        self.params = declare_parameters(self, Parameters)
        self._measurements: _Measurements | None = None
        self._mover: _Mover | None = None
        self._health = _Health(self)
        self._shown = _nothing_yet(['the robot description'])
        self._screen = _screen(self.params, _title(self.params))
        self.finished = False
        self._source = RobotSource(self, self.params, self._on_robot)
        self.create_timer(self.params.period, self._show,
                          clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_robot(self, model: RobotModel) -> None:
        self._joints = JointStateInput(self, model.joint_names, self._on_joints, max_age=0.0)
        self._mover = _Mover(self, model, self.params)
        self._pusher = _Pusher(self, model) if self.params.motion == 'push' else None
        self._measurements = _Measurements(self, model, self.params.hidden in _EXACT_SENSORS)

    def _on_joints(self, stamp: Stamp, *_: Any) -> None:
        if self._measurements is None or self._mover is None:
            return
        self._measurements.now_ns = stamp.ns
        if not self._measurements.running and not self._missing():
            begin = stamp.ns + round(1e9 * self.params.settle)
            self._measurements.start(begin)
            self._mover.start(begin)
        self._mover.update(stamp.ns)
        if self._pusher is not None:
            self._mover.label = self._pusher.update(self._mover.time(stamp.ns), stamp)
        if self.params.duration and self._mover.time(stamp.ns) >= self.params.duration:
            self._finish()

    def _missing(self) -> list[str]:
        """Return what has not arrived yet, in words."""
        if self._measurements is None:
            return ['the robot description']
        inputs = {'joint_states (the simulator)': self._joints, **self._measurements.inputs}
        return [name for name, source in inputs.items() if source.count == 0]

    def _show(self) -> None:
        if self._measurements is None or self._mover is None:
            self._screen.show(self._shown, self._shown)
            return
        if not self.finished:
            self._shown = self._measurements.take(
                self._mover.label, self._joints.rate, self._health.worst(), self._missing())
            self._screen.show(self._shown, self._whole(self._measurements))

    def _whole(self, measurements: _Measurements) -> Snapshot:
        return measurements.whole(self._joints.rate, self._health.worst(), self._missing())

    def _finish(self) -> None:
        if not self.finished:
            self.finished = True
            self.context.try_shutdown()

    def close(self) -> None:
        """Give the terminal back and say what the run showed."""
        if self._measurements is None:
            self._screen.close('')
            return
        whole = self._whole(self._measurements)
        self._screen.close(summary(whole))
        if self.params.picture:
            save_picture(self._shown, whole, _title(self.params), self.params.picture)


class _Mover:
    """Sends the joint positions of the motion."""

    def __init__(self, node: Node, model: RobotModel, params: Parameters) -> None:
        keyframes = (show_keyframes(model) if params.motion == 'show'
                     else [Keyframe(1.0, label='stands')])
        self._motion = KeyframeMotion(model, keyframes)
        self._actuated = model.joint_index(model.actuated_joint_names)
        self._period_ns = round(1e9 / params.command_rate)
        self._out = float_array_publisher(
            node, 'position_controller/commands', len(self._actuated),
            labels=model.actuated_joint_names)
        self._start_ns, self._next_ns = sys.maxsize, 0
        self.label = 'settles'

    def start(self, ns: int) -> None:
        self._start_ns = ns

    def time(self, ns: int) -> float:
        return (ns - self._start_ns) * 1e-9

    def update(self, ns: int) -> None:
        if ns < max(self._start_ns, self._next_ns):
            return
        self._next_ns = ns + self._period_ns
        elapsed = self.time(ns)
        self.label = self._motion.label(elapsed)
        self._out.fields['data'][...] = self._motion.positions(elapsed)[self._actuated]
        self._out.publish()


class _Pusher:
    """Pushes the robot forward every few seconds, harder each time, until it has fallen."""

    PERIOD, SHARE = 4.0, 0.08

    def __init__(self, node: Node, model: RobotModel) -> None:
        heaviest = model.link_names[int(np.argmax(model.link_masses))]
        self._out = wrench_publisher(node, 'simulator/push', heaviest)
        self._step = self.SHARE * model.mass * GRAVITY
        self._pushes, self._event, self._least = 0, 'stable', math.inf
        node.create_subscription(
            DiagnosticArray, 'zmp_monitor/event', self._on_event, LATCHED)
        node.create_subscription(Float64, 'zmp_monitor/margin', self._on_margin, STATE_OUTPUT)

    def update(self, elapsed: float, stamp: Stamp) -> str:
        """Push if it is time; say what happens."""
        if elapsed >= (self._pushes + 1) * self.PERIOD and not self._event.startswith('fallen'):
            self._pushes, self._least = self._pushes + 1, math.inf
            self._out.fields['wrench'][:3] = self._pushes * self._step, 0.0, 0.0
            self._out.publish(stamp)
        if not self._pushes:
            return 'stands, will be pushed'
        margin = '' if math.isinf(self._least) else f', margin down to {1e3 * self._least:.0f} mm'
        return f'pushed forward with {self._pushes * self._step:.1f} N{margin}; {self._event}'

    def _on_event(self, array: DiagnosticArray) -> None:
        self._event = array.status[0].message

    def _on_margin(self, message: Float64) -> None:
        self._least = min(self._least, message.data)


class _Measurements:
    """What the estimators and the simulator say, per period and over the whole run."""

    def __init__(self, node: Node, model: RobotModel, exact_sensors: bool) -> None:
        self._weight, self._exact_sensors = model.mass * GRAVITY, exact_sensors
        self._truths: OrderedDict[int, np.ndarray] = OrderedDict()
        self._period, self._all = Period(), Period()
        self._contacts = dict.fromkeys(model.config.feet, (math.nan, False))
        self._start_ns = sys.maxsize
        self._shown_ns = self.now_ns = 0
        self._shown_at = self._started_at = time.monotonic()
        self.running = False
        self.inputs: dict[str, Input] = {
            'truth (the simulator)': PointInput(
                node, 'simulator/truth/com', '', self._on_truth, max_age=0.0),
            'com (com_estimator)': PointInput(
                node, 'com_estimator/com', '', self._on_com, max_age=0.0),
            'wrench (wrench_aggregator)': WrenchInput(
                node, 'wrench_aggregator/wrench', '', lambda stamp, wrench: None, max_age=0.0)}
        self._feet = [
            (WrenchInput(node, f'wrench_aggregator/{foot}/wrench', '',
                         partial(self._on_foot, foot), max_age=0.0),
             BoolInput(node, f'wrench_aggregator/{foot}/contact',
                       partial(self._on_contact, foot)))
            for foot in model.config.feet]

    def start(self, ns: int) -> None:
        """Count from `ns` on; what came before belongs to the start."""
        self._start_ns = ns
        self._started_at = time.monotonic() + (ns - self.now_ns) * 1e-9
        self.running = True

    def take(self, doing: str, joint_rate: float, health: tuple[int, str],
             missing: Sequence[str]) -> Snapshot:
        """Return what arrived since the last time."""
        now = time.monotonic()
        begun = self._shown_ns > 0
        factor = (self.now_ns - self._shown_ns) * 1e-9 / (now - self._shown_at) if begun else 0.0
        period, self._period = self._period, Period()
        self._shown_ns, self._shown_at = self.now_ns, now
        return self._snapshot(period, doing, joint_rate, health, missing, factor)

    def whole(self, joint_rate: float, health: tuple[int, str],
              missing: Sequence[str]) -> Snapshot:
        """Return what arrived since the start."""
        elapsed = time.monotonic() - self._started_at
        factor = max(self._time(), 0.0) / elapsed if elapsed > 0.0 else math.nan
        return self._snapshot(self._all, '', joint_rate, health, missing, factor)

    def _snapshot(self, period: Period, doing: str, joint_rate: float,
                  health: tuple[int, str], missing: Sequence[str], factor: float) -> Snapshot:
        rates = {'joint_states': joint_rate, **{
            name.partition(' ')[0]: source.rate for name, source in self.inputs.items()}}
        return Snapshot(
            time=max(self._time(), 0.0), doing=doing, com_error=period.com_error.mean,
            com_error_largest=period.com_error.largest,
            weight=period.weight(len(self._feet)), model_weight=self._weight,
            gravity=GRAVITY, contacts=dict(self._contacts), rates=rates,
            real_time_factor=factor, health=health, waiting=missing,
            exact_sensors=self._exact_sensors)

    def _time(self) -> float:
        return (self.now_ns - self._start_ns) * 1e-9 if self.running else 0.0

    def _on_truth(self, stamp: Stamp, point: np.ndarray) -> None:
        self._truths[stamp.ns] = point.copy()
        if len(self._truths) > _REMEMBERED:
            self._truths.popitem(last=False)

    def _on_com(self, stamp: Stamp, point: np.ndarray) -> None:
        truth = self._truths.get(stamp.ns)
        if truth is not None and stamp.ns >= self._start_ns:
            for period in (self._period, self._all):
                period.com_error.add(point - truth)

    def _on_foot(self, foot: str, stamp: Stamp, wrench: np.ndarray) -> None:
        force = float(wrench[2])
        self._contacts[foot] = (force, self._contacts[foot][1])
        if stamp.ns >= self._start_ns:
            for period in (self._period, self._all):
                period.vertical_forces.setdefault(foot, Mean(1)).add(force)

    def _on_contact(self, foot: str, _: Stamp, contact: bool) -> None:
        self._contacts[foot] = (self._contacts[foot][0], contact)


class _Health:
    """Remembers what every node said of itself last."""

    def __init__(self, node: Node) -> None:
        self._reports: dict[str, tuple[int, str, float]] = {}
        node.create_subscription(DiagnosticArray, '/diagnostics', self._on_array, STATE_OUTPUT)

    def _on_array(self, array: DiagnosticArray) -> None:
        now = time.monotonic()
        for status in array.status:
            self._reports[status.name] = (
                int.from_bytes(status.level, 'little'), status.message, now)

    def worst(self) -> tuple[int, str]:
        """Return the worst level and what it is about."""
        now = time.monotonic()
        fresh = {name: (level, words) for name, (level, words, at) in self._reports.items()
                 if now - at < _DIAGNOSTICS_LAST}
        if not fresh:
            return 1, 'no diagnostics yet'
        name = max(fresh, key=lambda key: fresh[key][0])
        level, words = fresh[name]
        return (0, f'all {len(fresh)} checks well') if level == 0 else (level, f'{name}: {words}')


class _PlainScreen:
    """One line per snapshot."""

    def show(self, shot: Snapshot, _: Snapshot) -> None:
        print(line(shot), flush=True)

    def close(self, text: str) -> None:
        print(text, flush=True)


class _LiveScreen:
    """A table that stays in its place."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live
        self._title = title
        self._live = Live(console=Console(), auto_refresh=False, transient=False)
        self._live.start()

    def show(self, shot: Snapshot, whole: Snapshot) -> None:
        # Beside a narrower table there is room for the ^C that the terminal writes: in the next
        # line, it would leave the first one standing.
        self._live.console.width = shutil.get_terminal_size().columns - len('^C ')
        self._live.update(table(shot, whole, self._title), refresh=True)

    def close(self, text: str) -> None:
        self._live.stop()
        print(text, flush=True)


def _screen(params: Parameters, title: str) -> _PlainScreen | _LiveScreen:
    wanted = params.display == 'table' or (params.display == 'auto' and sys.stdout.isatty())
    if wanted:
        try:
            return _LiveScreen(title)
        except ImportError:
            print('For the live table: sudo apt install python3-rich. Plain lines until then.')
    print(title, flush=True)
    return _PlainScreen()


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
