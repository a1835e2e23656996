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
What stability and the fused CoM cost, and the errors of simplifications of the ZMP.

::

    python -m benchmarks.zmp [--robot talos] [--quick] [--no-ros]

The nodes' work at one instant is compared with a stock relay's callback. `zmp_monitor` gets four
messages for each instant, a relay one; so the floor is four relays, of which three do nothing. So
does the fused CoM of `com_estimator`; what that node does besides is in benchmarks/callbacks.py.
The callbacks of the four messages are timed one by one, too: the last one completes the instant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
import sys
import time
from typing import Any

from benchmarks.common import (
    alternate, console, machine, microseconds, print_table, print_targets, ratio, Target)
from biped_com_ros.core.com.fused import FusedComEstimator
from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.contact_region import com_region, zmp_region
from biped_com_ros.core.stability.contacts import Contact, surface_contact
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.stability.support import Soles
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.leg_odometry import LegOdometry
from examples.zmp_methods import errors, FREQUENCIES, METHODS
import numpy as np

Call = Callable[[], object]
#: What has subscribers.
QUIET = 'zmp_monitor, only events'
MARGINS = 'the same, polygon, margins and ZMP subscribed to'
EVERYTHING = "the same, the model's ZMP, too"
FUSED = 'com_estimator, com_fused subscribed to'
ZMP_REGION = 'region of the ZMP, two soles and two hands'
COM_REGION = 'region of the CoM of the same'
STEP_NS = 2_000_000
#: Number of instants that are timed together: the filter of the fused CoM averages seven.
TOGETHER = {QUIET: 10, MARGINS: 10, EVERYTHING: 10, FUSED: 7}


class Instants:
    """Instants of a robot that trembles, 2 ms apart."""

    def __init__(self, robot: str) -> None:
        self.model = model = RobotModel.load(robot)
        self._positions, self._speed = model.posture(), np.full(len(model.joint_names), 0.01)
        imu = model.config.imu.frame
        self.base = LegOdometry(model, imu)
        self._orientation = model.state(self._positions).pose_in_base(imu).rotation
        self.wrenches = np.zeros((len(model.soles.names), 6))
        self.wrenches[:, 2] = model.mass * 9.81 / len(self.wrenches)
        self.contacts, self.ns = (True,) * len(self.wrenches), 0
        self._gyro = np.zeros(3)

    def following(self) -> LocatedState:
        """Return the robot in the world, as the nodes locate it."""
        self.ns += STEP_NS
        self._positions += 1e-9
        state = self.model.state(self._positions, self._speed)
        pose = self.base.update(state, self._orientation, self.contacts)
        return LocatedState(
            self.ns, state.in_world(pose, self.base.sole_placements), self.base.stance, True,
            lambda state: self.base.twist(state, self._gyro), wrenches=self.wrenches.tolist())

    def with_twist(self) -> object:
        """Return the twist of the next instant."""
        return self.following().twist


def core_calls(robot: str) -> dict[str, Call]:
    """Return what is timed without ROS."""
    model = RobotModel.load(robot)
    monitor, fusion = StabilityMonitor(model, MonitorSettings()), FusedComEstimator(model)
    alone, watched, fused = (Instants(robot) for _ in range(3))

    def fuse() -> None:
        fusion.update(1e-9 * STEP_NS, fused.following())
    return {
        'kinematics, base and twist': alone.with_twist,
        'and stability': lambda: monitor.update(watched.following()),
        'or the fused CoM': fuse, **region_calls(robot)}


def region_calls(robot: str) -> dict[str, Call]:
    """Return the regions of support of the soles and two hands, which lean ahead at CoM height."""
    located = Instants(robot).following()
    com = located.state.com_in_world
    contacts = Soles.of(RobotModel.load(robot)).contacts(
        located.state.sole_placements_in_world.tolist(), located.stance.in_contact, 0.7)
    weight = 9.81 * RobotModel.load(robot).mass
    for side in (-0.25, 0.25):
        wall = Pose.from_rpy((0.3 * side, -1.2, 0.0), com + (0.4, side, 0.1))
        contacts.append(surface_contact(wall, ((0.0, 0.0),), 0.5, 0.3 * weight))
    plane = Plane.level(0.0)

    def anew() -> list[Contact]:  # a contact keeps its generators in the world
        return [replace(contact) for contact in contacts]
    return {ZMP_REGION: lambda: zmp_region(anew(), weight, com, plane),
            COM_REGION: lambda: com_region(anew(), weight)}


def node_calls(robot: str) -> tuple[dict[str, Call], list[Any]]:
    """Return the callbacks of a relay and of nodes, and all of these to be destroyed."""
    from benchmarks.callbacks import _call, _Message
    from benchmarks.subject import Relay
    relay = Relay()
    calls, nodes = {'relay': _call(relay, _Message(RobotModel.load(robot)))}, [relay]
    model = RobotModel.load(robot)
    for i, name in enumerate((QUIET, MARGINS, EVERYTHING)):
        nodes.append(make_node(robot, 'zmp_monitor', i))
        calls[name] = repeated(FourMessages(model, nodes[-1].inputs), TOGETHER[name])
    nodes.append(make_node(robot, 'com_estimator', 0))
    calls[FUSED] = repeated(FourMessages(model, nodes[-1].inputs), TOGETHER[FUSED])
    return calls, nodes


def repeated(call: Call, count: int) -> Call:
    """Return a call of so many instants, of which some take longer."""
    def calls() -> None:
        for _ in range(count):
            call()
    return calls


def make_node(robot: str, name: str, number: int) -> Any:
    """Return a node without markers, which go out at their own rate."""
    from biped_com_ros.nodes import NODES
    from biped_com_ros.nodes.suite.node import load_class
    from rclpy.parameter import Parameter
    return load_class(NODES[name])(
        parameter_overrides=[Parameter(name, value=value) for name, value in {
            'robot': robot, 'marker_rate': 0.0, 'max_stamp_age': 0.0}.items()],
        cli_args=['--ros-args', '-r', f'__node:={name}_{number}'])


class FourMessages:
    """
    Hands the messages of an instant to inputs, when called.

    Parameters
    ----------
    model, inputs
        The robot, and who takes them.
    since_ns
        Before the first instant.

    Attributes
    ----------
    single
        What hands over one message each, by what to call it; to be called in turn.

    """

    def __init__(self, model: RobotModel, inputs: Any, since_ns: int = 10**9) -> None:
        from biped_com_ros.ros.fast.codec import Template
        from geometry_msgs.msg import Wrench, WrenchStamped
        from sensor_msgs.msg import Imu, JointState
        from std_msgs.msg import Header
        instants, self._ns = Instants(model.config.name), since_ns
        self._joints = Template(JointState(
            name=list(model.joint_names), position=model.posture().tolist(),
            velocity=[0.01] * len(model.joint_names)), {'position': 'position'})
        imu = Imu(header=Header(frame_id=model.config.imu.frame))
        orientation = model.state(model.posture()).pose_in_base(model.config.imu.frame).quaternion
        for name, value in zip('xyzw', orientation.tolist()):
            setattr(imu.orientation, name, value)
        self.single = {
            'joint states': self._sender(inputs.joints, self._joints, step=STEP_NS),
            'IMU': self._sender(inputs.inputs['IMU'], Template(imu, {}))}
        for foot, source in zip(model.soles.names, inputs.wrenches):
            frame = model.config.sole_frame(foot)
            message = WrenchStamped(header=Header(frame_id=frame), wrench=Wrench())
            message.wrench.force.z = float(instants.wrenches[0, 2])
            self.single[f'{foot} wrench'] = self._sender(source, Template(message, {}))
        self._all = tuple(self.single.values())

    def _sender(self, source: Any, template: Any, step: int = 0) -> Call:

        def send() -> None:
            if step:
                self._ns += step
                self._joints.fields['position'][0] += 1e-9
            source.reader.receive(bytes(template.serialize(self._ns)))
        return send

    def __call__(self) -> None:
        for send in self._all:
            send()


def time_callbacks(calls: dict[str, Call], count: int) -> dict[str, np.ndarray]:
    """Return the times, s, of calls that follow one another, each of them so often."""
    times = {name: np.empty(count) for name in calls}
    for turn in range(count):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name][turn] = time.perf_counter() - start
    return times


def time_nodes(robot: str, rounds: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Time the callbacks of instants, and those of zmp_monitor one by one."""
    import rclpy
    rclpy.init()
    try:
        with prepared(robot) as (calls, nodes):
            times = alternate(calls, 5 * rounds, budget=3e-4)
            messages = FourMessages(RobotModel.load(robot), nodes[2].inputs, since_ns=10**12)
            one_by_one = time_callbacks(
                {'relay': calls['relay'], **messages.single}, 100 * rounds)
            return {name: turns / TOGETHER.get(name, 1)
                    for name, turns in times.items()}, one_by_one
    finally:
        rclpy.shutdown()


@contextmanager
def prepared(robot: str) -> Iterator[tuple[dict[str, Call], list[Any]]]:
    """Make a relay and the nodes; gives the calls of their callbacks, and the nodes."""
    from benchmarks.callbacks import subscribed
    calls, nodes = node_calls(robot)
    margins, everything, fused = (node.get_fully_qualified_name() for node in nodes[2:5])
    topics = {f'{name}/{topic}' for name in (margins, everything) for topic in (
        'zmp', 'dcm', 'support_polygon', 'margin', 'dcm_margin', 'time_to_edge')}
    topics |= {f'{everything}/zmp_model', f'{everything}/zmp_difference', f'{fused}/com_fused'}
    try:
        with subscribed(topics):
            yield calls, nodes
    finally:
        for node in nodes:
            node.destroy_node()


def targets(core: dict[str, np.ndarray], node: dict[str, np.ndarray]) -> list[Target]:
    """Return what is demanded."""
    return [
        Target('Z1', 'stability against kinematics alone',
               ratio(core, 'and stability', 'kinematics, base and twist'), 4.0),
        Target('Z2', "the node's four callbacks of an instant against the relay's one",
               ratio(node, MARGINS, 'relay') if node else None, 1.25),
        Target('Z3', 'the same against four of the relay',
               ratio(node, MARGINS, 'relay') / 4.0 if node else None, 1.25),
        Target('Z4', 'the fused CoM against four of the relay',
               ratio(node, FUSED, 'relay') / 4.0 if node else None, 1.25)]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--quick', action='store_true', help='a few seconds')
    parser.add_argument('--no-ros', action='store_true', help='only the core')
    options = parser.parse_args()
    rounds = 20 if options.quick else 100
    console.print(machine())
    core = alternate(core_calls(options.robot), rounds, budget=2e-3)
    node, single = ({}, {}) if options.no_ros else time_nodes(options.robot, rounds)
    print_table(f'Stability of {options.robot}', ('what', 'us'), [
        (name, f'{microseconds(times):.1f}') for name, times in {**core, **node}.items()])
    if single:
        print_table('zmp_monitor, polygon, margins and ZMP subscribed to, callback by callback', (
            'what', 'us', 'to one relay'), [
                (name, f'{microseconds(times):.1f}', f'{ratio(single, name, "relay"):.2f}')
                for name, times in single.items()])
    print_targets(targets(core, node))
    print_approximations(options.robot)
    return 0


def print_approximations(robot: str) -> None:
    """Print what simplifications of equation (8) lose."""
    model = RobotModel.load(robot)
    table = np.array([errors(model, frequency) for frequency in FREQUENCIES]).T
    print_table(f'Error of the ZMP of {robot}, mm rms', (
        'method', *(f'{frequency} Hz' for frequency in FREQUENCIES)), [
            (name, *(f'{1e3 * error:.2g}' for error in row))
            for name, row in zip(METHODS, table)])


if __name__ == '__main__':
    sys.exit(main())
