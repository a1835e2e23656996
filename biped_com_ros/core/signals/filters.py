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

from collections import deque
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
import numpy as np

HIGHEST_CUTOFF_SHARE = 0.45
"""Largest cut-off as a share of the sample rate; at 0.5 the filter has no meaning."""


class LowPass:
    """
    Butterworth low-pass of order 1 or 2 over vectors, at the actual time step.

    The states are those of trapezoidal integrators (not past outputs), so the step may change
    from sample to sample without a transient, and at a constant step the response is the
    bilinear Butterworth design with exactly the given cut-off.

    Parameters
    ----------
    cutoff
        Frequency of -3 dB, Hz; 0 turns the filter off. More than 0.45 of the sample rate is
        lowered to that.
    size
        Length of the vectors.
    order
        1 or 2.

    """

    def __init__(self, cutoff: float, size: int, order: int = 2) -> None:
        if order not in (1, 2) or not 0.0 <= cutoff < math.inf:
            raise ConfigurationError(
                f'a low-pass of order {order} with cut-off {cutoff} Hz is not possible; the '
                'order is 1 or 2, the cut-off is 0 (off) or positive')
        self.cutoff, self.order = cutoff, order
        self._matrix = np.zeros((order + 1, order + 1))
        self._states = np.zeros((order + 1, size))  # the last row takes the sample
        self._dt = 0.0
        self._started = False

    def reset(self) -> None:
        """Drop what came before: the next sample passes as it is."""
        self._started = False

    def update(self, sample: Array, dt: float) -> Array:
        """
        Return the filtered sample.

        Parameters
        ----------
        sample
            (size,)
        dt
            Time since the sample before, s, positive; not used for the first.

        Returns
        -------
        array (size,)

        """
        if not self.cutoff:
            return sample
        states = self._states
        if not self._started:
            # As if the signal had always been `sample`.
            self._started, states[:] = True, 0.0
            states[self.order - 1] = sample
            return np.array(sample)
        if dt != self._dt:
            self._design(dt)
        states[-1] = sample
        following = self._matrix.dot(states)
        states[:-1] = following[:-1]
        return following[-1]

    def _design(self, dt: float) -> None:
        """Fill the matrix from (states, input) to (next states, output) for the step `dt`."""
        self._dt = dt
        g = math.tan(math.pi * min(self.cutoff * dt, HIGHEST_CUTOFF_SHARE))
        if self.order == 1:
            a = g / (1.0 + g)
            self._matrix.reshape(-1)[:] = 1.0 - 2.0 * a, 2.0 * a, 1.0 - a, a
            return
        a1 = 1.0 / (1.0 + g * (g + math.sqrt(2.0)))
        a2, a3 = g * a1, g * g * a1
        self._matrix.reshape(-1)[:] = (2.0 * a1 - 1.0, -2.0 * a2, 2.0 * a2,
                                       2.0 * a2, 1.0 - 2.0 * a3, 2.0 * a3,
                                       a2, 1.0 - a3, a3)


class Differentiator:
    """
    Low-pass and derivative of vectors at once, with the same bandwidth and delay.

    A second-order Butterworth low-pass like :class:`LowPass`, whose states are its outputs: the
    filtered signal, and its derivative in units of the cut-off. The trapezoidal rule makes them
    independent of the step, so that a ramp stays straight however unevenly it is sampled. Below a
    third of the cut-off the delay is ``sqrt(2) / (2 pi cutoff)``: 11 ms at 20 Hz.

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
                f'a derivative with cut-off {cutoff} Hz is not possible; it must be positive')
        self.cutoff = cutoff
        self._matrix = np.zeros((3, 4))
        # The states and the sample of the last time, and the new sample.
        self._in, self._out = np.zeros((4, size)), np.zeros((3, size))
        self._dt = 0.0
        self._started = False

    @property
    def delay(self) -> float:
        """Delay of low frequencies, s."""
        return math.sqrt(2.0) / (2.0 * math.pi * self.cutoff)

    def reset(self) -> None:
        """Drop what came before: the next sample counts as the end of a constant signal."""
        self._started = False

    def update(self, sample: Array, dt: float) -> tuple[Array, Array]:
        """
        Return the filtered sample and its derivative.

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


class MovingAverage:
    """
    Mean of a vector over the last while, which was zero before it began.

    It is the change of the integral, over the time. So two errors that cancel each other are gone
    once both are within the average, however large they are, and nothing is left of the past.

    Parameters
    ----------
    duration
        Over which it is taken, s.
    size
        Length of the vectors.

    """

    def __init__(self, duration: float, size: int) -> None:
        if not 0.0 < duration < math.inf:
            raise ConfigurationError(
                f'an average over {duration} s is not possible; the time must be positive')
        self._duration, self._zeros = duration, np.zeros(size)
        self.reset()

    def reset(self) -> None:
        """Begin anew, from zero."""
        self._time, self._integral = 0.0, self._zeros
        self._integrals = deque([(self._time, self._integral)])

    def update(self, sample: Array, dt: float) -> Array:
        """
        Return the average.

        Parameters
        ----------
        sample
            (size,), of the time since the sample before.
        dt
            That time, s, not negative.

        Returns
        -------
        array (size,)

        """
        self._time += dt
        self._integral = self._integral + dt * sample
        integrals, begin = self._integrals, self._time - self._duration
        integrals.append((self._time, self._integral))
        while integrals[1][0] <= begin:
            integrals.popleft()
        (before, first), (after, second) = integrals[0], integrals[1]
        share = (begin - before) / (after - before) if begin > before else 0.0
        average: Array = (self._integral - first - share * (second - first)) / self._duration
        return average
