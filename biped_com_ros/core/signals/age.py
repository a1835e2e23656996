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
Ages of what has a stamp: the one place where they are computed.

An age is the time between a stamp and now in either direction. Where the clock is set back
(simulations that restart, bags that loop), stamps from before lie ahead of it; what is no longer
received must not count as recent until the clock has caught up with them.
"""

from __future__ import annotations


def age_of(stamp_ns: int, now_ns: int) -> int:
    """Return the age of a stamp, or by how much it is ahead, ns."""
    return abs(now_ns - stamp_ns)


def is_recent(stamp_ns: int, now_ns: int, timeout_ns: int) -> bool:
    """Return whether a stamp is neither older than a timeout nor further ahead, ns."""
    return abs(now_ns - stamp_ns) <= timeout_ns
