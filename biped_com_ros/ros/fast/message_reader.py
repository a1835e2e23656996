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
Decodes the messages of one topic, checks them, and passes good ones to inputs.

A `MessageReader` belongs to one input, or to several with the same `ReadSpec` (see
`subscription_pool`). The counters and the callback of an input are its own, in `input_base`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from biped_com_ros.core.constants import NEVER_NS, SECOND_NS
from biped_com_ros.core.errors import brief, some_of
from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.fast.backlog import BACKLOG
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np

#: Period in which the clock is read while stamps continue one that agreed with it, ns; a reading
#: takes 1.8 us.
_CLOCK_PERIOD_NS = 50_000_000
#: A stamp that goes back by more than this means that the clock was reset, ns.
_RESET_NS = SECOND_NS
#: How long after the start /clock may be missing, s: DDS takes up to 3 s to find its publisher.
_CLOCK_DELAY = 5.0


class RefusedMessage(Exception):
    """
    A message that is not used.

    Attributes
    ----------
    reason
        What it is counted under.
    details
        What is wrong, for logs and diagnostics; '' if it is only to be counted.

    """

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(details)
        self.reason, self.details = reason, details


@dataclass(frozen=True, kw_only=True)
class ReadSpec:
    """
    How to read messages; inputs with equal specifications share a reader.

    Attributes
    ----------
    reader
        Class of the reader.
    message_type
        Type of the messages.
    options
        What that class needs besides.
    max_age_ns
        Stamps further than this from the clock are refused; 0 accepts any.
    simulated
        Whether the clock is simulated.
    period_ns
        Least time between messages that are used.
    largest
        Messages with a larger value, in its own unit, are refused; `credible` has lower limits
        for what it has.
    frame_prefix
        Frames may have this before their names.

    """

    reader: type[MessageReader]
    message_type: type
    options: tuple[Any, ...] = ()
    max_age_ns: int = 0
    simulated: bool = False
    period_ns: int = 0
    largest: float = 1e9
    frame_prefix: str = ''

    def make(self) -> MessageReader:
        """Return a new reader."""
        return self.reader(self)


class MessageReader:
    """
    Base of all readers.

    Parameters
    ----------
    spec
        How to read.

    Attributes
    ----------
    topic
        Full name of the topic.
    inputs
        The inputs: each has `node`, `stamp_ns`, `callback` and `refuse`.
    arguments
        What callbacks get after the stamp.
    count
        Number of good messages.

    """

    def __init__(self, spec: ReadSpec) -> None:
        self.spec, self.topic = spec, ''
        #: Whether no input asked for reliable messages: a newer one replaces what was skipped.
        self.may_skip = True
        self.inputs: tuple[Any, ...] = ()
        self.arguments: tuple[Any, ...] = ()
        self.count = 0
        self._decoder = codec.Decoder(spec.message_type, self._select)

    @property
    def plain_reason(self) -> str | None:
        """Why rclpy converts the messages although bytes were to be used; None if it does not."""
        return self._decoder.plain_reason

    def add(self, new: Any) -> None:
        """Pass messages to this input, too, after those that were added before."""
        self._set_inputs((*self.inputs, new))

    def remove(self, old: Any) -> None:
        """Pass no more messages to this input."""
        self._set_inputs(tuple(kept for kept in self.inputs if kept is not old))

    def continue_from(self, other: MessageReader) -> None:
        """Take over the last values of another reader of the same messages until one arrives."""
        self.arguments = other.arguments

    def _set_inputs(self, inputs: tuple[Any, ...]) -> None:
        self.inputs = inputs
        if inputs:
            self._clock = inputs[0].node.get_clock()

    def receive(self, raw: bytes) -> None:
        """Decode and check a message, and call the inputs back. Raises nothing."""
        # One that was taken before the last input was destroyed is nobody's.
        if not self.inputs or (BACKLOG.is_skipping and self.may_skip):
            return
        try:
            stamp_ns = self._read(raw)
        except RefusedMessage as refused:
            self._refuse(refused)
        except codec.DecodeError as error:
            self._refuse(RefusedMessage('malformed', f'cannot be read: {error}'))
        except Exception as error:  # noqa: B902 - no message may end the node
            log_exception(self.inputs[0].node, error)
        else:
            if stamp_ns is not None:
                self._deliver(stamp_ns)

    # -- for subclasses

    def _select(self, message: Any) -> codec.Selection:
        """Return what to read from messages of this structure."""
        return codec.Selection([])

    def _read(self, raw: bytes) -> int | None:
        """Read a message into `arguments`; return its stamp, None if callbacks do not get it."""
        raise NotImplementedError

    def _deliver(self, stamp_ns: int) -> None:
        """Call all inputs back; an exception of one does not affect the others."""
        self.count += 1
        arguments = (stamp_ns, *self.arguments)
        for reading in self.inputs:
            reading.stamp_ns = stamp_ns
            try:
                reading.callback(*arguments)
            except RefusedMessage as refused:
                reading.refuse(refused.reason, refused.details)
            except Exception as error:  # noqa: B902 - no message may end the node
                log_exception(reading.node, error)

    def _refuse(self, refused: RefusedMessage) -> None:
        for reading in self.inputs:
            reading.refuse(refused.reason, refused.details)

    def _now(self) -> int:
        return now_ns(self._clock)


def receiver_of(source: Any) -> Callable[[bytes], None]:
    """Return what gives messages to the reader that an input has then."""
    def receive(raw: bytes) -> None:
        source.reader.receive(raw)
    return receive


class Structure:
    """
    What messages of one structure have in common (names, frames, lengths).

    Attributes
    ----------
    problem
        Why no message of this structure can be used: (reason, details).
    data
        What its reader knows of it, such as frames.
    last_ns
        Newest good stamp.

    """

    def __init__(self, problem: tuple[str, str] | None = None, data: Any = None) -> None:
        self.problem, self.data = problem, data
        self.last_ns = NEVER_NS


class StampedReader(MessageReader):
    """
    Base of the readers of messages that begin with a header.

    The `data` of a selection is a `Structure`.
    """

    def __init__(self, spec: ReadSpec) -> None:
        super().__init__(spec)
        #: Stamps between these are known to agree with the clock until then (steady time, s).
        self._trusted_from = self._trusted_ns = NEVER_NS
        self._trusted_until = float(NEVER_NS)
        self._started = steady_time()
        self._period_ns = spec.period_ns

    def _read(self, raw: bytes) -> int | None:
        plan = self._decoder.plan_for(raw)
        structure: Structure = plan.data
        if structure.problem is not None:
            self._refuse_structure(structure.problem)
        seconds, nanoseconds = plan.stamp_of(raw)
        if nanoseconds >= SECOND_NS:
            raise RefusedMessage('malformed', (
                f'its stamp has {nanoseconds} nanoseconds; valid: less than {SECOND_NS}'))
        ns = seconds * SECOND_NS + nanoseconds
        if self._period_ns and 0 <= ns - structure.last_ns < self._period_ns:
            return None
        if not (structure.last_ns < ns < self._trusted_ns and self._trusted_from < ns
                and steady_time() < self._trusted_until):
            self._check_stamp(ns, structure)
        return ns if self._accept(plan, raw, ns) else None

    def _refuse_structure(self, problem: tuple[str, str]) -> None:
        raise RefusedMessage(*problem)

    def _accept(self, plan: codec.AnyPlan, raw: bytes, ns: int) -> bool:
        """
        Read the values of a message into `arguments`, or raise RefusedMessage.

        Sets `last_ns` of the structure if the values are good.

        Returns
        -------
        bool
            Whether to call back.

        """
        raise NotImplementedError

    def _reset(self) -> None:
        """Drop data from before a reset of the clock."""

    def _check_stamp(self, ns: int, structure: Structure) -> None:
        """Raise RefusedMessage for a bad stamp; else trust those that follow within 50 ms."""
        if ns == 0:
            raise RefusedMessage(
                'zero stamp', 'its stamp is zero: the driver has to set header.stamp')
        if ns < 0:
            raise RefusedMessage(
                'malformed', f'its stamp {ns / SECOND_NS:.9f} s is negative: check the driver')
        now, max_age = self._now(), self.spec.max_age_ns
        if max_age and abs(now - ns) > max_age:
            self._refuse_age(ns, now)
        if ns <= structure.last_ns:
            self._check_step_back(ns, structure)
        # Nor are messages of another structure trusted that are older.
        self._trusted_from, self._trusted_ns = ns - _CLOCK_PERIOD_NS, ns + _CLOCK_PERIOD_NS
        self._trusted_until = steady_time() + _CLOCK_PERIOD_NS / SECOND_NS

    def _check_step_back(self, ns: int, structure: Structure) -> None:
        back = structure.last_ns - ns
        if back > _RESET_NS:
            for reading in self.inputs:
                reading.node.get_logger().warning(
                    f"'{self.topic}': stamps went back by {back / SECOND_NS:.3f} s: the clock was "
                    'reset; restarting with new samples')
            structure.last_ns = NEVER_NS
            self._reset()
            return
        publishers = self.inputs[0].node.count_publishers(self.topic)
        hint = f'; {publishers} nodes publish on this topic' if publishers > 1 else ''
        if back == 0:
            raise RefusedMessage('repeated stamp', (
                f'its stamp {ns / SECOND_NS:.9f} s is the same as the last one{hint}'))
        raise RefusedMessage('stamp going backward', (
            f'its stamp {ns / SECOND_NS:.9f} s is {back / SECOND_NS:.6f} s before the last one'
            f'{hint}'))

    def _refuse_age(self, ns: int, now: int) -> None:
        if now == 0:  # simulated time has not begun
            is_late = steady_time() - self._started > _CLOCK_DELAY
            raise RefusedMessage('no clock', (
                'use_sim_time is set, but nothing was received on /clock' if is_late else ''))
        limit = f'limit {self.spec.max_age_ns / SECOND_NS:g} s'
        clock = 'simulated' if self.spec.simulated else "computer's"
        advice = 'check clock synchronisation and use_sim_time'
        if ns < now:
            raise RefusedMessage('stale stamp', (
                f'its stamp is {(now - ns) / SECOND_NS:.3f} s behind the {clock} clock ({limit}): '
                f'{advice}, and whether this computer is too busy'))
        raise RefusedMessage('stamp from the future', (
            f'its stamp is {(ns - now) / SECOND_NS:.3f} s ahead of the {clock} clock ({limit}): '
            + advice))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to: the next callback gets the same array."""
    view = array.view()
    view.flags.writeable = False
    return view


def quoted(names: Iterable[str]) -> str:
    """Return names in quotes, the first few of them."""
    return some_of([f"'{brief(name)}'" for name in names], 8)
