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
import subprocess
import sys
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
    log.append(captures[0])
    log.append(captures[1])
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


def test_killed_at_any_moment_a_capture_that_was_confirmed_is_kept(tmp_path, true):
    """A real SIGKILL, at another moment each time, while captures are taken all the time."""
    code = f"""
import sys
sys.path[:0] = {[p for p in sys.path if p]!r}
from dataclasses import replace
from pathlib import Path
from support.statics_data import TrueRobot
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
true = TrueRobot('sabian')
capture, log = true.capture(('left',)), CaptureLog(Path(sys.argv[1]), true.model)
while True:
    log.append(replace(capture, name=f'by hand {{len(log.captures) + 1}}'))
    print(len(log.captures), flush=True)
"""
    path, confirmed = tmp_path / 'captures.json', 0
    for lines in (1, 2, 5, 9):
        with subprocess.Popen([sys.executable, '-c', code, str(path)], text=True,
                              stdout=subprocess.PIPE) as process:
            for _ in range(lines):
                confirmed = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().splitlines()
            confirmed = int(rest[-1]) if rest and rest[-1] else confirmed
        found = CaptureLog(path, true.model).captures
        assert len(found) in (confirmed, confirmed + 1)  # the last one was not confirmed yet
        assert sorted(p.name for p in tmp_path.iterdir()) == ['captures.json']


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


FULL = """
set -e
mount -t tmpfs -o size=48k none "$1"
cat /dev/zero > "$1/filler" 2>/dev/null || true
exec "$2" -c '
import errno, sys
from pathlib import Path
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import write_atomically
path = Path(sys.argv[1]) / "captures.json"
try:
    write_atomically(path, 30000 * "x")
except ConfigurationError as error:
    print(error)
(path.parent / "filler").unlink()
print(sorted(p.name for p in path.parent.iterdir()))
write_atomically(path, 30000 * "x")
print(path.stat().st_size)
' "$1"
"""


def test_a_file_system_that_is_really_full(tmp_path):
    command = ['unshare', '--map-root-user', '--mount', 'sh', '-c', FULL, 'sh', str(tmp_path),
               sys.executable]
    try:
        result = subprocess.run(command, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip('unshare is not installed')
    if 'unshare' in result.stderr or 'mount' in result.stderr:
        pytest.skip(f'no file system can be mounted here: {result.stderr.strip()}')
    error, left, size = result.stdout.splitlines()
    assert 'cannot be written: No space left on device' in error
    assert (left, size) == ('[]', '30000')


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


DEEP = 100_000


def damaged(text, change=None):
    values = json.loads(text)
    if change:
        change(values)
    return json.dumps(values)


def changed(key, value):
    def change(values):
        values['captures'][1][key] = value
    return change


def set_captures(value):
    def change(values):
        values['captures'] = value
    return change


NAMES = {'name': 'x', 'up_frame': ''}


@pytest.mark.parametrize('make, problem', [
    (lambda text: '[1, 2]', 'it holds a list, not an object'),
    (lambda text: 'null', 'it holds null, not an object'),
    (lambda text: '1.5', 'it holds a number'),
    (lambda text: '', 'Expecting value'),
    (lambda text: text[:len(text) // 2], 'captures.json'),
    (lambda text: '[' * DEEP + ']' * DEEP, 'recursion'),
    (lambda text: text.replace('"captures": [', '"captures": ' + '[' * DEEP), 'captures.json'),
    (lambda text: text.replace('0.', 'NaN, 0.', 1), 'NaN is not a number'),
    (lambda text: text.replace('0.', 'Infinity, 0.', 1), 'Infinity is not a number'),
    (lambda text: text.replace('0.', '1e999, 0.', 1), 'captures.json'),
    (lambda text: damaged(text, set_captures(None)), "'captures' is null, not a list"),
    (lambda text: damaged(text, set_captures({})), "'captures' is an object"),
    (lambda text: damaged(text, set_captures([None])), 'capture 1: it is null'),
    (lambda text: damaged(text, set_captures([[]])), 'capture 1: it is a list'),
    (lambda text: damaged(text, set_captures([{}])), "capture 1: 'up_frame' is missing"),
    (lambda text: damaged(text, set_captures([NAMES])), "capture 1: 'positions' is missing"),
    (lambda text: damaged(text, changed('positions', None)), "2: 'positions' must be a list"),
    (lambda text: damaged(text, changed('positions', [1.0])), '2: positions of .* shape'),
    (lambda text: damaged(text, changed('positions', '11')), "2: 'positions' must be a list"),
    (lambda text: damaged(text, changed('torques', [[1.0], 2.0])), '2: '),
    (lambda text: damaged(text, changed('up', [None, 0.0, 1.0])), '2: up of .* not finite'),
    (lambda text: damaged(text, changed('up', [0.0, 0.0, 3.0])), '2: .*unit vector'),
    (lambda text: damaged(text, changed('up', [10 ** 400, 0, 1])), '2: '),
    (lambda text: damaged(text, changed('in_contact', [1, 0])), "2: 'in_contact' must be"),
    (lambda text: damaged(text, changed('in_contact', 'no')), "2: 'in_contact' must be"),
    (lambda text: damaged(text, changed('up_frame', 'tail')), "2: unknown frame 'tail'"),
    (lambda text: damaged(text, changed('name', [])), "2: 'name' is a list, not a string"),
])
def test_what_is_no_file_of_captures_gives_one_clear_error(log, true, make, problem):
    log.path.write_text(make(log.path.read_text()))
    with pytest.raises(ConfigurationError, match=problem) as error:
        CaptureLog(log.path, true.model)
    assert len(str(error.value)) < 1000
    assert 'move the file away' in str(error.value)


@pytest.mark.parametrize('key, of', [
    ('position_variance', 'positions'), ('torque_variance', 'torques'),
    ('wrench_variance', 'wrenches')])
@pytest.mark.parametrize('value', [-1e-9, 10 ** 309])
def test_a_variance_must_be_one(log, true, key, of, value):
    values = json.loads(log.path.read_text())
    values['captures'][0][key] = np.full(np.shape(values['captures'][0][of]), value,
                                         dtype=object).tolist()
    log.path.write_text(json.dumps(values))
    with pytest.raises(ConfigurationError, match=f'{key} .* not negative|too large'):
        CaptureLog(log.path, true.model)


def test_a_header_of_any_size_and_depth_is_shown_in_short(log, true):
    values = json.loads(log.path.read_text())
    for robot in (['x' * 50] * 10_000, {'x': [[[[[[['deep']]]]]]]}):
        log.path.write_text(json.dumps(values | {'robot': robot}))
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
