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
Filters, means and limits of signals that arrive at uneven times.

Filters take one matrix product per sample. :func:`limited_step` is the last step before a command.
:class:`TiltFilter` finds the direction of gravity where an IMU publishes no orientation.
"""

from __future__ import annotations

from collections import deque
import math

from biped_com_ros.core.constants import GRAVITY, LONGEST_STEP_NS, nanoseconds, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.signals.age import is_recent
import numpy as np
import pinocchio as pin

HIGHEST_CUTOFF_SHARE = 0.45
"""Largest cut-off as a share of the sample rate; at 0.5 the filter has no meaning."""


class LowPass:
    """
    Second-order Butterworth low-pass over vectors, at the actual time step.

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

    """

    def __init__(self, cutoff: float, size: int) -> None:
        if not 0.0 <= cutoff < math.inf:
            raise ConfigurationError(
                f'a low-pass with cut-off {cutoff} Hz is not possible; it is 0 (off) or positive')
        self.cutoff = cutoff
        self._matrix = np.zeros((3, 3))
        self._states = np.zeros((3, size))  # the last row takes the sample
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
            states[1] = sample
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


def limited_step(target: Array, previous: Array, largest: Array | float, low: Array | float,
                 high: Array | float) -> Array:
    """
    Return a command: first the rate limit, then, always, the clamp.

    Parameters
    ----------
    target, previous
        What is wanted, and the last command, (n,).
    largest
        Largest change, not negative; (n,), or one for all.
    low, high
        Range; (n,), or one for all. It holds also where `previous` is beyond it.

    """
    # As numpy.clip, in a third of its time.
    step = np.minimum(np.maximum(target, previous - largest), previous + largest)
    return np.minimum(np.maximum(step, low), high)


#: Largest difference between the stamps of the last sample and of the instant, ns.
_SAME_NS = nanoseconds(0.05)


class RecentMean:
    """
    Mean of the samples since it was last taken.

    Parameters
    ----------
    size
        Number of values of a sample.

    Attributes
    ----------
    stamp_ns
        Of the last sample, ns.

    """

    def __init__(self, size: int) -> None:
        self._sum, self._count, self.stamp_ns = np.zeros(size), 0, NEVER_NS

    def add(self, stamp_ns: int, *values: Array) -> None:
        """Add a sample, the arrays one after another."""
        self._sum += np.concatenate(values)
        self._count, self.stamp_ns = self._count + 1, stamp_ns

    def take(self, stamp_ns: int) -> Array | None:
        """
        Return the mean and begin anew.

        None if there is no sample, or the last one is more than 0.05 s from the time `stamp_ns`.
        """
        is_known = self._count and is_recent(self.stamp_ns, stamp_ns, _SAME_NS)
        mean = self._sum / self._count if is_known else None
        self._sum, self._count = np.zeros_like(self._sum), 0
        return mean


TIME_CONSTANT = 1.0
"""Of the accelerometer, s: accelerations of steps average out over it, and a bias of the gyroscope
of 0.01 rad/s turns the vertical by 0.01 rad."""

LARGEST_DIFFERENCE = 0.2
"""A specific force whose size differs more from gravity, as a share of it, has no direction of
gravity."""

_UP = np.array((0.0, 0.0, 1.0))


class TiltFilter:
    """
    Complementary filter: the gyroscope turns the orientation, the accelerometer levels it.

    The heading begins anywhere and follows the gyroscope.

    Parameters
    ----------
    gravity
        m/s^2.

    Attributes
    ----------
    R_world_imu
        Orientation, (3, 3), z up; None before the first credible acceleration.
    problem
        Why there is none; '' if there is one.

    """

    def __init__(self, gravity: float = GRAVITY) -> None:
        self.gravity, self._last_ns = gravity, 0
        self.R_world_imu: Array | None = None
        self.problem = ''

    def update(self, stamp_ns: int, gyro: Array, acceleration: Array) -> Array | None:
        """
        Take a sample.

        Parameters
        ----------
        stamp_ns
            Its time, ns; a step back or a long one begins anew.
        gyro, acceleration
            Along the axes of the IMU, (3,), rad/s and m/s^2; at rest the latter is g, upward.

        Returns
        -------
        numpy.ndarray or None
            :attr:`R_world_imu`.

        """
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        if not 0 <= step_ns < LONGEST_STEP_NS:
            self.R_world_imu = None
        dt, size = 1e-9 * step_ns, float(np.linalg.norm(acceleration))
        is_credible = abs(size - self.gravity) < LARGEST_DIFFERENCE * self.gravity
        if self.R_world_imu is None:
            self.problem = '' if is_credible else (
                f'the accelerometer measures {size:.2f} m/s^2 instead of about '
                f'{self.gravity:.2f}: check its unit, and whether gravity was taken off')
            if is_credible:
                self.R_world_imu = pin.Quaternion.FromTwoVectors(
                    acceleration / size, _UP).toRotationMatrix()
            return self.R_world_imu
        R = self.R_world_imu @ pin.exp3(dt * gyro)
        if is_credible:
            up = R @ acceleration / size
            R = pin.exp3(dt / (TIME_CONSTANT + dt) * np.cross(up, _UP)) @ R
        self.R_world_imu = R
        return R
