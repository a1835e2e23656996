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
"""Draws the single step as SVG: the paper's Figures 2 and 4 (zero-moment point), 5 and 6."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.torso_figures import COLOURS, Figure, LEFT, TOP
from biped_com_ros.core.legs.gait import Gait
import numpy as np

SIX = (*COLOURS, '#c9a227', '#4d4d4d')
ZMP = 'Zero-moment point of a single step'
EVERY = 10
"""Of the simulator's samples, how many make a point of a curve."""


class _Chart(Figure):
    """A figure with its legend in two rows of three."""

    _names = 0

    def _name(self, name: str, colour: str) -> None:
        column, row = self._names % 3, self._names // 3
        x, y = LEFT + 12 + 160 * column, TOP + 16 + 16 * row
        self._parts.append(f'<rect x="{x}" y="{y - 7}" width="14" height="4" fill="{colour}"/>'
                           f'<text x="{x + 20}" y="{y}">{name}</text>')
        self._names += 1


def draw(gait: Gait, record: Any, directory: Path) -> list[Path]:
    """Draw a gait and the record of its walk; return the files."""
    count = int(np.searchsorted(record.times, gait.duration, side='right'))
    shown = replace(record, times=record.times[:count], zmp=record.zmp[:count],
                    reference=record.reference[:count], velocities=record.velocities[:count])
    return _draw(gait, shown, directory)


def _draw(gait: Gait, record: Any, directory: Path) -> list[Path]:
    return [
        _draw_path(gait, record).write(directory / 'step_zmp_path.svg'),
        _draw_time(gait, record).write(directory / 'step_zmp_time.svg'),
        *(_draw_speeds(gait, record, group, number).write(directory / f'step_speeds_{group}.svg')
          for number, group in ((5, 'right_leg'), (6, 'left_leg')))]


def _draw_path(gait: Gait, record: Any) -> Figure:
    """Draw Figures 2 and 4 from above: forward is to the right."""
    figure = _Chart(f'{ZMP}, from above', 'forward [mm]', 'left [mm]', (-100, 200), (-110, 150))
    for time, name in ((0.0, 'soles'), (gait.duration, '')):
        for i, foot in enumerate(gait.model.config.feet.values()):
            x, y, _, yaw = gait.plan.soles(time)[i]
            c, s = np.cos(yaw), np.sin(yaw)
            corners = np.array((*foot.polygon, foot.polygon[0])) @ np.array(((c, s), (-s, c)))
            figure.add((name if i == 0 else '', *(1e3 * (corners + (x, y))).T), '#b0b0b0')
    thin = slice(None, None, EVERY)
    figure.add(('actual', *(1e3 * record.zmp[thin]).T), COLOURS[1])
    figure.add(('ideal', *(1e3 * record.reference[thin]).T), COLOURS[0])
    return figure


def _draw_time(gait: Gait, record: Any) -> Figure:
    """Draw Figures 2 and 4 over time."""
    figure = _Chart(f'{ZMP} over time', 'time [s]', 'position [mm]', (0.0, gait.duration),
                    (-40, 90))
    thin = slice(None, None, EVERY)
    for i, name in ((1, 'left'), (0, 'forward')):
        figure.add((f'{name}, actual', record.times[thin], 1e3 * record.zmp[thin, i]),
                   COLOURS[1 + i])
        figure.add((f'{name}, ideal', record.times[thin], 1e3 * record.reference[thin, i]),
                   (COLOURS[3], COLOURS[0])[i])
    return figure


def _draw_speeds(gait: Gait, record: Any, group: str, number: int) -> Figure:
    """Draw Figure 5 or 6: the speeds of a leg's joints, as measured."""
    index = gait.model.group_index(group)
    largest = 1.3 * np.abs(record.velocities[:, gait.model.joint_index(
        [*gait.model.config.groups['left_leg'], *gait.model.config.groups['right_leg']])]).max()
    figure = _Chart(f'Joint speeds of the {group.replace("_", " ")} (the paper\'s Figure '
                    f'{number})', 'time [s]', 'speed [rad/s]', (0.0, gait.duration),
                    (-largest, largest))
    thin = slice(None, None, EVERY)
    for name, joint, colour in zip(gait.model.config.groups[group], index, SIX):
        label = name.split('_', 1)[1].replace('_', ' ')
        figure.add((label, record.times[thin], record.velocities[thin, joint]), colour)
    return figure
