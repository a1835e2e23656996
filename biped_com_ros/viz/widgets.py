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

"""Parts of the page as HTML: figures, bars, the legend, diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
import math

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.viz import palette
from biped_com_ros.viz.charts import SPAN
from biped_com_ros.viz.view import HealthLine, POINT, View
import numpy as np

# Colours of the page's theme, light or dark.
_TEXT = 'font-size:12.5px;line-height:1.45;padding:2px 14px 2px 10px;'
_FAINT = 'color:var(--mantine-color-dimmed);'
_ABSENT = 'color:var(--mantine-color-placeholder)'
_TRACK = 'rgba(128,140,158,0.18)'
_NUMBER = 'font-variant-numeric:tabular-nums;text-align:right;white-space:nowrap;'
#: Shares of a limit from which bars are yellow, and red.
_HIGH, _FULL = 0.7, 0.95
#: Longer times to the edge, s, are not shown: any standing robot has them.
_SOON = 0.5
#: Larger numbers are shown with an exponent: no robot has them, and they must not widen the page.
_WIDE = 1e6
#: Class of what is shown on a narrow screen only.
_BRIEF = 'biped-com-brief'
#: On a narrow screen viser shows all panels in a sheet over the lower part of the page. This style
#: lets the sheet have the full width, and puts the figures above the controls. With other versions
#: of viser, whose markup differs, it has no effect.
NARROW = ('<style>'
          f'.{_BRIEF}{{display:none}}'
          '@media (max-width:36em){'
          f'.{_BRIEF}{{display:block}}'
          '.mantine-Paper-root[style*="width: 20em"]'
          '{width:100%!important;max-height:50%!important}'
          '.mantine-Paper-root [style*="width: 20em"]{width:100%!important}'
          '.mantine-Paper-root [style*="width: 20em"]>:last-child'
          '{display:flex;flex-direction:column}'
          # A chart takes the width of what holds it, which takes that of the chart and of its
          # frame: without a limit both grow with every update.
          '.uplot-container{max-width:calc(100vw - 18px)}'
          '.mantine-Paper-root [style*="width: 20em"]>:last-child>:nth-child(3){order:1}'
          '}</style>')

#: Terms of the page.
GLOSSARY = {
    'CoM': 'Centre of mass: the point at which the whole weight acts.',
    'URDF': 'The file that describes the robot. Its masses often differ from the real ones.',
    'CoM fused with forces': 'The centre of mass estimated from the URDF and the forces at the '
                             'feet. Its height is estimated while the robot sways.',
    'error': 'Distance from the true centre of mass, which only the simulator has: horizontal, '
             'and how much too high or too low.',
    'support': 'Support polygon: the convex hull of the soles in contact.',
    'ZMP': 'Zero-moment point: where the resultant force of the ground acts. When it reaches the '
           'edge of the support polygon, the robot begins to tip. On two feet it is between the '
           'soles. Where it is outside of the polygon, something else carries or pushes the '
           'robot, a sensor is wrong, or the motion needs more than the ground can give.',
    'DCM': 'Divergent component of motion: the point towards which the centre of mass diverges. '
           'Once it is outside the support polygon, only a step prevents a fall.',
    'to the edge': 'Distance of the ZMP from the edge of the support polygon.',
    'tare': 'Measure and subtract the offsets of the force sensors, with the feet in the air.',
    'feedforward': 'Joint torques that carry the weight, computed from the model, so that the '
                   'robot does not sag.',
    'calibration': 'Estimate the true masses of the links from measurements at the feet in '
                   'several poses.'}


def box(content: str) -> str:
    """Return HTML in the page's font and margins."""
    return f'<div style="{_TEXT}">{content}</div>'


def paragraph(text: str, age: float = 0.0) -> str:
    """Return plain text, grey with its age, s, if it is stale."""
    return box(f'<span style="overflow-wrap:anywhere">{aged(escape(text), age)}</span>')


def dot(colour: palette.Colour, flat: bool = False) -> str:
    """Return a coloured spot; a flat one for points on the ground."""
    height, radius = ('6px', '3px') if flat else ('10px', '5px')
    return (f'<span style="display:inline-block;width:10px;height:{height};border-radius:{radius};'
            f'background:{palette.css(colour)};margin-right:7px;vertical-align:middle;'
            'flex:none"></span>')


def number(value: float, unit: str, digits: int = 1, age: float = 0.0) -> str:
    """Return a number with its unit, or a dash; a stale one grey and with its age, s."""
    if not math.isfinite(value):
        return f'<span style="{_ABSENT}">–</span>'
    return aged(
        f'{_narrow(value, digits)}&thinsp;<span style="{_FAINT}">{unit}</span>', age)


def aged(content: str, age: float) -> str:
    """Return HTML as it is, or, of something stale, grey and with its age, s."""
    return content if not age else (
        f'<span style="{_ABSENT}">{content} <i>{ago(age)}</i></span>')


def ago(age: float) -> str:
    """Return an age, s, in words."""
    return f'{age:.0f} s ago' if age < 100.0 else f'{age / 60.0:.0f} min ago'


def _narrow(value: float, digits: int) -> str:
    """Return a number in at most ten characters or so, however large it is."""
    if not math.isfinite(value):
        return '–'
    if abs(value) >= _WIDE:
        return f'{value:.2g}'
    return f'{round(value, digits) + 0.0:.{digits}f}'  # never -0


_CALIBRATED = 'CoM by the calibrated URDF'
"""Label of the CoM once the nodes use what a calibration has found."""


def legend(view: View) -> str:
    """Return the legend: colours, coordinates and errors of the points."""
    rows = []
    for kind, mark in palette.MARKS.items():
        point, age = view.latest(kind, POINT)
        error = view.offset(kind) if kind in ('com', 'fused', 'uncalibrated') else None
        name = _CALIBRATED if kind == 'com' and view.point('uncalibrated') is not None else (
            mark.label)
        label = escape(name) if point is not None and not age else (
            f'<span style="{_ABSENT}">{escape(name)}</span>')
        spot = dot(palette.QUIET if age else mark.colour, mark.on_ground)
        # A second line begins below the first one's text, not below its spot.
        rows.append((f'<div style="padding-left:17px;text-indent:-17px">{spot}{label}</div>',
                     '' if point is None else aged(_coordinates(point, mark.on_ground), age),
                     '' if error is None else _error(*error)))
    others = (dot(palette.LINK_COM) + 'CoM of a link',
              _line(palette.FORCE) + 'force on a foot or hand',
              _line(palette.GOOD) + 'support polygon, by margin',
              _line(palette.MARKS['com'].colour) + 'CoM region at rest (uneven ground, hands)')
    head = [f'<span style="{_FAINT}">{column}</span>'
            for column in ('what is drawn', 'x, y, z [mm]',
                           'error, horizontal<br>and height [mm]')]
    return box(_table([head, *rows]) + '<div style="display:flex;flex-wrap:wrap;gap:2px 14px;'
               'margin-top:5px">' + ''.join(f'<span>{one}</span>' for one in others) + '</div>'
               f'<div style="{_FAINT}margin-top:5px">Charts: the last {SPAN:.0f} s. Errors: only '
               'while a foot stands; in the air nothing locates the robot.</div>')


def _error(horizontal: float, up: float) -> str:
    """Return a horizontal and a vertical error, m, as text."""
    return (f'{_narrow(1e3 * horizontal, 2)}, {_narrow(1e3 * abs(up), 1)} '
            f'{"high" if up >= 0.0 else "low"}')


def _line(colour: palette.Colour) -> str:
    return ('<span style="display:inline-block;width:14px;height:3px;border-radius:2px;background:'
            f'{palette.css(colour)};margin-right:6px;vertical-align:middle"></span>')


def _coordinates(point: Array, on_ground: bool) -> str:
    # round() and the sum make zero of -0.4, not -0.
    return ', '.join(_narrow(round(1e3 * float(value), 0) + 0.0, 0)
                     for value in point[:2 if on_ground else 3])


def _table(rows: Iterable[Sequence[str]]) -> str:
    body = ''.join(
        '<tr>' + ''.join(
            f'<td style="padding:1px 0 1px {0 if i == 0 else 12}px;{_NUMBER if i else ""}">'
            f'{cell}</td>' for i, cell in enumerate(row)) + '</tr>' for row in rows)
    return f'<table style="width:100%;border-collapse:collapse">{body}</table>'


def headline(view: View) -> str:
    """
    Return the stability margin in large letters, the stance and the forces, with ages.

    Of a robot that has fallen only that: nothing else means anything then.
    """
    if view.has_fallen:
        return box(_fallen(view))
    forces = _vertical_forces(view)
    known = [(force, age) for force, age in forces.values() if math.isfinite(force)]
    total = sum(force for force, _ in known) if known else math.nan
    phase, phase_age = view.latest('phase')
    rows = [('stands on', aged(escape(_stance(phase)), phase_age)),
            *_weight(view, total, max((age for _, age in known), default=0.0))]
    rows += [(f'{escape(name)} foot', number(force, 'N', age=age))
             for name, (force, age) in forces.items()]
    if view.time_to_edge < _SOON:
        rows.append(('time to the edge', number(view.time_to_edge, 's', 2)))
    _, age = view.latest('positions')
    if age:
        rows.append(('joints, as drawn', aged('', age)))
    return box(_margin(view) + _table(rows))


def _weight(view: View, total: float, age: float) -> list[tuple[str, str]]:
    """Return rows that compare the weight above the sensors, and name what is only assumed."""
    urdf = 'the calibrated URDF' if view.is_calibrated else 'the URDF'
    below = view.weight_below_sensors
    weights = (f'{number(total - below, "N", age=age)} / '
               f'{number(view.weight - below, "N")}')
    if not below:
        return [(f'weight measured / by {urdf}', weights)]
    return [(f'above the sensors, measured / by {urdf}', weights),
            (f'below them, not measured, by {urdf}', number(below, 'N'))]


def _vertical_forces(view: View) -> dict[str, tuple[float, float]]:
    """Return the vertical force on each foot, N, and its age, s."""
    forces = {}
    for name in view.feet:
        wrench, age = view.latest('wrench', name)
        forces[name] = float(wrench[2]), age
    return forces


def brief(view: View) -> str:
    """Return the margin, the CoM and the forces on the feet, or a fall, for a narrow screen."""
    if view.has_fallen:
        return f'<div class="{_BRIEF}">{box(_fallen(view))}</div>'
    com, age = view.latest('com', POINT)
    rows = [('CoM [mm]', '–' if com is None else aged(_coordinates(com, False), age))]
    rows += [(f'{escape(name)} foot', number(force, 'N', age=age))
             for name, (force, age) in _vertical_forces(view).items()]
    cells = ''.join(f'<span><span>{label}</span>&ensp;<b>{value}</b></span>'
                    for label, value in rows)
    return (f'<div class="{_BRIEF}">' + box(
        f'{_margin(view)}<div style="display:flex;flex-wrap:wrap;gap:0 1.2em">{cells}</div>')
        + '</div>')


def _margin(view: View) -> str:
    value, age = view.latest('margin')
    margin = ('margin unknown' if not math.isfinite(value) else
              f'{_narrow(1e3 * value, 0)} mm to the edge' if value > 0.0 else
              f'{_narrow(1e3 * abs(value), 0)} mm over the edge')
    colour = palette.QUIET if age else palette.of_margin(value)
    return _large(margin, colour, age)


def _fallen(view: View) -> str:
    _, age = view.latest('level')
    return _large('the robot has fallen', palette.QUIET if age else palette.BAD, age)


def _large(text: str, colour: palette.Colour, age: float) -> str:
    return ('<div style="display:flex;align-items:center;margin:2px 0 4px;font-size:17px;'
            f'font-weight:600">{dot(colour)}{aged(text, age)}</div>')


def _stance(phase: str) -> str:
    foot = phase.removeprefix('single ')
    return {'double': 'both feet', 'flight': 'nothing', '': '–'}.get(
        phase, f'the {foot} foot' if foot != phase else phase)


def story(view: View) -> str:
    """Return what the demo does, and whether one may push the robot."""
    if not view.story:
        return ''
    heading, _, activity = view.story.partition(': ') if view.chapter else (
        'The chapters are over', '', view.story)
    may = ('Please do not push: the demo measures' if view.chapter else
           'You may push it, bend it, let it walk')
    return box(f'<div style="font-weight:600">{escape(heading)}</div>'
               f'<div style="overflow-wrap:anywhere">The robot {escape(activity)}.</div>'
               f'<div style="{_FAINT}">{may}.</div>')


def results(view: View) -> str:
    """Return the table of the demo's last chapter: title, rows, and sentences below them."""
    if not view.results:
        return ''
    title, *lines = view.results.split('\n')
    label = 'display:inline-block;min-width:7.5em;'
    rows = [[f'<span style="{"" if i else label}white-space:normal">{escape(cell)}</span>'
             for i, cell in enumerate(line.split('\t'))] for line in lines if '\t' in line]
    sentences = ''.join(f'<div style="overflow-wrap:anywhere;{_FAINT}">{escape(line)}</div>'
                        for line in lines if line and '\t' not in line)
    return box('<details open><summary style="cursor:pointer">'
               f'{escape(title)}</summary><div style="max-height:32vh;overflow:auto">'
               f'{_table(rows)}{sentences}</div></details>')


def effort_bars(names: Sequence[str], groups: Mapping[str, Sequence[str]], efforts: Array | None,
                limits: Array, feedforward: Mapping[str, float], age: float = 0.0) -> str:
    """
    Return one bar per joint: effort relative to its limit, to both sides of zero.

    Parameters
    ----------
    names, limits
        Joints, and the effort limit of each, N m or N; 0: unknown.
    groups
        Names by group.
    efforts
        Measured, in the order of the names; None: not measured.
    feedforward
        Commanded by gravity_compensation, by name; drawn as a stroke.
    age
        Of efforts that are stale, s; 0: they are not.

    """
    index = {name: i for i, name in enumerate(names)}
    grouped = [name for members in groups.values() for name in members]
    everything = {**groups, 'others': [name for name in names if name not in grouped]}
    parts = []
    for group, members in everything.items():
        rows = [_bar(name, math.nan if efforts is None else float(efforts[index[name]]),
                     float(limits[index[name]]), feedforward.get(name, math.nan))
                for name in members if name in index]
        if rows:
            parts.append(f'<div style="font-weight:600;margin:7px 0 1px">'
                         f'{escape(group.replace("_", " "))}</div>' + ''.join(rows))
    head = (f'<div style="{_FAINT}">measured effort against its limit'
            + (', | feedforward' if feedforward else '') + '</div>')
    return box(head + _faded(''.join(parts), age))


def _faded(content: str, age: float) -> str:
    """Return HTML with pale colours, and its age, if it is stale."""
    return content if not age else (
        f'{aged("", age)}<div style="opacity:0.4;filter:grayscale(1)">{content}</div>')


def _bar(name: str, effort: float, limit: float, feedforward: float) -> str:
    share = effort / limit if limit > 0.0 and math.isfinite(effort) else 0.0
    shown = max(-1.0, min(share, 1.0))
    colour = (palette.BAD if abs(share) >= _FULL else
              palette.FAIR if abs(share) >= _HIGH else palette.FORCE)
    left = 50.0 + 50.0 * min(shown, 0.0)
    stroke = ''
    if limit > 0.0 and math.isfinite(feedforward):
        at = 50.0 + 50.0 * max(-1.0, min(feedforward / limit, 1.0))
        stroke = (f'<span style="position:absolute;left:calc({at:.1f}% - 1px);top:-1px;width:2px;'
                  'height:11px;background:currentColor"></span>')
    return (
        '<div style="display:flex;align-items:center;gap:8px;height:16px">'
        '<span style="width:116px;flex:none;overflow:hidden;text-overflow:ellipsis;white-space:'
        f'nowrap" title="{escape(name)}">{escape(name)}</span>'
        f'<span style="position:relative;flex:1;height:9px;background:{_TRACK};border-radius:2px">'
        f'<span style="position:absolute;left:{left:.1f}%;width:{50.0 * abs(shown):.1f}%;'
        f'height:9px;background:{palette.css(colour)};border-radius:2px"></span>'
        '<span style="position:absolute;left:50%;width:1px;height:9px;background:#9ca3af"></span>'
        f'{stroke}</span><span style="width:104px;flex:none;{_NUMBER}">'
        f'{_plain(effort)} / {_plain(limit) if limit > 0.0 else "?"}'
        f'&thinsp;<span style="{_FAINT}">N&thinsp;m</span></span></div>')


def _plain(value: float) -> str:
    return _narrow(value, 0 if abs(value) >= 100.0 else 1 if abs(value) >= 10.0 else 2)


def tendons(view: View, largest: float) -> str:
    """Return the tendons' lengths and tensions, and the bend of the torso, with ages."""
    (lengths, age), (tensions, _), (expected, _), (torso, torso_age) = map(view.latest, (
        'tendon_lengths', 'tensions', 'expected_tensions', 'torso'))
    count = max(len(lengths), len(tensions), len(expected))
    if not count:
        return box(f'<span style="{_FAINT}">no data from tendon_states and '
                   'torso_controller</span>')
    top = max(largest, float(np.nanmax(tensions, initial=0.0)), 1.0)
    rows = [(f'tendon {i}', number(1e3 * _at(lengths, i), 'mm'),
             _tension_bar(_at(tensions, i), top), number(_at(tensions, i), 'N'),
             number(_at(expected, i), 'N')) for i in range(count)]
    head = tuple(f'<span style="{_FAINT}">{word}</span>'
                 for word in ('', 'length', 'tension', 'measured', 'model'))
    bend, direction, elongation = torso
    return box(_faded(_table([head, *rows]), age) + _faded(_table([
        ('torso is bent by', number(math.degrees(bend), '°', 2)),
        ('towards (0 forward, 90 left)', number(math.degrees(direction), '°', 0)),
        ('elongation', number(1e3 * elongation, 'mm', 2))]), torso_age))


def _at(values: Array, i: int) -> float:
    return float(values[i]) if i < len(values) else math.nan


def _tension_bar(tension: float, top: float) -> str:
    share = 100.0 * max(0.0, min(tension / top, 1.0)) if math.isfinite(tension) else 0.0
    return ('<span style="display:inline-block;position:relative;width:70px;height:8px;background:'
            f'{_TRACK};border-radius:2px"><span style="position:absolute;left:0;height:8px;width:'
            f'{share:.0f}%;background:{palette.css(palette.TENDON)};border-radius:2px"></span>'
            '</span>')


def health(reports: Sequence[HealthLine]) -> str:
    """Return the diagnostics that are not OK, worst first, and the number of those that are."""
    if not reports:
        return box(f'<span style="{_FAINT}">nothing received on /diagnostics</span>')
    order = {2: 0, 3: 1, 1: 2}
    bad = sorted((report for report in reports if report.level),
                 key=lambda report: (order.get(report.level, 3), report.name))
    rows = [
        f'<div style="display:flex;margin:3px 0">{dot(palette.of_level(report.level))}'
        f'<span style="min-width:0;overflow-wrap:anywhere"><b>{escape(report.name)}</b><br>'
        f'{escape(report.message)}</span></div>' for report in bad]
    well = len(reports) - len(bad)
    nodes = sorted({report.name.partition(':')[0] for report in reports})
    rows.append(f'<div style="margin-top:4px">{dot(palette.GOOD)}{well} of {len(reports)} checks '
                f'are OK <span style="{_FAINT}">({escape(", ".join(nodes))})</span></div>')
    return box(''.join(rows))


def glossary() -> str:
    """Return the glossary."""
    return box(''.join(f'<div style="margin-bottom:6px"><b>{escape(term)}</b><br>{escape(meaning)}'
                       '</div>' for term, meaning in GLOSSARY.items()))


def note(text: str, good: bool | None = None) -> str:
    """Return text with a green or red spot, grey for None."""
    colour = palette.QUIET if good is None else palette.GOOD if good else palette.BAD
    return box(f'<div style="display:flex;align-items:baseline">{dot(colour)}'
               f'<span style="overflow-wrap:anywhere">{escape(text)}</span></div>')


def before_after(before: float, after: float) -> str:
    """Return the errors of the CoM before and after a calibration, m."""
    gain = before / after if after > 0.0 else math.inf
    return box(_table([
        ('<b>error of the CoM, in 3-D</b>', ''), ('by the URDF', number(1e3 * before, 'mm', 2)),
        ('by the calibrated URDF', number(1e3 * after, 'mm', 2)),
        ('improvement', f'{_narrow(gain, 0)} times' if math.isfinite(gain) else '–')]))
