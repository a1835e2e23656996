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
Taring force-torque sensors: their offset, measured while nothing touches the feet.

The *offset* is what is subtracted from the scaled reading
(:meth:`~biped_com_ros.core.wrench.aggregation.ReadingCorrection.corrected`); a tare sets it to the
estimated *bias*, the reading of the sensor without a load.

The sensors of a robot that hangs with its feet in the air do not read zero: each carries the
weight of its foot. So the offset is the mean reading minus the weight of what the sensor carries
(:func:`biped_com_ros.core.geometry.wrench.set_weight_matrix`), while the robot is at rest.

The mean is over the readings just before the request, so that the response to a tare comes at once
and no node has to wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.files import read_text, write_atomically
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import RobotConfig, WrenchSensorConfig
from biped_com_ros.core.plain_yaml import load_yaml
from biped_com_ros.core.settings import setting, Settings
from biped_com_ros.core.signals.age import age_of
import numpy as np
import yaml

AXES = ('force.x', 'force.y', 'force.z', 'torque.x', 'torque.y', 'torque.z')
"""Names of the values of an offset, in order; `<sensor>/<axis>` labels them in messages."""

MAX_AGE_NS = 500_000_000
"""Largest age of the last reading of a sensor that is tared, and gap between its readings, ns."""

_LEAST_READINGS = 10
"""Fewer have no standard deviation worth the name."""

_LEVER = 0.1
"""Noise of torques over that of forces, m."""

MEAN_VELOCITY_NS = 100_000_000
"""Time over which joint velocities are averaged, ns."""


@dataclass(frozen=True, kw_only=True)
class TareLimits(Settings):
    """Limits above which a tare fails."""

    force_deviation: float = setting(
        2.0, 'Largest standard deviation of a force for a tare; of a torque, over 0.1 m', 'N', 0.0,
        1000.0)
    joint_speed: float = setting(
        0.05, 'Largest speed of a joint for a tare, as a mean over 0.1 s', 'rad/s', 0.0, 10.0)
    #: Force of the offset above which the robot stands on its feet, N.
    offset_force: float = math.inf


@dataclass(frozen=True, kw_only=True)
class SensorOffset:
    """
    The offset of a sensor, and how it was measured.

    Attributes
    ----------
    frame, scale
        Of the sensor when it was tared; the offset is in that frame, after the scale.
    offset
        Six values, force first, N and N m; subtracted from the scaled reading.
    standard_deviation
        Six values, of the readings that were averaged.
    samples
        Number of readings.
    stamp
        Time of the tare, ISO 8601.

    """

    frame: str
    scale: tuple[float, ...]
    offset: tuple[float, ...] = (0.0,) * 6
    standard_deviation: tuple[float, ...] = (0.0,) * 6
    samples: int = 0
    stamp: str = ''


class JointStillness:
    """
    Detects moving joints, by the mean of each velocity over 0.1 s.

    The mean is the net motion. Single velocities would not do: where they are differences of
    positions, encoder noise of 0.0002 rad at 500 Hz alone gives peaks of 0.5 rad/s, and a mean
    of 0.003 rad/s.

    Parameters
    ----------
    joint_names
        For messages.
    limit
        Speed above which a joint counts as moving, rad/s or m/s.

    Attributes
    ----------
    limit
        May be changed at any time.
    updated_ns, moved_ns
        Time of the last velocities, and of the last motion, ns; :data:`NEVER_NS` without any.
    movement
        Description of it, for messages.

    """

    def __init__(self, joint_names: Sequence[str], limit: float) -> None:
        self._names, self.limit = joint_names, limit
        self._sum, self._count, self._began_ns = np.zeros(len(joint_names)), 0, NEVER_NS
        self.updated_ns, self.moved_ns, self.movement = NEVER_NS, NEVER_NS, ''

    def update(self, velocities: Array, stamp_ns: int) -> None:
        """Add joint velocities (n,), rad/s, at the time `stamp_ns`."""
        if stamp_ns < self._began_ns:  # the clock was set back
            self.moved_ns, self._count = NEVER_NS, 0
        self.updated_ns = stamp_ns
        if not self._count:
            self._began_ns, self._sum[:] = stamp_ns, 0.0
        self._sum += velocities
        self._count += 1
        if stamp_ns - self._began_ns < MEAN_VELOCITY_NS:
            return
        speeds = np.abs(self._sum) / self._count
        self._count = 0
        if speeds.size and speeds.max() > self.limit:
            fastest = int(speeds.argmax())
            self.moved_ns = stamp_ns
            self.movement = f'{self._names[fastest]} at {speeds[fastest]:.3g} rad/s'


class RecentReadings:
    """
    The last readings of a sensor, from which a tare is computed at once.

    Parameters
    ----------
    sensor
        Name of the sensor, for messages.
    duration
        Time over which a tare averages readings, s.

    Attributes
    ----------
    newest_ns
        Stamp of the last reading, ns; :data:`NEVER_NS` without any.

    """

    def __init__(self, sensor: str, duration: float) -> None:
        self.sensor, self.newest_ns = sensor, NEVER_NS
        self._stamped: deque[tuple[int, Array]] = deque()
        self.configure(duration)

    def configure(self, duration: float) -> None:
        """Average over another time, s; the last readings are kept."""
        self._duration_ns = nanoseconds(duration)

    def add(self, reading: Array, stamp_ns: int) -> None:
        """Add a reading (6,) after the scale, before any offset; one per stamp."""
        stamped = self._stamped
        if stamp_ns == self.newest_ns:
            return
        # The clock was set back, or the sensor was silent.
        if not 0 < stamp_ns - self.newest_ns <= MAX_AGE_NS:
            stamped.clear()
        stamped.append((stamp_ns, reading))
        self.newest_ns = stamp_ns
        while len(stamped) > 1 and stamped[1][0] <= stamp_ns - self._duration_ns:
            stamped.popleft()

    def estimate_offset(self, expected: Array, still: JointStillness, limits: TareLimits,
                        config: WrenchSensorConfig, now_ns: int) -> SensorOffset:
        """
        Return the offset of the sensor: the mean reading minus the expected one.

        Parameters
        ----------
        expected
            Reading (6,) of a perfect sensor when nothing touches what it carries.
        still
            The detector of moving joints.
        limits
            Limits of motion, noise and offset.
        config
            Configuration of the sensor.
        now_ns
            Stamp of the last joint states, ns.

        Raises
        ------
        InputError
            If the robot moved, stood on the ground, or readings are missing; with a remedy.

        """
        self._check_readings(now_ns)
        readings = np.array([reading for _, reading in self._stamped])
        deviation = readings.std(axis=0)
        offset = readings.mean(axis=0) - expected
        self._check_rest(deviation, still, limits)
        self._check_no_contact(offset, limits)
        return SensorOffset(
            frame=config.frame, scale=config.factors, offset=tuple(offset.tolist()),
            standard_deviation=tuple(deviation.tolist()), samples=len(readings),
            stamp=datetime.now(timezone.utc).isoformat(timespec='seconds'))

    def _check_readings(self, now_ns: int) -> None:
        if not self._stamped:
            raise InputError(f"'{self.sensor}' not tared: no usable reading received yet; check "
                             'its driver and topic')
        age_ns = age_of(self.newest_ns, now_ns)
        if age_ns > MAX_AGE_NS:
            raise InputError(
                f"'{self.sensor}' not tared: its last reading is {1e-9 * age_ns:.1f} s old; check "
                'its driver')
        received_ns, count = self.newest_ns - self._stamped[0][0], len(self._stamped)
        is_long = received_ns >= self._duration_ns
        if not is_long or count < _LEAST_READINGS:
            raise InputError(
                f"'{self.sensor}' not tared: received {count} readings in "
                f'{1e-9 * received_ns:.3g} of the {1e-9 * self._duration_ns:g} s to average; '
                + (f'{_LEAST_READINGS} are needed: set a larger tare_duration' if is_long else
                   f'try again in a moment, without a gap of {1e-9 * MAX_AGE_NS:g} s'))

    def _check_rest(self, deviation: Array, still: JointStillness, limits: TareLimits) -> None:
        oldest_ns = self._stamped[0][0]
        if still.moved_ns >= oldest_ns:
            raise InputError(
                f"'{self.sensor}' not tared: {still.movement} moved while averaging, above "
                f'{limits.joint_speed:g} rad/s; hold the robot still for '
                f'{1e-9 * (self.newest_ns - oldest_ns):.1f} s and try again, or set '
                'a larger tare_max_joint_speed if its velocities are that noisy')
        limit = limits.force_deviation
        for part, unit, largest in ((deviation[:3], 'N', limit),
                                    (deviation[3:], 'N m', _LEVER * limit)):
            if part.max() > largest:
                raise InputError(
                    f"'{self.sensor}' not tared: its readings vary by {part.max():.3g} {unit} "
                    f'(standard deviation), above {largest:g}; let the robot come to rest, or '
                    'raise tare_max_force_deviation if the sensor is that noisy')

    def _check_no_contact(self, offset: Array, limits: TareLimits) -> None:
        force = float(np.linalg.norm(offset[:3]))
        if force > limits.offset_force:
            raise InputError(
                f"'{self.sensor}' not tared: it reads {force:.4g} N besides the weight that it "
                f'carries, above the limit of {limits.offset_force:.4g} N; lift the robot so that '
                "nothing touches its feet and hands; if the sensor's offset really is that large, "
                'let its driver subtract it')


def save_offsets(path: Path, robot: str, offsets: Mapping[str, SensorOffset]) -> None:
    """
    Write offsets to a file, atomically: at any time it is either the old or the new one.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.

    """
    content = {'robot': robot, 'sensors': {
        name: {key: [float(v) for v in value] if isinstance(value, tuple) else value
               for key, value in asdict(offset).items()} for name, offset in offsets.items()}}
    write_atomically(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None))


def load_offsets(path: Path, config: RobotConfig) -> dict[str, SensorOffset]:
    """
    Read the offsets of a robot's sensors.

    Returns
    -------
    dict
        By sensor name, of the sensors that the file names.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or is of another robot, or a sensor in it has another frame or
        scale than the robot's.
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
            f"offsets file '{path}': sensor '{name}' is not readable ({error}); tare again"
        ) from None
    if len(offset.offset) != 6 or not np.isfinite(offset.offset).all():
        raise ConfigurationError(
            f"offsets file '{path}': the offset of '{name}' must be six finite numbers, not "
            f'{list(offset.offset)}')
    if (offset.frame, offset.scale) != (sensor.frame, sensor.factors):
        raise ConfigurationError(
            f"offsets file '{path}': '{name}' was tared in frame '{offset.frame}' with scale "
            f"{offset.scale} and now has frame '{sensor.frame}' with scale {sensor.factors}; "
            'tare again')
    return offset


def _read(path: Path) -> Mapping[str, Any]:
    content = load_yaml(read_text(path, 'offsets file'), f"offsets file '{path}'")
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"offsets file '{path}' must hold a mapping")
    return content
