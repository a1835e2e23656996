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
"""Ramps, rate limit and clamp: never too much, never too fast, never NaN."""

import copy
from dataclasses import replace
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.gravity.effort_limiter import (
    ACTIVE, EffortLimiter, HOLDING, IDLE, RAMPING, SafetySettings, STARTING, WAITING)
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

LIMITS = np.array([100.0, 10.0, np.inf])
DT = 0.002
SETTINGS = SafetySettings(clamp=0.5, max_rate=2.0, start_time=1.0, stop_time=0.5, hold_time=0.1)
TARGET = np.array([30.0, -2.0, 1.0])


def run(guard, target, seconds):
    """Update for a while; return all efforts on the way."""
    return np.array([guard.update(target, DT).copy() for _ in range(round(seconds / DT))])


@pytest.fixture
def guard():
    """Return a guard that is about to start."""
    guard = EffortLimiter(LIMITS, SETTINGS)
    guard.start()
    return guard


@pytest.fixture
def active(guard):
    """Return a guard whose efforts are full."""
    run(guard, TARGET, 2.0)
    return guard


def test_starts_softly_and_arrives_exactly():
    guard = EffortLimiter(LIMITS, SETTINGS)
    assert not run(guard, TARGET, 0.1).any()  # before the start
    assert guard.state == IDLE
    guard.start()
    way = run(guard, TARGET, 0.5)
    assert guard.state == STARTING
    np.testing.assert_allclose(way[-1], [15.0, -1.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(run(guard, TARGET, 0.6)[-1], [30.0, -2.0, 0.0])
    assert guard.state == ACTIVE


def test_stops_softly_and_is_then_idle(active):
    active.stop()
    way = run(active, TARGET, 0.25)
    assert active.state == RAMPING and not active.idle
    assert np.abs(np.diff(way[:, 0])).max() <= 30.0 * DT / 0.5 + 1e-9
    assert not run(active, TARGET, 0.5)[-1].any()
    assert active.idle and active.state == IDLE


def test_holds_then_ramps_to_zero_without_targets(active):
    way = run(active, None, 0.09)
    np.testing.assert_allclose(way[:, 0], 30.0)
    assert active.state == HOLDING
    assert run(active, None, 0.3)[-1].any() and active.state == RAMPING
    assert not run(active, None, 0.7)[-1].any()
    assert active.state == WAITING
    run(active, TARGET, 2.0)
    assert active.efforts[0] == pytest.approx(30.0)


def test_goes_on_from_efforts_that_are_commanded_already(guard):
    """Held as if an input had just been lost, within the clamp, whatever was commanded."""
    guard.continue_from(np.array([20.0, -8.0, 3.0]))
    way = run(guard, None, 0.09)
    np.testing.assert_allclose(way, np.tile([20.0, -5.0, 0.0], (len(way), 1)))
    assert guard.state == HOLDING
    way = np.vstack((way, run(guard, TARGET, 1.0)))  # as fast as the rate limit permits
    np.testing.assert_allclose(way[-1], [30.0, -2.0, 0.0])
    assert (np.abs(np.diff(way, axis=0))[:, :2] <= 2.0 * DT * LIMITS[:2] + 1e-9).all()
    guard.continue_from(TARGET)
    assert not run(guard, None, 0.7)[-1].any()


@pytest.mark.parametrize('rate', [500.0, 50.0, 25.0])
@pytest.mark.parametrize('is_stopped', [True, False])
def test_ramps_to_zero_take_their_time_at_any_rate(rate, is_stopped):
    guard, dt = EffortLimiter(LIMITS, replace(SETTINGS, stop_time=1.0)), 1.0 / rate
    guard.start()
    for _ in range(round(4.0 * rate)):
        guard.update(TARGET, dt)
    if is_stopped:
        guard.stop()
    time, before, hold = 0.0, guard.efforts, 0.0 if is_stopped else SETTINGS.hold_time
    while guard.efforts.any():
        efforts = guard.update(None, dt)
        time += dt
        assert time < 1.0 + hold + 2.5 * dt
        # Not faster than the ramp either, and no step beyond that of the rate limit.
        assert (np.abs(efforts) >= (1.0 - max(time - hold + dt, 0.0)) * np.abs(
            [30.0, 2.0, 0.0]) - 1e-9).all()
        assert (np.abs(efforts - before) <= 2.0 * 0.01 * np.array([100.0, 10.0, 0.0]) + 1e-9).all()
        before = efforts


def test_groups_ramp_in_and_out(active):
    active.enabled = np.array([False, True, True])
    way = run(active, TARGET, 1.0)
    assert way[0, 0] > 29.0 and way[-1, 0] == 0.0 and way[-1, 1] == -2.0


@pytest.mark.parametrize('changes, target, expected, saturated', (
    ({}, [1e6, 4.0, 1.0], [50.0, 4.0, 0.0], [True, False, True]),
    ({'default_limit': 20.0, 'start_time': 0.1}, TARGET, [30.0, -2.0, 1.0], [False] * 3)))
def test_clamps_and_reports_it(changes, target, expected, saturated):
    """A joint without a limit needs the default one."""
    guard = EffortLimiter(LIMITS, replace(SETTINGS, **changes))
    guard.start()
    np.testing.assert_allclose(run(guard, np.array(target), 3.0)[-1], expected)
    assert guard.saturated.tolist() == saturated


@pytest.mark.parametrize('changes, target, parts', (
    ({}, TARGET, ['no effort for c, which', 'set default_effort_limit']),
    ({}, [1e6, 4.0, 0.0], ['effort_clamp (0.5 of', 'at a: change the posture, or raise']),
    ({'clamp': 1.0}, [1e6, 4.0, 0.0], ['effort_clamp (1 of', 'at a: change the posture; the']),
    ({'default_limit': 1.0}, [1e6, 4.0, 3.0], ['only 1 N m or N for c', 'set def', 'at a: ch']),
    ({'default_limit': 20.0}, TARGET, [])))
def test_what_is_limited_is_reported_with_what_helps(changes, target, parts):
    """A share of no limit is nothing; then no clamp helps."""
    guard = EffortLimiter(LIMITS, replace(SETTINGS, **changes))
    guard.start()
    run(guard, np.array(target), 3.0)
    found = guard.describe_saturation('abc')
    assert all(part in found for part in parts) and bool(found) == bool(parts)
    assert ('raise effort_clamp' in found) == ('at a' in found and guard.settings.clamp < 1.0)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
TARGETS = st.none() | st.lists(NUMBERS, min_size=3, max_size=3)
DURATIONS = st.floats(-1.0, 1.0) | st.sampled_from([0.0, math.nan, math.inf, -math.inf, 1e300])
EVENTS = st.lists(st.tuples(
    st.sampled_from(['step', 'start', 'stop', 'enable', 'disable', 'configure', 'continue']),
    TARGETS, DURATIONS), max_size=60)
CLAMPS, RATES = (0.5, 0.02, 1.0, 0.3), (2.0, 0.5, 20.0)


def apply(guard, kind, values, number):
    """Change a guard as a node may at any time."""
    if kind in ('start', 'stop'):
        getattr(guard, kind)()
    elif kind in ('enable', 'disable'):
        guard.enabled = np.full(3, kind == 'enable')
    elif kind == 'configure':
        guard.configure(replace(SETTINGS, clamp=CLAMPS[number % 4], max_rate=RATES[number % 3],
                                hold_time=0.02, default_limit=7.0 * (number % 2)))
    elif kind == 'continue':
        guard.continue_from(np.zeros(0) if values is None else np.array(values))


@settings(max_examples=300, deadline=None)
@given(EVENTS)
def test_whatever_happens_efforts_are_finite_bounded_and_slow(events):
    """At every instant, also between a change of the bounds and the next update."""
    guard = EffortLimiter(LIMITS, SETTINGS)
    for number, (kind, values, dt) in enumerate(events):
        before = guard.efforts.copy()
        with np.errstate(all='ignore'):
            apply(guard, kind, values, number)
        bounds = guard.settings.clamp * np.where(
            np.isfinite(LIMITS), LIMITS, guard.settings.default_limit)
        rates = guard.settings.max_rate * bounds / guard.settings.clamp
        changed = guard.efforts.copy()
        assert (np.abs(changed) <= bounds).all()
        if kind != 'continue':  # nothing but the clamp makes a step
            np.testing.assert_array_equal(changed, np.clip(before, -bounds, bounds))
        with np.errstate(all='ignore'):
            efforts = guard.update(None if values is None else np.array(values), dt)
        elapsed = min(max(dt, 0.0), SETTINGS.max_dt) if math.isfinite(dt) else 0.0
        assert (np.abs(efforts) <= bounds).all()  # false for NaN, too
        assert (np.abs(efforts - changed) <= rates * elapsed + 1e-12).all()


@pytest.mark.parametrize('values', ([np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [1.0]))
def test_nothing_goes_on_from_commanded_efforts_that_are_not_finite(active, values):
    active.continue_from(np.array(values))
    np.testing.assert_array_equal(active.efforts, [30.0, -2.0, 0.0])
    assert active.state == ACTIVE


@pytest.mark.parametrize('values', ([np.nan] * 3, [np.inf, 0.0, 0.0], [-np.inf, np.inf, 0.0]))
def test_targets_that_are_not_finite_count_as_none(active, values):
    other = copy.deepcopy(active)
    np.testing.assert_array_equal(
        run(active, np.array(values), 1.0), run(other, None, 1.0))


def test_a_target_that_is_changed_afterwards_has_no_effect():
    """Arrays of callbacks are reused."""
    guard, target = EffortLimiter(LIMITS, SETTINGS), TARGET.copy()
    guard.start()
    run(guard, target, 2.0)
    target[:] = np.nan
    np.testing.assert_allclose(run(guard, None, 0.05)[:, 0], 30.0)


def test_a_lower_clamp_takes_effect_at_once_and_a_higher_one_by_the_rate_limit(guard):
    run(guard, 2.0 * TARGET, 2.0)
    assert guard.efforts[0] == 50.0
    guard.configure(replace(SETTINGS, clamp=0.1))
    assert guard.efforts.tolist() == [10.0, -1.0, 0.0]  # before any update
    np.testing.assert_array_equal(run(guard, 2.0 * TARGET, 0.1)[:, 0], 10.0)
    guard.configure(SETTINGS)
    path = run(guard, 2.0 * TARGET, 0.3)[:, 0]
    np.testing.assert_allclose(np.diff(path)[:50], 200.0 * DT)
    assert path[0] == pytest.approx(10.4) and path[-1] == 50.0


@pytest.mark.parametrize('size', [1e-3, 0.03, 1.0])
def test_efforts_are_those_of_plain_clamping_and_limiting(size):
    """Also near the clamp, and off it."""
    rng, guard = np.random.default_rng(4), EffortLimiter(LIMITS, SETTINGS)
    guard.start()
    run(guard, 0.0 * TARGET, 1.5)
    limits = np.where(np.isfinite(LIMITS), LIMITS, 0.0)
    target, expected, clamped = TARGET * [1.6, 2.4, 0.0], guard.efforts.copy(), 0
    for _ in range(4000):
        target = target + rng.normal(size=3) * limits * size * 2.0 * DT
        target -= 0.002 * (target - np.array([50.0, -5.0, 0.0]))  # drawn to the clamp
        free = np.clip(target, -0.5 * limits, 0.5 * limits)
        expected = expected + np.clip(free - expected, -2.0 * limits * DT, 2.0 * limits * DT)
        clamped += (free != target).any()
        np.testing.assert_allclose(guard.update(target, DT), expected, rtol=0.0, atol=1e-12)
    assert 200 < clamped < 3800


@pytest.mark.parametrize('values', (
    {'clamp': 0.0}, {'clamp': 1.5}, {'max_rate': -1.0}, {'start_time': 0.0},
    {'stop_time': float('nan')}, {'hold_time': -0.1}, {'default_limit': -1.0},
    {'max_rate': math.inf}, {'default_limit': math.inf}, {'hold_time': math.nan}))
def test_invalid_settings_are_refused(values):
    (name,) = values
    with pytest.raises(ConfigurationError, match=rf"^(effort safety: {name}|'{name}') .*must be "):
        SafetySettings(**values)
