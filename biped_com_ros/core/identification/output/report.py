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
"""Report of a calibration: a self-contained page of tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
import hashlib
from html import escape
import math
from pathlib import Path
import re

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import parameters_of
from biped_com_ros.core.identification.estimation.confounding import describe_ambiguities
from biped_com_ros.core.identification.estimation.estimates import (
    Identification, LinkEstimate, root_mean)
from biped_com_ros.core.identification.output.pose_figures import pose_figures, pose_label
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import ArrayLike

BEFORE, AFTER, VALIDATED = '#c2410c', '#15803d', '#1d4ed8'
AXES = (('x', '#dc2626'), ('y', '#16a34a'), ('z', '#2563eb'))

PRIOR_SHARE = 0.005
"""Largest share of the data in the estimate of a link that is shown as one of the URDF."""

# Characters of a value; a column with longer ones is of texts, which are broken into lines.
_LONGEST_VALUE, _TEXT = 40, ' class="text"'
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
       color: #1f2937; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #e5e7eb; text-align: right;
         white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
td:first-child, th:first-child { text-align: left; }
th.text, td.text { white-space: normal; text-align: left; min-width: 12rem; }
.wide { overflow-x: auto; } .wide > svg { min-width: 42rem; }
.about { margin-bottom: 1.5rem; }
.about td { white-space: normal; text-align: left; }
.about td + td { overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .4rem 0; padding: 0; }
.legend span { display: inline-flex; align-items: center; gap: .4rem; }
.legend i { width: .8rem; height: .8rem; border-radius: 50%; }
.poses { display: flex; flex-wrap: wrap; gap: .6rem; }
.poses figure { margin: 0; width: 7rem; }
figcaption { font-size: .8rem; text-align: center; overflow-wrap: anywhere; line-height: 1.2; }
summary { cursor: pointer; margin: .5rem 0; }
@media (max-width: 36em) {
  td, th { padding: .2rem .3rem; font-size: .85rem; } }
@media print { .wide { overflow: visible; } }
.verdict { font-size: 1.15rem; font-weight: 600; }
.warning { background: #fef3c7; border-left: 4px solid #d97706; padding: .4rem .8rem; }
svg { max-width: 100%; height: auto; } svg text { font: 13px system-ui, sans-serif; }
"""


def html_report(model: RobotModel, captures: Sequence[Capture], found: Identification,
                when: datetime | None = None) -> str:
    """
    Return a self-contained page of tables and plots.

    Parameters
    ----------
    model
        The robot before the calibration.
    captures, found
        What was measured, and what was estimated from it.
    when
        Date of the report; None: now.

    """
    title = f'Calibration of {found.robot}'
    warnings = ''.join(f'<p class="warning">{escape(text)}</p>' for text in found.warnings)
    marks = [(parameters_of(model), BEFORE), (found.parameters, AFTER)]
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f'<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>'
        + f'<p class="verdict">{escape(found.verdict[0].upper() + found.verdict[1:])}.</p>'
        + _about(model, captures, when or datetime.now().astimezone()) + warnings
        + f'{_summary_table(found)}<h2>Horizontal error of the centre of mass, by pose</h2>'
        + _pose_plot(found, 'mm', [
            1e3 * np.linalg.norm(r.com, axis=1) for _, r in found.residuals])
        + '<h2>Joint torques against measurement, root mean square by pose</h2>'
        + _pose_plot(found, 'N m', [
            [root_mean(row) for row in r.torque ** 2] for _, r in found.residuals])
        + '<h2>Shift of each centre of mass, with 95 % intervals</h2>' + _shift_plot(found)
        + f'<h2>Instruments</h2>{_instrument_table(found)}'
        f'<h2>Noise of the sensors</h2>{_noise_table(found)}'
        + f'<h2>Links</h2>{_link_tables(found)}<h2>What the poses determine</h2>'
        + _knowledge(found) + '<h2>Poses</h2>'
        + _legend([('sole that stands', '#1d4ed8'), ('sole in the air', '#9ca3af'),
                   ('centre of mass by the URDF', BEFORE), ('by the estimate', AFTER)])
        + pose_figures(model, captures, marks)
        + f'{_pose_table(model, captures, found)}</body></html>\n')


def _about(model: RobotModel, captures: Sequence[Capture], when: datetime) -> str:
    """Return what was calibrated, from what, when and with which version."""
    digest = hashlib.sha256(model.urdf.encode()).hexdigest()[:12]
    found = re.search(r'<version>(.*?)</version>', (package_share() / 'package.xml').read_text())
    package = f'biped_com_ros {found[1] if found else ""}'
    urdf = Path(model.config.urdf).name or 'robot_description'
    rows = (('Robot', model.config.name), ('URDF', f'{urdf} (SHA-256 {digest}...)'),
            ('Date', when.strftime('%Y-%m-%d %H:%M %Z').strip()),
            ('Poses', str(len(captures))), ('Software', package))
    body = ''.join(f'<tr><td>{name}</td><td>{escape(value)}</td></tr>' for name, value in rows)
    return f'<table class="about">{body}</table>'


def _legend(marks: Sequence[tuple[str, str]]) -> str:
    """Return texts with spots of their colours."""
    return '<p class="legend">' + ''.join(
        f'<span><i style="background:{colour}"></i>{escape(text)}</span>'
        for text, colour in marks) + '</p>'


def _summary_table(found: Identification) -> str:
    mass_before = sum(link.mass_before for link in found.links)
    rows: list[tuple[str, ...]] = [('Total mass, ± 95 %', f'{mass_before:.3f} kg',
                                   f'{found.mass:.3f} ± {1.96 * found.mass_std:.3f} kg', '', '')]
    for title, what, scale, digits, unit in (
            ('Horizontal CoM, rms', 'com_rms', 1e3, 2, 'mm'),
            ('Joint torque, rms', 'torque_rms', 1.0, 3, 'N m'),
            ('Joint torque, largest', 'torque_max', 1.0, 3, 'N m'),
            ('Weight, mean', 'weight_mean', 1.0, 2, 'N')):
        if math.isnan(getattr(found.before, what)):
            continue  # not measured
        # Adding zero avoids a minus before zero.
        rows.append((title, *(f'{round(scale * getattr(r, what), digits) + 0.0:.{digits}f} {unit}'
                              for _, r in found.residuals),
                     f'{1e3 * found.validated_com:.2f} mm' if what == 'com_rms' else ''))
    return _table(('Residual', 'URDF', 'calibrated', 'calibrated, on poses not used',
                   'expected there'), rows) + (
        '<p>The centre of mass itself is predicted to be off by '
        f'{1e3 * found.com_error:.2f} mm rms in these poses, horizontally; residuals contain the '
        'noise of the sensors as well.</p>')


def _instrument_table(found: Identification) -> str:
    """Return the errors of the instruments that the data determine; the others are counted."""
    known = [e for e in found.instruments.estimates if e.is_significant or e.data_share > 0.5]
    known.sort(key=lambda e: (not e.is_significant, e.kind.value, e.name))
    header = 'Error', 'sd before', 'estimate', '± (95 %)', 'unit', 'remedy'
    rows = [[(e.describe(), *(f'{_scaled(e.unit)[0] * value:{form}}' for value, form in (
        (e.prior_sd, '.3g'), (e.estimate, '+.3g'), (1.96 * e.sd, '.2g'))), _scaled(e.unit)[1],
        e.remedy) for e in known if bool(e.is_significant) == significant]
        for significant in (True, False)]
    silent = len(found.instruments.estimates) - len(known)
    shown = _table(header, rows[0]) if rows[0] else (
        '<p>The poses show no error of an instrument: each may well be zero.</p>')
    return (shown + _folded(f'{len(rows[1])} more that may well be zero', header, rows[1])
            + (f'<p>The data determine little about {silent} more.</p>' if silent else '')
            + _ambiguities(found))


def _ambiguities(found: Identification) -> str:
    """Return what the poses cannot separate: one line, and tables that open with a click."""
    line = describe_ambiguities(found.ambiguities)
    return '' if not line else f'<p>{escape(line)}.</p>' + ''.join(
        _folded(f'{a.title}: {a.advice}', (
            'Error', 'above all with', 'variance left', 'if all others were known'), [
            (u.name, u.partner, f'{100.0 * u.left:.0f} %', f'{100.0 * u.alone:.0f} %')
            for u in a.unknowns]) for a in found.ambiguities)


def _folded(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that opens with a click; nothing without rows."""
    return '' if not rows else (
        f'<details><summary>{escape(title)}</summary>{_table(header, rows)}</details>')


def _scaled(unit: str) -> tuple[float, str]:
    """Return the factor to the unit in which an error is shown, and that unit."""
    return {'rad': (math.degrees(1.0), 'deg'), 'm': (1e3, 'mm')}.get(unit, (1.0, unit))


def _noise_table(found: Identification) -> str:
    rows = [(f'{n.kind} {n.name} {n.axis}', f'{_scaled(n.unit)[0] * n.assumed:.3g}',
             f'{_scaled(n.unit)[0] * n.estimated:.3g}', _scaled(n.unit)[1], f'{n.scale:.2f}')
            for n in found.noise]
    return (_table(('Sensor', 'assumed', 'estimated', 'unit', 'ratio'), rows)
            + f'<p>Captures that were left out are {found.validation_ratio:.2f} times as far off '
            'as predicted.</p>')


def _is_prior(link: LinkEstimate) -> bool:
    """Return whether the data determine next to nothing about a link."""
    return float(link.data_share.max()) < PRIOR_SHARE


def _link_tables(found: Identification) -> str:
    """Return the links that the data determine, and the others folded."""
    header = 'Link', 'URDF kg', 'kg', 'x mm', 'y mm', 'z mm', 'by data'
    known = [_link_row(link) for link in found.links if not _is_prior(link)]
    others = [_link_row(link) for link in found.links if _is_prior(link)]
    return _table(header, known) + _folded(
        f'{len(others)} more links, about which the data determine nothing: as in the URDF',
        header, others)


def _link_row(link: LinkEstimate) -> tuple[str, ...]:
    shift = 1e3 * (link.com - link.com_before)
    return (link.name, f'{link.mass_before:.3f}',
            f'{link.mass:.3f} ± {1.96 * link.mass_std:.3f}',
            *(f'{d:+.1f} ± {1.96e3 * s:.1f}' for d, s in zip(shift, link.com_std)),
            f'{100 * link.data_share.max():.0f} %')


def _knowledge(found: Identification) -> str:
    report = found.identifiability
    gain = 200.0 * report.repeat_gain / np.log1p(report.strengths).sum()
    kept = ', '.join(report.prior_only_links) or 'none'
    return (
        f'<p>The poses give information about {report.rank} of {report.unknowns} combinations of '
        'masses and first moments (mass times position of the centre of mass), and determine '
        f'{report.determined} of them better than the URDF does; {report.prior_only} stay as in '
        f'the URDF. One more pose like these would add {gain.min():.1f} to {gain.max():.1f} % to '
        'that information. The best determined combination is '
        f'{report.condition_number:.3g} times as certain as the worst of those (condition number).'
        f' Masses of the URDF were assumed to be right within {100.0 * found.mass_sigma:.0f} % '
        f'(standard deviation); measurements scatter {found.noise_scale:.2f} times as much as '
        'assumed.</p>'
        f'<p>Links whose centre of mass stays that of the URDF: {escape(kept)}.</p>')


def _pose_table(model: RobotModel, captures: Sequence[Capture], found: Identification) -> str:
    feet, rows = tuple(model.config.feet), []
    for i, capture in enumerate(captures):
        standing = ', '.join(f for f, s in zip(feet, capture.in_contact) if s) or 'hoisted'
        rows.append((pose_label(i, capture), standing,
                     *(_millimetres(r.com[i]) for r in (found.before, found.validated)),
                     f'{found.pose_misfit[i] ** 0.5:.2f}'))
    return _table(('Pose', 'standing', 'URDF mm', 'left out mm', 'misfit / noise'), rows)


def _millimetres(offset: Array) -> str:
    """Return a distance as text; hanging poses have none."""
    return f'{1e3 * np.linalg.norm(offset):.2f}' if np.isfinite(offset).all() else '-'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    kinds = [_TEXT if any(len(row[i]) > _LONGEST_VALUE for row in rows) else ''
             for i in range(len(header))]
    head = ''.join(f'<th{kind}>{escape(cell)}</th>' for cell, kind in zip(header, kinds))
    body = ''.join('<tr>' + ''.join(
        f'<td{kind}>{escape(cell)}</td>' for cell, kind in zip(row, kinds)) + '</tr>'
        for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _pose_plot(found: Identification, unit: str, series: Sequence[ArrayLike]) -> str:
    """Return a plot of dots per pose: before, after and left out, on a line from before on."""
    names, colours = [name for name, _ in found.residuals], (BEFORE, AFTER, VALIDATED)
    values = np.array(series)
    known = values[np.isfinite(values)]
    if not len(known):
        return '<p>Not measured.</p>'
    top, count, width, height = _round_top(float(known.max())), values.shape[1], 900.0, 240.0
    parts = [_axis(top, unit, width, height), _pose_numbers(count, width, height)]
    radii = (6.0, 6.5, 3.5)  # dots of left-out poses are usually on top of fitted ones

    def at(value: float) -> float:
        return height - 20.0 - (height - 40.0) * value / top

    for i, column in enumerate(values.T):
        if np.isfinite(column).sum() > 1:
            x = _pose_x(i, count, width)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{at(np.nanmin(column)):.1f}" '
                         f'y2="{at(np.nanmax(column)):.1f}" stroke="#9ca3af" stroke-width="2"/>')
    for name, colour, radius, row in zip(names, colours, radii, values):
        for i, value in enumerate(row):
            if np.isfinite(value):
                x = _pose_x(i, count, width)
                parts.append(f'<circle cx="{x:.1f}" cy="{at(value):.1f}" r="{radius}" '
                             f'fill="{colour}">'
                             f'<title>pose {i + 1}, {name}: {value:.3g} {unit}</title></circle>')
    hoisted = '' if np.isfinite(values).any(axis=0).all() else (
        '<p>Poses without a dot: hoisted, where the feet measure no centre of mass.</p>')
    return _legend(list(zip(names, colours))) + hoisted + _svg(width, height, parts)


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


def _pose_x(i: int, count: int, width: float) -> float:
    return 50.0 + (width - 60.0) * (i + 0.5) / count


def _pose_numbers(count: int, width: float, height: float) -> str:
    """Return the numbers of the poses below their dots; of many, some."""
    step = -(-count // 20)
    return f'<text x="0" y="{height - 3:.1f}">pose</text>' + ''.join(
        f'<text x="{_pose_x(i, count, width):.1f}" y="{height - 3:.1f}" '
        f'text-anchor="middle">{i + 1}</text>' for i in range(0, count, step))


def _shift_plot(found: Identification) -> str:
    """Return a bar plot of the shift of each link's centre of mass per axis, with intervals."""
    links = sorted((link for link in found.links if not _is_prior(link)),
                   key=lambda link: -link.mass)[:24]
    if not links:
        return '<p>The data determine no single link.</p>'
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
        for axis, (_, colour) in enumerate(AXES):
            parts.append(_bar(y + 9 * axis, shift[i, axis], spread[i, axis], top, colour, middle))
    return (_legend(AXES) + '<p>Along the axes of the link; heaviest links first.</p>'
            + _svg(width, height, parts))


def _bar(y: float, value: float, spread: float, top: float, colour: str, middle: float) -> str:
    scale = 340.0 / top
    x, low, high = (middle + scale * v for v in (value, value - spread, value + spread))
    return (f'<rect x="{min(x, middle):.1f}" y="{y:.1f}" width="{abs(x - middle):.1f}" '
            f'height="6" fill="{colour}" opacity=".8"/><line x1="{low:.1f}" x2="{high:.1f}" '
            f'y1="{y + 3:.1f}" y2="{y + 3:.1f}" stroke="#111827" stroke-width="1.2"/>')


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return ('<div class="wide"><svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
            f'{"".join(parts)}</svg></div>')
