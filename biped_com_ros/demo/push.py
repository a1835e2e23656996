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

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Chapter, ChapterRun, Comparison
from biped_com_ros.demo.stability_reports import StabilityReports
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.outputs import wrench_publisher
import numpy as np

#: Time between two pushes, s; increase of the force, as a share of the weight; largest number.
PERIOD, SHARE, MAX_COUNT = 4.0, 0.08, 8


class Push(Chapter):
    """Pushes the heaviest link forward; `zmp_monitor` measures the margins of ZMP and DCM."""

    name = 'push'
    title = 'How far it can be pushed'
    description = (
        'The robot is pushed forward, harder each time. The margins decrease, a '
        'warning precedes the fall, and the fall is detected.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether nothing measures the ground's wrench: there is no margin then."""
        config = model.config
        return config.force_z_restriction if config.has_foot_wrenches else (
            'nothing measures the feet')

    def run(self, stage: Stage) -> ChapterRun:
        """Push until it falls."""
        reports = StabilityReports()
        yield from reports.subscribe(stage)
        model = stage.model
        heaviest = model.link_names[int(np.argmax(model.link_masses))]
        out = wrench_publisher(stage.node, names.PUSH, heaviest)
        rows: list[tuple[str, ...]] = []
        try:
            for i in range(1, MAX_COUNT + 1):
                force = i * SHARE * model.mass * GRAVITY
                reports.restart()
                out.fields['wrench'][:3] = force, 0.0, 0.0
                out.publish(stage.stamp_ns)
                end = stage.time + PERIOD
                while stage.time < end and not reports.has_fallen:
                    stage.set_activity(f'is pushed forward with {force:.1f} N; {reports}')
                    yield stage.commanded
                rows.append((f'push of {force:.1f} N', reports.margin(), reports.dcm_margin(),
                             reports.course()))
                if reports.has_fallen:
                    break
        finally:
            out.destroy()
        last = rows[-1][0].removeprefix('push of ')
        return Comparison(('least ZMP margin', 'least DCM margin', 'then'), rows, (
            f'falls at a push of {last}' if reports.has_fallen else f'stands pushes up to {last}'))
