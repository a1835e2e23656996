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
"""Steps that land elsewhere, and walks that wait: laws of the linear inverted pendulum."""

import math

from biped_com_ros.core.legs.balance import stepping
from biped_com_ros.core.legs.footsteps import Footprint, forward_steps, StepPlan, StepTiming
from biped_com_ros.core.legs.step_adjustment import (
    error_at_landing, GaitRate, MAX_RATE_CHANGE, MAX_STEP_ACCELERATION, StepAdjustment)
import numpy as np
import pytest

OMEGA, DT = 5.0, 0.02
SOLE = ((0.1, 0.04), (-0.05, 0.04), (-0.05, -0.04), (0.1, -0.04))
YAW = 0.7
SETTINGS = stepping(0.15, step_gain=1.0)


@pytest.fixture
def plan():
    """Four steps along a heading, the right foot first."""
    left = Footprint(0.3, -0.2, YAW)
    right = Footprint(*left.apply(0.0, -0.11), YAW)
    timing = StepTiming(single_support=0.6, double_support=0.3, start=1.0, stop=1.0)
    return StepPlan((left, right), forward_steps((left, right), 4, 0.05, 1),
                    ((0.02, -0.004), (0.02, 0.004)), (0.3, -0.25), timing)


def along(x, y):
    """Return a vector along the heading and to its left in the axes of the plan."""
    c, s = math.cos(YAW), math.sin(YAW)
    return np.array((c * x - s * y, s * x + c * y))


def walk(plan, steps, error, until=math.inf):
    """Play the plan with an error of the DCM that is predicted."""
    for time in np.arange(0.0, min(plan.duration, until), DT).tolist():
        steps.update(DT, plan, time, error(time))


def rate_after(phase, *arguments, count=20, largest=None):
    """Return the rate of a walk after some time in a phase; it never changes too fast."""
    rate, before = GaitRate(SETTINGS), 1.0
    rate.largest = largest or rate.largest
    for _ in range(count):
        rate.update(DT, phase, *arguments)
        assert abs(before - rate.value) <= MAX_RATE_CHANGE * DT + 1e-12
        before = rate.value
    return rate.value


def swing(plan, count):
    return [phase for phase in plan.phases if phase.step is not None][count]


@pytest.mark.parametrize('size', (0.05, 0.12))
def test_the_error_at_landing_is_that_of_the_pendulum(size):
    error, offset, time = along(size, 0.5 * size), along(0.02, 0.01), 0.3
    expected = error.copy()
    for _ in range(30000):  # e' = omega (e - d)
        expected += 1e-5 * OMEGA * (expected - offset)
    found = error_at_landing(error, offset, math.exp(OMEGA * time))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_an_error_that_the_stance_foot_brings_back_moves_no_step():
    assert not error_at_landing(along(0.02, 0.0), along(0.04, 0.0), 4.0).any()
    assert not error_at_landing(np.zeros(2), np.zeros(2), 4.0).any()


def test_a_foot_lands_where_the_error_of_the_dcm_will_be(plan):
    steps, error = StepAdjustment(SETTINGS, (SOLE, SOLE)), along(0.08, -0.03)
    first = swing(plan, 0)
    begin = first.start + 0.2
    walk(plan, steps, lambda time: error * (time > begin), first.end + 0.05)
    np.testing.assert_allclose(steps.offsets[1], error, atol=2e-3)
    assert not steps.offsets[0].any() and not steps.is_on_plan
    # The reference moves with the weight, and is where the foot is when it carries all.
    shift = plan.phase(first.end + 0.1)
    np.testing.assert_allclose(steps.zmp_offset(plan, shift.start), 0.0, atol=1e-12)
    np.testing.assert_allclose(steps.zmp_offset(plan, shift.end), steps.offsets[1], atol=1e-12)


def test_the_next_step_brings_the_feet_beside_each_other_again(plan):
    steps, error = StepAdjustment(SETTINGS, (SOLE, SOLE)), along(0.08, -0.03)
    first = swing(plan, 0)
    until = swing(plan, 1).end + 0.1
    walk(plan, steps, lambda time: error * (time < first.end), until)
    np.testing.assert_allclose(steps.offsets[0], steps.offsets[1], atol=2e-3)
    assert np.linalg.norm(steps.offsets[0]) > 0.08 and steps.is_on_plan


@pytest.mark.parametrize('left', (0.2, 0.06, 0.03))
def test_a_foot_stays_while_the_time_of_the_gait_stands_still(plan, left):
    steps, first = StepAdjustment(SETTINGS, (SOLE, SOLE)), swing(plan, 0)
    walk(plan, steps, lambda time: along(0.1, 0.0), first.end - left)
    offsets, velocities = steps.offsets.copy(), steps.velocities.copy()
    assert offsets.any() and velocities.any()
    steps.update(0.0, plan, first.end - left, along(0.1, 0.0))
    np.testing.assert_array_equal(steps.offsets, offsets)
    np.testing.assert_array_equal(steps.velocities, velocities)


@pytest.mark.parametrize('keep', (False, True))
def test_the_last_step_and_those_after_a_stop_stay_as_planned(plan, keep):
    steps = StepAdjustment(SETTINGS, (SOLE, SOLE))
    begin = swing(plan, 3).start
    if keep:
        steps.keep()
        begin = 0.0
    walk(plan, steps, lambda time: along(0.1, 0.0) * (time >= begin))
    assert not steps.offsets.any() and steps.is_on_plan


def test_the_reference_of_the_dcm_leads_to_the_foot_that_has_landed(plan):
    steps = StepAdjustment(SETTINGS, (SOLE, SOLE))
    steps.offsets[1] = along(0.1, 0.05)
    shift = plan.phase(swing(plan, 0).end + 0.05)
    dcm, time, dt = steps.dcm_offset(plan, shift.start, OMEGA), shift.start, 1e-4
    while time < shift.end:
        dcm = dcm + dt * OMEGA * (dcm - steps.zmp_offset(plan, time + 0.5 * dt))
        time += dt
    np.testing.assert_allclose(dcm, steps.offsets[1], atol=1.5e-3)


def test_whatever_is_predicted_steps_are_limited(plan):
    rng = np.random.default_rng(5)
    steps = StepAdjustment(SETTINGS, (SOLE, SOLE))
    speed, offsets = steps.velocities.copy(), steps.offsets.copy()
    for time in np.arange(0.0, plan.duration, DT).tolist():
        steps.update(DT, plan, time, rng.normal(scale=0.4, size=2))
        is_swing = plan.phase(time).step is not None
        change = np.linalg.norm(steps.velocities - speed, axis=1).max()
        assert change <= MAX_STEP_ACCELERATION * DT + 1e-12 or not is_swing
        assert np.linalg.norm(steps.velocities, axis=1).max() <= SETTINGS.max_step_speed + 1e-12
        moved = np.linalg.norm(steps.offsets - offsets, axis=1).max()
        assert moved <= SETTINGS.max_step_speed * DT + 1e-12
        speed, offsets = steps.velocities.copy(), steps.offsets.copy()


@pytest.mark.parametrize('across', (0.5, -0.5))
def test_feet_do_not_meet_and_steps_are_no_longer_than_allowed(plan, across):
    steps, first = StepAdjustment(SETTINGS, (SOLE, SOLE)), swing(plan, 0)
    walk(plan, steps, lambda time: along(0.0, across), first.end)
    landed = plan.soles(first.end)[:, :2] + steps.offsets
    apart = (landed[1] - landed[0]) @ along(0.0, 1.0)
    if across > 0.0:  # the right foot towards the left one: half widths and clearance
        assert apart == pytest.approx(-0.09, abs=3e-3)
    else:
        assert apart == pytest.approx(-0.11 - 0.15, abs=3e-3)


@pytest.mark.parametrize('foot, side', ((0, 1.0), (1, -1.0)))
def test_a_walk_waits_for_a_robot_that_was_pushed_away_from_the_foot_in_the_air(plan, foot, side):
    phase = swing(plan, 1 - foot)
    assert phase.step.foot == foot
    outwards, inwards = along(0.0, -side * 0.05), along(0.2, side * 0.05)
    assert rate_after(phase, outwards) == 0.0 and rate_after(phase, inwards) == 1.0
    assert rate_after(phase, outwards, count=120) == 1.0  # it does not wait for ever
    # It hurries for one that falls towards that foot, but not in the direction of the walk.
    hurried = [rate_after(phase, along(0.05, y), largest=1.6) for y in (side * 0.05, 0.0)]
    assert hurried == [pytest.approx(1.6), 1.0]
    both = plan.phase(phase.end + 0.05)
    assert rate_after(both, along(0.0, side * 0.05), largest=1.6) == 1.0


def test_on_both_feet_a_walk_waits_until_the_weight_can_be_shifted(plan):
    shift = plan.phase(swing(plan, 0).end + 0.05)  # from the left foot to the right one
    for error, waits in ((along(0.0, 0.05), True), (along(0.0, -0.05), False),
                         (along(0.05, 0.0), True), (along(-0.05, 0.0), True),
                         (along(0.01, 0.01), False)):
        assert rate_after(shift, error) == (0.0 if waits else 1.0)
    for shares, waits in (((0.5, 0.5), True), ((0.95, 0.05), True), ((0.05, 0.95), False)):
        assert rate_after(shift, along(0.05, 0.05), shares) == (0.0 if waits else 1.0)
    assert rate_after(plan.phases[-1], along(0.0, 0.2)) == 1.0


def test_on_both_feet_a_walk_waits_for_a_robot_that_leans(plan):
    landed, shift = swing(plan, 0), plan.phase(swing(plan, 0).end + 0.05)
    for phase, leans, waits in ((shift, True, True), (shift, False, False),
                                (landed, True, False)):  # also if weight is shifted
        assert rate_after(phase, np.zeros(2), (0.0, 1.0), leans) == (0.0 if waits else 1.0)
    rate, waited = GaitRate(SETTINGS), 0.0
    for _ in range(200):
        rate.update(DT, shift, np.zeros(2), (0.0, 1.0), True)
        waited += DT * (1.0 - rate.value)
    assert rate.value == 1.0  # not for ever
    assert waited == pytest.approx(SETTINGS.max_wait, abs=0.1)


def test_a_foot_that_has_far_to_go_stays_clear_of_the_ground_until_it_is_there(plan):
    steps, first = StepAdjustment(SETTINGS, (SOLE, SOLE)), swing(plan, 0)
    far = []
    for time in np.arange(first.start + 0.3, first.end - DT, DT).tolist():
        before = steps.offsets[1].copy()
        steps.update(DT, plan, time, along(-0.06, 0.0))
        far.append((float(np.linalg.norm(along(-0.06, 0.0) - before)), steps.clearances[1]))
        assert steps.clearances[0] == 0.0
    distances, heights = np.array(far).T
    assert heights[0] > 0.008 and heights[-1] < 1e-3
    assert (np.diff(heights) <= 1e-12).all() and (heights <= 0.25 * distances + 1e-12).all()
    steps.update(DT, plan, first.start + 0.3, along(-0.06, 0.0))
    assert steps.clearances[1] < 1e-3
    steps.update(DT, plan, first.start + 0.3, along(0.06, 0.0))
    assert steps.clearances[1] > 0.008
    steps.update(DT, plan, first.end + DT, along(0.06, 0.0))
    assert not steps.clearances.any()


@pytest.mark.parametrize('rate', (0.0, 0.5, 1.0, 1.6))
def test_a_foot_arrives_in_time_and_within_its_limits_at_any_rate_of_the_walk(plan, rate):
    steps, first = StepAdjustment(SETTINGS, (SOLE, SOLE)), swing(plan, 0)
    time, before, speed = first.start + 0.1, steps.offsets[1].copy(), np.zeros(2)
    while time < first.end - 1e-9:
        steps.update(DT, plan, time, along(0.06, 0.0), rate)
        moved = (steps.offsets[1] - before) / DT
        assert np.linalg.norm(moved) <= SETTINGS.max_step_speed + 1e-9
        assert np.linalg.norm(moved - speed) <= MAX_STEP_ACCELERATION * DT + 1e-9
        if not rate:
            assert not moved.any()
            return
        before, speed, time = steps.offsets[1].copy(), moved, time + rate * DT
    np.testing.assert_allclose(steps.offsets[1], along(0.06, 0.0), atol=3e-3)
