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
from typing import Any, ClassVar

from biped_com_ros.ros.node.diagnostics import steady_clock
from biped_com_ros.ros.topics.inputs import Input

_REMIND, _SELDOM = 5.0, 60.0
"""It is said after the first of these, and again after twice the time, but each second one, s."""
_PERIOD = 0.5
_AT_ONCE = 1.0
"""What several nodes of a process wait for since the same time is said once; s."""


class Waiting:
    """
    Watches inputs for their first message, and for their falling silent.

    Parameters
    ----------
    node
        The rclpy node.
    inputs
        By what to call them in messages; by their topics, 'messages'.

    """

    _last: ClassVar[dict[str, tuple[str, float]]] = {}
    """Which node has said of a topic last that it is silent, and when."""

    def __init__(self, node: Any, inputs: dict[str, Input]) -> None:
        self._node, self._inputs = node, inputs
        now = time.monotonic()
        self._silent_since = dict.fromkeys(inputs, now)
        self._say_at = dict.fromkeys(inputs, now + _REMIND)
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
                continue
            if name not in self._silent_since:
                self._silent_since[name] = self._say_at[name] = now
            if now >= self._say_at[name]:
                waited = now - self._silent_since[name]
                self._say_at[name] = now + min(max(waited, _REMIND), _SELDOM)
                self._warn(name, source, now, waited)

    def _greet(self, name: str, source: Input) -> None:
        if self._silent_since.pop(name, None) is not None:
            self._node.get_logger().info(f"got {_what(name, source)} on '{source.topic}'")

    def _warn(self, name: str, source: Input, now: float, waited: float) -> None:
        me = self._node.get_fully_qualified_name()
        who, at = self._last.get(source.topic, (me, now))
        if who != me and now - at < _AT_ONCE:
            return
        self._last[source.topic] = me, now
        self._node.get_logger().warning(
            f'waiting for {_what(name, source)} for {waited:.0f} s: {source.report()[1]}')

    def destroy(self) -> None:
        """Watch no more."""
        self._node.destroy_timer(self._timer)


def _what(name: str, source: Input) -> str:
    return 'messages' if name == source.topic else name
