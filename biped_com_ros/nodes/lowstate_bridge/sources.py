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
Where LowState comes from: a subscription, or a recording that is played like a robot.

The type of the message is in a package of the vendor's that may be missing.
"""

from __future__ import annotations

from collections.abc import Callable
import importlib
from pathlib import Path
from typing import Any

from biped_com_ros.core.constants import SECOND_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.unitree.stream import LowStateStream, read_low_states, RefusedLowState
from biped_com_ros.ros.fast.message_reader import MessageReader, ReadSpec, RefusedMessage
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.topics.input_base import Input
from biped_com_ros.ros.topics.stamp import now_ns
from rclpy.node import Node

#: s between batches of messages that are due; a message is late by at most this.
_PERIOD = 0.001


def low_state_type(package: str) -> type:
    """
    Return the class of the message LowState, which rclpy needs to subscribe.

    Raises
    ------
    ConfigurationError
        If its package is not there.

    """
    try:
        kind: type = importlib.import_module(f'{package}.msg').LowState
    except (ImportError, AttributeError):
        raise ConfigurationError(
            f"the package '{package}' with the message LowState is not installed: build "
            'unitree_ros2 (github.com/unitreerobotics/unitree_ros2) and source its workspace, or '
            'play a recording with -p recording:=/path/to/bag') from None
    return kind


class LowStateReader(MessageReader):
    """Passes messages to a `LowStateStream`, the only option of its specification."""

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        self._stream: LowStateStream = spec.options[0]

    def _read(self, raw: bytes) -> int | None:
        try:
            return self._stream.update(raw, self._now())
        except RefusedLowState as error:
            raise RefusedMessage(error.reason, str(error)) from None


class LowStateInput(Input):
    """
    LowState; calls back with the stamp in ns when `stream` has taken a message.

    Parameters
    ----------
    node, topic, callback, options
        As for other inputs.
    message_type
        Of `low_state_type`.
    stream
        Takes the messages.

    """

    def __init__(self, node: Node, topic: str, message_type: type, stream: LowStateStream,
                 callback: Callable[[int], None], **options: Any) -> None:
        super().__init__(
            node, message_type, topic, callback, LowStateReader, (stream,), **options)


class LowStatePlayer:
    """
    Plays a recording once.

    Parameters
    ----------
    node, callback
        As for a `LowStateInput`.
    path, topic
        The recording, and its topic.
    stream
        Takes the messages.

    Attributes
    ----------
    refused
        Number of refused messages by reason.
    finished
        Whether the end was reached.

    Raises
    ------
    BipedComError
        If there is no such recording, or no such topic in it.

    """

    def __init__(self, node: Node, path: str, topic: str, stream: LowStateStream,
                 callback: Callable[[int], None]) -> None:
        self._node, self._path = node, path
        self._stream, self._callback = stream, callback
        self._messages = read_low_states(Path(path).expanduser(), topic)
        self._next = next(self._messages, None)
        self._last_error, self.count, self.finished = '', 0, False
        self.refused: dict[str, int] = {}
        self._start_ns = self._first_ns = self._moved_ns = 0
        # A steady clock: the clock of the node may be simulated, and stand still.
        self._clock = steady_clock()
        self._timer = node.create_timer(_PERIOD, self._play, clock=self._clock)

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        values = {'played': self.count, 'last error': self._last_error,
                  **{f'refused: {reason}': n for reason, n in self.refused.items()}}
        if self.finished and not self.count:
            return ERROR, f"no usable message in '{self._path}': {self._last_error}", values
        if self.refused:
            return WARN, f'messages of the recording are refused: {self._last_error}', values
        return OK, 'the recording has ended' if self.finished else 'playing', values

    def _play(self) -> None:
        now = now_ns(self._clock)
        if self._next is not None and not self._start_ns:
            self._start_ns, self._first_ns = now, self._next[0]
            self._moved_ns = now_ns(self._node.get_clock()) - self._first_ns
        while self._next is not None and self._next[0] - self._first_ns <= now - self._start_ns:
            self._pass_on(*self._next)
            self._next = next(self._messages, None)
        if self._next is None:
            self._finish(now)

    def _pass_on(self, recorded_ns: int, raw: bytes) -> None:
        try:
            stamp_ns = self._stream.update(raw, recorded_ns + self._moved_ns)
        except RefusedLowState as error:
            self.refused[error.reason] = self.refused.get(error.reason, 0) + 1
            if str(error) != self._last_error:
                self._last_error = str(error)
                self._node.get_logger().error(f"'{self._path}': {error} (message not used)")
            return
        if stamp_ns is not None:
            self.count += 1
            self._callback(stamp_ns)

    def _finish(self, now: int) -> None:
        self.finished = True
        self._node.destroy_timer(self._timer)
        self._node.get_logger().info(
            f"'{self._path}' has ended: {self.count} messages in "
            f'{(now - self._start_ns) / SECOND_NS:.1f} s')
