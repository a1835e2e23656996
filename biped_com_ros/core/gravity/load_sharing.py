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
How the contacts share the weight, from their measured vertical forces.

Efforts computed from contact wrenches jump when a contact is removed that still has load. So
shares follow the measured forces, but reach zero while the foot is still on the ground:

    s(f) = 0                below `lift`, a share of body weight
    s(f) = a smooth blend   between
    s(f) = f                above `full`
    share_k = s(f_k) / sum of all s(f)

and change no faster than `max_rate`, more slowly the smaller they are, down to a tenth of it (a
fifth when they shrink). Efforts change most with the share of a contact that has little load:
the moment that the other ankle's torque balanced goes over to a pair of forces. So the share of a
contact is zero when it leaves the ground, unless it is lifted faster than that; then its share,
and with it the efforts, go to zero at that rate.

An uncertain force, such as one from joint torques, counts in the blend less its standard
deviation: a foot that may be in the air gets nothing to carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from operator import sub

from biped_com_ros.core.constants import LONGEST_STEP_NS
from biped_com_ros.core.settings import setting, Settings

#: The rate of change as a share of `max_rate`: at a share of zero while it grows, ...
_SLOWEST_UP = 0.1
#: ... and while it shrinks, ...
_SLOWEST_DOWN = 0.2
#: ... and its increase per unit of the share.
_QUICKENING = 2.0

#: Force from which on the share of a contact is its measured one.
_FULL = 0.2
#: Sum of the forces, as a share of body weight, below which the robot counts as in the air.
_AIR = 0.3
#: Sum, as such a share, above which it is on the ground again.
_GROUND = 0.5


@dataclass(frozen=True, kw_only=True)
class SharingSettings(Settings):
    """How shares follow forces."""

    lift: float = setting(
        0.06, 'Vertical force, as a share of body weight, below which a contact has no share, '
        'above contact_release', '', 0.0, 0.19, name='unload_threshold')
    #: Fastest change of a share near a half; at zero a tenth or a fifth of it, 1/s.
    max_rate: float = 2.0


class LoadSharing:
    """
    The shares of all contacts.

    Parameters
    ----------
    count
        Number of contacts.
    body_weight
        N.
    settings
        How shares follow forces.

    Attributes
    ----------
    body_weight
        Of the robot, N; may be changed.
    values
        The shares as a list of K numbers, sum 1; before the first forces all zero.
    in_air
        Whether the forces are too small for a robot on the ground, or not finite.
    settled
        Whether the shares have reached those of the last forces.

    """

    def __init__(self, count: int, body_weight: float,
                 settings: SharingSettings | None = None) -> None:
        self._count, self.body_weight = count, body_weight
        self.settings = settings or SharingSettings()
        self.reset()

    def reset(self) -> None:
        """Discard all forces; the next forces are used without a rate limit."""
        self.values = [0.0] * self._count
        self.in_air = True
        self.settled = False
        self._stamp_ns: int | None = None

    def update(self, vertical_forces: Sequence[float], stamp_ns: int,
               deviations: Sequence[float] = ()) -> list[float]:
        """
        Follow the vertical force at each contact.

        Parameters
        ----------
        vertical_forces
            Of the environment on the robot, K Python floats, N.
        stamp_ns
            Time, ns.
        deviations
            Their standard deviations, N; empty: they are certain.

        Returns
        -------
        list
            :attr:`values`; unchanged while in the air.

        """
        targets = self._targets(vertical_forces, deviations)
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        self.settled = True
        if targets is None:
            if before is None:  # not on the ground since the start
                self._stamp_ns = None
        elif before is None or not 0 <= stamp_ns - before < LONGEST_STEP_NS:
            self.values = targets
        else:
            self._approach(targets, 1e-9 * (stamp_ns - before))
        return self.values

    def hold(self, stamp_ns: int) -> None:
        """Keep the shares at a time (ns) whose forces are not credible."""
        if self._stamp_ns is not None:
            self._stamp_ns = stamp_ns
        self.settled = True

    def impose(self, shares: list[float]) -> list[float]:
        """Set planned shares; the next measured ones are approached from there."""
        self.values = shares
        self.settled = False
        return shares

    def _targets(self, forces: Sequence[float], deviations: Sequence[float]) -> list[float] | None:
        """Return where the shares should be; None in the air."""
        settings, weight, total = self.settings, self.body_weight, sum(forces)
        least = weight * (_GROUND if self.in_air else _AIR)
        self.in_air = not least < total < math.inf
        if self.in_air:
            return None
        certain = list(map(sub, forces, deviations)) if deviations else forces
        if min(certain) >= _FULL * weight:
            return [force / total for force in forces]
        low, width = settings.lift, _FULL - settings.lift
        faded = []
        for force, lower in zip(forces, certain):
            force /= weight
            phase = (lower / weight - low) / width
            if phase < 1.0:
                # Exactly zero, not the negative one of a foot that is pulled a little.
                force = force * phase * phase * (3.0 - 2.0 * phase) if phase > 0.0 else 0.0
            faded.append(force)
        total = sum(faded)
        return [force / total for force in faded] if total > 0.0 else None

    def _approach(self, targets: list[float], dt: float) -> None:
        values, limit, fraction = self.values, self.settings.max_rate * dt, 1.0
        changes = list(map(sub, targets, values))
        if max(map(abs, changes)) <= _SLOWEST_UP * limit:  # always allowed
            self.values = targets
            return
        # All move by the same fraction, so that the sum stays 1.
        for value, change in zip(values, changes):
            slowest = _SLOWEST_UP if change > 0.0 else _SLOWEST_DOWN
            allowed = limit * min(slowest + _QUICKENING * value, 1.0)
            if not -allowed <= fraction * change <= allowed:
                fraction = allowed / abs(change)
        self.settled = fraction == 1.0
        self.values = targets if self.settled else [
            value + fraction * change for value, change in zip(values, changes)]
