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
from dataclasses import dataclass, field
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.constants import GRAVITY, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, rotation_from_quaternion
from biped_com_ros.core.identification.captures.capture import Capture, MotorConstants
from biped_com_ros.core.identification.captures.stillness import CaptureWindow, StillnessOptions
from biped_com_ros.core.identification.captures.virtual_contacts import (
    virtual_sensors, VirtualReadings)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.spelling import likeliest_name
from biped_com_ros.core.unitree.recording import is_topic
from biped_com_ros.core.unitree.stream import LowStateStream
from biped_com_ros.core.wrench.correction import ReadingCorrection
import numpy as np
import pinocchio as pin

NEW_POSE = 0.03
"""The robot has moved if a joint was further than this from its last posture at rest, rad or m."""

CHECK_PERIOD = 0.1  # s between checks for stillness

LOW_STATE = 'low state'
"""Kind of a topic with Unitree's LowState, which has joints and IMU."""

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')


@dataclass(frozen=True)
class Event:
    """
    One reading of a recording.

    Attributes
    ----------
    time
        s.
    kind
        ``joints``, ``imu`` or the name of a wrench sensor.
    names
        Of joints.
    values
        Positions of those joints, quaternion (x, y, z, w), or wrench (6,).
    efforts, velocities
        Of those joints; empty where not recorded.
    motion
        Of the IMU: angular velocity and acceleration (6,), rad/s and m/s^2; empty where not
        recorded.
    share
        Share of the recording that has been read.

    """

    time: float
    kind: str
    values: Array
    names: tuple[str, ...] = ()
    efforts: Array = field(default_factory=lambda: np.zeros(0))
    share: float = 0.0
    velocities: Array = field(default_factory=lambda: np.zeros(0))
    motion: Array = field(default_factory=lambda: np.zeros(0))


class CaptureFinder:
    """
    Finds the captures in a stream of events.

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

    Attributes
    ----------
    captures
        Found so far.
    rejected
        Reasons why segments at rest were not captured or joint states not used, with their
        counts.

    """

    def __init__(self, model: RobotModel, options: StillnessOptions | None = None,
                 motors: MotorConstants | None = None, hangs: bool = False) -> None:
        self._model, self._motors = model, motors or MotorConstants()
        self._watch = CaptureWindow(model, model.config.imu.frame, options, hangs)
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
        self._checked_at, self._last, self._has_moved = -math.inf, np.full(n, math.inf), False
        self.captures: list[Capture] = []
        self.rejected: dict[str, int] = {}

    def add(self, event: Event) -> None:
        """Process the next event."""
        if event.kind == 'imu':
            self._add_imu(event)
        elif event.kind == 'joints':
            self._add_joints(event)
        else:
            i = self._sensor_index[event.kind]
            correction = self._corrections[i]
            self._wrenches[i] = correction.corrected(
                correction.scale * event.values, correction.bias)

    def require_captures(self) -> list[Capture]:
        """Return the captures; InputError with the reason if there are none."""
        if self.captures:
            return self.captures
        reasons = '; '.join(f'{reason} ({count} times)' for reason, count in self.rejected.items())
        missing = [name for name, i in self._index.items() if not np.isfinite(self._positions[i])]
        if missing:
            raise InputError(f'the recording has no positions of {", ".join(missing[:8])}'
                             f'{f" that can be used: {reasons}" if reasons else ""}')
        raise InputError('the robot is never still in the recording: '
                         f'{reasons or self._watch.problem}')

    def _add_imu(self, event: Event) -> None:
        R_world_imu, tilt = rotation_from_quaternion(event.values), self._tilt
        motion = event.motion if len(event.motion) else np.concatenate(
            (np.zeros(3), GRAVITY * R_world_imu[2]))
        rates, acceleration = motion[:3], motion[3:]
        if tilt is not None:
            R_world_imu = R_world_imu @ tilt.T
            rates, acceleration = tilt @ rates, tilt @ acceleration
        self._up = R_world_imu[2]
        self._virtual.add_imu(round(event.time * SECOND_NS), R_world_imu, rates, acceleration)

    def _add_joints(self, event: Event) -> None:
        if not event.names or self._has_implausible_position(event):
            return
        for k, name in enumerate(event.names):
            if name in self._index:
                i = self._index[name]
                self._positions[i] = event.values[k] - self._model.joint_offsets[i]
                if len(event.efforts):
                    self._efforts[i] = event.efforts[k]
                if len(event.velocities):
                    self._velocities[i] = event.velocities[k]
        if not (np.isfinite(self._positions).all() and np.isfinite(self._up).all()):
            return
        torques = self._model.corrected_torques(
            self._motors.torques_of_efforts(self._model, self._efforts))
        self._virtual.add_joints(
            round(event.time * SECOND_NS), self._positions, self._velocities, torques)
        self._wrenches[self._virtual.sensors] = self._virtual.readings
        self._watch.force_deviations[self._virtual.sensors] = self._virtual.deviations
        self._watch.add(event.time, self._positions, torques, self._wrenches, self._up)
        if event.time >= self._checked_at + CHECK_PERIOD or event.time < self._checked_at:
            self._checked_at = event.time
            self._check()

    def _has_implausible_position(self, event: Event) -> bool:
        for name, position in zip(event.names, event.values.tolist()):
            least, most = self._limits.get(name, (-math.inf, math.inf))
            if position < least or position > most:
                problem = (f"joint '{name}' is beyond {least:g} to {most:g}: check the unit of "
                           'positions (rad, m), the zero of the encoder, and the limits in the '
                           'URDF')
                self.rejected[problem] = self.rejected.get(problem, 0) + 1
                return True
        return False

    def _check(self) -> None:
        self._has_moved |= bool(np.abs(self._positions - self._last).max() >= NEW_POSE)
        if not self._has_moved or self._watch.problem:
            return
        try:
            self.captures.append(self._watch.capture(f'{self._checked_at:.1f} s'))
        except InputError as error:
            self.rejected[str(error)] = self.rejected.get(str(error), 0) + 1
        self._last, self._has_moved = self._positions.copy(), False


def read_recording(path: Path, model: RobotModel, namespace: str = '') -> Iterator[Event]:
    """
    Read a recording in the sequence of time.

    Parameters
    ----------
    path
        A directory of rosbag2, an .mcap or .db3 file, or a .csv file.
    model
        The robot, whose YAML names the topics.
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
        raise ConfigurationError(
            f"directory '{path}' is no rosbag2, because it has no metadata.yaml; give the "
            'directory that ros2 bag record made, or an .mcap, .db3 or .csv file')
    if path.suffix == '.csv':
        return read_csv(path, model)
    return read_bag(path, model, namespace)


def read_csv(path: Path, model: RobotModel) -> Iterator[Event]:
    """Read a CSV in the format of this module; see :func:`read_recording`."""
    sensors = recorded_sensors(model)
    needed = ['time', *(f'position/{name}' for name in model.joint_names),
              *(f'{sensor}/{axis}' for sensor in sensors for axis in AXES),
              *(f'imu/{key}' for key in ('qx', 'qy', 'qz', 'qw'))]
    try:
        with path.open(newline='', encoding='utf-8') as file:
            lines = csv.DictReader(file)
            header = tuple(lines.fieldnames or ())
            require('columns', needed, header, str(path))
            size = path.stat().st_size
            for number, line in enumerate(lines, start=2):
                yield from _events_of_line(line, model, header, f'{path}:{number}', file, size)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"recording '{path}' cannot be read: {error}") from None


def _events_of_line(line: Mapping[str, str], model: RobotModel, header: tuple[str, ...],
                    where: str, file: Any, size: int) -> Iterator[Event]:
    def numbers(keys: Iterable[str]) -> Array:
        try:
            return np.array([float(line[key]) for key in keys])
        except (TypeError, ValueError):
            raise InputError(f'{where}: every column must be a number') from None

    time, share = float(numbers(['time'])[0]), min(1.0, file.buffer.tell() / max(size, 1))
    yield Event(time, 'imu', numbers(f'imu/{key}' for key in ('qx', 'qy', 'qz', 'qw')))
    for sensor in recorded_sensors(model):
        yield Event(time, sensor, numbers(f'{sensor}/{axis}' for axis in AXES))
    names = model.joint_names
    efforts = np.array([numbers([f'effort/{n}'])[0] if f'effort/{n}' in header else math.nan
                        for n in names])
    yield Event(time, 'joints', numbers(f'position/{n}' for n in names), names, efforts, share)


def read_bag(path: Path, model: RobotModel, namespace: str = '') -> Iterator[Event]:
    """Read a rosbag2; see :func:`read_recording`."""
    with opened_bag(path) as reader:
        kinds = _kinds(model, namespace, tuple(reader.topics))
        require('topics', list(kinds), tuple(reader.topics), str(path))
        connections = [c for c in reader.connections if c.topic in kinds]
        total = max(1, sum(connection.msgcount for connection in connections))
        motors = LowStateEvents(model) if LOW_STATE in kinds.values() else None
        for i, (connection, stamp, raw) in enumerate(reader.messages(connections)):
            if motors is not None and kinds[connection.topic] == LOW_STATE:
                yield from motors.events(bytes(raw), stamp, i / total)
                continue
            message: Any = reader.deserialize(raw, connection.msgtype)
            yield _event(kinds[connection.topic], message, stamp * 1e-9, i / total)
        if motors is not None:
            motors.check()


def _kinds(model: RobotModel, namespace: str, present: Sequence[str]) -> dict[str, str]:
    """Return the kind of events by topic; LowState stands in for joints and IMU."""
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


class LowStateEvents:
    """
    Converts recorded LowState messages to events; those that cannot be used are left out.

    Parameters
    ----------
    model
        The robot, which has ``low_state``.

    """

    def __init__(self, model: RobotModel) -> None:
        self._stream = LowStateStream(model.config, need_crc=False)
        self._problem: InputError | None = None

    def events(self, raw: bytes, recorded_ns: int, share: float) -> Iterator[Event]:
        """Yield the values of a message."""
        try:
            stamp_ns, stream = self._stream.update(raw, recorded_ns), self._stream
        except InputError as error:
            self._problem = self._problem or error
            return
        if stamp_ns is None or stream.state is None:
            return
        time, state = 1e-9 * stamp_ns, stream.state
        yield Event(time, 'imu', state.quaternion, motion=np.concatenate(
            (state.angular_velocity, state.acceleration)))
        yield Event(time, 'joints', stream.positions, stream.joints, stream.efforts, share,
                    stream.velocities)

    def check(self) -> None:
        """Raise the InputError of the first message if none could be used."""
        if self._problem is not None and self._stream.state is None:
            raise self._problem


def _event(kind: str, message: Any, received: float, share: float) -> Event:
    """Convert a message; without a stamp, its time is that at which it was received, s."""
    stamp = message.header.stamp
    time = float(stamp.sec + 1e-9 * stamp.nanosec) or received
    if kind == 'joints':
        # Some publishers publish only efforts, or none.
        positions, efforts = (
            np.asarray(values, dtype=float) if len(values) == len(message.name)
            else np.zeros(0) for values in (message.position, message.effort))
        names = tuple(message.name) if len(positions) else ()
        velocities = np.nan_to_num(np.asarray(message.velocity, dtype=float))
        return Event(time, kind, positions, names, efforts, share,
                     velocities if len(velocities) == len(names) else np.zeros(0))
    if kind == 'imu':
        q = message.orientation
        w, a = message.angular_velocity, message.linear_acceleration
        return Event(time, kind, np.array((q.x, q.y, q.z, q.w)), share=share,
                     motion=np.array((w.x, w.y, w.z, a.x, a.y, a.z)))
    f, m = message.wrench.force, message.wrench.torque
    return Event(time, kind, np.array((f.x, f.y, f.z, m.x, m.y, m.z)), share=share)


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
