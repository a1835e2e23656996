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
"""Draws the torso's experiment as SVG, without any plotting package."""

from __future__ import annotations

from collections.abc import Sequence
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.workspace import Workspace
import numpy as np

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 48
COLOURS = ('#2a6fbb', '#d1552b', '#3d8f4f', '#8a6bbf')
PEAK_SAMPLES = 20
"""Samples of which the largest acceleration is drawn."""

Curve = tuple[str, Any, Any]


class Figure:
    """
    A picture with axes and curves.

    Parameters
    ----------
    title, x_label, y_label
        Words.
    x_range, y_range
        Least and largest value shown.
    is_square
        Whether both axes have the same scale.

    """

    def __init__(self, title: str, x_label: str, y_label: str, x_range: tuple[float, float],
                 y_range: tuple[float, float], is_square: bool = False) -> None:
        self._ranges = x_range, y_range
        self._width = HEIGHT - TOP - BOTTOM if is_square else WIDTH - LEFT - RIGHT
        total = self._width + LEFT + RIGHT + (170 if is_square else 0)
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{total}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="20" font-size="14">{title}</text>']
        self._draw_axes(x_label, y_label)
        self._legend = 0
        self._is_square = is_square

    def add(self, curve: Curve, colour: str, dots: bool = False) -> None:
        """Draw a curve (name, xs, ys); `dots` draws points instead of a line."""
        name, xs, ys = curve
        points = [self._place(float(x), float(y)) for x, y in zip(xs, ys)]
        if dots:
            self._parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.2" fill="{colour}"/>'
                            for x, y in points]
        else:
            line = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
            self._parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" '
                               'stroke-width="1.3"/>')
        if name:
            self._name(name, colour)

    def write(self, path: Path) -> Path:
        """Write the picture."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('\n'.join([*self._parts, '</svg>', '']), encoding='utf-8')
        return path

    def _name(self, name: str, colour: str) -> None:
        x, y = ((LEFT + self._width + 14, TOP + 14 + 18 * self._legend) if self._is_square
                else (LEFT + 10 + 150 * self._legend, TOP + 14))
        self._parts.append(f'<rect x="{x}" y="{y - 8}" width="14" height="4" fill="{colour}"/>'
                           f'<text x="{x + 20}" y="{y}">{name}</text>')
        self._legend += 1

    def _place(self, x: float, y: float) -> tuple[float, float]:
        (x0, x1), (y0, y1) = self._ranges
        height = HEIGHT - TOP - BOTTOM
        return (LEFT + self._width * (x - x0) / (x1 - x0),
                TOP + height * (y1 - y) / (y1 - y0))

    def _draw_axes(self, x_label: str, y_label: str) -> None:
        (x0, x1), (y0, y1) = self._ranges
        left, top = self._place(x0, y1)
        right, bottom = self._place(x1, y0)
        for value in _ticks(x0, x1):
            x = self._place(value, y0)[0]
            self._parts.append(
                f'<path d="M{x:.1f} {top}V{bottom}" stroke="#e4e4e4"/><text x="{x:.1f}" '
                f'y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
        for value in _ticks(y0, y1):
            y = self._place(x0, value)[1]
            self._parts.append(
                f'<path d="M{left} {y:.1f}H{right}" stroke="#e4e4e4"/><text x="{left - 6}" '
                f'y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        middle = 0.5 * (top + bottom)
        self._parts.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" '
            f'fill="none" stroke="#888"/><text x="{0.5 * (left + right):.1f}" '
            f'y="{bottom + 36}" text-anchor="middle">{x_label}</text>'
            f'<text transform="translate(16 {middle:.1f}) rotate(-90)" '
            f'text-anchor="middle">{y_label}</text>')


def _ticks(low: float, high: float) -> Sequence[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 2.0))
    step *= next(k for k in (1.0, 2.0, 5.0, 10.0) if (high - low) / (k * step) <= 8.0)
    return [round(k * step, 9) for k in range(math.ceil(low / step - 1e-9),
                                              math.floor(high / step + 1e-9) + 1)]


def draw(closed: Any, opened: Any, loaded: tuple[Any, Any], body: TorsoBody,
         directory: Path) -> list[Path]:
    """Draw what the paper shows in its Figures 5, 9, 10 and 11, and a load; return the files."""
    return [
        _draw_workspace(body).write(directory / 'torso_workspace.svg'),
        _draw_bend('Bend and torsion of the torso', closed, opened).write(
            directory / 'torso_bend.svg'),
        draw_load(*loaded).write(directory / 'torso_load.svg'),
        _draw_path(closed, body).write(directory / 'torso_path.svg'),
        _draw_acceleration(closed).write(directory / 'torso_acceleration.svg')]


def draw_load(closed: Any, opened: Any) -> Figure:
    """Draw Figure 9 again, with an unknown load in one hand."""
    return _draw_bend('The same with 0.5 kg in one hand and a stiffness 20 % too low',
                      closed, opened)


def _draw_workspace(body: TorsoBody) -> Figure:
    """Figure 5: what the tip reaches, seen from the side."""
    points = 1e3 * Workspace(body.backbone, body.max_bend).points(9, 36)
    reach = 1.15 * np.abs(points[:, 0]).max()
    figure = Figure('What the tip of the backbone reaches', 'x [mm]', 'z [mm]',
                    (-reach, reach), (points[:, 2].min() - 0.2, points[:, 2].max() + 0.4))
    figure.add(('', points[:, 0], points[:, 2]), COLOURS[0], dots=True)
    return figure


def _draw_bend(title: str, closed: Any, opened: Any) -> Figure:
    """Figure 9: bend and torsion over time."""
    highest = max(19.0, 1.15 * math.degrees(np.hypot(*opened.bends.T).max()))
    figure = Figure(title, 'time [s]', 'angle [deg]', (0.0, float(closed.times[-1])),
                    (-2.0, highest))
    thin = slice(None, None, 40)
    for name, values, colour in (
            ('open loop', np.hypot(*opened.bends.T), COLOURS[1]),
            ('closed loop', np.hypot(*closed.bends.T), COLOURS[0]),
            ('torsion', closed.torsions, COLOURS[2])):
        figure.add((name, closed.times[thin], np.degrees(values[thin])), colour)
    return figure


def _draw_path(closed: Any, body: TorsoBody) -> Figure:
    """Figure 10: the path in the workspace, from above."""
    limit = math.degrees(body.max_bend)
    figure = Figure('Path of the bend, from above', 'forward [deg]', 'left [deg]',
                    (-1.2 * limit, 1.2 * limit), (-1.2 * limit, 1.2 * limit), is_square=True)
    turn = np.linspace(0.0, 2.0 * math.pi, 181)
    figure.add(('workspace', limit * np.cos(turn), limit * np.sin(turn)), COLOURS[1])
    bends = np.degrees(closed.bends[::10])
    figure.add(('torso', bends[:, 0], bends[:, 1]), COLOURS[0])
    return figure


def _draw_acceleration(closed: Any) -> Figure:
    """Figure 11: angular acceleration across and along the backbone, its peaks."""
    figure = Figure('Angular acceleration of the upper torso', 'time [s]',
                    'acceleration [rad/s²]', (0.0, float(closed.times[-1])), (0.0, 40.0))
    figure.add(('limit of the paper', (0.0, closed.times[-1]), (36.0, 36.0)), '#888888')
    count = len(closed.accelerations) // PEAK_SAMPLES
    rows = closed.accelerations[:count * PEAK_SAMPLES].reshape(count, PEAK_SAMPLES, 3)
    times = closed.times[1:1 + count * PEAK_SAMPLES:PEAK_SAMPLES]
    figure.add(('across', times, np.linalg.norm(rows[..., :2], axis=2).max(axis=1)), COLOURS[0])
    figure.add(('along', times, np.abs(rows[..., 2]).max(axis=1)), COLOURS[2])
    return figure
