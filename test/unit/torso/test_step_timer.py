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
"""Time between updates by stamps and by a clock that ticks less often than they come."""

from __future__ import annotations

from biped_com_ros.core.torso.cycle import StepTimer
from hypothesis import given, strategies as st
import pytest

MS = 1_000_000
START = 5_000 * MS


@given(st.lists(st.tuples(st.integers(1, 30), st.lists(st.integers(0, 40), max_size=4)),
                min_size=1, max_size=50))
def test_looking_at_a_clock_that_is_behind_lets_no_time_pass(steps):
    """Steps are ms to the next stamp, and how far behind it a clock is when it is asked, ms."""
    elapsed, now, total = StepTimer(), START, 0.0
    elapsed.advance(now)
    for step, behind in steps:
        now += step * MS
        total += elapsed.advance(now)
        for late in behind:
            assert elapsed.time_since(now - late * MS) == pytest.approx(-1e-3 * late)
    assert total == pytest.approx(1e-9 * (now - START))


def test_a_stamp_that_is_not_later_is_no_update():
    elapsed = StepTimer()
    elapsed.advance(START)
    assert elapsed.advance(START) == elapsed.advance(START - 900 * MS) == 0.0
    assert elapsed.advance(START + 2 * MS) == pytest.approx(0.002)


def test_a_clock_that_ran_on_gives_how_late_the_next_update_is():
    elapsed = StepTimer()
    elapsed.advance(START)
    for _ in range(2):
        assert elapsed.time_since(START + 150 * MS) == pytest.approx(0.15)
    assert elapsed.advance(START + 150 * MS) == pytest.approx(0.15)


@pytest.mark.parametrize('first', [StepTimer.time_since, StepTimer.advance])
def test_time_goes_on_after_the_clock_was_set_back(first):
    elapsed = StepTimer()
    elapsed.advance(START)
    assert first(elapsed, 7 * MS) == 0.0
    assert elapsed.advance(9 * MS) == pytest.approx(0.002)
