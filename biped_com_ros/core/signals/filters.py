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
"""Filters for signals that arrive at uneven times, one matrix product per sample."""

from __future__ import annotations

import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
import numpy as np
from numpy.typing import ArrayLike

# Above this share of the sample rate the cut-off is lowered: at 0.5 the filter has no meaning.
HIGHEST_CUTOFF_SHARE = 0.45
_ENOUGH, _EVERY, _TINY = 20, 3, 1e-12
_BEND = np.array((1.0, -4.0, 6.0, -4.0, 1.0)) / math.sqrt(70.0)


class LowPass:
    """
    Butterworth low-pass of order 1 or 2 over vectors, at the actual time step.

    The states are those of trapezoidal integrators (not past outputs), so the step may change
    from sample to sample without a transient, and at a constant step the response is the
    bilinear Butterworth design with its cut-off exactly where it was asked for.

    Parameters
    ----------
    cutoff
        Frequency of -3 dB, Hz; 0 lets everything pass. More than 0.45 of the sample rate is
        lowered to that.
    size
        Length of the vectors.
    order
        1 or 2.

    """

    def __init__(self, cutoff: float, size: int, order: int = 2) -> None:
        if order not in (1, 2) or not 0.0 <= cutoff < math.inf:
            raise ConfigurationError(
                f'a low-pass of order {order} with cut-off {cutoff} Hz makes no sense; the order '
                'is 1 or 2, the cut-off is 0 (off) or positive')
        self.cutoff, self.order = cutoff, order
        self._matrix = np.zeros((order + 1, order + 1))
        # Stamps of real sensors jitter, so that it is written for almost every sample: flat, in
        # half the time.
        self._flat_matrix = self._matrix.reshape(-1)
        # The states and, as the last row, what came out; there the next sample is put, and then
        # the two change places, so that no state is ever copied.
        now, following = np.zeros((2, order + 1, size))
        self._now, self._following = (now, now[-1]), (following, following[-1])
        self._dt = 0.0
        self._started = False

    def reset(self) -> None:
        """Forget the past: the next sample passes as it is."""
        self._started = False

    def update(self, sample: Array, dt: float) -> Array:
        """
        Take a sample and return the filtered one.

        Parameters
        ----------
        sample
            (size,)
        dt
            Time since the sample before, s, positive; not used for the first.

        Returns
        -------
        array (size,)
            Valid until the next call.

        """
        if not self.cutoff:
            return sample
        if not self._started:
            return self._start(sample)
        if dt != self._dt:
            self._design(dt)
        states, last = self._now
        last[...] = sample
        following, filtered = self._following
        self._matrix.dot(states, following)  # as a function it takes longer
        self._now, self._following = self._following, self._now
        return filtered

    def _start(self, sample: Array) -> Array:
        """Put the states where a signal that was always `sample` would have brought them."""
        states, last = self._now
        states[:] = 0.0
        states[self.order - 1] = last[:] = sample
        self._started = True
        return last

    def _design(self, dt: float) -> None:
        """Fill the matrix from (states, input) to (next states, output) for the step `dt`."""
        self._dt = dt
        g = math.tan(math.pi * min(self.cutoff * dt, HIGHEST_CUTOFF_SHARE))
        if self.order == 1:
            a = g / (1.0 + g)
            self._flat_matrix[:] = 1.0 - 2.0 * a, 2.0 * a, 1.0 - a, a
            return
        a1 = 1.0 / (1.0 + g * (g + math.sqrt(2.0)))
        a2, a3 = g * a1, g * g * a1
        self._flat_matrix[:] = (2.0 * a1 - 1.0, -2.0 * a2, 2.0 * a2,
                                2.0 * a2, 1.0 - 2.0 * a3, 2.0 * a3,
                                a2, 1.0 - a3, a3)


class Differentiator:
    """
    Low-pass and derivative of vectors at once: both come out with the same bandwidth and delay.

    A second-order Butterworth low-pass like :class:`LowPass`, whose states are what comes out: the
    filtered signal, and its derivative in units of the cut-off. Integrated by the trapezoidal rule
    they mean the same whatever the steps, so that a ramp comes out straight however unevenly it is
    sampled. Below a third of the cut-off the delay is ``sqrt(2) / (2 pi cutoff)``: 11 ms at 20 Hz.

    Parameters
    ----------
    cutoff
        Frequency of -3 dB, Hz. More than 0.45 of the sample rate is lowered to that.
    size
        Length of the vectors.

    """

    def __init__(self, cutoff: float, size: int) -> None:
        if not 0.0 < cutoff < math.inf:
            raise ConfigurationError(
                f'a derivative with cut-off {cutoff} Hz makes no sense; it must be positive')
        self.cutoff = cutoff
        self._matrix = np.zeros((3, 4))
        # The states and the sample of the last time, and the new sample.
        self._in, self._out = np.zeros((4, size)), np.zeros((3, size))
        self._dt = 0.0
        self._started = False

    @property
    def delay(self) -> float:
        """By how much low frequencies come out late, s."""
        return math.sqrt(2.0) / (2.0 * math.pi * self.cutoff)

    def reset(self) -> None:
        """Forget the past: the next sample counts as one that has always been."""
        self._started = False

    def update(self, sample: Array, dt: float) -> tuple[Array, Array]:
        """
        Take a sample and return the filtered one and its derivative.

        Parameters
        ----------
        sample
            (size,)
        dt
            Time since the sample before, s, positive; not used for the first.

        Returns
        -------
        tuple of array (size,)
            Valid until the next call.

        """
        if not self._started:
            self._started = True
            self._out[0], self._out[1:] = sample, 0.0
        else:
            if dt != self._dt:
                self._design(dt)
            self._in[3] = sample
            np.matmul(self._matrix, self._in, out=self._out)
        self._in[:2], self._in[2] = self._out[:2], sample
        return self._out[0], self._out[2]

    def _design(self, dt: float) -> None:
        """Fill the matrix from (y, z, sample, next sample) to (next y, next z, next dy)."""
        self._dt = dt
        # Not warped as in LowPass, where the cut-off would change with the step.
        omega = 2.0 * math.pi * min(self.cutoff, HIGHEST_CUTOFF_SHARE / dt)
        g = 0.5 * omega * dt
        damped = g * (g + math.sqrt(2.0))
        a = 1.0 / (1.0 + damped)
        # y' = omega z and z' = omega (u - y - sqrt(2) z), each by its mean over the step.
        self._matrix[0] = 1.0 - 2.0 * a * g * g, 2.0 * a * g, a * g * g, a * g * g
        self._matrix[1] = -2.0 * a * g, a * (1.0 - damped), a * g, a * g
        self._matrix[2] = omega * self._matrix[1]


class NoiseMeter:
    """
    Measures white noise of smooth signals from their fourth differences.

    At 100 Hz those of a motion of 2 Hz are less than a thousandth of its amplitude.

    Parameters
    ----------
    initial
        Standard deviations that are assumed until enough has been seen, shape (n,).
    time
        Over which it averages, s.

    """

    def __init__(self, initial: ArrayLike, time: float = 1.0) -> None:
        self._time = time
        self._initial = np.square(np.asarray(initial, dtype=float))
        # The last samples, round and round, and their weights for each place of the newest.
        self._last = np.zeros((len(_BEND), len(self._initial)))
        self._weights = [np.roll(_BEND, newest + 1) for newest in range(len(_BEND))]
        self._variance = np.zeros_like(self._initial)
        self.reset()

    def reset(self) -> None:
        """Forget the past."""
        self._samples, self._bends, self._elapsed = 0, 0, 0.0
        self._count = 1
        self._variance[:] = 0.0

    def update(self, sample: Array, dt: float, count: int = 1) -> Array:
        """
        Take a sample and return the variance of such samples, shape (n,).

        Parameters
        ----------
        sample
            Shape (n,).
        dt
            Since the sample before, s.
        count
            Of how many readings it is the mean.

        """
        if count != self._count:
            self._count, self._samples = count, 0
        self._elapsed += dt
        place = self._samples % len(_BEND)
        self._last[place] = sample
        self._samples += 1
        # Noise hardly changes: once it is known, to look at it now and then will do.
        if self._samples >= len(_BEND) and (
                self._bends <= _ENOUGH or self._samples % _EVERY == 0):
            self._learn(self._weights[place].dot(self._last))
        return (self._variance if self._bends > _ENOUGH else self._initial) / count

    def _learn(self, bend: Array) -> None:
        bend *= bend
        bend *= self._count
        self._bends += 1
        # A mean at first, then a running one; a jump is not noise, and counts little.
        if self._bends > _ENOUGH:
            np.minimum(bend, 9.0 * self._variance + _TINY, out=bend)
        bend -= self._variance
        bend *= max(min(self._elapsed / self._time, 1.0), 1.0 / self._bends)
        self._variance += bend
        self._elapsed = 0.0
