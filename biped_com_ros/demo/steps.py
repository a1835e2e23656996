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
"""Chapter: the robot takes a single quasi-static step, and then quick steps."""

from __future__ import annotations

from collections.abc import Generator

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.footsteps import time_scale
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import and_then, Chapter, ChapterFailed, ChapterRun, Comparison
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.demo.walks import missing_gait, Walks


class Steps(Chapter):
    """`gait_player` lets the robot walk; `zmp_monitor` measures the stability margin."""

    name = 'steps'
    title = 'A slow step, then quick ones'
    description = (
        'The weight is shifted to one foot and the other one steps, quasi-statically '
        'as in the paper. Then the robot takes quick steps, planned by preview '
        'control of the zero-moment point, unless its soles are too narrow.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether there is no gait for this kind of legs."""
        return missing_gait(model)

    def run(self, stage: Stage) -> ChapterRun:
        """Step once, then walk, with feedforward: drives alone sag with every step."""
        stage.set_activity('stands; feedforward starts')
        yield from stage.ramp_up(str(stage.shared.get('calibrated_urdf', '')))
        return (yield from and_then(self._steps(stage), lambda: self._end(stage)))

    def _end(self, stage: Stage) -> Commands:
        """Ramp the torques down, and reset the robot to its initial stance."""
        stage.set_activity('is reset to its initial stance')
        yield from stage.ramp_down()
        yield from stage.reset_robot()

    def _steps(self, stage: Stage) -> ChapterRun:
        self._stage, self._walks, self._undone = stage, Walks(stage), list[str]()
        yield from self._walks.wait()
        stage.set_activity('shifts its weight to the left foot and steps with the right one')
        rows = [(yield from self._walk('single_step', 'slow', 'quasi-static', 1))]
        yield from stage.wait(1.0)
        if count := stage.model.config.walking.quick_steps:
            stage.set_activity('walks quickly')
            rows.append((yield from self._walk('walk', 'quick', 'preview', count)))
        return Comparison(
            ('ZMP error (rms)', 'least ZMP margin'), rows,
            f'walked {" and ".join(label for label, *_ in rows)}', problem='; '.join(self._undone))

    def _walk(self, service: str, kind: str, pattern: str,
              steps: int) -> Generator[Array | None, None, tuple[str, str, str]]:
        """Let the robot walk; return a row of the table with the steps that it did."""
        result = yield from self._walks.walk(service, pattern=pattern, steps=steps)
        if not result.has_ended:
            raise ChapterFailed('the walk was aborted; the reason is in the log of gait_player' + (
                '; the robot fell: try a larger walking.time_scale than '
                f'{time_scale(self._stage.model):.1f}'
                if self._stage.has_fallen else ''))
        done = f'{result.steps} of {steps} {kind} step{"s" if steps > 1 else ""}'
        if result.steps < steps:
            self._undone.append(f'{done}, then the walk was stopped; the reason is in the log of '
                                'gait_player')
        return done, *result.cells
