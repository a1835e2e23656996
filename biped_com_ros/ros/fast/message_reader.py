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
Reads the messages of one topic, examines them, and hands good ones to those who take them.

A `MessageReader` belongs to one input, or to several of equal wishes; see `sharing`. What it is
about the messages is here, what it is about one source (its accounts, its callback) in
`input_base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import struct
import time
from typing import Any

from biped_com_ros.core.constants import NEVER_NS, SECOND_NS
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np

#: How long a stamp that agreed with the clock vouches for those that follow it closely.
_TRUST_NS = 50_000_000
#: How long after the start /clock may be missing: DDS needs up to 3 s to find its publisher.
_CLOCK_TAKES = 5.0

_MAX_PLANS = 32

_STAMP_AT = codec.HEADER_STAMP.start
_NO_PLAN = codec.NO_PLAN
_unpack_stamp = struct.Struct('<iI').unpack_from
_monotonic_ns = time.monotonic_ns


class RefusedMessage(Exception):
    """
    A message that is not used.

    `reason` is what it is counted under; `details` say what is wrong, '' if there is nothing to
    say about it.
    """

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(details)
        self.reason, self.details = reason, details


@dataclass(frozen=True)
class ReadSpec:
    """
    How messages are to be read; who orders the same can be served by one reading.

    Attributes
    ----------
    kind
        The class that reads them.
    message_type
        Their type.
    what
        What that class has to know besides.
    max_age_ns
        Stamps further than this from the clock are refused; 0 accepts any.
    reset_after_ns
        A stamp going back by more than this means that the clock was set anew.
    plain
        Whether to use rclpy's own conversion; None: as the environment says.
    simulated
        Whether the clock is that of the simulation.
    period_ns
        What is stamped by less than this after the last message of its kind is not used.
    largest
        Messages with a value beyond this, in its own unit, are refused.

    """

    kind: type[MessageReader]
    message_type: Any
    what: tuple[Any, ...]
    max_age_ns: int
    reset_after_ns: int
    plain: bool | None
    simulated: bool
    period_ns: int = 0
    largest: float = 1e9

    def make(self) -> MessageReader:
        """Return a reading that nobody takes yet."""
        return self.kind(self)


class MessageReader:
    """
    Base of all readings.

    Parameters
    ----------
    order
        What is wanted.

    Attributes
    ----------
    topic
        Where the messages come from.
    inputs
        The inputs that take what is read: have `node`, `stamp_ns`, `callback` and `refuse`.
    arguments
        What their callbacks get after the stamp.
    count
        Number of good messages.

    """

    def __init__(self, spec: ReadSpec) -> None:
        self.spec, self.topic = spec, ''
        self.inputs: tuple[Any, ...] = ()
        self.arguments: tuple[Any, ...] = ()
        self.count = 0
        self._reader = codec.Decoder(spec.message_type, self._select, spec.plain)

    @property
    def plain_reason(self) -> str | None:
        """Return why messages are read the slow way although nobody asked for it."""
        return self._reader.plain_reason

    def add(self, source: Any) -> None:
        """Hand what is read to a source, too, after those who came before."""
        self.inputs = (*self.inputs, source)
        self._use_clock()

    def remove(self, source: Any) -> None:
        """Hand nothing more to a source, but for what is just being delivered."""
        self.inputs = tuple(other for other in self.inputs if other is not source)
        if self.inputs:
            self._use_clock()

    def _use_clock(self) -> None:
        self._clock = self.inputs[0].node.get_clock()

    def receive(self, raw: bytes) -> None:
        """Take a message as it came; whatever is wrong with it stays here."""
        try:
            stamp = self._read(raw)
        except RefusedMessage as refusal:
            self._refuse(refusal)
        except Exception as error:  # noqa: B902 - nothing that arrives may end the node
            log_exception(self.inputs[0].node, error)
        else:
            self._deliver(stamp)

    # -- for subclasses

    def _select(self, message: Any) -> codec.Selection:
        """Return what to read from messages built like this one."""
        return codec.Selection([])

    def _read(self, raw: bytes) -> int:
        """Read a message into `arguments` and return its stamp, or raise RefusedMessage."""
        raise NotImplementedError

    def _find_plan(self, raw: bytes) -> Any:
        try:
            return self._reader.plan_for(raw)
        except RefusedMessage:
            raise
        except Exception as error:  # noqa: B902 - rclpy raises various types
            raise RefusedMessage('malformed', f'cannot be read: {error}') from None

    def _deliver(self, stamp_ns: int) -> None:
        """Call all inputs back; what one of them raises is its own affair."""
        self.count += 1
        told = (stamp_ns, *self.arguments)
        for source in self.inputs:
            source.stamp_ns = stamp_ns
            try:
                source.callback(*told)
            except RefusedMessage as refusal:
                source.refuse(refusal.reason, refusal.details)
            except Exception as error:  # noqa: B902 - nothing that arrives may end the node
                log_exception(source.node, error)

    def _refuse(self, refusal: RefusedMessage) -> None:
        for source in self.inputs:
            source.refuse(refusal.reason, refusal.details)

    def _now(self) -> int:
        return now_ns(self._clock)

    def _publishers(self) -> int:
        count: int = self.inputs[0].node.count_publishers(self.topic)
        return count


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to: the next source gets the same array."""
    view = array.view()
    view.flags.writeable = False
    return view


class Source:
    """Messages of one structure, and the last stamp of them that was good."""

    def __init__(self) -> None:
        self.last_ns = NEVER_NS


class StampedReader(MessageReader):
    """
    Base of the readings of messages that begin with a header.

    A plan's `data` is a `Source`.
    """

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        #: How messages of so many bytes were built lately. Parts of the robot on one topic, which
        #: come in turns, differ in it.
        self._plans: dict[int, Any] = {}
        #: How the last ones were built that are not used, if there is nothing to say about it.
        self._useless: Any = None
        self._refusal = RefusedMessage('', '')
        self._trusted_ns = self._trusted_until = NEVER_NS
        self._started = time.monotonic()
        self._period_ns = spec.period_ns

    def receive(self, raw: bytes) -> None:
        """Take a message as it came; whatever is wrong with it stays here."""
        # The hot path, with as few calls as possible: each costs as much as a comparison.
        try:
            plan = self._plans.get(len(raw), _NO_PLAN)
            structure_of = plan.structure_of  # as a method it would first be sought in the class
            if structure_of(raw) != plan.structure:
                plan = self._new_plan(raw)
                if plan is None:
                    return
            seconds, nanoseconds = _unpack_stamp(raw, _STAMP_AT)
            ns = seconds * SECOND_NS + nanoseconds
            source = plan.data
            if self._period_ns and 0 <= ns - source.last_ns < self._period_ns:
                return
            if not (source.last_ns < ns < self._trusted_ns
                    and _monotonic_ns() < self._trusted_until):
                self._examine_stamp(ns, source)
            if not self._take(plan, raw, ns):
                return
        except RefusedMessage as refusal:
            self._refuse(refusal)
            return
        except Exception as error:  # noqa: B902 - nothing that arrives may end the node
            log_exception(self.inputs[0].node, error)
            return
        self._deliver(ns)

    def _new_plan(self, raw: bytes) -> Any:
        """Return how to read a message that is not built like others of its length; None: not."""
        if self._useless is not None and self._useless.matches(raw):
            self._refuse(self._refusal)
            return None
        plan = self._find_plan(raw)
        try:
            self._examine_structure(plan.data)
        except RefusedMessage as refusal:
            if not (plan.is_plain or refusal.details):
                self._useless, self._refusal = plan, refusal
            raise
        if not plan.is_plain:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[len(raw)] = plan
        return plan

    def _examine_structure(self, source: Any) -> None:
        """Raise RefusedMessage if no message built like this can be used."""

    def _examine_sizes(self, names: Sequence[str], values: Sequence[float]) -> None:
        """Raise RefusedMessage for a value that is too large to be true."""
        for name, value in zip(names, values):
            if abs(value) > self.spec.largest:
                raise RefusedMessage('too large', (
                    f'{name} = {value:g} cannot be true (limit {self.spec.largest:g}): check '
                    'its unit, and the sensor'))

    def _take(self, plan: Any, raw: bytes, ns: int) -> bool:
        """
        Take the values of a message over into `arguments`, or raise RefusedMessage.

        Sets `last_ns` of the plan's source if they are numbers that can be true.

        Returns
        -------
        bool
            Whether to deliver them.

        """
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget what must not be mixed with data after a clock reset."""

    def _examine_stamp(self, ns: int, source: Source) -> None:
        """Raise RefusedMessage, or let this stamp vouch for those that follow within 50 ms."""
        if ns == 0:
            raise RefusedMessage(
                'zero stamp', 'its stamp is zero: the driver has to set header.stamp')
        now, max_age = self._now(), self.spec.max_age_ns
        if max_age and abs(now - ns) > max_age:
            self._refuse_age(ns, now)
        if ns <= source.last_ns:
            self._examine_step_back(ns, source)
        self._trusted_ns = ns + _TRUST_NS
        self._trusted_until = _monotonic_ns() + _TRUST_NS

    def _examine_step_back(self, ns: int, source: Source) -> None:
        back = source.last_ns - ns
        if back > self.spec.reset_after_ns:
            for reading_input in self.inputs:
                reading_input.node.get_logger().warning(
                    f"'{self.topic}': stamps went back by {back / SECOND_NS:.3f} s: the clock was "
                    'set anew, starting over')
            source.last_ns = NEVER_NS
            self._forget()
            return
        publishers = self._publishers()
        hint = f'; {publishers} nodes publish on this topic' if publishers > 1 else ''
        if back == 0:
            raise RefusedMessage('repeated stamp', (
                f'its stamp {ns / SECOND_NS:.9f} s is the same as the last one{hint}'))
        raise RefusedMessage('stamp going backward', (
            f'its stamp {ns / SECOND_NS:.9f} s is {back / SECOND_NS:.6f} s before the last one'
            f'{hint}'))

    def _refuse_age(self, ns: int, now: int) -> None:
        if now == 0:
            self._refuse_without_clock()
        limit = f'limit {self.spec.max_age_ns / SECOND_NS:g} s'
        clock = 'simulated' if self._clock.ros_time_is_active else "computer's"
        advice = 'check clock synchronisation and use_sim_time'
        if ns < now:
            raise RefusedMessage('stale stamp', (
                f'its stamp is {(now - ns) / SECOND_NS:.3f} s behind the {clock} clock ({limit}): '
                + advice))
        raise RefusedMessage('stamp from the future', (
            f'its stamp is {(ns - now) / SECOND_NS:.3f} s ahead of the {clock} clock ({limit}): '
            + advice))

    def _refuse_without_clock(self) -> None:
        """Refuse what comes before simulated time begins; no error while everything starts."""
        if time.monotonic() - self._started > _CLOCK_TAKES:
            raise RefusedMessage('no clock', 'use_sim_time is set, but nothing came on /clock yet')
        raise RefusedMessage('no clock', '')


def quoted(names: Any, limit: int = 8) -> str:
    """Names in quotes, the first few of them."""
    names = list(names)
    more = f' and {len(names) - limit} more' if len(names) > limit else ''
    return ', '.join(f"'{name}'" for name in names[:limit]) + more
