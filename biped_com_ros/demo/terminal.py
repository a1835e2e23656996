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
The demo's measurements as text and as a table.

:class:`Period` averages the messages of one second, or since a chapter began. :func:`table`,
:func:`line` and :func:`summary` format a :class:`Snapshot` of it. A :class:`Comparison` is the
result of a chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
import io
import math
from pathlib import Path
import re
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
import numpy as np

GOOD, BAD, QUIET = 'green', 'bold red', 'dim'
#: Larger errors are shown in red: of the CoM in 3-D and horizontally, m; as a share of the weight.
COM_LIMIT, HORIZONTAL_LIMIT, WEIGHT_LIMIT = 1e-3, 1e-3, 2e-3
#: Errors are judged once they are means of so long, simulated s: at an instant they may be any.
LEAST_TIME = 1.0
FALLEN = 'the robot has fallen'


@dataclass
class Mean:
    """Mean and largest norm of vectors that are added one by one."""

    size: int
    count: int = 0
    largest: float = 0.0
    total: Array = field(init=False)

    def __post_init__(self) -> None:
        self.total = np.zeros(self.size)

    def add(self, value: Array | float) -> None:
        """Add a vector."""
        self.total += value
        self.count += 1
        self.largest = max(self.largest, float(np.linalg.norm(value)))

    @property
    def mean(self) -> Array:
        """Mean, (size,); NaN if nothing was added."""
        return self.total / self.count if self.count else np.full(self.size, math.nan)


@dataclass
class Period:
    """
    Averages over a period.

    Attributes
    ----------
    com_error
        Estimated minus true CoM, relative to the base, in world axes, m.
    base_drift
        Distance of the base by leg odometry from the true one, m.
    vertical_forces
        Measured, by foot, N.

    """

    com_error: Mean = field(default_factory=lambda: Mean(3))
    base_drift: Mean = field(default_factory=lambda: Mean(1))
    vertical_forces: dict[str, Mean] = field(default_factory=dict)

    def weight(self, feet: int) -> float:
        """Return the sum of the mean forces, N; NaN unless all `feet` have one."""
        means = [float(mean.mean[0]) for mean in self.vertical_forces.values()]
        return sum(means) if len(means) == feet else math.nan


@dataclass(kw_only=True)
class Snapshot:
    """
    Measurements to show; those that there are not have their defaults.

    Attributes
    ----------
    time
        Since the measurements began, simulated s; NaN while they are paused.
    activity
        What the robot does, such as 'sways'.
    com_error
        Mean of the CoM's error (3,), m.
    com_error_largest
        Largest norm of it, m.
    base_drift
        Mean distance of the base by leg odometry from the true one, m.
    weight, model_weight
        Measured and by the URDF, N; both with `unmeasured`.
    has_sensors
        Whether foot sensors measure the weight, and can be tared.
    unmeasured
        Of both, what is by the URDF: the weight below the foot sensors, which they cannot measure
        while the robot stands, N.
    contacts
        Vertical force, N, and whether there is contact, by foot.
    rates
        Messages per second by topic.
    real_time_factor
        Simulated seconds per second.
    health
        Level (0 OK, 1 WARN, 2 ERROR, 3 STALE) and text of the worst diagnostic.
    waiting
        Inputs that have not arrived yet.
    exact_sensors
        Whether the sensors have no errors, so that all errors are the URDF's.
    is_calibrated
        Whether the nodes use the calibrated URDF.
    has_fallen
        Whether the robot has fallen: then nothing else counts.
    ages
        Time since the last value that was received, s, of what is stale: of ``com`` or a foot.

    """

    time: float = math.nan
    activity: str = ''
    com_error: Array = field(default_factory=lambda: np.full(3, math.nan))
    com_error_largest: float = math.nan
    base_drift: float = math.nan
    weight: float = math.nan
    model_weight: float = math.nan
    contacts: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    real_time_factor: float = math.nan
    health: tuple[int, str] = (1, 'no diagnostics yet')
    waiting: Sequence[str] = ()
    exact_sensors: bool = False
    has_sensors: bool = True
    unmeasured: float = 0.0
    is_calibrated: bool = False
    has_fallen: bool = False
    ages: Mapping[str, float] = field(default_factory=dict)

    @property
    def urdf(self) -> str:
        """Return which URDF the nodes use."""
        return 'calibrated URDF' if self.is_calibrated else 'URDF'

    @property
    def has_results(self) -> bool:
        """Whether enough has been measured; hardly anything has when a chapter has begun."""
        return not math.isnan(self.com_distance) and self.time >= LEAST_TIME

    @property
    def com_distance(self) -> float:
        """Norm of the mean error of the CoM, m."""
        return float(np.linalg.norm(self.com_error))

    @property
    def weight_error(self) -> float:
        """Measured minus model weight as a share of the model's, both above the sensors."""
        return (self.weight - self.unmeasured) / (self.model_weight - self.unmeasured) - 1.0

    @property
    def conclusion(self) -> str:
        """Return what the errors mean for the URDF."""
        distance = self.com_distance
        # Standing poses hardly determine the height.
        com_good = (math.hypot(*self.com_error[:2]) < HORIZONTAL_LIMIT if self.is_calibrated
                    else distance < COM_LIMIT)
        weight_good = not abs(self.weight_error) >= WEIGHT_LIMIT  # also if it is not measured
        if self.has_fallen:
            return FALLEN
        if com_good and weight_good:
            height = '' if distance < COM_LIMIT else (
                f', but for {1e3 * abs(self.com_error[2]):.1f} mm of height, which standing poses '
                'hardly determine')
            return f'the {self.urdf} describes this robot{height}'
        wrong = ' and '.join(name for name, good in (
            ('the centre of mass', com_good), ('the weight', weight_good)) if not good)
        if self.is_calibrated:
            can_tare = com_good and self.has_sensors
            return (f'still wrong after the calibration: {wrong} (limits: '
                    f'{1e3 * HORIZONTAL_LIMIT:g} mm horizontally, {100 * WEIGHT_LIMIT:g} %); '
                    f'{"tare the sensors in the air" if can_tare else "take more poses"}')
        if self.exact_sensors or not self.has_sensors:
            return f'wrong in the URDF: {wrong}; calibrate it'
        return f'wrong: {wrong}; tare the sensors, or calibrate the URDF'


@dataclass(frozen=True)
class Comparison:
    """
    A small table that compares values, such as before and after.

    Attributes
    ----------
    headings
        Of the columns with values, such as ``('before', 'after')``.
    rows
        A label, and a value with its unit for each heading; '' without a value.
    conclusion
        Conclusion, in a sentence.
    problem
        What was not done of that which the chapter is to show; '' if all was.

    """

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    conclusion: str = ''
    problem: str = ''


def comparison_text(comparison: Comparison) -> str:
    """Return the comparison in aligned plain lines."""
    rows = [('', *comparison.headings), *comparison.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ['  '.join(f'{cell:<{width}}' for cell, width in zip(row, widths)).rstrip()
             for row in rows]
    return '\n'.join([*lines, *filter(None, (comparison.conclusion, _problem(comparison)))])


def tabbed(comparison: Comparison) -> str:
    """Return the comparison for a program: a row per line, with tabs between its cells."""
    rows = [('', *comparison.headings), *comparison.rows]
    return '\n'.join(['\t'.join(row) for row in rows] + list(filter(None, (
        comparison.conclusion, _problem(comparison)))))


def _problem(comparison: Comparison) -> str:
    return f'not done: {comparison.problem}' if comparison.problem else ''


def comparison_table(comparison: Comparison) -> Any:
    """Return the comparison as a ``rich`` table, with conclusion and problem below it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text
    result = Table()
    for heading in ('', *comparison.headings):
        result.add_column(heading, style='bold' if not heading else '', overflow='fold')
    for row in comparison.rows:
        result.add_row(*map(_plain, row))
    # Not as a caption, which would be as narrow as the table.
    below = ((comparison.conclusion, 'italic'), (_problem(comparison), BAD))
    return Group(result, *(Text(text, style=style) for text, style in below if text))


def line(shot: Snapshot) -> str:
    """Return the snapshot as one plain line, for pipes and logs."""
    if shot.waiting:
        return 'waiting for ' + ', '.join(shot.waiting)
    if shot.has_fallen:
        return f'{shot.activity}: {FALLEN}'
    if math.isnan(shot.com_distance):
        return f'{shot.activity}; {shot.health[1]}'
    feet = ' '.join(
        f'{name}=unknown' if math.isnan(force) or name in shot.ages else
        f'{name}={round(force, 1) + 0.0:.1f}N'  # + 0.0: no -0.0
        f'{"" if contact else "(free)"}' for name, (force, contact) in shot.contacts.items())
    rates = ' '.join(f'{name}={rate:.0f}Hz' for name, rate in shot.rates.items())
    return (f't={shot.time:.1f}s {shot.activity}: CoM off by {_millimetres(shot.com_error)}, '
            f'base by leg odometry off by {1e3 * shot.base_drift:.1f} mm; '
            f'{_weighed(shot)} {_weight(shot)}; {feet}; {rates}; '
            f'real time x{shot.real_time_factor:.2f}; {shot.health[1]}')


def summary(shot: Snapshot) -> str:
    """Return the summary of the whole run."""
    if shot.has_fallen:
        return FALLEN[0].upper() + FALLEN[1:]
    if not shot.has_results:
        remedy = '; demo.launch.py starts these nodes, and errors above say why one ended'
        return 'No measurements: ' + (line(shot) + remedy if shot.waiting else shot.health[1])
    return '\n'.join((
        f'Over {shot.time:.1f} s of simulated time (x{shot.real_time_factor:.2f} real time):',
        f'  CoM off by {_millimetres(shot.com_error)}, at most '
        f'{1e3 * shot.com_error_largest:.2f} mm',
        f'  base by leg odometry off by {1e3 * shot.base_drift:.1f} mm, not counted in that',
        f'  {_weighed(shot)} {_weight(shot)}',
        f'  {shot.conclusion}'))


def table(shot: Snapshot, whole: Snapshot, title: str) -> Any:
    """Return a ``rich`` table of the last period and, beside it, of the chapter."""
    from rich.table import Table
    result = Table(title=_plain(title), title_justify='left', min_width=76)
    result.add_column(style='bold', no_wrap=True)
    # Folded: rich would end a long word, such as a path, by an ellipsis.
    result.add_column('now', overflow='fold')
    result.add_column('in this chapter', overflow='fold')
    if shot.waiting:
        result.add_row('starting', f'[yellow]waiting for {_plain(", ".join(shot.waiting))}[/]', '')
    for row in _rows(shot, whole):
        result.add_row(*row)
    return result


def save_picture(shot: Snapshot, whole: Snapshot, title: str, path: str) -> None:
    """Write the table as an SVG file that looks like a terminal."""
    from rich.console import Console
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(table(shot, whole, title))
    # Without the fonts that a browser would load from the web.
    svg = re.sub(r'(?s)@font-face {.*?}\s*', '', console.export_svg(title='make demo'))
    Path(path).write_text(svg, encoding='utf-8')


def _rows(shot: Snapshot, whole: Snapshot) -> list[tuple[str, str, str]]:
    time = 'measuring is paused' if math.isnan(shot.time) else f't = {shot.time:.1f} s'
    rows = [('robot', shot.activity, '' if shot.waiting else time)]
    if shot.has_fallen:
        return [*rows, ('', f'[{BAD}]{FALLEN}[/]', '')]
    if not math.isnan(whole.com_distance):
        rows += [('3-D error of the CoM', _coloured_com(shot), _coloured_com(whole)),
                 ('leg odometry', _drift(shot), _drift(whole)),
                 (_weighed(shot), _coloured_weight(shot), _coloured_weight(whole))]
    elif 'com' in shot.ages:
        rows.append(('3-D error of the CoM', f'[{QUIET}]- {_ago(shot.ages["com"])}[/]', ''))
    rows += [('contacts', _lines(_contact(foot, *contact, shot.ages.get(foot, 0.0))
                                 for foot, contact in shot.contacts.items()),
              f'with {shot.unmeasured:.1f} N below the sensors' if shot.unmeasured else ''),
             ('rates', _lines(_rate(*item) for item in shot.rates.items()), ''),
             ('real time', _factor(shot.real_time_factor), _factor(whole.real_time_factor)),
             ('health', _health(*shot.health), '')]
    if not shot.waiting and whole.has_results:
        rows.append(('summary', '', whole.conclusion))
    return rows


def _lines(parts: Iterable[str]) -> str:
    return '\n'.join(parts) or '-'


def _coloured_com(shot: Snapshot) -> str:
    if math.isnan(shot.com_distance):
        return f'[{QUIET}]- {_ago(shot.ages["com"])}[/]' if 'com' in shot.ages else '-'
    x, y, z = 1e3 * shot.com_error
    colour = GOOD if shot.com_distance < COM_LIMIT else BAD
    return (f'[{colour}]{1e3 * shot.com_distance:.2f} mm[/]\n'
            f'x {x:+.2f}  y {y:+.2f}  z {z:+.2f}')


def _drift(shot: Snapshot) -> str:
    drift = 1e3 * shot.base_drift
    return '-' if math.isnan(drift) else f'{drift:.1f} mm off'


def _coloured_weight(shot: Snapshot) -> str:
    if math.isnan(shot.weight):
        return '-'
    colour = GOOD if abs(shot.weight_error) < WEIGHT_LIMIT else BAD
    return (f'[{colour}]{100.0 * shot.weight_error:+.2f} %, {_kilograms(shot):+.3f} kg[/]\n'
            f'{shot.weight - shot.unmeasured:.2f} N, by the {shot.urdf} '
            f'{shot.model_weight - shot.unmeasured:.2f} N')


def _kilograms(shot: Snapshot) -> float:
    return (shot.weight - shot.model_weight) / GRAVITY


def _millimetres(vector: Array) -> str:
    x, y, z = 1e3 * vector
    return f'{1e3 * np.linalg.norm(vector):.2f} mm (x {x:+.2f}, y {y:+.2f}, z {z:+.2f})'


def _weight(shot: Snapshot) -> str:
    if math.isnan(shot.weight):
        return 'not measured'
    return (f'{shot.weight - shot.unmeasured:.2f} N measured, '
            f'{shot.model_weight - shot.unmeasured:.2f} N by the {shot.urdf}: '
            f'{100.0 * shot.weight_error:+.2f} %, {_kilograms(shot):+.3f} kg')


def _weighed(shot: Snapshot) -> str:
    """Return what weighs, as a label."""
    return 'weight above the feet' if shot.unmeasured else 'weight'


def _contact(name: str, force: float, contact: bool, age: float) -> str:
    if math.isnan(force):
        return f'[{QUIET}]○ {name} no wrench[/]'
    if age:
        return f'[{QUIET}]○ {name} {force:.1f} N, {_ago(age)}[/]'
    mark, colour = ('●', GOOD) if contact else ('○', QUIET)
    return f'[{colour}]{mark}[/] {name} {force:.1f} N'


def _ago(age: float) -> str:
    return f'{age:.0f} s ago'


def _rate(name: str, rate: float) -> str:
    return f'[{GOOD if rate > 1.0 else BAD}]{name} {rate:.0f} Hz[/]'


def _health(level: int, text: str) -> str:
    return f'[{(GOOD, "yellow", BAD, BAD)[level]}]{_plain(text)}[/]'


def _factor(factor: float) -> str:
    return '-' if math.isnan(factor) else f'x {factor:.2f}'


def _plain(text: str) -> str:
    """Escape markup of ``rich``."""
    return text.replace('[', r'\[')
