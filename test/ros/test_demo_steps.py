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
"""The demo's chapter of steps, with messages of gait_player and zmp_monitor made by the test."""

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import ChapterFailed
from biped_com_ros.demo.steps import Steps
import pytest
from support.walking_stage import play, WalkingStage

STEPS = 6


@pytest.mark.parametrize('gravity', ('unconfigured', 'inactive', 'active'))
def test_it_steps_once_and_then_walks_and_compares(gravity):
    stage = WalkingStage(gravity=gravity)
    table = play(Steps(), stage)
    assert [call for call in stage.calls if '/' in call[0] or str(call).startswith('gait')] == [
        ('gait_player/set_parameters', {'pattern': 'quasi-static', 'steps': 1}),
        'gait_player/single_step',
        ('gait_player/set_parameters', {'pattern': 'preview', 'steps': STEPS}),
        'gait_player/walk']
    assert stage.calls[-1] == 'reset'
    assert table.rows == [('1 of 1 slow step', '5.0 mm', '12 mm'),
                          (f'{STEPS} of {STEPS} quick steps', '5.0 mm', '12 mm')]
    assert not table.problem
    assert stage.gravity == 'unconfigured'


@pytest.mark.parametrize('stop, rows', [
    (0, ['0 of 1 slow step', '0 of 6 quick steps']),
    (1, ['1 of 1 slow step', '1 of 6 quick steps'])])
def test_steps_that_were_not_done_are_not_reported_as_done(stop, rows):
    table = play(Steps(), WalkingStage(stop=stop))
    assert [row[0] for row in table.rows] == rows
    assert table.problem.startswith(f'{rows[stop]}, then the walk was stopped')


def test_a_robot_with_narrow_soles_takes_no_quick_steps():
    stage = WalkingStage(robot='g1_as_sold')
    assert not stage.model.config.walking.quick_steps
    assert [row[0] for row in play(Steps(), stage).rows] == ['1 of 1 slow step']
    assert 'gait_player/walk' not in stage.calls


@pytest.mark.parametrize('has_fallen, reason', [
    (False, 'aborted; .* log of gait_player$'),
    (True, 'aborted; .*the robot fell: try a larger walking.time_scale than 1.0$')])
def test_an_aborted_walk_is_reported(has_fallen, reason):
    stage = WalkingStage(end='halted')
    stage.has_fallen = has_fallen
    with pytest.raises(ChapterFailed, match=reason):
        play(Steps(), stage)
    assert stage.gravity == 'unconfigured' and stage.calls[-1] == 'reset'


@pytest.mark.parametrize('robot, walks', (('biped', True), ('three_link', False)))
def test_it_is_for_robots_that_can(robot, walks):
    assert (Steps().missing_for(RobotModel.load(robot)) == '') == walks
