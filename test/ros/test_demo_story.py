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

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.demo import CHAPTERS, SEPARATE
from biped_com_ros.demo.chapter import Chapter, Comparison
from biped_com_ros.demo.measurements import Measurements
from biped_com_ros.demo.push import Push
from biped_com_ros.demo.stability_reports import StabilityReports
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.story import chosen_chapters, Story
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.services import trigger_service
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
import pytest
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from support.ros_rig import NodeRig

PERIOD = 0.01


class ReplacedMeasurements:
    """Replaces the measurements."""

    has_fallen = Measurements.has_fallen

    def __init__(self):
        self.truth, self.started, self._height = np.array([0.0, 0.0, 0.4]), [], 0.4
        self.running = False

    def start(self, ns):
        self.started.append(ns)
        self.running = True

    def pause(self):
        self.running = False


class RecordingScreen:
    """Keeps the results of chapters."""

    def __init__(self):
        self.begun, self.ended = [], []

    def begin_chapter(self, number, count, chapter):
        self.begun.append((number, count, chapter.name))

    def end_chapter(self, chapter, outcome):
        self.ended.append((chapter.name, outcome))


class Chap(Chapter):
    """A chapter with given steps."""

    title, description = 'A chapter', 'What it shows.'

    def __init__(self, name, steps, missing=''):
        self.name, self._steps, self._missing = name, steps, missing

    def missing_for(self, model):
        return self._missing

    def run(self, stage):
        return (yield from self._steps(stage))


@pytest.fixture
def rig(closing):
    return closing(NodeRig('demo'))


@pytest.fixture
def stage(rig, model):
    return Stage(rig.node, model, ReplacedMeasurements())


def play(stage, rig, commands, until, steps=20000):
    """Advance simulated time; return the commands."""
    commanded = []
    for _ in range(steps):
        if until():
            return commanded
        stage.time += PERIOD
        stage.stamp_ns = round(1e9 * stage.time)
        stage.commanded = next(commands)
        commanded.append(stage.commanded)
        rig.executor.spin_once(timeout_sec=0.0)
    raise AssertionError('the condition never held')


def run_story(stage, rig, *chapters):
    """Run a whole story; return the result of each chapter."""
    screen = RecordingScreen()
    story = Story(chapters, stage, screen)
    play(stage, rig, story.run(0.5), lambda: story.is_over)
    assert list(story.outcomes) == [name for name, _ in screen.ended]
    return dict(screen.ended)


def wait_for(rig, *services):
    """Wait for services: discovery takes wall time, and simulated time passes quickly."""
    for name in services:
        client = rig.node.create_client(Trigger, name)
        rig.until(client.service_is_ready, what=name)


def test_a_jump_of_the_clock_is_no_time_that_has_passed(stage):
    """A wait for a time in the far future would never have ended."""
    second = 10 ** 9
    for stamp, time in ((100.0, 0.0), (100.5, 0.5), (1e9, 0.5), (1e9 + 0.25, 0.75), (101.0, 0.75),
                        (101.25, 1.0)):
        stage.advance_to(round(stamp * second))
        assert stage.time == pytest.approx(time) and stage.stamp_ns == round(stamp * second)


def happy(stage):
    stage.set_activity('works')
    yield from stage.wait(0.1)
    return Comparison(('before', 'after'), [('it', '1', '0')])


def test_chapters_run_in_order_each_from_posture_stand(stage, rig, model):
    commands = []

    def away(stage):
        commands.append(stage.commanded.copy())
        yield from stage.move_to(model.posture('arms_out'), 1.0)
        np.testing.assert_allclose(stage.commanded, model.posture('arms_out'))
        return Comparison(('x',), [])

    outcomes = run_story(stage, rig, Chap('a', away), Chap('b', away), Chap('c', happy))
    assert list(outcomes) == ['a', 'b', 'c'] and len(stage.measurements.started) == 4
    np.testing.assert_allclose(commands, [model.posture()] * 2, atol=1e-9)
    assert stage.activity == 'stands'


def test_commands_are_smooth_also_after_others_have_commanded(stage, rig, model):
    def others(stage):
        stage.release()
        yield from stage.wait(0.2)
        stage.positions = model.posture('arms_out')
        return Comparison(('x',), [])

    screen = RecordingScreen()
    story = Story([Chap('others', others)], stage, screen)
    commanded = play(stage, rig, story.run(0.2), lambda: story.is_over)
    free = [i for i, positions in enumerate(commanded) if positions is None]
    assert 15 < len(free) < 30
    back = np.array(commanded[free[-1] + 1:])
    np.testing.assert_allclose(back[0], model.posture('arms_out'), atol=1e-3)
    np.testing.assert_allclose(back[-1], model.posture())
    assert np.abs(np.diff(back, axis=0)).max() < 0.05


def test_a_failure_is_reported_and_the_story_goes_on(stage, rig):
    def broken(stage):
        yield from stage.wait(0.1)
        raise KeyError('something')

    def refused(stage):
        yield from stage.wait(0.1)
        raise InputError('it is too heavy')

    def absent(stage):
        yield from stage.trigger('nobody/do')
        raise AssertionError('never')

    outcomes = run_story(
        stage, rig, Chap('lacking', happy, 'it has no hands'), Chap('broken', broken),
        Chap('refused', refused), Chap('absent', absent), Chap('good', happy))
    assert outcomes['lacking'] == 'skipped: it has no hands'
    assert outcomes['broken'].startswith('failed: KeyError:') and 'something' in outcomes['broken']
    assert outcomes['refused'] == 'failed: it is too heavy'
    assert "'nobody/do'" in outcomes['absent'] and 'nobody is not running' in outcomes['absent']
    assert outcomes['good'].rows == [('it', '1', '0')]


def test_only_what_a_robot_can_do_and_did_not_counts_as_failed(stage, rig):
    def partly(stage):
        yield from stage.wait(0.1)
        return Comparison(('x',), [('1 of 6', '')], problem='1 of 6 steps')

    def refused(stage):
        yield from stage.wait(0.1)
        raise InputError('it is too heavy')

    story = Story([Chap('lacking', happy, 'it has no hands'), Chap('partly', partly),
                   Chap('refused', refused), Chap('good', happy)], stage, RecordingScreen())
    play(stage, rig, story.run(0.5), lambda: story.is_over)
    assert story.failures == {'partly': '1 of 6 steps', 'refused': 'it is too heavy'}
    assert story.summary().splitlines() == [
        'A chapter (lacking): skipped: it has no hands',
        'A chapter (partly): failed: 1 of 6 steps',
        'A chapter (refused): failed: it is too heavy', 'A chapter (good): done']


def test_services_succeed_or_fail(stage, rig):
    trigger_service(rig.peer, 'helper/good', lambda: 'done')
    trigger_service(rig.peer, 'helper/bad', lambda: (_ for _ in ()).throw(InputError('not now')))
    wait_for(rig, 'helper/good', 'helper/bad')

    def request(name):
        def steps(stage):
            text = yield from stage.trigger(f'helper/{name}')
            return Comparison(('x',), [(text, '')])
        return steps

    outcomes = run_story(stage, rig, Chap('good', request('good')), Chap('bad', request('bad')))
    assert outcomes['good'].rows == [('done', '')]
    assert outcomes['bad'] == "failed: 'helper/bad' refused: not now"


def test_a_robot_that_has_fallen_is_reset(stage, rig, model):
    resets = []

    def reset():
        resets.append(stage.measurements.running)
        stage.measurements.truth = np.array([0.0, 0.0, 0.4])

    trigger_service(rig.peer, 'simulator/reset', reset)
    wait_for(rig, 'simulator/reset')

    def fall(stage):
        assert not stage.has_fallen
        yield from stage.wait(0.1)
        stage.measurements.truth = np.array([0.3, 0.0, 0.1])
        return Comparison(('x',), [])

    run_story(stage, rig, Chap('fall', fall), Chap('good', happy))
    assert resets == [False], 'once, and neither the fall nor the reset is measured'
    assert stage.measurements.running and not stage.has_fallen


def test_subscriptions_of_a_chapter_end_with_it(stage, rig):
    def subscriber(stage):
        stage.subscribe(String, 'chat', lambda message: None)
        yield from stage.wait(0.1)
        assert rig.node.count_subscribers('chat') == 1
        return Comparison(('x',), [])

    before = len(list(rig.node.subscriptions))
    outcomes = run_story(stage, rig, Chap('subscriber', subscriber))
    assert isinstance(outcomes['subscriber'], Comparison)
    assert len(list(rig.node.subscriptions)) == before


def test_after_the_chapters_others_command_the_robot_and_its_torso(stage, rig, model):
    """A walk from the page, or a bend: until a calibration bends the torso itself."""
    transitions = []

    def change(request, response):
        transitions.append(request.transition.id)
        response.success = True
        return response

    rig.node.create_service(ChangeState, 'torso_controller/change_state', change)
    client = rig.node.create_client(ChangeState, 'torso_controller/change_state')
    rig.until(client.service_is_ready, what='the torso')
    progress = rig.node.create_publisher(String, 'com_calibrator/progress', LATCHED)
    progress.publish(String(data='the robot is back in posture stand'))
    story = Story([], stage, RecordingScreen())
    commands = story.run(0.5)
    play(stage, rig, commands, lambda: story.is_over)
    np.testing.assert_allclose(stage.commanded, model.posture())

    def advance(done):
        stage.commanded = next(commands)
        assert stage.commanded is None
        return done()

    on = [Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE]
    rig.until(lambda: advance(lambda: transitions == on and progress.get_subscription_count() > 0),
              what='a torso that is controlled')
    for _ in range(20):  # what was published before means nothing
        rig.until(lambda: advance(lambda: True))
        rig.spin(0.02)
    assert transitions == on
    progress.publish(String(data='planning'))
    rig.until(lambda: advance(lambda: len(transitions) > 3), what='the end of it')
    assert transitions[2:] == [Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP]


def test_names_choose_chapters():
    assert [chapter.name for chapter in chosen_chapters('push, measure')] == ['push', 'measure']
    every = [chapter.name for chapter in chosen_chapters('all')]
    assert every == [name for name in CHAPTERS if name not in SEPARATE]
    assert chosen_chapters('none') == []
    with pytest.raises(UnknownNameError, match="'pusch'.*did you mean 'push'.*all.*none"):
        chosen_chapters('measure,pusch')


@pytest.mark.parametrize('name', list(CHAPTERS))
def test_every_chapter_has_a_description(name):
    chapter, = chosen_chapters(name)
    assert chapter.name == name
    assert 5 < len(chapter.title) < 60 and len(chapter.description) > 30


def event_of(text, level):
    """Return the status of an event of zmp_monitor."""
    return DiagnosticStatus(message=text, values=[KeyValue(key='now', value=level)])


@pytest.mark.parametrize('events, least, course', [
    ((), 0.02, 'stays marginal'),
    ((), -0.01,
     'stays marginal (the ZMP was beyond the edge for less than 10 ms)'),
    (('marginal: the ZMP is 3 mm from the edge', 'stable'), -0.01, 'marginal, stable'),
    (('marginal: it is near', 'fallen: it leans'), -0.1, 'marginal, fallen: it leans')])
def test_a_push_is_shown_with_what_was_reported_meanwhile(events, least, course):
    """What was reported before, such as a recovery, is not due to the push."""
    reports = StabilityReports()
    reports.add_event(DiagnosticArray(status=[event_of('recovered, now marginal', 'MARGINAL')]))
    reports.restart()
    reports.add_margin(Float64(data=least))
    for text in events:
        reports.add_event(DiagnosticArray(status=[event_of(text, text.partition(':')[0].upper())]))
    assert reports.course() == course


def test_pushes_grow_until_the_fall(stage, rig, model):
    pushes = rig.collect(WrenchStamped, 'simulator/push', publishers=0)
    chapter, screen = Push(), RecordingScreen()
    story = Story([chapter], stage, screen)
    margin = rig.peer.create_publisher(Float64, 'zmp_monitor/margin', 10)
    dcm_margin = rig.peer.create_publisher(Float64, 'zmp_monitor/dcm_margin', 10)
    event = rig.peer.create_publisher(DiagnosticArray, 'zmp_monitor/event', LATCHED)
    commands = story.run(0.0)

    def until(condition):
        """Advance time in steps, with margins and time for messages in each."""
        def step():
            margin.publish(Float64(data=0.012))
            dcm_margin.publish(Float64(data=0.021))
            rig.spin(0.004)
            return condition()
        play(stage, rig, commands, step)

    until(lambda: pushes)
    assert pushes[0].wrench.force.x == pytest.approx(0.08 * model.mass * 9.81)
    assert pushes[0].header.frame_id in model.link_names
    until(lambda: len(pushes) == 2)
    assert pushes[1].wrench.force.x == pytest.approx(2.0 * pushes[0].wrench.force.x)
    until(lambda: 'ZMP margin down to 12 mm' in stage.activity)
    assert f'{pushes[1].wrench.force.x:.1f} N' in stage.activity
    event.publish(DiagnosticArray(status=[event_of('fallen: it leans', 'FALLEN')]))
    until(lambda: story.is_over)
    assert len(pushes) == 2, 'no push after the fall'
    rows = screen.ended[0][1].rows
    assert len(rows) == 2 and rows[1][1:] == ('12 mm', '21 mm', 'fallen: it leans')
