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
Known errors of a robot's instruments, as its YAML gives them under ``instruments``.

They come out of a calibration (``calibration.json``, key ``instruments``) and are subtracted once,
where a reading enters the package:

- joint positions: ``true = measured - offset``; commanded positions are ``desired + offset``,
  because a drive controls what its encoder measures;
- joint efforts: ``true = (measured - offset) / (1 + gain)``, after currents were multiplied by
  their torque constants;
- wrenches: ``true = correction @ (scale * measured - bias)``, in the sensor's frame in the URDF;
- IMUs: ``R_true = R_measured exp(tilt)``.

What is left of the errors then is what the calibration could not know: ``deviations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
import numpy as np

Row6 = tuple[float, float, float, float, float, float]
Tilt = tuple[float, float, float]

LARGEST_JOINT_OFFSET = 0.2
"""rad or m; more is not an error of an encoder but a wrong zero."""
LARGEST_TORQUE_OFFSET = 200.0
"""N m or N; more is no offset of a torque."""
LARGEST_TILT = 0.2
"""rad; more is a wrong frame of the IMU."""
LARGEST_BIAS = (2000.0, 200.0)
"""N and N m."""
_GAINS = 0.5, 2.0
_CROSS = 0.5  # of forces on forces, and of moments on moments
_LEVER = 0.2  # m, of forces on moments: the shift of a frame
_INVERSE_LEVER = 10.0  # 1/m, of moments on forces
LARGEST_DEVIATIONS = {
    'link_mass': 1.0, 'link_com': 0.5, 'sensor_gain': 0.5, 'sensor_crosstalk': 0.5,
    'sensor_rotation': 0.5, 'sensor_frame': 0.2}
"""What `InstrumentCorrections.deviations` may hold, and at most."""


@dataclass(frozen=True)
class SensorCorrection:
    """
    What turns the readings of a wrench sensor into true wrenches.

    Attributes
    ----------
    correction
        Matrix (6, 6) by rows, N and N m: gains, cross-talk and misplaced frame at once; empty for
        the identity.
    bias
        Reading without load, (6,), N and N m, environment on robot; subtracted first, until the
        sensor is tared.

    """

    correction: tuple[Row6, ...] = ()
    bias: Row6 = (0.0,) * 6

    @property
    def matrix(self) -> np.ndarray:
        """Return `correction` as an array (6, 6)."""
        return np.array(self.correction) if self.correction else np.eye(6)


@dataclass(frozen=True, kw_only=True)
class InstrumentCorrections:
    """
    Known errors of all instruments.

    Attributes
    ----------
    joint_offsets
        Measured minus true position by joint, rad or m.
    torque_gains, torque_offsets
        By joint: relative error of the torque constant, and effort reported without any, N m or
        N.
    wrench_sensors
        By name of the sensor.
    tilts
        By link of the IMU: rotation vector from the true to the measured direction of gravity,
        along the axes of that link, rad.
    deviations
        Standard deviations of what is left, by the names of `FusedComSettings`: ``link_mass``
        (share), ``link_com`` (m), and of all foot sensors together ``sensor_gain``,
        ``sensor_crosstalk`` (shares), ``sensor_rotation`` (rad) and ``sensor_frame`` (m).

    """

    joint_offsets: Mapping[str, float] = field(default_factory=dict)
    torque_gains: Mapping[str, float] = field(default_factory=dict)
    torque_offsets: Mapping[str, float] = field(default_factory=dict)
    wrench_sensors: Mapping[str, SensorCorrection] = field(default_factory=dict)
    tilts: Mapping[str, Tilt] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)

    def sensor(self, name: str) -> SensorCorrection:
        """Return the correction of a wrench sensor; of a perfect one if none is known."""
        return self.wrench_sensors.get(name, SensorCorrection())

    def tilt(self, link: str) -> Tilt | None:
        """Return the tilt of the IMU in a link; None if it is not known."""
        return self.tilts.get(link)

    def to_plain(self) -> dict[str, Any]:
        """Return the mapping under ``instruments`` of a robot's YAML; empty without errors."""
        sensors: dict[str, Any] = {}
        for name, sensor in self.wrench_sensors.items():
            sensors[name] = {}
            if sensor.correction:
                sensors[name]['correction'] = [list(row) for row in sensor.correction]
            if any(sensor.bias):
                sensors[name]['bias'] = list(sensor.bias)
        plain = {'joint_offsets': dict(self.joint_offsets),
                 'torque_gains': dict(self.torque_gains),
                 'torque_offsets': dict(self.torque_offsets), 'wrench_sensors': sensors,
                 'tilts': {link: list(tilt) for link, tilt in self.tilts.items()},
                 'deviations': dict(self.deviations)}
        return {key: value for key, value in plain.items() if value}


def check_corrections(corrections: InstrumentCorrections) -> None:
    """
    Check that values are possible for instruments that work.

    Raises
    ------
    ConfigurationError
        If one is not; the message names it, its value, and the remedy.

    """
    _check_sizes('joint_offsets', corrections.joint_offsets, LARGEST_JOINT_OFFSET,
                 'rad (m where it slides)', 'is an error of an encoder; zero it again')
    for joint, gain in corrections.torque_gains.items():
        if not _GAINS[0] <= 1.0 + gain <= _GAINS[1]:
            raise ConfigurationError(
                f'instruments.torque_gains.{joint} is {gain:g}: valid are {_GAINS[0] - 1.0:g} to '
                f'{_GAINS[1] - 1.0:g}, as a share; correct the torque constant of the drive')
    _check_sizes('torque_offsets', corrections.torque_offsets, LARGEST_TORQUE_OFFSET,
                 'N m (N where it slides)', 'is an offset; check the unit')
    _check_sizes('tilts', corrections.tilts, LARGEST_TILT, 'rad',
                 'is an error of mounting; correct the frame in the URDF')
    for name, sensor in corrections.wrench_sensors.items():
        _check_sensor(f'instruments.wrench_sensors.{name}', sensor)
    _check_deviations(corrections.deviations)


def _check_sizes(kind: str, by_name: Mapping[str, Any], largest: float, unit: str,
                 remedy: str) -> None:
    for name, value in by_name.items():
        if float(np.linalg.norm(value)) > largest:
            text = value if isinstance(value, tuple) else f'{value:g}'
            raise ConfigurationError(
                f'instruments.{kind}.{name} is {text} {unit}: at most {largest:g} {remedy}')


def _check_deviations(deviations: Mapping[str, float]) -> None:
    for name, deviation in deviations.items():
        if name not in LARGEST_DEVIATIONS:
            raise UnknownNameError('deviation', name, LARGEST_DEVIATIONS, 'instruments.deviations')
        if not 0.0 <= deviation <= LARGEST_DEVIATIONS[name]:
            raise ConfigurationError(
                f'instruments.deviations.{name} is {deviation:g}: valid are 0 to '
                f'{LARGEST_DEVIATIONS[name]:g} (shares, m, rad)')


def _check_sensor(where: str, sensor: SensorCorrection) -> None:
    if len(sensor.correction) not in (0, 6):
        raise ConfigurationError(
            f'{where}.correction must have 6 rows of 6 numbers, not {len(sensor.correction)}')
    for part, largest, unit in ((slice(3), LARGEST_BIAS[0], 'N'),
                                (slice(3, 6), LARGEST_BIAS[1], 'N m')):
        bias = np.array(sensor.bias)[part]
        if np.abs(bias).max() > largest:
            raise ConfigurationError(
                f'{where}.bias is {bias.tolist()} {unit}: at most {largest:g} is a bias; '
                'check the sensor')
    problem = _matrix_problem(sensor.matrix)
    if problem:
        raise ConfigurationError(
            f'{where}.correction {problem}; such a sensor is broken, or the matrix is of another '
            'unit or order (fx fy fz tx ty tz, N and N m)')


def _matrix_problem(matrix: np.ndarray) -> str:
    gains, off = np.diag(matrix), np.abs(matrix - np.diag(np.diag(matrix)))
    if gains.min() < _GAINS[0] or gains.max() > _GAINS[1]:
        worst = gains[int(np.abs(gains - 1.0).argmax())]
        return f'has a gain of {worst:g} (valid: {_GAINS[0]:g} to {_GAINS[1]:g})'
    for block, largest, unit in (
            (off[:3, :3], _CROSS, ''), (off[3:, 3:], _CROSS, ''), (off[3:, :3], _LEVER, ' m'),
            (off[:3, 3:], _INVERSE_LEVER, ' 1/m')):
        if block.max() > largest:
            return f'has cross-talk of {block.max():g}{unit} (at most {largest:g})'
    return ''
