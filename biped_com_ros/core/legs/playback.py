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
Plays a gait: start, pause, resume and stop, smoothly and only where the robot can stand.

A pause slows the time of the gait down to zero, and resuming speeds it up again; both take the
time of a ramp and are smooth in acceleration. This changes the zero-moment point. Therefore
inverse dynamics of the whole robot is used to check for each time of the gait whether a halt that
begins there, and resuming after it, keep the zero-moment point within the support. A pause waits
for such a time, a stop for one after which both soles are on the ground. A quasi-static gait can
pause nearly anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
import copy
from enum import Enum
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.polygon import convex_hull, margin
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.footsteps import Footprint
from biped_com_ros.core.legs.gait import Gait, GaitSample
from biped_com_ros.core.legs.keyframes import minimum_jerk
import numpy as np

#: Between times at which halts are checked, s.
_STRIDE = 0.05
#: Between samples for :func:`longest_fall`, s.
_FALL_STRIDE = 0.01
#: Shares of a ramp at which its zero-moment point is checked.
_POINTS = np.linspace(0.0, 1.0, 13)


class PlaybackState(Enum):
    """State of a playback."""

    READY = 'ready'
    SPEEDING_UP = 'speeding up'
    PLAYING = 'playing'
    BRAKING = 'braking'
    PAUSED = 'paused'
    DONE = 'done'


_RESTING = (PlaybackState.READY, PlaybackState.PAUSED, PlaybackState.DONE)


class GaitPlayback:
    """
    Plays a gait.

    Parameters
    ----------
    gait
        The gait.
    ramp
        Duration of slowing down, and of speeding up, s.
    least_margin
        Smallest distance of the zero-moment point from the edge of the support in a pause, m.

    Attributes
    ----------
    state
        State of the playback.
    time
        Time of the gait, s; negative while it waits to begin.
    rate
        Rate of the time of the gait: 0 to 1.
    pause_is_pending
        Whether a pause waits for a time at which the robot can halt.
    stop_is_pending
        Whether a stop waits for such a time with both soles on the ground.

    """

    def __init__(self, gait: Gait, ramp: float = 0.5, least_margin: float = 0.01) -> None:
        if not 0.05 <= ramp <= 5.0:
            raise ConfigurationError(
                f'the ramp of a playback must be between 0.05 and 5 s, not {ramp}')
        self.gait, self._ramp, self._least_margin = gait, ramp, least_margin
        self._can_halt: dict[int, bool] = {}  # by index of the time
        self.state, self.time, self.rate = PlaybackState.READY, 0.0, 0.0
        self.pause_is_pending = self.stop_is_pending = False
        self._since, self._begun_at, self._brake_at = 0.0, 0.0, math.inf

    def start(self, lead: float = 0.0) -> None:
        """
        Begin, or resume after a pause; a pending pause or stop is cancelled.

        Parameters
        ----------
        lead
            Delay, s.

        Raises
        ------
        InputError
            If the gait is done, or brakes.

        """
        if self.state in (PlaybackState.DONE, PlaybackState.BRAKING):
            raise InputError(f'a gait that is {self.state.value} cannot start; '
                             'make a new one, or wait until it has paused')
        self.pause_is_pending = self.stop_is_pending = False
        self._brake_at = math.inf
        if self.state is PlaybackState.READY:  # a gait begins at rest
            self.state, self.rate, self.time = PlaybackState.PLAYING, 1.0, -lead
        elif self.state is PlaybackState.PAUSED:
            self._begin(PlaybackState.SPEEDING_UP, -lead)

    def pause(self, lead: float = 0.0) -> None:
        """
        Halt at the next time at which the robot can stand; nothing while it rests.

        Parameters
        ----------
        lead
            Delay, s.

        """
        if self.state in (PlaybackState.PLAYING, PlaybackState.SPEEDING_UP):
            self.pause_is_pending = True
            self._brake_at = self._find(self._may_halt, lead)

    def stop(self, lead: float = 0.0) -> None:
        """Halt as soon as possible on both soles; resume from a pause on one foot until then."""
        if self.state is PlaybackState.PAUSED and not self._is_on_both(self.time):
            self.start(lead)
        self.pause_is_pending = False
        self.stop_is_pending = self.state in (
            PlaybackState.PLAYING, PlaybackState.SPEEDING_UP, PlaybackState.BRAKING)
        if self.stop_is_pending:
            self._brake_at = self._find(self._may_stop, lead)

    def halt(self, lead: float = 0.0) -> None:
        """Halt at once, anywhere, for emergencies; a pending pause or stop is cancelled."""
        self.pause_is_pending = self.stop_is_pending = False
        if self.state is PlaybackState.PLAYING:
            self._brake_at = self.time + lead
            self._played(0.0)
        elif self.state is PlaybackState.SPEEDING_UP:
            # Back down the same ramp, so that the rate does not jump.
            self._since = self._ramp - max(self._since, 0.0)
            self._begun_at = self.time - self._ramp * _braked(self._since / self._ramp)
            self.state = PlaybackState.BRAKING

    def forecast(self, dt: float) -> list[GaitSample]:
        """
        Return the samples of :meth:`advance` from now on until the robot rests.

        Parameters
        ----------
        dt
            Between samples, s.

        """
        ahead = copy.copy(self)
        samples = [ahead.advance(0.0)]
        while ahead.state not in _RESTING:
            samples.append(ahead.advance(dt))
        return samples

    def advance(self, dt: float) -> GaitSample:
        """
        Advance the time and return the sample of the gait.

        Parameters
        ----------
        dt
            s, not negative.

        """
        if self.state is PlaybackState.PLAYING:
            dt = self._played(dt)
        if self.state in (PlaybackState.BRAKING, PlaybackState.SPEEDING_UP):
            self._ramped(dt)
        if self.time >= self.gait.duration:
            self.state, self.time, self.rate = PlaybackState.DONE, self.gait.duration, 0.0
        sample = self.gait.at(self.time)
        return sample._replace(velocities=self.rate * sample.velocities)

    def _begin(self, state: PlaybackState, since: float = 0.0) -> None:
        self.state, self._since, self._begun_at = state, since, self.time
        if state is PlaybackState.BRAKING:
            self.pause_is_pending, self._brake_at = False, math.inf

    def _played(self, dt: float) -> float:
        """Advance at full speed, at most until it brakes; return the rest of `dt`."""
        if self.time + dt < self._brake_at:
            self.time += dt
            return 0.0
        left = self.time + dt - max(self._brake_at, self.time)
        self.time = max(self._brake_at, self.time)
        self._begin(PlaybackState.BRAKING)
        return left

    def _find(self, is_allowed: Callable[[float], bool], lead: float) -> float:
        """Return the next time at which a halt may begin, s, or infinity."""
        earliest = self.time + lead
        if self.state is PlaybackState.SPEEDING_UP:
            earliest = max(earliest, self._begun_at + _sped_up(1.0) * self._ramp)
        elif self.state is PlaybackState.BRAKING:
            return math.inf
        if is_allowed(earliest):
            return earliest
        k = max(math.ceil(earliest / _STRIDE), 0)
        while k * _STRIDE < self.gait.duration:
            if is_allowed(k * _STRIDE):
                return k * _STRIDE
            k += 1
        return math.inf

    def _may_halt(self, time: float) -> bool:
        """Return whether halts from the checked times before and after this one are safe."""
        before = int(max(time, 0.0) / _STRIDE)
        return all(self._is_safe(k) for k in (before, before + 1))

    def _may_stop(self, time: float) -> bool:
        return self._is_on_both(time + 0.5 * self._ramp) and self._may_halt(time)

    def _is_on_both(self, time: float) -> bool:
        return all(self.gait.plan.in_contact(time))

    def _is_safe(self, k: int) -> bool:
        """Return whether a halt is safe at a checked time; the first call takes a few ms."""
        if k not in self._can_halt:
            self._can_halt[k] = _least_margin(
                self.gait, k * _STRIDE, self._ramp) > self._least_margin
        return self._can_halt[k]

    def _ramped(self, dt: float) -> None:
        self._since += dt
        share = min(max(self._since / self._ramp, 0.0), 1.0)
        if self.state is PlaybackState.BRAKING:
            self.time = self._begun_at + self._ramp * _braked(share)
            self.rate, after = 1.0 - minimum_jerk(share), PlaybackState.PAUSED
        else:
            self.time = self._begun_at + self._ramp * _sped_up(share)
            self.rate, after = minimum_jerk(share), PlaybackState.PLAYING
        if share == 1.0:
            self.state = after
            if self.stop_is_pending and after is PlaybackState.PAUSED:
                self.stop_is_pending = False
                self.stop()  # resumes if the pause was on one foot


def halts(gait: Gait, ramp: float, least_margin: float) -> tuple[Array, Array]:
    """
    Return times (k,), s, and whether a gait can be halted there and resumed, (k,).

    Parameters
    ----------
    gait
        The gait.
    ramp
        Duration of slowing down, s.
    least_margin
        Smallest distance of the zero-moment point from the edge of the support, m.

    """
    times = np.arange(0.0, gait.duration, _STRIDE)
    good = np.array([_least_margin(gait, t, ramp) > least_margin for t in times.tolist()])
    return times, good


def longest_fall(gait: Gait) -> float:
    """
    Return the longest time for which the divergent component is outside of the support, s.

    In quick steps the divergent component ``com + velocity / omega_0`` leaves the stance foot
    before the swing foot lands.
    """
    stride = max(round(_FALL_STRIDE / float(gait.times[1])), 1)
    middle = len(gait.times) // 2
    com_in_base = gait.model.state(gait.positions[middle]).com_in_base
    height = float(gait.base[middle, 2] + com_in_base[2])
    velocity = np.gradient(gait.com, gait.times, axis=0)
    points = (gait.com + velocity / math.sqrt(GRAVITY / height))[::stride].tolist()
    longest = falling = 0
    for time, (x, y) in zip(gait.times[::stride].tolist(), points):
        falling = falling + 1 if margin(_support(gait, time), (x, y)).distance < 0.0 else 0
        longest = max(longest, falling)
    return longest * stride * float(gait.times[1])


def _least_margin(gait: Gait, begin: float, ramp: float) -> float:
    """Return the smallest margin of the zero-moment point in a halt and after it, m."""
    middle = begin + 0.5 * ramp
    shares = _POINTS.tolist()
    points = [(begin + ramp * _braked(s), 1.0 - minimum_jerk(s), -_slope(s) / ramp)
              for s in shares]
    points += [(middle + ramp * _sped_up(s), minimum_jerk(s), _slope(s) / ramp) for s in shares]
    points = [(min(t, gait.duration), rate, change) for t, rate, change in points]
    knots = np.array([_slowed(gait.motion(t), rate, change) for t, rate, change in points])
    zmp = gait.zmp_of(knots)
    return min(margin(_support(gait, t), (x, y)).distance
               for (t, _, _), (x, y) in zip(points, zmp.tolist()))


def _slowed(motion: Array, rate: float, change: float) -> Array:
    """Return values and derivatives (3, n) of a motion whose time has another rate."""
    values, rates, changes = motion
    return np.stack((values, rate * rates, rate * rate * changes + change * rates))


def _support(gait: Gait, time: float) -> tuple[tuple[float, float], ...]:
    """Return the corners of the support polygon, m."""
    corners: list[tuple[float, float]] = []
    for foot, touches, (x, y, _, yaw) in zip(
            gait.model.config.feet.values(), gait.plan.in_contact(time),
            gait.plan.soles(time).tolist()):
        if touches:
            corners += [Footprint(x, y, yaw).apply(*corner) for corner in foot.polygon]
    return convex_hull(corners)


def _slope(share: float) -> float:
    """Return the derivative of :func:`minimum_jerk`."""
    return 30.0 * (share * (1.0 - share)) ** 2


def _sped_up(share: float) -> float:
    """Return the integral of :func:`minimum_jerk`."""
    return share ** 4 * (2.5 + share * (share - 3.0))


def _braked(share: float) -> float:
    return share - _sped_up(share)
