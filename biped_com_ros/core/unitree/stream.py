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
"""From LowState messages to joints and IMU of a robot, with checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.unitree.low_state import LowState, LowStateDecoder
from biped_com_ros.core.unitree.stamps import TickClock
import numpy as np


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

    def __init__(self, config: RobotConfig, check_crc: bool = True,
                 need_crc: bool = True) -> None:
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
