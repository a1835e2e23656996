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
What a callback makes the interpreter do: a figure that is the same on every machine.

::

    python -m benchmarks.operations [--robot talos] [--check]

Ratios of times depend on the processor: the same commit has met target 1 on one kind and missed it
on another, by a fifth. The number of calls and of operations of the interpreter does not, and a
loop over joints or a message built twice shows in it at once. So continuous integration judges
these (``--check``), and prints times beside them. What compiled code does is not counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import statistics
import sys
from types import FrameType
from typing import Any, NamedTuple

from benchmarks import callbacks, gravity, zmp
from benchmarks.common import console, print_table
from benchmarks.driver import start
import rclpy

Call = Callable[[], object]
WARM_UP, REPEATS = 100, 21


class Count(NamedTuple):
    """Calls of functions, of Python and compiled, and operations of the interpreter."""

    calls: int
    operations: int


#: At most, per message (zmp_monitor and the fused CoM: per instant of four), with Talos and Python
#: 3.11: what was counted and 3 %. Who raises one says in the commit what is had for it.
LIMITS = {
    callbacks.THREE: Count(133, 2230),
    callbacks.EVERYTHING: Count(143, 2365),
    gravity.CLOSED: Count(171, 3315),
    zmp.EVERYTHING: Count(595, 11850),
    zmp.FUSED: Count(500, 7900)}


def count(call: Call) -> Count:
    """Count what a call does, as the median of several."""
    for _ in range(WARM_UP):
        call()
    counts = [Count(_calls(call), _operations(call)) for _ in range(REPEATS)]
    return Count(*(int(statistics.median(values)) for values in zip(*counts)))


def _calls(call: Call) -> int:
    found = 0

    def profile(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal found
        found += event in ('call', 'c_call')
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def _operations(call: Call) -> int:
    found = 0

    def trace(frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        nonlocal found
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        found += event == 'opcode'
        return trace
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return found


def count_all(robot: str) -> dict[str, Count]:
    """Count the callbacks of the nodes that run at the rate of the joint states."""
    with callbacks.prepared(robot) as calls:
        counts = {name: count(calls[name])
                  for name in ('relay', callbacks.THREE, callbacks.EVERYTHING)}
    with gravity.prepared(robot) as calls:
        counts[gravity.CLOSED] = count(calls[gravity.CLOSED])
    with zmp.prepared(robot) as (calls, _nodes):
        for name in (zmp.EVERYTHING, zmp.FUSED):
            together = count(calls[name])
            counts[name] = Count(*(total // zmp.TOGETHER[name] for total in together))
    return counts


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0])
    parser.add_argument('--robot', default='talos', help='name or YAML of the robot')
    parser.add_argument('--check', action='store_true',
                        help='exit with 1 if a callback makes more calls than its limit')
    options = parser.parse_args()
    start(0)
    try:
        counts = count_all(options.robot)
    finally:
        rclpy.try_shutdown()
    print_table(
        'What one callback makes the interpreter do',
        ('callback', 'calls', 'limit', 'operations', 'limit'),
        [(name, *cells(counts[name], LIMITS.get(name))) for name in counts])
    above = [name for name, limit in LIMITS.items()
             if counts[name].calls > limit.calls or counts[name].operations > limit.operations]
    for name in above:
        console.print(f'above its limit: {name}', style='red')
    return 1 if options.check and above else 0


def cells(found: Count, limit: Count | None) -> tuple[str, ...]:
    """Return a row of the table without its name."""
    calls, operations = (str(value) for value in limit or ('-', '-'))
    return str(found.calls), calls, str(found.operations), operations


if __name__ == '__main__':
    sys.exit(main())
