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
"""Steps that are due, with a clock that does what it is told."""

from __future__ import annotations

from biped_com_ros.sim.pacing import Pacer
import pytest


class FakeClock:
    """Stands still unless it is set."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return FakeClock()


def total(pacer, clock, ticks, period):
    steps = 0
    for _ in range(ticks):
        clock.now += period
        steps += pacer.due()
    return steps


@pytest.mark.parametrize('factor', [0.25, 1.0, 3.0])
def test_simulated_time_keeps_up_with_the_clock(clock, factor):
    pacer = Pacer(0.002, factor, clock)
    steps = total(pacer, clock, 1000, 0.0031)
    assert steps * 0.002 == pytest.approx(3.1 * factor, abs=0.003)
    assert pacer.achieved == pytest.approx(factor, rel=0.01)
    assert pacer.lost == 0.0


def test_a_short_stall_is_caught_up(clock):
    pacer = Pacer(0.002, 1.0, clock)
    total(pacer, clock, 100, 0.002)
    clock.now += 0.05
    assert pacer.due() == 10  # No more than 20 ms at once.
    assert 100 + 10 + total(pacer, clock, 100, 0.002) == pytest.approx(225, abs=1)


def test_a_long_stall_is_given_up(clock):
    pacer = Pacer(0.002, 1.0, clock)
    clock.now += 5.0
    steps = pacer.due() + total(pacer, clock, 500, 0.002)
    assert steps == pytest.approx(550, abs=2)
    assert pacer.lost == pytest.approx(4.9)


def test_a_slow_computer_shows(clock):
    """Where a tick takes longer than what it simulates, the factor achieved falls."""
    pacer = Pacer(0.002, 1.0, clock)
    total(pacer, clock, 50, 0.04)
    total(pacer, clock, 50, 0.04)
    assert pacer.achieved == pytest.approx(0.5, rel=0.05)


def test_as_fast_as_possible(clock):
    pacer = Pacer(0.002, 0.0, clock)
    assert [pacer.due() for _ in range(3)] == [10, 10, 10]
    pacer.factor = 1.0
    clock.now += 0.002
    assert pacer.due() == 1
