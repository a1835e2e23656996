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
"""
What the filter of the base knows of feet: where they press, how they move, when they slide.

Soles, belts and legs give, and feet roll: the point on which a real robot stands seems to move by
centimetres within a step, while a stiff one in simulation keeps it to a tenth of a millimetre.
Such errors last for tens of milliseconds. They are therefore a spectral density, which counts per
second and not per update: twice as many messages are not twice the evidence. It is learnt while
the robot stands and walks (:class:`LegNoise`).

The density of a foot is what its innovations have beside their predicted variance (covariance
matching, Mehra 1970). That blames the legs for everything that the prediction does not know, so
that the noise of the IMU has to be right first (`imu_readings`).

Feet slide that move in a tenth of a second further than by the velocity of the IMU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS, nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import cop_on_sole
import numpy as np

#: Least and largest square root of the density, m sqrt(s): a stiff leg with good encoders, and one
#: that is worth next to nothing.
LEAST, MOST = 1e-4, 1e-2
_START = 3e-4
#: Time over which innovations count, s, and the shortest interval, s, that counts as one: stamps
#: of arrival come in bunches.
_MEMORY, _SHORTEST = 1.0, 1e-3
#: A single innovation raises the density by this factor at most.
_LARGEST_RISE = 10.0
#: Squared innovation per expected one beyond which it counts the less: tails are heavy.
_TAIL = 16.0 / 3.0


class LegNoise:
    """
    Noise of the points on which the feet stand, from the IMU.

    Parameters
    ----------
    feet
        Number of feet, F.

    Attributes
    ----------
    consistency
        Squared innovations per expected ones, mean over the last second; 1 is right.

    """

    def __init__(self, feet: int) -> None:
        self._densities = [_START ** 2] * feet
        self.consistency = 1.0

    @property
    def deviations(self) -> list[float]:
        """Square roots of the densities, foot by foot, m sqrt(s)."""
        return [density ** 0.5 for density in self._densities]

    def variance(self, foot: int, innovation: Array, predicted: float, elapsed: float) -> float:
        """
        Learn from an innovation, and return the variance of each component of its noise, m^2.

        Parameters
        ----------
        foot
            Its index.
        innovation
            Of the position of the foot from the IMU, (3,), m.
        predicted
            Trace of the covariance of the innovation without its noise, m^2.
        elapsed
            Time since the update before, s.

        """
        dt = min(max(elapsed, _SHORTEST), 1e-9 * LONGEST_STEP_NS)
        squared, density = float(innovation.dot(innovation)), self._densities[foot]
        share = dt / (dt + _MEMORY)
        excess = min(max((squared - predicted) / 3.0 * dt, 0.0), _LARGEST_RISE * density)
        density += share * (excess - density)
        self._densities[foot] = density = min(max(density, LEAST ** 2), MOST ** 2)
        variance = density / dt
        ratio = squared / (predicted + 3.0 * variance)
        self.consistency += share * (min(ratio, 100.0) - self.consistency)
        return variance * max(ratio / _TAIL, 1.0)


#: Share of the weight below which the centre of pressure stays where it was.
_LEAST_SHARE = 0.02


class FootPressure:
    """
    Loads and centres of pressure of feet; without wrenches the middle of each sole.

    Parameters
    ----------
    outlines
        Corners of each sole in its frame, m. A centre of pressure is kept within the rectangle
        along the axes of the sole that they span.
    weight
        Of the robot, N.

    Attributes
    ----------
    shares
        Normal force of each foot as a share of the weight; equal shares without wrenches.
    centres
        Centre of pressure (x, y) of each foot in its sole frame, m.

    """

    def __init__(self, outlines: Sequence[Sequence[Point]], weight: float) -> None:
        self._least = [np.min(outline, axis=0).tolist() for outline in outlines]
        self._largest = [np.max(outline, axis=0).tolist() for outline in outlines]
        self._middles = [np.mean(outline, axis=0).tolist() for outline in outlines]
        self._weight = weight
        self.shares = [1.0 / len(outlines)] * len(outlines)
        self.centres: list[Sequence[float]] = self._middles

    def update(self, wrenches: Sequence[Sequence[float]] | None) -> Array:
        """
        Take the wrenches on the soles, (F, 6), N and N m; None where they are not measured.

        Returns
        -------
        numpy.ndarray
            Shape (F, 2, 4): centre of pressure of each foot, and how far it has moved along the
            sole, m. Products with the placement of the sole, four rows, are a point and a vector.

        """
        before = self.centres
        if wrenches is None:
            self.shares = [1.0 / len(before)] * len(before)
            self.centres = self._middles
        else:
            self.shares = [wrench[2] / self._weight for wrench in wrenches]
            self.centres = [
                centre if share < _LEAST_SHARE else _within(wrench, *limits)
                for share, centre, wrench, *limits in zip(
                    self.shares, before, wrenches, self._least, self._largest)]
        numbers: list[float] = []
        for (x, y), (old_x, old_y) in zip(self.centres, before):
            numbers += (x, y, 0.0, 1.0, x - old_x, y - old_y, 0.0, 0.0)
        return np.array(numbers).reshape(-1, 2, 4)


def _within(wrench: Sequence[float], least: Sequence[float],
            largest: Sequence[float]) -> tuple[float, float]:
    """Return the centre of pressure of a wrench between limits."""
    x, y = cop_on_sole(wrench)
    return min(max(x, least[0]), largest[0]), min(max(y, least[1]), largest[1])


_WINDOW_NS = nanoseconds(0.1)
#: Time over which the period of the samples is measured, s.
_MEMORY_TIME = 2.0
#: Time over which stamps that are uneven make displacements uncertain, ns.
_UNEVEN_NS = nanoseconds(0.5)
#: How long a foot counts as sliding after its last displacement, ns.
_HOLD_NS = nanoseconds(0.05)
#: Displacement as shares of the lengths of foot and leg, and of the deviation by velocity.
_OF_FOOT, _OF_LEG, _SURE = 0.075, 0.02, 4.0
#: As many slips of each foot within as many seconds are too many.
_FREQUENT = 3
#: Share of the weight below which a foot does not count: it may be about to leave.
_LEAST_LOAD = 0.2


class SlipDetector:
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
        Number of slips so far, and the time at which the last one was found, ns; None without.

    """

    def __init__(self, lengths: Sequence[float], legs: float) -> None:
        self._least = [max(_OF_FOOT * length, _OF_LEG * legs) for length in lengths]
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
        return len(recent) == recent.maxlen and (0 <= last_ns - recent[0] < _FREQUENT * SECOND_NS)

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
        slips = []
        for foot, (points, touches) in enumerate(zip(self._points, in_contact)):
            if not touches:
                points.clear()
                slips.append(False)
                continue
            points.append(soles[foot])
            while len(points) > len(travels):
                points.popleft()
            since_ns, before = travels[-len(points)]
            moved = soles[foot] - points[0] + travel - before
            slip, limit = math.hypot(moved[0], moved[1]), max(
                self._least[foot], _SURE * speed_deviation * 1e-9 * (stamp_ns - since_ns))
            # Uneven stamps blur it; by how much, is found only where that decides.
            if shares[foot] > _LEAST_LOAD and slip > limit and (
                    slip > limit + speed * self.unevenness):
                if stamp_ns > self._until_ns[foot]:
                    self.count, self.last_ns = self.count + 1, stamp_ns
                    self._recent.append(stamp_ns)
                self._until_ns[foot] = stamp_ns + _HOLD_NS
            slips.append(stamp_ns <= self._until_ns[foot])
        return slips

    def _note_stamp(self, stamp_ns: int, travel: Array) -> float:
        """Note by how much a stamp leads even ones, s; return the level speed, m/s."""
        if not self._travels:
            return 0.0
        before_ns, before = self._travels[-1]
        elapsed = 1e-9 * (stamp_ns - before_ns)
        self._measured = min(self._measured + elapsed, _MEMORY_TIME)
        self._period += elapsed / max(self._measured, 1e-9) * (elapsed - self._period)
        lead = self._leads[-1][1] if self._leads else 0.0
        self._leads.append((stamp_ns, lead + elapsed - self._period))
        while self._leads[0][0] < stamp_ns - _UNEVEN_NS:
            self._leads.popleft()
        moved = travel - before
        self._speed = math.hypot(moved[0], moved[1]) / elapsed if elapsed > 1e-4 else self._speed
        return self._speed
