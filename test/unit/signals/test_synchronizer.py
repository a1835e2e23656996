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
"""Sets of samples taken at the same instant, in whatever order they arrive."""

from __future__ import annotations

from biped_com_ros.core.signals.synchronizer import ApproximateSynchronizer, ReferenceSynchronizer
import numpy as np
import pytest

MS = 1_000_000


def run(sources, arrivals):
    """Feed (source, stamp in ms) whose value is the stamp; return the sets."""
    synchronizer, sets = ApproximateSynchronizer(sources), []
    for source, stamp in arrivals:
        if synchronizer.add(source, round(stamp * MS), stamp):
            sets.append(synchronizer.latest)
    return sets


def test_same_stamps_make_one_set_each():
    arrivals = [(source, t) for t in range(1, 6) for source in (2, 0, 1)]
    assert run(3, arrivals) == [[t] * 3 for t in range(1, 6)]


def test_a_source_that_comes_late_is_waited_for():
    """The third source always arrives one instant later than the others."""
    arrivals = []
    for t in range(1, 10):
        arrivals += [(0, t), (1, t)] + ([(2, t - 1)] if t > 1 else [])
    assert run(3, arrivals) == [[t] * 3 for t in range(1, 9)]


def test_a_burst_of_one_source_waits_for_the_others():
    arrivals = [(0, t) for t in range(1, 9)] + [(1, t) for t in range(1, 9)]
    assert run(2, arrivals) == [[t, t] for t in range(1, 9)]


def test_any_order_gives_all_sets_in_order_of_time():
    rng, arrivals = np.random.default_rng(1), []
    for t in range(1, 200, 5):
        block = [(source, t + i) for i in range(5) for source in range(3)]
        order = rng.permutation(3)  # each source in order, sources shuffled
        arrivals += [entry for source in order for entry in block if entry[0] == source]
    assert run(3, arrivals) == [[t] * 3 for t in range(1, 201)]


@pytest.mark.parametrize('shift', [0.5, 2.0, 4.9])
def test_a_constant_shift_of_under_half_a_period_is_one_instant(shift):
    arrivals = [(s, 10 * t + shift * s) for t in range(1, 50) for s in (0, 1)]
    sets = run(2, arrivals)
    assert len(sets) >= 46
    assert all(b - a == pytest.approx(shift) for a, b in sets)


def test_never_further_apart_than_half_a_period():
    rng = np.random.default_rng(2)
    stamps = [np.cumsum(rng.uniform(5.0, 15.0, 300)) for _ in range(3)]
    arrivals = sorted(((s, t) for s in range(3) for t in stamps[s]), key=lambda x: x[1])
    sets = run(3, arrivals)
    assert len(sets) > 50
    assert max(max(s) - min(s) for s in sets) < 7.0  # the periods are about 10
    assert all(np.all(np.diff(column) > 0.0) for column in zip(*sets))


def test_a_lost_sample_costs_one_set_and_pairs_nothing_wrong():
    arrivals = [(s, 10 * t) for t in range(1, 20) for s in (0, 1) if (t, s) != (10, 1)]
    assert run(2, arrivals) == [[10 * t] * 2 for t in range(1, 20) if t != 10]


def test_a_dead_source_stops_the_sets_until_it_is_back():
    arrivals = [(s, 10 * t) for t in range(1, 100) for s in (0, 1)
                if s == 0 or not 30 <= t < 70]
    assert run(2, arrivals) == [[10 * t] * 2 for t in range(1, 100) if not 30 <= t < 70]


def test_the_slowest_sets_the_pace():
    arrivals = []
    for t in range(1, 201):
        arrivals += [(0, 2 * t)] + ([(1, 2 * t)] if t % 5 == 0 else [])
    assert run(2, arrivals) == [[t, t] for t in range(10, 401, 10)]


def test_a_single_source_is_always_complete():
    assert run(1, [(0, 1), (0, 2)]) == [[1], [2]]


def test_a_clock_set_back_starts_anew():
    before = [(s, 1000 + t) for t in range(5) for s in (0, 1)]
    after = [(s, t) for t in range(1, 5) for s in (0, 1)]
    assert run(2, [*before, (0, 1005), *after])[5:] == [[t, t] for t in range(2, 5)]


def instants(arrivals, optional=(), others=1):
    """Feed (source, stamp in ms) whose value is the stamp; return the sets."""
    maker, sets = ReferenceSynchronizer([5 * MS] * others, optional), []
    for source, stamp in arrivals:
        sets += maker.add(source, round(stamp * MS), stamp)
    return sets


def test_every_sample_of_the_first_gets_the_nearest_of_the_others():
    arrivals = [(1, 10), (0, 12), (0, 14), (0, 16), (1, 20), (0, 20), (0, 24), (0, 26), (1, 30)]
    assert instants(arrivals) == [[12, 10], [14, 10], [16, 20], [20, 20], [24, 20], [26, 30]]


def test_equal_stamps_do_not_wait():
    maker = ReferenceSynchronizer([5 * MS] * 2)
    for source in (2, 0):
        assert not list(maker.add(source, MS, 1.0))
    assert len(list(maker.add(1, MS, 1.0))) == 1


def test_the_sets_depend_on_the_stamps_alone():
    rng = np.random.default_rng(4)
    stamps = [np.cumsum(rng.uniform(0.5, 1.5, 300) * period) for period in (2.0, 5.0, 3.0)]
    by_time = sorted(((s, t) for s in range(3) for t in stamps[s]), key=lambda x: x[1])
    late = sorted(((s, t) for s in range(3) for t in stamps[s]), key=lambda x: x[1] + 9 * x[0])
    shuffled = sorted(((s, t) for s in range(3) for t in stamps[s]),
                      key=lambda x: (x[1] // 15, -x[0]))
    sets = instants(by_time, others=2)
    assert len(sets) > 200
    assert sets == instants(late, others=2) == instants(shuffled, others=2)


def test_what_is_too_far_makes_no_set_but_is_left_out_where_it_may_be():
    arrivals = [(1, 10), (0, 10), (0, 16), (1, 30), (0, 30)]
    assert instants(arrivals) == [[10, 10], [30, 30]]
    assert instants(arrivals, optional=[True]) == [[10, 10], [16, None], [30, 30]]


def test_a_silent_source_is_waited_for_in_vain_and_then_not_any_more():
    arrivals = [(0, 10 * t) for t in range(1, 31)]
    assert instants(arrivals) == []
    sets = instants(arrivals, optional=[True])
    assert [first for first, _ in sets] == [10 * t for t in range(1, 31)]
    assert [second for _, second in sets] == [None] * 30
    back = instants([*arrivals, (1, 300), (0, 310), (1, 310)], optional=[True])
    assert back[-1] == [310, 310]


def test_a_clock_set_back_starts_instants_anew():
    before = [(s, 1000 + t) for t in range(5) for s in (0, 1)]
    after = [(s, t) for t in range(1, 5) for s in (0, 1)]
    assert instants([*before, *after])[5:] == [[t, t] for t in range(1, 5)]
    dead = [(0, t) for t in range(1, 400)]
    assert len(instants([*before, *dead], optional=[True])) == 5 + 399


def test_a_repeated_stamp_is_one_sample():
    assert instants([(0, 1), (0, 1), (1, 1), (1, 1)]) == [[1, 1]]
