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
"""Feet that slide, by how far they move in a tenth of a second above the velocity of the IMU."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
import math

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.geometry.pose import Array

_WINDOW_NS = nanoseconds(0.1)
#: Time over which the period of the samples is measured, s.
_MEMORY = 2.0
#: Time over which stamps that are uneven make displacements uncertain, ns.
_UNEVEN_NS = nanoseconds(0.5)
#: How long a foot counts as sliding after its last displacement, ns.
_HOLD_NS = nanoseconds(0.05)
#: Displacement as shares of the lengths of foot and leg, and of the deviation by velocity.
_LEAST_SHARE, _OF_LEG, _SURE = 0.075, 0.02, 4.0
#: As many slides of each foot within as many seconds are too many.
_FREQUENT = 3
#: Share of the weight below which a foot does not count: it may be about to leave.
_LEAST_LOAD = 0.2


class SlideDetector:
    """
    Finds feet that slide along the floor.

    What legs and integrated velocity say of a foot within the window does not depend on where the
    filter believes it to be, so that a wrong position is no slide. Stamps of arrival tell when a
    sample was taken to some milliseconds only, in which the robot moves, too. Twenty millimetres
    stay unseen on a robot of a metre: legs and soles of real robots give as much.

    Parameters
    ----------
    lengths
        Of the soles, m.
    legs
        Length of a leg, m.

    Attributes
    ----------
    count, last_ns
        Number of slides so far, and the time at which the last one was found, ns; None without.

    """

    def __init__(self, lengths: Sequence[float], legs: float) -> None:
        self._least = [max(_LEAST_SHARE * length, _OF_LEG * legs) for length in lengths]
        self._period, self._measured, self.count = 0.0, 0.0, 0
        self.last_ns: int | None = None
        self._recent: deque[int] = deque(maxlen=_FREQUENT * len(lengths))
        self.reset()

    def reset(self) -> None:
        """Begin anew, after a gap or a change of the velocity that is no motion."""
        feet = len(self._least)
        self._travels: deque[tuple[int, Array]] = deque()
        self._leads: deque[tuple[int, float]] = deque()
        self._speed = 0.0
        self._points: list[deque[Array]] = [deque() for _ in range(feet)]
        self._until_ns = [NEVER_NS] * feet

    @property
    def is_frequent(self) -> bool:
        """Whether feet slide more than once per second and foot."""
        recent, last_ns = self._recent, self._travels[-1][0] if self._travels else 0
        return len(recent) == recent.maxlen and (
            0 <= last_ns - recent[0] < _FREQUENT * SECOND_NS)

    @property
    def unevenness(self) -> float:
        """Return by how much stamps have led or lagged even ones in the last half second, s."""
        leads = [lead for _, lead in self._leads] or [0.0]
        return max(leads) - min(leads)

    def update(self, stamp_ns: int, travel: Array, soles: Array, shares: Sequence[float],
               in_contact: Sequence[bool], speed_deviation: float) -> list[bool]:
        """
        Return which feet slide.

        Parameters
        ----------
        stamp_ns
            Time, ns.
        travel
            Integrated velocity of the IMU, (3,), m.
        soles
            Positions of the soles from the IMU along the axes of the world, (F, 3), m.
        shares
            Their loads as shares of the weight.
        in_contact
            Which feet are in contact.
        speed_deviation
            Standard deviation of the level velocity, m/s.

        """
        travels = self._travels
        speed = self._note_stamp(stamp_ns, travel)
        travels.append((stamp_ns, travel))
        while len(travels) > 2 and travels[1][0] <= stamp_ns - _WINDOW_NS:
            travels.popleft()
        blur = speed * self.unevenness
        slides = []
        for foot, (points, touches) in enumerate(zip(self._points, in_contact)):
            if not touches:
                points.clear()
                slides.append(False)
                continue
            points.append(soles[foot])
            while len(points) > len(travels):
                points.popleft()
            since_ns, before = travels[-len(points)]
            moved = soles[foot] - points[0] + travel - before
            limit = max(self._least[foot],
                        _SURE * speed_deviation * 1e-9 * (stamp_ns - since_ns)) + blur
            if shares[foot] > _LEAST_LOAD and math.hypot(moved[0], moved[1]) > limit:
                if stamp_ns > self._until_ns[foot]:
                    self.count, self.last_ns = self.count + 1, stamp_ns
                    self._recent.append(stamp_ns)
                self._until_ns[foot] = stamp_ns + _HOLD_NS
            slides.append(stamp_ns <= self._until_ns[foot])
        return slides

    def _note_stamp(self, stamp_ns: int, travel: Array) -> float:
        """Note by how much a stamp leads even ones, s; return the level speed, m/s."""
        if not self._travels:
            return 0.0
        before_ns, before = self._travels[-1]
        elapsed = 1e-9 * (stamp_ns - before_ns)
        self._measured = min(self._measured + elapsed, _MEMORY)
        self._period += elapsed / max(self._measured, 1e-9) * (elapsed - self._period)
        lead = self._leads[-1][1] if self._leads else 0.0
        self._leads.append((stamp_ns, lead + elapsed - self._period))
        while self._leads[0][0] < stamp_ns - _UNEVEN_NS:
            self._leads.popleft()
        moved = travel - before
        self._speed = math.hypot(moved[0], moved[1]) / elapsed if elapsed > 1e-4 else self._speed
        return self._speed
