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
"""The record of commands that outlives its process: content, lock, and files of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from biped_com_ros.nodes.gravity_compensation.command_record import CommandRecord
import numpy as np
import pytest

PARTICIPANT_PER_TEST = True  # see conftest.py

JOINTS = ('hip', 'knee', 'ankle')
EFFORTS = np.array([1.5, -2.25, 0.0])
CONTROLLER, OTHER = bytes(range(16)), bytes(range(100, 116))
KEY = '0 /effort_controller/commands'

WRITER = f"""
import sys
from pathlib import Path
from biped_com_ros.nodes.gravity_compensation.command_record import CommandRecord
record = CommandRecord({KEY!r}, {JOINTS!r}, Path(sys.argv[1]))
assert record.acquire()
record.subscribers = [bytes.fromhex({CONTROLLER.hex()!r})]
record.publisher = bytes.fromhex({OTHER.hex()!r})
record.efforts[...] = {EFFORTS.tolist()!r}
print('written', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """Return a process that commands."""
    process = subprocess.Popen(
        [sys.executable, '-c', WRITER, str(tmp_path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(path for path in sys.path if path)})
    assert process.stdout.readline() == 'written\n'
    yield process
    process.kill()
    process.communicate()


def record(tmp_path, joints=JOINTS, key=KEY):
    return CommandRecord(key, joints, tmp_path)


def test_what_a_killed_process_commanded_is_known_to_the_next_one(tmp_path, writer):
    successor = record(tmp_path)
    assert not successor.acquire()  # it lives
    assert not successor.efforts.any()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert successor.acquire()
    np.testing.assert_array_equal(successor.efforts, EFFORTS)
    assert successor.subscribers == {CONTROLLER} and successor.publisher == OTHER
    successor.release()
    again = record(tmp_path)
    assert again.acquire() and np.array_equal(again.efforts, EFFORTS)


def test_nothing_is_left_after_the_last_effort_was_zero(tmp_path):
    first = record(tmp_path)
    assert first.acquire()
    first.efforts[...] = EFFORTS
    second = record(tmp_path)
    assert not second.acquire()
    first.clear()
    first.release()
    assert not list(tmp_path.iterdir())
    assert second.acquire() and not second.efforts.any()


@pytest.mark.parametrize('joints', [('hip', 'ankle', 'knee'), ('hip', 'knee'), ()])
def test_commands_of_other_joints_are_not_used(tmp_path, joints):
    first = record(tmp_path)
    assert first.acquire()
    first.efforts[...], first.subscribers = EFFORTS, [CONTROLLER]
    first.release()
    second = record(tmp_path, joints)
    assert second.acquire()
    assert not second.efforts.any() and not second.subscribers


def test_each_topic_and_domain_has_its_own(tmp_path):
    first, second = record(tmp_path), record(tmp_path, key='1 /effort_controller/commands')
    assert first.acquire() and second.acquire()
    first.efforts[...] = EFFORTS
    assert not second.efforts.any()


def test_what_is_not_finite_is_not_used(tmp_path):
    first = record(tmp_path)
    assert first.acquire()
    first.efforts[...] = np.nan
    first.release()
    second = record(tmp_path)
    assert second.acquire() and not second.efforts.any()


@pytest.mark.parametrize('place', ['link', 'directory', 'missing'])
def test_a_file_that_cannot_be_used_is_reported_and_commands_go_on(tmp_path, place):
    """Others may write into the system's shared memory."""
    target = tmp_path / 'target'
    first = record(tmp_path)
    if place == 'link':
        target.write_bytes(b'precious')
        first.path.symlink_to(target)
    elif place == 'directory':
        first.path.mkdir()
    else:
        first = record(tmp_path / 'nowhere')
    assert first.acquire()
    assert str(first.path) in first.problem
    first.efforts[...], first.subscribers = EFFORTS, [CONTROLLER]
    first.release()
    assert place != 'link' or target.read_bytes() == b'precious'


def test_only_its_user_can_read_it(tmp_path):
    first = record(tmp_path)
    assert first.acquire()
    assert first.path.stat().st_mode & 0o777 == 0o600
    assert first.path.stat().st_size < 1024
