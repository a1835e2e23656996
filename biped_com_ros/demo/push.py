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
        self._event, self._level, self._least = 'stable', 'stable', math.inf
        self._events: list[str] = []
        stage.subscribe(DiagnosticArray, 'zmp_monitor/event', self._on_event, LATCHED)
        stage.subscribe(Float64, 'zmp_monitor/margin', self._on_margin)
        yield from stage.wait_until(
            lambda: math.isfinite(self._least), 'margin from zmp_monitor', 10.0)
        model = stage.model
        heaviest = model.link_names[int(np.argmax(model.link_masses))]
        out = wrench_publisher(stage.node, 'simulator/push', heaviest)
        rows: list[tuple[str, ...]] = []
        try:
            for i in range(1, MAX_COUNT + 1):
                force, self._least = i * SHARE * model.mass * GRAVITY, math.inf
                self._events = []
                out.fields['wrench'][:3] = force, 0.0, 0.0
                out.publish(stage.stamp_ns)
                end = stage.time + PERIOD
                while stage.time < end and not self._event.startswith('fallen'):
                    stage.set_activity(f'is pushed forward with {force:.1f} N; {self._text()}')
                    yield stage.commanded
                rows.append((f'push of {force:.1f} N', self._margin(), self._course()))
                if self._event.startswith('fallen'):
                    break
        finally:
            out.destroy()
        return Comparison(('least margin', 'then'), rows)

    def _text(self) -> str:
        margin = '' if math.isinf(self._least) else f'margin down to {self._margin()}; '
        return margin + self._event

    def _margin(self) -> str:
        """Return the least margin as text, never as -0 mm."""
        return 'unknown' if math.isinf(self._least) else f'{round(1e3 * self._least)} mm'

    def _course(self) -> str:
        """Return what was reported since the push began, the last report in full."""
        if self._events:
            before = dict.fromkeys(event.partition(':')[0] for event in self._events[:-1])
            return ', '.join([*before, self._event])
        # zmp_monitor reports what lasts for its parameter level_dwell.
        why = (' (the ZMP was beyond the edge for less than level_dwell of zmp_monitor)'
               if self._least < 0.0 else '')
        return f'stays {self._level}{why}'

    def _on_event(self, message: Any) -> None:
        status = message.status[0]
        self._event = status.message
        self._level = next(v.value for v in status.values if v.key == 'now').lower()
        self._events.append(self._event)

    def _on_margin(self, message: Any) -> None:
        self._least = min(self._least, message.data)
