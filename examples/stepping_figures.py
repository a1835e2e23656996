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

from biped_com_ros.core.legs import Gait
from examples.figures import chart, COLOURS, GREY, save
import numpy as np

ZMP = 'Zero-moment point of a single step'
EVERY = 10
"""Of the simulator's samples, how many make a point of a curve."""


def draw(gait: Gait, record: Any, directory: Path, prefix: str = 'step') -> list[Path]:
    """Draw a gait and the record of its walk; return the files, whose names begin alike."""
    count = int(np.searchsorted(record.times, gait.duration, side='right'))
    shown = replace(record, times=record.times[:count:EVERY], zmp=record.zmp[:count:EVERY],
                    reference=record.reference[:count:EVERY],
                    velocities=record.velocities[:count:EVERY])
    figures = {'zmp_path': _draw_path(gait, shown), 'zmp_time': _draw_time(shown),
               **{f'speeds_{group}': _draw_speeds(gait, shown, group, number)
                  for number, group in ((5, 'right_leg'), (6, 'left_leg'))}}
    return [save(axes, directory / f'{prefix}_{name}.svg') for name, axes in figures.items()]


def _draw_path(gait: Gait, record: Any) -> Any:
    """Draw Figures 2 and 4 from above: forward is to the right."""
    axes = chart(f'{ZMP}, from above', 'forward [mm]', 'left [mm]', (6.0, 5.6))
    for time, name in ((0.0, 'soles'), (gait.duration, None)):
        for i, foot in enumerate(gait.model.config.feet.values()):
            x, y, _, yaw = gait.plan.soles(time)[i]
            c, s = np.cos(yaw), np.sin(yaw)
            corners = np.array((*foot.polygon, foot.polygon[0])) @ np.array(((c, s), (-s, c)))
            axes.plot(*(1e3 * (corners + (x, y))).T, color=GREY, label=None if i else name)
    axes.plot(*(1e3 * record.zmp).T, color=COLOURS[1], linewidth=1.0, label='actual')
    axes.plot(*(1e3 * record.reference).T, color=COLOURS[0], linewidth=1.4, label='ideal')
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
    return axes


def _draw_time(record: Any) -> Any:
    """Draw Figures 2 and 4 over time."""
    axes = chart(f'{ZMP} over time', 'time [s]', 'position [mm]')
    for i, name, actual, ideal in ((1, 'left', COLOURS[2], COLOURS[0]),
                                   (0, 'forward', COLOURS[1], COLOURS[3])):
        axes.plot(record.times, 1e3 * record.zmp[:, i], color=actual, linewidth=1.0,
                  label=f'{name}, actual')
        axes.plot(record.times, 1e3 * record.reference[:, i], color=ideal, linewidth=1.4,
                  label=f'{name}, ideal')
    low, high = axes.get_ylim()
    axes.set(xlim=(0.0, record.times[-1]), ylim=(low, high + 0.4 * (high - low)))
    return axes


def _draw_speeds(gait: Gait, record: Any, group: str, number: int) -> Any:
    """Draw Figure 5 or 6: the speeds of a leg's joints, as measured."""
    model = gait.model
    both = [*model.config.groups['left_leg'], *model.config.groups['right_leg']]
    largest = 1.3 * np.abs(record.velocities[:, model.joint_index(both)]).max()
    axes = chart(f'Joint speeds of the {group.replace("_", " ")} (Figure {number} of the paper)',
                 'time [s]', 'speed [rad/s]')
    for name, joint in zip(model.config.groups[group], model.group_index(group)):
        axes.plot(record.times, record.velocities[:, joint], linewidth=1.2,
                  label=name.split('_', 1)[1].replace('_', ' '))
    axes.set(xlim=(0.0, record.times[-1]), ylim=(-largest, 1.3 * largest))
    return axes
