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
Which messages belong to one instant, and for whom it is worth to wait.

Sensors that one driver reads give one stamp to all they tell of an instant, in messages that come
one after the other, in whatever order. Others have stamps and rates of their own.
"""

from __future__ import annotations

MIN_IN_STEP = 20
"""MessageGroups in a row that a companion has to tell of, before it is waited for."""


class MessageGroups:
    """
    MessageGroups that one sensor opens by its stamps, and what its companions have told of them.

    A companion is *in step* when it told of each of the last :data:`MIN_IN_STEP` instants, by the very
    same stamp, before or after it was opened, and before the next one was. Only those in step are
    waited for. Once one of them lets an instant pass it is out of step: whatever falls silent,
    comes late or is slower, delays one instant, and not more than one in :data:`MIN_IN_STEP`.

    Parameters
    ----------
    count
        Of the companions, which are numbers from 0 on.

    Attributes
    ----------
    ns
        Stamp of the instant that was opened last.
    missing
        Companions in step that have not told of it, a bit each.

    """

    def __init__(self, count: int) -> None:
        self._count, self.ns = count, 0
        self._told = [-1] * count
        self.forget()

    def forget(self) -> None:
        """Take nobody for in step, and wait for nobody."""
        self._steps, self.missing = [0] * self._count, 0

    def begin(self, ns: int) -> int:
        """Open an instant, and return the companions that it waits for, a bit each."""
        before, steps, missing = self.ns, self._steps, 0
        for i, told in enumerate(self._told):
            if told == ns:
                steps[i] += 1
            elif told == before:
                steps[i] += 1
                missing |= (steps[i] >= MIN_IN_STEP) << i
            else:
                steps[i] = 0
        self.ns, self.missing = ns, missing
        return missing

    def tell(self, companion: int, ns: int) -> bool:
        """Take the stamp of a companion's message; return whether it was waited for."""
        self._told[companion] = ns
        # Who tells of a later one says nothing more of this one.
        if not self.missing >> companion & 1 or ns < self.ns:
            return False
        self.missing -= 1 << companion
        return True

    def is_in_step(self, companion: int) -> bool:
        """Tell whether a companion is waited for."""
        return self._steps[companion] >= MIN_IN_STEP
