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
How the contacts share the weight, from the vertical forces they feel.

Efforts computed from contact wrenches jump when a contact that still carries something is taken
away. So shares follow the measured forces, but reach zero while the foot is still on the ground:

    s(f) = 0 below `lift` (share of body weight), f above `full`, a smooth blend between
    share_k = s(f_k) / sum s(f)

and move no faster than `max_rate`, whatever the sensors say. A contact that leaves the ground
thus carries exactly nothing when it does, unless it is torn off faster than `max_rate` allows;
then its share, and with it the efforts, go to zero at that rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.pose import Array
import numpy as np

#: After a longer pause, or a step back in time, shares start anew.
LONGEST_STEP_NS = 500_000_000


@dataclass(frozen=True)
class SharingSettings:
    """
    How shares follow forces.

    Attributes
    ----------
    lift
        Vertical force, as a share of body weight, at and below which a contact carries nothing.
        Keep it above the contacts' release threshold.
    full
        Force from which on a contact carries what it feels.
    max_rate
        Fastest change of a share, 1/s.
    air, ground
        Sum of the forces, as a share of body weight, below which the robot counts as in the air,
        above which as on the ground again.

    """

    lift: float = 0.06
    full: float = 0.15
    max_rate: float = 2.0
    air: float = 0.3
    ground: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.lift < self.full < 0.5:
            raise ConfigurationError(
                f'load sharing from lift {self.lift} to full {self.full} must be shares of body '
                'weight with 0 <= lift < full < 0.5')
        if not self.max_rate > 0.0:
            raise ConfigurationError(
                f'load sharing with max_rate {self.max_rate} 1/s: it must be positive')
        if not 0.0 < self.air < self.ground <= 1.0:
            raise ConfigurationError(
                f'load sharing in the air below {self.air} and on the ground above {self.ground} '
                'must be shares of body weight with 0 < air < ground <= 1')


class LoadSharing:
    """
    The shares of all contacts, and which of them carry.

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
    shares
        Shape (K,), sum 1, except before the first force: then zero.
    in_air
        Whether the contacts carry too little for a robot on the ground.

    """

    def __init__(self, count: int, body_weight: float,
                 settings: SharingSettings | None = None) -> None:
        self._count, self._weight = count, body_weight
        self.settings = settings or SharingSettings()
        self.reset()

    def reset(self) -> None:
        """Forget everything; the next forces are taken as they are."""
        self.shares = np.zeros(self._count)
        self.in_air = True
        self._stamp_ns: int | None = None

    def update(self, vertical_forces: Sequence[float] | Array, stamp_ns: int) -> Array:
        """
        Take the vertical force at each contact.

        Parameters
        ----------
        vertical_forces
            Of the environment on the robot, (K,), N.
        stamp_ns
            Time, ns.

        Returns
        -------
        numpy.ndarray
            :attr:`shares`; while in the air they are held.

        """
        forces = [float(force) / self._weight for force in vertical_forces]
        self._watch_air(sum(forces))
        targets = [self._ramp(force) for force in forces]
        total = sum(targets)
        if self.in_air or not total > 0.0:
            self._stamp_ns = stamp_ns if self._stamp_ns is not None else None
            return self.shares
        self._approach([target / total for target in targets], self._step(stamp_ns))
        return self.shares

    @property
    def carrying(self) -> tuple[bool, ...]:
        """Which contacts have a share."""
        return tuple([share > 0.0 for share in self.shares.tolist()])

    def _watch_air(self, total: float) -> None:
        limit = self.settings.ground if self.in_air else self.settings.air
        self.in_air = not total > limit

    def _ramp(self, force: float) -> float:
        """Return the force, faded to nothing at `lift`."""
        low, high = self.settings.lift, self.settings.full
        phase = min(max((force - low) / (high - low), 0.0), 1.0)
        return force * phase * phase * (3.0 - 2.0 * phase)

    def _step(self, stamp_ns: int) -> float | None:
        """Return the time since the last update, s; None to start anew."""
        before, self._stamp_ns = self._stamp_ns, stamp_ns
        if before is None or not 0 <= stamp_ns - before < LONGEST_STEP_NS:
            return None
        return 1e-9 * (stamp_ns - before)

    def _approach(self, targets: list[float], dt: float | None) -> None:
        if dt is None:
            self.shares = np.array(targets)
            return
        moves = [target - share for target, share in zip(targets, self.shares.tolist())]
        biggest = max(map(abs, moves))
        if not biggest > 0.0:
            return
        # All move by the same fraction, so that the sum stays 1.
        fraction = self.settings.max_rate * dt / biggest
        self.shares = (np.array(targets) if fraction >= 1.0
                       else self.shares + fraction * np.array(moves))
