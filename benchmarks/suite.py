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
What the five mission nodes cost together: composed in one process, at 500 Hz, as a user runs them.

::

    python benchmarks/suite.py [--rate 500] [--seconds 3]

The simulator is the robot; the CPU time of the suite's process, of all its threads, is read from
the system's clock of that process. That is done while the simulator and the suite share
all cores, and with the suite on a core of its own and everything else on the others, as a robot
has it that is no simulation; that is what the target is about.

Other work, of this machine or of a virtual one's neighbours, only adds to CPU time, and nearly
doubles it where it takes the caches. So several readings are taken of each, on one core after the
other, and the least counts, as with ``timeit``; median and most of them tell how quiet it was. A
node that does nothing but answer every joint state by a point, as rclpy's tutorials write it, is
read in the same way, for comparison. A suite that does not keep up looks cheap: only readings in
which it did count.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
import os
from pathlib import Path
import random
from statistics import median
import sys
import time

from benchmarks.common import console, machine, print_table, print_targets, Target
from benchmarks.driver import MeasuredProcess

FIVE = ('wrench_aggregator', 'com_estimator', 'zmp_monitor', 'gravity_compensation',
        'torso_controller')
IDLE = ('relay',)
"""A node that does nothing (``benchmarks/subject.py``)."""

RATE, LIMIT = 500.0, 30.0
"""Joint states per second, and per cent of one core for all five."""

KEPT_UP = 0.95
"""Share of the joint states that have to be answered for a reading to count."""

READINGS = 6

_WARM_UP, _SETTLE = 5.0, 0.5  # s
_PATIENCE = 60.0  # s


def move(process: int, cores: set[int]) -> None:
    """Let a process run on these cores only, with all its threads."""
    for thread in Path(f'/proc/{process}/task').iterdir():
        with suppress(ProcessLookupError):  # one that has just ended
            os.sched_setaffinity(int(thread.name), cores)


def arrangements(apart: bool) -> list[tuple[set[int], set[int]]]:
    """Return where the suite, and where everything else is to run, one after the other."""
    cores = os.sched_getaffinity(0)
    if not apart or len(cores) == 1:
        return [(cores, cores)] * READINGS
    turns = [({core}, cores - {core}) for core in sorted(cores, reverse=True)]
    return list(islice(cycle(turns), READINGS))


@dataclass(frozen=True)
class Cost:
    """What a suite took: per cent of one core, and the lowest rate of the nodes' outputs, Hz."""

    cpu: float
    rate: float

    @property
    def update(self) -> float:
        """CPU time of an update, µs."""
        return 1e4 * self.cpu / self.rate


@dataclass(frozen=True)
class Costs:
    """
    Several readings of what a suite takes.

    Attributes
    ----------
    readings
        All of them.
    rate
        Of the joint states, Hz.

    """

    readings: Sequence[Cost]
    rate: float

    @property
    def kept_up(self) -> Sequence[Cost]:
        """Return those in which the nodes answered nearly all joint states."""
        return [cost for cost in self.readings if cost.rate >= KEPT_UP * self.rate]

    @property
    def least(self) -> Cost:
        """Return the cheapest one that counts."""
        return min(self.kept_up or self.readings, key=lambda cost: cost.update)

    def cells(self) -> tuple[str, ...]:
        """Return it in words."""
        all_of_them = [cost.cpu for cost in self.readings]
        return (f'{self.least.cpu:.1f} %', f'{median(all_of_them):.1f} %',
                f'{max(all_of_them):.1f} %', f'{self.least.rate:.0f} Hz',
                f'{self.least.update:.0f} µs')


def simulator_command(robot: str, rate: float, nodes: Sequence[str]) -> list[str]:
    """Return how to start the robot; without torso_controller it tells the joints of the torso."""
    virtual = str('torso_controller' not in nodes).lower()
    return ['biped_com_ros.nodes.simulator.node', '--ros-args', '-p', f'robot:={robot}',
            '-p', f'rate:={rate}', '-p', f'virtual_joints:={virtual}', '-p', 'tendons:=true',
            '--log-level', 'error']


def suite_command(robot: str, nodes: Sequence[str], fused_com: bool) -> list[str]:
    """Return how to start the nodes in one process."""
    if nodes is IDLE:
        return ['benchmarks.subject', *IDLE]
    return ['biped_com_ros.nodes.suite.node', '--ros-args',
            '-p', f'nodes:=[{",".join(nodes)}]', '-p', f'robot:={robot}',
            '-p', 'use_sim_time:=true', '-p', f'fused_com:={str(fused_com).lower()}',
            '-r', 'torso_controller:~/joint_states:=joint_states',
            '-r', 'torso_controller:~/tendon_lengths:=tendon_controller/commands',
            '-r', 'gravity_compensation:~/commands:=effort_controller/commands',
            '--log-level', 'error']


class SuiteListener:
    """Counts what comes, at the stamps of the joint states."""

    def __init__(self, nodes: Sequence[str]) -> None:
        from biped_com_ros.ros.node.executor import make_executor
        from geometry_msgs.msg import PointStamped, WrenchStamped
        import rclpy
        from rclpy.node import Node
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import JointState
        if not rclpy.ok():
            rclpy.init()
        self._node, self._executor = Node('listener'), make_executor()
        self._executor.add_node(self._node)
        topics = {'wrench_aggregator': ('wrench', WrenchStamped), 'com_estimator': (
            'com', PointStamped), 'zmp_monitor': ('zmp', PointStamped),
            'gravity_compensation': ('effort', JointState), 'relay': ('com', PointStamped)}
        self.counts = {name: 0 for name in nodes if name in topics}
        for name in self.counts:
            topic, kind = topics[name]
            self._node.create_subscription(
                kind, f'{name}/{topic}', lambda _, name=name: self._count(name),
                qos_profile_sensor_data, raw=True)

    def _count(self, name: str) -> None:
        self.counts[name] += 1

    def spin(self, seconds: float) -> None:
        """Serve for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait_for_all(self) -> None:
        """Wait until every node has published."""
        end = time.monotonic() + _PATIENCE
        while not all(self.counts.values()):
            if time.monotonic() > end:
                silent = [name for name, count in self.counts.items() if not count]
                raise RuntimeError(f'{", ".join(silent)} published nothing in {_PATIENCE:.0f} s')
            self.spin(0.1)

    def close(self) -> None:
        """Listen no more."""
        self._executor.shutdown()
        self._node.destroy_node()


def measure(options: argparse.Namespace, nodes: Sequence[str], apart: bool = True,
            fused_com: bool = True) -> Costs:
    """
    Run nodes, on a core of their own or not, and return what they take.

    The listener's own share of the machine is not counted; that it listens makes the nodes
    publish.
    """
    everywhere = os.sched_getaffinity(0)
    robot = MeasuredProcess(*simulator_command(options.robot, options.rate, nodes))
    suite = MeasuredProcess(*suite_command(options.robot, nodes, fused_com))
    listener = SuiteListener(nodes)
    readings = []
    try:
        listener.wait_for_all()
        listener.spin(_WARM_UP)
        for own, others in arrangements(apart):
            move(suite.pid, own)
            move(robot.pid, others)
            move(os.getpid(), others)
            listener.spin(_SETTLE)
            readings.append(_read(suite, listener, options.seconds))
    finally:
        listener.close()
        suite.end()
        robot.end()
        move(os.getpid(), everywhere)
    return Costs(readings, options.rate)


def _read(suite: MeasuredProcess, listener: SuiteListener, seconds: float) -> Cost:
    """Return what a running suite takes, over some seconds."""
    before, counts = suite.cpu_time, dict(listener.counts)
    begun = time.monotonic()
    listener.spin(seconds)
    elapsed = time.monotonic() - begun
    return Cost(100.0 * (suite.cpu_time - before) / elapsed,
                min((listener.counts[name] - counts[name]) / elapsed for name in counts))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--robot', default='biped', help='name or YAML; with a tendon torso')
    parser.add_argument('--rate', type=float, default=RATE, help='of the joint states, Hz')
    parser.add_argument('--seconds', type=float, default=3.0, help='of a reading')
    options = parser.parse_args()
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 100))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    console.print(machine())
    all_five, idle = measure(options, FIVE), measure(options, IDLE)
    rows = [('five, own core', *all_five.cells()),
            ('five, without fused CoM', *measure(options, FIVE, fused_com=False).cells()),
            ('one, does nothing', *idle.cells())]
    if len(os.sched_getaffinity(0)) > 1:
        rows.append(('five, cores shared', *measure(options, FIVE, apart=False).cells()))
    print_table(f'CPU of one core, five nodes in one process, {options.robot}, '
                f'{options.rate:.0f} Hz, {READINGS} readings', (
                    'nodes', 'least', 'median', 'most', 'rate', 'an update'), rows)
    if options.rate == RATE:
        print_targets([Target('suite', 'five mission nodes composed at 500 Hz, of their own core',
                              all_five.least.cpu if all_five.kept_up else None, LIMIT, unit='%')])
    console.print(f'All five take {all_five.least.update / idle.least.update:.2f} times as much '
                  'as one that does nothing.')
    if not all_five.kept_up:
        console.print(f'They did not keep up ({all_five.least.rate:.0f} of {options.rate:.0f} '
                      'Hz): the machine has too much other work.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
