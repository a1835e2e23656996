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
"""Which feet were in contact at which time, from messages that may arrive late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
import math
import time

from biped_com_ros.core.constants import nanoseconds, NEVER_NS
from biped_com_ros.core.signals.age import is_recent

#: Number of changes of contact that are kept.
_CHANGES = 16


class ContactHistory:
    """
    Contacts with stamps: each holds from its stamp until the next one.

    Parameters
    ----------
    timeout
        Time after the last message, s, at which the contacts become unknown.
    clock
        Monotonic time, s. Contacts are kept as long as either the stamps or this clock are within
        the timeout: simulated time may stand still, recorded stamps may be old.

    Attributes
    ----------
    revised_ns
        Earliest time, ns, since which :meth:`at` now returns other contacts than before, because
        they arrived late; set it to None once that is taken into account.
    loads
        Normal force on each foot as received last, N; None if not measured.

    """

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.set_timeout(timeout)
        self._changes: deque[tuple[int, tuple[bool, ...]]] = deque(maxlen=_CHANGES)
        self._newest_ns, self._received_at = NEVER_NS, -math.inf
        self.revised_ns: int | None = None
        self.loads: Sequence[float] | None = None

    def set_timeout(self, timeout: float) -> None:
        """Use another timeout, s."""
        self._timeout, self._timeout_ns = timeout, nanoseconds(timeout)

    def add(self, stamp_ns: int, in_contact: tuple[bool, ...],
            loads: Sequence[float] | None = None) -> None:
        """Take the contacts of all feet at a time (ns), and their normal forces, N."""
        changes, self.loads = self._changes, loads
        if changes and stamp_ns < changes[-1][0]:
            changes.clear()  # the clock was set back
        if not changes or in_contact != changes[-1][1]:
            changes.append((stamp_ns, in_contact))
            self.revised_ns = min(stamp_ns, self.revised_ns or stamp_ns)
        self._newest_ns, self._received_at = stamp_ns, self._clock()

    def at(self, stamp_ns: int) -> tuple[bool, ...] | None:
        """Return the contacts at a time (ns); None if unknown."""
        if not self._changes or not (
                is_recent(self._newest_ns, stamp_ns, self._timeout_ns)
                or self._clock() - self._received_at <= self._timeout):
            return None
        for since_ns, in_contact in reversed(self._changes):
            if stamp_ns >= since_ns:
                return in_contact
        return self._changes[0][1]

    def reset(self) -> None:
        """Keep the last contacts without their stamps, after the clock was set back."""
        if self._changes:
            latest = self._changes[-1][1]
            self._changes.clear()
            self._changes.append((0, latest))
        self._newest_ns, self.revised_ns = NEVER_NS, None
