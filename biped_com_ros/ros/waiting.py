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
"""Tells what a node waits for, every five seconds, and once what it got."""

from __future__ import annotations

import time
from typing import Any

from biped_com_ros.ros.diagnostics import steady_clock
from biped_com_ros.ros.inputs import Input

_REMIND = 5.0
_PERIOD = 0.5


class Waiting:
    """
    Watches inputs for their first message, and for their falling silent.

    Parameters
    ----------
    node
        The rclpy node.
    inputs
        By what to call them in messages.

    """

    def __init__(self, node: Any, inputs: dict[str, Input]) -> None:
        self._node, self._inputs = node, inputs
        self._silent_since = dict.fromkeys(inputs, time.monotonic())
        self._told_at = dict.fromkeys(inputs, time.monotonic())
        self._timer = node.create_timer(_PERIOD, self._look, clock=steady_clock())

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what has not arrived, or has fallen silent."""
        return tuple(name for name, source in self._inputs.items() if source.stale())

    def _look(self) -> None:
        now = time.monotonic()
        for name, source in self._inputs.items():
            if not source.stale():
                self._greet(name, source)
            elif name not in self._silent_since:
                self._silent_since[name] = self._told_at[name] = now
                self._warn(name, source, now)
            elif now - self._told_at[name] >= _REMIND:
                self._told_at[name] = now
                self._warn(name, source, now)

    def _greet(self, name: str, source: Input) -> None:
        if self._silent_since.pop(name, None) is not None:
            self._node.get_logger().info(f"got {name} on '{source.topic}'")

    def _warn(self, name: str, source: Input, now: float) -> None:
        _, why, _ = source.report()
        waited = now - self._silent_since[name]
        self._node.get_logger().warning(f'waiting for {name} for {waited:.0f} s: {why}')
