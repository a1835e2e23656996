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
"""Base of all inputs: a subscription as one node uses it, with its counters and diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
import weakref

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.signals.age import age_of
from biped_com_ros.ros.fast.message_reader import MessageReader, ReadSpec, receiver_of
from biped_com_ros.ros.fast.subscription_pool import pool_of
from biped_com_ros.ros.node.callback_errors import LOG_PERIOD, Throttle
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.no_data_reason import NoDataReason
from biped_com_ros.ros.topics.qos import copy_of, overridable, SENSOR_INPUT
from biped_com_ros.ros.topics.stamp import is_time_simulated, now_ns
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

#: One per node: where it subscribes to a topic twice, a bad message is logged once.
_throttles: weakref.WeakKeyDictionary[Node, Throttle] = weakref.WeakKeyDictionary()
#: The inputs of each node.
_inputs_of: weakref.WeakKeyDictionary[Node, weakref.WeakSet[Input]] = weakref.WeakKeyDictionary()


class Input:
    """
    Base of all inputs.

    Parameters
    ----------
    node
        The rclpy node.
    message_type, topic
        What to subscribe to.
    callback
        Called with (stamp in ns, values...); arrays are reused and cannot be written to.
    reader, options
        Class that reads the messages, and what it needs besides.
    diagnostics
        Where a line about this input is added.
    qos
        Quality of service; users override it with ``qos_overrides.<topic>.subscription.*``.
    timeout
        Seconds without good data after which the input is stale.
    max_age
        Stamps further than this from the node's clock, before or after, are refused (s);
        0 accepts any.
    period
        Least time between stamped messages that are used; others are ignored (s).
    largest
        Messages with a value beyond this, in its own unit, are refused.
    required
        Whether a stale input is an ERROR in diagnostics, or only a WARN.

    Attributes
    ----------
    refused : dict of str to int
        Number of refused messages by reason.
    last_error : str
        Why the last message was refused; '' if none was.
    stamp_ns : int or None
        Stamp of the last good message.
    reader : MessageReader
        Reads the messages, for other inputs of the process, too, if it is shared.

    """

    def __init__(self, node: Node, message_type: type, topic: str, callback: Callable[..., None],
                 reader: type[MessageReader], options: tuple[Any, ...] = (), *,
                 diagnostics: Diagnostics | None = None, qos: QoSProfile = SENSOR_INPUT,
                 timeout: float = 0.5, max_age: float = 1.0, period: float = 0.0,
                 largest: float = 1e9, required: bool = True) -> None:
        self.node, self.callback, self.required = node, callback, required
        self._timeout = timeout
        self.refused: dict[str, int] = {}
        self.last_error = ''
        self.stamp_ns: int | None = None
        self._clock = node.get_clock()
        self._throttle = _throttles.setdefault(node, Throttle(LOG_PERIOD))
        self._refused_at = NEVER_NS / SECOND_NS
        self._started_ns = now_ns(self._clock)
        self._count_offset = 0
        self._rate_since, self._rate_count, self._rate = steady_time(), 0, 0.0
        self._name, self._qos, self._message_type = topic, qos, message_type
        self._silence = NoDataReason(node)
        self._connect(ReadSpec(
            reader=reader, message_type=message_type, options=options,
            max_age_ns=nanoseconds(max_age), simulated=is_time_simulated(node),
            period_ns=nanoseconds(period), largest=largest, frame_prefix=frame_prefix(node)))
        if diagnostics is not None:
            diagnostics.add(f'input {self.topic}', self.report)
        inputs_of(node).add(self)

    # -- for users

    @property
    def timeout(self) -> float:
        """Seconds without good data after which the input is stale."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._timeout = seconds

    @property
    def max_age(self) -> float:
        """Largest difference of a stamp from the node's clock, s; 0: any."""
        return self.reader.spec.max_age_ns / SECOND_NS

    @max_age.setter
    def max_age(self, seconds: float) -> None:
        if seconds != self.max_age:
            self._read_differently(max_age_ns=nanoseconds(seconds))

    def age(self, now: int | None = None) -> float:
        """Return the age of the last good message, or else the time since the start, s."""
        at = now_ns(self._clock) if now is None else now
        since_ns = self._started_ns if self.stamp_ns is None else self.stamp_ns
        return age_of(since_ns, at) / SECOND_NS

    def stale(self, timeout: float | None = None, now: int | None = None) -> bool:
        """Return whether there was no good data for `timeout` seconds, or never any."""
        return self.stamp_ns is None or self.age(now) > (
            self._timeout if timeout is None else timeout)

    @property
    def count(self) -> int:
        """Return the number of good messages."""
        return self._count_offset + self.reader.count

    @property
    def rate(self) -> float:
        """Return the good messages per second, measured over the last second or so."""
        now = steady_time()
        elapsed = now - self._rate_since
        if elapsed > 0.9:
            self._rate = (self.count - self._rate_count) / elapsed
            self._rate_since, self._rate_count = now, self.count
        return self._rate

    @property
    def is_refusing(self) -> bool:
        """Whether a message was refused in the last 5 s, for a reason that is logged."""
        return steady_time() - self._refused_at < LOG_PERIOD

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        values = {'rate [Hz]': self.rate, 'received': self.count, 'last error': self.last_error,
                  **{f'refused: {reason}': n for reason, n in self.refused.items()}}
        if self.reader.plain_reason:
            values['converted by rclpy, which is slower'] = self.reader.plain_reason
        if self.stale():
            return ERROR if self.required else WARN, self._why_stale(), values
        if self.is_refusing:
            return WARN, self.last_error, values
        return OK, f'{self.rate:.0f} Hz', values

    def refuse(self, reason: str, details: str) -> None:
        """Count a message that is not used, and log why, at most once per 5 s and reason."""
        self.refused[reason] = self.refused.get(reason, 0) + 1
        if not details:
            return
        self.last_error = f"'{self.topic}': {details}"
        self._refused_at = steady_time()
        if self._throttle(f'{self.topic} {reason}'):
            self.node.get_logger().error(f'{self.last_error} (message not used)')

    def destroy(self) -> None:
        """Unsubscribe; nothing is called back any more."""
        self.callback = _ignore
        inputs_of(self.node).discard(self)
        self.reader.remove(self)
        if self._pool is None:
            self.node.destroy_subscription(self.subscription)
        else:
            self._pool.remove_unused()

    # -- for subclasses

    def _connect(self, spec: ReadSpec) -> None:
        """Subscribe, or share the subscription of other inputs."""
        self._pool = pool_of(self.node)
        self.subscription: Subscription
        if self._pool is None:
            self.reader = spec.make()
            self.subscription = self.node.create_subscription(
                spec.message_type, self._name, receiver_of(self), copy_of(self._qos), raw=True,
                qos_overriding_options=overridable())
        else:
            self.reader, self.subscription = self._pool.subscribe(
                self.node, self._name, self._qos, spec)
        self.topic = self.reader.topic = self.subscription.topic_name
        self.reader.may_skip &= self._qos.reliability == ReliabilityPolicy.BEST_EFFORT
        self._count_offset -= self.reader.count  # messages of other inputs before
        self.reader.add(self)

    def _read_differently(self, **changes: Any) -> None:
        """
        Read by another specification from the next message on.

        Other inputs that share the reader keep it. No subscription of this node alone is made
        anew: until DDS has connected it, messages would be lost.

        Parameters
        ----------
        changes
            Of the attributes of `ReadSpec`.

        """
        before, count = self.reader, self.count
        spec = replace(before.spec, **changes)
        if self._pool is None:
            self.reader = spec.make()
        else:
            self.reader, self.subscription = self._pool.subscribe(
                self.node, self._name, self._qos, spec)
        self.reader.topic, self.reader.may_skip = self.topic, before.may_skip
        if not self.reader.count:
            self.reader.continue_from(before)
        self._count_offset = count - self.reader.count
        self.reader.add(self)
        before.remove(self)
        if self._pool is not None:
            self._pool.remove_unused()

    def _why_stale(self) -> str:
        publishers = self.node.count_publishers(self.topic)
        since = (f"no valid message on '{self.topic}' " + (
            f'for {self.age():.1f} s' if self.stamp_ns is not None else 'yet'))
        if not publishers:
            return f'{since}: no publisher; check driver, namespace and remapping'
        if self.is_refusing:
            return f'{since}: {self.last_error}'
        if wrong := self._wrong_types():
            return (f'{since}: it is published as {wrong}, and {type_name(self._message_type)} is '
                    'needed; correct the topic in the robot file or the remapping')
        return f'{since}: {self._silence.reason(self.topic, publishers, self._used_qos)}'

    @property
    def _used_qos(self) -> QoSProfile:
        """Quality of service with what users changed, which rclpy writes there."""
        used: QoSProfile = self.subscription.qos_profile
        return used

    def _wrong_types(self) -> str:
        """Return the types that the topic is published with, if none is the right one."""
        types = {info.topic_type for info in self.node.get_publishers_info_by_topic(self.topic)}
        return '' if type_name(self._message_type) in types else ', '.join(sorted(types))


def inputs_of(node: Node) -> weakref.WeakSet[Input]:
    """Return the inputs of a node that are not destroyed."""
    return _inputs_of.setdefault(node, weakref.WeakSet())


def type_name(message_type: type) -> str:
    """Return the name of a message type as ``ros2 topic info`` prints it."""
    package, kind = message_type.__module__.split('.')[:2]
    return f'{package}/{kind}/{message_type.__name__}'


def _ignore(*_: Any) -> None:
    """Ignore a message that is being delivered while its input is destroyed."""
