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
What a node makes after its start, or when it is needed: nothing that matters waits for it.

A publisher takes half a millisecond, and the first one of a message package several: its
libraries are loaded. So a node makes first what its first answer needs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
import weakref

from rclpy.clock import Clock, ClockType

_SOON = 0.02  # s: long enough that what has arrived meanwhile is answered before
_pending: weakref.WeakKeyDictionary[Any, _Pending] = weakref.WeakKeyDictionary()


class once:
    """
    Attribute that is made when it is first asked for, like ``functools.cached_property``.

    That one asks for the object's ``__dict__``, after which CPython (up to 3.12) looks for all
    attributes of the object by name: seven times the work, at every message.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self._make(instance)
        setattr(instance, self._name, value)  # found first from now on
        return value

    def forget(self, instance: Any) -> None:
        """Make it anew when it is asked for again."""
        with suppress(AttributeError):
            delattr(instance, self._name)


def soon(node: Any, action: Callable[[], object]) -> None:
    """
    Let the node's executor call `action` once, a moment after the node was set up.

    Parameters
    ----------
    node
        The rclpy node.
    action
        What it raises is logged, as of any callback.

    """
    if node not in _pending:
        _pending[node] = _Pending(node)
    _pending[node].add(action)


class _Pending:
    """What is still to be done for a node."""

    def __init__(self, node: Any) -> None:
        self._node = weakref.ref(node)
        self._actions: list[Callable[[], object]] = []
        self._timer = node.create_timer(
            _SOON, self._act, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def add(self, action: Callable[[], object]) -> None:
        self._actions.append(action)
        self._timer.reset()  # the moment begins anew: the node is still being set up

    def _act(self) -> None:
        from biped_com_ros.ros.node.diagnostics import log_exception  # which uses this module
        self._timer.cancel()
        node = self._node()
        _pending.pop(node, None)
        for action in self._actions:
            try:
                action()
            except Exception as error:  # noqa: B902 - the others have nothing to do with it
                log_exception(node, error)
