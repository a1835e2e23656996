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
Taring force-torque sensors: what they read too much, found while nothing touches the feet.

A robot that hangs with its feet in the air does not read zero: below each sensor hangs the foot.
So the offset of a sensor is what it measures minus the weight of what it carries
(:func:`biped_com_ros.core.wrench.weight_matrix`), averaged while the robot is at rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
import os
from pathlib import Path
import tempfile
from typing import Any

from biped_com_ros.core.config import RobotConfig
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.pose import Array
import numpy as np
import yaml


@dataclass(frozen=True)
class TareLimits:
    """
    What a tare refuses.

    Attributes
    ----------
    force_deviation, torque_deviation
        Standard deviation of a component while averaging, N and N m: more is a moving robot.
    joint_speed
        Fastest joint while averaging, rad/s or m/s.
    offset_force
        Largest force taken for an offset, N: more is a robot standing on its feet.
    """

    force_deviation: float
    torque_deviation: float
    joint_speed: float
    offset_force: float


@dataclass(frozen=True)
class SensorOffset:
    """
    What a sensor reads too much, and how it was found.

    Attributes
    ----------
    frame, sign
        Of the sensor when it was tared; the offset is in that frame, after the sign.
    offset
        Six values, force first, N and N m; subtracted from the reading.
    standard_deviation
        Six values, of the samples that were averaged.
    samples
        How many.
    stamp
        When, ISO 8601.
    """

    frame: str
    sign: float
    offset: tuple[float, ...] = (0.0,) * 6
    standard_deviation: tuple[float, ...] = (0.0,) * 6
    samples: int = 0
    stamp: str = ''


class TareSamples:
    """
    Collects the samples of one sensor's tare.

    Parameters
    ----------
    sensor
        Name of the sensor, for messages.
    count
        Number of samples to average.
    """

    def __init__(self, sensor: str, count: int) -> None:
        self.sensor = sensor
        self._measured = np.empty((count, 6))
        self._expected = np.empty((count, 6))
        self.collected = 0
        self.fastest_joint = 0.0

    @property
    def complete(self) -> bool:
        """Whether all samples are there; more of them are ignored."""
        return self.collected == len(self._measured)

    def add(self, measured: Array, expected: Array, joint_speed: float) -> None:
        """
        Take a sample.

        Parameters
        ----------
        measured
            Reading (6,) after the sign, before any offset.
        expected
            Reading (6,) of a perfect sensor with nothing touching what it carries.
        joint_speed
            Speed of the fastest joint, rad/s.
        """
        if self.complete:
            return
        self._measured[self.collected] = measured
        self._expected[self.collected] = expected
        self.fastest_joint = max(self.fastest_joint, joint_speed)
        self.collected += 1

    def result(self, frame: str, sign: float, limits: TareLimits) -> SensorOffset:
        """
        Average, or refuse.

        Raises
        ------
        InputError
            If the robot moved, stood on the ground, or samples are missing; the message says
            what to do.
        """
        if not self.complete:
            raise InputError(
                f"'{self.sensor}' gave {self.collected} of {len(self._measured)} samples in time; "
                'check that its topic is published')
        deviation = self._measured.std(axis=0)
        offset = (self._measured - self._expected).mean(axis=0)
        self._refuse_motion(deviation, limits)
        self._refuse_contact(offset, limits)
        return SensorOffset(
            frame, sign, tuple(offset.tolist()), tuple(deviation.tolist()), self.collected,
            datetime.now(timezone.utc).isoformat(timespec='seconds'))

    def _refuse_motion(self, deviation: Array, limits: TareLimits) -> None:
        if self.fastest_joint > limits.joint_speed:
            raise InputError(
                f"'{self.sensor}' not tared: a joint moved at {self.fastest_joint:.3g} rad/s, "
                f'more than {limits.joint_speed:g}; hold the robot still and try again')
        for part, unit, limit, parameter in (
                (deviation[:3], 'N', limits.force_deviation, 'tare_max_force_deviation'),
                (deviation[3:], 'N m', limits.torque_deviation, 'tare_max_torque_deviation')):
            if part.max() > limit:
                raise InputError(
                    f"'{self.sensor}' not tared: its readings vary by {part.max():.3g} {unit} "
                    f'(standard deviation), more than {limit:g}; let the robot come to rest, or '
                    f'raise {parameter} if the sensor is that noisy')

    def _refuse_contact(self, offset: Array, limits: TareLimits) -> None:
        force = float(np.linalg.norm(offset[:3]))
        if force > limits.offset_force:
            raise InputError(
                f"'{self.sensor}' not tared: it reads {force:.4g} N more than what hangs on it "
                f'weighs, above the limit of {limits.offset_force:.4g} N; lift the robot so that '
                'nothing touches its feet and hands, or raise tare_max_offset_share if the '
                "sensor's offset really is that large")


def save_offsets(path: Path, robot: str, offsets: Mapping[str, SensorOffset]) -> None:
    """
    Write offsets so that the file is at every moment either the old or the new one.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    content = {'robot': robot, 'sensors': {
        name: {key: [float(v) for v in value] if isinstance(value, tuple) else value
               for key, value in asdict(offset).items()} for name, offset in offsets.items()}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None))
    except OSError as error:
        raise ConfigurationError(
            f"offsets file '{path}' cannot be written: {error.strerror}") from None


def load_offsets(path: Path, config: RobotConfig) -> dict[str, SensorOffset]:
    """
    Read the offsets of a robot's sensors.

    Returns
    -------
    dict
        By sensor name; sensors the file does not name are missing.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or is of another robot, or a sensor in it has another frame or
        sign than the robot's.
    UnknownNameError
        If it names a sensor that the robot does not have.
    """
    content = _read(path)
    if content.get('robot') != config.name:
        raise ConfigurationError(
            f"offsets file '{path}' is of robot '{content.get('robot')}', not of "
            f"'{config.name}'; give another offsets_file, or tare again")
    sensors = content.get('sensors')
    if not isinstance(sensors, Mapping):
        raise ConfigurationError(f"offsets file '{path}' has no mapping 'sensors'")
    return {str(name): _offset_from(values, str(name), config, path)
            for name, values in sensors.items()}


def _offset_from(values: Any, name: str, config: RobotConfig, path: Path) -> SensorOffset:
    if name not in config.wrench_sensors:
        raise UnknownNameError('wrench sensor', name, config.wrench_sensors,
                               f"offsets file '{path}'")
    sensor = config.wrench_sensors[name]
    try:
        fields: dict[str, Any] = {
            key: tuple(map(float, value)) if isinstance(value, list) else value
            for key, value in values.items()}
        offset = SensorOffset(**fields)
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"offsets file '{path}': sensor '{name}' is not readable ({error})") from None
    if len(offset.offset) != 6 or not np.isfinite(offset.offset).all():
        raise ConfigurationError(
            f"offsets file '{path}': the offset of '{name}' must be six finite numbers, not "
            f'{list(offset.offset)}')
    if (offset.frame, offset.sign) != (sensor.frame, sensor.sign):
        raise ConfigurationError(
            f"offsets file '{path}': '{name}' was tared in frame '{offset.frame}' with sign "
            f"{offset.sign:g} and now has frame '{sensor.frame}' with sign {sensor.sign:g}; "
            'tare again')
    return offset


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigurationError(
            f"offsets file '{path}' cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"offsets file '{path}' is not valid YAML: {error}") from None
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"offsets file '{path}' must hold a mapping")
    return content


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(descriptor, 'w') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
