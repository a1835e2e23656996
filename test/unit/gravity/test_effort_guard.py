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
"""Clamp, rate limit, ramps, watchdog and IMU check: never too much, never too fast, never NaN."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.gravity.effort_guard import EffortGuard, SafetySettings, UprightCheck
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

LIMITS = np.array([100.0, 10.0, np.inf])
DT = 0.002
SETTINGS = SafetySettings(clamp=0.5, max_rate=2.0, start_time=1.0, stop_time=0.5, hold_time=0.1)
WANTED = np.array([30.0, -2.0, 1.0])


def run(guard, wanted, seconds):
    """Update for a while; return all efforts on the way."""
    return np.array([guard.update(wanted, DT).copy() for _ in range(round(seconds / DT))])


def test_starts_softly_and_arrives_exactly():
    guard = EffortGuard(LIMITS, SETTINGS)
    assert not run(guard, WANTED, 0.1).any()  # before the start
    assert guard.state == 'off'
    guard.start()
    way = run(guard, WANTED, 0.5)
    assert guard.state == 'starting'
    np.testing.assert_allclose(way[-1], [15.0, -1.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(run(guard, WANTED, 0.6)[-1], [30.0, -2.0, 0.0])
    assert guard.state == 'on'


def test_stops_softly_and_is_then_idle():
    guard = EffortGuard(LIMITS, SETTINGS)
    guard.start()
    run(guard, WANTED, 2.0)
    guard.stop()
    way = run(guard, WANTED, 0.25)
    assert guard.state == 'stopping' and not guard.idle
    assert np.abs(np.diff(way[:, 0])).max() <= 30.0 * DT / 0.5 + 1e-9
    assert not run(guard, WANTED, 0.5)[-1].any()
    assert guard.idle and guard.state == 'off'


def test_holds_then_lets_go_when_nothing_comes():
    guard = EffortGuard(LIMITS, SETTINGS)
    guard.start()
    run(guard, WANTED, 2.0)
    way = run(guard, None, 0.09)
    np.testing.assert_allclose(way[:, 0], 30.0)
    assert guard.state == 'holding'
    assert not run(guard, None, 1.0)[-1].any()
    assert guard.state == 'stopping'
    run(guard, WANTED, 2.0)
    assert guard.efforts[0] == pytest.approx(30.0)


def test_a_pause_of_the_loop_is_no_licence_to_jump():
    guard = EffortGuard(LIMITS, SETTINGS)
    guard.start()
    guard.update(WANTED, 100.0)
    assert abs(guard.efforts).max() <= 2.0 * 100.0 * SETTINGS.max_step


def test_clamps_and_says_so():
    guard = EffortGuard(LIMITS, SETTINGS)
    guard.start()
    way = run(guard, np.array([1e6, 4.0, 1.0]), 3.0)
    np.testing.assert_allclose(way[-1], [50.0, 4.0, 0.0])
    assert guard.saturated.tolist() == [True, False, True]


def test_joints_without_limit_need_one():
    guard = EffortGuard(LIMITS, SafetySettings(unlimited=20.0, start_time=0.1))
    guard.start()
    assert run(guard, WANTED, 1.0)[-1, 2] == pytest.approx(1.0)


def test_groups_ramp_in_and_out():
    guard = EffortGuard(LIMITS, SETTINGS)
    guard.start()
    run(guard, WANTED, 2.0)
    guard.enabled = np.array([False, True, True])
    way = run(guard, WANTED, 1.0)
    assert way[0, 0] > 29.0 and way[-1, 0] == 0.0 and way[-1, 1] == -2.0


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
EVENTS = st.lists(st.tuples(
    st.sampled_from(['wanted', 'silence', 'start', 'stop', 'enable', 'disable']),
    st.lists(NUMBERS, min_size=3, max_size=3), st.floats(-1.0, 1.0)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(EVENTS)
def test_whatever_happens_efforts_are_finite_bounded_and_slow(events):
    guard = EffortGuard(LIMITS, SETTINGS)
    before = guard.efforts.copy()
    for kind, values, dt in events:
        if kind == 'start':
            guard.start()
        elif kind == 'stop':
            guard.stop()
        elif kind in ('enable', 'disable'):
            guard.enabled = np.full(3, kind == 'enable')
        with np.errstate(all='ignore'):
            efforts = guard.update(np.array(values) if kind == 'wanted' else None, dt).copy()
        assert np.isfinite(efforts).all()
        assert (np.abs(efforts) <= guard.bounds + 1e-12).all()
        allowed = 2.0 * np.where(np.isfinite(LIMITS), LIMITS, 0.0) * min(max(dt, 0.0), 0.01)
        assert (np.abs(efforts - before) <= allowed + 1e-12).all()
        before = efforts


@pytest.mark.parametrize('size', [1e-3, 0.03, 1.0])
def test_efforts_are_those_of_plain_clamping_and_limiting(size):
    """Small changes go a shorter way, which must not show: also near the clamp, and off it."""
    rng, guard = np.random.default_rng(4), EffortGuard(LIMITS, SETTINGS)
    guard.start()
    run(guard, 0.0 * WANTED, 1.5)
    limits = np.where(np.isfinite(LIMITS), LIMITS, 0.0)
    wanted, expected, clamped = WANTED * [1.6, 2.4, 0.0], guard.efforts.copy(), 0
    for _ in range(4000):
        wanted = wanted + rng.normal(size=3) * limits * size * 2.0 * DT
        wanted -= 0.002 * (wanted - np.array([50.0, -5.0, 0.0]))  # drawn to the clamp
        free = np.clip(wanted, -0.5 * limits, 0.5 * limits)
        expected = expected + np.clip(free - expected, -2.0 * limits * DT, 2.0 * limits * DT)
        clamped += (free != wanted).any()
        np.testing.assert_allclose(guard.update(wanted, DT), expected, rtol=0.0, atol=1e-12)
    assert 200 < clamped < 3800


@pytest.mark.parametrize('values', (
    {'clamp': 0.0}, {'clamp': 1.5}, {'max_rate': -1.0}, {'start_time': 0.0},
    {'stop_time': float('nan')}, {'hold_time': -0.1}, {'unlimited': -1.0}, {'max_step': 0.0}))
def test_nonsense_is_refused(values):
    with pytest.raises(ConfigurationError, match='effort safety'):
        SafetySettings(**values)


def up(tilt):
    return np.array([np.sin(tilt), 0.0, np.cos(tilt)])


def test_upside_down_is_not_believed():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert check.update(up(0.9), 0)
    check.reset()
    assert not check.update(up(3.1), 0)
    assert 'tilted by 178 deg' in check.problem


def test_jump_is_not_believed_until_it_settles():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert check.update(up(0.0), 0)
    assert check.update(up(0.01), 2_000_000)
    assert not check.update(up(0.3), 4_000_000)
    assert 'jumped by 16.6 deg' in check.problem
    assert not check.update(up(0.3), 400_000_000)
    assert check.update(up(0.3), 600_000_000)


def test_fast_but_possible_motion_is_believed():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert all(check.update(up(0.5 * np.sin(15.0 * 0.002 * i)), 2_000_000 * i)
               for i in range(500))
