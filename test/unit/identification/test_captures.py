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

"""Captures: when a robot is still, which feet stand, and the file that survives all of it."""

import json
import os
import resource
import signal
import traceback

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.stillness import (
    CaptureWindow, MotionDirections, StillnessOptions)
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import TrueRobot

PLAY = 0.002
OPTIONS = StillnessOptions(duration=0.5)


def directions_after(*paths):
    """Return the directions of one joint after it went along paths, rad."""
    motions = MotionDirections(1, PLAY)
    for q in np.concatenate(paths):
        motions.update(np.array([q]))
    return motions.directions[0]


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_the_last_motion_counts(sign):
    there, back = np.linspace(0.0, 0.1 * sign, 50), np.linspace(0.1 * sign, 0.06 * sign, 50)
    assert directions_after(there) == sign
    assert directions_after(there, back) == -sign
    assert directions_after(back, there[::-1], there) == sign


def test_noise_and_settling_do_not_turn_it():
    rng = np.random.default_rng(0)
    there = np.linspace(0.0, 0.1, 50)
    rest = 0.1 + 4e-4 * rng.standard_normal(2000)
    assert directions_after(rest) == 0.0
    assert directions_after(there, rest) == 1.0
    assert directions_after(there, [0.1 - 1.9 * PLAY]) == 1.0
    assert directions_after(there, [0.1 - 2.1 * PLAY]) == -1.0


def test_what_was_not_measured_changes_nothing():
    assert directions_after([np.nan, 0.0, 0.1, np.nan, np.nan]) == 1.0
    assert directions_after([np.nan, np.nan]) == 0.0


def test_a_capture_holds_how_each_joint_came_to_its_pose(tmp_path):
    """The movement is forgotten by the averages, not by the directions; the file keeps them."""
    true = TrueRobot('sabian')
    exact = true.capture(('left', 'right'))
    window = CaptureWindow(true.model, exact.up_frame, OPTIONS)
    turn = np.linspace(-1.0, 1.0, len(exact.positions)).round()
    for i in range(100):
        q = exact.positions - turn * 0.05 * max(0.0, 1.0 - 0.05 * i)
        window.add(0.01 * i, q, exact.torques, exact.wrenches, exact.up)
        if i == 20:
            window.clear()
    capture = window.capture('one')
    np.testing.assert_array_equal(capture.approach, turn)
    log = CaptureLog(tmp_path / 'captures.json', true.model)
    log.append(capture)
    text = log.path.read_text()
    np.testing.assert_array_equal(
        CaptureLog(log.path, true.model).captures[0].approach, turn)
    start = text.index(',\n   "approach"')
    log.path.write_text(text[:start] + text[text.index(']', start) + 1:])  # as by 0.1.0
    assert CaptureLog(log.path, true.model).captures[0].approach is None


@pytest.mark.parametrize(('deviation', 'share', 'stands'), [
    (0.0, 0.05, True), (0.03, 0.05, False), (0.03, 0.08, None), (0.03, 0.12, True),
    (0.03, -0.05, False)])
def test_a_foot_stands_if_its_load_is_certain(deviation, share, stands):
    """Loads and deviations are shares of the weight; of virtual sensors, that weigh no foot."""
    model = with_virtual_sensors(RobotModel.load('g1_as_sold'))
    window = CaptureWindow(model, 'pelvis', OPTIONS)
    weight = GRAVITY * model.mass
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = (1.0 - share) * weight, share * weight
    window.force_deviations[:] = deviation * weight
    for i in range(60):
        window.add(0.01 * i, model.posture(), np.zeros(len(model.joint_names)), wrenches,
                   np.array((0.0, 0.0, 1.0)))
    if stands is None:
        with pytest.raises(InputError, match='hardly touches'):
            window.capture()
    else:
        assert window.capture().in_contact.tolist() == [True, stands]


def watch_of(true, capture, samples=60, **changes):
    """Feed a still robot's readings at 100 Hz."""
    watch = CaptureWindow(true.model, capture.up_frame, OPTIONS)
    for i in range(samples):
        values = {'positions': capture.positions, 'torques': capture.torques,
                  'wrenches': capture.wrenches + true.rng.normal(size=(len(capture.wrenches), 6)),
                  'up': capture.up}
        values.update({key: change(capture, i) for key, change in changes.items()})
        watch.add(0.01 * i, **values)
    return watch


@pytest.mark.parametrize('standing', (('left',), ('right',), ('left', 'right')))
def test_a_still_robot_is_averaged_and_its_standing_feet_are_found(standing):
    true = TrueRobot('talos')
    exact = true.capture(standing)
    found = watch_of(true, exact).capture('one')
    np.testing.assert_allclose(found.positions, exact.positions)
    np.testing.assert_allclose(found.wrenches, exact.wrenches, atol=0.8)
    np.testing.assert_array_equal(found.in_contact, exact.in_contact)
    assert 0.05 < found.wrench_variance.mean() < 0.5  # of the mean, not of a sample
    assert found.name == 'one' and found.torque_variance.max() < 1e-20


@pytest.mark.parametrize(('samples', 'changes', 'problem'), [
    (60, {'positions': lambda c, i: c.positions + 0.001 * i * (np.arange(27) == 6)},
     "joint '{}' moved"),
    (60, {'wrenches': lambda c, i: c.wrenches + 20.0 * np.sin(i)},
     r'a force varies by 14\.1 N \(still_force_deviation 6 N\)'),
    (60, {'up': lambda c, i: c.up + (0.001 * i, 0, 0)},
     r'the robot tilted by .* deg \(at most 0\.23 deg\)'),
    (5, {}, 'only 5 readings'), (20, {}, 's of readings')])
def test_what_moves_is_not_captured(samples, changes, problem):
    true = TrueRobot('sabian')
    watch = watch_of(true, true.capture(('left',)), samples, **changes)
    with pytest.raises(InputError, match=problem.format(true.model.joint_names[6])):
        watch.capture()
    watch.clear()
    with pytest.raises(InputError, match='only 0 readings'):
        watch.capture()


@pytest.mark.parametrize('samples', [5, 7, 9, 10, 14])
def test_few_readings_show_motion_as_many_do(samples):
    """Of a slow driver: half a radian in a second is no rest, and rest is."""
    true = TrueRobot('sabian')
    exact = true.capture(('left', 'right'))
    for moved in (0.5, 0.0):
        watch = CaptureWindow(true.model, exact.up_frame, StillnessOptions(min_samples=5))
        for k in range(samples):
            positions = exact.positions.copy()
            positions[6] += moved * k / samples
            watch.add(k / (samples - 1), positions, exact.torques, exact.wrenches, exact.up)
        assert ('moved by' in watch.problem) == bool(moved)
    assert watch.capture().time == pytest.approx(0.5)


@pytest.mark.parametrize(('load', 'problem'), [
    (-0.2, "'right' carries .* N .* hardly touches"),
    (np.nan, "foot 'right' has no readings")])
def test_a_foot_that_hardly_touches_is_refused(load, problem):
    true = TrueRobot('talos')
    share = np.ones((len(true.model.config.wrench_sensors), 1))
    share[list(true.model.config.wrench_sensors).index('right_foot')] = load
    with pytest.raises(InputError, match=problem):
        watch_of(true, true.capture(('left',)), wrenches=lambda c, i: share * c.wrenches).capture()


NOBODY = 65534


@pytest.fixture(scope='module')
def true():
    return TrueRobot('sabian')


@pytest.fixture(scope='module')
def captures(true):
    return true.captures(3)


@pytest.fixture
def log(tmp_path, true, captures):
    """Return a log with two captures, in a directory that anybody may enter."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(0o755)
    log = CaptureLog(tmp_path / 'robot' / 'captures.json', true.model)
    for capture in captures[:2]:
        log.append(capture)
    return log


def in_child(work):
    """Do it in a process of its own; return the exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # the child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def file_grows_no_further(limit, action):
    """Let the system refuse bytes beyond the limit, or kill who writes one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, action)


def files_beside(log):
    return sorted(path.name for path in log.path.parent.iterdir() if path != log.path)


@pytest.mark.parametrize('share', [0.0, 0.001, 0.3, 0.6, 0.999])
def test_killed_at_any_byte_nothing_is_lost_nor_half_written(log, true, captures, share):
    """The kernel kills the process at that byte of the new file."""
    before = log.path.read_bytes()
    limit = int(share * 1.4 * len(before))

    def killed():
        file_grows_no_further(limit, signal.SIG_DFL)
        log.append(captures[2])

    assert in_child(killed) == -signal.SIGXFSZ
    assert log.path.read_bytes() == before
    left = files_beside(log)
    assert len(left) == 1
    assert (log.path.parent / left[0]).stat().st_mode & 0o777 == 0o600
    assert (log.path.parent / left[0]).stat().st_size <= limit

    again = CaptureLog(log.path, true.model)
    assert [c.name for c in again.captures] == [c.name for c in captures[:2]]
    assert files_beside(log) == []
    again.append(captures[2])
    assert len(CaptureLog(log.path, true.model).captures) == 3


def test_what_a_full_disk_refused_is_not_saved_later(log, true, captures):
    def full():
        file_grows_no_further(len(log.path.read_bytes()) // 2, signal.SIG_IGN)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match='cannot be written: File too large'):
                log.append(captures[2])
        assert len(log.captures) == 2
        assert files_beside(log) == []

    before = log.path.read_bytes()
    assert in_child(full) == 0
    assert log.path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason='another user is needed')
def test_a_read_only_directory_is_an_error_and_loses_nothing(log, true, captures):
    log.path.parent.chmod(0o555)

    def unprivileged():
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        with pytest.raises(ConfigurationError, match='cannot be written: Permission denied'):
            log.append(captures[2])
        with pytest.raises(ConfigurationError, match='cannot be moved .* Permission denied'):
            log.clear()
        assert len(log.captures) == 2
        assert len(CaptureLog(log.path, true.model).captures) == 2

    assert in_child(unprivileged) == 0


def test_who_is_writing_is_not_disturbed(log, true, captures):
    """A second process that opens the log leaves the file alone that the first one writes."""
    from biped_com_ros.core import files
    with files._temporary(log.path) as (_, temporary):
        CaptureLog(log.path, true.model)
        assert os.path.exists(temporary)
        os.unlink(temporary)


def whole_with(**values):
    """Return a change of a file's values."""
    return lambda text: json.dumps(json.loads(text) | values)


def second_with(key, value):
    """Return a change of the second capture in a file."""
    def change(text):
        values = json.loads(text)
        values['captures'][1][key] = value
        return json.dumps(values)
    return change


@pytest.mark.parametrize('make, problem', [
    (lambda text: '[1, 2]', 'it holds a list, not an object'),
    (lambda text: 'null', 'it holds null, not an object'),
    (lambda text: '1.5', 'it holds a number'),
    (lambda text: '', 'Expecting value'),
    (lambda text: text[:len(text) // 2], 'captures.json'),
    (lambda text: '[' * 100_000 + ']' * 100_000, 'recursion'),
    (lambda text: text.replace('0.', 'NaN, 0.', 1), 'NaN is not a number'),
    (lambda text: text.replace('0.', 'Infinity, 0.', 1), 'Infinity is not a number'),
    (lambda text: text.replace('0.', '1e999, 0.', 1), 'captures.json'),
    (whole_with(captures=None), "'captures' is null, not a list"),
    (whole_with(captures={}), "'captures' is an object"),
    (whole_with(captures=[None]), 'capture 1: it is null'),
    (whole_with(captures=[{}]), "capture 1: 'up_frame' is missing"),
    (whole_with(captures=[{'name': 'x', 'up_frame': ''}]), "capture 1: 'positions' is missing"),
    (second_with('positions', [1.0]), '2: positions of .* shape'),
    (second_with('positions', '11'), "2: 'positions' must be a list"),
    (second_with('torques', [[1.0], 2.0]), '2: '),
    (second_with('up', [None, 0.0, 1.0]), '2: up of .* not finite'),
    (second_with('up', [0.0, 0.0, 3.0]), '2: .*unit vector'),
    (second_with('up', [10 ** 400, 0, 1]), '2: '),
    (second_with('in_contact', [1, 0]), "2: 'in_contact' must be"),
    (second_with('in_contact', 'no'), "2: 'in_contact' must be"),
    (second_with('up_frame', 'tail'), "2: unknown frame 'tail'"),
    (second_with('name', []), "2: 'name' is a list, not a string")])
def test_what_is_no_file_of_captures_gives_one_clear_error(log, true, make, problem):
    log.path.write_text(make(log.path.read_text()))
    with pytest.raises(ConfigurationError, match=problem) as error:
        CaptureLog(log.path, true.model)
    assert len(str(error.value)) < 1000
    assert 'move the file away' in str(error.value)


@pytest.mark.parametrize('key', ['position', 'torque', 'wrench'])
@pytest.mark.parametrize('value', [-1e-9, 10 ** 309])
def test_a_variance_must_be_one(log, true, captures, key, value):
    shape = np.shape(getattr(captures[1], f'{key}es' if key == 'wrench' else f'{key}s'))
    values = np.full(shape, value, dtype=object).tolist()
    log.path.write_text(second_with(f'{key}_variance', values)(log.path.read_text()))
    with pytest.raises(ConfigurationError, match=f'{key}_variance .* not negative|too large'):
        CaptureLog(log.path, true.model)


@pytest.mark.parametrize('robot', [['x' * 50] * 10_000, {'x': [[[[[[['deep']]]]]]]}])
def test_a_header_of_any_size_and_depth_is_shown_in_short(log, true, robot):
    log.path.write_text(whole_with(robot=robot)(log.path.read_text()))
    with pytest.raises(ConfigurationError, match='another robot or version') as error:
        CaptureLog(log.path, true.model)
    assert len(str(error.value)) < 1000


def test_bytes_that_are_no_text_and_files_without_end(log, true):
    log.path.write_bytes(b'\xff\xfe' * 100)
    with pytest.raises(ConfigurationError, match='cannot be read'):
        CaptureLog(log.path, true.model)
    log.path.unlink()
    log.path.symlink_to('/dev/zero')
    with pytest.raises(ConfigurationError, match='larger than the 64 MiB'):
        CaptureLog(log.path, true.model)
