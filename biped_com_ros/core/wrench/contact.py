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
"""Contact of feet and hands, by their forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.settings import constant, setting, Settings
from biped_com_ros.core.signals.schmitt import SchmittTrigger


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

    def trigger(self, body_weight: float) -> SchmittTrigger:
        """Return what detects contact by a force, of a robot of this weight, N."""
        return SchmittTrigger(*self.values(body_weight))

    def values(self, body_weight: float) -> tuple[float, float, float, float]:
        """Return the parameters of :class:`.SchmittTrigger` for forces, weight in N."""
        return (self.engage * body_weight, self.release * body_weight, self.engage_dwell,
                self.release_dwell)


class FootContacts:
    """
    The contact states of all feet, by their forces or by anything that is large in contact.

    Parameters
    ----------
    thresholds, body_weight
        When a contact begins and ends; N.
    count
        Number of feet.

    """

    def __init__(self, thresholds: ContactThresholds, body_weight: float, count: int) -> None:
        self._triggers = [thresholds.trigger(body_weight) for _ in range(count)]

    def configure(self, thresholds: ContactThresholds, body_weight: float) -> None:
        """Use other thresholds, or another weight of the robot, N; the states are kept."""
        for trigger in self._triggers:
            trigger.configure(*thresholds.values(body_weight))

    def reset(self) -> None:
        """Reset: the next forces decide at once, without dwell."""
        for trigger in self._triggers:
            trigger.reset()

    def update(self, normal_forces: Sequence[float], stamp_ns: int) -> tuple[bool, ...]:
        """Return which feet are in contact, by their normal forces (N) at `stamp_ns` (ns)."""
        return tuple([trigger.update(force, stamp_ns)
                      for trigger, force in zip(self._triggers, normal_forces)])
