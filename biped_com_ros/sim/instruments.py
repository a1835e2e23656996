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
Systematic errors of instruments: what a calibration has to find.

They are drawn from a seed, or given one by one. White noise and delays are in :mod:`sensors`,
faults in :mod:`faults`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
import zlib

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.sim.frames import Array, rotation_about
from biped_com_ros.sim.interface import SensorOptions
import numpy as np

LEVER = 0.1
"""Cross-talk of 1 % reads 1 N of force as 0.01 * LEVER N m, and 1 N m as 0.01 / LEVER N; m."""

HOUR = 3600.0  # s

SIZES = {
    'offset': 1, 'effort_gain': 1, 'friction': 1, 'stiction': 1, 'viscous': 1,
    'rotor_inertia': 1, 'gain': 6, 'bias': 6, 'drift': 6, 'temperature': 6, 'position': 3,
    'rotation': 3}
"""Number of values of each error; of joints, of wrench sensors, of frames (also IMUs, soles)."""

GivenErrors = Mapping[tuple[str, str], tuple[float, ...]]
"""Values by the name of a joint, sensor or foot and the error, one of :data:`SIZES`."""


def parse_instrument_errors(lines: Iterable[str]) -> dict[tuple[str, str], tuple[float, ...]]:
    """
    Read errors from text, one each: ``'left_foot bias 3 0 0 0 0.1 0'``.

    Raises
    ------
    ConfigurationError
        If a line is not a name, an error and its finite values.

    """
    errors = {}
    for line in lines:
        name, what, *rest = [*line.split(), '', ''][:max(2, len(line.split()))]
        if what not in SIZES:
            raise UnknownNameError('error', what, SIZES, f"'{line}'")
        try:
            values = tuple(float(part) for part in rest)
        except ValueError:
            values = ()
        if len(values) != SIZES[what] or not np.isfinite(values).all():
            raise ConfigurationError(
                f"instrument error '{line}' must be a name, an error and its finite values: "
                f"'<name> {what} {' '.join(['<value>'] * SIZES[what])}'")
        errors[name, what] = values
    return errors


class ErrorSource:
    """
    Draws errors, reproducibly and each kind on its own, and keeps what came out.

    Parameters
    ----------
    seed
        The same seed gives the same robot.
    given
        Values that are not drawn.

    Attributes
    ----------
    values
        The errors so far: arrays (size,) by name, by error.

    """

    def __init__(self, seed: int, given: GivenErrors) -> None:
        self._seed, self._left = seed, dict(given)
        self.values: dict[str, dict[str, Array]] = {}
        self._names: set[str] = set()

    def draw(self, what: str, names: Sequence[str], sigma: Any) -> Array:
        """
        Return normally distributed errors (names, size); see :data:`SIZES`.

        Parameters
        ----------
        what
            The error.
        names
            Of the joints, sensors or feet.
        sigma
            Standard deviation, broadcastable to the shape of the result.

        """
        return self.settle(what, names, self.sample(what, names, sigma, (SIZES[what],)))

    def sample(self, what: str, names: Sequence[str], sigma: Any,
               shape: tuple[int, ...] = ()) -> Array:
        """Return random numbers, names first, then `shape`, whatever else is drawn."""
        key = zlib.crc32(' '.join((what, *names)).encode())
        generator = np.random.default_rng((self._seed, 3, key))
        return np.asarray(sigma * generator.standard_normal((len(names), *shape)))

    def settle(self, what: str, names: Sequence[str], values: Array) -> Array:
        """Return errors (names, size) with those that are given instead."""
        values = np.array(values)
        self._names.update(names)
        for row, name in zip(values, names):
            if (given := self._left.pop((name, what), None)) is not None:
                row[:] = given
            self.values.setdefault(what, {})[name] = row.copy()
        return values

    def require_all_used(self) -> None:
        """Raise UnknownNameError for a given error of what the robot does not have."""
        for name, what in self._left:
            raise UnknownNameError(
                f"instrument with the error '{what}'", name,
                self.values.get(what, {}) or self._names, 'the instrument errors')


class WrenchErrors:
    """
    What force-torque sensors do to the wrenches that act on them.

    ``reading = clip(C X w + b + t d + T c)``: `X` measures about the true origin and axes of the
    sensor, `C` has gains and cross-talk, `b` is the bias, `d` its drift, `T` the rise of the
    temperature and `c` its coefficient.

    Parameters
    ----------
    names
        Of the sensors.
    options
        Standard deviations, ranges, and how the sensors warm up.
    source
        Of the errors.
    biases
        Constant errors, (sensors, 6), N and N m.

    Attributes
    ----------
    matrices
        ``C X``, (sensors, 6, 6).
    biases, drifts, coefficients
        Each (sensors, 6): N and N m; per hour; per kelvin.
    ranges
        Largest absolute readings, (6,), infinite without saturation.

    """

    def __init__(self, names: Sequence[str], options: SensorOptions, source: ErrorSource,
                 biases: Array) -> None:
        o = options
        self.matrices = _gains(names, o, source) @ _displacements(names, o, source)
        self.biases = source.settle('bias', names, biases)
        self.drifts = source.draw('drift', names, [o.force_drift] * 3 + [o.torque_drift] * 3)
        self.coefficients = source.draw(
            'temperature', names, [o.force_temperature] * 3 + [o.torque_temperature] * 3)
        self.ranges = np.array([o.force_range] * 3 + [o.torque_range] * 3)
        self.ranges[self.ranges == 0.0] = np.inf
        self._warming, self._warming_time = o.warming, o.warming_time
        self._mixes = bool((self.matrices != np.eye(6)).any())
        self._drifts = bool(self.drifts.any() or self.coefficients.any())
        self._saturates = bool(np.isfinite(self.ranges).any())

    def warmth(self, time: float) -> float:
        """Return how much warmer than at first the sensors are after `time` (s), K."""
        return self._warming * -float(np.expm1(-time / self._warming_time))

    def bias_at(self, time: float) -> Array:
        """Return the biases (sensors, 6) after `time`, s."""
        return self.biases + (time / HOUR) * self.drifts + self.warmth(time) * self.coefficients

    def apply(self, wrenches: Array, time: float) -> None:
        """Change wrenches (sensors, 6) in place to what the sensors measure after `time`, s."""
        if self._mixes:
            wrenches[:] = np.einsum('sij,sj->si', self.matrices, wrenches)
        wrenches += self.bias_at(time) if self._drifts else self.biases

    def saturate(self, wrenches: Array) -> Array:
        """Return wrenches (sensors, 6) within the ranges."""
        return np.clip(wrenches, -self.ranges, self.ranges) if self._saturates else wrenches


class ImuMounting:
    """
    How IMUs are turned against their frames in the URDF.

    Parameters
    ----------
    rotations
        Rotation vectors of the true axes in the URDF's, (imus, 3), rad.

    """

    def __init__(self, rotations: Array) -> None:
        self.rotations = np.array([rotation_of(vector) for vector in rotations]).reshape(-1, 3, 3)
        half = 0.5 * np.linalg.norm(rotations, axis=1, keepdims=True)
        self._quaternions = np.concatenate(
            (0.5 * np.sinc(half / np.pi) * rotations, np.cos(half)), axis=1)
        self._is_turned = bool(rotations.any())

    def apply(self, imus: Array) -> None:
        """Turn quaternions (x, y, z, w), rates and accelerations (imus, 10) in place."""
        if not self._is_turned:
            return
        for row, R, turn in zip(imus, self.rotations, self._quaternions):
            row[:4] = _product(row[:4], turn)
            row[4:7] = row[4:7] @ R
            row[7:] = row[7:] @ R


def rotation_of(vector: Array) -> Array:
    """Return the rotation (3, 3) of a rotation vector (3,), rad."""
    angle = float(np.linalg.norm(vector))
    return rotation_about(vector / angle, angle) if angle > 0.0 else np.eye(3)


def _gains(names: Sequence[str], o: SensorOptions, source: ErrorSource) -> Array:
    """Return gains and cross-talk (sensors, 6, 6)."""
    matrices = source.sample('cross_talk', names, o.cross_talk, (6, 6))
    matrices[:, 3:, :3] *= LEVER
    matrices[:, :3, 3:] /= LEVER
    diagonal = np.arange(6)
    matrices[:, diagonal, diagonal] = 1.0 + source.draw('gain', names, o.wrench_gain)
    return matrices


def _displacements(names: Sequence[str], o: SensorOptions, source: ErrorSource) -> Array:
    """Return wrenches about the true frames by those about the URDF's, (sensors, 6, 6)."""
    positions = source.draw('position', names, o.wrench_position)
    rotations = source.draw('rotation', names, o.wrench_rotation)
    matrices = np.zeros((len(names), 6, 6))
    for X, position, vector in zip(matrices, positions, rotations):
        R = rotation_of(vector).T
        X[:3, :3] = X[3:, 3:] = R
        X[3:, :3] = -R @ _cross_matrix(position)
    return matrices


def _cross_matrix(vector: Array) -> Array:
    x, y, z = vector
    return np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))


def _product(a: Array, b: Array) -> Array:
    """Return the product of quaternions (x, y, z, w)."""
    vector = a[3] * b[:3] + b[3] * a[:3] + _cross_matrix(a[:3]) @ b[:3]
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
