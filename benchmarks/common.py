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
"""What the benchmarks share: fair alternation, the machine, targets, tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import gc
import importlib.metadata
import os
from pathlib import Path
import platform
import time

import numpy as np
from rich.console import Console
from rich.table import Table

console = Console(width=None if os.environ.get('COLUMNS') else 110)


def alternate(functions: dict[str, Callable[[], object]], rounds: int,
              budget: float = 5e-4) -> dict[str, np.ndarray]:
    """
    Time functions in turns, so that all of them see the same state of the machine.

    Parameters
    ----------
    functions
        By name.
    rounds
        How many turns each gets.
    budget
        Time of one turn, s; a function is called as often as fits. Short beside the turns that
        other processes get, so that many of ours are undisturbed however busy the machine is.

    Returns
    -------
    dict of str to numpy.ndarray
        Time per call of each turn, shape (rounds,), s.

    """
    calls = {name: _calls(function, budget) for name, function in functions.items()}
    times = {name: np.empty(rounds) for name in functions}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for name, function in functions.items():
                times[name][turn] = _time(function, calls[name])
    finally:
        gc.enable()
    return times


def _calls(function: Callable[[], object], budget: float) -> int:
    function()
    once = min(_time(function, 3) for _ in range(3))
    return max(1, round(budget / once))


def _time(function: Callable[[], object], calls: int) -> float:
    repeat = range(calls)
    start = time.perf_counter()
    for _ in repeat:
        function()
    return (time.perf_counter() - start) / calls


def microseconds(times: np.ndarray) -> float:
    """Return the time of a call, undisturbed by other processes: the lower decile."""
    return 1e6 * float(np.quantile(times, 0.1))


def ratio(times: dict[str, np.ndarray], name: str, reference: str) -> float:
    """Return how many times longer `name` takes, undisturbed."""
    return microseconds(times[name]) / microseconds(times[reference])


@dataclass(frozen=True)
class Target:
    """
    One line of the list of targets.

    Attributes
    ----------
    number
        As in doc/performance.rst.
    text
        What is demanded.
    value
        As measured; None if not measured in this run.
    limit
        Bound of `value`.
    at_least
        Whether the bound is a lower one.
    stretch
        What would be excellent.

    """

    number: str
    text: str
    value: float | None
    limit: float
    at_least: bool = False
    stretch: float | None = None
    unit: str = 'x'

    @property
    def met(self) -> bool | None:
        """Whether it is met; None if it was not measured."""
        return None if self.value is None else self._within(self.limit)

    def _within(self, bound: float) -> bool:
        assert self.value is not None
        return self.value >= bound if self.at_least else self.value <= bound

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        sign = '>=' if self.at_least else '<='
        if self.met is None:
            return (self.number, self.text, f'{sign} {self.limit:g} {self.unit}', '-',
                    'not in this run')
        word = '[green]met[/]' if self.met else '[bold red]NOT met[/]'
        if self.met and self.stretch is not None and self._within(self.stretch):
            word += ', stretch too'
        return (self.number, self.text, f'{sign} {self.limit:g} {self.unit}',
                f'{self.value:.3g} {self.unit}', word)


def print_targets(targets: Sequence[Target]) -> None:
    """Print the targets, met or not."""
    print_table('Targets', ('#', 'target', 'limit', 'measured', ''),
                [target.cells() for target in targets])


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; all columns but the first are numbers."""
    result = Table(title=title, title_justify='left')
    for index, name in enumerate(header):
        numeric = index and all(not row[index][:1].isalpha() for row in rows)
        result.add_column(name, justify='right' if numeric else 'left')
    for row in rows:
        result.add_row(*row)
    console.print(result)


def machine() -> str:
    """Describe what the numbers were measured on."""
    versions = ', '.join(f'{name} {_version(name)}' for name in ('numpy', 'pin'))
    load = ' '.join(f'{value:.1f}' for value in os.getloadavg())
    return (f'{_processor()}, {os.cpu_count()} cores, load {load}; {platform.system()} '
            f'{platform.release()}; Python {platform.python_version()}, {versions}, ROS 2 '
            f'{_distribution()}')


def _distribution() -> str:
    """Return the one that is sourced, or that the wheels are of."""
    wheels = (name for name in ('jazzy', 'kilted') if _version(f'ros-{name}-rclpy')[0].isdigit())
    return os.environ.get('ROS_DISTRO') or next(wheels, 'distribution unknown')


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return '(system)'


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(':')[2].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.machine()
