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
(:func:`biped_com_ros.core.geometry.wrench.weight_matrix`), averaged while the robot is at rest.

The average goes over the readings just before the request, so that a tare is answered at once and
nothing has to wait inside a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
import os
from pathlib import Path
import tempfile
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import RobotConfig, WrenchSensorConfig
import numpy as np
import yaml

NEVER = -1
SILENCE_NS = 500_000_000
"""A sensor whose last reading is older than this, ns, is not tared."""
JUDGED_NS = 100_000_000
"""Joints' velocities are averaged over this time, ns, before they count as movement."""


@dataclass(frozen=True)
class TareLimits:
    """
    What a tare refuses.

    Attributes
    ----------
    force_deviation, torque_deviation
        Standard deviation of a component while averaging, N and N m: more is a moving robot.
    joint_speed
        Fastest joint while averaging, rad/s or m/s, as a mean over 0.1 s.
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


class JointStillness:
    """
    Remembers when a joint last moved.

    Not single velocities are judged but their mean over 0.1 s, which is the net motion: where
    they are differences of positions, encoder noise of 0.0002 rad at 500 Hz alone makes peaks
    of 0.5 rad/s, and a mean of 0.003 rad/s.

    Parameters
    ----------
    joint_names
        For messages.
    limit
        Speed above which a joint counts as moving, rad/s or m/s.

    """

    def __init__(self, joint_names: Sequence[str], limit: float) -> None:
        self._names, self._limit = joint_names, limit
        self._sum, self._count, self._began_ns = np.zeros(len(joint_names)), 0, NEVER
        self.moved_ns = NEVER
        self.movement = ''

    def take(self, velocities: Array, stamp_ns: int) -> None:
        """Take joint velocities (n,), rad/s, of the time `stamp_ns`."""
        if stamp_ns < self._began_ns:  # the clock was set anew
            self.moved_ns = NEVER
            self._begin()
        if not self._count:
            self._began_ns = stamp_ns
        self._sum += velocities
        self._count += 1
        if stamp_ns - self._began_ns >= JUDGED_NS:
            self._judge(stamp_ns)

    def _begin(self) -> None:
        self._sum[:] = 0.0
        self._count = 0

    def _judge(self, stamp_ns: int) -> None:
        speeds = np.abs(self._sum) / self._count
        self._begin()
        if speeds.size and speeds.max() > self._limit:
            fastest = int(speeds.argmax())
            self.moved_ns = stamp_ns
            self.movement = f'{self._names[fastest]} at {speeds[fastest]:.3g} rad/s'


class RecentReadings:
    """
    The last readings of a sensor, so that a tare is answered at once from what just happened.

    Parameters
    ----------
    sensor
        Name of the sensor, for messages.
    count
        How many readings a tare averages.

    Attributes
    ----------
    newest_ns
        Stamp of the last reading; -1 without any.

    """

    def __init__(self, sensor: str, count: int) -> None:
        self.sensor, self._count, self.newest_ns = sensor, count, NEVER
        self._stamped: deque[tuple[int, Array]] = deque(maxlen=count)

    def add(self, reading: Array, stamp_ns: int) -> None:
        """Take and keep a reading (6,) after the sign, before any offset."""
        if stamp_ns < self.newest_ns:  # the clock was set anew
            self._stamped.clear()
        self._stamped.append((stamp_ns, reading))
        self.newest_ns = stamp_ns

    def tare(self, expected: Array, still: JointStillness, limits: TareLimits,
             config: WrenchSensorConfig, now_ns: int) -> SensorOffset:
        """
        Find what the sensor reads too much, or refuse.

        Parameters
        ----------
        expected
            Reading (6,) of a perfect sensor when nothing touches what it carries.
        still
            When the joints last moved.
        limits
            What is refused.
        config
            Of the sensor.
        now_ns
            Stamp of the newest reading of all sensors, ns.

        Raises
        ------
        InputError
            If the robot moved, stood on the ground, or readings are missing; the message says
            what to do.

        """
        self._refuse_missing(now_ns)
        readings = np.array([reading for _, reading in self._stamped])
        deviation = readings.std(axis=0)
        offset = readings.mean(axis=0) - expected
        self._refuse_motion(deviation, still, limits)
        self._refuse_contact(offset, limits)
        return SensorOffset(
            config.frame, config.sign, tuple(offset.tolist()), tuple(deviation.tolist()),
            len(readings), datetime.now(timezone.utc).isoformat(timespec='seconds'))

    def _refuse_missing(self, now_ns: int) -> None:
        count, collected = self._count, len(self._stamped)
        if not collected:
            raise InputError(f"'{self.sensor}' not tared: it has sent nothing usable yet; check "
                             'its driver and topic')
        if now_ns - self.newest_ns > SILENCE_NS:
            raise InputError(
                f"'{self.sensor}' not tared: its last reading is "
                f'{1e-9 * (now_ns - self.newest_ns):.1f} s old; check its driver')
        if collected < count:
            raise InputError(f"'{self.sensor}' not tared: it has sent {collected} of the {count} "
                             'readings to average; try again in a moment')

    def _refuse_motion(self, deviation: Array, still: JointStillness, limits: TareLimits) -> None:
        oldest_ns = self._stamped[0][0]
        if still.moved_ns >= oldest_ns:
            raise InputError(
                f"'{self.sensor}' not tared: {still.movement} moved while averaging, more than "
                f'{limits.joint_speed:g} rad/s; hold the robot still for '
                f'{1e-9 * (self.newest_ns - oldest_ns):.1f} s and try again, or start '
                'with a larger tare_max_joint_speed if its velocities are that noisy')
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
                f"'{self.sensor}' not tared: it reads {force:.4g} N other than what hangs on it "
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
