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
What the nodes cost end to end, against relays that do nothing, with the eight targets.

::

    python benchmarks/latency.py [--robot talos] [--quick] [--callbacks] [--rates 100 1000]

A driver sends JointState (and, for the wrench_aggregator, IMU and wrenches) to each subject in
turns, at steady rates and as fast as it is answered, and times the answers by their stamps.
Delivering a message costs more than making it, and the relay delivers one per update; so the
com_estimator is measured twice: "unheard" publishes everything at every update (markers at their
rate), and only its CoM has a listener, as the relay's message has; the other one has a listener on
every output. Times of a shared machine drift by a factor of two: compare within one table only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
import os
import random
import statistics

from benchmarks import callbacks
from benchmarks.common import (
    console, machine, microseconds, print_table, print_targets, ratio, Target)
from benchmarks.driver import Channel, DriverResult, MeasuredProcess, SensorDriver, start
from benchmarks.naive import ROBOT
from biped_com_ros.core.model.robot import RobotModel
from geometry_msgs.msg import WrenchStamped
import rclpy

RATES = (100.0, 250.0, 500.0, 1000.0)
RELAY, EVENTS, NAIVE = 'relay', 'relay_events', 'naive'
ESTIMATOR, AGGREGATOR, FIVE = 'com_estimator', 'wrench_aggregator', 'five'
UNHEARD = 'com_estimator_unheard'
COMPOSED_RATE = 500.0
_MICRO = 1e6

#: Everything that the com_estimator publishes besides ``com``, which the driver listens to.
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
    options = _parser().parse_args()
    os.environ[ROBOT] = options.robot
    console.print(machine())
    start(options.domain or random.randint(1, 100))
    try:
        rounds = 60 if options.quick else 250
        if options.callbacks:
            print_targets(_callback_targets(options.robot, rounds))
        else:
            _everything(options, rounds)
    finally:
        rclpy.try_shutdown()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--rates', type=float, nargs='+', default=RATES, metavar='HZ')
    parser.add_argument('--seconds', type=float, default=3.0, help='of one measurement')
    parser.add_argument('--rounds', type=int, default=3, help='turns that each subject gets')
    parser.add_argument('--domain', type=int, default=0, help='ROS_DOMAIN_ID; default: random')
    parser.add_argument('--quick', action='store_true', help='one short round')
    parser.add_argument('--callbacks', action='store_true',
                        help='only what a callback takes in process: targets 1 and 2')
    return parser


def _callback_targets(robot: str, rounds: int) -> list[Target]:
    times = callbacks.measure(robot, rounds)
    print_table(
        'One callback, in process', ('callback', 'us', 'to relay', 'naive to it'),
        [(name, f'{microseconds(t):.1f}', f'{ratio(times, name, RELAY):.2f}',
          f'{ratio(times, NAIVE, name):.1f}') for name, t in times.items()])
    return [
        Target('1', "callback with CoM, link CoMs, markers against the stock relay's",
               ratio(times, callbacks.THREE, RELAY), 1.25, stretch=1.0),
        Target('1*', 'the same with all outputs (not a target)',
               ratio(times, callbacks.EVERYTHING, RELAY), 1.25),
        Target('2', 'naive callback against that, three outputs each',
               ratio(times, callbacks.NAIVE_THREE, callbacks.THREE), 60.0, at_least=True,
               stretch=90.0),
        Target('2*', 'the same with all outputs (not a target)',
               ratio(times, NAIVE, callbacks.EVERYTHING), 60.0, at_least=True, stretch=90.0)]


def _everything(options: argparse.Namespace, callback_rounds: int) -> None:
    seconds, rounds = (1.0, 1) if options.quick else (options.seconds, options.rounds)
    targets = _callback_targets(options.robot, callback_rounds)
    driver = SensorDriver(RobotModel.load(options.robot))
    start_up = _start_up_ratio(3 if options.quick else 7, options.robot)
    subjects, sinks = _start_subjects(driver, options.robot)
    rates = sorted({*options.rates, 1000.0})
    for turn in range(rounds):
        console.print(f'round {turn + 1} of {rounds}', style='dim')
        _one_round(driver, subjects, rates, seconds)
    _print_results(subjects, rates)
    for process in (*sinks, *(subject.process for subject in subjects.values())):
        process.end()
    targets += _end_to_end_targets(subjects)
    targets += _composition(driver, options.robot, seconds, rounds)
    targets += _collector_targets(subjects[ESTIMATOR], start_up)
    print_targets(targets)


def _start_subjects(driver: SensorDriver, robot: str,
                    ) -> tuple[dict[str, LatencySubject], list[MeasuredProcess]]:
    console.print('starting the nodes and waiting for discovery', style='dim')
    subjects = {}
    for kind in (RELAY, EVENTS, NAIVE, UNHEARD, ESTIMATOR):
        name = {EVENTS: RELAY, UNHEARD: ESTIMATOR}.get(kind, kind)
        process = MeasuredProcess(kind, _arguments(kind, robot))
        subjects[kind] = LatencySubject(
            process, driver.channel(_space(kind), output_topic=f'{name}/com'))
    process = MeasuredProcess(AGGREGATOR, _arguments(AGGREGATOR, robot))
    subjects[AGGREGATOR] = LatencySubject(process, driver.channel(
        _space(AGGREGATOR), WrenchStamped, f'{AGGREGATOR}/wrench', sensors=True))
    sinks = [_sink(f'{_space(kind)}/{kind}') for kind in (NAIVE, ESTIMATOR)]
    return subjects, sinks


def _space(kind: str) -> str:
    return f'/bench/{kind}'


def _sink(prefix: str) -> MeasuredProcess:
    return MeasuredProcess('sink', [output.replace('=', f'={prefix}/') for output in OUTPUTS])


def _arguments(kind: str, robot: str, space: str = '') -> list[str]:
    arguments = ['--ros-args', '-r', f'__ns:={space or _space(kind)}', '--log-level', 'error']
    if kind in (ESTIMATOR, UNHEARD, AGGREGATOR, FIVE):
        arguments += ['-p', f'robot:={robot}']
    if kind in (ESTIMATOR, UNHEARD, FIVE):
        # As in process: the filter of the fused CoM has a benchmark of its own.
        arguments += ['-p', 'base_source:=fixed', '-p', 'fused_com:=false']
    return arguments


def _one_round(driver: SensorDriver, subjects: dict[str, LatencySubject], rates: Sequence[float],
               seconds: float) -> None:
    for rate in rates:
        for subject in subjects.values():
            subject.steady.setdefault(rate, []).append(
                driver.steady(subject.channel, subject.process, rate, seconds))
    for subject in subjects.values():
        subject.saturated.append(driver.saturate(subject.channel, subject.process, seconds))


def _print_results(subjects: dict[str, LatencySubject], rates: Sequence[float]) -> None:
    for rate in rates:
        base = subjects[RELAY]
        print_table(
            f'{rate:.0f} Hz', ('node', 'loss %', 'p50 us', 'p99 us', 'CPU %', 'CPU us/update',
                               'CPU to relay'),
            [(name, f'{100 * s.loss(rate):.2f}', f'{_MICRO * s.round_trip(rate, 0.5):.0f}',
              f'{_MICRO * s.round_trip(rate, 0.99):.0f}', f'{100 * s.at(rate, "cpu_share"):.1f}',
              f'{_MICRO * s.at(rate, "cpu_per_update"):.0f}',
              f'{s.at(rate, "cpu_per_update") / base.at(rate, "cpu_per_update"):.2f}')
             for name, s in subjects.items()])
    print_table(
        'As fast as it answers', ('node', 'updates/s', 'loss %', 'CPU us/update', 'memory MB',
                                  'start-up s'),
        [(name, f'{s.full("rate"):.0f}', f'{100 * s.full("loss"):.2f}',
          f'{_MICRO * s.full("cpu_per_update"):.0f}', f'{s.process.memory / 1e6:.0f}',
          f'{s.process.start_up:.2f}') for name, s in subjects.items()])


def _end_to_end_targets(subjects: dict[str, LatencySubject]) -> list[Target]:
    naive = subjects[NAIVE].full('rate')
    targets = []
    for kind, mark, words in ((UNHEARD, '', ''), (ESTIMATOR, '*', ', all outputs heard')):
        ours = subjects[kind]
        targets += _against_relays(ours, subjects, mark, words)
        targets += [
            Target(f'4{mark}', f'loss at 1 kHz{words}', 100.0 * ours.loss(1000.0), 0.0, unit='%'),
            Target(f'6{mark}', f'highest rate against naive{words}', ours.full('rate') / naive,
                   20.0, at_least=True)]
    return sorted(targets, key=lambda target: target.number)


def _against_relays(ours: LatencySubject, subjects: dict[str, LatencySubject], mark: str,
                    words: str) -> list[Target]:
    relay, events = subjects[RELAY], subjects[EVENTS]
    cost = ours.full('cpu_per_update')
    trips = [ours.round_trip(1000.0, share) / relay.round_trip(1000.0, share)
             for share in (0.5, 0.99)]
    return [
        Target(f'3{mark}', f'saturated CPU per update against the stock relay{words}',
               cost / relay.full('cpu_per_update'), 0.65),
        Target(f'3{mark}', f'saturated CPU per update against the EventsExecutor relay{words}',
               cost / events.full('cpu_per_update'), 1.3),
        Target(f'4{mark}', f'round trip p50 at 1 kHz against the stock relay{words}', trips[0],
               0.9),
        Target(f'4{mark}', f'round trip p99 at 1 kHz against the stock relay{words}', trips[1],
               0.9)]


def _composition(driver: SensorDriver, robot: str, seconds: float, rounds: int) -> list[Target]:
    """Compare five estimators in one process with one, and with five processes."""
    console.print('five nodes in one process and in five', style='dim')
    together = MeasuredProcess(FIVE, _arguments(FIVE, robot))
    apart = [MeasuredProcess(ESTIMATOR, [*_arguments(ESTIMATOR, robot, '/bench/apart'),
                                         '-r', f'__node:={ESTIMATOR}_{i}']) for i in range(5)]
    alone = MeasuredProcess(ESTIMATOR, _arguments(ESTIMATOR, robot, '/bench/alone'))
    channels = {
        # One subscription, which they share.
        'together': driver.channel(_space(FIVE), output_topic=f'{ESTIMATOR}/com'),
        'apart': driver.channel(
            '/bench/apart', output_topic=f'{ESTIMATOR}_0/com', listeners=5),
        'alone': driver.channel('/bench/alone', output_topic=f'{ESTIMATOR}/com')}
    groups = {'together': [together], 'apart': apart, 'alone': [alone]}
    cpu: dict[str, list[float]] = {name: [] for name in groups}
    for name, group in groups.items():
        driver.steady(channels[name], group[0], COMPOSED_RATE, 1.0)  # the last ones connect
    for _ in range(rounds):
        for name, group in groups.items():
            before = [process.cpu_time for process in group]
            result = driver.steady(channels[name], group[0], COMPOSED_RATE, seconds)
            used = sum(p.cpu_time - b for p, b in zip(group, before))
            cpu[name].append(used / result.seconds)
    memory = {name: sum(p.memory for p in group) for name, group in groups.items()}
    for process in (together, alone, *apart):
        process.end()
    share = {name: statistics.median(values) for name, values in cpu.items()}
    print_table(f'com_estimator at {COMPOSED_RATE:.0f} Hz', ('what', 'CPU %', 'memory MB'),
                [(words, f'{100 * share[name]:.1f}', f'{memory[name] / 1e6:.0f}')
                 for name, words in (('alone', 'one node'), ('together', 'five in one process'),
                                     ('apart', 'five processes'))])
    return [Target('7', "five nodes composed against one node's CPU",
                   share['together'] / share['alone'], 1.7),
            Target('7', 'five nodes composed against five processes',
                   share['together'] / share['apart'], 0.45)]


def _start_up_ratio(times: int, robot: str) -> tuple[float, float]:
    """Return the start-up of the estimator and of a bare node in turns, medians, s."""
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(times):
        for kind, starts in ((ESTIMATOR, ours), ('bare', bare)):
            process = MeasuredProcess(kind, _arguments(kind, robot, '/bench/start_up'))
            starts.append(process.start_up)
            process.end()
    return statistics.median(ours), statistics.median(bare)


def _collector_targets(subject: LatencySubject, start_up: tuple[float, float]) -> list[Target]:
    pauses = subject.process.report.get('pauses', [])
    ours, bare = start_up
    print_table('Start-up until the first callback', ('node', 's'),
                [('com_estimator', f'{ours:.2f}'), ('bare rclpy node', f'{bare:.2f}')])
    return [Target('8', 'longest pause of the garbage collector after warm-up',
                   1e3 * max(pauses, default=0.0), 1.0, unit='ms'),
            Target('8', 'start-up against a bare rclpy node', ours / bare, 1.5)]


if __name__ == '__main__':
    main()
