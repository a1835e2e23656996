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
    lean_of, Level, StabilityClassifier, StabilityThresholds, StepWatch, tilt_of)
import numpy as np
import pinocchio as pin
import pytest

MS = 1_000_000
WELL, LOST = (0.05, 0.05, 0.0), (-0.01, -0.2, 0.0, 0.1)
"""Margins of ZMP and DCM, m, the tilt, rad, and the lean to come."""


@pytest.fixture
def watch():
    return StabilityClassifier()


def feed(watch, start_ms, end_ms, *values, **options):
    """Feed values, or what a function finds for a time, each ms; return changes with their ms."""
    found = []
    for ms in range(start_ms, end_ms):
        now = values[0](ms) if callable(values[0]) else values
        if (change := watch.update(ms * MS, *now, **options)) is not None:
            found.append((ms, change))
    return found


def levels(changes):
    return [change.now for _, change in changes]


def test_levels_come_at_once_and_go_after_recovery(watch):
    assert not feed(watch, 0, 100, *WELL)
    (ms, change), = feed(watch, 100, 200, 0.005, 0.05, 0.0)
    assert (ms, change.before, change.now) == (110, Level.STABLE, Level.MARGINAL)
    assert change.reasons == ('the ZMP is 5.0 mm inside the edge of the support',)
    assert not change.is_loss
    (ms, change), = feed(watch, 200, 900, *WELL)
    assert (ms, change.now, change.reasons) == (500, Level.STABLE, ())


def test_hysteresis_and_dwell_keep_levels_from_fluttering(watch):
    assert not feed(watch, 0, 9, -0.01, -0.01, 0.0), 'shorter than the dwell'
    assert not feed(watch, 9, 50, *WELL)
    changes = feed(watch, 50, 2050, lambda ms: (0.01 + 0.002 * math.sin(ms / 30.0), 0.05, 0.0))
    assert levels(changes) == [Level.MARGINAL]


def test_dcm_outside_is_a_loss_of_stability_that_unknown_values_do_not_end(watch):
    (_, change), = feed(watch, 0, 100, 0.02, -0.004, 0.1)
    assert change.now == Level.UNSTABLE and change.is_loss
    assert change.reasons == ('the DCM is 4.0 mm outside the edge of the support',)
    assert not feed(watch, 100, 1000, None, math.nan, None)
    assert watch.level == Level.UNSTABLE


def test_tilt_ends_in_a_fall(watch):
    (first, loss), (second, fall) = feed(watch, 0, 1500, lambda ms: (None, None, ms / 1000.0))
    assert (loss.before, loss.now) == (Level.STABLE, Level.UNSTABLE)
    assert (fall.before, fall.now) == (Level.UNSTABLE, Level.FALLEN)
    assert 'the base leans by 57.9 deg' in fall.reasons
    assert 355 <= first <= 370 and 1005 <= second <= 1020


def test_a_fall_is_explained_by_the_lean_alone(watch):
    """Of a robot that lies there, ZMP and DCM are a metre away, and mean nothing."""
    (_, before), = feed(watch, 0, 100, -0.01, -0.9, 0.4)
    assert before.now == Level.UNSTABLE and len(before.reasons) == 3
    (_, change), = feed(watch, 100, 200, -0.01, -0.9, 1.2)
    assert change.now == Level.FALLEN
    assert change.reasons == watch.reasons == ('the base leans by 68.8 deg',)


def test_a_lean_to_come_is_a_loss_before_the_tilt(watch):
    def turning(ms):
        tilt = max(0.0, 1.5 * (ms / 1000.0 - 0.5))
        return None, None, tilt, tilt + 0.45 if ms > 500 else 0.0
    (ms, change), *_ = feed(watch, 0, 1200, turning, walks=True)
    assert change.now == Level.UNSTABLE and 500 < ms < 560
    assert change.reasons[0].startswith('the base turns so fast that it leans by')


def test_a_lean_that_is_over_is_no_reason_any_more(watch):
    """While the level waits for recovery, "so fast that it leans by 0.1 deg" explains nothing."""
    feed(watch, 0, 100, None, None, 1.2, 1.2)
    changes = feed(watch, 100, 1000, lambda ms: (None, None, 0.0, 0.6 if ms < 300 else 0.0))
    assert levels(changes) == [Level.UNSTABLE, Level.STABLE]
    assert changes[0][1].reasons == ()


def test_while_walking_margins_do_not_count_and_what_they_have_set_ends(watch):
    assert levels(feed(watch, 0, 100, *LOST))[-1] == Level.UNSTABLE
    assert levels(feed(watch, 100, 131, *LOST, walks=True)) == [Level.STABLE]
    # Standing again, they count as ever.
    assert levels(feed(watch, 200, 300, *LOST))[0] == Level.UNSTABLE


def test_lean_is_the_tilt_by_the_same_rotation_later():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rotation, omega = pin.exp3(0.2 * rng.normal(size=3)), rng.normal(size=3)
        later = rotation @ pin.exp3(1e-4 * omega)
        assert lean_of(rotation, omega, 1e-4) == pytest.approx(
            math.hypot(later[0, 2], later[1, 2]), abs=2e-8)
        assert lean_of(rotation, omega, 0.0) == pytest.approx(
            math.sin(tilt_of(rotation[2, 2])), abs=1e-9)
    assert tilt_of(1.0 + 1e-16) == 0.0 and tilt_of(0.5) == pytest.approx(math.pi / 3.0)


@pytest.mark.parametrize(('changes', 'message'), [
    ({'tilt': 1.2}, "'tilt' is 1.2 rad; it must be below 'fallen_tilt', 1.0 rad: lower it"),
    ({'margin': -0.1}, "'margin' is -0.1; it must be 0 to 1 m")])
def test_thresholds_that_make_no_sense(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        StabilityThresholds(**changes)


def test_the_lean_is_never_below_the_tilt_at_which_the_robot_is_unstable():
    assert StabilityThresholds().lean == 0.5
    assert StabilityThresholds(tilt=0.6).lean == 0.6


# -- whether a robot walks by steps that catch it

BOTH, LEFT, RIGHT, NONE = (True, True), (True, False), (False, True), (False, False)
INSIDE, OUTSIDE = 0.02, -0.1
STANDS = (500, BOTH, INSIDE, False)


@pytest.mark.parametrize('phases', [
    # Nobody knows yet that the foot will land in time; standing ends the walk.
    [STANDS, (50, BOTH, OUTSIDE, None), (300, LEFT, OUTSIDE, False), (100, BOTH, OUTSIDE, True),
     (300, RIGHT, OUTSIDE, None), (100, BOTH, OUTSIDE, True), (250, BOTH, INSIDE, False)],
    [STANDS, (600, LEFT, INSIDE, None), (200, BOTH, INSIDE, None), (600, RIGHT, INSIDE, None),
     (100, BOTH, INSIDE, False)],
    # The foot left the ground 0.7 s ago, before the DCM left the support; the timeout is 1 s.
    [STANDS, (100, LEFT, INSIDE, False), (600, LEFT, OUTSIDE, True), (250, LEFT, OUTSIDE, True),
     (100, LEFT, OUTSIDE, False)],
    [STANDS, (2, LEFT, OUTSIDE, True), (950, LEFT, OUTSIDE, True), (100, LEFT, OUTSIDE, False)],
    [STANDS, (10, BOTH, OUTSIDE, None), (10, LEFT, OUTSIDE, False)],
    [STANDS, (60, LEFT, OUTSIDE, None), (50, BOTH, OUTSIDE, False)],
    [(400, BOTH, INSIDE, None), (300, LEFT, OUTSIDE, None), (40, BOTH, OUTSIDE, None),
     (900, RIGHT, OUTSIDE, True), (200, RIGHT, OUTSIDE, False)],
    [(2, LEFT, OUTSIDE, True)], [(2, LEFT, INSIDE, False)], [(2, BOTH, OUTSIDE, True)],
    [(2, NONE, None, True)],
], ids=['a step that catches the DCM', 'slow steps whose DCM stays inside',
        'the first step of a gait', 'outside as soon as a foot is lifted',
        'pushed on both feet', 'a foot that bounces', 'no further step',
        *(f'the first instant {i} in the midst of a step' for i in range(4))])
def test_steps_that_catch_the_dcm_are_a_walk(phases):
    """Phases are duration in ms, contacts, margin of the DCM, and whether it walks at the end."""
    watch, ms = StepWatch(), 0
    for duration, in_contact, margin, expected in phases:
        for _ in range(0, duration, 2):
            walks = watch.update(1_000_000 * ms, in_contact, margin)
            ms += 2
        assert expected is None or walks is expected
