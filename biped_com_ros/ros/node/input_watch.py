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
"""Logs which inputs a node is waiting for, and when they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.clock import steady_clock, steady_time
from biped_com_ros.ros.topics.input_base import Input
from rclpy.node import Node

_FIRST_REMINDER, _LONGEST_PAUSE = 5.0, 60.0
"""The first warning comes after 5 s; then the pause doubles, up to once a minute."""
_PERIOD = 0.5
_process_throttle = Throttle(1.0)
"""Where several nodes of a process wait for a topic, one of them logs it."""


class InputWatch:
    """
    Watches inputs for their first message, and for becoming stale.

    Parameters
    ----------
    node
        The rclpy node.
    inputs
        Inputs by the names used in log messages.
    throttle
        Limits the warnings about a topic; shared by the nodes of the process.

    """

    def __init__(self, node: Node, inputs: Mapping[str, Input],
                 throttle: Throttle = _process_throttle) -> None:
        self._node, self._inputs, self._throttle = node, dict(inputs), throttle
        now = steady_time()
        self._missing_since = dict.fromkeys(inputs, now)
        self._next_warning = dict.fromkeys(inputs, now + _FIRST_REMINDER)
        self._timer = node.create_timer(_PERIOD, self._check, clock=steady_clock())

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the inputs that never arrived or are stale."""
        return tuple(name for name, source in self._inputs.items() if source.stale())

    def destroy(self) -> None:
        """Stop watching."""
        self._node.destroy_timer(self._timer)

    def _check(self) -> None:
        now = steady_time()
        for name, source in self._inputs.items():
            if not source.stale():
                self._log_arrival(name, source)
                continue
            if name not in self._missing_since:
                self._missing_since[name] = self._next_warning[name] = now
            if now >= self._next_warning[name]:
                waited = now - self._missing_since[name]
                self._next_warning[name] = now + min(max(waited, _FIRST_REMINDER), _LONGEST_PAUSE)
                self._warn(name, source, waited)

    def _log_arrival(self, name: str, source: Input) -> None:
        if self._missing_since.pop(name, None) is not None:
            self._node.get_logger().info(f"received {_describe(name, source)} on '{source.topic}'")

    def _warn(self, name: str, source: Input, waited: float) -> None:
        if self._throttle(source.topic):
            self._node.get_logger().warning(f'waiting for {_describe(name, source)} for '
                                            f'{waited:.0f} s: {source.report()[1]}')


def waiting_for(inputs: Iterable[str]) -> str:
    """Return the text of a diagnostic about missing inputs, by name, with where to look."""
    return f'waiting for {", ".join(inputs)}; see the entries of the inputs'


def _describe(name: str, source: Input) -> str:
    return 'messages' if name == source.topic else name
