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
"""Stamps from a counter of milliseconds are even, monotonous, and on the computer's time."""

from biped_com_ros.core.unitree.stream import TickClock
import numpy as np
import pytest

BEGIN = 1_700_000_000_000_000_000
MS = 1_000_000


def delays(count, seed=0):
    """Return delays of a network, ns: 0.3 ms and more, with rare bursts of 20 ms."""
    rng = np.random.default_rng(seed)
    return (3e5 + 2e6 * rng.exponential(size=count)
            + 2e7 * (rng.random(count) < 0.02)).astype(int)


def stamps(clock, ticks, late, begin=BEGIN, rate=1.0):
    """Return the stamps of messages whose sender's clock runs at a rate."""
    return np.array([clock.stamp(tick % 2**32, begin + round(tick * MS / rate) + int(delay))
                     for tick, delay in zip(ticks, late)])


def test_stamps_are_even_although_messages_are_not():
    ticks = np.arange(0, 20_000, 2)
    found = stamps(TickClock(), ticks, delays(len(ticks)))
    arrivals = BEGIN + ticks * MS + delays(len(ticks))
    assert (np.diff(found) > 0).all()
    assert 1000.0 * np.diff(found)[2000:].std() < np.diff(arrivals)[2000:].std()
    error = found - (BEGIN + ticks * MS)
    assert 0.0 < error[2000:].mean() < 0.6e6
    assert (error > 0).all()  # never before it was sent


@pytest.mark.parametrize('rate', [
    1.0 - 1e-4, pytest.param(1.0 + 1e-4, marks=pytest.mark.thorough)])
def test_stamps_follow_a_clock_that_drifts(rate):
    ticks = np.arange(0, 200_000, 2)
    found = stamps(TickClock(), ticks, delays(len(ticks)), rate=rate)
    error = found - (BEGIN + ticks * MS / rate)
    assert np.abs(error[2000:]).max() < 1.5e6  # 20 ms without following
    assert (np.diff(found) > 0).all()


def test_a_first_message_that_is_late_does_not_turn_stamps_back():
    ticks, late = np.arange(0, 2000, 2), delays(1000)
    late[0] = 300 * MS
    found = stamps(TickClock(), ticks, late)
    assert (np.diff(found) >= MS).all()
    assert abs(found[-1] - BEGIN - ticks[-1] * MS) < MS


def test_the_counter_wraps_after_49_days():
    ticks = np.arange(2**32 - 100, 2**32 + 100, 2)
    clock = TickClock()
    found = stamps(clock, ticks, np.full(len(ticks), 1000))
    np.testing.assert_allclose(np.diff(found), 2 * MS)
    assert (clock.restarts, clock.jumps, clock.lost) == (0, 0, 0)


@pytest.mark.parametrize(('first', 'then', 'moved', 'counts'), [
    (500_000, 10, 600_000, (1, 0)),  # a restart of the robot
    (0, 100, -3_600_000, (0, 1))])  # this computer's clock is set
def test_a_restart_and_a_clock_that_is_set_are_followed_and_counted(first, then, moved, counts):
    clock = TickClock()
    before = stamps(clock, range(first, first + 100, 2), np.zeros(50))
    after = stamps(clock, range(then, then + 100, 2), np.zeros(50), begin=BEGIN + moved * MS)
    assert (clock.restarts, clock.jumps) == counts
    assert after[-1] == BEGIN + (moved + then + 98) * MS
    if clock.restarts:
        assert after[0] == BEGIN + 600_010 * MS and after[0] > before[-1]
        np.testing.assert_allclose(np.diff(after), 2 * MS)


@pytest.mark.parametrize('step', [1, 2, 5])
def test_missing_messages_are_counted_and_a_jitter_of_1_ms_is_no_loss(step):
    ticks = np.arange(0, 1000 * step, step)
    clock, steady = TickClock(), TickClock()
    stamps(clock, np.delete(ticks, [100, 300, 301, 302, 900]), np.zeros(995))
    assert clock.lost == 5
    jitter = np.random.default_rng(0).integers(0, 2, 1000)
    stamps(steady, np.arange(0, 2000, 2) + jitter, np.zeros(1000))
    assert steady.lost == 0


def test_a_repeated_counter_has_no_stamp():
    clock = TickClock()
    assert clock.stamp(5, BEGIN) == BEGIN
    assert clock.stamp(5, BEGIN + MS) is None
