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

"""Contents of the page at one moment, as Python floats."""

from __future__ import annotations

from dataclasses import dataclass, field
import math
import re
from typing import Any

from biped_com_ros.core.geometry.pose import Array, Pose
import numpy as np


_CHAPTER = re.compile(r'(\d+/\d+) ')

POINT = 'point'
"""Part of a view with `View.points`."""

HAND = 'hand:'
"""Parts of a view that begin with this are hands."""


def chapter_of(story: str) -> str:
    """Return number and count of the chapter that a text of the demo names, or ''."""
    found = _CHAPTER.match(story)
    return found[1] if found else ''


@dataclass
class ContactView:
    """
    A foot, or a hand with a wrench sensor.

    Attributes
    ----------
    wrench
        Of the environment on the robot, in the frame of the sole or the hand, force first, (6,),
        N, N m; NaN: unknown.
    cop
        Centre of pressure in the sole frame, (3,), m; NaN: unknown, no contact, or a hand.

    """

    wrench: Array = field(default_factory=lambda: np.full(6, math.nan))
    cop: Array = field(default_factory=lambda: np.full(3, math.nan))


@dataclass
class HealthLine:
    """One status of ``/diagnostics``; level 0: OK, 1: warning, 2: error, 3: stale."""

    level: int
    name: str
    message: str


@dataclass
class View:
    """
    All that the page shows; NaN and empty: unknown.

    Attributes
    ----------
    positions, efforts
        Of the joints in the order of the model, shape (n,), rad or m, N m or N.
    feedforward
        Efforts commanded by gravity_compensation, by joint, N m.
    base
        Pose of the base in the world.
    points
        By kind, see `palette.MARKS`, in the world, shape (3,), m.
    link_coms
        In the world, shape (L, 3), m.
    feet, hands
        By name.
    polygon
        Corners of the support polygon in the world, shape (k, 3), m.
    com_region
        Corners of the region where the CoM may be at rest, shape (k, 3), m.
    margin, dcm_margin
        Distances of ZMP and DCM from its edge, negative outside, m.
    time_to_edge
        Until the DCM leaves the polygon, s.
    phase, level
        Support phase and level of stability, as zmp_monitor names them.
    weight, weight_below_sensors
        Of the URDF that the nodes use, N: the whole, and what no foot sensor measures.
    is_calibrated
        Whether that is a calibrated one.
    tendon_lengths, tensions, expected_tensions
        Measured lengths, measured and expected tensions, m and N.
    torso
        Bend and direction, rad, and elongation, m, shape (3,).
    health
        Diagnostics of the nodes.
    calibration
        Progress of com_calibrator.
    gait
        State of gait_player.
    story, results
        What the demo does, and the table of its last chapter; empty without a demo.
    base_from
        Source of the base's pose: ``tf``, ``odom``, or empty for none.
    stale
        What is no longer received: its last value and the age of that, s, by part (a foot, a hand
        after `HAND`, `POINT` or '') and name. In the attributes it is unknown, except for
        `positions`.

    """

    positions: Array | None = None
    efforts: Array | None = None
    feedforward: dict[str, float] = field(default_factory=dict)
    base: Pose = field(default_factory=Pose.identity)
    points: dict[str, Array] = field(default_factory=dict)
    link_coms: Array | None = None
    feet: dict[str, ContactView] = field(default_factory=dict)
    hands: dict[str, ContactView] = field(default_factory=dict)
    polygon: Array = field(default_factory=lambda: np.empty((0, 3)))
    com_region: Array = field(default_factory=lambda: np.empty((0, 3)))
    margin: float = math.nan
    dcm_margin: float = math.nan
    time_to_edge: float = math.nan
    phase: str = ''
    level: str = ''
    weight: float = math.nan
    weight_below_sensors: float = 0.0
    is_calibrated: bool = False
    tendon_lengths: Array = field(default_factory=lambda: np.empty(0))
    tensions: Array = field(default_factory=lambda: np.empty(0))
    expected_tensions: Array = field(default_factory=lambda: np.empty(0))
    torso: Array = field(default_factory=lambda: np.full(3, math.nan))
    health: list[HealthLine] = field(default_factory=list)
    calibration: str = ''
    gait: str = ''
    story: str = ''
    results: str = ''
    base_from: str = ''
    stale: dict[tuple[str, str], tuple[Any, float]] = field(default_factory=dict)

    def latest(self, name: str, part: str = '') -> tuple[Any, float]:
        """Return the last value that was received, and its age, s; 0: it is not stale."""
        if (part, name) in self.stale:
            return self.stale[part, name]
        if part == POINT:
            return self.point(name), 0.0
        return getattr(self.part(part), name), 0.0

    def part(self, name: str) -> ContactView | View:
        """Return a foot, a hand, or the view itself."""
        if name.startswith(HAND):
            return self.hands[name.removeprefix(HAND)]
        return self.feet.get(name, self)

    @property
    def has_fallen(self) -> bool:
        """Whether the robot had fallen when that was last known."""
        return bool(self.latest('level')[0] == 'FALLEN')

    @property
    def chapter(self) -> str:
        """Return number and count of the chapter of the demo that runs, as '2/5', or ''."""
        return chapter_of(self.story)

    def point(self, kind: str) -> Array | None:
        """Return a point, or None if it is unknown."""
        value = self.points.get(kind)
        return value if value is not None and np.isfinite(value).all() else None

    def error(self, kind: str) -> float:
        """Return the distance of a point from the truth, m; NaN if :meth:`offset` is None."""
        offset = self.offset(kind)
        return math.nan if offset is None else math.hypot(*offset)

    def offset(self, kind: str) -> tuple[float, float] | None:
        """
        Return a point's horizontal and vertical error, m; None if unknown, or after a fall.

        Nor is there one while no foot stands: then nothing locates the base in the world.
        """
        here, there = self.point(kind), self.point('truth')
        is_in_air = self.latest('phase')[0] == 'flight'
        if here is None or there is None or self.has_fallen or is_in_air:
            return None
        return float(np.hypot(*(here - there)[:2])), float(here[2] - there[2])
