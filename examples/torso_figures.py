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
"""Draws the torso's experiment as the paper does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.torso import TorsoBody, Workspace
from examples.figures import chart, COLOURS, GREY, save, SQUARE
import numpy as np

PEAK_SAMPLES = 20
"""Samples of which the largest acceleration is drawn: 40 ms."""

EVERY = 10
"""Of the simulator's samples, how many make a point of a curve."""


def draw(closed: Any, opened: Any, loaded: tuple[Any, Any], body: TorsoBody,
         directory: Path) -> list[Path]:
    """Draw what the paper shows in its Figures 5 and 8 to 12, and a load; return the files."""
    figures = {
        'workspace': _draw_workspace(body),
        'raw': _draw_raw(closed),
        'bend': _draw_bend('Bend and torsion of the torso', closed, opened),
        'load': _draw_bend('The same with 0.5 kg in one hand and a stiffness 20 % too low',
                           *loaded),
        'path': _draw_path(closed, body),
        'acceleration': _draw_acceleration(closed),
        'power': _draw_power(closed)}
    return [save(axes, directory / f'torso_{name}.svg') for name, axes in figures.items()]


def _draw_workspace(body: TorsoBody) -> Any:
    """Figure 5: the workspace of the tip from the side."""
    points = 1e3 * Workspace(body.backbone, body.max_bend).points(9, 36)
    axes = chart('What the tip of the backbone reaches', 'x [mm]', 'z [mm]')
    axes.plot(points[:, 0], points[:, 2], '.', markersize=3)
    return axes


def _draw_raw(closed: Any) -> Any:
    """Figure 8: the bend about the axes x and y of the upper torso, by its IMU."""
    axes, thin = chart('Bend about the axes of the upper torso', 'time [s]', 'angle [deg]'), EVERY
    forward, left = np.degrees(closed.bends[::thin]).T
    for name, values in (('about x (to the right)', -left), ('about y (forward)', forward)):
        axes.plot(closed.times[::thin], values, label=name, linewidth=1.2)
    axes.set(xlim=(0.0, closed.times[-1]), ylim=(-18.0, 24.0))
    return axes


def _draw_power(closed: Any) -> Any:
    """Figure 12: the electric power of the four tendon servos."""
    axes = chart('Electric power of the four tendon servos', 'time [s]', 'power [W]')
    power = closed.power
    count = len(power) // PEAK_SAMPLES
    rows = power[:count * PEAK_SAMPLES].reshape(count, PEAK_SAMPLES)
    times = closed.times[1:1 + count * PEAK_SAMPLES:PEAK_SAMPLES]
    axes.plot(times, rows.max(axis=1), label='largest of 40 ms', linewidth=1.0)
    axes.plot(times, rows.mean(axis=1), label='mean of 40 ms', linewidth=1.2)
    axes.set(xlim=(0.0, closed.times[-1]), ylim=(0.0, 1.3 * power.max()))
    return axes


def _draw_bend(title: str, closed: Any, opened: Any) -> Any:
    """Figure 9: bend and torsion over time."""
    axes, thin = chart(title, 'time [s]', 'angle [deg]'), slice(None, None, EVERY)
    for name, values, colour, width in (
            ('open loop', np.hypot(*opened.bends.T), COLOURS[1], 1.2),
            ('closed loop', np.hypot(*closed.bends.T), COLOURS[0], 1.2),
            ('reference', np.hypot(*closed.references.T), '#202020', 0.6),
            ('torsion', closed.torsions, COLOURS[2], 1.2)):
        axes.plot(closed.times[thin], np.degrees(values[thin]), color=colour, label=name,
                  linewidth=width)
    highest = math.degrees(np.hypot(*opened.bends.T).max())
    axes.set(xlim=(0.0, closed.times[-1]), ylim=(-3.0, 1.35 * highest))
    return axes


def _draw_path(closed: Any, body: TorsoBody) -> Any:
    """Figure 10: the path in the workspace, from above."""
    limit, turn = math.degrees(body.max_bend), np.linspace(0.0, 2.0 * math.pi, 181)
    axes = chart('Path of the bend, from above', 'forward [deg]', 'left [deg]', SQUARE)
    axes.plot(limit * np.cos(turn), limit * np.sin(turn), color=GREY, label='workspace')
    for name, bends, colour in (('reference', closed.references, '#202020'),
                                ('torso', closed.bends, COLOURS[0])):
        axes.plot(*np.degrees(bends[::EVERY]).T, color=colour, label=name, linewidth=0.8)
    axes.set_ylim(-1.2 * limit, 1.5 * limit)
    return axes


def _draw_acceleration(closed: Any) -> Any:
    """Figure 11: angular acceleration across and along the backbone, its peaks."""
    axes = chart('Angular acceleration of the upper torso', 'time [s]', 'acceleration [rad/s²]')
    axes.axhline(36.0, color=GREY, linestyle='--', label='limit of the paper')
    count = len(closed.accelerations) // PEAK_SAMPLES
    rows = closed.accelerations[:count * PEAK_SAMPLES].reshape(count, PEAK_SAMPLES, 3)
    times = closed.times[1:1 + count * PEAK_SAMPLES:PEAK_SAMPLES]
    axes.plot(times, np.linalg.norm(rows[..., :2], axis=2).max(axis=1), label='across')
    axes.plot(times, np.abs(rows[..., 2]).max(axis=1), label='along')
    axes.set(xlim=(0.0, closed.times[-1]), ylim=(0.0, 46.0))
    return axes
