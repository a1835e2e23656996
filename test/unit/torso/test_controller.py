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
"""The torso's controller against a pendulum on a spring that shares no formula with it."""

from dataclasses import replace
import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.torso.arc import vector_of, wrench_of
from biped_com_ros.core.torso.constant_curvature import make_shape
from biped_com_ros.core.torso.controller import (
    MAX_UPDATE_STEP, Measurement)
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from biped_com_ros.core.torso.orientation import TorsoOrientation
from biped_com_ros.core.torso.reference import MotionLimits
from biped_com_ros.core.torso.slack import SlackPrevention
from biped_com_ros.core.torso.statics import Weight
from biped_com_ros.core.torso.tension import TensionLimits
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.torso_pendulum import (
    aimed, DRIVE, DT, imus_at, make_controller, MAX_BEND, OPTIONS, OTHER, Pendulum, run)


def unguarded(monkeypatch):
    """Let tendons go slack."""
    for name in ('update', 'update_trim'):
        monkeypatch.setattr(SlackPrevention, name, lambda *_: None)


# -- reference

def test_lengths_are_those_of_the_bend_to_be_less_what_drives_stretch():
    """Ahead of the reference by the lead; whatever the elongation, that of all tendons alike."""
    controller = make_controller()
    controller.set_target(make_shape(MAX_BEND, 0.5))
    for _ in range(60):
        out = controller.update(DT, Measurement())
    position, velocity, _ = controller.reference.motion
    assert abs(velocity) > 0.5 and not out.is_closed_loop
    bend, arc = position + DRIVE.lead * velocity, out.reference_arc
    expected = np.array(controller.backbone.lengths_at(bend, arc.torsion, arc.length))
    stretched = out.lengths + (out.tensions - DRIVE.pretension) / DRIVE.stiffness
    assert np.ptp(stretched - expected) < 1e-11


def test_holding_stops_within_the_acceleration():
    controller, pendulum = aimed(make_shape(MAX_BEND, 0.5))
    run(controller, pendulum, 0.15)
    speed = np.hypot(*controller.reference.velocity)
    assert speed > 0.8
    start = controller.reference.position.copy()
    controller.hold()
    run(controller, pendulum, 1.0)
    np.testing.assert_allclose(controller.reference.velocity, 0.0, atol=1e-6)
    # Speed times the delay of the low-passes, and the way of braking.
    assert np.hypot(*(controller.reference.position - start)) < speed * 0.08 + speed ** 2 / 30.0


def test_the_model_alone_bends_right():
    controller, pendulum = make_controller(), Pendulum()
    target = make_shape(0.2, 2.0)
    controller.set_target(target)
    out = run(controller, pendulum, 2.0, orientation=TorsoOrientation())
    np.testing.assert_allclose(pendulum.bend, target[:2], atol=2e-3)
    assert not out.is_closed_loop and 'no recent data of the torso IMU' in out.problems[0]
    np.testing.assert_allclose(pendulum.tensions, out.tensions, rtol=0.05, atol=0.3)


@pytest.mark.parametrize('observer', (0.3, pytest.param(0.0, marks=pytest.mark.thorough)))
def test_the_loop_makes_up_for_wrong_stiffness_and_load(observer):
    target, errors = make_shape(0.22, -0.8), {}
    for is_closed in (True, False):
        controller, pendulum = aimed(
            target, replace(OPTIONS, observer_time=observer), 0.8 * 2.6, push=(0.1, -0.3))
        changes = {} if is_closed else {'orientation': TorsoOrientation()}
        out = run(controller, pendulum, 6.0, **changes)
        errors[is_closed] = np.hypot(*(pendulum.bend - target[:2]))
        assert out.is_closed_loop == is_closed
    assert errors[True] < math.radians(0.02)
    assert errors[False] > math.radians(0.5)


@pytest.mark.parametrize('observer, drive', [
    (0.0, DRIVE), *(pytest.param(observer, drive, marks=pytest.mark.thorough)
                    for observer, drive in ((0.3, DRIVE), (0.0, OTHER), (0.3, OTHER)))])
def test_tendons_are_kept_taut(observer, drive, monkeypatch):
    """An unknown load, wrong stiffness and wrong drives together; without the guard, one hangs."""
    pulls, options = [], replace(OPTIONS, observer_time=observer, drive=drive)
    for is_guarded in (True, False):
        if not is_guarded:
            unguarded(monkeypatch)
        controller, pendulum = aimed(make_shape(0.1, 0.0), options, 0.8 * 2.6, push=(-0.9, 0.0))
        run(controller, pendulum, 4.0)
        pulls.append(pendulum.tensions.min())
        assert np.hypot(*(pendulum.bend - (0.1, 0.0))) < math.radians(0.1)
    assert pulls[0] > 2.9
    if not observer:
        assert pulls[1] < 0.5


@pytest.mark.parametrize('is_guarded, delay', [(True, 0), (True, 10), (False, 0)])
def test_a_load_that_appears_at_once_leaves_no_tendon_slack(is_guarded, delay, monkeypatch):
    """Also with measurements 20 ms late; without the guard a tendon hangs until it is learnt."""
    if not is_guarded:
        unguarded(monkeypatch)
    controller, pendulum = make_controller(), Pendulum()
    run(controller, pendulum, 0.5)
    pendulum.push, late, loose_for, longest = (-0.9, 0.3), [], 0.0, 0.0
    for _ in range(1000):
        late.append(pendulum.measure())
        out = controller.update(DT, late[max(0, len(late) - 1 - delay)])
        pendulum.step(out.lengths)
        loose_for = loose_for + DT if pendulum.tensions.min() < OPTIONS.slack_tension else 0.0
        longest = max(longest, loose_for)
    assert longest < 0.1 if is_guarded else longest > 0.2
    assert np.hypot(*pendulum.bend) < math.radians(0.15)
    assert pendulum.tensions.max() < 45.0
    # It does not sway between pulling more and less.
    tensions = []
    for _ in range(300):
        pendulum.step(controller.update(DT, pendulum.measure()).lengths)
        tensions.append(pendulum.tensions.copy())
    assert np.abs(np.diff(tensions[::10], 2, axis=0)).max() < 0.05


def test_all_pull_less_again_once_all_are_taut():
    controller, pendulum = aimed(make_shape(0.1, 0.0), push=(-0.7, 0.0))
    strong = run(controller, pendulum, 1.5).tensions[[1, 3]].max()
    pendulum.push = 0.0, 0.0
    out = run(controller, pendulum, 5.0)
    assert out.tensions.sum() == pytest.approx(48.0, rel=0.02) and strong > 14.0


@pytest.mark.parametrize('anticipation', [0.06, 0.0])
def test_anticipation_makes_up_for_delays(anticipation):
    """Measurements 30 ms late: by the proportional part alone the torso goes on swaying."""
    controller = make_controller(
        replace(OPTIONS, proportional=0.8, integral=2.0, anticipation=anticipation))
    pendulum, late, errors = Pendulum(), [], []
    controller.set_target(make_shape(0.1, 0.0))
    for _ in range(2000):
        arc = controller.backbone.arc(complex(*pendulum.bend))
        turning = arc.twist(complex(*pendulum.rate), 0.0)[2:]
        by_imus = imus_at(pendulum.rotation)._replace(
            gyros=((0j, 0.0), arc.rotate_back(*turning)))
        late.append(pendulum.measure(orientation=by_imus))
        pendulum.step(controller.update(DT, late[max(0, len(late) - 16)]).lengths)
        errors.append(np.hypot(*(pendulum.bend - (0.1, 0.0))))
    swing = max(errors[-500:])
    assert swing < math.radians(0.05) if anticipation else swing > math.radians(0.3)


def turned(angle, rotation):
    """Return a rotation as an IMU sees it whose yaw is too large."""
    return Rotation.from_euler('z', angle) * rotation


@pytest.mark.parametrize('lean', [Rotation.identity(), Rotation.from_euler('xy', (0.1, -0.2))])
@pytest.mark.parametrize('bend, is_measured', [
    (0.2, True), pytest.param(0.0, True, marks=pytest.mark.thorough), (0.1, False)])
def test_relative_yaw_of_the_imus_is_distinguished_from_torsion(bend, is_measured, lean):
    """It turns direction and torsion; lengths of the tendons know the direction without it."""
    # Where only torsion is informative, it has to be zero.
    torsion = 0.03 if bend and is_measured else 0.0
    up = vector_of(lean.as_matrix()[2])
    shape, controller = make_shape(bend, 1.0, torsion), make_controller()
    backbone, drift = controller.backbone, controller.yaw_offset
    lengths = backbone.lengths(shape) if is_measured else None
    tip = Rotation.from_matrix(backbone.tip(shape).rotation)
    for k in range(2000):
        yaw = 0.7 + math.radians(0.05) * 0.02 * k  # 3 deg a minute
        error = lean.inv() * turned(yaw - drift.value, lean)
        measured = Measurement(imus_at(error * tip, up), lengths, [12.0] * 4, inertia=0.03)
        out = controller.update(0.02, measured)
    assert drift.value == pytest.approx(yaw, abs=math.radians(0.3))  # rate times time constant
    np.testing.assert_allclose(out.shape[:3], shape[:3], atol=math.radians(0.3))
    if torsion:  # which the reference has as it is measured
        assert out.reference[2] == pytest.approx(out.shape[2], abs=1e-3)


def test_the_torso_bends_the_right_way_though_the_imus_disagree_about_north():
    target, errors = make_shape(0.2, 0.7), {}
    for time in (5.0, 0.0):
        controller, pendulum = aimed(target, replace(OPTIONS, yaw_offset_time=time))
        for _ in range(1500):
            by_imus = imus_at(turned(0.35 - controller.yaw_offset.value, pendulum.rotation))
            pendulum.step(controller.update(DT, pendulum.measure(orientation=by_imus)).lengths)
        errors[time] = np.hypot(*(pendulum.bend - target[:2]))
    assert errors[5.0] < math.radians(0.2) < math.radians(2.0) < errors[0.0]


def test_elongation_is_more_or_less_pull():
    controller = make_controller()
    controller.set_target((0.0, 0.0, 0.0, -0.001))
    out = run(controller, Pendulum(), 1.0)
    # k_c 1 mm = 50 N, over four tendons on top of 12 N each.
    np.testing.assert_allclose(out.tensions, 24.5, atol=0.1)
    assert 'elongation' in controller.set_target((0.0, 0.0, 0.0, 0.002))
    out = run(controller, Pendulum(), 1.6)
    np.testing.assert_allclose(out.tensions, OPTIONS.tensions.lowest, atol=0.1)


def test_options_change_while_it_moves_and_nothing_jumps():
    controller, pendulum = aimed(make_shape(0.2, 0.5))
    before = run(controller, pendulum, 0.3)
    position = controller.reference.position
    controller.set_options(replace(OPTIONS, co_contraction=30.0, proportional=0.3,
                           motion=MotionLimits(speed=0.2, acceleration=20.0, smoothing=0.03)))
    after = run(controller, pendulum, DT)
    assert np.abs(after.lengths - before.lengths).max() < 2e-4
    np.testing.assert_allclose(controller.reference.position, position, atol=0.01)
    for _ in range(300):
        out = run(controller, pendulum, DT)
    assert np.hypot(*controller.reference.velocity) < 0.2 + 1e-6
    run(controller, pendulum, 1.5)
    out = run(controller, pendulum, 0.5)
    assert out.tensions.mean() == pytest.approx(30.0, abs=0.1)
    np.testing.assert_allclose(pendulum.bend, make_shape(0.2, 0.5)[:2], atol=math.radians(0.3))


@pytest.mark.parametrize('smoothing', [(0.0, 0.03), (0.03, 0.0)])
def test_another_smoothing_in_the_middle_of_a_motion_steps_no_motor(smoothing):
    def options(time):
        return replace(OPTIONS, motion=MotionLimits(smoothing=time))
    controller, pendulum = aimed(make_shape(0.25), options(smoothing[0]))
    before = run(controller, pendulum, 0.15)
    controller.set_options(options(smoothing[1]))
    for _ in range(20):
        after = controller.update(0.01, pendulum.measure())
        assert np.abs(after.lengths - before.lengths).max() <= 0.01 * controller.largest_rate
        before = after


def test_a_load_that_vanishes_steps_no_motor():
    """As where the topic of a hand stops."""
    controller, pendulum = aimed(make_shape(0.0))
    before = run(controller, pendulum, 1.0, load=lambda arc: wrench_of(
        np.array((0.0, 0.0, 0.0, 0.0, 1.5, 0.0))))
    after = controller.update(0.01, pendulum.measure())
    assert controller.limited_updates
    step = np.abs(after.lengths - before.lengths).max()
    assert step == pytest.approx(0.01 * controller.largest_rate)


def test_activated_again_under_an_unknown_load_it_stays_where_it_is():
    controller, pendulum = aimed(make_shape(0.1), push=(0.5, 0.0))
    before = run(controller, pendulum, 6.0)
    bend = pendulum.bend.copy()
    np.testing.assert_allclose(bend, (0.1, 0.0), atol=math.radians(0.2))
    # Inactive: the drives hold.
    for _ in range(100):
        pendulum.step(before.lengths)
    controller.resume(np.array((*pendulum.bend, 0.0, 0.0)), pendulum.lengths)
    for _ in range(200):
        after = run(controller, pendulum, 0.01)
        assert np.abs(pendulum.bend - bend).max() < math.radians(0.3)
    # Elsewhere than the drives were left, commands begin where the tendons are.
    low, high = controller.length_limits
    for distance in (0.012, 0.05):
        moved = np.array(pendulum.lengths) + distance * np.array((1.0, 0.0, -1.0, 0.0))
        controller.resume(np.zeros(4), moved.tolist())
        after = controller.update(0.01, pendulum.measure())
        # That may be beyond the limits, in which every command is.
        assert (low <= after.lengths).all() and (after.lengths <= high).all()
        assert np.abs(after.lengths - np.clip(moved, low, high)).max() <= (
            0.01 * controller.largest_rate + 1e-12)


# -- bad input

def test_targets_outside_are_clamped_and_reported_and_those_that_are_no_numbers_refused():
    controller, pendulum = make_controller(), Pendulum()
    pendulum.bend = np.array((0.1, -0.1))
    controller.reset(np.array((0.1, -0.1, 0.0, 0.0)))  # it starts where the torso is
    out = controller.update(DT, pendulum.measure())
    np.testing.assert_allclose(out.reference[:2], (0.1, -0.1), atol=1e-12)
    assert 'bend 57.3 deg is more than 15.0 deg' in controller.set_target(make_shape(1.0, 0.3))
    out = run(controller, pendulum, 2.0)
    np.testing.assert_allclose(out.reference[:2], make_shape(MAX_BEND, 0.3)[:2], atol=1e-6)
    assert any('more than 15.0 deg' in problem for problem in out.problems)
    controller.set_target(np.zeros(4))
    assert not run(controller, pendulum, 1.0).problems
    for target in ((math.nan, 0, 0, 0), (0, math.inf, 0, 0), (0.1, 0.1)):
        with pytest.raises(InputError, match='four finite numbers'):
            controller.set_target(target)
    np.testing.assert_allclose(controller.target, np.zeros(4))


@pytest.mark.parametrize('change, words', [
    ({'lengths': np.full(4, math.nan)}, 'tendon lengths'), ({'tensions': np.zeros(3)}, 'tensions'),
    ({'orientation': TorsoOrientation(bend=complex(0.1, math.nan))}, 'IMUs must be finite'),
    ({'orientation': TorsoOrientation(bend=0.1 + 0j, torsion=math.inf)}, 'IMUs must be finite'),
    ({'orientation': TorsoOrientation(bend=0j, gyros=((0j, 0.0), (0j, math.nan)))},
     'velocities by IMUs')])
def test_measurements_that_are_no_numbers_are_refused(change, words):
    controller, pendulum = make_controller(), Pendulum()
    with pytest.raises(InputError, match=words):
        controller.update(DT, pendulum.measure(**change))
    with pytest.raises(InputError, match='time between updates'):
        controller.update(0.0, pendulum.measure())
    run(controller, pendulum, 0.1)


@pytest.mark.parametrize('bend', [(0.0, 0.0), (0.2, 0.0)])
def test_gyroscopes_that_cannot_be_true_open_the_loop(bend):
    """Finite numbers, whose products are not always: messages with them are read."""
    controller, pendulum = make_controller(), Pendulum()
    pendulum.bend = np.array(bend)
    controller.reset(make_shape(math.hypot(*bend)))
    controller.plan(DT, Weight(2.0, (0j, 0.1), (0j, -9.81)), 0.03)
    wrong = pendulum.measure().orientation._replace(gyros=((0j, 0.0), (1e308 + 1e308j, -1e308)))
    controller.set_orientation(wrong)
    out = controller.command(DT)
    assert not out.is_closed_loop and 'IMUs that turn by' in out.problems[0]
    assert out.rates == (0j, 0.0) and np.isfinite(out.lengths).all()
    controller.set_orientation(pendulum.measure().orientation)
    assert controller.command(DT).is_closed_loop


@pytest.mark.parametrize('axis, angle', (
    ('z', 180), *(pytest.param(*flip, marks=pytest.mark.thorough)
                  for flip in (('x', 180), ('y', 90)))))
def test_a_flipped_imu_is_found_out(axis, angle):
    """Wherever its mounting is wrong, the torso goes on by its model."""
    target, flip = make_shape(0.2, 0.3), Rotation.from_euler(axis, angle, degrees=True)
    controller, pendulum = aimed(target, push=(0.05, 0.0))
    for _ in range(1500):
        # Mounted flipped: what is read is conjugated.
        wrong = pendulum.rotation * flip
        if axis == 'z':
            wrong = flip.inv() * wrong
        out = controller.update(DT, pendulum.measure(orientation=imus_at(wrong)))
        pendulum.step(out.lengths)
    assert not out.is_closed_loop
    assert any('the IMU is flipped' in problem for problem in out.problems)
    np.testing.assert_allclose(pendulum.bend, target[:2], atol=math.radians(1.5))


def test_without_imu_the_last_correction_stays():
    controller, pendulum = aimed(
        make_shape(0.15, 1.0), replace(OPTIONS, observer_time=0.0), push=(0.2, 0.1))
    run(controller, pendulum, 4.0)
    before = pendulum.bend.copy()
    out = run(controller, pendulum, 2.0, orientation=TorsoOrientation())
    assert not out.is_closed_loop
    np.testing.assert_allclose(pendulum.bend, before, atol=math.radians(0.1))


def test_the_integral_does_not_wind_up():
    """A torso held by force for long comes back as quickly as one held briefly."""
    settled = []
    for seconds in (1.0, 20.0):
        controller, pendulum = make_controller(), Pendulum()
        controller.set_target(make_shape(0.1, 0.0))
        for _ in range(round(seconds / DT)):
            out = controller.update(DT, Measurement(
                TorsoOrientation(bend=0j), pendulum.lengths))
        assert np.abs(out.lengths - 0.129).max() < 0.034 * (0.1 + math.radians(8.0)) + 0.004
        run(controller, pendulum, 1.5)
        settled.append(abs(pendulum.bend[0] - 0.1))
    assert max(settled) < math.radians(0.5)


def test_a_slack_tendon_is_named_and_all_pull_more():
    controller, pendulum = make_controller(), Pendulum()
    for _ in range(100):
        out = controller.update(DT, pendulum.measure(tensions=[12.0, 0.0, 12.0, 12.0]))
    assert any('tendon 1 is slack' in problem for problem in out.problems)
    assert out.tensions.min() > 12.0
    run(controller, pendulum, 0.1)
    assert controller.slack.slack == ()


def test_a_broken_tendon_is_named_and_the_torso_holds():
    controller, pendulum = aimed(make_shape(0.15, 0.0))
    run(controller, pendulum, 2.0)
    pendulum.cut = 3,
    out = run(controller, pendulum, 2.0)
    assert any('tendon 3 stays without tension' in problem for problem in out.problems)
    controller.set_target(make_shape(0.2, 2.0))
    before = controller.reference.position.copy()
    run(controller, pendulum, 1.0)
    np.testing.assert_allclose(controller.reference.position, before, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2 ** 31), st.floats(0.001, 3.0))
def test_commands_stay_inside_limits_always(seed, size):
    """Whatever is measured, however settings change, and wherever commands are interrupted."""
    random, controller = np.random.default_rng(seed), make_controller()
    low, high = controller.length_limits
    last = None
    for _ in range(60):
        controller.set_target(random.normal(0.0, size, 4))
        if random.random() < 0.2:
            controller.set_options(replace(
                OPTIONS, co_contraction=random.uniform(5.0, 40.0),
                proportional=random.uniform(0.0, 1.0), motion=MotionLimits(
                    smoothing=random.choice((0.0, 0.03)), speed=random.uniform(0.1, 3.0))))
        if random.random() < 0.1:
            controller.resume(random.normal(0.0, size, 4))
        dt = random.uniform(1e-4, 1.0)
        out = controller.update(dt, Measurement(
            imus_at(Rotation.random(random_state=seed)),
            random.normal(0.129, 0.05 * size, 4), np.abs(random.normal(0.0, 100.0 * size, 4)),
            lambda arc: wrench_of(random.normal(0.0, 50.0 * size, 6)), random.uniform(0.0, 1.0)))
        assert (out.lengths >= low).all() and (out.lengths <= high).all()
        assert (out.tensions >= 3.0 - 1e-9).all() and (out.tensions <= 60.0 + 1e-9).all()
        if last is not None:
            step = controller.largest_rate * min(dt, MAX_UPDATE_STEP)
            assert np.abs(out.lengths - last).max() <= step + 1e-12
        last = out.lengths
    assert controller.limited_updates > 0
    assert low > 0.1 and high < 0.145


@pytest.mark.parametrize('make, changes', [
    *((TendonDrive, {name: value}) for name, value in (
        ('stiffness', 0.0), ('pretension', -1.0), ('lead', 2.0))),
    *((ControllerOptions, {name: value}) for name, value in (
        ('co_contraction', 1.0), ('integral', -1.0),
        ('tensions', TensionLimits(lowest=20.0, highest=30.0))))])
def test_options_make_sense(make, changes):
    with pytest.raises(ConfigurationError):
        make(**changes)
