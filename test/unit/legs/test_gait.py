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
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.legs.footsteps import (
    Footprint, Footstep, forward_steps, StepPlan, StepTiming)
from biped_com_ros.core.legs.gait import (
    Gait, GaitOptions, PreviewController, QUICK, riccati, single_step, walk)
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.support import support_polygon
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.spatial.transform import Rotation
from support.urdf_oracle import GRAVITY, Tree
from support.walk_oracle import zmp_of_samples

FEET = (Footprint(0.0, 0.1), Footprint(0.0, -0.1))
TARGETS = ((0.02, -0.01), (0.02, 0.01))


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.fixture(scope='module')
def stance(model):
    return StanceIk(model, model.posture('stand'))


def turning_steps(footprints):
    """To the left along an arc and sideways; no foot lands where another one stands."""
    (_, left), (_, right) = ((f.x, f.y) for f in footprints[:2])
    return [Footstep(1, Footprint(0.04, right + 0.005, 0.1)),
            Footstep(0, Footprint(0.05, left + 0.02, 0.25)),
            Footstep(1, Footprint(0.085, right + 0.02, 0.3))]


@pytest.fixture(scope='module', params=('step', 'static', 'quick', 'turning'))
def gait(request, model, stance):
    if request.param == 'step':
        return single_step(model, 0.05)
    if request.param == 'turning':
        return Gait(stance, turning_steps(stance.footprints), QUICK)
    return walk(model, 3, 0.05, 0, GaitOptions() if request.param == 'static' else QUICK)


# ---- preview


def cart(dt=0.005, height=0.42):
    """Return the system with its integrator, built here again."""
    A, B = np.eye(4), np.array((0.0, dt ** 3 / 6, dt ** 2 / 2, dt))[:, np.newaxis]
    A[1:, 1:] = ((1, dt, dt ** 2 / 2), (0, 1, dt), (0, 0, 1))
    C = np.array((1.0, 0.0, -height / GRAVITY))
    A[0, 1:], B[0] = C @ A[1:, 1:], C @ B[1:]
    return A, B, C


@pytest.mark.parametrize('dt', (0.002, 0.005, 0.02))
def test_riccati_is_scipys(dt):
    A, B, _ = cart(dt)
    Q = np.diag((1.0, 0.0, 0.0, 0.0))
    expected = solve_discrete_are(A, B, Q, np.array([[1e-6]]))
    assert riccati(A, B, Q, 1e-6) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_feedback_is_the_optimal_one():
    A, B, _ = cart()
    P = solve_discrete_are(A, B, np.diag((1.0, 0.0, 0.0, 0.0)), np.array([[1e-6]]))
    gains = np.linalg.solve(1e-6 + B.T @ P @ B, B.T @ P @ A)[0]
    controller = PreviewController(0.42, 0.005)
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


def test_cart_moves_before_the_reference_and_settles_on_it():
    controller = PreviewController(0.42)
    reference = np.zeros((1200, 2))
    reference[600:] = 0.05, -0.02
    states = controller.track(reference, np.zeros((3, 2)))
    assert states[595, 0, 0] > 0.01 and states[595, 0, 1] < -0.004
    assert np.abs(states[:200, 0]).max() < 1e-4
    assert states[-1] == pytest.approx(np.array(((0.05, -0.02), (0, 0), (0, 0))), abs=1e-5)


@pytest.mark.parametrize('name', ('height', 'dt', 'horizon', 'error_weight', 'jerk_weight'))
def test_preview_refuses_what_is_not_positive(name):
    with pytest.raises(ConfigurationError, match=name):
        PreviewController(**{'height': 0.4, name: 0.0})


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


def test_several_steps_end_side_by_side_and_one_does_not():
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


@pytest.mark.parametrize('feet, steps', ((FEET[:1], [Footstep(0, FEET[0])]),
                                         (FEET, [Footstep(2, FEET[0])])))
def test_plans_of_other_than_two_feet_are_refused(feet, steps):
    with pytest.raises(ConfigurationError, match='two feet'):
        StepPlan(feet, steps, TARGETS, (0.0, 0.0))


@pytest.mark.parametrize('name, value', (
    ('single_support', 0.0), ('lift', -0.01), ('rest', -1.0), ('stop', math.nan)))
def test_impossible_timings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        StepTiming(**{name: value})


# ---- walks


def zmp_by_newton_and_euler(tree, model, gait, time, h=2e-3):
    """Take the samples' public fields only."""
    return zmp_of_samples(tree, model, [gait.at(time + d) for d in (-h, 0.0, h)], h)


def test_zmp_of_all_links_is_inside_the_support_polygon(gait, model):
    """By Newton and Euler from link poses; the polygon from the URDF's soles."""
    tree, worst, limit = Tree(model.urdf), math.inf, 0.02
    for time in np.linspace(0.01, gait.duration - 0.01, 150):
        zmp = zmp_by_newton_and_euler(tree, model, gait, time)
        sample = gait.at(time)
        poses = [sample.base @ model.state(sample.positions).pose_in_base(foot.sole)
                 for foot in model.config.feet.values()]
        polygon = support_polygon(
            poses, [f.polygon for f in model.config.feet.values()], sample.in_contact)
        worst = min(worst, polygon.margin(np.array((*zmp, 0.0))).distance)
    assert worst > limit


def test_zmp_found_while_planning_is_newtons_and_eulers(gait, model):
    tree = Tree(model.urdf)
    for k in range(20, len(gait.times) - 20, len(gait.times) // 25):
        expected = zmp_by_newton_and_euler(tree, model, gait, gait.times[k])
        assert gait.zmp[k] == pytest.approx(expected, abs=2e-4)


def test_previewed_zmp_is_the_reference_within_a_millimetre(model):
    gait = walk(model, 4, 0.05, options=QUICK)
    error = gait.zmp - gait.zmp_reference
    assert np.sqrt((error ** 2).mean()) < 0.5e-3 and np.abs(error).max() < 1.5e-3


def test_compensation_is_what_makes_it_so(model):
    plain = walk(model, 4, 0.05, options=replace(QUICK, compensations=0))
    assert np.abs(plain.zmp - plain.zmp_reference).max() > 5e-3


def test_quasi_static_centre_of_mass_is_the_reference(model):
    """Equation (9)."""
    gait = single_step(model, 0.05)
    for time in np.linspace(0.0, gait.duration, 60):
        sample = gait.at(time)
        com = sample.base.apply(model.state(sample.positions).com_in_base)
        assert com[:2] == pytest.approx(gait.plan.zmp(time), abs=2e-6)


def test_soles_are_where_they_were_planned(gait, model):
    for k in range(0, len(gait.times), 25):
        sample = gait.at(gait.times[k])
        state = model.state(sample.positions)
        for foot, (x, y, z, yaw) in zip(model.config.feet.values(), gait.plan.soles(
                gait.times[k])):
            pose = sample.base @ state.pose_in_base(foot.sole)
            assert pose.position == pytest.approx((x, y, z), abs=1e-9)
            assert pose.rotation == pytest.approx(
                Rotation.from_euler('z', yaw).as_matrix(), abs=1e-9)


def test_standing_feet_stay_put_between_samples_too(gait, model):
    for time in np.linspace(0.0, gait.duration, 97):
        sample = gait.at(time)
        state = model.state(sample.positions)
        for i, foot in enumerate(model.config.feet.values()):
            pose = sample.base @ state.pose_in_base(foot.sole)
            if sample.in_contact[i]:
                assert pose.position == pytest.approx(gait.plan.soles(time)[i, :3], abs=1e-5)


def test_joints_are_smooth_in_acceleration(gait):
    """Where the acceleration is continuous, its steps shrink with the time between samples."""
    largest = []
    for h in (2e-3, 1e-3):
        times = np.arange(0.3, min(gait.duration, 6.0), h)
        values = np.array([gait.at(t).velocities for t in times])
        accelerations = np.diff(values, axis=0) / h
        largest.append(np.abs(np.diff(accelerations, axis=0)).max())
    assert largest[1] < 0.6 * largest[0]


def test_velocities_are_the_derivatives_of_positions(gait):
    h = 1e-5
    for time in np.linspace(0.1, gait.duration - 0.1, 41):
        before, after = gait.at(time - h).positions, gait.at(time + h).positions
        assert gait.at(time).velocities == pytest.approx((after - before) / (2 * h), abs=1e-4)


def test_walks_begin_and_end_standing(model):
    for options in (GaitOptions(), QUICK):
        gait = walk(model, 2, 0.05, options=options)
        for time in (-1.0, 0.0, gait.duration, gait.duration + 1.0):
            assert gait.at(time).positions == pytest.approx(model.posture('stand'), abs=1e-6)
        for time in (0.0, gait.duration):
            assert np.abs(gait.at(time).velocities).max() < 1e-4
        assert gait.base[-1, :2] == pytest.approx((0.05, 0.0), abs=1e-6)


@pytest.mark.parametrize('robot, length', (('sabian', 0.09), ('bioloid_legs', 0.02),
                                           ('talos', 0.1)))
def test_other_robots_with_such_legs_walk(robot, length):
    model = RobotModel.load(robot)
    gait = walk(model, 2, length, options=replace(QUICK, crouch=0.1))
    error = gait.zmp - gait.zmp_reference
    assert np.abs(error).max() < 0.01
    names = list(model.config.groups['left_leg'])
    limits = model.pin_model
    for name in names:
        index = limits.joints[limits.getJointId(name)].idx_q
        values = gait.positions[:, model.joint_index([name])[0]]
        assert limits.lowerPositionLimit[index] <= values.min()
        assert values.max() <= limits.upperPositionLimit[index]


# ---- refused


def test_steps_too_long_are_refused_with_what_to_do(model):
    with pytest.raises(InputError, match='lower the hips or step shorter'):
        single_step(model, 0.3)


def test_steps_too_fast_are_refused(model):
    timing = StepTiming(single_support=0.09, double_support=0.3, start=1.0, stop=1.0, rest=1.0)
    with pytest.raises(InputError, match=r'rad/s of .* take more time'):
        walk(model, 2, 0.1, options=replace(QUICK, timing=timing))


def test_other_legs_are_refused():
    with pytest.raises(ConfigurationError, match='2 joints .* six are needed'):
        walk(RobotModel.load('three_link'), 1, 0.05)


def test_soles_must_be_level_to_begin_with(model):
    posture = model.posture('stand')
    posture[model.joint_index(['l_ankle_roll'])] += 0.05
    with pytest.raises(ConfigurationError, match='tilted by 2.86 deg'):
        StanceIk(model, posture)


@pytest.mark.parametrize('change', ({'method': 'dynamic'}, {'crouch': -0.1}, {'dt': 1.0},
                                    {'inward': 2.0}))
def test_impossible_options_are_refused(change):
    with pytest.raises(ConfigurationError, match=next(iter(change.keys()))
                       if 'method' not in change else 'valid: static, preview'):
        replace(QUICK, **change)
