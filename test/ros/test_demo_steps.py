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

from __future__ import annotations

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import ChapterFailed
from biped_com_ros.demo.stage import Stage as DemoStage
from biped_com_ros.demo.steps import STEPS, Steps
from geometry_msgs.msg import PointStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
import pytest
from std_msgs.msg import Float64, Int32, String


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


class Stage:
    """Answers the chapter as the nodes would, with the ZMP off by given millimetres."""

    has_fallen = False
    set_parameters = DemoStage.set_parameters
    shared = {'calibrated_urdf': 'better.urdf'}
    _moves = {Transition.TRANSITION_CONFIGURE: 'inactive',
              Transition.TRANSITION_ACTIVATE: 'active',
              Transition.TRANSITION_DEACTIVATE: 'inactive',
              Transition.TRANSITION_CLEANUP: 'unconfigured'}

    def __init__(self, error=(0.003, 0.004), end='standing', gravity='unconfigured', stop=None):
        self.error, self.end, self.calls, self.released = error, end, [], False
        self.stop, self._steps = stop, 0
        self.gravity, self.urdf = gravity, ''
        self._callbacks, self._next = {}, [lambda: self.receive('state', String(data='standing'))]

    def subscribe(self, kind, topic, callback, qos=None):
        self._callbacks[topic.split('/')[-1]] = callback

    def receive(self, topic, message):
        self._callbacks[topic](message)

    def set_activity(self, activity):
        self.calls.append(activity)

    def release(self):
        self.released = True

    def wait(self, seconds):
        yield None

    def reset_robot(self):
        self.calls.append('reset')
        yield None

    def wait_until(self, condition, what, timeout):
        while not condition():
            if not self._next:
                raise ChapterFailed(what)
            self._next.pop(0)()
            yield None

    def call(self, kind, name, request):
        yield None
        if kind is GetState:
            ids = {'unconfigured': 1, 'inactive': 2, 'active': 3}
            return GetState.Response(current_state=State(id=ids[self.gravity]))
        if kind is ChangeState:
            self.gravity = self._moves[request.transition.id]
            return ChangeState.Response(success=True)
        values = {p.name: p.value.string_value or p.value.integer_value
                  for p in request.parameters}
        if name == 'gravity_compensation/set_parameters':
            assert self.gravity == 'unconfigured'  # it reads the URDF when it is configured
            self.urdf = values['urdf']
        else:
            self.calls.append((name, values))
            self._steps = values['steps']
        return None

    def trigger(self, name):
        assert self.released
        assert self.gravity == 'active' and self.urdf == 'better.urdf'
        self.calls.append(name)
        self._next = [lambda: self.receive('state', String(data='walking')), self._walk,
                      lambda: self.receive('state', String(data=self.end))]
        yield None

    def _walk(self):
        x, y = self.error
        done = self._steps if self.stop is None else min(self.stop, self._steps)
        self.receive('steps_done', Int32(data=done))
        for i, margin in enumerate((0.03, 0.012, 0.04)):
            self.receive('margin', Float64(data=margin))
            self.receive('zmp_reference', point(i, 0.1 * i, 0.02))
            self.receive('zmp', point(i, 0.1 * i + x, 0.02 + y))
            self.receive('zmp', point(i + 500, 5.0, 5.0))  # of another instant: not compared


def point(milliseconds, x, y):
    message = PointStamped()
    message.header.stamp.nanosec = milliseconds * 1_000_000
    message.point.x, message.point.y = x, y
    return message


def play(chapter, stage):
    run = chapter.run(stage)
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize('gravity', ('unconfigured', 'inactive', 'active'))
def test_it_steps_once_and_then_walks_and_compares(model, gravity):
    stage = Stage(gravity=gravity)
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
    table = play(Steps(), Stage(stop=stop))
    assert [row[0] for row in table.rows] == rows
    assert table.problem.startswith(f'{rows[stop]}, then the walk was stopped')


def test_an_aborted_walk_is_reported(model):
    stage = Stage(end='halted')
    with pytest.raises(ChapterFailed, match='aborted'):
        play(Steps(), stage)
    assert stage.gravity == 'unconfigured' and stage.calls[-1] == 'reset'


@pytest.mark.parametrize('robot, walks', (('biped', True), ('three_link', False)))
def test_it_is_for_robots_that_can(robot, walks):
    assert (Steps().missing_for(RobotModel.load(robot)) == '') == walks
