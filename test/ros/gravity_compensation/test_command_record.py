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

from biped_com_ros.nodes.gravity_compensation.command_takeover import CommandRecord
import numpy as np
import pytest

JOINTS = ('hip', 'knee', 'ankle')
EFFORTS = np.array([1.5, -2.25, 0.0])
CONTROLLER, OTHER = bytes(range(16)), bytes(range(100, 116))
KEY = '0 /effort_controller/commands'


@pytest.fixture
def first(tmp_path):
    """Return a record of commands that are applied."""
    first = CommandRecord(KEY, JOINTS, tmp_path)
    assert first.acquire()
    first.efforts[...], first.subscribers, first.publisher = EFFORTS, [CONTROLLER], OTHER
    return first


def test_what_one_commanded_is_known_to_the_next_one(tmp_path, first):
    """That it survives a kill is shown in test/realtime."""
    successor = CommandRecord(KEY, JOINTS, tmp_path)
    assert not successor.acquire()  # the first one lives
    assert not successor.efforts.any()
    first.release()
    assert successor.acquire()
    np.testing.assert_array_equal(successor.efforts, EFFORTS)
    assert successor.subscribers == {CONTROLLER} and successor.publisher == OTHER
    successor.release()
    again = CommandRecord(KEY, JOINTS, tmp_path)
    assert again.acquire() and np.array_equal(again.efforts, EFFORTS)


def test_nothing_is_left_after_the_last_effort_was_zero(tmp_path, first):
    second = CommandRecord(KEY, JOINTS, tmp_path)
    assert not second.acquire()
    first.clear()
    first.release()
    assert not list(tmp_path.iterdir())
    assert second.acquire() and not second.efforts.any()


@pytest.mark.parametrize('joints', [('hip', 'ankle', 'knee'), ('hip', 'knee'), ()])
def test_commands_of_other_joints_are_not_used(tmp_path, first, joints):
    first.release()
    second = CommandRecord(KEY, joints, tmp_path)
    assert second.acquire()
    assert not second.efforts.any() and not second.subscribers


def test_what_is_not_finite_is_not_used(tmp_path, first):
    first.efforts[...] = np.nan
    first.release()
    second = CommandRecord(KEY, JOINTS, tmp_path)
    assert second.acquire() and not second.efforts.any()


def test_each_topic_and_domain_has_its_own(tmp_path, first):
    second = CommandRecord('1 /effort_controller/commands', JOINTS, tmp_path)
    assert second.acquire()
    assert not second.efforts.any()


@pytest.mark.parametrize('place', ['link', 'directory', 'missing'])
def test_a_file_that_cannot_be_used_is_reported_and_commands_go_on(tmp_path, place):
    """Others may write into the system's shared memory."""
    target = tmp_path / 'target'
    first = CommandRecord(KEY, JOINTS, tmp_path / 'nowhere' if place == 'missing' else tmp_path)
    if place == 'link':
        target.write_bytes(b'precious')
        first.path.symlink_to(target)
    elif place == 'directory':
        first.path.mkdir()
    assert first.acquire()
    assert str(first.path) in first.problem
    first.efforts[...], first.subscribers = EFFORTS, [CONTROLLER]
    first.release()
    assert place != 'link' or target.read_bytes() == b'precious'


def test_only_its_user_can_read_it(first):
    assert first.path.stat().st_mode & 0o777 == 0o600
    assert first.path.stat().st_size < 1024
