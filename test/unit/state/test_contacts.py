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
"""Contacts of messages that arrive early, late, without stamps, or no more."""

from types import SimpleNamespace

from biped_com_ros.core.state.contacts import ContactHistory
import pytest

MS = 1_000_000
LEFT, RIGHT, BOTH = (True, False), (False, True), (True, True)


@pytest.fixture
def clock():
    """Return a monotonic clock that a test sets."""
    return SimpleNamespace(now=100.0)


@pytest.fixture
def history(clock):
    return ContactHistory(0.5, lambda: clock.now)


def test_contacts_hold_from_their_stamp_until_the_next(history):
    for ms, contacts in ((10, LEFT), (20, BOTH), (30, RIGHT)):
        history.add(ms * MS, contacts)
    assert [history.at(ms * MS) for ms in (5, 10, 19, 20, 29, 30, 400)] == [
        LEFT, LEFT, LEFT, BOTH, BOTH, RIGHT, RIGHT]


def test_the_time_of_a_late_change_is_kept_until_it_is_used(history):
    history.add(10 * MS, LEFT)
    history.revised_ns = None
    history.add(20 * MS, LEFT)
    assert history.revised_ns is None, 'nothing changed'
    history.add(30 * MS, BOTH)
    history.add(40 * MS, RIGHT)
    assert history.revised_ns == 30 * MS


def test_nothing_is_known_before_the_first_message_and_after_the_timeout(history, clock):
    assert history.at(0) is None
    history.add(10 * MS, LEFT)
    clock.now += 0.6
    assert history.at(500 * MS) == LEFT, 'recorded stamps go on slowly'
    assert history.at(511 * MS) is None
    clock.now -= 0.3
    assert history.at(511 * MS) == LEFT, 'stamps jump ahead of the clock'


def test_contacts_of_a_dead_source_are_unknown_after_the_clock_was_set_back(history, clock):
    history.add(9000 * MS, LEFT)
    clock.now += 0.6
    assert history.at(8600 * MS) == LEFT
    assert history.at(8400 * MS) is None


def test_after_the_clock_was_set_back_the_last_contacts_hold(history, clock):
    history.add(9000 * MS, LEFT)
    history.add(9010 * MS, RIGHT)
    history.reset()
    assert history.at(10 * MS) == RIGHT and history.revised_ns is None
    history.add(20 * MS, LEFT)
    assert history.at(10 * MS) == RIGHT and history.at(20 * MS) == LEFT
    history.add(15 * MS, BOTH)  # set back once more
    assert history.at(10 * MS) == BOTH
