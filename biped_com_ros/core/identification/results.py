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
"""The results of a calibration: the estimate, the corrected URDF, its numbers, and a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
import json
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.files import write_atomically
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture, SensorNoise
from biped_com_ros.core.identification.confounding import describe_instrument
from biped_com_ros.core.identification.estimates import Identification, level_rotation
from biped_com_ros.core.identification.estimator import Estimator
from biped_com_ros.core.identification.first_moments import parameters_of, StaticsRegressor
from biped_com_ros.core.identification.prior import prior_of
from biped_com_ros.core.identification.stances import sole_corners
from biped_com_ros.core.identification.urdf import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
import numpy as np


def solve_and_write(directory: Path, model: RobotModel, captures: Sequence[Capture],
                    noise: SensorNoise, com_sigma: float) -> tuple[
                        Identification, dict[str, Path]]:
    """
    Estimate from captures and write the results; see `write_results`.

    Parameters
    ----------
    directory
        Where the results go.
    model
        The robot as the URDF describes it; not used by any other thread meanwhile.
    captures
        At least two different poses.
    noise
        Of the sensors.
    com_sigma
        Standard deviation of each link's centre of mass about the URDF's, per axis, m.

    Raises
    ------
    InputError
        If the captures cannot be used, are too few or all alike.
    ConfigurationError
        If the directory cannot be written to.

    """
    found = Estimator(model, noise, prior_of(model, com_sigma)).solve(captures)
    return found, write_results(directory, model, captures, found)


def calibrated_urdf(model: RobotModel, found: Identification) -> str:
    """Return the robot's URDF with the estimated masses and centres of mass."""
    return with_inertials(model.urdf, {
        link.name: NewInertial(link.mass, link.com) for link in found.links})


def write_results(directory: Path, model: RobotModel, captures: Sequence[Capture],
                  found: Identification) -> dict[str, Path]:
    """
    Write ``calibrated.urdf``, ``calibration.json`` and ``report.html``, each atomically.

    Returns
    -------
    dict of str to Path
        By kind: urdf, numbers, report.

    Raises
    ------
    ConfigurationError
        If the directory cannot be written to.

    """
    paths = {'urdf': directory / 'calibrated.urdf', 'numbers': directory / 'calibration.json',
             'report': directory / 'report.html'}
    write_atomically(paths['urdf'], calibrated_urdf(model, found))
    write_atomically(paths['numbers'], json.dumps(numbers(found), indent=1))
    write_atomically(paths['report'], html_report(model, captures, found))
    return paths


def numbers(found: Identification) -> dict[str, Any]:
    """Return the estimate as plain numbers, each with its standard deviation."""
    def plain(owner: object, *names: str) -> dict[str, Any]:
        return {name: np.asarray(getattr(owner, name)).tolist() for name in names}

    return {
        **plain(found, 'robot', 'mass', 'mass_std'),
        'links': {link.name: plain(
            link, 'mass', 'mass_std', 'mass_before', 'com', 'com_std', 'com_before', 'data_share')
            for link in found.links},
        'residuals': {name: plain(
            residuals, 'com_rms', 'torque_rms', 'torque_max', 'weight_mean')
            for name, residuals in found.residuals},
        'identifiability': plain(
            found.identifiability, 'unknowns', 'rank', 'determined', 'prior_only',
            'condition_number', 'prior_only_links'),
        'validation_ratio': found.validation_ratio, 'ambiguities': list(found.ambiguities),
        'instruments': found.instruments.to_json(),
        'noise': [plain(n, 'kind', 'name', 'unit', 'assumed', 'estimated', 'count')
                  for n in found.noise],
        'noise_scale': found.noise_scale, 'warnings': list(found.warnings)}


def summary(found: Identification) -> str:
    """Return the result in a few lines of text."""
    report, before, after = found.identifiability, found.before, found.validated
    com = '' if math.isnan(before.com_rms) else (  # nothing measures it without foot sensors
        f'centre of mass against measurement {1e3 * before.com_rms:.2f} -> '
        f'{1e3 * after.com_rms:.2f} mm, ')
    lines = [
        f'{found.robot}: {found.mass:.3f} kg +- {found.mass_std:.3f} (URDF '
        f'{sum(link.mass_before for link in found.links):.3f})',
        f'{com}joint torques {before.torque_rms:.3g} -> '
        f'{after.torque_rms:.3g} Nm (poses left out of the estimate)',
        f'{report.determined} of {report.unknowns} masses and first moments are determined by the '
        f'data, {report.prior_only} by the prior alone; poses left out are '
        f'{found.validation_ratio:.2f} times as far off as predicted']
    wrong = [e for e in found.instruments.estimates if e.is_significant]
    worst = sorted(wrong, key=lambda e: -abs(e.estimate) / e.sd)[:SHOWN]
    lines += [f'{describe_instrument(e)}: {e.estimate:+.3g} +- {1.96 * e.sd:.2g} {e.unit}; '
              f'{e.remedy}' for e in worst]
    if len(wrong) > len(worst):
        lines.append(f'{len(wrong) - len(worst)} more errors of instruments are significant')
    return '\n'.join([*lines, *found.ambiguities, *found.warnings])


SHOWN = 8
"""Number of errors of instruments that a summary names."""

BEFORE, AFTER, VALIDATED = '#c2410c', '#15803d', '#1d4ed8'

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
       color: #1f2937; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .8rem; border-bottom: 1px solid #e5e7eb; text-align: right;
         white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
.warning { background: #fef3c7; border-left: 4px solid #d97706; padding: .4rem .8rem; }
svg { max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; }
"""


def html_report(model: RobotModel, captures: Sequence[Capture], found: Identification) -> str:
    """Return a self-contained page of tables and plots."""
    title = f'Calibration of {found.robot}'
    warnings = ''.join(f'<p class="warning">{escape(text)}</p>' for text in found.warnings)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{warnings}'
        f'{_summary_table(found)}<h2>Centre of mass against measurement, by pose</h2>'
        + _pose_plot(found, 'mm', [
            1e3 * np.linalg.norm(r.com, axis=1) for _, r in found.residuals])
        + '<h2>Joint torques against measurement, root mean square by pose</h2>'
        + _pose_plot(found, 'Nm', [_rows_rms(r.torque) for _, r in found.residuals])
        + '<h2>Shift of each centre of mass, with 95 % intervals</h2>' + _shift_plot(found)
        + f'<h2>Instruments</h2>{_instrument_table(found)}'
        f'<h2>Noise of the sensors</h2>{_noise_table(found)}'
        + f'<h2>Links</h2>{_link_table(found)}<h2>What the poses determine</h2>{_knowledge(found)}'
        + '<h2>Poses</h2><p>Standing soles are blue; the centre of mass by the URDF is orange, by '
        'the estimate green.</p>'
        + pose_figures(
            model, captures, [(parameters_of(model), BEFORE), (found.parameters, AFTER)])
        + f'{_pose_table(model, captures, found)}</body></html>\n')


def _rows_rms(values: Array) -> Array:
    known = np.isfinite(values)
    squares = np.where(known, values, 0.0) ** 2
    counts = known.sum(axis=1)
    rms: Array = np.sqrt(squares.sum(axis=1) / np.maximum(counts, 1))
    return np.where(counts > 0, rms, np.nan)


def _summary_table(found: Identification) -> str:
    mass_before = sum(link.mass_before for link in found.links)
    rows: list[tuple[str, ...]] = [('Total mass', f'{mass_before:.3f} kg',
                                   f'{found.mass:.3f} ± {1.96 * found.mass_std:.3f} kg', '')]
    for title, what, scale, digits, unit in (
            ('Centre of mass, rms', 'com_rms', 1e3, 2, 'mm'),
            ('Joint torque, rms', 'torque_rms', 1.0, 3, 'Nm'),
            ('Joint torque, largest', 'torque_max', 1.0, 3, 'Nm'),
            ('Weight, mean', 'weight_mean', 1.0, 2, 'N')):
        if math.isnan(getattr(found.before, what)):
            continue  # not measured
        # Adding zero avoids a minus before zero.
        rows.append((title, *(f'{round(scale * getattr(r, what), digits) + 0.0:.{digits}f} {unit}'
                              for _, r in found.residuals)))
    return _table(('Residual', 'URDF', 'calibrated', 'calibrated, poses left out'), rows)


def _instrument_table(found: Identification) -> str:
    """Return the errors of the instruments that the data tell of; the others are counted."""
    known = [e for e in found.instruments.estimates if e.is_significant or e.data_share > 0.5]
    known.sort(key=lambda e: (not e.is_significant, e.kind.value, e.name))
    rows = [(describe_instrument(e), *(f'{_scaled(e.unit)[0] * value:{form}}' for value, form in (
        (e.prior_sd, '.3g'), (e.estimate, '+.3g'), (1.96 * e.sd, '.2g'))), _scaled(e.unit)[1],
        'yes' if e.is_significant else 'no', e.remedy) for e in known]
    silent = len(found.instruments.estimates) - len(known)
    ambiguities = ''.join(f'<p>{escape(text)}</p>' for text in found.ambiguities)
    return (_table(('Error', 'sd before', 'estimate', '± (95 %)', 'unit', 'significant', 'remedy'),
                   rows)
            + f'<p>Of {silent} more the data say little.</p>{ambiguities}')


def _scaled(unit: str) -> tuple[float, str]:
    """Return the factor to the unit in which an error is shown, and that unit."""
    return {'rad': (math.degrees(1.0), 'deg'), 'm': (1e3, 'mm')}.get(unit, (1.0, unit))


def _noise_table(found: Identification) -> str:
    rows = [(f'{n.kind} {n.name}', f'{_scaled(n.unit)[0] * n.assumed:.3g}',
             f'{_scaled(n.unit)[0] * n.estimated:.3g}', _scaled(n.unit)[1], f'{n.scale:.2f}')
            for n in found.noise]
    return (_table(('Sensor', 'assumed', 'estimated', 'unit', 'ratio'), rows)
            + f'<p>Captures that were left out are {found.validation_ratio:.2f} times as far off '
            'as predicted.</p>')


def _link_table(found: Identification) -> str:
    rows = []
    for link in found.links:
        shift = 1e3 * (link.com - link.com_before)
        rows.append((link.name, f'{link.mass_before:.3f}',
                     f'{link.mass:.3f} ± {1.96 * link.mass_std:.3f}',
                     *(f'{d:+.1f} ± {1.96e3 * s:.1f}' for d, s in zip(shift, link.com_std)),
                     f'{100 * link.data_share.max():.0f} %'))
    return _table(('Link', 'URDF kg', 'kg', 'x mm', 'y mm', 'z mm', 'by data'), rows)


def _knowledge(found: Identification) -> str:
    report = found.identifiability
    gain = report.repeat_gain
    prior = ', '.join(report.prior_only_links) or 'none'
    return (
        f'<p>Of {report.unknowns} masses and first moments the data determine {report.rank} '
        f'combinations, {report.determined} of them better than the prior; '
        f'{report.prior_only} come from the prior alone. Condition number '
        f'{report.condition_number:.3g}. One more pose like these would add '
        f'{gain.min():.2f} to {gain.max():.2f} nats. Assumed relative standard deviation of '
        f'masses {found.mass_sigma:g}; residuals are {found.noise_scale:.2f} times the assumed '
        f'noise.</p><p>Links whose centre of mass is from the prior alone: {escape(prior)}.</p>')


def _pose_table(model: RobotModel, captures: Sequence[Capture], found: Identification) -> str:
    feet, rows = tuple(model.config.feet), []
    for i, capture in enumerate(captures):
        standing = ', '.join(f for f, s in zip(feet, capture.in_contact) if s) or 'hoisted'
        rows.append((capture.name or str(i + 1), standing,
                     *(_millimetres(r.com[i]) for r in (found.before, found.validated)),
                     f'{found.pose_misfit[i] ** 0.5:.2f}'))
    return _table(('Pose', 'standing', 'URDF mm', 'left out mm', 'misfit / noise'), rows)


def _millimetres(offset: Array) -> str:
    """Return a distance as text; hanging poses have none."""
    return f'{1e3 * np.linalg.norm(offset):.2f}' if np.isfinite(offset).all() else '-'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = ''.join(f'<th>{escape(cell)}</th>' for cell in header)
    body = ''.join('<tr>' + ''.join(f'<td>{escape(cell)}</td>' for cell in row) + '</tr>'
                   for row in rows)
    return f'<table><tr>{head}</tr>{body}</table>'


def _pose_plot(found: Identification, unit: str, series: Sequence[Array]) -> str:
    """Return a plot of dots per pose: before, after and left out."""
    names, colours = [name for name, _ in found.residuals], (BEFORE, AFTER, VALIDATED)
    values = np.array(series)
    known = values[np.isfinite(values)]
    if not len(known):
        return '<p>Not measured.</p>'
    top, count, width, height = _round_top(float(known.max())), values.shape[1], 900.0, 240.0
    parts = [_axis(top, unit, width, height)]
    radii = (3.0, 4.5, 2.5)  # dots of left-out poses are usually on top of fitted ones
    for name, colour, radius, row in zip(names, colours, radii, values):
        for i, value in enumerate(row):
            if np.isfinite(value):
                x = 50.0 + (width - 60.0) * (i + 0.5) / count
                y = height - 20.0 - (height - 40.0) * value / top
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}">'
                             f'<title>pose {i + 1}, {name}: {value:.3g} {unit}</title></circle>')
    for i, (name, colour) in enumerate(zip(names, colours)):
        parts.append(f'<text x="{width - 230 + 75 * i}" y="12" fill="{colour}">{name}</text>')
    return _svg(width, height, parts)


def _round_top(largest: float) -> float:
    """Return the end of an axis whose quarters are round numbers."""
    quarter = 0.25 * 1.05 * largest or 0.25
    power = 10.0 ** math.floor(math.log10(quarter))
    return 4.0 * power * next(
        (step for step in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
         if step * power >= quarter), 10.0)


def _axis(top: float, unit: str, width: float, height: float) -> str:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = height - 20.0 - (height - 40.0) * share
        lines.append(f'<line x1="50" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
                     f'<text x="0" y="{y + 4:.1f}">{top * share:.3g} {unit}</text>')
    return ''.join(lines)


def _shift_plot(found: Identification) -> str:
    """Return a bar plot of the shift of each link's centre of mass per axis, with intervals."""
    links = sorted(found.links, key=lambda link: -link.mass)[:24]
    shift = np.array([link.com - link.com_before for link in links]) * 1e3
    spread = np.array([1.96e3 * link.com_std for link in links])
    top = float((np.abs(shift) + spread).max())
    row, width = 36.0, 900.0
    height, middle = row * len(links) + 24.0, 540.0
    parts = [f'<line x1="{middle}" x2="{middle}" y1="16" y2="{height}" stroke="#9ca3af"/>',
             f'<text x="200" y="11">-{top:.0f} mm</text>',
             f'<text x="{width - 50}" y="11">{top:.0f} mm</text>']
    for i, link in enumerate(links):
        y = 24.0 + row * i
        parts.append(f'<text x="0" y="{y + 15}">{escape(link.name)}</text>')
        for axis, colour in enumerate(('#dc2626', '#16a34a', '#2563eb')):
            parts.append(_bar(y + 9 * axis, shift[i, axis], spread[i, axis], top, colour, middle))
    return '<p>x red, y green, z blue, along the link; heaviest links first.</p>' + _svg(
        width, height, parts)


def _bar(y: float, value: float, spread: float, top: float, colour: str, middle: float) -> str:
    scale = 340.0 / top
    x, low, high = (middle + scale * v for v in (value, value - spread, value + spread))
    return (f'<rect x="{min(x, middle):.1f}" y="{y:.1f}" width="{abs(x - middle):.1f}" '
            f'height="6" fill="{colour}" opacity=".8"/><line x1="{low:.1f}" x2="{high:.1f}" '
            f'y1="{y + 3:.1f}" y2="{y + 3:.1f}" stroke="#111827" stroke-width="1.2"/>')


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>')


WIDTH, HEIGHT, PER_ROW = 110.0, 150.0, 8
LIMB, SOLE, IN_AIR = '#374151', '#1d4ed8', '#9ca3af'

# View from the front left and a little above; x forward, y left, z up.
_VIEW = np.array(((-0.5, 0.866, 0.0), (0.15, 0.09, -0.985)))


def pose_figures(model: RobotModel, captures: Sequence[Capture],
                 marks: Sequence[tuple[Array, str]]) -> str:
    """
    Return one SVG with a figure of each capture.

    Parameters
    ----------
    model
        The robot.
    captures
        The poses.
    marks
        Masses and first moments (L, 4) whose centre of mass is shown as a dot, with its colour.

    """
    draw = _FigureMaker(model, marks)
    figures = [draw.figure(capture) for capture in captures]
    # One scale for all, so that a crouching robot is smaller.
    scale = (HEIGHT - 34.0) / max((float(np.ptp(f.points[:, 1])) for f in figures), default=1.0)
    parts = []
    for i, (capture, figure) in enumerate(zip(captures, figures)):
        x, y = (i % PER_ROW) * WIDTH, (i // PER_ROW) * HEIGHT
        parts.append(f'<g transform="translate({x:.0f} {y:.0f})">{figure.svg(scale)}<text '
                     f'x="{WIDTH / 2:.0f}" y="{HEIGHT - 6:.0f}" text-anchor="middle">'
                     f'{escape(capture.name or str(i + 1))}</text></g>')
    width, height = PER_ROW * WIDTH, -(-len(figures) // PER_ROW) * HEIGHT
    return _svg(width, height, parts)


class _Figure:
    """Projected lines, soles and dots of one pose; `points` (k, 2) has all lines and soles, m."""

    def __init__(self) -> None:
        self.limbs: list[Array] = []
        self.soles: list[tuple[Array, bool]] = []
        self.dots: list[tuple[Array, str]] = []

    @property
    def points(self) -> Array:
        return np.concatenate([*self.limbs, *(corners for corners, _ in self.soles)])

    def svg(self, scale: float) -> str:
        points = self.points
        middle, lowest = points[:, 0].mean(), points[:, 1].max()

        def at(point: Array) -> str:
            return (f'{WIDTH / 2 + scale * (point[0] - middle):.1f},'
                    f'{HEIGHT - 22 + scale * (point[1] - lowest):.1f}')

        limbs = ' '.join(f'M{at(a)} L{at(b)}' for a, b in self.limbs)
        soles = ''.join(
            f'<polygon points="{" ".join(map(at, corners))}" fill="{SOLE if stands else IN_AIR}" '
            f'opacity=".7"/>' for corners, stands in self.soles)
        dots = ''.join(
            '<circle cx="{}" cy="{}" r="3" fill="{}"/>'.format(*at(dot).split(','), colour)
            for dot, colour in self.dots)
        return (f'{soles}<path d="{limbs}" stroke="{LIMB}" stroke-width="3" fill="none" '
                f'stroke-linecap="round"/>{dots}')


class _FigureMaker:
    """Makes figures of poses of a robot."""

    def __init__(self, model: RobotModel, marks: Sequence[tuple[Array, str]]) -> None:
        self._model, self._marks = model, marks
        self._regressor = StaticsRegressor(model)
        frames = set(model.frame_names)
        self._bones = [(parent, child) for parent, pairs in model.children_of_links.items()
                       for _, child in pairs if parent in frames and child in frames]

    def figure(self, capture: Capture) -> _Figure:
        state, figure = self._model.state(capture.positions), _Figure()
        level = level_rotation(self._regressor.up_in_base(capture))

        def project(point: Array) -> Array:
            return _VIEW @ (level @ point)

        for parent, child in self._bones:
            ends = [state.pose_in_base(link).position for link in (parent, child)]
            if np.abs(ends[0] - ends[1]).max() > 1e-4:
                figure.limbs.append(np.array([project(end) for end in ends]))
        rows = state.placements_in_base(self._model.soles)
        for row, foot, stands in zip(rows, self._model.config.feet.values(), capture.in_contact):
            corners = [project(corner) for corner in sole_corners(row, foot)]
            figure.soles.append((np.array(corners), bool(stands)))
        for theta, colour in self._marks:
            com = self._regressor.com_matrix(capture.positions) @ theta.ravel()
            figure.dots.append((project(com / theta[:, 0].sum()), colour))
        return figure
