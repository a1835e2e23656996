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
"""Levels of stability: thresholds, hysteresis, dwell, and what is said."""

import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.stability.levels import (
    FallWatch, lean_of, Level, StabilityThresholds, tilt_of, Trigger)
import numpy as np
import pinocchio as pin
import pytest

MS = 1_000_000
WELL = (0.05, 0.05, 0.0)


def feed(watch, start_ms, end_ms, zmp, dcm, tilt):
    """Feed the same values each millisecond; return what changed, with its time in ms."""
    return [(ms, change) for ms in range(start_ms, end_ms)
            if (change := watch.update(ms * MS, zmp, dcm, tilt)) is not None]


def test_levels_come_at_once_and_go_after_recovery():
    watch = FallWatch(StabilityThresholds(dwell=0.01, recovery=0.3))
    assert not feed(watch, 0, 100, *WELL)
    (ms, change), = feed(watch, 100, 200, 0.005, 0.05, 0.0)
    assert (ms, change.before, change.now) == (110, Level.STABLE, Level.MARGINAL)
    assert change.reasons == ('the ZMP is 5.0 mm inside the edge of the support',)
    assert not change.is_loss
    (ms, change), = feed(watch, 200, 900, *WELL)
    assert (ms, change.now, change.reasons) == (500, Level.STABLE, ())


def test_hysteresis_keeps_a_margin_at_the_threshold_from_fluttering():
    watch = FallWatch()
    changes = []
    for ms in range(2000):
        margin = 0.01 + 0.002 * math.sin(ms / 30.0)
        change = watch.update(ms * MS, margin, 0.05, 0.0)
        changes += [change] if change else []
    assert [change.now for change in changes] == [Level.MARGINAL]


def test_a_glitch_shorter_than_the_dwell_is_ignored():
    watch = FallWatch(StabilityThresholds(dwell=0.01))
    assert not feed(watch, 0, 9, -0.01, -0.01, 0.0)
    assert not feed(watch, 9, 50, *WELL)


def test_dcm_outside_is_a_loss_of_stability():
    watch = FallWatch()
    changes = feed(watch, 0, 100, 0.02, -0.004, 0.1)
    assert [change.now for _, change in changes] == [Level.UNSTABLE]
    assert changes[0][1].is_loss
    assert changes[0][1].reasons == ('the DCM is 4.0 mm outside the edge of the support',)


def test_tilt_ends_in_a_fall():
    watch = FallWatch()
    changes = []
    for ms in range(1500):
        changes += feed(watch, ms, ms + 1, None, None, ms / 1000.0)
    assert [(change.before, change.now) for _, change in changes] == [
        (Level.STABLE, Level.UNSTABLE), (Level.UNSTABLE, Level.FALLEN)]
    assert 'the base leans by 57.9 deg' in changes[1][1].reasons
    assert 355 <= changes[0][0] <= 370 and 1005 <= changes[1][0] <= 1020


def test_a_fall_is_explained_by_the_lean_alone():
    """Of a robot that lies there, ZMP and DCM are a metre away, and mean nothing."""
    watch = FallWatch()
    before, = feed(watch, 0, 100, -0.01, -0.9, 0.4)
    assert before[1].now == Level.UNSTABLE and len(before[1].reasons) == 3
    (_, change), = feed(watch, 100, 200, -0.01, -0.9, 1.2)
    assert change.now == Level.FALLEN
    assert change.reasons == watch.reasons == ('the base leans by 68.8 deg',)


def test_a_lean_to_come_is_a_loss_before_the_tilt():
    watch = FallWatch()
    changes = []
    for ms in range(1200):
        t, rate = ms / 1000.0, 1.5
        changes += [change] if (change := watch.update(
            ms * MS, None, None, tilt := max(0.0, rate * (t - 0.5)),
            tilt + 0.3 * rate if t > 0.5 else 0.0, walks=True)) else []
        if changes:
            break
    assert changes[0].now == Level.UNSTABLE and 500 < ms < 560
    assert changes[0].reasons[0].startswith(
        'the base turns so fast that it leans by')


def test_a_lean_that_is_over_is_no_reason_any_more():
    """While the level waits for recovery, "so fast that it leans by 0.1 deg" explains nothing."""
    watch = FallWatch()
    for ms in range(100):
        watch.update(ms * MS, None, None, 1.2, 1.2)
    changes = [change for ms in range(100, 1000)
               if (change := watch.update(ms * MS, None, None, 0.0, 0.6 if ms < 300 else 0.0))]
    assert [change.now for change in changes] == [Level.UNSTABLE, Level.STABLE]
    assert changes[0].reasons == ()


def test_while_walking_margins_do_not_count_and_what_they_have_set_ends():
    watch = FallWatch()
    assert feed(watch, 0, 100, -0.01, -0.2, 0.0)[-1][1].now == Level.UNSTABLE
    change = watch.update(100 * MS, -0.01, -0.2, 0.0, 0.1, walks=True)
    assert change is not None and change.now == Level.STABLE
    assert watch.update(130 * MS, -0.01, -0.2, 0.0, 0.1, walks=True) is None
    # Standing again, they count as ever.
    assert feed(watch, 200, 300, -0.01, -0.2, 0.0)[0][1].now == Level.UNSTABLE


def test_lean_is_the_tilt_by_the_same_rotation_later():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rotation, omega = pin.exp3(0.2 * rng.normal(size=3)), rng.normal(size=3)
        later = rotation @ pin.exp3(1e-4 * omega)
        assert lean_of(rotation, omega, 1e-4) == pytest.approx(
            math.hypot(later[0, 2], later[1, 2]), abs=2e-8)
        assert lean_of(rotation, omega, 0.0) == pytest.approx(
            math.sin(tilt_of(rotation[2, 2])), abs=1e-9)


def test_unknown_values_change_nothing():
    watch = FallWatch()
    feed(watch, 0, 100, 0.05, -0.01, 0.0)
    assert not feed(watch, 100, 1000, None, math.nan, None)
    assert watch.level == Level.UNSTABLE


def test_time_that_goes_back_does_not_set_a_trigger():
    trigger = Trigger(0.0, 0.1, 0.01, 0.1)
    trigger.update(-1.0, 1_000 * MS)
    assert not trigger.update(-1.0, 10 * MS)
    assert trigger.update(-1.0, 21 * MS)


@pytest.mark.parametrize(('changes', 'message'), [
    ({'dcm_margin': 0.02},
     "'dcm_margin' is 0.02 m; it must be at most 'margin', 0.01 m: lower it"),
    ({'tilt': 1.2}, "'tilt' is 1.2 rad; it must be below 'fallen_tilt', 1.0 rad: lower it"),
    ({'lean': 0.2}, "'lean' is 0.2; it must be at least 'tilt', 0.35 rad: raise it"),
    ({'dwell': -0.1}, "'dwell' is -0.1 s; it must be zero or more")])
def test_thresholds_that_make_no_sense(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        StabilityThresholds(**changes)


def test_tilt():
    assert tilt_of(1.0 + 1e-16) == 0.0
    assert tilt_of(0.5) == pytest.approx(math.pi / 3.0)
