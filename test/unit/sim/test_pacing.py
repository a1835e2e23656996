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
"""Steps that are due, with a clock and commands under the control of the test."""

from biped_com_ros.sim.pacing import CATCH_UP_FACTOR, MAX_LAG, Pacer, PATIENCE, ReadingRate
import numpy as np
import pytest

DT, TIMEOUT = 0.002, 0.1


class PacerBench:
    """A pacer with a simulated clock, called after each of its periods."""

    def __init__(self, factor=1.0, timeout=TIMEOUT):
        self.now = 100.0
        self.pacer = Pacer(DT, factor, timeout, lambda: self.now)
        #: When each step was taken.
        self.steps = []

    def steps_due(self):
        due = self.pacer.due()
        self.steps += due * [self.now]
        return due

    def run(self, seconds, respond=None, every=1):
        """Run for a while and return the steps; a command answers every so many of them."""
        end, before = self.now + seconds, len(self.steps)
        while self.now < end - 1e-9:
            self.now += self.pacer.period
            for step in range(len(self.steps) + 1, len(self.steps) + self.steps_due() + 1):
                if respond is not None and step % every == 0:
                    respond()
        return len(self.steps) - before


@pytest.mark.parametrize('factor', [0.25, 1.0, 3.0, 100.0])
def test_simulated_time_keeps_up_with_the_clock(factor):
    bench = PacerBench(factor)
    assert bench.run(3.1) * DT == pytest.approx(3.1 * factor, abs=0.001 + 0.001 * factor)
    assert bench.pacer.achieved == pytest.approx(factor, rel=0.01)
    assert bench.pacer.lost == bench.pacer.waited == 0.0


def test_a_timer_that_is_early_or_late_is_still_called_once_per_step():
    bench = PacerBench()
    for tick in range(500):
        assert bench.pacer.period == DT
        bench.now += DT + (4e-4 if tick % 2 else -4e-4)
        assert bench.steps_due() == 1


@pytest.mark.parametrize('stall', [0.004, 0.03, 0.09])
def test_a_short_stall_is_caught_up_step_by_step(stall):
    bench = PacerBench()
    bench.run(0.2)
    bench.now += stall
    assert bench.run(0.2) == pytest.approx((0.2 + stall) / DT, abs=1)
    # Nodes have time to answer each reading.
    assert np.diff(bench.steps).min() >= 0.8 * DT / CATCH_UP_FACTOR
    assert bench.pacer.lost == 0.0
    assert bench.pacer.period == DT


def test_most_of_a_long_stall_is_lost():
    bench = PacerBench()
    bench.now += 5.0
    assert bench.run(1.0) == pytest.approx((1.0 + MAX_LAG) / DT, abs=2)
    assert bench.pacer.lost == pytest.approx(5.0 - MAX_LAG, abs=2 * DT)
    assert np.diff(bench.steps).min() >= 0.8 * DT / CATCH_UP_FACTOR


class SlowBench(PacerBench):
    """A computer that takes as long as `cost` for a step, and does nothing else meanwhile."""

    cost = 0.0

    def steps_due(self):
        due = super().steps_due()
        self.now += max(due * self.cost - self.pacer.period, 0.0)
        return due


def test_a_slow_computer_shows_and_is_left_time_for_others():
    """It could simulate 0.5 of real time, and does so at first."""
    bench = SlowBench()
    bench.cost = 2.0 * DT
    bench.run(2.5)
    assert bench.pacer.achieved == pytest.approx(0.5, rel=0.05) and bench.pacer.lost > 0.5
    bench.run(3.0)
    lost, begun, start = bench.pacer.lost, len(bench.steps), bench.now
    bench.run(30.0)
    achieved = (len(bench.steps) - begun) * DT / (bench.now - start)
    assert 0.7 * 0.5 < achieved < 0.9 * 0.5
    # What was not simulated is lost.
    assert bench.pacer.lost - lost == pytest.approx(
        (1.0 - achieved) * (bench.now - start), abs=MAX_LAG)
    bench.cost = 0.0
    bench.run(25.0)
    assert bench.pacer.achieved == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(('least', 'rates'), [
    (100.0, [500.0, 250.0, 100.0, 100.0]), (200.0, [500.0, 250.0, 250.0]), (0.0, [500.0, 500.0]),
    (500.0, [500.0, 500.0])])
def test_readings_become_fewer_on_a_computer_that_is_too_slow(least, rates):
    reading = ReadingRate(500.0, least)
    for rate, next_rate in zip(rates, rates[1:]):
        assert reading.rate == rate and 500.0 / reading.stride == rate
        assert not any(reading.update(0.3) for _ in range(PATIENCE - 1))
        assert reading.update(0.3) == (next_rate != rate)
        assert reading.rate == next_rate


def test_a_slow_second_now_and_then_does_not_count():
    reading = ReadingRate(500.0, 100.0)
    assert not any(reading.update(0.9 if second % PATIENCE == 0 else 0.3)
                   for second in range(10 * PATIENCE))
    assert reading.rate == 500.0


def test_a_pause_slows_down_for_seconds_only():
    bench = PacerBench()
    bench.run(3.0)
    bench.now += 60.0
    bench.run(1.0)
    assert bench.pacer.pace >= 0.5
    bench.run(15.0)
    assert bench.pacer.pace == 1.0


def test_bursts_of_other_programs_do_not_add_up():
    """Each takes 2 s, of every 15; the rest of the time nothing is slow."""
    bench = PacerBench()
    bench.run(3.0)
    begun, start = len(bench.steps), bench.now
    for _ in range(20):
        for _ in range(2):
            bench.now += 0.9
            bench.run(0.1)
        bench.run(13.0)
    achieved = (len(bench.steps) - begun) * DT / (bench.now - start)
    assert achieved > 0.5  # of 0.87 that the bursts leave


def test_as_fast_as_possible():
    bench = PacerBench(factor=0.0)
    assert [bench.steps_due() for _ in range(3)] == [10, 10, 10]
    assert bench.pacer.period == DT
    bench.pacer.factor = 1.0
    bench.now += DT
    assert bench.steps_due() == 1
    assert bench.run(1.0) == pytest.approx(1.0 / DT, abs=1)


@pytest.mark.parametrize('every, most', [(1, 3), (2, 5), (5, 11)])
@pytest.mark.parametrize('factor', [0.0, 1.0, 2.0])
def test_steps_wait_for_regular_commands(factor, every, most):
    """No more than twice the usual steps, and one, are taken on one command."""
    bench = PacerBench(factor)
    stream = bench.pacer.add_stream()
    bench.run(1.0, stream.on_command, every)
    stream.on_command()
    assert bench.pacer.waited == 0.0
    assert most - 1 <= bench.run(0.09) <= most
    assert bench.pacer.is_waiting
    assert bench.pacer.waited == pytest.approx(0.09 - most * DT, abs=0.03)
    stream.on_command()
    assert bench.steps_due() >= 1  # at once
    # What was missed meanwhile is caught up, and all is as before.
    assert bench.run(0.5, stream.on_command, every) > 0.5 * factor / DT
    assert bench.pacer.lost == 0.0


def test_late_commands_do_not_change_the_mean_distance():
    """An overloaded computer: for a second every answer comes 7 ms late, or not at all."""
    bench = PacerBench()
    stream = bench.pacer.add_stream()
    bench.run(1.0, stream.on_command)
    on_one_command = []
    for tick in range(150):
        on_one_command.append(bench.run(0.007))
        if tick % 3:
            stream.on_command()
    assert max(on_one_command) <= 3
    assert np.mean(on_one_command) < 3.0
    bench.run(0.5, stream.on_command)
    assert bench.run(0.09) <= 3


def test_a_lower_rate_of_commands_is_adopted():
    bench = PacerBench()
    stream = bench.pacer.add_stream()
    bench.run(1.0, stream.on_command)
    bench.run(2.0, stream.on_command, 5)  # times out a few times before the mean adapts
    waited = bench.pacer.waited
    assert bench.run(2.0, stream.on_command, 5) == pytest.approx(2.0 / DT, abs=1)
    assert bench.pacer.waited == waited
    assert 5 < bench.run(0.09) <= 11


def test_steps_wait_for_two_streams():
    bench = PacerBench()
    fast, slow = bench.pacer.add_stream(), bench.pacer.add_stream()
    for _ in range(30):
        bench.run(10 * DT, fast.on_command)
        slow.on_command()
    assert bench.run(0.09, fast.on_command) == 21
    slow.on_command()
    assert bench.run(0.09) == 3


def test_commands_that_end_are_waited_for_once():
    bench = PacerBench()
    stream = bench.pacer.add_stream()
    bench.run(1.0, stream.on_command)
    begun = len(bench.steps)
    # All of it is caught up.
    assert bench.run(1.0) == pytest.approx(1.0 / DT, abs=2)
    gaps = np.diff(bench.steps[begun:])
    assert gaps.max() == pytest.approx(TIMEOUT, abs=DT) and (gaps > 2.1 * DT).sum() == 1
    # Later commands are waited for once they are regular.
    bench.run(1.0, stream.on_command)
    assert bench.run(0.09) <= 3


@pytest.mark.parametrize('every, timeout, seconds', [
    (11, TIMEOUT, 15.0), (300, TIMEOUT, 15.0), (1, 0.0, 15.0), (1, TIMEOUT, 10 * DT)])
def test_rare_or_few_commands_are_not_waited_for_nor_any_without_a_timeout(
        every, timeout, seconds):
    bench = PacerBench(timeout=timeout)
    stream = bench.pacer.add_stream()
    bench.run(seconds, stream.on_command, every)
    assert bench.run(0.09) == pytest.approx(0.09 / DT, abs=1)
    assert bench.pacer.waited == 0.0
