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
"""Chapter: the robot takes the paper's single step, and then quick ones."""

from __future__ import annotations

import math
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.legs.kinematics import legs_of
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Act, Chapter, Comparison, Skipped
from biped_com_ros.demo.feedforward import feed_forward, let_go
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import PointStamped
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from std_msgs.msg import Float64, String

STEPS = 6
_RESTS = ('standing', 'halted')


class Steps(Chapter):
    """`gait_player` lets the robot walk; `zmp_monitor` says how near the edge that brings it."""

    name = 'steps'
    title = 'One step, and then quickly'
    shows = ('The weight goes over one foot, the other one steps, as slowly as in the paper; then '
             'quick steps, planned so that the zero-moment point stays where it is wanted.')

    def lacks(self, model: RobotModel) -> str:
        """Say what keeps this robot from walking."""
        try:
            legs_of(model)
        except BipedComError:
            return "its legs are not of the kind that gaits are planned for (Wang's)"
        return ''

    def run(self, stage: Stage) -> Act:
        """Step once, then walk, held against gravity: stiff drives alone sag with every step."""
        stage.say('is held by torques against its weight')
        yield from feed_forward(stage, str(stage.shared.get('calibrated_urdf', '')))
        try:
            table = yield from self._steps(stage)
        except Skipped:
            yield from self._end(stage)
            raise
        yield from self._end(stage)
        return table

    def _end(self, stage: Stage) -> Commands:
        """Let others find the robot as it was: no torques, its feet side by side."""
        stage.say('is put down as it stood before')
        yield from let_go(stage)
        yield from stage.put_down()

    def _steps(self, stage: Stage) -> Act:
        self._state = ''
        self._begin_again()
        stage.listen(String, 'gait_player/state', self._on_state, LATCHED)
        stage.listen(Float64, 'zmp_monitor/margin', self._on_margin)
        stage.listen(PointStamped, 'gait_player/zmp_reference', self._on_reference)
        stage.listen(PointStamped, 'zmp_monitor/zmp', self._on_zmp)
        yield from stage.until(lambda: self._state in _RESTS, "gait_player's state", 10.0)
        stage.say('goes over its left foot and steps with the right one')
        rows = [(yield from self._walk(stage, 'single_step', 'single step', 'quasi-static', 1))]
        yield from stage.wait(1.0)
        stage.say('walks quickly')
        rows.append((yield from self._walk(
            stage, 'walk', f'{STEPS} quick steps', 'preview', STEPS)))
        return Comparison(('ZMP off its plan (rms)', 'least margin'), rows)

    def _walk(self, stage: Stage, service: str, words: str, pattern: str, steps: int) -> Any:
        """Let the robot walk; return a row of the table."""
        yield from self._set(stage, pattern=pattern, steps=steps)
        stage.release()
        self._begin_again()
        yield from stage.trigger(f'gait_player/{service}')
        yield from stage.until(lambda: self._state not in _RESTS, 'the plan', 30.0)
        yield from stage.until(lambda: self._state in _RESTS or stage.has_fallen,
                               'the end of the walk', 60.0)
        if self._state == 'halted' or stage.has_fallen:
            raise Skipped('the walk was broken off; gait_player says why in the log')
        rms = 1e3 * math.sqrt(self._squares / self._count) if self._count else math.nan
        return words, f'{rms:.1f} mm', f'{1e3 * self._least:.0f} mm'

    def _set(self, stage: Stage, **values: Any) -> Commands:
        request = SetParameters.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
        yield from stage.call(SetParameters, 'gait_player/set_parameters', request)

    # -- measurements

    def _begin_again(self) -> None:
        self._least, self._squares, self._count = math.inf, 0.0, 0
        self._planned: dict[int, tuple[float, float]] = {}

    def _on_state(self, message: Any) -> None:
        self._state = message.data

    def _on_margin(self, message: Any) -> None:
        if self._state not in _RESTS:
            self._least = min(self._least, message.data)

    def _on_reference(self, message: Any) -> None:
        self._planned[ns_of_msg(message.header.stamp)] = message.point.x, message.point.y

    def _on_zmp(self, message: Any) -> None:
        planned = self._planned.pop(ns_of_msg(message.header.stamp), None)
        if planned is not None:
            x, y = message.point.x - planned[0], message.point.y - planned[1]
            self._squares += x * x + y * y
            self._count += 1
