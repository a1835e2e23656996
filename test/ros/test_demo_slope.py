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
"""The demo's chapter of slopes, with messages of gait_player and zmp_monitor made by the test."""

import math
from xml.etree import ElementTree

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import ChapterFailed
from biped_com_ros.demo.slope import (
    LARGEST_SLOPE, LEAN_SHARE, PACE, Slope, slope_for, STEPS)
import pytest
from support.walking_stage import play, WalkingStage

FLOOR = 0.01
"""Pitch of the floor before the chapter, rad."""


class SlopedStage(WalkingStage):
    """Walks worse without feedback, or falls; notes the floor and feedback of each walk."""

    def __init__(self, falls=(), **options):
        super().__init__(**options)
        self.model, self.walks, self._falls = RobotModel.load('biped'), [], falls

    def trigger(self, name):
        assert self.pace == PACE
        self.walks.append((self.on_floor, self.feedback))
        self.error = (0.004, 0.003) if self.feedback else (0.03, 0.04)
        self.end = 'halted' if self.feedback in self._falls else 'standing'
        yield from super().trigger(name)


def test_it_walks_down_the_slope_without_and_with_feedback_and_levels_the_floor():
    stage = SlopedStage()
    table = play(Slope(), stage)
    assert stage.walks == [(slope_for(stage.model), False), (slope_for(stage.model), True)]
    assert table.rows == [
        ('6.0 deg down, without feedback', f'{STEPS} of {STEPS}', '50.0 mm', '12 mm'),
        ('6.0 deg down, with feedback', f'{STEPS} of {STEPS}', '5.0 mm', '12 mm')]
    assert not table.problem
    assert (stage.floor, stage.on_floor, stage.feedback) == (FLOOR, FLOOR, False)
    assert stage.pace == 1.0
    assert stage.gravity == 'unconfigured'


@pytest.mark.parametrize('feedback', (False, True))
def test_a_fall_is_shown_and_a_problem_only_with_feedback(feedback):
    stage = SlopedStage(falls=(feedback,))
    table = play(Slope(), stage)
    assert [row[1].endswith('then fell') for row in table.rows] == [not feedback, feedback]
    assert bool(table.problem) == feedback
    assert stage.on_floor == FLOOR and stage.gravity == 'unconfigured'


@pytest.mark.parametrize('stop', (0, 3))
def test_a_walk_that_is_refused_or_stopped_is_a_problem(stop):
    stage = SlopedStage(stop=stop)
    table = play(Slope(), stage)
    assert [row[1] for row in table.rows] == [f'{stop} of {STEPS}'] * 2
    assert table.problem.startswith('without feedback')
    assert stage.on_floor == FLOOR and stage.gravity == 'unconfigured'


def test_after_a_failure_the_floor_is_as_before():
    stage = SlopedStage()
    stage.wait_until = _fail
    with pytest.raises(ChapterFailed):
        play(Slope(), stage)
    assert (stage.floor, stage.on_floor, stage.feedback) == (FLOOR, FLOOR, False)
    assert stage.pace == 1.0


def _fail(condition, what, timeout):
    raise ChapterFailed(what)
    yield


def test_robots_stand_on_their_slope_without_feedback():
    """
    Turned with the ground, the centre of mass stays behind the front edge of the soles.

    So does the zero-moment point of a point mass that comes upright with 0.4 rad/s^2.
    """
    for name in ('biped', 'talos', 'sabian'):
        model = RobotModel.load(name)
        slope = slope_for(model)
        state = model.state(model.posture())
        sole = state.placements_in_base(model.soles)[0]
        com = sole[:3] @ (state.com_in_base - sole[3])
        edge = max(x for x, _ in model.config.feet[model.soles.names[0]].polygon)
        lean = com[2] * math.tan(slope) + 0.4 * com[2] ** 2 / 9.81
        assert 0.0 < lean <= 1.001 * LEAN_SHARE * (edge - com[0])
        assert slope == LARGEST_SLOPE or lean > 0.99 * LEAN_SHARE * (edge - com[0])


@pytest.mark.parametrize('robot, walks', (
    ('biped', True), ('three_link', False), ('g1_as_sold', False)))
def test_it_is_for_robots_that_can(robot, walks):
    assert (Slope().missing_for(RobotModel.load(robot)) == '') == walks


@pytest.mark.parametrize('side, fits', (('left', False), ('neither', True)))
def test_it_is_not_for_ankles_that_bend_as_little_as_romeos(side, fits):
    """Its lower limit of 30 deg leaves less than the slope above what level steps need."""
    model = RobotModel.load('biped')
    robot = ElementTree.fromstring(model.urdf)
    if side == 'left':
        robot.find("joint[@name='l_ankle_pitch']/limit").set('lower', '-0.5236')
    model = RobotModel(model.config, ElementTree.tostring(robot, encoding='unicode'))
    reason = Slope().missing_for(model)
    assert reason == ('' if fits else 'its ankles bend by 30 deg, steps down a slope need 33')
