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
Measures all faults of the table and writes it for the documentation.

::

    python -m benchmarks.reliability                   all
    python -m benchmarks.reliability IMU 'kill -9'     those whose names contain a text
    python -m benchmarks.reliability network           two hosts; needs root
"""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import random
import sys

from benchmarks.common import machine
import rclpy

# The harness is that of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))


def main(texts: Sequence[str]) -> int:
    """Measure, print and write."""
    from support.reliability.bench import FaultResult
    from support.reliability.network import unavailable
    from support.reliability.running import KINDS, running
    from support.reliability.table import as_table, write
    from support.reliability.two_hosts import measure as measure_hosts
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(1, 100)))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    rclpy.init()
    results: list[FaultResult] = []
    for kind in KINDS:
        with running(kind) as (bench, faults):
            for fault in faults:
                if not texts or any(text in fault.name for text in texts):
                    results.append(bench.measure(fault))
                    print(results[-1], flush=True)
    rclpy.try_shutdown()
    if reason := unavailable():
        print(f'two hosts are not measured: {reason}')
    elif not texts or 'network' in texts:
        results += measure_hosts()
    print(as_table(results))
    if not texts:
        write(results, machine())
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
