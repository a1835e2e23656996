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
What stands between computed efforts and motors: clamp, rate limit, ramps, watchdog, IMU check.

Pure functions of what they are told and of the time that passed; no clock is read here.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
import numpy as np
from numpy.typing import NDArray

#: So much of a clamp may be lost to rounding before the short way is left.
_ROUNDING = 1e-9
#: Stands for the infinite time of a change that is not allowed; its square is finite, s.
_ENDLESS = 1e150
OFF, STARTING, ON, HOLDING, STOPPING = 'off', 'starting', 'on', 'holding', 'stopping'


@dataclass(frozen=True)
class SafetySettings:
    """
    How far efforts may go, and how fast.

    Attributes
    ----------
    clamp
        Largest effort, as a share of the joint's limit.
    max_rate
        Fastest change of an effort, as a share of the joint's limit per second.
    start_time, stop_time
        Of the ramps from zero to full effort and back, s.
    hold_time
        How long the last efforts are held when there are no new ones, before they ramp to zero, s.
    max_step
        However long the last update is ago, no change is larger than allowed in this time, s.
    unlimited
        Limit of joints whose URDF gives none, N m or N; zero: they get no effort.

    """

    clamp: float = 0.5
    max_rate: float = 2.0
    start_time: float = 2.0
    stop_time: float = 1.0
    hold_time: float = 0.2
    max_step: float = 0.01
    unlimited: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (('clamp', 0.0), ('max_rate', 0.0), ('start_time', 0.0),
                            ('stop_time', 0.0), ('max_step', 0.0)):
            if not getattr(self, name) > least:
                raise ConfigurationError(
                    f'effort safety: {name} is {getattr(self, name)}; it must be positive')
        if self.clamp > 1.0:
            raise ConfigurationError(
                f'effort safety: clamp is {self.clamp}; it must be a share of the limits, up to 1')
        if not (self.hold_time >= 0.0 and self.unlimited >= 0.0):
            raise ConfigurationError(
                f'effort safety: hold_time {self.hold_time} s and unlimited {self.unlimited} N m '
                'must not be negative')


class EffortGuard:
    """
    Turns efforts that are wanted into efforts that may be commanded.

    Parameters
    ----------
    limits
        Effort limits of the joints, shape (n,), N m or N; may be infinite.
    settings
        How far and how fast.

    Attributes
    ----------
    efforts
        What may be commanded now, shape (n,), N m or N.
    bounds
        Largest absolute efforts, shape (n,).

    """

    def __init__(self, limits: Array, settings: SafetySettings | None = None) -> None:
        count = len(limits)
        self._nobody = np.zeros(count)
        self._reached: Array | None = None
        self.enabled = np.ones(count, dtype=bool)
        self.efforts, self._target, self._gains = (np.zeros(count) for _ in range(3))
        self._desired, self._change, self._step, self._scaled = (
            np.zeros(count) for _ in range(4))
        self._is_full = False  # whether every joint has its full effort
        self._step_dt, self._room = -1.0, 0.0
        self._raw_limits = limits
        self.active = False
        self._silence = math.inf
        self.configure(settings or SafetySettings())

    def configure(self, settings: SafetySettings) -> None:
        """Use other settings from the next update on."""
        self.settings = settings
        limits = np.where(np.isfinite(self._raw_limits), self._raw_limits, settings.unlimited)
        self.bounds = settings.clamp * limits
        self._least = -self.bounds
        self._rates = settings.max_rate * limits
        # For the short way: seconds that a change by one takes, endless without a limit.
        self._seconds = np.full(len(limits), _ENDLESS)
        np.divide(1.0, self._rates, out=self._seconds, where=self._rates > 0.0)
        self._room = 0.0
        self._step_dt = -1.0

    def start(self) -> None:
        """Ramp up from now on."""
        self.active = True

    def stop(self) -> None:
        """Ramp down from now on."""
        self.active = False

    @property
    def enabled(self) -> NDArray[np.bool_]:
        """Which joints take part, shape (n,); assign to change: they ramp in and out."""
        return self._enabled > 0.0

    @enabled.setter
    def enabled(self, enabled: NDArray[np.bool_]) -> None:
        self._enabled = np.array(enabled, dtype=float)

    @property
    def saturated(self) -> NDArray[np.bool_]:
        """Which joints the clamp held back at the last update, shape (n,)."""
        return np.abs(self._desired) > self.bounds

    @property
    def idle(self) -> bool:
        """Whether nothing is commanded and nothing will be before the next start."""
        return not self.active and not self.efforts.any()

    @property
    def state(self) -> str:
        """Return in words what it does."""
        if not self.active:
            return OFF if self.idle else STOPPING
        if self._silence > 0.0:
            return HOLDING if self._silence <= self.settings.hold_time else STOPPING
        return ON if bool((self._gains >= self._enabled).all()) else STARTING

    def update(self, wanted: Array | None, dt: float) -> Array:
        """
        Go on by one step.

        Parameters
        ----------
        wanted
            Efforts (n,), kept until the next ones come; None if there is nothing that could be
            trusted. Values that are not finite count as that.
        dt
            Time since the last update, s; negative counts as zero.

        Returns
        -------
        numpy.ndarray
            :attr:`efforts`.

        """
        # Not min and max: that takes three times as long.
        dt = dt if 0.0 < dt < math.inf else 0.0
        longest = self.settings.max_step
        step = dt if dt < longest else longest
        is_steady = self.active and self._silence == 0.0 and self._reached is self._enabled
        if is_steady and wanted is not None and self._goes_short_way(wanted, step):
            return self.efforts
        # NaN and infinity survive the product.
        if wanted is not None and float(wanted.dot(wanted)) < math.inf:
            self._target = wanted
            self._silence = 0.0
        else:
            self._silence += dt
        self._ramp(step)
        self._approach(step)
        return self.efforts

    def _goes_short_way(self, wanted: Array, dt: float) -> bool:
        """
        Follow a change that certainly passes rate limit and clamp; tell whether it does.

        Only while no ramp is under way and nothing is silent.

        In seconds that it would take at the fastest, no joint's change is longer than all of them
        together; and none comes to its clamp before they have used up the room of the one that is
        nearest to it. What is not finite is not short.
        """
        change, seconds = self._change, self._scaled
        desired = wanted if self._is_full else self._gains * wanted
        np.subtract(desired, self.efforts, change)
        np.multiply(change, self._seconds, seconds)
        squared = seconds.dot(seconds)
        if not squared < dt * dt:
            return False
        step = math.sqrt(squared)
        if step >= self._room:
            self._room = self._find_room()
            if step >= self._room:
                return False
        self._room -= step
        self.efforts += change
        self._target, self._desired = wanted, desired
        return True

    def _ramp(self, dt: float) -> None:
        settings = self.settings
        silent = self._silence > 0.0
        if silent and self.active and self._silence <= settings.hold_time:
            return
        goal = self._enabled if self.active and not silent else self._nobody
        if goal is self._reached:
            return
        up, down = dt / settings.start_time, dt / settings.stop_time
        self._gains += np.minimum(np.maximum(goal - self._gains, -down), up)
        self._reached = goal if np.array_equal(self._gains, goal) else None
        self._is_full = self._reached is not None and bool(goal.all())

    def _approach(self, dt: float) -> None:
        change, step = self._change, self._step
        desired = self._desired = (
            self._target if self._is_full else self._gains * self._target)
        np.maximum(desired, self._least, out=change)
        np.minimum(change, self.bounds, out=change)
        change -= self.efforts
        if dt != self._step_dt:
            np.multiply(self._rates, dt, out=step)
            self._step_dt = dt
        np.minimum(change, step, out=change)
        # Not below minus the step: from above, turned about.
        np.negative(change, out=change)
        np.minimum(change, step, out=change)
        self.efforts -= change
        self._room -= dt

    def _find_room(self) -> float:
        """Return how far the joint that is nearest to its clamp is from it, in seconds."""
        used = float(np.abs(self.efforts * self._seconds).max(initial=0.0))
        return (1.0 - _ROUNDING) * self.settings.clamp / self.settings.max_rate - used


class UprightCheck:
    """
    Whether an IMU's orientation can be true: not too tilted, not jumping.

    Parameters
    ----------
    max_tilt
        Largest angle between the base's z axis and the vertical, rad.
    max_speed
        Fastest change of the direction of gravity in the base, rad/s.
    settle_time
        After a jump, how long readings have to be steady before they are believed, s.

    Attributes
    ----------
    problem
        What is wrong; '' if nothing.

    """

    #: A change by less is never a jump, however short the time, rad.
    TOLERANCE = 0.02

    def __init__(self, max_tilt: float, max_speed: float, settle_time: float) -> None:
        self.max_tilt, self.max_speed, self.settle_time = max_tilt, max_speed, settle_time
        self._least_up = math.cos(min(max_tilt, math.pi))
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.problem = ''
        self._up: list[float] | None = None
        self._ns = 0
        self._settled_ns: int | None = None
        self._jump = ''

    def update(self, up_in_base: Array, stamp_ns: int) -> bool:
        """Take the unit vector against gravity (3,) at a time (ns); return whether it is fine."""
        return self.follow(up_in_base.tolist(), stamp_ns)

    def follow(self, up: list[float], stamp_ns: int) -> bool:
        """Do as :meth:`update`, on plain numbers."""
        before, before_ns = self._up, self._ns
        self._up, self._ns = up, stamp_ns
        # A chord is shorter than its arc.
        if (before is not None and stamp_ns > before_ns
                and (chord := math.dist(before, up)) > self.TOLERANCE):
            self._look_for_jump(chord, stamp_ns - before_ns)
        if self._settled_ns is not None and stamp_ns >= self._settled_ns:
            self._settled_ns, self._jump = None, ''
        self.problem = self._jump if up[2] >= self._least_up else self._tilted(up[2])
        return not self.problem

    def _look_for_jump(self, chord: float, ns: int) -> None:
        turned = 2.0 * math.asin(min(0.5 * chord, 1.0))
        if turned > self.TOLERANCE + self.max_speed * 1e-9 * ns:
            self._settled_ns = self._ns + nanoseconds(self.settle_time)
            self._jump = f"the IMU's orientation jumped by {math.degrees(turned):.1f} deg"

    def _tilted(self, up_z: float) -> str:
        tilt = math.degrees(math.acos(min(max(up_z, -1.0), 1.0)))
        return (f'the IMU says that the base is tilted by {tilt:.0f} deg (at most '
                f'{math.degrees(self.max_tilt):.0f}): check how it is mounted')
