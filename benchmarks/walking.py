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
Ten steps of the demo robot through all nodes: what was planned, what was true, what was measured.

Simulator, estimators, gravity compensation and gait player run as processes of their own, as a
user starts them. Each link's true mass differs from the URDF's by 3 % (standard deviation). Truth
is what MuJoCo says; the least margin is printed by truth and as zmp_monitor tells it, of all
samples of the walk::

    python -m benchmarks.walking [--pace 1.0] [--seeds 1 2 3 4 5] [--pattern preview] [--steps 10]
        [--slope 6.0] [--feedback]
    python -m benchmarks.walking --limits

The second one finds, in process, what is survived without and with feedback.
At a pace below 1 nodes have more time for each message: what is measured then is what they do, and
not how busy the machine is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
import os
from pathlib import Path
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks import walk_limits
from benchmarks.common import console, print_table, print_targets, Target
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_from_quaternion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.support import support_polygon
from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.topics.qos import LATCHED
from examples.stepping import CONTACT_SHARE, MASS_SIGMA, SEEDS, StepRecord
from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
import yaml

PATTERNS = {'quasi-static': 'steps', 'preview': 'quick steps'}
_REFERENCE, _MEASURED = 'gait_player/zmp_reference', 'zmp_monitor/zmp'
_RESTS = ('standing', 'halted', 'unable')
_START_UP, _WALK = 90.0, 90.0  # s, on a busy machine; the latter simulated


@dataclass(frozen=True)
class SimulatedWalk:
    """
    A walk through the nodes.

    Attributes
    ----------
    record
        By truth, with the plan between its messages.
    times, measured
        When zmp_monitor told a zero-moment point, (M,), s, and where, (M, 2), m.
    margins
        All that zmp_monitor told during the walk, m.
    pace
        Simulated seconds per second.
    end
        State of gait_player in which it ended; 'stopped' if that was before the last step.

    """

    record: StepRecord
    times: Array
    measured: Array
    margins: Array
    pace: float
    end: str

    @property
    def measured_rms(self) -> Array:
        """Deviation of the measured zero-moment point from the plan, forward and sideways, m."""
        plan = np.column_stack([np.interp(self.times, self.record.times, column)
                                for column in self.record.reference.T])
        return np.sqrt(((self.measured - plan) ** 2).mean(axis=0))


class Recorder(Node):
    """Orders a walk and keeps what is said meanwhile."""

    def __init__(self, model: RobotModel) -> None:
        super().__init__('recorder')
        self._model = model
        feet = tuple(model.config.feet)
        self.messages: dict[str, tuple[type, list[bytes]]] = {
            'odom': (Odometry, []), 'joint_states': (JointState, []),
            **{f'simulator/truth/{foot}/wrench': (WrenchStamped, []) for foot in feet},
            'simulator/truth/zmp': (PointStamped, []), _MEASURED: (PointStamped, []),
            _REFERENCE: (PointStamped, [])}
        self.state, self.margins, self._has_stopped = '', [], False
        for topic, (kind, kept) in self.messages.items():
            self._subscribe(kind, topic, lambda raw, kept=kept: self._keep(kept, raw))
        self._subscribe(Float64, 'zmp_monitor/margin', lambda raw: self._keep(self.margins, raw))
        self.create_subscription(String, 'gait_player/state', self._on_state, LATCHED)
        self._executor = make_executor()
        self._executor.add_node(self)

    def _subscribe(self, kind: type, topic: str, callback: Callable[[bytes], None]) -> None:
        self.create_subscription(kind, topic, callback, QoSProfile(depth=1000), raw=True)

    def _keep(self, kept: list[bytes], raw: bytes) -> None:
        if self.state not in ('', 'planning', *_RESTS):
            kept.append(raw)

    def _on_state(self, message: Any) -> None:
        self.state = message.data
        self._has_stopped |= message.data == 'stopping'

    def until(self, condition: Callable[[], bool], what: str, patience: float) -> None:
        """Serve callbacks until something is so."""
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f'waited {patience:.0f} s in vain for {what}')
            self._executor.spin_once(timeout_sec=0.2)

    def call(self, kind: type, name: str, request: Any) -> Any:
        """Call a service when it is there."""
        client = self.create_client(kind, name)
        self.until(client.service_is_ready, f"service '{name}'", _START_UP)
        future = client.call_async(request)
        self.until(future.done, f"an answer of '{name}'", _START_UP)
        return future.result()

    def settle(self, seconds: float) -> None:
        """Serve callbacks for a while."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, 'the time to pass', seconds + 5.0)

    def walk(self, pattern: str, steps: int, pace: float, feedback: bool) -> SimulatedWalk:
        """Walk as soon as everything is there."""
        values = {'pattern': pattern, 'steps': steps, 'feedback': feedback}
        self.call(SetParameters, 'gait_player/set_parameters', SetParameters.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]))
        self.settle(4.0 / pace)  # gravity compensation starts softly
        while not (response := self.call(
                Trigger, 'gait_player/walk', Trigger.Request())).success:
            console.print(f'  {response.message}', highlight=False, markup=False)
            self.settle(1.0)
        self.until(lambda: self.state == 'walking', 'the walk', _START_UP / pace)
        begun = time.monotonic()
        self.until(lambda: self.state in _RESTS, 'its end', _WALK / pace)
        elapsed = time.monotonic() - begun
        self.settle(0.5)
        return self._evaluate(elapsed)

    def _evaluate(self, elapsed: float) -> SimulatedWalk:
        received = {topic: {_ns(message): message for message in (
            deserialize_message(raw, kind) for raw in kept)}
            for topic, (kind, kept) in self.messages.items()}
        planned, measured = received.pop(_REFERENCE), received.pop(_MEASURED)
        stamps = np.array(sorted(set.intersection(*map(set, received.values()))))
        stamps = stamps[(stamps >= min(planned)) & (stamps <= max(planned))]
        reference = _between(stamps, planned)
        rows = [self._row(stamp, received) for stamp in stamps.tolist()]
        zmp, soles, forces, velocities, margins = (np.array(column) for column in zip(*rows))
        record = StepRecord(
            1e-9 * (stamps - stamps[0]), reference, zmp, soles, forces, velocities, margins,
            float(forces.sum(axis=1).mean()), self.state == 'halted')
        instants = np.array(sorted(set(measured).intersection(stamps.tolist())))
        points = np.array([_xy(measured[ns].point) for ns in instants.tolist()])
        published = np.array([deserialize_message(raw, Float64).data for raw in self.margins])
        return SimulatedWalk(record, 1e-9 * (instants - stamps[0]), points, published,
                             float(record.times[-1]) / elapsed,
                             'stopped' if self._has_stopped else self.state)

    def _row(self, ns: int, received: dict[str, dict[int, Any]]) -> tuple[Any, ...]:
        model = self._model
        joints, base = received['joint_states'][ns], received['odom'][ns].pose.pose
        q, p = base.orientation, base.position
        R_world_base = rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w)))
        order = [list(joints.name).index(name) for name in model.joint_names]
        soles = model.state(np.array(joints.position)[order]).placements_in_base(
            model.soles) @ R_world_base.T
        soles[:, 3] += (p.x, p.y, p.z)
        forces = [received[f'simulator/truth/{foot}/wrench'][ns].wrench.force.z
                  for foot in model.config.feet]
        zmp = _xy(received['simulator/truth/zmp'][ns].point)
        return (zmp, soles, forces, np.array(joints.velocity)[order],
                true_margin(model, soles, forces, zmp))


def true_margin(model: RobotModel, soles: Array, forces: Sequence[float],
                zmp: tuple[float, float]) -> float:
    """Return how far a point is inside what the soles on the ground span, m."""
    least = CONTACT_SHARE * GRAVITY * model.mass
    polygon = support_polygon(
        [Pose(row[:3].T, row[3]) for row in soles],
        [foot.polygon for foot in model.config.feet.values()], [f > least for f in forces])
    return math.nan if polygon is None else polygon.margin(np.array((*zmp, 0.0))).distance


def _between(stamps: Array, points: dict[int, Any]) -> Array:
    """Return points (N, 2) at stamps between those of messages."""
    known = sorted(points)
    values = np.array([_xy(points[ns].point) for ns in known])
    return np.column_stack([np.interp(stamps, known, column) for column in values.T])


def _ns(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * 1_000_000_000 + stamp.nanosec)


def _xy(point: Any) -> tuple[float, float]:
    return point.x, point.y


def walk(pattern: str, seed: int, options: argparse.Namespace) -> SimulatedWalk:
    """Start everything, walk, end everything."""
    os.environ.update(ROS_DOMAIN_ID=str(random.randint(1, 100)),
                      ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    with tempfile.TemporaryDirectory() as directory:
        simulator = Path(directory) / 'simulator.yaml'
        simulator.write_text(yaml.safe_dump({'/**/simulator': {'ros__parameters': {
            'hidden_mass_sigma': MASS_SIGMA, 'seed': seed, 'real_time_factor': options.pace,
            'floor_pitch': math.radians(options.slope)}}}))
        log = Path(directory) / 'log'
        process = subprocess.Popen(
            [sys.executable, '-m', 'biped_com_ros.launching.run', 'gait_simulation',
             'active:=true', f'simulator_params:={simulator}'],
            start_new_session=True, stdout=log.open('w'), stderr=subprocess.STDOUT)
        rclpy.init()
        recorder = Recorder(RobotModel.load('biped'))
        try:
            return recorder.walk(pattern, options.steps, options.pace, options.feedback)
        finally:
            recorder.destroy_node()
            rclpy.try_shutdown()
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
            for line in log.read_text().splitlines():
                if '[ERROR]' in line and '[gait_player]' in line:
                    console.print(f'  {line}', highlight=False, markup=False, soft_wrap=True)


def row(name: str, seed: int, done: SimulatedWalk) -> tuple[str, ...]:
    """Return a line of the table, in mm."""
    record = done.record
    (x, y), (mx, my) = 1e3 * record.zmp_rms, 1e3 * done.measured_rms
    return (name, f'{seed}', f'{done.pace:.2f}', f'{x:.1f}, {y:.1f}', f'{mx:.1f}, {my:.1f}',
            f'{1e3 * np.nanmin(record.margins):.1f}', f'{1e3 * done.margins.min():.1f}',
            f'{1e3 * max(record.slips()):.2f}', '' if done.end == 'standing' else done.end)


def targets(walks: Sequence[SimulatedWalk]) -> list[Target]:
    """Return what was asked for, against the worst of all walks; 0 would be the very edge."""
    margins = [np.nanmin(walk.record.margins) for walk in walks]
    rms = [float(np.max((walk.record.zmp_rms, walk.measured_rms))) for walk in walks]
    slips = [max(walk.record.slips()) for walk in walks]
    broken = sum(walk.end != 'standing' for walk in walks)
    return [
        Target('1', 'walks that were broken off', float(broken), 0.0, unit=''),
        Target('2', 'least true margin', 1e3 * min(margins), 1.0, at_least=True, unit='mm'),
        Target('3', 'least margin by zmp_monitor',
               1e3 * min(float(walk.margins.min()) for walk in walks), 1.0, at_least=True,
               unit='mm'),
        Target('4', 'ZMP off its plan, rms', 1e3 * max(rms), 10.0, unit='mm'),
        Target('5', 'slip of a step', 1e3 * max(slips), 1.0, unit='mm')]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--pace', type=float, default=1.0, help='simulated seconds per second')
    parser.add_argument('--seeds', type=int, nargs='+', default=list(SEEDS))
    parser.add_argument('--pattern', choices=PATTERNS, action='append', help='default: both')
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--slope', type=float, default=0.0, help='deg, downwards')
    parser.add_argument('--feedback', action='store_true', help='with feedback')
    parser.add_argument('--limits', action='store_true',
                        help='largest push and slope, in process')
    options = parser.parse_args(argv)
    if options.limits:
        return 0 if walk_limits.report(options.seeds) else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the nodes end, too
    rows, walks = [], []
    for pattern in options.pattern or PATTERNS:
        for seed in options.seeds:
            walks.append(walk(pattern, seed, options))
            rows.append(row(f'{options.steps} {PATTERNS[pattern]}', seed, walks[-1]))
            console.print(' | '.join(rows[-1]), highlight=False)
    print_table('Steps through all nodes, mm', (
        'gait', 'seed', 'pace', 'ZMP rms x, y', 'measured', 'margin', 'measured', 'slip', ''),
        rows)
    found = targets(walks)
    print_targets(found)
    return 0 if all(target.met for target in found) else 1


if __name__ == '__main__':
    sys.exit(main())
