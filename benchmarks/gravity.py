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
What gravity compensation costs: the core's functions, and the node's callback beside a relay's.

::

    python -m benchmarks.gravity [--robot talos] [--quick]

The closed form is timed with kinematics, the quadratic program where limits are active and its
last solution was another one, as in the loop. The node receives four messages for each instant, a
relay one: besides its callback for the joint states, all four are compared with four relays.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
import itertools
import sys
import time
from typing import Any

from benchmarks.common import (
    alternate, console, machine, microseconds, print_table, print_targets, ratio, Target)
from biped_com_ros.core.gravity.model import ContactSolution, GravityLoad, GravityModel
from biped_com_ros.core.gravity.support_qp import BoundedNorm, SupportLimits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.fast.compat import callback_of
import numpy as np

Call = Callable[[], object]
#: The node with a controller that subscribes; with other subscribers, too; within limits.
CLOSED = 'gravity_compensation, closed form'
SUBSCRIBED = 'the same, with subscribers of efforts, shares and wrenches'
BOUNDED = 'gravity_compensation, within limits'
FIXED_BASE = 'gravity_compensation, fixed base'
INSTANT = 'gravity_compensation, closed form, its four messages'


def core_calls(robot: str) -> dict[str, Call]:
    """Return the functions that are timed without ROS."""
    model = RobotModel.load(robot)
    gravity, positions = GravityModel(model), model.posture()
    up, shares = np.array((0.0, 0.0, 1.0)), np.array((0.4, 0.6))
    state = model.state(positions)
    load = gravity.load(state, up)
    bounded, hard = BoundedNorm(gravity, SupportLimits(sole_margin=0.03)), hard_cases(gravity)
    return {
        'kinematics (RobotState)': lambda: model.state(positions),
        'GravityModel.load': lambda: gravity.load(state, up),
        'efforts, fixed base': lambda: gravity.load(state, up).fixed_base_efforts(),
        'efforts, two feet, closed form': lambda: gravity.load(state, up).on_contacts(shares),
        'within limits, none active': lambda: load.on_contacts(shares, bounded),
        'within limits, some active': lambda: _next(hard, bounded)}


def hard_cases(gravity: GravityModel) -> Any:
    """Return an endless series of (load, shares) beyond the limits of the closed form."""
    model, cases = gravity.model, []
    probe = BoundedNorm(gravity, SupportLimits(sole_margin=0.03))
    for phase in np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False):
        up = np.array((0.02 * np.sin(phase), 0.02 * np.cos(phase), 1.0))
        load = gravity.load(model.state(model.posture()), up / np.linalg.norm(up))
        shares = np.array((0.1, 0.9)) + 0.02 * np.sin(phase) * np.array((1.0, -1.0))
        load.on_contacts(shares, probe)
        if probe.iterations:
            cases.append((load, shares))
    return itertools.cycle(cases)


def _next(cases: Any, bounded: BoundedNorm) -> ContactSolution:
    case: tuple[GravityLoad, np.ndarray] = next(cases)
    load, shares = case
    return load.on_contacts(shares, bounded)


def node_calls(robot: str) -> tuple[dict[str, Call], list[Any]]:
    """Return the callbacks of a relay and of nodes, and all of these to be destroyed."""
    from benchmarks.callbacks import _call, _Message
    from benchmarks.subject import Relay
    message = _Message(RobotModel.load(robot))
    nodes = {'relay': Relay()}
    for i, (name, parameters) in enumerate((
            (CLOSED, {}), (SUBSCRIBED, {}), (BOUNDED, {'distribution': 'bounded'}),
            (FIXED_BASE, {'support': 'fixed'}))):
        nodes[name] = make_node(robot, i, parameters)
    calls = {name: _call(node, message) for name, node in nodes.items()}
    calls[INSTANT] = four_messages(nodes[CLOSED], message)
    return calls, list(nodes.values())


def four_messages(node: Any, joint_states: Any) -> Call:
    """Return a call that hands a node the messages of an instant, joint states last."""
    from biped_com_ros.ros.fast.codec import Template
    from geometry_msgs.msg import WrenchStamped
    from sensor_msgs.msg import Imu
    from std_msgs.msg import Header
    config = node.model.config
    imu = Imu(header=Header(frame_id=config.imu.frame))
    for name, value in zip('xyzw', orientation(node.model)):
        setattr(imu.orientation, name, value)
    messages = {'the IMU': imu}
    for name, foot in config.feet.items():
        wrench = WrenchStamped(header=Header(frame_id=foot.sole))
        wrench.wrench.force.z = 0.5 * node.compensator.gravity_model.weight
        messages[f"the wrench of '{name}'"] = wrench
    pairs = [(topic_callback(node, node._inputs[name].topic), Template(content, {}))
             for name, content in messages.items()]
    on_joints = topic_callback(node, node._inputs['joint_states'].topic)

    def call() -> None:
        stamp_ns = time.time_ns()
        for callback, template in pairs:
            callback(template.serialize(stamp_ns))
        on_joints(joint_states.fresh())
    return call


def orientation(model: RobotModel) -> list[float]:
    """Return the IMU's quaternion (x, y, z, w) in a robot that stands upright."""
    pose = model.state(model.posture()).pose_in_base(model.config.imu.frame)
    quaternion: list[float] = pose.quaternion.tolist()
    return quaternion


def topic_callback(node: Any, topic: str) -> Callable[[bytes], None]:
    """Return what the executor calls with the messages of a topic."""
    callback: Callable[[bytes], None] = next(
        callback_of(subscription) for subscription in node.subscriptions
        if subscription.topic_name == topic)
    return callback


def make_node(robot: str, number: int, parameters: dict[str, Any]) -> Any:
    """Return an active node with sensor values."""
    from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
    from rclpy.parameter import Parameter
    node = GravityCompensation(
        parameter_overrides=[Parameter(name, value=value) for name, value in {
            'robot': robot, 'marker_rate': 0.0, 'start_time': 0.01, **parameters}.items()],
        cli_args=['--ros-args', '-r', f'__node:=gravity_compensation_{number}'])
    model, weight = node.model, node.compensator.gravity_model.weight
    node.compensator.imu.update(np.array(orientation(model)))
    for contact in range(len(node.compensator.gravity_model.contacts)):
        node.compensator.update_wrench(contact, [0.0, 0.0, 0.5 * weight, 0.0, 0.0, 0.0], 0)
    node.supervisor.configure((), 0.1)  # the other inputs get no messages here
    return node


def targets(core: dict[str, np.ndarray], node: dict[str, np.ndarray]) -> list[Target]:
    """Return the targets."""
    closed = (microseconds(core['efforts, two feet, closed form']))
    relay = 'relay'
    return [
        Target('G1', 'efforts on two feet in closed form, kinematics at hand', closed, 40.0,
               unit='us'),
        Target('G2', 'efforts within limits, some active',
               microseconds(core['within limits, some active']), 150.0, unit='us'),
        Target('G3', "the node's callback, closed form, against the relay's",
               ratio(node, CLOSED, relay) if node else None, 1.25),
        Target('G4', 'within limits against closed form',
               ratio(node, BOUNDED, CLOSED) if node else None, 1.5),
        Target('G5', "the node's four callbacks of an instant against four of the relay's",
               ratio(node, INSTANT, relay) / 4.0 if node else None, 1.25)]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--quick', action='store_true', help='a few seconds')
    parser.add_argument('--no-ros', action='store_true', help='only the core')
    options = parser.parse_args()
    rounds = 20 if options.quick else 100
    console.print(machine())
    core = alternate(core_calls(options.robot), rounds)
    node = {} if options.no_ros else time_nodes(options.robot, rounds)
    print_table(f'Gravity compensation of {options.robot}', ('what', 'us'), [
        (name, f'{microseconds(times):.1f}') for name, times in {**core, **node}.items()])
    print_targets(targets(core, node))
    return 0


def time_nodes(robot: str, rounds: int) -> dict[str, np.ndarray]:
    """Time the callbacks."""
    import rclpy
    rclpy.init()
    try:
        with prepared(robot) as calls:
            return alternate(calls, 5 * rounds, budget=2e-3)
    finally:
        rclpy.shutdown()


@contextmanager
def prepared(robot: str) -> Iterator[dict[str, Call]]:
    """Make a relay and the nodes; gives the calls of their callbacks."""
    from benchmarks.callbacks import subscribed
    calls, nodes = node_calls(robot)
    name = '/gravity_compensation_1'
    wrenches = [f'{foot}/wrench' for foot in RobotModel.load(robot).config.feet]
    try:
        with subscribed({f'{name}/{topic}' for topic in ('effort', 'shares', *wrenches)}):
            yield calls
    finally:
        for node in nodes:
            node.destroy_node()


if __name__ == '__main__':
    sys.exit(main())
