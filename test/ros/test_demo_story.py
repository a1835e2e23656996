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
"""The demo's story: chapters in order, absent nodes, falls; time is moved on by hand."""

from __future__ import annotations

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo import CHAPTERS
from biped_com_ros.demo.chapter import Chapter, Comparison
from biped_com_ros.demo.measurements import Measurements
from biped_com_ros.demo.push import Push
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.story import chosen_chapters, Story
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from support.ros_rig import NodeRig

PERIOD = 0.01


class Measured:
    """Stands in for the measurements."""

    has_fallen = Measurements.has_fallen

    def __init__(self):
        self.truth, self.begun, self._height = np.array([0.0, 0.0, 0.4]), [], 0.4

    def begin(self, ns):
        self.begun.append(ns)


class Told:
    """Keeps what is told."""

    def __init__(self):
        self.begun, self.ended = [], []

    def begin(self, number, count, chapter):
        self.begun.append((number, count, chapter.name))

    def end(self, chapter, outcome):
        self.ended.append((chapter.name, outcome))


class Chap(Chapter):
    """Does what it is made with."""

    title, shows = 'A chapter', 'What it shows.'

    def __init__(self, name, act, lack=''):
        self.name, self._act, self._lack = name, act, lack

    def lacks(self, model):
        return self._lack

    def run(self, stage):
        return (yield from self._act(stage))


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.fixture
def rig():
    rig = NodeRig('demo')
    yield rig
    rig.close()


@pytest.fixture
def stage(rig, model):
    return Stage(rig.node, model, Measured(), 'none')


def play(stage, rig, commands, until, steps=20000):
    """Let simulated time pass; return what was commanded."""
    commanded = []
    for _ in range(steps):
        if until():
            return commanded
        stage.time += PERIOD
        stage.stamp_ns = round(1e9 * stage.time)
        stage.commanded = next(commands)
        commanded.append(stage.commanded)
        rig.executor.spin_once(timeout_sec=0.0)
    raise AssertionError('in vain')


def tell(stage, rig, *chapters):
    """Play a whole story; return who told of it."""
    told = Told()
    story = Story(chapters, stage, told)
    play(stage, rig, story.play(0.5), lambda: story.over)
    assert list(story.outcomes) == [name for name, _ in told.ended]
    return dict(told.ended)


def find(rig, stage, *services):
    """Let the stage find services: discovery takes time on the wall, and simulated time flies."""
    for name in services:
        client = stage._clients[name] = rig.node.create_client(Trigger, name)
        rig.until(client.service_is_ready, what=name)


def happy(stage):
    stage.say('works')
    yield from stage.wait(0.1)
    return Comparison(('before', 'after'), [('it', '1', '0')])


def test_chapters_are_played_in_order_each_from_posture_stand(stage, rig, model):
    seen = []

    def away(stage):
        seen.append(stage.commanded.copy())
        yield from stage.move_to(model.posture('arms_out'), 1.0)
        np.testing.assert_allclose(stage.commanded, model.posture('arms_out'))
        return Comparison(('x',), [])

    outcomes = tell(stage, rig, Chap('a', away), Chap('b', away), Chap('c', happy))
    assert list(outcomes) == ['a', 'b', 'c'] and len(stage.measurements.begun) == 4
    np.testing.assert_allclose(seen, [model.posture()] * 2, atol=1e-9)
    assert stage.doing == 'stands'


def test_commands_are_smooth_also_after_others_have_commanded(stage, rig, model):
    def others(stage):
        stage.release()
        yield from stage.wait(0.2)
        stage.positions = model.posture('arms_out')
        return Comparison(('x',), [])

    told = Told()
    story = Story([Chap('others', others)], stage, told)
    commanded = play(stage, rig, story.play(0.2), lambda: story.over)
    free = [i for i, positions in enumerate(commanded) if positions is None]
    assert 15 < len(free) < 30
    back = np.array(commanded[free[-1] + 1:])
    np.testing.assert_allclose(back[0], model.posture('arms_out'), atol=1e-3)
    np.testing.assert_allclose(back[-1], model.posture())
    assert np.abs(np.diff(back, axis=0)).max() < 0.05


def test_what_cannot_be_played_is_said_and_the_story_goes_on(stage, rig):
    def broken(stage):
        yield from stage.wait(0.1)
        raise KeyError('something')

    def refused(stage):
        yield from stage.wait(0.1)
        raise InputError('it is too heavy')

    def absent(stage):
        yield from stage.trigger('nobody/do')
        raise AssertionError('never')

    outcomes = tell(stage, rig, Chap('lacking', happy, 'it has no hands'), Chap('broken', broken),
                    Chap('refused', refused), Chap('absent', absent), Chap('good', happy))
    assert outcomes['lacking'] == 'skipped: it has no hands'
    assert outcomes['broken'].startswith('ended early:') and 'something' in outcomes['broken']
    assert outcomes['refused'] == 'ended early: it is too heavy'
    assert "'nobody/do'" in outcomes['absent'] and 'nobody does not run' in outcomes['absent']
    assert outcomes['good'].rows == [('it', '1', '0')]


def test_services_are_answered_or_refuse(stage, rig):
    trigger_service(rig.peer, 'helper/good', lambda: 'done')
    trigger_service(rig.peer, 'helper/bad', lambda: (_ for _ in ()).throw(InputError('not now')))
    find(rig, stage, 'helper/good', 'helper/bad')

    def ask(name):
        def act(stage):
            words = yield from stage.trigger(f'helper/{name}')
            return Comparison(('x',), [(words, '')])
        return act

    outcomes = tell(stage, rig, Chap('good', ask('good')), Chap('bad', ask('bad')))
    assert outcomes['good'].rows == [('done', '')]
    assert outcomes['bad'] == "skipped: 'helper/bad' refused: not now"


def test_a_robot_that_has_fallen_is_put_back(stage, rig, model):
    resets = []

    def reset():
        resets.append(stage.time)
        stage.measurements.truth = np.array([0.0, 0.0, 0.4])

    trigger_service(rig.peer, 'simulator/reset', reset)
    find(rig, stage, 'simulator/reset')

    def fall(stage):
        assert not stage.has_fallen
        yield from stage.wait(0.1)
        stage.measurements.truth = np.array([0.3, 0.0, 0.1])
        return Comparison(('x',), [])

    tell(stage, rig, Chap('fall', fall), Chap('good', happy))
    assert len(resets) == 1 and not stage.has_fallen


def test_what_a_chapter_listened_to_ends_with_it(stage, rig):
    def listener(stage):
        stage.listen(String, 'news', lambda message: None)
        yield from stage.wait(0.1)
        assert rig.node.count_subscribers('news') == 1
        return Comparison(('x',), [])

    before = len(list(rig.node.subscriptions))
    assert isinstance(tell(stage, rig, Chap('listener', listener))['listener'], Comparison)
    assert len(list(rig.node.subscriptions)) == before


def test_names_choose_chapters():
    assert [chapter.name for chapter in chosen_chapters('push, measure')] == ['push', 'measure']
    assert [chapter.name for chapter in chosen_chapters('all')] == list(CHAPTERS)
    assert chosen_chapters('none') == []
    with pytest.raises(UnknownNameError, match="'pusch'.*did you mean 'push'.*all.*none"):
        chosen_chapters('measure,pusch')


@pytest.mark.parametrize('name', list(CHAPTERS))
def test_every_chapter_says_what_it_shows(name):
    chapter, = chosen_chapters(name)
    assert chapter.name == name
    assert 5 < len(chapter.title) < 60 and len(chapter.shows) > 30


def test_pushes_grow_until_the_fall(stage, rig, model):
    pushes = rig.collect(WrenchStamped, 'simulator/push', publishers=0)
    chapter, told = Push(), Told()
    story = Story([chapter], stage, told)
    margin = rig.peer.create_publisher(Float64, 'zmp_monitor/margin', 10)
    event = rig.peer.create_publisher(DiagnosticArray, 'zmp_monitor/event', LATCHED)
    commands = story.play(0.0)

    def until(condition):
        """Let time stand still while messages travel, and pass while nothing does."""
        def step():
            margin.publish(Float64(data=0.012))
            rig.spin(0.004)
            return condition()
        play(stage, rig, commands, step)

    until(lambda: pushes)
    assert pushes[0].wrench.force.x == pytest.approx(0.08 * model.mass * 9.81)
    assert pushes[0].header.frame_id in model.link_names
    until(lambda: len(pushes) == 2)
    assert pushes[1].wrench.force.x == pytest.approx(2.0 * pushes[0].wrench.force.x)
    until(lambda: '12 mm' in stage.doing)
    assert f'{pushes[1].wrench.force.x:.1f} N' in stage.doing
    event.publish(DiagnosticArray(status=[DiagnosticStatus(message='fallen: it leans')]))
    until(lambda: story.over)
    assert len(pushes) == 2, 'nobody kicks who lies on the floor'
    rows = told.ended[0][1].rows
    assert len(rows) == 2 and rows[1][1:] == ('12 mm', 'fallen: it leans')
