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
"""Who is waited for: only sensors whose stamps are those of the guide, and that come in time."""

from __future__ import annotations

import itertools

from biped_com_ros.core.torso.message_groups import MessageGroups, MIN_IN_STEP
from hypothesis import given, strategies as st
import pytest

MS = 1_000_000
PERIOD = 2 * MS
SHIFTS = 0, PERIOD, PERIOD // 3, -PERIOD
GUIDE = 'guide'
ORDERS = list(itertools.permutations((0, 1, GUIDE)))


class Replay:
    """
    Hands messages over, and acts as a node does: an instant is done when nobody is missing.

    Attributes
    ----------
    done
        Stamps of instants, each with the stamp of the message with which it was done.

    """

    def __init__(self):
        self.instants, self.done = MessageGroups(2), []

    def take(self, who, ns):
        instants = self.instants
        if who == GUIDE:
            if instants.missing:
                self.done.append((instants.ns, GUIDE))
            if not instants.start_group(ns):
                self.done.append((ns, GUIDE))
        elif instants.add(who, ns) and not instants.missing:
            self.done.append((instants.ns, who))


@pytest.mark.parametrize('order', ORDERS, ids=str)
def test_in_step_the_last_one_does_it(order):
    replay, count = Replay(), 3 * MIN_IN_STEP
    for k in range(1, count + 1):
        for who in order:
            replay.take(who, k * PERIOD)
    assert [ns for ns, _ in replay.done] == [k * PERIOD for k in range(1, count + 1)]
    assert {who for _, who in replay.done[:MIN_IN_STEP]} == {GUIDE}
    assert {who for _, who in replay.done[MIN_IN_STEP:]} == {order[-1]}
    assert replay.instants.is_in_step(0) and replay.instants.is_in_step(1)


@given(st.lists(st.tuples(st.sampled_from((0, 1, GUIDE, GUIDE)), st.integers(0, 3)),
                max_size=300), st.integers(0, 30))
def test_every_instant_is_done_once_and_before_the_next(steps, regular):
    """Whatever comes, in whatever order, with whatever stamps; after a regular start."""
    replay, now, opened = Replay(), 0, []
    for who in (0, 1, GUIDE) * regular:
        now += PERIOD if not who else 0
        replay.take(who, now)
        if who == GUIDE:
            opened.append(now)
    for who, ahead in steps:
        if who == GUIDE:
            now += PERIOD
            opened.append(now)
        replay.take(who, now if who == GUIDE else now + SHIFTS[ahead])
    done = [ns for ns, _ in replay.done]
    if replay.instants.missing:
        assert opened[-1] == replay.instants.ns
        opened.pop()
    assert done == opened


@pytest.mark.parametrize('every, shift', [(2, 0), (5, 0), (1, PERIOD // 3), (1, -PERIOD)])
def test_other_rates_and_stamps_are_never_waited_for(every, shift):
    instants = MessageGroups(1)
    for k in range(1, 200):
        assert not instants.start_group(k * PERIOD)
        if not k % every:
            instants.add(0, k * PERIOD + shift)
        assert not instants.is_in_step(0)


@pytest.mark.parametrize('comes_late', [True, False])
def test_who_lets_an_instant_pass_is_not_waited_for_until_it_is_in_step_again(comes_late):
    instants, waited = MessageGroups(1), []
    for k in range(1, 4 * MIN_IN_STEP):
        waited.append(bool(instants.start_group(k * PERIOD)))
        if k == 2 * MIN_IN_STEP + 1 and comes_late:
            instants.add(0, (k - 1) * PERIOD)  # after the guide has gone on
        if k != 2 * MIN_IN_STEP:
            assert instants.add(0, k * PERIOD) == waited[-1]
    missed = 2 * MIN_IN_STEP
    assert waited[MIN_IN_STEP:missed] == [True] * MIN_IN_STEP
    assert waited[missed:missed + MIN_IN_STEP] == [False] * MIN_IN_STEP
    assert all(waited[missed + MIN_IN_STEP + 1:])


def test_who_tells_of_a_later_instant_is_missing_no_more():
    instants = MessageGroups(2)
    for k in range(1, MIN_IN_STEP + 2):
        instants.start_group(k * PERIOD)
        if k <= MIN_IN_STEP:
            instants.add(0, k * PERIOD)
            instants.add(1, k * PERIOD)
    assert instants.missing == 0b11
    assert not instants.add(0, MIN_IN_STEP * PERIOD)
    assert instants.add(0, (MIN_IN_STEP + 2) * PERIOD)
    assert instants.missing == 0b10
    instants.reset()
    assert not instants.missing and not instants.is_in_step(1)
