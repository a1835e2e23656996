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

"""A calibration from its first pose to its results, and what may go wrong on the way."""

from dataclasses import replace
import errno
import os

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions, STEP
from biped_com_ros.core.identification.poses.posture_plan import PosturePlanner
from biped_com_ros.core.identification.poses.transfer import HOIST_SETTLING, HoistMove
from biped_com_ros.core.identification.session import SessionState
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.calibration_bench import CalibrationBench, true_robot

THREE = ['pose 1', 'pose 2', 'pose 3']


def started(tmp_path, state=None, **options):
    """Return a bench whose session has begun, and has got as far as a state."""
    bench = CalibrationBench(tmp_path, **options)
    bench.session.start()
    if state is not None:
        bench.run_to(state)
    return bench


def test_from_the_first_pose_to_the_results(tmp_path):
    bench = CalibrationBench(tmp_path, design={'hoisted': 1, 'count': 4})
    session = bench.session
    assert session.state is SessionState.IDLE
    assert str(tmp_path) in session.start()
    with pytest.raises(InputError, match='already begun'):
        session.start()
    bench.run(lambda: bench.driver.is_lifted)
    sent, begun = len(bench.driver.paths), bench.now
    bench.run(lambda: len(bench.driver.paths) > sent)
    assert bench.now - begun >= HOIST_SETTLING  # the hoist must carry the robot for a while
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == [*THREE, 'pose 4'] == [pose.name for pose in bench.targets]
    assert [capture.in_contact.any() for capture in session.log.captures] == [
        False, True, True, True]
    assert bench.driver.moves == [HoistMove.LIFT, HoistMove.LOWER]
    home = bench.true.model.posture('stand')
    assert np.abs(bench.driver.paths[-1][-1] - home).max() < 0.2
    assert bench.texts[-1].startswith('solved: ')
    assert bench.texts[-1].count('the robot is back in posture stand') == 1
    assert (tmp_path / 'report.html').exists() and not bench.errors
    assert RobotModel(bench.true.model.config, session.calibrated_urdf()).mass == pytest.approx(
        session.identification.mass)


def test_poses_are_captured_from_both_sides(tmp_path):
    """The captures of a pose record opposite directions for nearly all motors."""
    bench = started(tmp_path, SessionState.SOLVED, design={'approach': 'both', 'hoisted': 1})
    assert bench.captured == [f'{pose}{again}' for pose in THREE for again in ('', ' again')]
    motors = bench.true.model.joint_index(bench.true.model.actuated_joint_names)
    captures = bench.session.log.captures
    for one, other in zip(captures[::2], captures[1::2]):
        np.testing.assert_allclose(one.positions, other.positions, atol=1e-12)
        assert np.mean((one.approach * other.approach == -1.0)[motors]) > 0.8
    # Only the last move of each visit is slow: its end is the pose, and it is short.
    slow = [path for path, slowly in zip(bench.driver.paths, bench.driver.slow) if slowly]
    assert [path[-1].tolist() for path in slow] == [
        pose.positions.tolist() for pose in bench.targets]
    assert max(np.abs(path - path[-1]).max() for path in slow) < 0.2
    assert any('(6 of 6 captured' in text for text in bench.texts[-2:])


def trembling(capture, i):
    return replace(capture, positions=capture.positions + 0.05 * np.sin(
        i + np.arange(len(capture.positions))))


def hardly_touching(capture, i):
    return replace(capture, wrenches=capture.wrenches * ((1e-3,), (1.0,)))


@pytest.mark.parametrize(('disturb', 'reason'), [
    (trembling, "joint '"), (hardly_touching, 'hardly touches')])
def test_a_pose_that_cannot_be_captured_is_skipped(tmp_path, disturb, reason):
    bench = started(tmp_path, SessionState.WAITING, pose_timeout=8.0, design={'hoisted': 0})
    begun, normal, bench.disturb = bench.now, bench.disturb, disturb
    bench.run(lambda: bench.errors)
    assert 8.0 < bench.now - begun < 9.0
    assert bench.errors[0].startswith('pose 1 skipped after 8 s: ') and reason in bench.errors[0]
    assert any(text.startswith('pose 1: ') and reason in text for text in bench.texts)  # before
    bench.disturb = normal
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == THREE[1:]


def test_an_operator_has_to_hoist_and_to_put_the_robot_down(tmp_path):
    bench = started(tmp_path, has_hoist=False, design={'hoisted': 1})
    bench.run(lambda: any(text.startswith('hoist the robot') for text in bench.texts))
    bench.driver.is_lifted = True
    bench.run(lambda: bench.captured)
    bench.run(lambda: any('put the robot down on its feet' in text for text in bench.texts))
    bench.driver.is_lifted = False
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == THREE


def test_a_hoist_that_the_feet_do_not_show_is_named_and_the_pose_skipped(tmp_path):
    bench = started(tmp_path, pose_timeout=30.0, design={'hoisted': 1})
    bench.driver.hoist_works = False
    bench.run(lambda: bench.session.waits_for)
    begun, what = bench.now, 'the hoist should have lifted the robot, but the feet still carry it'
    assert bench.session.waits_for.startswith(what) and not bench.errors
    bench.run(lambda: bench.errors)
    assert 9.0 < bench.now - begun < 11.0
    assert f'skipped after 30 s: {what}' in bench.errors[0]
    bench.run_to(SessionState.SOLVED)
    assert not bench.session.waits_for and bench.captured == THREE[1:]


def test_a_hoisted_pose_is_not_captured_while_its_mean_stands(tmp_path):
    """Virtual feet notice late that the robot hangs: the last reading alone shows it."""
    bench = started(tmp_path, SessionState.WAITING, pose_timeout=8.0, design={'hoisted': 1})
    weight = bench.true.model.mass * GRAVITY

    def late(capture, i):
        wrenches = capture.wrenches.copy()
        wrenches[:2, 2] = 0.0 if i == 9 else 0.2 * weight
        return replace(capture, wrenches=wrenches)
    normal, bench.disturb = bench.disturb, late
    bench.run(lambda: bench.errors)
    assert not bench.captured
    assert bench.errors[0].startswith('pose 1 skipped after 8 s: the feet carry 3')
    bench.disturb = normal
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == THREE[1:]


@pytest.mark.thorough
def test_a_robot_that_still_hangs_does_not_hide_the_results(tmp_path):
    bench = started(tmp_path, SessionState.WAITING, has_hoist=False, move=False, automatic=False)
    session = bench.session
    for pose in list(session.queue):
        bench.driver.positions = pose.positions
        session.window.clear()
        bench.run(lambda: not session.window.problem)
        if len(session.queue) == 1:
            break
        assert pose.name in session.capture()
    bench.driver.is_lifted = True
    bench.read()
    assert 'skipped' in session.skip()
    assert 'results will be written' in session.solve()
    bench.run(lambda: session.status.startswith('solved: ')
              and 'put the robot down' in session.status)
    assert str(tmp_path / 'calibrated.urdf') in session.status


@pytest.mark.thorough
def test_a_full_disk_is_reported_and_costs_no_pose(tmp_path, monkeypatch):
    """The robot waits in its pose until the capture can be written."""
    bench = started(tmp_path, SessionState.WAITING, pose_timeout=8.0)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, 'fsync', full)
        begun = bench.now
        bench.run(lambda: bench.now > begun + 12.0)
    reports = [text for text in bench.texts if 'No space left on device' in text]
    assert len(reports) == 1
    assert 'captures.json' in reports[0] and not bench.errors and not bench.captured
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == THREE


def test_a_pose_that_is_not_reached_is_left_the_way_it_came(tmp_path):
    """The robot is in no known pose then: only the way that it came is known to be safe."""
    bench = CalibrationBench(tmp_path, pose_timeout=8.0, design={'hoisted': 1, 'count': 4})
    session, driver, send = bench.session, bench.driver, bench.driver.send
    stuck = bench.true.model.joint_index(('l_elbow',))

    def blocked(positions, path, slowly=False):
        duration = send(positions, path, slowly)
        if session.queue and session.queue[0].name == 'pose 3' and path is session.queue[0].path:
            driver.positions = driver.positions.copy()
            driver.positions[stuck] += 0.4
        return duration

    driver.send = blocked
    session.start()
    bench.run(lambda: bench.errors)
    assert bench.errors[0].startswith("pose 3 skipped after 8 s: joint 'l_elbow' is 0.4")
    there = session.log.captures[-1].positions
    came = driver.paths[-1]
    bench.run(lambda: driver.paths[-1] is not came)
    np.testing.assert_array_equal(driver.paths[-1][:-1], came[::-1])
    np.testing.assert_allclose(driver.positions, there, atol=0.05)
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == ['pose 1', 'pose 2', 'pose 4']
    assert len(bench.errors) == 1 and not any('no safe path' in text for text in bench.texts)


def test_a_restarted_session_resumes_where_the_robot_is(tmp_path):
    first = started(tmp_path)
    first.run(lambda: first.captured)
    second = CalibrationBench(tmp_path)
    there = second.driver.positions = first.session.log.captures[0].positions
    assert '1 captures found in' in second.infos[0]
    second.session.start()
    second.run(lambda: second.session.queue)
    assert [pose.name for pose in second.session.queue] == THREE[1:]
    second.run_to(SessionState.SOLVED)
    # The first way begins where the robot was found.
    assert np.abs(second.driver.paths[0][0] - there).max() < 0.3


def test_a_robot_in_no_known_pose_is_not_moved(tmp_path):
    bench = CalibrationBench(tmp_path)
    bench.driver.positions = bench.true.model.posture('stand') + 0.8
    bench.session.start()
    bench.run(lambda: any('bring it to posture stand' in text for text in bench.texts))
    bench.run(lambda: bench.now > 5.0)
    assert not bench.driver.paths and bench.session.state is SessionState.LOCATING
    bench.driver.positions = bench.true.model.posture('stand')
    bench.run(lambda: bench.driver.paths)


def test_trajectories_need_a_subscriber(tmp_path):
    bench = CalibrationBench(tmp_path)
    bench.driver.problem = 'nothing subscribes'
    bench.session.start()
    bench.run(lambda: any(text.startswith('nothing subscribes') for text in bench.texts))
    assert not bench.driver.paths
    bench.driver.problem = ''
    bench.run(lambda: bench.driver.paths)


def test_reset_keeps_the_old_captures_beside(tmp_path):
    bench = started(tmp_path)
    bench.run(lambda: bench.captured)
    assert 'captures.1.json' in bench.session.reset()
    assert not bench.captured and bench.session.state is SessionState.PLANNING
    with pytest.raises(InputError, match=r'busy \(planning\)'):
        bench.session.skip()
    bench.driver.positions = bench.true.model.posture('stand')
    bench.run_to(SessionState.SOLVED)
    assert bench.session.reset()
    with pytest.raises(InputError, match='no estimate yet'):
        bench.session.calibrated_urdf()


@pytest.mark.parametrize('state', (
    SessionState.MOVING, SessionState.WAITING, SessionState.RETREATING, SessionState.RETURNING))
def test_after_a_reset_no_pose_of_the_old_plan_is_used(tmp_path, state):
    """Whatever the user requests while the new one is computed."""
    bench = started(tmp_path, SessionState.WAITING)
    session, driver = bench.session, bench.driver
    if state is SessionState.RETREATING:
        session.skip()
    if state is not SessionState.WAITING:
        bench.run_to(state)
    bench.run(lambda: not session.window.problem)
    jobs = session._jobs
    jobs.job = None
    session.reset()
    assert not session.queue
    job, jobs.job = jobs.job, None  # it takes long
    sent, jobs.poll = len(driver.paths), lambda: False
    bench.run(lambda: not session.window.problem)
    assert 'captured by hand 1' in session.capture()
    with pytest.raises(InputError, match='there is no pose to skip'):
        session.skip()
    for _ in range(50):
        bench.run(lambda: True)
        session.update(bench.now)
    assert len(driver.paths) == sent and session.state is SessionState.PLANNING
    del jobs.poll
    jobs.job = job
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == ['by hand 1', *THREE]


def test_what_is_captured_or_skipped_on_the_way_back_begins_no_other_way(tmp_path):
    bench = started(tmp_path, SessionState.WAITING)
    session, driver = bench.session, bench.driver
    assert session.skip() == 'pose 1 skipped'
    bench.read()
    session.queue[0] = replace(session.queue[0], positions=driver.positions.copy())
    bench.run(lambda: not session.window.problem)
    assert session.state is SessionState.RETREATING
    assert 'captured by hand 1' in session.capture()
    sent = len(driver.paths)
    assert session.skip() == 'pose 2 skipped' and session.state is SessionState.RETREATING
    bench.run(lambda: session.state is SessionState.MOVING)
    assert len(driver.paths) == sent  # only the way back
    np.testing.assert_allclose(driver.paths[-1][-1], bench.true.model.posture('stand'))
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == ['by hand 1', 'pose 3']


def test_what_cannot_be_done_yet_is_refused_with_the_reason(tmp_path):
    session = CalibrationBench(tmp_path).session
    for action, problem in ((session.solve, '0 captures are too few'),
                            (session.skip, 'no pose to skip'),
                            (session.capture, 'hold the robot still')):
        with pytest.raises(InputError, match=problem):
            action()
    (tmp_path / 'file').write_text('')
    with pytest.raises(ConfigurationError, match='another directory'):
        CalibrationBench(tmp_path / 'file' / 'results')


def test_planning_that_fails_or_is_stopped_is_reported(tmp_path):
    bench = started(tmp_path, SessionState.FAILED, design={'margin': 0.5})
    assert 'safe poses' in bench.errors[0]
    stopped = started(tmp_path, design={'seed': 9})
    stopped.session.stop()
    stopped.run_to(SessionState.FAILED)
    assert stopped.errors[0].startswith('planning was stopped')


@pytest.mark.thorough
def test_options_may_change_while_it_runs(tmp_path):
    bench = started(tmp_path, SessionState.WAITING, automatic=False)
    bench.run(lambda: bench.now > 30.0)
    assert not bench.captured
    bench.session.options = replace(bench.session.options, automatic=True)
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == THREE


LEAN = np.radians(10.0)


def planner(*postures, **others):
    """Return a planner for the paper's robot with further postures, (joint, rad) by name."""
    model = RobotModel.load('three_link')
    config = model.config
    config = type(config)(**{**vars(config), 'postures': {**config.postures, **others}})
    return PosturePlanner(RobotModel(config, model.urdf), DesignOptions(
        postures=postures, approach='shortest', margin=0.015))


def test_they_are_taken_in_sequence_by_straight_ways():
    plan = planner('a', 'b', 'a', 'c')
    design = plan.design()
    assert [pose.name for pose in design.poses] == [
        'posture a', 'posture b', 'posture a, time 2', 'posture c']
    at = plan.model.posture('stand')
    for pose in design.poses:
        np.testing.assert_array_equal(pose.path[-1], pose.positions)
        steps = np.diff(np.concatenate((at[np.newaxis], pose.path)), axis=0)
        assert np.abs(steps).max() <= STEP + 1e-12
        np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-12)
        at = pose.positions
    assert 'posture b' in design.summary() and ' mm inside the edges' in design.summary()
    # Shins, thighs and waist, 5.16 of 18.6 kg, lean over soles that reach 130 mm forward.
    forward = 5.16 / 18.6 * 0.52984 * np.sin(LEAN)
    assert design.poses[1].margin == pytest.approx(0.13 - forward, abs=1e-5)


def test_those_that_are_left_begin_where_the_robot_is():
    plan = planner('a', 'b')
    design = plan.design()
    left, = plan.remaining(design, {'posture a'})
    np.testing.assert_array_equal(left.path[-1], plan.model.posture('b'))
    stand = plan.model.posture('stand')
    np.testing.assert_array_equal(plan.way_home(left)[-1], stand)
    assert plan.locate(design, stand + 0.01, 0.05) is None
    assert plan.locate(design, plan.model.posture('b') - 0.01, 0.05) is design.poses[1]
    with pytest.raises(InputError, match='0.20 rad away .* bring it to posture stand'):
        plan.locate(design, plan.model.posture('b') - 0.2, 0.05)


@pytest.mark.parametrize(('joints', 'problem'), [
    ({'l_ankle_pitch': -0.9, 'r_ankle_pitch': -0.9}, 'centre of mass too near the edge'),
    ({'l_ankle_pitch': -1.0, 'r_ankle_pitch': -1.0}, "limit of joint 'l_ankle_pitch'"),
    ({'l_ankle_pitch': -0.1}, 'legs of both sides must move alike'),
    ({'l_knee': 0.2, 'l_ankle_pitch': -0.2}, 'soles would move against each other, by up to')])
def test_what_is_not_safe_is_refused_with_the_reason(joints, problem):
    with pytest.raises(InputError, match=problem) as refused:
        planner('a', 'd', d=joints).design()
    assert "'d'" in str(refused.value)


def test_names_that_do_not_exist():
    with pytest.raises(UnknownNameError, match="posture 'upright' in three_link .valid: a, b, c"):
        planner('upright').design()


def test_a_session_plays_them_and_gives_the_total_centre_of_mass(tmp_path):
    true = true_robot('three_link', ('seed', 3), ('extra', 0.0), ('com_sigma', 0.0))
    bench = CalibrationBench(tmp_path, true, design={'postures': ('a', 'b', 'c'), 'hoisted': 0},
                             settling_time=2.0, arrival_tolerance=0.05)
    assert bench.session.options.design.visits == 3
    bench.session.start()
    bench.run_to(SessionState.SOLVED)
    assert bench.captured == ['posture a', 'posture b', 'posture c']
    for capture, name in zip(bench.session.log.captures, 'abc'):
        np.testing.assert_allclose(capture.positions, true.model.posture(name), atol=1e-9)
    result, = [text for text in bench.infos if 'two poses' in text]
    assert "'posture a' and 'posture b': two poses, 10.00 deg apart" in result
    assert not bench.driver.moves  # it stands all the time
    np.testing.assert_allclose(bench.driver.positions, true.model.posture('stand'))


def test_it_waits_for_the_robot_to_settle(tmp_path):
    true = true_robot('three_link', ('seed', 3), ('extra', 0.0), ('com_sigma', 0.0))
    times = []
    for settling in (0.0, 3.0):
        bench = CalibrationBench(tmp_path / str(settling), true,
                                 design={'postures': ('a',), 'hoisted': 0}, settling_time=settling)
        bench.session.start()
        bench.run(lambda session=bench.session: len(session.log.captures) == 1)
        times.append(bench.now)
    assert times[1] - times[0] == pytest.approx(3.0, abs=0.15)
