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
"""The file of captures after a kill, on a full disk, and when somebody else has written it."""

import json
import os
import resource
import signal
import traceback

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
import numpy as np
import pytest
from support.statics_data import TrueRobot

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
