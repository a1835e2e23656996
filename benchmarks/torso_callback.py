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
What the callbacks of `torso_controller` cost, in process, against a relay that does nothing.

All four inputs of an instant go in as serialized messages, as the executor hands them over: the
two IMUs, joint states and tendon states, in the order in which the simulator sends them and in
every other one of the three for the control. Each callback is compared with that of a relay, and
all four with four of them::

    python -m benchmarks.torso_callback [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
import gc
import itertools
import math
import time

from benchmarks.callbacks import _call, _Message, subscribed
from benchmarks.common import (
    console, machine, microseconds, print_table, print_targets, Target)
from benchmarks.subject import Relay
from biped_com_ros.core.geometry.pose import Array, quaternion_from_rotation
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.fast.compat import callback_of
from geometry_msgs.msg import Quaternion
import numpy as np
import rclpy
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

PERIOD = 2_000_000
"""Between the stamps of two instants, ns."""

TURN = 50
"""Consecutive groups of messages, and calls of the relay: about a millisecond of each callback."""

LOWER, UPPER, JOINTS, TENDONS = 'base IMU', 'torso IMU', 'joint states', 'tendon states'
SIMULATED = LOWER, UPPER, JOINTS, TENDONS

DEMO = {'/torso_controller/tendon_lengths', '/torso_controller/joint_states'}
"""Topics with subscribers in the demo without a viewer."""

EVERYTHING = {*DEMO, *(f'/torso_controller/{name}' for name in (
    'tensions', 'shape', 'reference', 'wrench', 'markers')), '/tf'}

NO_STAMP = 'tendons with other stamps'


BEND, ROUND = math.radians(6.0), 500
"""The torso goes around with so much bend, rad, in so many instants."""


class TorsoSubject:
    """The node and the messages of its sensors: arms at rest, a torso that follows its target."""

    def __init__(self, node: TorsoController) -> None:
        model, body = node.model, node.body
        assert model is not None and body is not None
        directions, imus = np.linspace(0.0, 2.0 * np.pi, ROUND, False), model.config.imus
        self._shapes = [make_shape(BEND, direction) for direction in directions]
        self._attitudes = [quaternion_from_rotation(body.backbone.tip(shape).rotation)
                           for shape in self._shapes]
        self._lengths = [body.backbone.lengths(shape) for shape in self._shapes]
        others = [name for name in model.joint_names if name not in body.joint_names]
        topics = {LOWER: imus['base'].topic, UPPER: imus['torso'].topic,
                  JOINTS: 'joint_states', TENDONS: 'tendon_states'}
        callbacks = {s.topic_name.lstrip('/'): callback_of(s) for s in node.subscriptions}
        self._callbacks = {name: callbacks[topic] for name, topic in topics.items()}
        self._messages = {
            LOWER: _imu(imus['base'].frame), UPPER: _imu(imus['torso'].frame),
            JOINTS: _joints(others, model.posture()[model.joint_index(others)], 0.0),
            TENDONS: _joints([f'tendon_{i}' for i in range(body.backbone.count)],
                             self._lengths[0], 12.0)}
        self._controller, self._now, self._step = node.controller, time.time_ns(), 0

    def instants(self, order: Sequence[str], count: int, tendons_late: int = 0) -> Array:
        """Hand over the messages of instants; return the mean time of each callback, s."""
        clock, times = time.perf_counter, [0.0] * len(order)
        calls = [(self._callbacks[name], self._messages[name],
                  tendons_late if name == TENDONS else 0) for name in order]
        for _ in range(count):
            self._move_on()
            for i, (callback, message, late) in enumerate(calls):
                start = clock()
                callback(message.serialize(self._now - late))
                times[i] += clock() - start
        return np.array(times) / count

    def _move_on(self) -> None:
        """Advance the torso to the next group of messages."""
        self._now, self._step = self._now + PERIOD, (self._step + 1) % ROUND
        self._messages[UPPER].fields['attitude'][...] = self._attitudes[self._step]
        self._messages[TENDONS].fields['position'][...] = self._lengths[self._step]
        if not self._step % 10:
            self._controller.set_target(self._shapes[self._step])


Results = dict[str, tuple[Sequence[str], Array]]
"""By what is measured: names of the callbacks and their times, (rounds, callbacks), s."""


def measure(rounds: int) -> tuple[Array, Results]:
    """Return the times of the relay, (rounds,), and of all that is compared with it."""
    relay = Relay()
    node = TorsoController(parameter_overrides=[
        Parameter('robot', value='biped'), Parameter('max_stamp_age', value=0.0)])
    subject = TorsoSubject(node)
    call = _call(relay, _Message(RobotModel.load('biped')))
    cases = {', '.join(order): (order, DEMO, 0) for order in orders()}
    cases[NO_STAMP] = SIMULATED, DEMO, PERIOD // 3
    cases['everything subscribed'] = SIMULATED, EVERYTHING, 0
    relay_times = np.empty((rounds, len(cases)))
    results: Results = {
        name: (order, np.empty((rounds, len(order)))) for name, (order, _, _) in cases.items()}
    gc.collect()
    gc.disable()
    try:
        for turn, (k, (name, (order, topics, late))) in itertools.product(
                range(rounds), enumerate(cases.items())):
            relay_times[turn, k] = _turn(call)
            with subscribed(topics):
                results[name][1][turn] = subject.instants(order, TURN, late)
    finally:
        gc.enable()
    for each in (relay, node):
        each.destroy_node()
    return relay_times.reshape(-1), results


def orders() -> list[tuple[str, ...]]:
    """Return the orders in which an instant's messages may come, the simulator's first."""
    others = [(JOINTS, *order) for order in itertools.permutations((LOWER, UPPER, TENDONS))]
    return [SIMULATED, *others]


def _turn(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(TURN):
        call()
    return (time.perf_counter() - start) / TURN


def _imu(frame: str) -> Template:
    message = Imu(header=Header(frame_id=frame), orientation=Quaternion(w=1.0))
    template = Template(message, {'gyro': 'angular_velocity', 'attitude': 'orientation'})
    template.fields['gyro'][...] = 0.01, -0.005, 0.002
    return template


def _joints(names: list[str], positions: Array, effort: float) -> Template:
    count = len(names)
    return Template(JointState(
        name=names, position=positions.tolist(), velocity=[0.0] * count,
        effort=[effort] * count), {'position': 'position'})


def report(rounds: int) -> list[Target]:
    """Measure, print a line per order, and return the targets."""
    relay_times, results = measure(rounds)
    relay, rows, total = microseconds(relay_times), [], {}
    for name, (order, times) in results.items():
        each = {what: microseconds(times[:, i]) / relay for i, what in enumerate(order)}
        total[name] = sum(each.values())
        rows.append((name, *(f'{each[what]:.2f}' for what in SIMULATED),
                     f'{total[name]:.2f}', f'{total[name] / len(order):.2f}'))
    print_table(f'torso_controller, times one callback of the relay ({relay:.1f} us)',
                ('instant', *SIMULATED, 'all', 'of four relays'), rows)
    return [
        Target('T1', "all callbacks of an instant against as many of the relay's, in any order",
               max(total[', '.join(order)] for order in orders()) / len(SIMULATED), 0.75)]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--quick', action='store_true', help='a few seconds')
    options = parser.parse_args()
    rounds = 40 if options.quick else 200
    console.print(machine())
    rclpy.init()
    try:
        print_targets(report(rounds))
    finally:
        rclpy.shutdown()


if __name__ == '__main__':
    main()
