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
What every process that benchmarks/latency.py measures does besides its work.

It prints ``ready`` once its executor serves callbacks. Where ``BENCHMARK_REPORT`` names a file,
the pauses of the garbage collector after the warm-up are written there at the end. Nothing is
imported here that takes time: how long a process takes to start is measured as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import gc
import json
import os
from pathlib import Path
import sys
import time
from typing import Any

WARM_UP = 3.0  # s


def run_measured(subjects: Mapping[str, Callable[[list[str]], int]]) -> int:
    """Run the subject that the first argument names."""
    pauses = watch_collector()
    kind, arguments = sys.argv[1], sys.argv[2:]
    code = subjects[kind](arguments)
    if 'BENCHMARK_REPORT' in os.environ:
        Path(os.environ['BENCHMARK_REPORT']).write_text(json.dumps({'pauses': pauses}))
    return code


def watch_collector() -> list[float]:
    """Return a list to which every later pause of the garbage collector is added, s."""
    pauses: list[float] = []
    begun = time.monotonic()
    started = [0.0]

    def on_collection(phase: str, _: Any) -> None:
        if phase == 'start':
            started[0] = time.perf_counter()
        elif time.monotonic() - begun > WARM_UP:
            pauses.append(time.perf_counter() - started[0])

    gc.callbacks.append(on_collection)
    return pauses


def announce(node: Any) -> Any:
    """Let the node say when its first callback is served."""
    timers: list[Any] = []

    def ready() -> None:
        timers[0].cancel()
        print('ready', flush=True)

    timers.append(node.create_timer(0.001, ready))
    return node
