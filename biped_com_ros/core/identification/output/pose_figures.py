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
"""Figures of captured poses, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
import re

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.estimates import level_rotation
from biped_com_ros.core.identification.poses.stances import sole_corners
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

WIDTH, HEIGHT = 110.0, 134.0
LIMB, SOLE, IN_AIR = '#374151', '#1d4ed8', '#9ca3af'

# View from the front left and a little above; x forward, y left, z up.
_VIEW = np.array(((-0.5, 0.866, 0.0), (0.15, 0.09, -0.985)))


def pose_figures(model: RobotModel, captures: Sequence[Capture],
                 marks: Sequence[tuple[Array, str]]) -> str:
    """
    Return HTML with a figure of each capture.

    Parameters
    ----------
    model
        The robot.
    captures
        The poses.
    marks
        Masses and first moments (L, 4) whose centre of mass is shown as a dot, with its colour.

    """
    regressor, frames = StaticsRegressor(model), set(model.frame_names)
    bones = [(parent, child) for parent, pairs in model.children_of_links.items()
             for _, child in pairs if parent in frames and child in frames]
    figures = [_figure(regressor, bones, marks, capture) for capture in captures]
    # One scale for all, so that a crouching robot is smaller.
    scale = (HEIGHT - 12.0) / max((float(np.ptp(f.points[:, 1])) for f in figures), default=1.0)
    # Each has an SVG of its own, so that they wrap on a narrow screen.
    return '<div class="poses">' + ''.join(
        '<figure><svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{WIDTH:.0f}" height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}">'
        f'{figure.svg(scale)}</svg><figcaption>{escape(pose_label(i, capture))}</figcaption>'
        '</figure>' for i, (capture, figure) in enumerate(zip(captures, figures))) + '</div>'


def pose_label(i: int, capture: Capture) -> str:
    """Return the number of the i-th pose, as in the plots, and its name."""
    number = f'pose {i + 1}'
    is_numbered = re.match(rf'{number}\b', capture.name)
    return capture.name if is_numbered else f'{number}: {capture.name}' if capture.name else number


class _Figure:
    """Projected lines, soles and dots of one pose; `points` (k, 2) has all lines and soles, m."""

    def __init__(self) -> None:
        self.limbs: list[Array] = []
        self.soles: list[tuple[Array, bool]] = []
        self.dots: list[tuple[Array, str]] = []

    @property
    def points(self) -> Array:
        return np.concatenate([*self.limbs, *(corners for corners, _ in self.soles)])

    def svg(self, scale: float) -> str:
        points = self.points
        middle, lowest = points[:, 0].mean(), points[:, 1].max()

        def at(point: Array) -> str:
            return (f'{WIDTH / 2 + scale * (point[0] - middle):.1f},'
                    f'{HEIGHT - 6 + scale * (point[1] - lowest):.1f}')

        limbs = ' '.join(f'M{at(a)} L{at(b)}' for a, b in self.limbs)
        soles = ''.join(
            f'<polygon points="{" ".join(map(at, corners))}" fill="{SOLE if stands else IN_AIR}" '
            f'opacity=".7"/>' for corners, stands in self.soles)
        dots = ''.join(
            '<circle cx="{}" cy="{}" r="3" fill="{}"/>'.format(*at(dot).split(','), colour)
            for dot, colour in self.dots)
        return (f'{soles}<path d="{limbs}" stroke="{LIMB}" stroke-width="3" fill="none" '
                f'stroke-linecap="round"/>{dots}')


def _figure(regressor: StaticsRegressor, bones: Sequence[tuple[str, str]],
            marks: Sequence[tuple[Array, str]], capture: Capture) -> _Figure:
    """Return the figure of a capture, of a robot with these bones."""
    model, figure = regressor.model, _Figure()
    state = model.state(capture.positions)
    view = _VIEW @ level_rotation(regressor.up_in_base(capture))
    for bone in bones:
        ends = np.array([state.pose_in_base(link).position for link in bone])
        if np.abs(ends[0] - ends[1]).max() > 1e-4:
            figure.limbs.append(ends @ view.T)
    soles = state.poses_in_base(model.soles)
    for sole, foot, stands in zip(soles, model.config.feet.values(), capture.in_contact):
        figure.soles.append((np.array(sole_corners(sole, foot)) @ view.T, bool(stands)))
    for theta, colour in marks:
        com = regressor.com_matrix(capture.positions) @ theta.ravel()
        figure.dots.append((view @ com / theta[:, 0].sum(), colour))
    return figure
