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
From LowState messages to joints and IMU of a robot, with checks; also those of a recording.

The messages only have a counter of milliseconds: :class:`TickClock` makes stamps of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.unitree.low_state import LowState, LowStateDecoder
import numpy as np

_WRAP = 2**32
_TICK_NS = 1_000_000
#: How fast the two clocks may drift apart.
_DRIFT = 2e-4
#: Part of a step by which stamps may lag behind, to approach a smaller delay.
_APPROACH = 0.5
#: Difference from the clock that means that one of the two was set, ns.
_JUMP_NS = SECOND_NS // 2
#: Number of steps of which the usual one is the median.
_FIRST = 20


class TickClock:
    """
    Converts a counter of milliseconds to the time of the computer.

    Messages arrive late by different times; the counter is even. A stamp is the counter plus the
    least difference from the time of arrival so far, which follows slowly where the two clocks
    drift apart. Stamps of a counter that goes up always go up, too.

    Attributes
    ----------
    restarts
        How often the counter went back, as after a restart of the robot.
    jumps
        How often one of the two clocks was set, or messages stopped for a while and then had
        another delay.
    lost
        Number of messages that are missing, by the usual step of the counter.

    """

    def __init__(self) -> None:
        self.restarts = self.jumps = self.lost = 0
        self._tick: int | None = None
        self._elapsed_ns = self._offset_ns = 0
        self._usual = 0.0
        self._first: list[int] = []

    def stamp(self, tick: int, arrival_ns: int) -> int | None:
        """
        Return the stamp of a message in ns; None if its counter is that of the message before.

        Parameters
        ----------
        tick
            The counter, ms, which wraps at 2^32.
        arrival_ns
            When the message arrived.

        """
        if self._tick is None:
            return self._restart(tick, arrival_ns)
        step = (tick - self._tick) % _WRAP
        if step == 0:
            return None
        if step > _WRAP // 2:
            self.restarts += 1
            return self._restart(tick, arrival_ns)
        self._tick, elapsed = tick, step * _TICK_NS
        self._elapsed_ns += elapsed
        self._count_lost(step)
        ahead = arrival_ns - self._elapsed_ns - self._offset_ns
        if abs(ahead) > _JUMP_NS:
            self.jumps += 1
            self._offset_ns += ahead
        else:
            self._offset_ns += max(min(ahead, round(_DRIFT * elapsed)),
                                   -round(_APPROACH * elapsed))
        return self._elapsed_ns + self._offset_ns

    def _restart(self, tick: int, arrival_ns: int) -> int:
        self._tick, self._elapsed_ns, self._offset_ns = tick, 0, arrival_ns
        self._usual, self._first = 0.0, []
        return arrival_ns

    def _count_lost(self, step: int) -> None:
        """Count missing messages by the usual step: the median of the first ones, then a mean."""
        if not self._usual:
            self._first.append(step)
            if len(self._first) == _FIRST:
                self._usual = float(sorted(self._first)[_FIRST // 2])
            return
        self.lost += max(int(step / self._usual + 0.25) - 1, 0)
        self._usual += 0.01 * (min(float(step), 1.5 * self._usual) - self._usual)


class RefusedLowState(InputError):
    """
    A message that cannot be used.

    Attributes
    ----------
    reason
        What it is counted under.

    """

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(details)
        self.reason = reason


@dataclass
class MotorErrors:
    """
    Motors that report errors.

    Attributes
    ----------
    counts
        Number of messages with an error, or of packets that a motor lost, by joint.
    codes
        Last error by joint; empty where packets are counted.
    recent
        Joints with an error in the last message.

    """

    counts: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    recent: tuple[str, ...] = ()


class LowStateStream:
    """
    Checks the messages of a robot, and selects what its YAML names.

    Parameters
    ----------
    config
        The robot, which has `low_state`.
    check_crc
        Whether to refuse messages with a wrong checksum.
    need_crc
        Whether to refuse messages without one, as those of simulators.

    Attributes
    ----------
    joints
        Names of the joints, in the order of `positions`, `velocities` and `efforts`.
    state
        The last good message.
    positions, velocities, efforts
        Of the joints, rad, rad/s, N m.
    clock
        Gives stamps, and counts messages that are missing.
    errors
        Of motors.

    Raises
    ------
    ConfigurationError
        If the robot has no `low_state`, or it does not fit the message.

    """

    def __init__(self, config: RobotConfig, check_crc: bool = True, need_crc: bool = True) -> None:
        if config.low_state is None:
            raise ConfigurationError(
                f"robot '{config.name}' has no low_state; add it to its YAML, with the joints in "
                'the order of the motors, or use a robot that has it, e.g. g1_as_sold')
        self._decoder = LowStateDecoder(config.low_state.message)
        motors = config.low_state.motors
        if len(motors) > self._decoder.motors:
            raise ConfigurationError(
                f"low_state.motors of '{config.name}' has {len(motors)} joints; "
                f'LowState of {self._decoder.package} has {self._decoder.motors} motors')
        self._used = np.flatnonzero([bool(name) for name in motors])
        self.joints = tuple(name for name in motors if name)
        self._check_crc, self._need_crc = check_crc, need_crc
        self.clock, self.errors = TickClock(), MotorErrors()
        self.state: LowState | None = None
        self.positions = self.velocities = self.efforts = np.zeros(len(self.joints))

    def update(self, raw: bytes, arrival_ns: int) -> int | None:
        """
        Take a serialized message.

        Parameters
        ----------
        raw
            Its bytes.
        arrival_ns
            When it arrived.

        Returns
        -------
        int or None
            Its stamp in ns; None if it repeats the message before.

        Raises
        ------
        RefusedLowState
            If it cannot be used.

        """
        try:
            state = self._decoder.decode(raw)
        except InputError as error:
            raise RefusedLowState('malformed', str(error)) from None
        if self._check_crc and (state.crc or self._need_crc):
            self._check_checksum(raw, state.crc)
        self._check_values(state)
        stamp_ns = self.clock.stamp(state.tick, arrival_ns)
        if stamp_ns is None:
            return None
        self._watch_motors(state)
        self.state, used = state, self._used
        self.positions, self.velocities, self.efforts = (
            state.positions[used], state.velocities[used], state.efforts[used])
        return stamp_ns

    @property
    def hottest(self) -> tuple[str, int]:
        """Return the joint whose motor is the hottest, and its temperature, deg C."""
        if self.state is None:
            return '', 0
        temperatures = self.state.temperatures[self._used]
        i = int(np.argmax(temperatures))
        return self.joints[i], int(temperatures[i])

    def _check_checksum(self, raw: bytes, crc: int) -> None:
        if (computed := self._decoder.checksum(raw)) == crc:
            return
        if crc == 0:
            raise RefusedLowState('no checksum', (
                'its field crc is 0, as simulators leave it: set check_crc to false for such a '
                'source'))
        raise RefusedLowState('wrong checksum', (
            f'its checksum is 0x{crc:08x}, but that of its bytes is 0x{computed:08x}: it was '
            'changed on the way; check the network, and that nothing else publishes this topic'))

    def _check_values(self, state: LowState) -> None:
        if state.parallel_mode:
            raise RefusedLowState('motors A and B', (
                'its ankles and waist are positions of the motors A and B (mode_pr 1), not of '
                'pitch and roll: switch the robot to mode PR'))
        used = self._used
        for name, values in (('quaternion', state.quaternion),
                             ('gyroscope', state.angular_velocity),
                             ('accelerometer', state.acceleration)):
            if not np.isfinite(values).all():
                raise RefusedLowState('not finite', f'imu_state.{name} is not finite: {values}')
        for name, values in (('q', state.positions[used]), ('dq', state.velocities[used]),
                             ('tau_est', state.efforts[used])):
            finite = np.isfinite(values)
            if not finite.all():
                joint = self.joints[int(np.argmin(finite))]
                raise RefusedLowState('not finite', f"{name} of '{joint}' is not a finite number")

    def _watch_motors(self, state: LowState) -> None:
        errors, counted = state.errors[self._used], self._decoder.errors_are_counts
        if counted:
            before = None if self.state is None else self.state.errors[self._used]
            errors = errors - (errors if before is None else before)
        if not errors.any():
            self.errors.recent = ()
            return
        self.errors.recent = tuple(self.joints[i] for i in np.flatnonzero(errors))
        for i in np.flatnonzero(errors):
            name, value = self.joints[i], int(errors[i])
            self.errors.counts[name] = self.errors.counts.get(name, 0) + (value if counted else 1)
            if not counted:
                self.errors.codes[name] = value


def read_low_states(path: Path, topic: str) -> Iterator[tuple[int, bytes]]:
    """
    Read the messages of a topic, in the sequence of time.

    Parameters
    ----------
    path
        Directory of a rosbag2, an .mcap or a .db3 file.
    topic
        Name of the topic, with or without its namespace.

    Yields
    ------
    tuple
        When the message was recorded in ns, and its bytes.

    Raises
    ------
    ConfigurationError
        If the recording cannot be read.
    InputError
        If it does not have the topic.

    """
    if not path.exists():
        raise ConfigurationError(f"there is no recording '{path}'")
    with opened_bag(path) as reader:
        connections = [c for c in reader.connections if is_topic(c.topic, topic)]
        if not connections:
            raise InputError(
                f"'{path}' does not have the topic {topic}; it has "
                f'{", ".join(sorted(reader.topics))}')
        for _, stamp_ns, message in reader.messages(connections):
            yield stamp_ns, bytes(message)


def is_topic(name: str, topic: str) -> bool:
    """Return whether a full name is that of a topic, whatever its namespace."""
    return name == topic or name.endswith(f'/{topic.lstrip("/")}')
