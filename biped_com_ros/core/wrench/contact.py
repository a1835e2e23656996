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
Contact of feet and hands: by their forces, or with what probability.

The probability is that of a hidden Markov model per foot with two states, by force, kinematics and
the IMU's vertical. The force of a foot in the air is zero up to its
uncertainty; that of a foot in contact may have any value up to 1.5 times the weight. A foot whose
lowest corner is above that of another foot in contact is unlikely to touch, too; uneven ground
limits its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.errors import check_setting
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.signals.schmitt import SchmittTrigger
import numpy as np


@dataclass(frozen=True, kw_only=True)
class ContactThresholds(Settings):
    """When a contact begins and ends."""

    engage: float = setting(
        0.06, 'Normal force of a foot, as a share of body weight, above which contact begins', '',
        0.001, 0.9, name='contact_engage')
    release: float = setting(
        0.03, 'Normal force of a foot, as a share of body weight, below which contact ends', '',
        0.001, 0.9, name='contact_release')
    #: How long the force must stay above, s.
    engage_dwell: float = 0.002
    #: How long the force must stay below, s.
    release_dwell: float = 0.002

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


#: Largest log odds by which one instant changes those of a contact, by force and by heights.
_FORCE_LIMIT, _HEIGHT_LIMIT = 6.0, 4.0
#: Limit of the log odds of a contact.
_CERTAIN = 8.0


#: Deviation of the force of a foot in the air besides its covariance, as a share of weight.
_FORCE_DEVIATION = 0.02
#: Deviation of the lowest corner of a foot in contact from those of others in contact, m.
_HEIGHT_DEVIATION = 0.02
#: Time after which a measurement counts as a new one, s.
_CORRELATION_TIME = 0.004
#: How often a contact begins or ends a priori, 1/s.
_CHANGE_RATE = 3.0
#: Probability above which a contact begins.
_ENGAGE = 0.6
#: Probability below which a contact ends.
_RELEASE = 0.4


def probable_contacts(count: int) -> FootContacts:
    """Return what decides by their probabilities which of so many feet are in contact, at once."""
    return FootContacts(ContactThresholds(
        engage=_ENGAGE, release=_RELEASE, engage_dwell=0.0, release_dwell=0.0), 1.0, count)


class ContactProbabilities:
    """
    The probability of contact of each foot, and whether it counts as in contact.

    Parameters
    ----------
    model
        The robot.
    body_weight
        N.

    Attributes
    ----------
    probabilities
        Of each foot, (F,).
    in_contact
        Whether each foot counts as in contact.

    """

    def __init__(self, model: RobotModel, body_weight: float) -> None:
        self._weight = body_weight
        self._corners = [foot.polygon for foot in model.config.feet.values()]
        self._contacts = probable_contacts(len(self._corners))
        self.reset()

    def reset(self) -> None:
        """Start anew, with probabilities of one half."""
        count = len(self._corners)
        self.probabilities = np.full(count, 0.5)
        self.in_contact: tuple[bool, ...] = (False,) * count
        self._contacts.reset()

    def update(self, dt: float, normal_forces: Array, deviations: Array,
               soles: Array) -> tuple[bool, ...]:
        """
        Update with the next instant, and return which feet are in contact.

        Parameters
        ----------
        dt
            Time since the one before, s.
        normal_forces, deviations
            On each foot with standard deviation, (F,), N.
        soles
            Placements of the soles along the axes of the world, (F, 4, 3), as
            :meth:`RobotState.along_world` returns them.

        """
        before = self.probabilities.tolist()
        certainty = min(1.0, dt / _CORRELATION_TIME)
        change = min(0.5, _CHANGE_RATE * dt)
        heights = self._lowest_corners(soles)
        following = []
        for foot, (force, deviation) in enumerate(
                zip(normal_forces.tolist(), deviations.tolist())):
            prior = before[foot] + (1.0 - 2.0 * before[foot]) * change
            odds = math.log(prior / (1.0 - prior)) + certainty * (
                self._by_force(force, deviation) + self._by_height(foot, heights, before))
            following.append(1.0 / (1.0 + math.exp(-max(-_CERTAIN, min(odds, _CERTAIN)))))
        self.probabilities = np.array(following)
        self.in_contact = self._contacts.update(following, 0)
        return self.in_contact

    def _lowest_corners(self, soles: Array) -> list[float]:
        """Return the height of each sole's lowest corner from the base, m."""
        heights = []
        for corners, sole in zip(self._corners, soles):
            along_x, along_y = sole.item(2), sole.item(5)
            heights.append(sole.item(11) + min([x * along_x + y * along_y for x, y in corners]))
        return heights

    def _by_force(self, force: float, deviation: float) -> float:
        """Return the log odds of contact by one force, N."""
        width = math.hypot(deviation, _FORCE_DEVIATION * self._weight)
        odds = (math.log(math.sqrt(2.0 * math.pi) * width / (1.5 * self._weight))
                + 0.5 * (max(force, 0.0) / width) ** 2)
        return max(-_FORCE_LIMIT, min(odds, _FORCE_LIMIT))

    def _by_height(self, foot: int, heights: list[float], probabilities: list[float]) -> float:
        """Return the log odds of contact by the height above other feet in contact."""
        odds = 0.0
        for other, probability in enumerate(probabilities):
            if other != foot:
                above = (heights[foot] - heights[other]) / _HEIGHT_DEVIATION
                odds = min(odds, -min(0.5 * above * above, _HEIGHT_LIMIT) * probability)
        return odds
