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

"""Colours and sizes of what is drawn, on the page and in RViz."""

from __future__ import annotations

from dataclasses import dataclass

Colour = tuple[int, int, int]

GOOD: Colour = (38, 160, 84)
FAIR: Colour = (232, 160, 20)
BAD: Colour = (214, 48, 49)
QUIET: Colour = (130, 138, 150)


@dataclass(frozen=True)
class Mark:
    """
    A point that is drawn.

    Attributes
    ----------
    label
        Its name in the legend.
    colour
        Of its ball or disc.
    size
        Radius as a share of the robot's height.
    on_ground
        Whether it is a disc on the ground instead of a ball.

    """

    label: str
    colour: Colour
    size: float
    on_ground: bool = False


#: The points of a view, in the order of the legend.
MARKS = {
    'truth': Mark('CoM, true (simulator)', (38, 166, 91), 0.017),
    'com': Mark('CoM by the URDF', (230, 57, 70), 0.017),
    'fused': Mark('CoM fused with forces', (142, 68, 213), 0.015),
    'uncalibrated': Mark('CoM, uncalibrated', (160, 120, 122), 0.012),
    'zmp': Mark('ZMP measured', (0, 120, 255), 0.011, on_ground=True),
    'zmp_model': Mark('ZMP from the motion', (0, 190, 200), 0.008, on_ground=True),
    'dcm': Mark('DCM', (245, 166, 35), 0.009, on_ground=True),
}
LINK_COM: Colour = (70, 78, 90)
FORCE: Colour = (26, 115, 232)
TENDON: Colour = (190, 90, 40)
#: Length of the arrow of a force equal to the weight, as a share of the robot's height.
ARROW = 0.55


def css(colour: Colour) -> str:
    """Return a colour in CSS notation."""
    return '#{:02x}{:02x}{:02x}'.format(*colour)


def of_margin(margin: float) -> Colour:
    """Return the colour of a stability margin, m: `BAD` up to 0, `GOOD` from 0.02 on."""
    if not margin > 0.0:
        return BAD if margin <= 0.0 else QUIET
    share = min(margin / 0.02, 1.0)
    low, high = (BAD, FAIR) if share < 0.5 else (FAIR, GOOD)
    part = 2.0 * share - (share >= 0.5)
    red, green, blue = (round(a + part * (b - a)) for a, b in zip(low, high))
    return red, green, blue


def of_level(level: int) -> Colour:
    """Return the colour of a level of diagnostics."""
    return {0: GOOD, 1: FAIR, 2: BAD}.get(level, QUIET)
