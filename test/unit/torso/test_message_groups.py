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
"""Only sensors that have the stamps of the leading one, and arrive in time, are waited for."""

from __future__ import annotations

import itertools

from biped_com_ros.core.torso.cycle import MessageGroups, MIN_IN_STEP
from hypothesis import given, strategies as st
import pytest

MS = 1_000_000
PERIOD = 2 * MS
SHIFTS = 0, PERIOD, PERIOD // 3, -PERIOD
LEADER = 'leader'
ORDERS = list(itertools.permutations((0, 1, LEADER)))


class Replay:
    """
    Adds messages, and acts as a control cycle does: a group is done when no sensor is missing.

    Attributes
    ----------
    done
        Stamps of groups, each with the stamp of the message with which it was done.

    """

    def __init__(self):
        self.groups, self.done = MessageGroups(2), []

    def add(self, sensor, ns):
        groups = self.groups
        if sensor == LEADER:
            if groups.missing:
                self.done.append((groups.ns, LEADER))
            if not groups.start_group(ns):
                self.done.append((ns, LEADER))
        elif groups.add(sensor, ns) and not groups.missing:
            self.done.append((groups.ns, sensor))


@pytest.mark.parametrize('order', ORDERS, ids=str)
def test_in_step_the_last_one_does_it(order):
    replay, count = Replay(), 3 * MIN_IN_STEP
    for k in range(1, count + 1):
        for sensor in order:
            replay.add(sensor, k * PERIOD)
    assert [ns for ns, _ in replay.done] == [k * PERIOD for k in range(1, count + 1)]
    assert {sensor for _, sensor in replay.done[:MIN_IN_STEP]} == {LEADER}
    assert {sensor for _, sensor in replay.done[MIN_IN_STEP:]} == {order[-1]}
    assert replay.groups.is_in_step(0) and replay.groups.is_in_step(1)


@given(st.lists(st.tuples(st.sampled_from((0, 1, LEADER, LEADER)), st.integers(0, 3)),
                max_size=300), st.integers(0, 30))
def test_every_group_is_done_once_and_before_the_next(steps, regular):
    """Whatever comes, in whatever order, with whatever stamps; after a regular start."""
    replay, now, opened = Replay(), 0, []
    for sensor in (0, 1, LEADER) * regular:
        now += PERIOD if not sensor else 0
        replay.add(sensor, now)
        if sensor == LEADER:
            opened.append(now)
    for sensor, ahead in steps:
        if sensor == LEADER:
            now += PERIOD
            opened.append(now)
        replay.add(sensor, now if sensor == LEADER else now + SHIFTS[ahead])
    done = [ns for ns, _ in replay.done]
    if replay.groups.missing:
        assert opened[-1] == replay.groups.ns
        opened.pop()
    assert done == opened


@pytest.mark.parametrize('every, shift', [(2, 0), (5, 0), (1, PERIOD // 3), (1, -PERIOD)])
def test_other_rates_and_stamps_are_never_waited_for(every, shift):
    groups = MessageGroups(1)
    for k in range(1, 200):
        assert not groups.start_group(k * PERIOD)
        if not k % every:
            groups.add(0, k * PERIOD + shift)
        assert not groups.is_in_step(0)


@pytest.mark.parametrize('comes_late', [True, False])
def test_a_sensor_that_misses_a_group_is_not_waited_for_until_it_is_in_step(comes_late):
    groups, waited = MessageGroups(1), []
    for k in range(1, 4 * MIN_IN_STEP):
        waited.append(bool(groups.start_group(k * PERIOD)))
        if k == 2 * MIN_IN_STEP + 1 and comes_late:
            groups.add(0, (k - 1) * PERIOD)  # after the guide has gone on
        if k != 2 * MIN_IN_STEP:
            assert groups.add(0, k * PERIOD) == waited[-1]
    missed = 2 * MIN_IN_STEP
    assert waited[MIN_IN_STEP:missed] == [True] * MIN_IN_STEP
    assert waited[missed:missed + MIN_IN_STEP] == [False] * MIN_IN_STEP
    assert all(waited[missed + MIN_IN_STEP + 1:])


def test_a_sensor_with_a_later_stamp_is_missing_no_more():
    groups = MessageGroups(2)
    for k in range(1, MIN_IN_STEP + 2):
        groups.start_group(k * PERIOD)
        if k <= MIN_IN_STEP:
            groups.add(0, k * PERIOD)
            groups.add(1, k * PERIOD)
    assert groups.missing == 0b11
    assert not groups.add(0, MIN_IN_STEP * PERIOD)
    assert groups.add(0, (MIN_IN_STEP + 2) * PERIOD)
    assert groups.missing == 0b10
    groups.reset()
    assert not groups.missing and not groups.is_in_step(1)
