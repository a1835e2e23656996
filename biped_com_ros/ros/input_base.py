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
What all inputs share: the raw subscription, the examination of each message, the accounts.

Kept apart from `inputs`, which nodes use.
"""

from __future__ import annotations

import struct
import time
from typing import Any

from biped_com_ros.ros import codec
from biped_com_ros.ros.conversions import nanoseconds_of, Stamp
from biped_com_ros.ros.diagnostics import (
    Diagnostics, ERROR, log_exception, OK, Report, Throttle, WARN)
from biped_com_ros.ros.qos import copy_of, overridable, SENSOR_INPUT
import numpy as np
from rclpy.qos import QoSProfile

SECOND = 1_000_000_000
NEVER = -2 ** 62
_INFINITY = float('inf')
#: How long a stamp that agreed with the clock vouches for those that follow it closely.
_TRUST_NS = 20_000_000
#: How long after the start /clock may be missing: DDS needs up to 3 s to find its publisher.
_CLOCK_TAKES = 5.0

_unpack_stamp = struct.Struct('<iI').unpack_from
_monotonic_ns = time.monotonic_ns


class Refusal(Exception):
    """
    A message that is not used.

    `reason` is what it is counted under; `details` say what is wrong, '' if there is nothing to
    say about it.
    """

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(details)
        self.reason, self.details = reason, details


class Input:
    """
    Base of all inputs.

    Parameters
    ----------
    node
        The rclpy node.
    message_type, topic
        What to subscribe to.
    diagnostics
        Where a line about this input is added.
    qos
        Quality of service; users override it with ``qos_overrides.<topic>.subscription.*``.
    timeout
        Seconds without good data after which the input counts as dead in diagnostics.
    max_age
        Stamps further than this from the node's clock, before or after, are refused (s);
        0 accepts any.
    reset_after
        A stamp going back by more than this means that the clock was set anew (s).
    required
        Whether silence is an ERROR in diagnostics, or only a WARN.
    plain
        Use rclpy's own conversion; default: as the environment says.

    Attributes
    ----------
    refused : dict of str to int
        Number of refused messages by reason.
    last_error : str
        Why the last refused message was; '' if none was.
    stamp : Stamp or None
        Of the last good message.
    count : int
        Number of good messages.

    """

    def __init__(self, node: Any, message_type: Any, topic: str, *,
                 diagnostics: Diagnostics | None = None, qos: QoSProfile = SENSOR_INPUT,
                 timeout: float = 0.5, max_age: float = 1.0, reset_after: float = 1.0,
                 required: bool = True, plain: bool | None = None) -> None:
        self.node, self.timeout, self.required = node, timeout, required
        self.refused: dict[str, int] = {}
        self.last_error = ''
        self.stamp: Stamp | None = None
        self.count = 0
        self._max_age_ns, self._reset_after_ns = int(max_age * SECOND), int(reset_after * SECOND)
        self._clock = node.get_clock()
        self._start_accounts()
        self._reader = codec.Reader(message_type, self._select, plain)
        self.subscription = node.create_subscription(
            message_type, topic, self._received, copy_of(qos), raw=True,
            qos_overriding_options=overridable())
        self.topic = self.subscription.topic_name
        if diagnostics is not None:
            diagnostics.add(f'input {self.topic}', self.report)

    def _start_accounts(self) -> None:
        self._throttle = Throttle(5.0)
        self._last_refusal = NEVER / SECOND
        self._started, self._started_monotonic = self._now(), time.monotonic()
        self._rate_from, self._rate_count, self._rate = self._started_monotonic, 0, 0.0

    # -- for users

    def age(self, now: Any = None) -> float:
        """Return the time since the stamp of the last good message or else since the start, s."""
        at = self._now() if now is None else nanoseconds_of(now)
        return (at - (self._started if self.stamp is None else self.stamp.ns)) / SECOND

    def stale(self, timeout: float | None = None, now: Any = None) -> bool:
        """Tell whether there was no good data for `timeout` seconds, or never any."""
        return self.stamp is None or self.age(now) > (
            self.timeout if timeout is None else timeout)

    @property
    def rate(self) -> float:
        """Return the good messages per second, measured over the last second or so."""
        now = time.monotonic()
        elapsed = now - self._rate_from
        if elapsed > 0.9:
            self._rate = (self.count - self._rate_count) / elapsed
            self._rate_from, self._rate_count = now, self.count
        return self._rate

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        values = {'rate [Hz]': self.rate, 'received': self.count, 'last error': self.last_error,
                  **{f'refused: {reason}': n for reason, n in self.refused.items()}}
        if self._reader.plain_reason:
            values['read the slow way'] = self._reader.plain_reason
        if self.stale():
            return ERROR if self.required else WARN, self._why_silent(), values
        if self._recently_refused():
            return WARN, self.last_error, values
        return OK, f'{self.rate:.0f} Hz', values

    def refuse(self, reason: str, details: str) -> None:
        """Count a message that is not used, and say why, at most once per 5 s and reason."""
        self.refused[reason] = self.refused.get(reason, 0) + 1
        if not details:
            return
        self.last_error = f"'{self.topic}': {details}"
        self._last_refusal = time.monotonic()
        if self._throttle(reason):
            self.node.get_logger().error(f'{self.last_error} (message not used)')

    def destroy(self) -> None:
        """Unsubscribe."""
        self.node.destroy_subscription(self.subscription)

    # -- for subclasses

    def _select(self, message: Any) -> codec.Selection:
        """Return what to read from messages built like this one."""
        return codec.Selection([])

    def _handle(self, raw: bytes) -> None:
        """Read a message and call back, or raise Refusal."""
        raise NotImplementedError

    def _received(self, raw: bytes) -> None:
        try:
            self._handle(raw)
        except Refusal as refusal:
            self.refuse(refusal.reason, refusal.details)
        except Exception as error:  # noqa: B902 - nothing that arrives may end the node
            log_exception(self.node, error)

    def _find_plan(self, raw: bytes) -> Any:
        try:
            return self._reader.plan_for(raw)
        except Refusal:
            raise
        except Exception as error:  # noqa: B902 - rclpy raises various types
            raise Refusal('malformed', f'cannot be read: {error}') from None

    def _accept(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.count += 1

    def _now(self) -> int:
        return int(self._clock.now().nanoseconds)

    def _recently_refused(self) -> bool:
        return time.monotonic() - self._last_refusal < 5.0

    def _why_silent(self) -> str:
        publishers = self.node.count_publishers(self.topic)
        since = (f"nothing usable on '{self.topic}' " + (
            f'for {self.age():.1f} s' if self.stamp is not None else 'yet'))
        if not publishers:
            return f'{since}: nobody publishes it; check driver, namespace and remapping'
        if self._recently_refused():
            return f'{since}: {self.last_error}'
        return (f'{since} although {publishers} publish it: check that the driver is active '
                'and its QoS')


class Source:
    """Where the values of messages of one structure go, and the last stamp that was good."""

    def __init__(self, size: int) -> None:
        self.flat = np.zeros(size)
        self.last_ns = NEVER


class StampedInput(Input):
    """
    Base of the inputs whose messages begin with a header.

    A plan's `data` is a `Source`.
    """

    def __init__(self, node: Any, message_type: Any, topic: str, **options: Any) -> None:
        self._plan: Any = codec.NO_PLAN
        self._trusted_ns = self._trusted_until = NEVER
        super().__init__(node, message_type, topic, **options)

    def _received(self, raw: bytes) -> None:
        # The hot path, with as few calls as possible: each costs as much as a comparison.
        try:
            plan, stamp = self._plan, None
            if raw == plan.latest.raw:  # another node of this process has just read it
                stamp = plan.latest.stamp
                ns = stamp.ns
            else:
                for segment, offset in plan.segments:
                    if not raw.startswith(segment, offset):
                        plan = self._change_plan(raw)
                        break
                seconds, nanoseconds = _unpack_stamp(raw, codec.HEADER_STAMP)
                ns = seconds * SECOND + nanoseconds
            source = plan.data
            if not (source.last_ns < ns < self._trusted_ns
                    and _monotonic_ns() < self._trusted_until):
                self._examine_stamp(ns, source)
            if stamp is None:
                stamp = self._read(raw, plan, ns)
            else:
                source.flat[...] = plan.latest.values
            source.last_ns = ns
            self._take(source, stamp)
        except Refusal as refusal:
            self.refuse(refusal.reason, refusal.details)
        except Exception as error:  # noqa: B902 - nothing that arrives may end the node
            log_exception(self.node, error)

    def _read(self, raw: bytes, plan: Any, ns: int) -> Stamp:
        """Read the values, for others too, and return the stamp."""
        latest, values = plan.latest, plan.data.flat
        latest.raw = None
        plan.gather(raw, values)
        stamp = Stamp(ns, raw[codec.HEADER_STAMP:codec.AFTER_STAMP])
        # NaN and infinity survive; four times cheaper than ``np.isfinite().all()``.
        if values.dot(values) < _INFINITY:
            latest.raw, latest.values, latest.stamp = raw, values, stamp
        else:
            self._examine_values(plan.data)
        return stamp

    def _change_plan(self, raw: bytes) -> Any:
        self._plan = codec.NO_PLAN
        plan = self._find_plan(raw)
        self._examine_structure(plan.data)
        if plan.segments:
            self._plan = plan
        return plan

    def _examine_structure(self, source: Any) -> None:
        """Raise Refusal if no message built like this can be used."""

    def _examine_values(self, source: Any) -> None:
        """Raise Refusal if values are not finite, unless that is harmless."""
        raise NotImplementedError

    def _take(self, source: Any, stamp: Stamp) -> None:
        """Use good data."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget what must not be mixed with data after a clock reset."""

    def _examine_stamp(self, ns: int, source: Source) -> None:
        """Raise Refusal, or let this stamp vouch for those that follow within 20 ms."""
        if ns == 0:
            raise Refusal('zero stamp', 'its stamp is zero: the driver has to set header.stamp')
        now = self._now()
        if self._max_age_ns and abs(now - ns) > self._max_age_ns:
            self._refuse_age(ns, now)
        if ns <= source.last_ns:
            self._examine_step_back(ns, source)
        self._trusted_ns = ns + _TRUST_NS
        self._trusted_until = _monotonic_ns() + _TRUST_NS

    def _examine_step_back(self, ns: int, source: Source) -> None:
        back = source.last_ns - ns
        if back > self._reset_after_ns:
            self.node.get_logger().warning(
                f"'{self.topic}': stamps went back by {back / SECOND:.3f} s: the clock was set "
                'anew, starting over')
            source.last_ns = NEVER
            self._forget()
            return
        publishers = self.node.count_publishers(self.topic)
        hint = f'; {publishers} nodes publish on this topic' if publishers > 1 else ''
        if back == 0:
            raise Refusal('repeated stamp', (
                f'its stamp {ns / SECOND:.9f} s is the same as the last one{hint}'))
        raise Refusal('stamp going backward', (
            f'its stamp {ns / SECOND:.9f} s is {back / SECOND:.6f} s before the last one{hint}'))

    def _refuse_age(self, ns: int, now: int) -> None:
        if now == 0:
            self._refuse_without_clock()
        limit = f'limit {self._max_age_ns / SECOND:g} s'
        clock = 'simulated' if self._clock.ros_time_is_active else "computer's"
        advice = 'check clock synchronisation and use_sim_time'
        if ns < now:
            raise Refusal('stale stamp', (
                f'its stamp is {(now - ns) / SECOND:.3f} s behind the {clock} clock ({limit}): '
                + advice))
        raise Refusal('stamp from the future', (
            f'its stamp is {(ns - now) / SECOND:.3f} s ahead of the {clock} clock ({limit}): '
            + advice))

    def _refuse_without_clock(self) -> None:
        """Refuse what comes before simulated time begins; no error while everything starts."""
        if time.monotonic() - self._started_monotonic > _CLOCK_TAKES:
            raise Refusal('no clock', 'use_sim_time is set, but nothing came on /clock yet')
        raise Refusal('no clock', '')


def quoted(names: Any, limit: int = 8) -> str:
    """Names in quotes, the first few of them."""
    names = list(names)
    more = f' and {len(names) - limit} more' if len(names) > limit else ''
    return ', '.join(f"'{name}'" for name in names[:limit]) + more
