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
"""Chapter: the robot is pushed, harder each time, until it falls."""

from __future__ import annotations

import math
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Chapter, ChapterRun, Comparison
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.topics.outputs import wrench_publisher
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from std_msgs.msg import Float64

#: Time between two pushes, s; increase of the force, as a share of the weight; largest number.
PERIOD, SHARE, MAX_COUNT = 4.0, 0.08, 8


class PushReports:
    """
    What zmp_monitor reports since a push.

    Attributes
    ----------
    least_margin
        Least margin of the ZMP since then, m; infinite while none was received.

    """

    def __init__(self) -> None:
        self._event = self._level = 'stable'
        self.start_push()

    def start_push(self) -> None:
        """Discard the reports, not the present level: what follows is due to this push."""
        self._events: list[str] = []
        self.least_margin = math.inf

    def add_event(self, message: Any) -> None:
        """Add a change of the level."""
        status = message.status[0]
        self._event = status.message
        self._level = next(v.value for v in status.values if v.key == 'now').lower()
        self._events.append(self._event)

    def add_margin(self, message: Any) -> None:
        """Add a margin of the ZMP."""
        self.least_margin = min(self.least_margin, message.data)

    @property
    def has_fallen(self) -> bool:
        """Whether the robot has fallen."""
        return self._event.startswith('fallen')

    def __str__(self) -> str:
        """Return the last event, and the least margin if there is one."""
        margin = '' if math.isinf(self.least_margin) else f'margin down to {self.margin()}; '
        return margin + self._event

    def margin(self) -> str:
        """Return the least margin as text, never as -0 mm."""
        least = self.least_margin
        return 'unknown' if math.isinf(least) else f'{round(1e3 * least)} mm'

    def course(self) -> str:
        """Return what was reported since the push began, the last report in full."""
        if self._events:
            before = dict.fromkeys(event.partition(':')[0] for event in self._events[:-1])
            return ', '.join([*before, self._event])
        # zmp_monitor reports what lasts for its parameter level_dwell.
        why = (' (the ZMP was beyond the edge for less than level_dwell of zmp_monitor)'
               if self.least_margin < 0.0 else '')
        return f'stays {self._level}{why}'


class Push(Chapter):
    """Pushes the heaviest link forward; `zmp_monitor` measures the stability margin."""

    name = 'push'
    title = 'How far it can be pushed'
    description = (
        'The robot is pushed forward, harder each time. The stability margin '
        'decreases, a warning precedes the fall, and the fall is detected.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether nothing measures the feet: there is no margin then."""
        return '' if model.config.has_foot_wrenches else 'nothing measures the feet'

    def run(self, stage: Stage) -> ChapterRun:
        """Push until it falls."""
        reports = PushReports()
        stage.subscribe(DiagnosticArray, 'zmp_monitor/event', reports.add_event, LATCHED)
        stage.subscribe(Float64, 'zmp_monitor/margin', reports.add_margin)
        yield from stage.wait_until(
            lambda: math.isfinite(reports.least_margin), 'margin from zmp_monitor', 10.0)
        model = stage.model
        heaviest = model.link_names[int(np.argmax(model.link_masses))]
        out = wrench_publisher(stage.node, 'simulator/push', heaviest)
        rows: list[tuple[str, ...]] = []
        try:
            for i in range(1, MAX_COUNT + 1):
                force = i * SHARE * model.mass * GRAVITY
                reports.start_push()
                out.fields['wrench'][:3] = force, 0.0, 0.0
                out.publish(stage.stamp_ns)
                end = stage.time + PERIOD
                while stage.time < end and not reports.has_fallen:
                    stage.set_activity(f'is pushed forward with {force:.1f} N; {reports}')
                    yield stage.commanded
                rows.append((f'push of {force:.1f} N', reports.margin(), reports.course()))
                if reports.has_fallen:
                    break
        finally:
            out.destroy()
        return Comparison(('least margin', 'then'), rows)
