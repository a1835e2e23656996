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
Which part of a sole touches: a foot that lands on its heel or leaves from its toes has an edge.

A rigid sole whose centre of pressure (CoP) lies well inside its outline is flat on the ground; its
normal is the ground's. These normals are learned, each axis as well as the width of the sole
across it permits. A sole whose CoP is near its outline and that is tilted against the learned
normal rolls over an edge or a corner: it touches with its lowest corners only. If the CoP is not
near those, the learned normal is outdated, as on new ground, and the whole sole counts.

Tilt alone would take soles on a slope for rolling ones, and the CoP alone a robot that leans.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS, nanoseconds
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Placement, Vector
from biped_com_ros.core.geometry.wrench import cop_on_sole

#: What touches: some corners of a sole; None for all of it.
Part = Sequence[Point] | None

#: Middle and half sides of a rectangle, or its limits, m.
Box = tuple[float, float, float, float]

#: A sole is flat while its CoP is within this share of the half sole.
_FLAT = 0.75
#: A sole rolls only if its CoP is at most this share of the half sole from what touches.
_NEAR = 0.25
#: Least share of the weight on a sole whose orientation counts as that of the ground.
_SHOWS = 0.2
#: Standard deviation of the slope of ground that has not been stood on yet.
_FIRST_SLOPE = 0.05
#: How the slope changes along the way, per square root of a second.
_CHANGE = 0.022
#: Time between two instants that are learned from, and between those that count as independent: a
#: sole that gives way is tilted by about the same all the time that it stands.
_STEP_NS, _CORRELATION_NS = nanoseconds(0.01), nanoseconds(0.25)
#: For how long a sole must have shown the ground, ns.
_KNOWN_NS = nanoseconds(0.1)


class RollingSoles:
    """
    Finds the part of each sole that touches.

    Parameters
    ----------
    outlines
        Corners of each sole in its frame, m.
    edge_height
        Corners less than this above the lowest one touch, m: how far sole and ground give way.
        Zero: the whole sole always touches.
    least_force
        Least normal force on a foot for a CoP, N.
    weight
        Of the robot, N.

    Attributes
    ----------
    slope
        Of the ground along x and y of the world.

    """

    def __init__(self, outlines: Sequence[Sequence[Point]], edge_height: float,
                 least_force: float, weight: float) -> None:
        self._outlines = [[(float(x), float(y)) for x, y in corners] for corners in outlines]
        self._edge_height, self._least_force = edge_height, least_force
        self._shows_from = _SHOWS * weight
        self._boxes = [_box(corners) for corners in self._outlines]
        #: Where the CoP of a flat sole is: least and largest x, least and largest y, m.
        self._insides = [(x - _FLAT * half_x, x + _FLAT * half_x,
                          y - _FLAT * half_y, y + _FLAT * half_y)
                         for x, y, half_x, half_y in self._boxes]
        #: Variance of the ground's slope along x and y of each sole that stands on it.
        self._variances = [tuple(max(edge_height, 1e-4) ** 2 / (half * half)
                                 for half in box[2:]) for box in self._boxes]
        self.reset()

    def reset(self) -> None:
        """Reset the estimate of the ground."""
        self.slope = 0.0, 0.0
        #: xx, xy and yy of the covariance of the slope.
        self._covariance = _FIRST_SLOPE ** 2, 0.0, _FIRST_SLOPE ** 2
        self._updated_ns = self._shown_ns = 0

    def continue_from(self, other: RollingSoles) -> None:
        """Continue with the ground of another one of the same robot."""
        self.slope, self._covariance = other.slope, other._covariance
        self._updated_ns, self._shown_ns = other._updated_ns, other._shown_ns

    @property
    def normal(self) -> Vector:
        """Direction of the normal of the ground in the world, of any length."""
        return -self.slope[0], -self.slope[1], 1.0

    def update(self, ns: int, soles: Sequence[Placement], in_contact: Sequence[bool],
               wrenches: Sequence[Sequence[float]] | None) -> Sequence[Part]:
        """
        Take an instant.

        Parameters
        ----------
        ns
            Its time.
        soles
            Placements of all soles; of their positions only differences matter.
        in_contact
            Which of them are on the ground.
        wrenches
            Environment on each foot in its sole frame, F times six numbers; None if not measured.

        Returns
        -------
        sequence
            The corners of each sole that rolls over them; None for a sole that is flat, in the
            air, or of which it is not known. Empty where no sole rolls.

        """
        if wrenches is None or not self._edge_height:
            return ()
        may_roll, least = False, self._least_force
        is_due = not 0 <= ns - self._updated_ns < _STEP_NS
        for touches, wrench, (low_x, high_x, low_y, high_y) in zip(
                in_contact, wrenches, self._insides):
            if touches and (fz := wrench[2]) >= least and not (
                    low_x * fz < -wrench[4] < high_x * fz
                    and low_y * fz < wrench[3] < high_y * fz):
                may_roll = True
        if is_due:
            self._update_slope(ns, soles, in_contact, wrenches)
        if not may_roll or self._shown_ns < _KNOWN_NS:
            return ()
        parts = [self._touching(*each) for each in zip(
            self._outlines, self._boxes, soles, in_contact, wrenches, self._insides)]
        return parts if any(parts) else ()

    def _update_slope(self, ns: int, soles: Sequence[Placement], in_contact: Sequence[bool],
                      wrenches: Sequence[Sequence[float]]) -> None:
        """Learn the slope of the ground from the soles that are flat."""
        elapsed_ns = ns - self._updated_ns
        for sole, touches, wrench, inside, variances in zip(
                soles, in_contact, wrenches, self._insides, self._variances):
            if touches and wrench[2] >= self._shows_from and _is_inside(wrench, inside):
                self._learn(elapsed_ns, sole, *variances)
                self._updated_ns = ns

    def _touching(self, outline: Sequence[Point], box: Box, sole: Placement, touches: bool,
                  wrench: Sequence[float], inside: Box) -> Part:
        """Return the lowest corners of a sole, if it rolls over them by its wrench."""
        if not (touches and wrench[2] >= self._least_force) or _is_inside(wrench, inside):
            return None
        x, y = cop_on_sole(wrench)
        (a, b, c), (d, e, f), _, _ = sole
        sx, sy = self.slope
        along_x, along_y = c - sx * a - sy * b, f - sx * d - sy * e
        heights = [s * along_x + t * along_y for s, t in outline]
        highest = min(heights) + self._edge_height
        if max(heights) <= highest:
            return None
        found = [corner for corner, height in zip(outline, heights) if height <= highest]
        middle_x, middle_y, half_x, half_y = _box(found)
        _, _, whole_x, whole_y = box
        is_near = (abs(x - middle_x) <= half_x + _NEAR * whole_x
                   and abs(y - middle_y) <= half_y + _NEAR * whole_y)
        return found if is_near else None

    def _learn(self, elapsed_ns: int, sole: Placement, variance_x: float,
               variance_y: float) -> None:
        """Take the slope of a flat sole: two numbers in a Kalman filter, written out."""
        if not 0 < elapsed_ns < LONGEST_STEP_NS:
            elapsed_ns = _STEP_NS
        self._shown_ns += elapsed_ns
        (a, b, _), _, (nx, ny, nz), _ = sole
        if not nz > 0.0:
            return
        more = _CHANGE ** 2 * 1e-9 * elapsed_ns
        pxx, pxy, pyy = self._covariance
        pxx, pyy = min(pxx + more, _FIRST_SLOPE ** 2), min(pyy + more, _FIRST_SLOPE ** 2)
        # Noise along the axes of the sole, turned by its heading.
        length = math.hypot(a, b) or 1.0
        cos, sin = a / length, b / length
        wider = max(_CORRELATION_NS / elapsed_ns, 1.0)
        rxx = wider * (cos * cos * variance_x + sin * sin * variance_y)
        ryy = wider * (sin * sin * variance_x + cos * cos * variance_y)
        rxy = wider * cos * sin * (variance_x - variance_y)
        sxx, sxy, syy = pxx + rxx, pxy + rxy, pyy + ryy
        scale = 1.0 / (sxx * syy - sxy * sxy)
        kxx, kxy = scale * (pxx * syy - pxy * sxy), scale * (pxy * sxx - pxx * sxy)
        kyx, kyy = scale * (pxy * syy - pyy * sxy), scale * (pyy * sxx - pxy * sxy)
        sx, sy = self.slope
        dx, dy = -nx / nz - sx, -ny / nz - sy
        self.slope = sx + kxx * dx + kxy * dy, sy + kyx * dx + kyy * dy
        self._covariance = (pxx - kxx * pxx - kxy * pxy, pxy - kxx * pxy - kxy * pyy,
                            pyy - kyx * pxy - kyy * pyy)


def _is_inside(wrench: Sequence[float], inside: Box) -> bool:
    """Return whether the centre of pressure of a wrench that pushes is within these limits."""
    _, _, fz, mx, my, _ = wrench
    low_x, high_x, low_y, high_y = inside
    return low_x * fz < -my < high_x * fz and low_y * fz < mx < high_y * fz


def _box(corners: Sequence[Point]) -> Box:
    """Return middle and half sides of the rectangle around corners, along x and y, m."""
    x, y = [x for x, _ in corners], [y for _, y in corners]
    return (0.5 * (min(x) + max(x)), 0.5 * (min(y) + max(y)),
            0.5 * (max(x) - min(x)), 0.5 * (max(y) - min(y)))
