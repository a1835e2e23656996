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
Runs the suite for hours and draws what may grow: memory, file descriptors, threads, latency.

::

    python -m benchmarks.soak --minutes 60 --picture soak.png

The estimators share a process, gravity compensation has its own, and a standing robot publishes
all of its sensors. Latency is from the stamp of the joint states to the arrival of the centre of
mass that was computed from them; a message is lost if none arrives.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
import gc
import os
from pathlib import Path
import random
import signal
import struct
import sys
import time
from typing import Any

from benchmarks.common import machine, print_table
from geometry_msgs.msg import PointStamped
import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

# The harness is that of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))

PROCESSES = ('suite', 'gravity_compensation')
#: What is compared with the end: the state after this share of the time, when all has settled.
_WARM_UP = 0.2
#: Growth of memory that is permitted, as a share.
_GROWTH = 0.01
_PERIOD = 5.0  # s
#: Progress is printed once in this many periods.
_PERIODS_PER_REPORT = 12
_COLOURS = ('#1f77b4', '#d62728')


@dataclass
class SoakSample:
    """The processes at one time; lists in the order of `PROCESSES`."""

    minutes: float
    memory: list[float]  # MB
    descriptors: list[int]
    threads: list[int]
    latency: tuple[float, float]  # median and p99, ms
    sent: int
    lost: int


@dataclass
class Traffic:
    """Stamps of the joint states that were sent and not processed yet, and latencies."""

    sent: dict[int, float] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    count: int = 0

    def on_input(self, stamp_ns: int) -> None:
        """Note that joint states are sent."""
        self.sent[stamp_ns] = time.monotonic()
        self.count += 1

    def on_output(self, raw: bytes) -> None:
        """Note a centre of mass: the stamp is that of the joint states."""
        seconds, nanoseconds = struct.unpack_from('<iI', raw, 4)
        begun = self.sent.pop(seconds * 1_000_000_000 + nanoseconds, None)
        if begun is not None:
            self.latencies.append(1e3 * (time.monotonic() - begun))

    def take(self) -> tuple[tuple[float, float], int, int]:
        """Return latencies, and how many were sent and are lost since the last call."""
        old = time.monotonic() - 1.0
        late = [stamp for stamp, begun in self.sent.copy().items() if begun < old]
        lost = sum(self.sent.pop(stamp, None) is not None for stamp in late)
        latencies, self.latencies = self.latencies, []
        p50, p99 = np.percentile(latencies or [np.nan], (50, 99))
        count, self.count = self.count, 0
        return (float(p50), float(p99)), count, lost


def read(system: Any, begun: float, traffic: Traffic) -> SoakSample:
    """Read everything of the processes."""
    pids = [Path(f'/proc/{system.pid(name)}') for name in PROCESSES]
    statuses = [dict(line.split(':', 1) for line in (pid / 'status').read_text().splitlines()
                     if ':' in line) for pid in pids]
    return SoakSample(
        (time.monotonic() - begun) / 60.0,
        [int(status['VmRSS'].split()[0]) / 1e3 for status in statuses],
        [len(list((pid / 'fd').iterdir())) for pid in pids],
        [int(status['Threads']) for status in statuses], *traffic.take())


def run(seconds: float, rate: float, robot: str) -> list[SoakSample]:
    """Run for some time; return the samples."""
    from support.reliability.bench import FaultBench
    from support.reliability.robot import FaultyStandingRobot
    from support.reliability.system import System
    namespace = f'soak_{os.getpid()}'
    standing, traffic = FaultyStandingRobot(namespace, robot, rate, is_light=True), Traffic()
    is_counted = False

    def note(stamp_ns: int) -> None:
        if is_counted:
            traffic.on_input(stamp_ns)
    standing.on_joint_states = note
    standing.node.create_subscription(  # none is lost while the robot is busy
        PointStamped, 'com_estimator/com', traffic.on_output, QoSProfile(depth=1000), raw=True)
    system = System(namespace, robot, composed=True)
    samples: list[SoakSample] = []
    try:
        FaultBench(standing).until_running()
        # A collection takes long enough that the robot would make up for it by a burst.
        gc.freeze()
        gc.disable()
        is_counted, begun = True, time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            while time.monotonic() < now + _PERIOD:
                standing.step()
            standing.drop_history()
            samples.append(read(system, begun, traffic))
            if len(samples) % _PERIODS_PER_REPORT == 0:
                report(samples, seconds / 60.0)
    except KeyboardInterrupt:
        print('interrupted: the result is of the time until now', file=sys.stderr)
    finally:
        system.close()
        standing.close()
    return samples


def report(samples: list[SoakSample], minutes: float) -> None:
    """Print how far a run of some minutes is, and its state."""
    last = samples[-1]
    memory = ', '.join(f'{name} {mb:.1f} MB' for name, mb in zip(PROCESSES, last.memory))
    print(f'{last.minutes:.0f} of {minutes:g} min: {memory}, latency p99 '
          f'{last.latency[1]:.2f} ms, {sum(s.lost for s in samples)} of '
          f'{sum(s.sent for s in samples)} messages lost',
          file=sys.stderr, flush=True)


def judge(samples: list[SoakSample]) -> list[tuple[str, str, str, bool]]:
    """Return what was measured, its bound, and whether it is met, by name."""
    first, last = samples[int(_WARM_UP * len(samples))], samples[-1]
    rows = []
    for i, name in enumerate(PROCESSES):
        growth = last.memory[i] / first.memory[i] - 1.0
        rows.append((f'memory of {name}', f'{first.memory[i]:.1f} -> {last.memory[i]:.1f} MB '
                     f'({100 * growth:+.2f} %)', f'{100 * _GROWTH:+.0f} %', growth <= _GROWTH))
        for what in ('descriptors', 'threads'):
            before, after = getattr(first, what)[i], getattr(last, what)[i]
            rows.append((f'{what} of {name}', f'{before} -> {after}', 'none gained',
                         after <= before))
    sent, lost = sum(s.sent for s in samples), sum(s.lost for s in samples)
    rows.append(('messages lost', f'{lost} of {sent}', '0', lost == 0))
    half = len(samples) // 2
    p99 = [np.median([s.latency[1] for s in part]) for part in (samples[:half], samples[half:])]
    rows.append(('latency p99, first and second half', f'{p99[0]:.2f} -> {p99[1]:.2f} ms',
                 'x 1.2', bool(p99[1] <= 1.2 * p99[0])))
    return rows


def draw(samples: list[SoakSample], file: Path, title: str) -> None:
    """Draw all of it over time."""
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot
    minutes = [s.minutes for s in samples]
    figure, axes = pyplot.subplots(4, 1, sharex=True, figsize=(8.0, 8.0), layout='constrained')
    for i, (name, colour) in enumerate(zip(PROCESSES, _COLOURS)):
        axes[0].plot(minutes, [s.memory[i] for s in samples], colour, label=name)
        axes[1].plot(minutes, [s.descriptors[i] for s in samples], colour,
                     label=f'{name}: file descriptors')
        axes[1].plot(minutes, [s.threads[i] for s in samples], colour, linestyle=':',
                     label=f'{name}: threads')
    for i, name in enumerate(('median', 'p99')):
        axes[2].plot(minutes, [s.latency[i] for s in samples], _COLOURS[i], label=name)
    axes[3].plot(minutes, np.cumsum([s.lost for s in samples]), _COLOURS[1])
    for axis, label in zip(axes, ('memory (RSS), MB', 'number', 'latency, ms', 'messages lost')):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0.0)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize='small')
    axes[0].set_title(title, fontsize='small')
    axes[-1].set_xlabel('time, min')
    figure.savefig(file, dpi=100)


def main(arguments: Any = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--minutes', type=float, default=60.0)
    parser.add_argument('--rate', type=float, default=500.0, help='of the joint states, Hz')
    parser.add_argument('--robot', default='biped')
    parser.add_argument('--picture', type=Path, default=Path('soak.png'))
    options = parser.parse_args(arguments)
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(1, 100)))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    samples = run(60.0 * options.minutes, options.rate, options.robot)
    rclpy.try_shutdown()
    if len(samples) < 2:
        print('no result: it ended within the first seconds', file=sys.stderr)
        return 1
    rows = judge(samples)
    print(machine())
    print_table(f'{samples[-1].minutes:.0f} of {options.minutes:g} min at {options.rate:g} Hz', (
        'what', 'measured', 'bound', 'met'),
        [(*row[:3], 'yes' if row[3] else 'no') for row in rows])
    draw(samples, options.picture,
         f'{options.robot}, {options.rate:g} Hz, {samples[-1].minutes:.0f} min')
    print(f'picture: {options.picture}')
    return 0 if all(row[3] for row in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
