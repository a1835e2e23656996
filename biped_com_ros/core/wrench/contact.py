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
"""Contact of feet: a Schmitt trigger on the normal force, with dwell times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.settings import constant, setting, Settings


@dataclass(frozen=True, kw_only=True)
class ContactThresholds(Settings):
    """When a contact begins and ends."""

    engage: float = setting(
        0.06, 'Normal force of a foot, as a share of body weight, above which contact begins', '',
        0.001, 0.9, name='contact_engage')
    release: float = setting(
        0.03, 'Normal force of a foot, as a share of body weight, below which contact ends', '',
        0.001, 0.9, name='contact_release')
    engage_dwell: float = constant(0.002, 'How long the force must stay above', 's', 0.0)
    release_dwell: float = constant(0.002, 'How long the force must stay below', 's', 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, 'release', self.release < self.engage,
                      f"below 'engage', {self.engage} (shares of body weight): lower it, or raise "
                      "'engage'")


class ContactDetector:
    """
    Decides by its normal force whether one foot is in contact: hysteresis with dwell times.

    Parameters
    ----------
    thresholds
        When a contact begins and ends.
    body_weight
        N, of the robot's model.

    """

    def __init__(self, thresholds: ContactThresholds, body_weight: float) -> None:
        self.set_thresholds(thresholds, body_weight)
        self.reset()

    def set_thresholds(self, thresholds: ContactThresholds, body_weight: float) -> None:
        """Use other thresholds, or another weight of the robot, N; the state is kept."""
        self._engage = thresholds.engage * body_weight
        self._release = thresholds.release * body_weight
        self._engage_dwell_ns = nanoseconds(thresholds.engage_dwell)
        self._release_dwell_ns = nanoseconds(thresholds.release_dwell)

    def reset(self) -> None:
        """Reset: the next sample decides at once, without dwell."""
        self.in_contact = self._known = False
        self._crossed_ns: int | None = None

    def update(self, normal_force: float, stamp_ns: int) -> bool:
        """
        Return whether there is contact, by the normal force (N) at `stamp_ns` (ns, rising).

        The first sample decides by the mid-point between the thresholds.
        """
        if not self._known:
            self._known = True
            self.in_contact = normal_force > 0.5 * (self._engage + self._release)
        if not (normal_force < self._release if self.in_contact
                else normal_force > self._engage):
            self._crossed_ns = None
            return self.in_contact
        if self._crossed_ns is None:
            self._crossed_ns = stamp_ns
        dwell_ns = self._release_dwell_ns if self.in_contact else self._engage_dwell_ns
        if stamp_ns - self._crossed_ns >= dwell_ns:
            self.in_contact, self._crossed_ns = not self.in_contact, None
        return self.in_contact


class FootContacts:
    """
    The contact states of all feet.

    Parameters
    ----------
    thresholds, body_weight
        As for :class:`ContactDetector`.
    count
        Number of feet.

    """

    def __init__(self, thresholds: ContactThresholds, body_weight: float, count: int) -> None:
        self._detectors = [ContactDetector(thresholds, body_weight) for _ in range(count)]

    def set_thresholds(self, thresholds: ContactThresholds, body_weight: float) -> None:
        """Use other thresholds, or another weight of the robot, N; the states are kept."""
        for detector in self._detectors:
            detector.set_thresholds(thresholds, body_weight)

    def reset(self) -> None:
        """Reset all detectors, see `ContactDetector.reset`."""
        for detector in self._detectors:
            detector.reset()

    def update(self, normal_forces: Sequence[float], stamp_ns: int) -> tuple[bool, ...]:
        """Return which feet are in contact, by their normal forces (N) at `stamp_ns` (ns)."""
        return tuple([detector.update(force, stamp_ns)
                      for detector, force in zip(self._detectors, normal_forces)])
