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
"""Footsteps, preview of the cart-table, and walks, against independent computations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.legs.footsteps import (
    Footprint, Footstep, forward_steps, StepPlan, StepTiming, time_scale)
from biped_com_ros.core.legs.gait import (
    Gait, GaitOptions, PreviewController, QUICK, single_step, walk)
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.spatial.transform import Rotation
from support.urdf_oracle import GRAVITY
from support.walk_oracle import WalkOracle

FEET = (Footprint(0.0, 0.1), Footprint(0.0, -0.1))
TARGETS = ((0.02, -0.01), (0.02, 0.01))


def turning_steps(footprints):
    """To the left along an arc and sideways; no foot lands where another one stands."""
    (_, left), (_, right) = ((f.x, f.y) for f in footprints[:2])
    return [Footstep(1, Footprint(0.04, right + 0.005, 0.1)),
            Footstep(0, Footprint(0.05, left + 0.02, 0.25)),
            Footstep(1, Footprint(0.085, right + 0.02, 0.3))]


@pytest.fixture(scope='module', params=(
    'static', 'turning', *(pytest.param(name, marks=pytest.mark.thorough)
                           for name in ('step', 'quick'))))
def gait(request, model):
    if request.param == 'turning':
        stance = StanceIk(model, model.posture('stand'))
        return Gait(stance, turning_steps(stance.footprints), QUICK)
    if request.param == 'static':
        return walk(model, 3, 0.05, 0, GaitOptions())
    return request.getfixturevalue(request.param)


# ---- preview


def cart(dt=0.005, height=0.42):
    """Return the system with its integrator, built here again."""
    A, B = np.eye(4), np.array((0.0, dt ** 3 / 6, dt ** 2 / 2, dt))[:, np.newaxis]
    A[1:, 1:] = ((1, dt, dt ** 2 / 2), (0, 1, dt), (0, 0, 1))
    C = np.array((1.0, 0.0, -height / GRAVITY))
    A[0, 1:], B[0] = C @ A[1:, 1:], C @ B[1:]
    return A, B, C


@pytest.mark.parametrize('dt', (0.002, 0.005, 0.02))
def test_feedback_is_the_optimal_one(dt):
    A, B, _ = cart(dt)
    Q = np.diag((1.0, 0.0, 0.0, 0.0))
    P = solve_discrete_are(A, B, Q, np.array([[1e-6]]))
    gains = np.linalg.solve(1e-6 + B.T @ P @ B, B.T @ P @ A)[0]
    controller = PreviewController(0.42, dt)
    assert controller.integral_gain == pytest.approx(gains[0], rel=1e-6)
    assert controller.state_gains == pytest.approx(gains[1:], rel=1e-6)


def test_preview_follows_the_best_of_all_motions():
    """Least squares over all jerks at once is the optimum that the preview has to find."""
    dt, count, height = 0.05, 120, 0.42
    controller = PreviewController(height, dt, horizon=3.0, jerk_weight=1e-5)
    reference = np.where(np.arange(count) < 60, 0.0, 0.05)
    states = controller.track(reference[:, np.newaxis], np.zeros((3, 1)))[:, :, 0]
    found = states @ (1.0, 0.0, -height / GRAVITY)
    # Response of the zero-moment point at sample k to a jerk during interval j.
    A, B, C = cart(dt, height)
    response = np.zeros((count, count))
    for j in range(count):
        state = B[1:, 0]
        for k in range(j + 1, count):
            response[k, j] = C @ state
            state = A[1:, 1:] @ state
    # As the integrator weighs them: errors, and changes of the jerk.
    change = math.sqrt(1e-5) * (np.eye(count) - np.eye(count, k=-1))
    best = np.linalg.lstsq(np.vstack((response, change)),
                           np.concatenate((reference, np.zeros(count))), rcond=None)[0]
    assert np.abs(found - response @ best).max() < 2e-3
    assert np.abs(found[-20:] - 0.05).max() < 1e-3 and np.abs(found[:30]).max() < 1e-3


# ---- footsteps


def make_plan(count=3, **timing):
    return StepPlan(FEET, forward_steps(FEET, count, 0.05), TARGETS, (0.01, 0.0),
                    StepTiming(**timing))


def test_phases_alternate_and_the_feet_too():
    plan = make_plan(4, rest=0.5)
    kinds = [None if p.step is None else p.step.foot for p in plan.phases]
    assert kinds == [None, None, 1, None, 0, None, 1, None, 0, None, None]
    assert all(a.end == b.start and a.zmp_to == b.zmp_from and a.share_to == b.share_from
               for a, b in zip(plan.phases, plan.phases[1:]))
    assert plan.duration == pytest.approx(2 * 0.5 + 2 * 2.0 + 4 * 1.2 + 3 * 1.6)
    # Several steps end side by side, a single one does not.
    assert make_plan(3).soles(99.0)[:, 0] == pytest.approx((0.1, 0.1))
    assert make_plan(1).soles(99.0)[:, 0] == pytest.approx((0.0, 0.05))


def test_steps_go_along_the_heading():
    turned = [Footprint(*(Rotation.from_euler('z', 0.7).apply((f.x, f.y, 0)))[:2], 0.7)
              for f in FEET]
    for straight, other in zip(forward_steps(FEET, 3, 0.05), forward_steps(turned, 3, 0.05)):
        expected = Rotation.from_euler('z', 0.7).apply((*straight.footprint[:2], 0.0))
        assert other.footprint[:2] == pytest.approx(expected[:2])
        assert (other.footprint.yaw, other.foot) == (0.7, straight.foot)


def test_reference_is_an_s_from_foot_to_foot_and_rests_in_the_standing_one():
    plan = make_plan()
    assert plan.zmp(0.0) == pytest.approx((0.01, 0.0))
    assert plan.zmp(2.0) == pytest.approx((0.02, 0.09))   # left foot stands
    assert plan.zmp(3.1) == pytest.approx((0.02, 0.09))
    assert plan.zmp(3.2 + 1.6) == pytest.approx((0.07, -0.09))
    shift = np.array([plan.zmp(t)[1] for t in np.linspace(3.2, 4.8, 201)])
    assert (np.diff(shift) <= 0.0).all() and shift[100] == pytest.approx(0.0)
    assert np.abs(np.diff(shift)[[0, -1]]).max() < 1e-3 * np.abs(np.diff(shift)).max()


def test_shares_follow_and_are_exactly_zero_in_the_air():
    plan = make_plan()
    assert plan.shares(0.0) == pytest.approx((0.5, 0.5))
    for time in np.linspace(0.0, plan.duration, 400):
        shares = plan.shares(time)
        assert shares.min() >= 0.0 and shares.sum() == 1.0
        for touches, share in zip(plan.in_contact(time), shares):
            assert touches or share == 0.0
    times = np.linspace(0.0, plan.duration, 4000)
    assert np.abs(np.diff([plan.shares(t)[0] for t in times])).max() < 0.01


def test_soles_never_sink_and_only_move_in_the_air():
    plan, times = make_plan(), np.arange(0.0, make_plan().duration, 0.01)
    soles = np.array([plan.soles(t) for t in times])
    assert soles[:, :, 2].min() == 0.0 and soles[:, :, 2].max() == pytest.approx(0.02, rel=1e-3)
    moving = np.abs(np.diff(soles[:, :, :2], axis=0)).max(axis=2)
    low = np.minimum(soles[1:, :, 2], soles[:-1, :, 2]) < 1e-3
    assert moving[low].max() < 1e-4


def test_to_local_undoes_apply():
    footprint, point = Footprint(0.3, -0.2, 0.7), (0.05, -0.04)
    shown = Rotation.from_euler('z', 0.7).apply((*point, 0.0)) + (0.3, -0.2, 0.0)
    assert footprint.apply(*point) == pytest.approx(shown[:2])
    assert footprint.to_local(*shown[:2]) == pytest.approx(point)


def test_the_heading_goes_on_beyond_half_a_turn():
    start, goal = 3.0, math.remainder(3.0 + 0.4, 2.0 * math.pi)
    left, right = (Footprint(-y * math.sin(start), y * math.cos(start), start)
                   for y in (0.05, -0.05))
    steps = [Footstep(0, left._replace(yaw=goal)), Footstep(1, right._replace(yaw=goal))]
    plan = StepPlan((left, right), steps, TARGETS, (0.0, 0.0))
    yaws = np.array([plan.soles(t)[:, 3] for t in np.linspace(0.0, plan.duration, 200)])
    assert np.diff(yaws, axis=0).min() >= 0.0
    assert yaws[-1] == pytest.approx(3.4)


# ---- walks


def test_zmp_of_all_links_is_inside_the_support_polygon_and_where_it_was_planned(gait, model):
    """By Newton and Euler from link poses; the polygon from the URDF's soles."""
    oracle, h, last = WalkOracle(model), 2e-3, len(gait.times) - 1
    for k in np.linspace(1, last - 1, 150).astype(int):
        samples = [gait.at(gait.times[k] + d) for d in (-h, 0.0, h)]
        assert oracle.margin(samples, h) > 0.02
        if 20 <= k <= last - 20:
            assert gait.zmp[k] == pytest.approx(oracle.zmp(samples, h), abs=2e-4)


def test_previewed_zmp_is_the_reference_within_a_millimetre_by_compensation(model, quick):
    error = quick.zmp - quick.zmp_reference
    assert np.sqrt((error ** 2).mean()) < 0.5e-3 and np.abs(error).max() < 1.5e-3
    plain = walk(model, 3, 0.05, options=replace(QUICK, compensations=0))
    assert np.abs(plain.zmp - plain.zmp_reference).max() > 5e-3


def test_soles_are_where_they_were_planned(gait, model):
    """Those in contact between samples, too; where it is quasi-static, the CoM is (9)."""
    between = np.linspace(0.0, gait.duration, 97)
    for time in (*gait.times[::25], *between):
        sample = gait.at(time)
        state = model.state(sample.positions)
        for foot, (x, y, z, yaw), is_in_contact in zip(
                model.config.feet.values(), gait.plan.soles(time), sample.in_contact):
            pose = sample.base @ state.pose_in_base(foot.sole)
            if time not in between:
                assert pose.position == pytest.approx((x, y, z), abs=1e-9)
                assert pose.rotation == pytest.approx(
                    Rotation.from_euler('z', yaw).as_matrix(), abs=1e-9)
            elif is_in_contact:
                assert pose.position == pytest.approx((x, y, z), abs=1e-5)
        if gait.options.method == 'static':
            com = sample.base.apply(state.com_in_base)
            assert com[:2] == pytest.approx(gait.plan.zmp(time), abs=2e-6)


def test_joints_are_smooth_in_acceleration_and_stand_at_both_ends(gait, model):
    """Where the acceleration is continuous, its steps shrink with the time between samples."""
    largest = []
    for h in (2e-3, 1e-3):
        times = np.arange(0.3, min(gait.duration, 6.0), h)
        values = np.array([gait.at(t).velocities for t in times])
        accelerations = np.diff(values, axis=0) / h
        largest.append(np.abs(np.diff(accelerations, axis=0)).max())
    assert largest[1] < 0.6 * largest[0]
    for time in (0.0, gait.duration):
        assert gait.at(time).positions == pytest.approx(
            gait.at(time + math.copysign(1.0, time - 0.5)).positions)
        assert np.abs(gait.at(time).velocities).max() < 1e-4
    ends_side_by_side = np.ptp(gait.plan.soles(gait.duration)[:, 0]) < 1e-9
    for time in (0.0, gait.duration)[:1 + ends_side_by_side]:
        assert gait.at(time).positions == pytest.approx(model.posture('stand'), abs=1e-6)
    if ends_side_by_side:
        assert gait.base[-1, :2] == pytest.approx((0.1, 0.0), abs=1e-6)


def test_velocities_are_the_derivatives_of_positions(gait):
    h = 1e-5
    for time in np.linspace(0.1, gait.duration - 0.1, 41):
        before, after = gait.at(time - h).positions, gait.at(time + h).positions
        assert gait.at(time).velocities == pytest.approx((after - before) / (2 * h), abs=1e-4)


@pytest.mark.parametrize('robot, length', (
    ('talos', 0.1), *(pytest.param(robot, length, marks=pytest.mark.thorough)
                      for robot, length in (('sabian', 0.09), ('bioloid_legs', 0.02)))))
def test_other_robots_with_such_legs_walk(robot, length):
    model = RobotModel.load(robot)
    gait = walk(model, 2, length, options=replace(QUICK, crouch=0.1))
    error = gait.zmp - gait.zmp_reference
    assert np.abs(error).max() < 0.01
    names = list(model.config.groups['left_leg'])
    limits, values = model.pin_model, gait.positions[:, model.joint_index(names)]
    index = [limits.joints[limits.getJointId(name)].idx_q for name in names]
    assert (limits.lowerPositionLimit[index] <= values.min(axis=0)).all()
    assert (values.max(axis=0) <= limits.upperPositionLimit[index]).all()


# ---- refused


def with_a_tilted_sole(model):
    posture = model.posture('stand')
    posture[model.joint_index(['l_ankle_roll'])] += 0.05
    return StanceIk(model, posture)


HASTY = StepTiming(single_support=0.09, double_support=0.3, start=1.0, stop=1.0, rest=1.0)


@pytest.mark.parametrize('make, error, words', (
    (lambda model: single_step(model, 0.3), InputError, 'lower the hips or step shorter'),
    (lambda model: walk(model, 2, 0.1, options=replace(QUICK, timing=HASTY)), InputError,
     r'rad/s of .* take more time'),
    (lambda _: walk(RobotModel.load('three_link'), 1, 0.05), ConfigurationError,
     '2 motors .* six are needed'),
    (with_a_tilted_sole, ConfigurationError, 'tilted by 2.86 deg'),
    (lambda _: StepPlan(FEET[:1], [Footstep(0, FEET[0])], TARGETS, (0.0, 0.0)),
     ConfigurationError, 'two feet'),
    (lambda _: StepPlan(FEET, [Footstep(2, FEET[0])], TARGETS, (0.0, 0.0)),
     ConfigurationError, 'two feet')))
def test_what_cannot_be_walked_is_refused(model, make, error, words):
    with pytest.raises(error, match=words):
        make(model)


@pytest.mark.parametrize('make, name, value, words', (
    *((partial(PreviewController, 0.4), name, 0.0, name)
      for name in ('dt', 'horizon', 'jerk_weight')),
    (PreviewController, 'height', 0.0, 'height'),
    *((StepTiming, name, value, name) for name, value in (
        ('single_support', 0.0), ('lift', -0.01), ('rest', -1.0), ('stop', math.nan))),
    *((GaitOptions, name, value, name) for name, value in (
        ('crouch', -0.1), ('dt', 1.0))),
    (GaitOptions, 'method', 'dynamic', 'valid: static, preview')))
def test_impossible_options_are_refused(make, name, value, words):
    with pytest.raises(ConfigurationError, match=words):
        make(**{name: value})


@pytest.mark.parametrize('width, given, factor', [
    (1.0, 0.0, 1.0), (0.7, 0.0, 1.0), (0.55, 0.0, 1.14), (0.5, 0.0, 1.38), (0.2, 0.0, 2.0),
    (0.2, 1.2, 1.2)])
def test_steps_take_longer_on_soles_that_are_narrow_for_the_height(model, width, given, factor):
    config = model.config
    feet = {name: replace(foot, polygon=tuple((x, width * y) for x, y in foot.polygon))
            for name, foot in config.feet.items()}
    narrow = RobotModel(replace(
        config, feet=feet, walking=replace(config.walking, time_scale=given)), model.urdf)
    assert time_scale(narrow) == pytest.approx(factor, abs=0.01)
