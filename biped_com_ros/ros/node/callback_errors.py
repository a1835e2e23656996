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
"""Exceptions that callbacks of a node raised: logged, counted, and the node keeps running."""

from __future__ import annotations

import traceback
import weakref

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.node.clock import steady_time
from rclpy.node import Node

LOG_PERIOD = 5.0
"""Least time between log messages about the same kind of exception or refused message, s."""


class Throttle:
    """
    Limits how often something is done, for each key.

    Parameters
    ----------
    period
        Least time between two times, s.

    """

    def __init__(self, period: float = LOG_PERIOD) -> None:
        self._period = period
        self._last: dict[str, float] = {}

    def __call__(self, key: str = '') -> bool:
        """Return True, at most once per period and key."""
        now = steady_time()
        if now - self._last.get(key, -self._period) < self._period:
            return False
        self._last[key] = now
        return True


class CallbackErrors:
    """
    Counts the exceptions of a node's callbacks.

    Attributes
    ----------
    count
        How many there were.
    last
        Type and message of the last one; '' without any.

    """

    def __init__(self) -> None:
        self.count, self.last = 0, ''
        self._last_time = -1e9
        self._throttle = Throttle()

    def record(self, error: BaseException) -> bool:
        """Count an exception; return whether to log it, once per 5 s and type of exception."""
        self.count += 1
        self.last = f'{type(error).__name__}: {error}'
        self._last_time = steady_time()
        return self._throttle(type(error).__name__)

    @property
    def is_recent(self) -> bool:
        """Whether the last exception is less than 5 s old."""
        return steady_time() - self._last_time < LOG_PERIOD


_errors: weakref.WeakKeyDictionary[Node, CallbackErrors] = weakref.WeakKeyDictionary()


def callback_errors(node: Node) -> CallbackErrors:
    """Return the count of a node."""
    return _errors.setdefault(node, CallbackErrors())


def log_exception(node: Node, error: BaseException) -> None:
    """
    Count an exception of a node's callback, and log it unless its type was logged just now.

    Exceptions during shutdown are ignored: nothing can be published any more.
    """
    context = getattr(node, 'context', None)
    if (context is not None and not context.ok()) or not callback_errors(node).record(error):
        return
    if isinstance(error, BipedComError):
        node.get_logger().error(str(error))
        return
    details = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
    node.get_logger().error(
        'a callback raised an unexpected exception; the node keeps running; please report it '
        f'with this traceback:\n{details}')
