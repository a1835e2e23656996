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
The last step before efforts are published: ramps, the rate limit, then an unconditional clamp.

A function of targets and time steps only; no clock is read here.

There is one path to the efforts, and its last line is the clamp: at every instant all efforts
are within the bounds. The rate limit holds as long as the clamp permits it: bounds that are made
smaller at run time take effect at once, with a step, not after some time at the rate limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.signals.filters import limited_step
import numpy as np

IDLE, WAITING, STARTING, ACTIVE = 'idle', 'waiting', 'starting', 'active'
HOLDING, RAMPING = 'holding', 'ramping to zero'


@dataclass(frozen=True, kw_only=True)
class SafetySettings(Settings):
    """How large efforts may be, and how fast they may change."""

    clamp: float = setting(
        0.5, "Largest effort, as a share of the joint's limit in the URDF", '', 0.001, 1.0,
        name='effort_clamp')
    max_rate: float = setting(
        2.0, "Fastest change of an effort, as a share of the joint's limit per second", '1/s',
        0.001, 1000.0, name='effort_rate')
    start_time: float = setting(
        2.0, 'Duration of the soft start, from zero to full effort', 's', 0.01, 60.0)
    stop_time: float = setting(1.0, 'Duration of the soft stop', 's', 0.01, 60.0)
    hold_time: float = setting(
        0.2, 'How long the last efforts are held before they ramp to zero when an input is '
        'too old', 's', 0.0, 10.0)
    #: Largest time step of the rate limit and of ramps up, however long ago the last update was;
    #: ramps to zero take stop_time at any rate of updates, s.
    max_dt: float = 0.01
    default_limit: float = setting(
        0.0, 'Effort limit of joints that have none in the URDF; 0: they get no effort',
        'N m or N', 0.0, 1e5, name='default_effort_limit')


class EffortLimiter:
    """
    Turns target efforts into efforts that may be commanded.

    Parameters
    ----------
    limits
        Effort limits of the joints, shape (n,), N m or N; may be infinite.
    settings
        Clamp, rate limit and ramps.

    Attributes
    ----------
    efforts
        What may be commanded now, shape (n,), N m or N; a new array at each update.
    bounds
        Largest absolute efforts, shape (n,); no effort exceeds them at any time.
    active
        Whether it was started and not stopped since.
    is_at_zero
        Whether the efforts are zero.

    """

    def __init__(self, limits: Array, settings: SafetySettings | None = None) -> None:
        self._limits = limits
        self.efforts, self._target, self._scaled_target, self._gains = np.zeros((4, len(limits)))
        self.enabled = np.ones(len(limits), dtype=bool)
        self.active = False
        self._target_age = math.inf  # s
        self.configure(settings or SafetySettings())

    def configure(self, settings: SafetySettings) -> None:
        """Use other settings; efforts beyond smaller bounds are clamped at once."""
        limits = np.where(np.isfinite(self._limits), self._limits, settings.default_limit)
        self.settings = settings
        self.bounds, self._rates = settings.clamp * limits, settings.max_rate * limits
        self._limit_rate_and_clamp(self.efforts, self.efforts, 0.0)

    def start(self) -> None:
        """Ramp up from now on."""
        self.active = True

    def stop(self) -> None:
        """Ramp down from now on."""
        self.active = False

    def continue_from(self, commanded: Array) -> None:
        """
        Start from efforts that the controller applies already, and hold them.

        For a node that replaces one that was killed: the controller still applies the last efforts
        of that one. The rate limit starts from these, not from zero, which would be a step; the
        clamp is applied to them as to all others. They are held for `hold_time`.

        Parameters
        ----------
        commanded
            Shape (n,), N m or N. Efforts of another shape, or not finite, are not used.

        """
        if not self._is_usable(commanded):
            return
        self._limit_rate_and_clamp(commanded, commanded, 0.0)
        self._target[...] = self.efforts
        self._gains, self._target_age = self._enabled.copy(), 0.0

    @property
    def enabled(self) -> BoolArray:
        """Which joints get efforts, shape (n,); assign to change: they ramp in and out."""
        return self._enabled > 0.0

    @enabled.setter
    def enabled(self, enabled: BoolArray) -> None:
        self._enabled = np.array(enabled, dtype=float)

    @property
    def saturated(self) -> BoolArray:
        """Which joints the clamp limited at the last update, shape (n,)."""
        return np.abs(self._scaled_target) > self.bounds

    def describe_saturation(self, names: Sequence[str]) -> str:
        """
        Return which joints the clamp limited at the last update, and what helps; '' if none.

        Parameters
        ----------
        names
            Of the joints.

        """
        clamp, default = self.settings.clamp, self.settings.default_limit
        is_known = np.isfinite(self._limits)
        limited, unlimited = (
            ', '.join(name for name, is_one in zip(names, self.saturated & which) if is_one)
            for which in (is_known, ~is_known))
        parts = []
        if unlimited:
            given = f'only {default:g} N m or N' if default else 'no effort'
            parts.append(
                f'{given} for {unlimited}, which have no effort limit in the URDF: set '
                'default_effort_limit to what their drives can give, or <limit effort="..."/>')
        if limited:
            raised = ', or raise effort_clamp' if clamp < 1.0 else ''
            parts.append(f'efforts limited by effort_clamp ({clamp:g} of the limits in the URDF) '
                         f'at {limited}: change the posture{raised}')
        return f'{"; ".join(parts)}; the robot is not fully compensated' if parts else ''

    @property
    def idle(self) -> bool:
        """Whether nothing is commanded and nothing will be before the next start."""
        return not self.active and self.is_at_zero

    @property
    def state(self) -> str:
        """One of IDLE, WAITING, STARTING, ACTIVE, HOLDING and RAMPING."""
        if self.active and self._target_age == 0.0:
            return ACTIVE if bool((self._gains >= self._enabled).all()) else STARTING
        if self.is_at_zero:
            return WAITING if self.active else IDLE
        return HOLDING if self._holds else RAMPING

    @property
    def _holds(self) -> bool:
        return self.active and 0.0 < self._target_age <= self.settings.hold_time

    @property
    def is_interrupted(self) -> bool:
        """Whether efforts are held or ramp to zero without a stop."""
        return self.active and self.state in (HOLDING, RAMPING)

    @property
    def is_near_zero(self) -> bool:
        """Whether the rate limit permits one update to get from the efforts to zero."""
        largest = self._rates * self.settings.max_dt
        return bool((np.abs(self.efforts) <= largest).all())

    @property
    def has_target(self) -> bool:
        """Whether the target of the last update was used."""
        return self._target_age == 0.0

    def update(self, target: Array | None, dt: float) -> Array:
        """
        Compute the efforts of the next step.

        Parameters
        ----------
        target
            Efforts (n,), held until the next ones; None if there are no valid ones. Those of
            another shape, or not finite, are not used; see :attr:`has_target`.
        dt
            Time since the last update, s; a negative or not finite one counts as zero.

        Returns
        -------
        numpy.ndarray
            :attr:`efforts`.

        """
        elapsed = dt if 0.0 < dt < math.inf else 0.0
        step = min(elapsed, self.settings.max_dt)
        if target is not None and self._is_usable(target):
            self._target[...] = target
            self._target_age = 0.0
        else:
            self._target_age += elapsed
        self._ramp_gains(step, elapsed)
        self._scaled_target = self._gains * self._target
        self._limit_rate_and_clamp(self._scaled_target, self.efforts, step)
        return self.efforts

    def _is_usable(self, efforts: Array) -> bool:
        """Return whether the shape is right and all values are finite."""
        # The sum of the squares is finite only if all values are.
        return efforts.shape == self._target.shape and float(efforts.dot(efforts)) < math.inf

    def _ramp_gains(self, dt: float, elapsed: float) -> None:
        """Move the share of the target that each joint gets; no change while holding."""
        if self._holds:
            return
        goal = self._enabled if self.active and self._target_age == 0.0 else 0.0
        up, down = dt / self.settings.start_time, elapsed / self.settings.stop_time
        # As numpy.clip, in a third of its time.
        self._gains = np.minimum(np.maximum(goal, self._gains - down), self._gains + up)

    def _limit_rate_and_clamp(self, target: Array, previous: Array, dt: float) -> None:
        """Set the efforts; nothing else does. First the rate limit, then, always, the clamp."""
        self.efforts = limited_step(target, previous, self._rates * dt, -self.bounds, self.bounds)
        self.is_at_zero = not self.efforts.any()
