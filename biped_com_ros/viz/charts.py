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

"""Strip charts: the last seconds of some numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import math
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.viz import palette
import numpy as np

#: Seconds shown, and samples per second.
SPAN, RATE = 30.0, 10.0

#: Larger values are drawn as this one: a difference of two of them must be finite, too.
HUGE = 1e12

#: Updates after which a chart's axes are laid out again, which takes the browser a millisecond: a
#: chart created in a hidden tab has no width, and its time axis no numbers (uPlot lays axes out
#: when their scales change).
RENEWED = 10


class Strips:
    """
    The last samples of some series.

    Parameters
    ----------
    names
        Of the series.
    span, rate
        Duration, s, and samples per second.

    """

    def __init__(self, names: Sequence[str], span: float = SPAN, rate: float = RATE) -> None:
        self.names = tuple(names)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._times = np.full(round(span * rate), -math.inf)
        self._values = np.full((len(self.names), len(self._times)), math.nan)
        self._period, self.last = 1.0 / rate, -math.inf

    def add(self, time: float, values: Mapping[str, float]) -> bool:
        """Add a sample unless the last one is too recent; return whether it was added."""
        if time < self.last + 0.999 * self._period:
            return False
        self.last = time
        self._times = np.roll(self._times, -1)
        self._values = np.roll(self._values, -1, axis=1)
        self._times[-1] = time
        new = np.array([values.get(name, math.nan) for name in self.names])
        self._values[:, -1] = np.where(np.isfinite(new), np.clip(new, -HUGE, HUGE), math.nan)
        return True

    def has(self, name: str) -> bool:
        """Whether a series has any value."""
        return bool(np.isfinite(self._values[self._index[name]]).any())

    def data(self, names: Sequence[str]) -> tuple[Array, ...]:
        """
        Return times relative to the last sample, s, and the series, from first to last value.

        Gaps, which charts cannot draw, are filled with the value before, or with the first one.
        Where none of the series has values any more, the lines end.
        """
        series = self._values[[self._index[name] for name in names]]
        known = np.flatnonzero(np.isfinite(series).any(axis=0))
        if not len(known):
            return (np.zeros(1), *np.zeros((len(names), 1)))
        part = slice(int(known[0]), int(known[-1]) + 1)
        return (self._times[part] - self.last, *(_bridged(row[part]) for row in series))


def _bridged(values: Array) -> Array:
    """Return values with filled gaps; zeros without any value."""
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(len(values))
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return values[np.where(last < 0, int(known.argmax()), last)]


class Chart:
    """
    A chart on the page; it shows the series that have values.

    Parameters
    ----------
    gui
        viser's, inside the container of the chart.
    strips
        Data of the series.
    title
        Quantity and unit.
    series
        Colours by name of a series.
    at_least
        Minimum range of the vertical axis, so that noise does not look like motion.

    """

    def __init__(self, gui: Any, strips: Strips, title: str,
                 series: Mapping[str, palette.Colour], at_least: tuple[float, float]) -> None:
        self._strips, self._colours = strips, dict(series)
        self._labels = {name: name for name in series}
        self._shown: tuple[str, ...] = ()
        # Without colours, which then follow the light or dark theme.
        axis = {'font': '11px sans-serif', 'grid': {'width': 1}, 'ticks': {'show': False}}
        self._at_least = self._range = at_least
        self._updates = 0
        self._handle = gui.add_uplot(
            (np.zeros(1), np.zeros(1)), title=title, height=150, padding=(7, 14, 0, 0),
            series=({'label': 's'}, {'label': ''}), scales=self._scales(),
            axes=({**axis, 'size': 24}, {**axis, 'size': 46}),
            legend={'show': True, 'live': False}, visible=False)

    def rename(self, name: str, label: str) -> None:
        """Give a series another label than its name, from the next update on."""
        if self._labels[name] != label:
            self._labels[name], self._shown = label, ()

    def update(self) -> None:
        """Send the series; a chart without values is hidden."""
        known = tuple(name for name in self._colours if self._strips.has(name))
        if known != self._shown:
            self._shown, self._handle.visible = known, bool(known)
            self._handle.series = ({'label': 's'}, *(
                {'label': self._labels[name], 'stroke': palette.css(self._colours[name]),
                 'width': 1.6, 'points': {'show': False}} for name in known))
        if known:
            data = self._strips.data(known)
            self._updates += 1
            limits = round_range(data[1:], self._at_least)
            if limits != self._range or self._updates % RENEWED == 0:
                self._range = limits
                self._handle.scales = self._scales()
            self._handle.data = data

    def _scales(self) -> dict[str, Any]:
        return {'x': {'time': False, 'range': (-SPAN, 0.0)}, 'y': {'range': self._range}}


def round_range(series: Sequence[Array], at_least: tuple[float, float]) -> tuple[float, float]:
    """Return round limits around all values and `at_least`, which change rarely."""
    low = min(at_least[0], *(float(values.min()) for values in series))
    high = max(at_least[1], *(float(values.max()) for values in series))
    magnitude = 10.0 ** math.floor(math.log10(high - low))
    step = next(magnitude * share for share in (0.2, 0.5, 1.0, 2.0)
                if magnitude * share * 6.0 >= high - low)
    return step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
