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
"""Subscription to LowState, whose type is in a package of the vendor's that may be missing."""

from __future__ import annotations

from collections.abc import Callable
import importlib
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.unitree.stream import LowStateStream, RefusedLowState
from biped_com_ros.ros.fast.message_reader import MessageReader, ReadSpec, RefusedMessage
from biped_com_ros.ros.topics.input_base import Input
from rclpy.node import Node


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
