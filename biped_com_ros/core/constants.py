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
"""Constants that several modules share."""

from __future__ import annotations

GRAVITY = 9.81
"""Gravitational acceleration, m/s^2, as in ROS and Gazebo; the default wherever it can be set."""

SECOND_NS = 1_000_000_000
"""One second in nanoseconds, the unit of stamps."""

LONGEST_STEP_NS = 500_000_000
"""Filters restart after a longer gap between stamps, ns, or a step back in time."""

STEP_CAP = 0.05
"""Where a rate limits a change, a longer time since the last one counts as this long, s."""

SET_BACK_NS = 500_000_000
"""A stamp further back than this is one of a clock that was set back, ns, not a late one."""

SAME_INSTANT_NS = 20_000_000
"""Largest difference between the stamps of a wrench and of the joint states it belongs to, ns."""

NEVER_NS = -2 ** 62
"""Stamp, ns, of what has not happened yet: earlier than any other."""

CERTAIN = 2.0
"""Number of standard deviations beyond which an uncertain value counts as different."""


def nanoseconds(seconds: float) -> int:
    """Return a duration in whole nanoseconds, as stamps are."""
    return round(SECOND_NS * seconds)
