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
Captures from recordings: rosbag2 (sqlite3 and MCAP, by the rosbags package) and CSV.

A segment is captured whenever the robot has been still for long enough after it moved: into
another posture, or away and back into the same one, as com_calibrator does to come from both
sides.

A CSV has a header line and one instant per line: ``time`` (s); ``position/<joint>`` for every
joint (rad), ``effort/<joint>`` where known (N m); ``<sensor>/fx fy fz tx ty tz`` for every wrench
sensor of the robot's YAML (N, N m); ``imu/qx qy qz qw``, the orientation of the IMU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import csv
from dataclasses import replace
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.constants import GRAVITY, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.identification.captures.capture import Capture, MotorConstants
from biped_com_ros.core.identification.captures.stillness import (
    CaptureWindow, LargestMotion, StillnessOptions)
from biped_com_ros.core.identification.captures.virtual_contacts import (
    virtual_sensors, VirtualReadings)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.spelling import likeliest_name
from biped_com_ros.core.unitree.stream import is_topic, LowStateStream
from biped_com_ros.core.wrench.aggregation import ReadingCorrection
import numpy as np
import pinocchio as pin

NEW_POSE = 0.03
"""The robot has moved if a joint was further than this from its last posture at rest, rad or m."""

CHECK_PERIOD, CHECKS = 0.1, 5
"""Longest time between checks for stillness, s, and their number in a rest, at least."""

STILL = (1.0, 0.5, 0.3)
"""Durations of rest that are tried where none is given, s, the longest first."""

_MOST = 0.6
"""A longer rest is preferred if it has at least this share of the captures of a shorter one."""

_OPTIONS = {'joint_range': '--still-range', 'force_deviation': '--still-force'}
"""Options of `calibrate` by the limits that they set."""

LOW_STATE = 'low state'
"""Kind of a topic with Unitree's LowState, which has joints and IMU."""

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
IMU = ('imu/qx', 'imu/qy', 'imu/qz', 'imu/qw')


class CaptureFinder:
    """
    Finds the captures in a stream of readings.

    Parameters
    ----------
    model
        The robot.
    options
        What counts as still.
    motors
        Of joints whose efforts are currents.
    hangs
        Whether the robot hangs all the time; see :class:`.CaptureWindow`.
    durations
        Durations of rest, s, of which the longest one with most captures is used; empty: that of
        the options.

    Attributes
    ----------
    model
        The robot.

    """

    def __init__(self, model: RobotModel, options: StillnessOptions | None = None,
                 motors: MotorConstants | None = None, hangs: bool = False,
                 durations: Sequence[float] = ()) -> None:
        self.model, self._motors = model, motors or MotorConstants()
        options = options or StillnessOptions()
        self._rests = [
            _Rests(CaptureWindow(model, model.config.imu.frame, replace(
                options, duration=duration), hangs)) for duration in durations or (
                    options.duration,)]
        n, sensors = len(model.joint_names), tuple(model.config.wrench_sensors)
        self._index = {name: i for i, name in enumerate(model.joint_names)}
        self._limits = dict(zip(model.joint_names, model.credible_positions))
        self._sensor_index = {name: i for i, name in enumerate(sensors)}
        self._corrections = [ReadingCorrection(model.config, name) for name in sensors]
        tilt = model.config.instruments.tilt(model.config.imu.frame)
        self._tilt = None if tilt is None else np.asarray(pin.exp3(-np.array(tilt)))
        self._positions, self._efforts = np.full(n, np.nan), np.full(n, np.nan)
        self._velocities, self._virtual = np.zeros(n), VirtualReadings(model)
        self._wrenches, self._up = np.full((len(sensors), 6), np.nan), np.full(3, np.nan)
        self._unused: dict[str, int] = {}

    @property
    def _found(self) -> _Rests:
        """Return the rests of the longest duration with most captures."""
        most = max(len(rests.captures) for rests in self._rests)
        return next(rests for rests in self._rests if len(rests.captures) >= _MOST * most)

    @property
    def captures(self) -> list[Capture]:
        """Return the captures found so far."""
        return self._found.captures

    @property
    def duration(self) -> float:
        """Duration of rest that these captures average, s."""
        return self._found.duration

    @property
    def rejected(self) -> dict[str, int]:
        """Reasons why joint states or rests were not used, with their counts."""
        return self._unused | self._found.rejected

    def add_wrench(self, sensor: str, wrench: Array) -> None:
        """Use a reading of a wrench sensor, (6,), N and N m."""
        i = self._sensor_index[sensor]
        correction = self._corrections[i]
        if np.isnan(self._wrenches[i]).any():  # the first one: a mean has none from before it
            for rests in self._rests:
                rests.window.clear()
        self._wrenches[i] = correction.corrected(correction.scale * wrench, correction.bias)

    def add_imu(self, time: float, quaternion: Array, motion: Array | None = None) -> None:
        """
        Use a reading of the IMU.

        Parameters
        ----------
        time
            s.
        quaternion
            Its orientation (x, y, z, w).
        motion
            Angular velocity and acceleration (6,), rad/s and m/s^2; None: at rest.

        """
        R_world_imu, tilt = rotation_from_quaternion(quaternion), self._tilt
        rates, acceleration = (np.zeros(3), GRAVITY * R_world_imu[2]) if motion is None else (
            motion[:3], motion[3:])
        if tilt is not None:
            R_world_imu = R_world_imu @ tilt.T
            rates, acceleration = tilt @ rates, tilt @ acceleration
        self._up = R_world_imu[2]
        self._virtual.add_imu(round(time * SECOND_NS), R_world_imu, rates, acceleration)

    def add_joints(self, time: float, names: Sequence[str], positions: Array,
                   efforts: Array | None = None, velocities: Array | None = None) -> None:
        """
        Use a joint state; it may be of some joints only.

        Parameters
        ----------
        time
            s.
        names
            Of the joints.
        positions, efforts, velocities
            Of these joints; None where not recorded.

        """
        if not names or self._has_implausible_position(names, positions):
            return
        for k, name in enumerate(names):
            if name in self._index:
                i = self._index[name]
                self._positions[i] = positions[k] - self.model.joint_offsets[i]
                if efforts is not None:
                    self._efforts[i] = efforts[k]
                if velocities is not None:
                    self._velocities[i] = velocities[k]
        if not (np.isfinite(self._positions).all() and np.isfinite(self._up).all()):
            return
        torques = self.model.corrected_torques(
            self._motors.torques_of_efforts(self.model, self._efforts))
        self._virtual.add_joints(
            round(time * SECOND_NS), self._positions, self._velocities, torques)
        self._wrenches[self._virtual.sensors] = self._virtual.readings
        for rests in self._rests:
            rests.window.force_deviations[self._virtual.sensors] = self._virtual.deviations
            rests.window.add(time, self._positions, torques, self._wrenches, self._up)
            rests.update(time, self._positions)

    def require_captures(self) -> list[Capture]:
        """Return the captures; InputError with the reason if there are none."""
        if self.captures:
            return self.captures
        reasons = '; '.join(f'{reason} ({count} times)' for reason, count in self.rejected.items())
        missing = [name for name, i in self._index.items() if not np.isfinite(self._positions[i])]
        if missing:
            raise InputError(f'the recording has no positions of {", ".join(missing[:8])}'
                             f'{f" that can be used: {reasons}" if reasons else ""}')
        rests = self._rests[-1]
        raise InputError(f'the robot is never still in the recording: {reasons or rests.problem}')

    def _has_implausible_position(self, names: Sequence[str], positions: Array) -> bool:
        for name, position in zip(names, positions.tolist()):
            least, most = self._limits.get(name, (-math.inf, math.inf))
            if position < least or position > most:
                _count(self._unused, (
                    f"joint '{name}' is beyond {least:g} to {most:g}: check the unit of positions "
                    '(rad, m), the zero of the encoder, and the limits in the URDF'))
                return True
        return False


class _Rests:
    """
    The rests of at least one duration.

    Attributes
    ----------
    window
        Gets the readings.
    captures, rejected
        Of rests; reasons why others were not used, with their counts.

    """

    def __init__(self, window: CaptureWindow) -> None:
        self.window = window
        self.captures: list[Capture] = []
        self.rejected: dict[str, int] = {}
        self._last = np.full(len(window.model.joint_names), math.inf)
        self._has_moved, self._checked_at = False, -math.inf
        self._stillest: LargestMotion | None = None

    @property
    def duration(self) -> float:
        """Duration of a rest, s."""
        return self.window.options.duration

    @property
    def problem(self) -> str:
        """Return what kept the robot from being still where it nearly was, and the remedy."""
        motion = self._stillest
        if motion is None:
            return self.window.problem
        option = _OPTIONS.get(motion.limit)
        remedy = f'{option} {1.1 * motion.value:.2g} would do' if option else (
            'hold the robot still')
        return f'in its stillest {self.duration:g} s {motion.text}: {remedy}'

    def update(self, time: float, positions: Array) -> None:
        """Capture the readings if the robot rests in another posture, or again in the last."""
        period = min(CHECK_PERIOD, self.duration / CHECKS)
        if self._checked_at <= time < self._checked_at + period:
            return
        self._checked_at = time
        self._has_moved |= bool(np.abs(positions - self._last).max() >= NEW_POSE)
        if not (self._has_moved and self.window.is_full):
            return
        motion = self.window.motion()
        if motion.excess > 1.0:
            if self._stillest is None or motion.excess < self._stillest.excess:
                self._stillest = motion
            return
        try:
            self.captures.append(self.window.capture(
                f'pose {len(self.captures) + 1} at {time:.1f} s'))
        except InputError as error:
            _count(self.rejected, str(error))
        self._last, self._has_moved = positions.copy(), False


def _count(reasons: dict[str, int], reason: str) -> None:
    """Count a reason once more."""
    reasons[reason] = reasons.get(reason, 0) + 1


def read_recording(path: Path, finder: CaptureFinder, namespace: str = '') -> Iterator[float]:
    """
    Read a recording into a finder of captures; yield the share of it that has been read.

    Parameters
    ----------
    path
        A directory of rosbag2, an .mcap or .db3 file, or a .csv file.
    finder
        Gets the readings in the sequence of time; the YAML of its robot names the topics.
    namespace
        Of the topics, e.g. ``/robot1``.

    Raises
    ------
    ConfigurationError
        If there is no such recording, or it cannot be read.
    InputError
        If topics or columns are missing; the message names them and those there are.

    """
    if not path.exists():
        raise ConfigurationError(f"there is no recording '{path}'")
    if path.is_dir() and not (path / 'metadata.yaml').exists():
        files = [f"'{file}'" for file in sorted(path.iterdir())
                 if file.suffix in ('.mcap', '.db3')]
        raise ConfigurationError(
            f"directory '{path}' is no rosbag2, because it has no metadata.yaml; "
            + (f"write it with ros2 bag reindex '{path}', or give {' or '.join(files)}" if files
               else 'give the directory that ros2 bag record made, or an .mcap, .db3 or .csv '
               'file'))
    return read_csv(path, finder) if path.suffix == '.csv' else read_bag(path, finder, namespace)


def read_csv(path: Path, finder: CaptureFinder) -> Iterator[float]:
    """Read a CSV in the format of this module; see :func:`read_recording`."""
    model = finder.model
    needed = ['time', *(f'position/{name}' for name in model.joint_names),
              *(f'{sensor}/{axis}' for sensor in recorded_sensors(model) for axis in AXES), *IMU]
    try:
        with path.open(newline='', encoding='utf-8') as file:
            lines, size = csv.DictReader(file), max(path.stat().st_size, 1)
            buffer: Any = file.buffer
            require('columns', needed, tuple(lines.fieldnames or ()), str(path))
            for number, line in enumerate(lines, start=2):
                _add_line(finder, line, f'{path}:{number}')
                yield min(1.0, buffer.tell() / size)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"recording '{path}' cannot be read: {error}") from None


def _add_line(finder: CaptureFinder, line: Mapping[str, str], where: str) -> None:
    def numbers(keys: Iterable[str]) -> Array:
        try:
            return np.array([float(line[key]) for key in keys])
        except (TypeError, ValueError):
            raise InputError(f'{where}: every column must be a number') from None

    time, names = float(numbers(['time'])[0]), finder.model.joint_names
    finder.add_imu(time, numbers(IMU))
    for sensor in recorded_sensors(finder.model):
        finder.add_wrench(sensor, numbers(f'{sensor}/{axis}' for axis in AXES))
    efforts = np.array([numbers([f'effort/{n}'])[0] if f'effort/{n}' in line else math.nan
                        for n in names])
    finder.add_joints(time, names, numbers(f'position/{n}' for n in names), efforts)


def read_bag(path: Path, finder: CaptureFinder, namespace: str = '') -> Iterator[float]:
    """Read a rosbag2; see :func:`read_recording`."""
    model = finder.model
    with opened_bag(path) as reader:
        kinds = _kinds(model, namespace, tuple(reader.topics))
        require('topics', list(kinds), tuple(reader.topics), str(path))
        connections = [c for c in reader.connections if c.topic in kinds]
        total = max(1, sum(connection.msgcount for connection in connections))
        stream = (LowStateStream(model.config, need_crc=False) if LOW_STATE in kinds.values()
                  else None)
        problem: InputError | None = None
        for i, (connection, stamp, raw) in enumerate(reader.messages(connections)):
            if stream is not None and kinds[connection.topic] == LOW_STATE:
                unusable = _add_low_state(finder, stream, bytes(raw), stamp)
                problem = problem or unusable
            else:
                message: Any = reader.deserialize(raw, connection.msgtype)
                _add_message(finder, kinds[connection.topic], message, stamp * 1e-9)
            yield i / total
        if problem is not None and stream is not None and stream.state is None:
            raise problem


def _kinds(model: RobotModel, namespace: str, present: Sequence[str]) -> dict[str, str]:
    """Return what each topic has: joints, imu, or a sensor; LowState stands in for the former."""
    config, low_state = model.config, model.config.low_state
    topics = {'joint_states': 'joints', config.imu.topic: 'imu',
              **{config.wrench_sensors[name].topic: name for name in recorded_sensors(model)}}
    full = {topic if topic.startswith('/') else f'{namespace.rstrip("/")}/{topic}': kind
            for topic, kind in topics.items()}
    if low_state is None or any(topic in present for topic, kind in full.items()
                                if kind == 'joints'):
        return full
    standing_in = next((name for name in present if is_topic(name, low_state.topic)), None)
    if standing_in is None:
        return full
    return {standing_in: LOW_STATE, **{topic: kind for topic, kind in full.items()
                                       if kind not in ('joints', 'imu')}}


def recorded_sensors(model: RobotModel) -> tuple[str, ...]:
    """Return the names of the sensors whose readings a recording has: all but virtual ones."""
    virtual = virtual_sensors(model)
    return tuple(name for name in model.config.wrench_sensors if name not in virtual)


def _add_low_state(finder: CaptureFinder, stream: LowStateStream, raw: bytes,
                   recorded_ns: int) -> InputError | None:
    """Add the values of a recorded LowState, or return why it cannot be used."""
    try:
        stamp_ns = stream.update(raw, recorded_ns)
    except InputError as error:
        return error
    if stamp_ns is not None and stream.state is not None:
        time, state = 1e-9 * stamp_ns, stream.state
        finder.add_imu(time, state.quaternion, np.concatenate(
            (state.angular_velocity, state.acceleration)))
        finder.add_joints(time, stream.joints, stream.positions, stream.efforts, stream.velocities)
    return None


def _add_message(finder: CaptureFinder, kind: str, message: Any, received: float) -> None:
    """Add a message; without a stamp, its time is that at which it was received, s."""
    stamp = message.header.stamp
    time = float(stamp.sec + 1e-9 * stamp.nanosec) or received
    if kind == 'joints':
        # Some publishers publish only efforts, or none.
        positions, efforts, velocities = (
            np.asarray(values, dtype=float) if len(values) == len(message.name) else None
            for values in (message.position, message.effort, message.velocity))
        if positions is not None:
            finder.add_joints(time, message.name, positions, efforts,
                              None if velocities is None else np.nan_to_num(velocities))
    elif kind == 'imu':
        q = message.orientation
        w, a = message.angular_velocity, message.linear_acceleration
        finder.add_imu(time, np.array((q.x, q.y, q.z, q.w)),
                       np.array((w.x, w.y, w.z, a.x, a.y, a.z)))
    else:
        f, m = message.wrench.force, message.wrench.torque
        finder.add_wrench(kind, np.array((f.x, f.y, f.z, m.x, m.y, m.z)))


def require(kind: str, needed: Sequence[str], present: tuple[str, ...], where: str) -> None:
    """Raise an InputError that names what is needed and not present."""
    missing = [name for name in needed if name not in present]
    if missing:
        close = likeliest_name(missing[0], [name for name in present if name not in needed])
        hint = f"; did you mean '{close}' for '{missing[0]}'?" if close else ''
        raise InputError(
            f"'{where}' does not have the {kind} {', '.join(missing[:8])}"
            f'{" and more" if len(missing) > 8 else ""}; it has '
            f'{", ".join(sorted(present)[:20])}{hint}')
