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
"""What the chapters of the demo that disturb the robot show of its stability."""

from __future__ import annotations

import math
from typing import Any

from biped_com_ros.core.stability.levels import DWELL
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import Float64


class StabilityReports:
    """
    What zmp_monitor reports since a disturbance, such as a push, began.

    Attributes
    ----------
    least_margin, least_dcm_margin
        Least margins of the ZMP and of the DCM since then, m; infinite while none was received.

    """

    def __init__(self) -> None:
        self._event = self._level = 'stable'
        self.restart()

    def subscribe(self, stage: Stage) -> Commands:
        """Subscribe until the chapter ends, and wait for the first margin."""
        stage.subscribe(DiagnosticArray, names.STABILITY_EVENT, self.add_event, LATCHED)
        stage.subscribe(Float64, names.MARGIN, self.add_margin)
        stage.subscribe(Float64, names.DCM_MARGIN, self.add_dcm_margin)
        yield from stage.wait_until(
            lambda: math.isfinite(self.least_margin), 'margin from zmp_monitor', 10.0)

    def restart(self) -> None:
        """Discard the reports, not the present level: what follows is due to what begins now."""
        self._events: list[str] = []
        self.least_margin = self.least_dcm_margin = math.inf

    def add_event(self, message: Any) -> None:
        """Add a change of the level."""
        status = message.status[0]
        self._event = status.message
        self._level = next(v.value for v in status.values if v.key == 'now').lower()
        self._events.append(self._event)

    def add_margin(self, message: Any) -> None:
        """Add a margin of the ZMP."""
        self.least_margin = min(self.least_margin, message.data)

    def add_dcm_margin(self, message: Any) -> None:
        """Add a margin of the DCM."""
        self.least_dcm_margin = min(self.least_dcm_margin, message.data)

    @property
    def has_fallen(self) -> bool:
        """Whether the robot has fallen."""
        return self._event.startswith('fallen')

    def __str__(self) -> str:
        """Return the last event, and the least margin of the ZMP if there is one."""
        margin = '' if math.isinf(self.least_margin) else f'ZMP margin down to {self.margin()}; '
        return margin + self._event

    def margin(self) -> str:
        """Return the least margin of the ZMP as text."""
        return _millimetres(self.least_margin)

    def dcm_margin(self) -> str:
        """Return the least margin of the DCM as text."""
        return _millimetres(self.least_dcm_margin)

    def course(self) -> str:
        """Return what was reported since then, the last report in full."""
        if self._events:
            before = dict.fromkeys(event.partition(':')[0] for event in self._events[:-1])
            return ', '.join([*before, self._event])
        # zmp_monitor reports what lasts.
        dwell = 1e3 * DWELL
        why = (f' (the ZMP was beyond the edge for less than {dwell:.0f} ms)'
               if self.least_margin < 0.0 else '')
        return f'stays {self._level}{why}'


def _millimetres(margin: float) -> str:
    """Return a margin as text, never as -0 mm."""
    return 'unknown' if math.isinf(margin) else f'{round(1e3 * margin)} mm'
