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

import math
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.legs.kinematics import legs_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Chapter, ChapterFailed, ChapterRun, Comparison
from biped_com_ros.demo.feedforward import ramp_down, ramp_up
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import PointStamped
from std_msgs.msg import Float64, Int32, String

STEPS = 6
_RESTING = ('standing', 'halted')


class Steps(Chapter):
    """`gait_player` lets the robot walk; `zmp_monitor` measures the stability margin."""

    name = 'steps'
    title = 'A slow step, then quick ones'
    description = (
        'The weight is shifted to one foot and the other one steps, quasi-statically '
        'as in the paper. Then the robot takes quick steps, planned by preview '
        'control of the zero-moment point.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether there is no gait for this kind of legs."""
        try:
            legs_of(model)
        except BipedComError:
            return "gaits need legs with Wang's kinematics; this robot's are different"
        return ''

    def run(self, stage: Stage) -> ChapterRun:
        """Step once, then walk, with feedforward: drives alone sag with every step."""
        stage.set_activity('stands; feedforward starts')
        yield from ramp_up(stage, str(stage.shared.get('calibrated_urdf', '')))
        try:
            table = yield from self._steps(stage)
        except ChapterFailed:
            yield from self._end(stage)
            raise
        yield from self._end(stage)
        return table

    def _end(self, stage: Stage) -> Commands:
        """Ramp the torques down, and reset the robot to its initial stance."""
        stage.set_activity('is reset to its initial stance')
        yield from ramp_down(stage)
        yield from stage.reset_robot()

    def _steps(self, stage: Stage) -> ChapterRun:
        self._state, self._undone = '', list[str]()
        self._clear_measurements()
        stage.subscribe(String, 'gait_player/state', self._on_state, LATCHED)
        stage.subscribe(Int32, 'gait_player/steps_done', self._on_steps, LATCHED)
        stage.subscribe(Float64, 'zmp_monitor/margin', self._on_margin)
        stage.subscribe(PointStamped, 'gait_player/zmp_reference', self._on_reference)
        stage.subscribe(PointStamped, 'zmp_monitor/zmp', self._on_zmp)
        yield from stage.wait_until(
            lambda: self._state in _RESTING, 'state from gait_player', 10.0)
        stage.set_activity('shifts its weight to the left foot and steps with the right one')
        rows = [(yield from self._walk(stage, 'single_step', 'slow', 'quasi-static', 1))]
        yield from stage.wait(1.0)
        stage.set_activity('walks quickly')
        rows.append((yield from self._walk(stage, 'walk', 'quick', 'preview', STEPS)))
        return Comparison(
            ('ZMP error (rms)', 'least margin'), rows, problem='; '.join(self._undone))

    def _walk(self, stage: Stage, service: str, kind: str, pattern: str, steps: int) -> Any:
        """Let the robot walk; return a row of the table with the steps that it did."""
        yield from stage.set_parameters('gait_player', pattern=pattern, steps=steps)
        stage.release()
        self._clear_measurements()
        yield from stage.trigger(f'gait_player/{service}')
        yield from stage.wait_until(
            lambda: self._state not in _RESTING, 'plan from gait_player', 30.0)
        yield from stage.wait_until(lambda: self._state in _RESTING or stage.has_fallen,
                                    'end of the walk', 60.0)
        if self._state == 'halted' or stage.has_fallen:
            raise ChapterFailed('the walk was aborted; the reason is in the log of gait_player')
        rms = 1e3 * math.sqrt(self._squares / self._count) if self._count else math.nan
        done = f'{self._done} of {steps} {kind} step{"s" if steps > 1 else ""}'
        if self._done < steps:
            self._undone.append(f'{done}, then the walk was stopped; the reason is in the log of '
                                'gait_player')
        return done, f'{rms:.1f} mm', f'{1e3 * self._least:.0f} mm'

    # -- measurements

    def _clear_measurements(self) -> None:
        self._least, self._squares, self._count, self._done = math.inf, 0.0, 0, 0
        self._planned: dict[int, tuple[float, float]] = {}

    def _on_state(self, message: Any) -> None:
        self._state = message.data

    def _on_steps(self, message: Any) -> None:
        self._done = message.data

    def _on_margin(self, message: Any) -> None:
        if self._state not in _RESTING:
            self._least = min(self._least, message.data)

    def _on_reference(self, message: Any) -> None:
        self._planned[ns_of_msg(message.header.stamp)] = message.point.x, message.point.y

    def _on_zmp(self, message: Any) -> None:
        planned = self._planned.pop(ns_of_msg(message.header.stamp), None)
        if planned is not None:
            x, y = message.point.x - planned[0], message.point.y - planned[1]
            self._squares += x * x + y * y
            self._count += 1
