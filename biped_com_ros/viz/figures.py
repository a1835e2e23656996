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
"""The page's left side: figures, bars and charts."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

from biped_com_ros.core.model.efforts import effort_limits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz import palette, widgets
from biped_com_ros.viz.charts import Chart, Strips
from biped_com_ros.viz.view import View
import numpy as np

#: URDFs without limits have larger ones than this, N m.
_LARGEST_EFFORT = 1e6
#: Full scale of the tensions' bars, N, unless a tension is larger.
_TENSION_SCALE = 60.0
#: Label of the error by the URDF that the nodes use, once that is a calibrated one.
CALIBRATED = 'calibrated URDF'
_CHART_COLOURS = (palette.FORCE, palette.TENDON, palette.GOOD, palette.FAIR)


class Figures:
    """
    Numbers and charts of a robot.

    Parameters
    ----------
    gui
        viser's.
    model
        The robot.

    """

    def __init__(self, gui: Any, model: RobotModel) -> None:
        self._gui, self._model = gui, model
        limits = effort_limits(model)
        self._limits = np.where(limits < _LARGEST_EFFORT, limits, 0.0)
        self._driven = tuple(name for name in model.joint_names
                             if name not in model.config.passive_joints)
        self._charts: list[Chart] = []
        feet = tuple(model.config.feet)
        self.strips = Strips((
            'URDF', 'uncalibrated', 'fused', 'ZMP', 'DCM', 'CoM y', 'ZMP y', 'DCM y', 'bend',
            'total', *(f'foot {foot}' for foot in feet), *(f'tendon {i}' for i in range(4))))
        panel = gui.add_panel()
        with panel.add_tab('Balance'):
            self._make_balance(feet)
        with panel.add_tab('Joints'):
            self._efforts = gui.add_html('')
        if model.config.torso is not None:
            with panel.add_tab('Torso'):
                self._make_torso()
        panel.dock_left()
        panel.set_width(370)

    def sample(self, view: View, time: float) -> None:
        """Add a view to the charts' data, of balance only until a fall; `time` in s."""
        if view.is_calibrated:
            self._errors.rename('URDF', CALIBRATED)
        self.strips.add(time, {
            **({} if view.has_fallen else _balance(view)),
            'bend': float(np.degrees(view.torso[0])),
            **{f'tendon {i}': float(tension) for i, tension in enumerate(view.tensions)}})

    def update_charts(self) -> None:
        """Draw the charts."""
        for chart in self._charts:
            chart.update()

    def update_text(self, view: View) -> None:
        """Write the figures of a view."""
        model = self._model
        self._headline.content = widgets.headline(view)
        self._legend.content = widgets.legend(view)
        efforts, age = view.latest('efforts')
        index = model.joint_index(self._driven)
        self._efforts.content = widgets.effort_bars(
            self._driven, model.config.groups, None if efforts is None else efforts[index],
            self._limits[index], view.feedforward, age)
        if model.config.torso is not None:
            self._tendons.content = widgets.tendons(view, _TENSION_SCALE)

    def _make_balance(self, feet: tuple[str, ...]) -> None:
        self._headline = self._gui.add_html('')
        self._legend = self._gui.add_html('')
        marks = palette.MARKS
        self._errors = self._add_chart('error of the CoM in 3-D [mm]', {
            'URDF': marks['com'].colour, 'uncalibrated': marks['uncalibrated'].colour,
            'fused': marks['fused'].colour}, (0.0, 1.0))
        self._add_chart('distance to the edge of support [mm]', {
            'ZMP': marks['zmp'].colour, 'DCM': marks['dcm'].colour}, (0.0, 20.0))
        self._add_chart('vertical force [N]', {
            'total': palette.QUIET,
            **{f'foot {foot}': colour for foot, colour in zip(feet, _CHART_COLOURS)}}, (0.0, 1.0))
        self._add_chart('to the left [mm]', {
            'CoM y': marks['com'].colour, 'ZMP y': marks['zmp'].colour,
            'DCM y': marks['dcm'].colour}, (-20.0, 20.0))

    def _make_torso(self) -> None:
        self._tendons = self._gui.add_html('')
        self._add_chart('tension [N]', {
            f'tendon {i}': colour for i, colour in enumerate(_CHART_COLOURS)}, (0.0, 5.0))
        self._add_chart('bend [deg]', {'bend': palette.BAD}, (0.0, 2.0))

    def _add_chart(self, title: str, series: Mapping[str, palette.Colour],
                   at_least: tuple[float, float]) -> Chart:
        self._charts.append(Chart(self._gui, self.strips, title, series, at_least))
        return self._charts[-1]


def _balance(view: View) -> dict[str, float]:
    """Return the series of the balance charts: errors, margins and sideways in mm, forces in N."""
    forces = {f'foot {name}': float(foot.wrench[2]) for name, foot in view.feet.items()}
    sideways = {f'{label} y': 1e3 * float(point[1]) for label, kind in (
        ('CoM', 'com'), ('ZMP', 'zmp'), ('DCM', 'dcm')) if (point := view.point(kind)) is not None}
    return {'URDF': 1e3 * view.error('com'), 'uncalibrated': 1e3 * view.error('uncalibrated'),
            'fused': 1e3 * view.error('fused'),
            'ZMP': 1e3 * view.margin, 'DCM': 1e3 * view.dcm_margin, **forces, **sideways,
            'total': sum(forces.values()) if forces else math.nan}
