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
"""A picture of a robot as its file describes it: from the front, from the side, its soles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.sole_geometry import sole_polygon
import numpy as np

SIZE, GAP = 420.0, 30.0  # px: height of a view, and between views
Place = Callable[[Array], tuple[float, float]]
"""Projects a point in the base, m, to pixels."""

_LIMB, _SOLE, _MESH, _COM, _SENSOR = '#374151', '#1d4ed8', '#d97706', '#dc2626', '#059669'


def robot_picture(model: RobotModel, posture: Array) -> str:
    """
    Return an SVG of the robot.

    Parameters
    ----------
    model
        The robot.
    posture
        Joint positions, (n,), rad or m.

    """
    view = _Robot(model, posture)
    bones = np.array([point for bone in view.bones for point in bone])
    low, high = bones.min(axis=0), bones.max(axis=0)
    low[2] = min(low[2], view.ground)
    scale = SIZE / float(np.max(high - low))
    width = GAP
    parts: list[str] = []
    for title, axis in (('from the front', 1), ('from the right', 0)):
        def place(p: Array, left: float = width, axis: int = axis) -> tuple[float, float]:
            return left + scale * float(p[axis] - low[axis]), GAP + scale * float(high[2] - p[2])

        parts += view.draw(place)
        parts.append(_text(width, SIZE + 2.2 * GAP, title))
        width += max(scale * float(high[axis] - low[axis]), 90.0) + 2.0 * GAP
    parts += view.draw_soles(width)
    width += SIZE
    height = SIZE + 5.0 * GAP
    for i, (colour, what) in enumerate((
            (_SOLE, 'sole: polygon of the file'), (_MESH, 'sole: collision geometry'),
            (_COM, 'centre of mass'), (_SENSOR, 'frame of a wrench sensor'))):
        x = GAP + 200.0 * i
        parts.append(f'<rect x="{x:.0f}" y="{height - 28:.0f}" width="12" height="12" '
                     f'fill="{colour}"/>' + _text(x + 18.0, height - 18.0, what))
    width = max(width, GAP + 800.0)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="13">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')


class _Robot:
    """Lines and points of a robot in a posture, in its base, m."""

    def __init__(self, model: RobotModel, posture: Array) -> None:
        self.model = model
        state = model.state(posture)
        names = model.frame_names
        at = dict(zip(names, state.placements_in_base(model.frames(names))[:, 3]))
        self.bones = [(at[parent], at[child])
                      for parent, children in model.children_of_links.items() if parent in at
                      for _, child in children if child in at]
        self.sensors = [at[sensor.frame] for sensor in model.config.wrench_sensors.values()]
        self.com = state.com_in_base
        placed = state.placements_in_base(model.soles)
        self.ground = float(placed[:, 3, 2].min())
        self.soles, self.outlines = [], []
        for sole, (foot, config) in zip(placed, model.config.feet.items()):
            self.soles.append(_in_base(sole, config.polygon))
            try:
                self.outlines.append(_in_base(sole, sole_polygon(model, foot)))
            except BipedComError:
                pass  # the check reports why

    def draw(self, place: Place) -> Iterator[str]:
        """Yield the view that `place` projects points into."""
        for a, b in self.bones:
            (x0, y0), (x1, y1) = place(a), place(b)
            yield (f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
                   f'stroke="{_LIMB}" stroke-width="4" stroke-linecap="round"/>')
        for corners in self.soles:
            yield _polygon([place(corner) for corner in corners], _SOLE)
        for sensor in self.sensors:
            yield _dot(place(sensor), _SENSOR, 4.0)
        yield _dot(place(self.com), _COM, 6.0)

    def draw_soles(self, left: float) -> Iterator[str]:
        """Yield the soles from above, with the centre of mass; forward is up."""
        points = np.concatenate([*self.soles, *self.outlines, self.com[np.newaxis]])[:, :2]
        low, high = points.min(axis=0), points.max(axis=0)
        scale = 0.9 * SIZE / float(np.max(high - low))

        def place(point: Array) -> tuple[float, float]:
            return left + scale * (high[1] - point[1]), GAP + scale * (high[0] - point[0])

        for corners in self.soles:
            yield _polygon([place(corner) for corner in corners], _SOLE)
        for corners in self.outlines:
            yield _polygon([place(corner) for corner in corners], _MESH, dashed=True)
        yield _dot(place(self.com), _COM, 6.0)
        for name, corners in zip(self.model.config.feet, self.soles):
            yield _text(*place(corners.mean(axis=0)), name)
        length, width = (1e3 * (high - low)).tolist()
        yield _text(left, SIZE + 2.2 * GAP,
                    f'both soles from above, within {length:.0f} mm x {width:.0f} mm')


def _in_base(sole: Array, corners: Sequence[Sequence[float]]) -> Array:
    """Return corners (k, 3) in the base; `sole` has axes as rows 0 to 2, and its origin."""
    flat = np.array(corners)
    found: Array = sole[3] + flat[:, :1] * sole[0] + flat[:, 1:] * sole[1]
    return found


def _polygon(points: Sequence[tuple[float, float]], colour: str, dashed: bool = False) -> str:
    corners = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
    line = 'stroke-dasharray="6 4"' if dashed else ''
    return (f'<polygon points="{corners}" fill="{colour}" fill-opacity="0.12" stroke="{colour}" '
            f'stroke-width="2" {line}/>')


def _dot(at: tuple[float, float], colour: str, radius: float) -> str:
    x, y = at
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="#374151">{escape(text)}</text>'
