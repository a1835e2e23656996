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
Where the five mission nodes spend their CPU time, by layer.

::

    python -m benchmarks.layers [--rate 500] [--seconds 10] [--no-fused-com] [--functions 20]

The suite runs as in ``benchmarks/suite.py``. A timer of its CPU time interrupts it, and each
interruption counts as the CPU time of the main thread since the one before, for the innermost
function that belongs to a layer. What compiled code does counts for the function that called it;
for the executor, before the first line of a callback. The threads of DDS are counted by the
system. Called ``layers`` and not ``profile``, which is a module of Python.
"""

from __future__ import annotations

import argparse
from collections import Counter
import os
from pathlib import Path
import random
import signal
import sys
import time
from types import FrameType

from benchmarks.common import console, machine, print_table
from benchmarks.driver import MeasuredProcess
from benchmarks.suite import FIVE, RATE, simulator_command, suite_command, SuiteListener

#: Of each layer the files, by how their path in the package begins; the first that fits counts.
LAYERS = {
    'encode': ('ros/fast/codec/writing',),
    'decode': ('ros/fast/', 'ros/topics/input'),
    'synchronize': ('core/signals/synchronizer', 'core/state/estimator', 'ros/topics/state_inputs',
                    'ros/topics/located_states'),
    'kinematics': ('core/model/',),
    'contacts': ('core/wrench/contact', 'core/signals/schmitt', 'core/state/contacts'),
    'base': ('core/state/',),
    'fused CoM': ('core/com/fused', 'nodes/com_estimator/fused_com'),
    'CoM': ('core/com/', 'core/payload/', 'nodes/com_estimator/'),
    'ZMP and levels': ('core/stability/', 'nodes/zmp_monitor/'),
    'wrenches': ('core/wrench/', 'nodes/wrench_aggregator/'),
    'gravity': ('core/gravity/', 'nodes/gravity_compensation/'),
    'torso': ('core/torso/', 'nodes/torso_controller/'),
    'publish': ('ros/topics/outputs', 'ros/topics/tf'),
    'diagnostics': ('ros/node/diagnostics', 'ros/node/input_watch')}
_EXECUTOR, _DDS = 'executor', 'threads of DDS'
_PACKAGE = 'biped_com_ros' + os.sep
_PERIOD = 2e-3  # s
_WARM_UP = 5.0  # s
#: What the executor calls: interrupted before their first line, the time is the executor's.
_ENTRIES = ('_receive', '__call__', 'spin_until_future_complete')


class Sampler:
    """Counts the CPU time of the main thread by layer and function, from SIGUSR1 on."""

    def __init__(self) -> None:
        self.layers, self.functions = Counter[str](), Counter[str]()
        self._layer_of: dict[str, str | None] = {}
        signal.signal(signal.SIGPROF, self._on_timer)
        signal.signal(signal.SIGUSR1, self._start)

    def _start(self, number: int, frame: FrameType | None) -> None:
        self._last, self._begun = time.thread_time(), time.process_time() - time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, _PERIOD, _PERIOD)

    def stop(self) -> None:
        """Stop, and count what other threads took."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.layers[_DDS] += time.process_time() - time.thread_time() - self._begun

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        elapsed, self._last = now - self._last, now
        if frame is not None:
            code = frame.f_code
            name = f'{Path(code.co_filename).name}:{code.co_qualname}'
            self.functions[name] += elapsed
        self.layers[self._layer(frame)] += elapsed

    def _layer(self, frame: FrameType | None) -> str:
        if frame is not None and frame.f_code.co_name in _ENTRIES:
            return _EXECUTOR
        while frame is not None:
            path = frame.f_code.co_filename
            if path not in self._layer_of:
                self._layer_of[path] = layer_of(path)
            if (found := self._layer_of[path]) is not None:
                return found
            frame = frame.f_back
        return _EXECUTOR


def layer_of(path: str) -> str | None:
    """Return the layer of a file; None if its callers' counts."""
    inside = path.rpartition(_PACKAGE)[2].replace(os.sep, '/') if _PACKAGE in path else ''
    return next((layer for layer, begins in LAYERS.items() if inside.startswith(begins)), None)


def run_sampled(arguments: list[str]) -> int:
    """Run the suite, and print the shares at its end."""
    from biped_com_ros.nodes.suite.node import main as suite
    count = int(arguments.pop(0))
    sampler = Sampler()
    code = suite(arguments)
    sampler.stop()
    for title, times in (('Layers', sampler.layers), ('Functions', sampler.functions)):
        total = sum(times.values())
        rows = [(name, f'{100.0 * seconds / total:.1f} %')
                for name, seconds in times.most_common(None if title == 'Layers' else count)]
        if rows:
            print_table(f'{title}, of {total:.1f} s of CPU', (title, 'share'), rows)
    return code


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n\n')[0])
    parser.add_argument('--robot', default='biped', help='name or YAML; with a tendon torso')
    parser.add_argument('--rate', type=float, default=RATE, help='of the joint states, Hz')
    parser.add_argument('--seconds', type=float, default=10.0, help='under the timer')
    parser.add_argument('--no-fused-com', action='store_true', help='without the fused CoM')
    parser.add_argument('--functions', type=int, default=0, help='so many of them, too')
    options = parser.parse_args()
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 100))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    console.print(machine())
    robot = MeasuredProcess(*simulator_command(options.robot, options.rate, FIVE))
    _, *arguments = suite_command(options.robot, FIVE, not options.no_fused_com)
    suite = MeasuredProcess('benchmarks.layers', 'suite', str(options.functions), *arguments)
    listener = SuiteListener(FIVE)
    try:
        listener.wait_for_all()
        listener.spin(_WARM_UP)
        os.kill(suite.pid, signal.SIGUSR1)
        listener.spin(options.seconds)
    finally:
        listener.close()
        suite.end()
        robot.end()
    return 0


if __name__ == '__main__':
    sys.exit(run_sampled(sys.argv[2:]) if sys.argv[1:2] == ['suite'] else main())
