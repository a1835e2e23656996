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
"""Noise and delay of sensors."""

from __future__ import annotations

from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.sim.frames import Array
import numpy as np


class Noise:
    """
    White Gaussian noise on an array, from a reproducible generator of its own.

    Parameters
    ----------
    sigma
        Standard deviation, a scalar or broadcastable to `shape`; zero: no noise.
    shape
        Of the array.
    seed
        NumPy seed; another one for every sensor.

    """

    def __init__(self, sigma: Any, shape: tuple[int, ...], seed: Any) -> None:
        self._sigma = np.asarray(sigma, dtype=float)
        if not (np.isfinite(self._sigma).all() and (self._sigma >= 0.0).all()):
            raise ConfigurationError(f'noise must be finite and not negative, not {sigma}')
        self._is_on = bool(self._sigma.any())
        self._generator = np.random.default_rng(seed)
        self._sample = np.zeros(shape)

    def add_to(self, values: Array) -> None:
        """Add a fresh sample to `values` in place."""
        if self._is_on:
            self._generator.standard_normal(out=self._sample)
            self._sample *= self._sigma
            values += self._sample


class Delay:
    """
    Delay line: returns the input of `steps` calls ago, or the first input of all.

    Parameters
    ----------
    steps
        Length of the delay; 0 returns the input at once.
    size
        Length of the vectors.

    """

    def __init__(self, steps: int, size: int) -> None:
        if steps < 0:
            raise ConfigurationError(f'a delay must not be negative, not {steps} steps')
        self._buffer = np.zeros((steps + 1, size))
        self._next = 0
        self._is_empty = True

    @property
    def steps(self) -> int:
        """Length of the delay."""
        return len(self._buffer) - 1

    def clear(self) -> None:
        """Drop all delayed values."""
        self._is_empty, self._next = True, 0

    def push(self, values: Array) -> Array:
        """Store `values`; return a view of those of :attr:`steps` calls ago."""
        if self._is_empty:
            self._buffer[:] = values
            self._is_empty = False
        self._buffer[self._next] = values
        self._next = (self._next + 1) % len(self._buffer)
        return self._buffer[self._next]


class DelayedSensors:
    """
    The sensors of one kind, whose values get noise and are delayed.

    Parameters
    ----------
    shape
        Of their values.
    sigma, seed
        Of the noise, see `Noise`.
    steps
        Of the delay.

    Attributes
    ----------
    values
        Exact values, to be written before each `read`.

    """

    def __init__(self, shape: tuple[int, ...], sigma: Any, seed: Any, steps: int) -> None:
        self.values = np.zeros(shape)
        self._noise, self._delay = Noise(sigma, shape, seed), Delay(steps, self.values.size)

    def clear(self) -> None:
        """Drop delayed values."""
        self._delay.clear()

    def read(self) -> Array:
        """Add noise to the values, and return the delayed ones in the same shape."""
        self._noise.add_to(self.values)
        return self._delay.push(self.values.ravel()).reshape(self.values.shape)


def steps_of(delay: float, step: float, what: str) -> int:
    """
    Convert a delay in seconds to steps.

    Raises
    ------
    ConfigurationError
        If it is negative, not finite or longer than 10 s.

    """
    if not 0.0 <= delay <= 10.0:
        raise ConfigurationError(f'{what} must be between 0 and 10 s, not {delay}')
    return round(delay / step)
