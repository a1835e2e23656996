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
"""The log of a launch: complete when the launch is killed, kept for a while, never in the way."""

import errno
import os
from pathlib import Path
import sys

from biped_com_ros.core.files import KEPT_DAYS, remove_old_directories
from biped_com_ros.launching import run
from biped_com_ros.launching.console import Console, LOG_DIRECTORY, new_log_directory
import pytest

DAY = 86400.0


@pytest.fixture
def console(tmp_path, monkeypatch):
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path))
    return Console()


def test_a_line_is_in_the_log_at_once(console):
    console.line('node-1', 'the last words')
    assert console.log_file.read_text() == '[node-1] the last words\n'


def test_a_full_disk_is_reported_once_and_output_goes_on(capsys, console):
    console.close()
    console._log = open('/dev/full', 'w', buffering=1, encoding='utf-8')
    console._stream = sys.stdout
    for text in ('one', 'two', 'three'):
        console.line('node-1', text)
    console.close()
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith('[node-1]')] == [
        '[node-1] one', '[node-1] two', '[node-1] three']
    warning, = (line for line in printed if 'WARNING' in line)
    assert str(console.log_file) in warning and 'No space left on device' in warning


def test_only_old_logs_of_launches_are_removed(tmp_path):
    names = ('2026-01-02-03-04-05-123456-launch-77', '2026-02-02-03-04-05-123456-launch-78',
             '2026-01-02-03-04-05-123456-ubuntu-79', 'mine')
    now = 1e9
    for name, age in zip(names, (KEPT_DAYS + 1.0, KEPT_DAYS - 1.0, 100.0, 100.0)):
        log = tmp_path / name / 'launch.log'
        log.parent.mkdir()
        log.write_text('')
        for path in (log, log.parent):
            os.utime(path, (now - age * DAY, now - age * DAY))
    remove_old_directories(tmp_path, LOG_DIRECTORY, now)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_where_home_cannot_be_written_the_log_is_a_temporary_one(monkeypatch, tmp_path):
    monkeypatch.delenv('ROS_LOG_DIR', raising=False)
    monkeypatch.setenv('ROS_HOME', '/proc/no_home')
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    console = Console()
    assert console.log_file.is_relative_to(tmp_path)


def test_the_log_file_is_readable_by_its_owner_only(console):
    """The page prints its token, which the launch logs."""
    console.line('viewer-1', 'Open http://10.0.0.1:8080/?token=secret', visible=False)
    assert 'token=secret' in console.log_file.read_text()
    assert console.log_file.stat().st_mode & 0o777 == 0o600


def test_a_user_without_a_home_has_a_temporary_log(monkeypatch, tmp_path):
    """As a container gives a number that no user has."""
    def homeless():
        raise RuntimeError('Could not determine home directory.')

    monkeypatch.setattr(Path, 'home', homeless)
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    assert new_log_directory({}).is_relative_to(tmp_path)
    own = tmp_path / 'own'
    assert new_log_directory({'ROS_HOME': str(own)}).parent == own / 'log'
    assert new_log_directory({'ROS_LOG_DIR': str(own)}).parent == own


@pytest.mark.parametrize('call', ['tempfile.mkdtemp', 'os.fsync'])
def test_a_disk_that_was_full_before_the_launch_is_named(call, monkeypatch, tmp_path, capsys):
    """There is room neither for a directory, nor for the file of parameters."""
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(call, full)
    assert run.main(['--dry-run', 'simulation', 'robot:=biped']) == 2
    line, = capsys.readouterr().err.splitlines()
    assert 'No space left on device; free space on the disk' in line
