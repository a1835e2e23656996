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
"""Charts of examples, by matplotlib, which is imported only where one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = ('#1f6fb2', '#d9822b', '#2e8b57', '#8a4fbf', '#c9a227', '#4d4d4d')
GREY = '#909090'

SIZE, SQUARE = (7.6, 3.4), (5.2, 5.0)
"""Of a figure, inches."""


def chart(title: str, x_label: str, y_label: str, size: tuple[float, float] = SIZE) -> Any:
    """Return empty axes (matplotlib's) of a figure of their own."""
    from matplotlib.figure import Figure  # seldom needed, and slow
    axes = Figure(figsize=size, layout='constrained').subplots()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.set_prop_cycle(color=COLOURS)
    axes.grid(color='#e4e4e4')
    axes.set_axisbelow(True)
    if size[0] < 1.1 * size[1]:
        axes.set_aspect('equal', adjustable='box')
    return axes


def save(axes: Any, path: Path) -> Path:
    """Write the figure of some axes, the same bytes for the same data; return the file."""
    from matplotlib import rc_context
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc='upper left', ncols=3, frameon=True, fontsize='small')
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({'svg.hashsalt': 'biped_com_ros', 'svg.fonttype': 'path'}):
        axes.figure.savefig(path, metadata={'Date': None, 'Creator': None})
    return path
