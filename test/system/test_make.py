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


def words(*arguments):
    """Return the words of the last command that make would run."""
    done = subprocess.run(['make', '--dry-run', '--no-print-directory', *arguments], cwd=ROOT,
                          text=True, capture_output=True, check=True, timeout=100.0)
    return shlex.split(re.sub(r'\\\n', ' ', done.stdout))


@pytest.mark.parametrize('arguments, expected', [
    # Names with a space are one argument.
    (('demo', 'ROBOT=my robots/a b.yaml'), 'robot:=my robots/a b.yaml'),
    (('torso', 'ROBOT=my robots/a b.yaml'), 'robot:=my robots/a b.yaml'),
    (('demo', 'CHAPTERS=measure, push'), 'chapters:=measure, push'),
    (('check', 'ROBOT=a b'), 'a b'),
    # Ctrl-C is blocked while Python starts: it would print 'Fatal Python error'.
    (('check',), '--block-interrupt -- python -m biped_com_ros.offline.check'),
    (('demo',), '--block-interrupt -- python -m biped_com_ros.launching.run --isolated'),
    (('torso',), '--block-interrupt -- python -m biped_com_ros.launching.run --isolated')])
def test_what_is_run(arguments, expected):
    found = words(*arguments)
    assert expected in found or f' {expected} ' in ' '.join(found)


@pytest.mark.parametrize('arguments, absent', [
    (('demo', 'NETWORK=1'), '--isolated'), (('torso', 'NETWORK=1'), '--isolated'),
    (('demo',), 'robot:=')])  # the launch file decides
def test_what_is_not_run(arguments, absent):
    assert not [word for word in words(*arguments) if word.startswith(absent)]


def test_ctrl_c_that_came_before_ends_check_without_a_traceback():
    def interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)

    done = subprocess.run(
        [sys.executable, '-m', 'biped_com_ros.offline.check', 'biped', '--picture', 'none'],
        cwd=ROOT, text=True, capture_output=True, timeout=60.0, preexec_fn=interrupt)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, '', '')


@pytest.mark.parametrize('argument', ["ROBOT=it's", "CHAPTERS=it's"])
def test_an_apostrophe_is_refused_before_it_confuses_the_shell(argument):
    with pytest.raises(subprocess.CalledProcessError) as raised:
        words('demo', argument)
    assert 'must not contain an apostrophe' in raised.value.stderr
