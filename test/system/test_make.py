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
"""What `make` runs, as `make --dry-run` shows it."""

from __future__ import annotations

from pathlib import Path
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not shutil.which('make'), reason='there is no make')


def words(*arguments: str) -> list[str]:
    """Return the words of the last command that make would run."""
    done = subprocess.run(['make', '--dry-run', '--no-print-directory', *arguments], cwd=ROOT,
                          text=True, capture_output=True, check=True, timeout=30.0)
    return shlex.split(re.sub(r'\\\n', ' ', done.stdout))


@pytest.mark.parametrize('target', ['demo', 'torso'])
def test_a_robot_file_with_a_space_is_one_argument(target: str) -> None:
    assert 'robot:=my robots/a b.yaml' in words(target, 'ROBOT=my robots/a b.yaml')


def test_a_robot_file_with_a_space_is_one_argument_of_check() -> None:
    found = words('check', 'ROBOT=a b')
    assert found[found.index('biped_com_ros.offline.check') + 1] == 'a b'


def test_ctrl_c_is_blocked_while_the_python_of_check_starts() -> None:
    """It would print 'Fatal Python error'."""
    assert '--block-interrupt' in words('check')


def test_ctrl_c_that_came_before_ends_check_without_a_traceback() -> None:
    def interrupt() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)

    done = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.offline.check', 'biped', '--picture', 'none'],
        cwd=ROOT, text=True, capture_output=True, timeout=60.0, preexec_fn=interrupt)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, '', '')


@pytest.mark.parametrize('argument', ["ROBOT=it's", "CHAPTERS=it's"])
def test_an_apostrophe_is_refused_before_it_confuses_the_shell(argument: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        words('demo', argument)
    assert 'must not contain an apostrophe' in raised.value.stderr


def test_chapters_with_spaces_are_one_argument() -> None:
    assert 'chapters:=measure, push' in words('demo', 'CHAPTERS=measure, push')


def test_without_a_robot_the_launch_file_decides() -> None:
    assert not [word for word in words('demo') if word.startswith('robot:=')]
