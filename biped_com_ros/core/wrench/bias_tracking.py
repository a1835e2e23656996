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
Follows the biases of the sensors of the feet while they swing, and while the robot hangs.

A foot is in the air if it carries nothing and either its sole is above those that carry the whole
weight, or no foot carries anything. Never while it may be loaded: readings shortly after it left
and before it reaches that state are not used, and a foot that lies on a step is not in the air.
A robot that hangs may be lowered slowly until its soles carry a little: then nothing else measures
that load, so that readings within a second of it are not used, and a bias that seems to jump while
the robot hangs is not followed.
"""

from __future__ import annotations

from collections import deque

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.wrench.aggregation import ContactBody, WrenchAggregation
from biped_com_ros.core.wrench.bias import BiasFilter, BiasSettings
import numpy as np

_MARGIN_NS = {False: nanoseconds(0.06), True: SECOND_NS}
"""Readings within this time after lift-off and before touch-down are not used, ns; by whether the
robot hangs."""


_LIFT = 0.01
"""Height of the sole of a foot in the air above the highest sole that carries weight, m."""
_CARRIED = 0.85
"""Least share of the weight that the other feet measure, which may have wrong gains."""
_HANGING = 0.04
"""Largest sum of the absolute forces of all feet of a robot that hangs, share of the weight."""


class _Foot:
    """Readings of the sensors of a foot since it left the ground."""

    def __init__(self, body: ContactBody) -> None:
        self.body = body
        self.left_ns: int | None = None
        self.hung = False
        self.waiting: deque[tuple[int, list[tuple[Array, Array]]]] = deque()


class BiasTracking:
    """
    The biases of all sensors of feet.

    Parameters
    ----------
    aggregation
        Has the sensors, whose offsets are set, the forces of the feet and their heights.
    bias
        Uncertainty of the biases.

    Attributes
    ----------
    filters
        The filter of each sensor of a foot, by index of the sensor.

    """

    def __init__(self, aggregation: WrenchAggregation, bias: BiasSettings) -> None:
        self._aggregation = aggregation
        self._feet = [_Foot(body) for body in aggregation.feet if body.sensors]
        # Without the forces of all feet it is unknown which ones carry the robot.
        self._is_possible = len(self._feet) == len(aggregation.model.config.feet)
        self.filters = {sensor: BiasFilter(bias) for foot in self._feet
                        for sensor in foot.body.sensors}
        self._applied_ns = 0
        for sensor in self.filters:
            self.reset(sensor)

    def configure(self, bias: BiasSettings) -> None:
        """Use other settings from now on; the present biases stay."""
        for found in self.filters.values():
            found.configure(bias)

    def interrupt(self) -> None:
        """Discard the readings of the present times in the air; the biases stay."""
        for foot in self._feet:
            foot.left_ns = None
            foot.waiting.clear()
        for found in self.filters.values():
            found.discard()

    def reset(self, sensor: int, deviation: Array | None = None,
              expected: Array | None = None) -> None:
        """Start from the present offset of a sensor, as after a tare; a hand's has no bias."""
        found = self.filters.get(sensor)
        if found is not None:
            found.set_bias(self._aggregation.channels[sensor].offset, deviation, expected)

    def set_temperature(self, sensor: int, temperature: float) -> None:
        """Set the temperature of a sensor, deg C; a hand's has no bias."""
        found = self.filters.get(sensor)
        if found is not None:
            found.set_temperature(temperature)

    def update(self, stamp_ns: int) -> bool:
        """
        Use the last readings of all sensors; the forces of the feet have to be of this time, ns.

        Returns
        -------
        bool
            Whether a bias was corrected.

        """
        if not self._is_possible:
            return False
        corrected = False
        hangs = self._hangs()
        for foot, is_in_air in zip(self._feet, self._in_air(hangs)):
            if is_in_air:
                corrected |= self._add(foot, stamp_ns, hangs)
            elif foot.left_ns is not None:
                corrected |= self._land(foot)
        if corrected or not 0 <= stamp_ns - self._applied_ns < SECOND_NS:
            self._applied_ns = stamp_ns
            self._apply(stamp_ns)
        return corrected

    def _hangs(self) -> bool:
        forces = sum(map(abs, self._aggregation.foot_forces))
        return forces < _HANGING * self._aggregation.body_weight

    def _in_air(self, hangs: bool) -> list[bool]:
        """Return which feet are in the air."""
        weight = self._aggregation.body_weight
        forces, heights = self._aggregation.foot_forces, self._aggregation.sole_heights
        if hangs:
            return [not foot.body.in_contact for foot in self._feet]
        carrying = [i for i, foot in enumerate(self._feet) if foot.body.in_contact]
        if not carrying or sum(forces[i] for i in carrying) < _CARRIED * weight:
            return [False] * len(self._feet)
        highest = max(heights[i] for i in carrying)
        return [i not in carrying and heights[i] - highest > _LIFT for i in range(len(self._feet))]

    def _add(self, foot: _Foot, stamp_ns: int, hangs: bool) -> bool:
        """Add the readings of a foot in the air, a little later; those of a second are used."""
        aggregation, margin_ns, corrected = self._aggregation, _MARGIN_NS[hangs], False
        if foot.left_ns is None or hangs != foot.hung or stamp_ns < foot.left_ns:
            foot.left_ns, foot.hung = stamp_ns, hangs
            foot.waiting.clear()
        if stamp_ns - foot.left_ns > margin_ns:
            foot.waiting.append((stamp_ns, [
                (aggregation.channels[i].scaled,
                 aggregation.channels[i].correction.reading_of(aggregation.expected[i]).copy())
                for i in foot.body.sensors]))
        while foot.waiting and stamp_ns - foot.waiting[0][0] > margin_ns:
            read_ns, readings = foot.waiting.popleft()
            for sensor, (reading, expected) in zip(foot.body.sensors, readings):
                self.filters[sensor].add_in_air(reading, expected, read_ns)
        if stamp_ns - foot.left_ns > SECOND_NS + 2 * margin_ns:
            corrected = self._use(foot)
            foot.left_ns = stamp_ns - 2 * margin_ns
        return corrected

    def _land(self, foot: _Foot) -> bool:
        foot.left_ns = None
        foot.waiting.clear()
        if foot.hung:  # what has been carried since the last second may be a load
            for sensor in foot.body.sensors:
                self.filters[sensor].discard()
            return False
        return self._use(foot)

    def _use(self, foot: _Foot) -> bool:
        return True in [self.filters[i].finish_swing(may_jump=not foot.hung)
                        for i in foot.body.sensors]

    def _apply(self, stamp_ns: int) -> None:
        for sensor, found in self.filters.items():
            if found.updates:
                found.predict(stamp_ns)
                np.copyto(self._aggregation.channels[sensor].offset, found.bias)
