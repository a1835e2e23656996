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
Groups the messages that several sensors publish with one stamp.

Sensors that are read by one driver have identical stamps for each sample, while their messages
arrive one after the other in any order. Other sensors have stamps and rates of their own.
"""

from __future__ import annotations

MIN_IN_STEP = 20
"""Number of consecutive groups that a sensor has to be part of before it is waited for."""


class MessageGroups:
    """
    Groups that a leading sensor opens, and the other sensors whose messages complete them.

    A sensor is *in step* if it had a message with the stamp of each of the last
    :data:`MIN_IN_STEP` groups before the next group was opened. Only sensors in step are waited
    for. One that misses a group is out of step again: a sensor that stops, is late or has a lower
    rate delays one group, and at most one in :data:`MIN_IN_STEP`.

    Parameters
    ----------
    count
        Number of other sensors; they are identified by their index.

    Attributes
    ----------
    ns
        Stamp of the group that was opened last.
    missing
        Sensors in step whose message of this group is missing, as a bit mask.

    """

    def __init__(self, count: int) -> None:
        self._count, self.ns = count, 0
        self._latest = [-1] * count
        self.reset()

    def reset(self) -> None:
        """Take no sensor for in step, and wait for none."""
        self._in_step_count, self.missing = [0] * self._count, 0

    def start_group(self, ns: int) -> int:
        """Open the group with stamp `ns`; return the sensors to wait for as a bit mask."""
        before, counts, missing = self.ns, self._in_step_count, 0
        for i, latest in enumerate(self._latest):
            if latest == ns:
                counts[i] += 1
            elif latest == before:
                counts[i] += 1
                missing |= (counts[i] >= MIN_IN_STEP) << i
            else:
                counts[i] = 0
        self.ns, self.missing = ns, missing
        return missing

    def add(self, sensor: int, ns: int) -> bool:
        """Add the stamp of a sensor's message; return whether the open group waited for it."""
        self._latest[sensor] = ns
        # A later stamp means that the message of the open group will not come any more.
        if not self.missing >> sensor & 1 or ns < self.ns:
            return False
        self.missing -= 1 << sensor
        return True

    def is_in_step(self, sensor: int) -> bool:
        """Return whether a sensor is waited for."""
        return self._in_step_count[sensor] >= MIN_IN_STEP
