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
What nodes cost end to end, against relays that do nothing.

::

    python benchmarks/latency.py [--robot talos] [--quick] [--rates 100 1000]

A driver sends JointState (and, for the wrench_aggregator, IMU and wrenches) to each subject in
turns, at steady rates and as fast as it is answered, and times the answers by their stamps.
Delivering a message costs more than making it, and the relay delivers one per update; so the
com_estimator is measured twice: with a subscriber of its CoM only, and with subscribers of every
output. Times of a shared machine drift by a factor of two: compare within one table only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
import random
import statistics

from benchmarks.common import console, machine, print_table, print_targets, Target
from benchmarks.driver import Channel, DriverResult, MeasuredProcess, SensorDriver, start
from biped_com_ros.core.model.robot import RobotModel
from geometry_msgs.msg import WrenchStamped
import rclpy

RATES = (100.0, 250.0, 500.0, 1000.0)
RELAY, EVENTS = 'relay', 'relay_events'
ONE, ALL, AGGREGATOR = 'com_estimator, one', 'com_estimator, all', 'wrench_aggregator'
NODES, SUBJECT = 'biped_com_ros.nodes', 'benchmarks.subject'
_MICRO = 1e6

#: Parameters of the com_estimator: the filter of the fused CoM is in benchmarks/callbacks.py.
KINEMATIC = ('--ros-args', '-p', 'base_source:=fixed', '-p', 'fused_com:=false', '--')
#: Everything that the com_estimator publishes besides ``com``, which the driver receives.
OUTPUTS = ('geometry_msgs/msg/Vector3Stamped=com_velocity', 'geometry_msgs/msg/PointStamped=dcm',
           'geometry_msgs/msg/PoseArray=link_coms', 'visualization_msgs/msg/MarkerArray=markers')


@dataclass
class LatencySubject:
    """A process, what it is sent, and all that was measured of it."""

    process: MeasuredProcess
    channel: Channel
    steady: dict[float, list[DriverResult]] = field(default_factory=dict)
    saturated: list[DriverResult] = field(default_factory=list)

    def at(self, rate: float, value: str) -> float:
        """Return the median over the rounds of a property of the results at one rate."""
        return statistics.median(getattr(r, value) for r in self.steady[rate])

    def full(self, value: str) -> float:
        """Return the median over the rounds of a property of the saturated results."""
        return statistics.median(getattr(r, value) for r in self.saturated)

    def round_trip(self, rate: float, share: float) -> float:
        """Return the median over the rounds of a quantile of the round trip, s."""
        return statistics.median(r.quantile(share) for r in self.steady[rate])

    def loss(self, rate: float) -> float:
        """Return the share of all messages at one rate that got no answer."""
        results = self.steady[rate]
        return 1.0 - sum(len(r.round_trips) for r in results) / sum(r.sent for r in results)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--rates', type=float, nargs='+', default=RATES, metavar='HZ')
    parser.add_argument('--seconds', type=float, default=3.0, help='of one measurement')
    parser.add_argument('--rounds', type=int, default=3, help='turns that each subject gets')
    parser.add_argument('--quick', action='store_true', help='one short round')
    options = parser.parse_args()
    console.print(machine())
    start(random.randint(1, 100))
    processes: list[MeasuredProcess] = []
    try:
        driver, rates = SensorDriver(RobotModel.load(options.robot)), sorted(
            {*options.rates, 1000.0})
        subjects = start_subjects(driver, options.robot, processes)
        seconds, rounds = (1.0, 1) if options.quick else (options.seconds, options.rounds)
        for turn in range(rounds):
            console.print(f'round {turn + 1} of {rounds}', style='dim')
            one_round(driver, subjects, rates, seconds)
        print_results(subjects, rates)
        print_targets(targets(subjects))
    finally:
        for process in processes:
            process.end()
        rclpy.try_shutdown()


def start_subjects(driver: SensorDriver, robot: str,
                   processes: list[MeasuredProcess]) -> dict[str, LatencySubject]:
    """Start everything that is measured, and wait until it answers."""
    console.print('starting the nodes and waiting for discovery', style='dim')
    subjects = {}

    def add(name: str, module: str, topic: str, *arguments: str, **channel: object) -> None:
        space = f'/bench/s{len(processes)}'
        processes.append(MeasuredProcess(
            module, *arguments, '--ros-args', '-r', f'__ns:={space}', '--log-level', 'error',
            *([] if module == SUBJECT else ['-p', f'robot:={robot}'])))
        if name == ALL:
            processes.append(MeasuredProcess(SUBJECT, 'sink', *(
                output.replace('=', f'={space}/com_estimator/') for output in OUTPUTS)))
        subjects[name] = LatencySubject(
            processes[-1 - (name == ALL)],
            driver.channel(space, output_topic=topic, **channel))  # type: ignore[arg-type]

    for kind in (RELAY, EVENTS):
        add(kind, SUBJECT, 'relay/com', kind)
    for kind in (ONE, ALL):
        add(kind, f'{NODES}.com_estimator.node', 'com_estimator/com', *KINEMATIC)
    add(AGGREGATOR, f'{NODES}.wrench_aggregator.node', f'{AGGREGATOR}/wrench',
        output_type=WrenchStamped, sensors=True)
    return subjects


def one_round(driver: SensorDriver, subjects: dict[str, LatencySubject], rates: Sequence[float],
              seconds: float) -> None:
    """Measure each subject at each rate, and as fast as it answers."""
    for rate in rates:
        for subject in subjects.values():
            subject.steady.setdefault(rate, []).append(
                driver.steady(subject.channel, subject.process, rate, seconds))
    for subject in subjects.values():
        subject.saturated.append(driver.saturate(subject.channel, subject.process, seconds))


def print_results(subjects: dict[str, LatencySubject], rates: Sequence[float]) -> None:
    """Print a table for each rate."""
    for rate in rates:
        print_table(
            f'{rate:.0f} Hz', ('node', 'loss %', 'p50 us', 'p99 us', 'CPU us/update',
                               'CPU to relay'),
            [(name, f'{100 * s.loss(rate):.2f}', f'{_MICRO * s.round_trip(rate, 0.5):.0f}',
              f'{_MICRO * s.round_trip(rate, 0.99):.0f}',
              f'{_MICRO * s.at(rate, "cpu_per_update"):.0f}',
              f'{s.at(rate, "cpu_per_update") / subjects[RELAY].at(rate, "cpu_per_update"):.2f}')
             for name, s in subjects.items()])
    print_table(
        'As fast as it answers', ('node', 'updates/s', 'loss %', 'CPU us/update', 'memory MB'),
        [(name, f'{s.full("rate"):.0f}', f'{100 * s.full("loss"):.2f}',
          f'{_MICRO * s.full("cpu_per_update"):.0f}', f'{s.process.memory / 1e6:.0f}')
         for name, s in subjects.items()])


def targets(subjects: dict[str, LatencySubject]) -> list[Target]:
    """Return what is demanded of the com_estimator with one subscriber."""
    ours, relay = subjects[ONE], subjects[RELAY]
    cost = ours.full('cpu_per_update')
    trips = [ours.round_trip(1000.0, share) / relay.round_trip(1000.0, share)
             for share in (0.5, 0.99)]
    return [
        Target('7', 'saturated CPU per update against the stock relay',
               cost / relay.full('cpu_per_update'), 0.65),
        Target('7', 'the same against the relay on the EventsExecutor',
               cost / subjects[EVENTS].full('cpu_per_update'), 1.3),
        Target('8', 'round trip p50 at 1 kHz against the stock relay', trips[0], 0.9),
        Target('8', 'round trip p99 at 1 kHz against the stock relay', trips[1], 0.9),
        Target('8', 'loss at 1 kHz', 100.0 * ours.loss(1000.0), 0.0, unit='%')]


if __name__ == '__main__':
    main()
