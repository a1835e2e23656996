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
"""Faults of force-torque sensors, which can be switched while a robot is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import math

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.sim.frames import Array
from biped_com_ros.sim.sensors import Delay, steps_of
import numpy as np

FAULTS = ('dead', 'frozen', 'late', 'turned')
"""Zero readings; always the last one; late by a time, s; rotated about z by an angle, deg."""

Fault = tuple[str, float]
"""One of :data:`FAULTS` and its value, 0 where it has none."""


def parse_faults(lines: Iterable[str]) -> dict[str, Fault]:
    """
    Read faults from text, one each: ``'left_foot dead'``, ``'left_foot late 0.05'``.

    Raises
    ------
    ConfigurationError
        If a line is not a sensor, a fault and, for `late` (s) and `turned` (deg), its value.

    """
    faults = {}
    for line in lines:
        name, kind, value = [*line.split(), '', '', ''][:3]
        if kind not in FAULTS:
            raise UnknownNameError('fault', kind, FAULTS, f"'{line}'")
        faults[name] = kind, _value(line, kind, value)
    return faults


def _value(line: str, kind: str, text: str) -> float:
    needed = kind in ('late', 'turned')
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if needed != math.isfinite(value) or len(line.split()) > 2 + needed:
        form = f"'<sensor> {kind}{' <value>' if needed else ''}'"
        raise ConfigurationError(f"fault '{line}' must be {form}")
    return value if needed else 0.0


class WrenchFaults:
    """
    Applies faults to the readings of wrench sensors.

    Parameters
    ----------
    names
        Of the sensors.
    dt
        Time between two readings, s.

    """

    def __init__(self, names: Sequence[str], dt: float) -> None:
        self._names, self._dt = tuple(names), dt
        self._last = np.zeros((len(self._names), 6))
        self.faults: Mapping[str, Fault] = {}
        self._laws: dict[int, Callable[[Array], Array]] = {}

    def check(self, faults: Mapping[str, Fault]) -> None:
        """
        Check that the robot can have these faults.

        Raises
        ------
        ConfigurationError
            If a sensor does not exist or a delay is out of range.

        """
        for name, (kind, value) in faults.items():
            if name not in self._names:
                raise UnknownNameError('wrench sensor', name, self._names, 'the faults')
            if kind == 'late':
                steps_of(value, self._dt, f"the delay of '{name}'")

    def replace(self, faults: Mapping[str, Fault]) -> None:
        """Set the faults from the next reading on; those that stay are not restarted."""
        self.check(faults)
        laws = {}
        for name, fault in faults.items():
            i = self._names.index(name)
            same = fault == self.faults.get(name)
            laws[i] = self._laws[i] if same else self._law(fault, self._last[i].copy())
        self.faults, self._laws = dict(faults), laws

    def apply(self, wrenches: Array) -> Array:
        """Return the readings (sensors, 6) with the faults."""
        self._last[:] = wrenches
        if not self._laws:
            return wrenches
        wrenches = wrenches.copy()
        for i, law in self._laws.items():
            wrenches[i] = law(wrenches[i])
        return wrenches

    def _law(self, fault: Fault, last: Array) -> Callable[[Array], Array]:
        kind, value = fault
        if kind == 'dead':
            return np.zeros_like
        if kind == 'frozen':
            return lambda wrench: last
        if kind == 'late':
            line = Delay(steps_of(value, self._dt, 'the delay'), 6)
            line.push(last)
            return line.push
        c, s = math.cos(math.radians(value)), math.sin(math.radians(value))
        turn = np.array(((c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0)))
        return lambda wrench: (wrench.reshape(2, 3) @ turn.T).ravel()
