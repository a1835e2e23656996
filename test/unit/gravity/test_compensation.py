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
"""Sensor values in, efforts or an error out."""

import math

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.geometry.polygon import distances_inside, half_planes
from biped_com_ros.core.gravity.attitude import UprightCheck
from biped_com_ros.core.gravity.compensation import (
    CompensationSettings, GravityCompensator, support_problem)
from biped_com_ros.core.gravity.model import ContactSolution
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.sensor_faults import WeightBalanceSettings
import numpy as np
import pytest

UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope='module')
def model():
    """Return Talos."""
    return RobotModel.load('talos')


@pytest.fixture(scope='module')
def state(model):
    """Return it in its posture."""
    return model.state(model.posture())


@pytest.fixture
def compensator(model):
    return GravityCompensator(model)


@pytest.fixture
def standing(compensator, state):
    """Return a compensator that has had the wrenches of a robot on both feet at 0 s."""
    efforts(compensator, state, UP, 0, standing_wrenches(compensator))
    return compensator


def standing_wrenches(compensator, left=0.5):
    """Vertical forces that share the weight."""
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = compensator.gravity_model.weight * np.array([left, 1.0 - left])
    return wrenches


def efforts(compensator, state, up, stamp_ns, wrenches=()):
    """Return the efforts by the wrenches of all contacts at one instant."""
    for contact, wrench in enumerate(np.asarray(wrenches).tolist()):
        compensator.update_wrench(contact, wrench, stamp_ns)
    return compensator.efforts(compensator.gravity_model.load(state, up), stamp_ns)


def test_auto_follows_the_forces(compensator, state):
    found = efforts(compensator, state, UP, 0, standing_wrenches(compensator, 0.52))
    load = compensator.gravity_model.load(state, UP)
    np.testing.assert_allclose(found, load.on_contacts(np.array([0.52, 0.48])).efforts, atol=1e-9)
    assert compensator.mode == 'left, right'


def test_planned_shares_replace_the_measured_ones_until_they_expire(compensator, state):
    """A landing foot measures no force yet, and has to be loaded all the same."""
    wrenches = standing_wrenches(compensator, 0.5)
    load = compensator.gravity_model.load(state, UP)
    efforts(compensator, state, UP, 0, wrenches)
    compensator.plan_shares(np.array([0.6, 0.4]), -100_000_000)
    found = efforts(compensator, state, UP, 50_000_000, wrenches)
    np.testing.assert_allclose(found, load.on_contacts(np.array([0.6, 0.4])).efforts, atol=1e-9)
    later = efforts(compensator, state, UP, 110_000_000, wrenches)  # 1.8/s for 60 ms
    np.testing.assert_allclose(later, load.on_contacts(np.array([0.5, 0.5])).efforts, atol=1e-9)
    compensator.plan_shares(np.array([0.6, 0.4]), 200_000_000)
    with pytest.raises(InputError, match='in the air'):
        efforts(compensator, state, UP, 200_000_000, 0.0 * wrenches)


def test_forces_count_along_gravity_not_along_the_sole(model, state):
    """On a slope the force along the sole's normal is less than the load."""
    compensator = GravityCompensator(model, CompensationSettings(cop_tolerance=1.0))
    up = np.array([0.2, 0.0, 1.0]) / np.linalg.norm([0.2, 0.0, 1.0])
    R_sole_base = state.placements_in_base(model.soles)[:, :3]
    wrenches = np.zeros((2, 6))
    wrenches[:, :3] = compensator.gravity_model.weight * np.array(
        [0.3, 0.7])[:, np.newaxis] * (R_sole_base @ up)
    efforts(compensator, state, up, 0, wrenches)
    np.testing.assert_allclose(compensator.sharing.values, [0.3, 0.7], atol=1e-9)


def test_fixed_and_named_supports(state, model):
    fixed = GravityCompensator(model, CompensationSettings(support='fixed'))
    load = fixed.gravity_model.load(state, UP)
    np.testing.assert_allclose(efforts(fixed, state, UP, 0), load.fixed_base_efforts())
    assert fixed.mode == 'fixed'
    left = GravityCompensator(model, CompensationSettings(support='left', cop_tolerance=1.0))
    np.testing.assert_allclose(
        efforts(left, state, UP, 0), load.on_contacts(np.array([1.0, 0.0])).efforts, atol=1e-9)
    both = GravityCompensator(model, CompensationSettings(support='left, right'))
    every = GravityCompensator(model, CompensationSettings(support='all'))
    np.testing.assert_allclose(efforts(both, state, UP, 0), efforts(every, state, UP, 0))


def test_gains_and_groups(state, model):
    compensator = GravityCompensator(model, CompensationSettings(support='all'))
    whole = efforts(compensator, state, UP, 0)
    gains = np.ones(len(model.joint_names))
    gains[3] = 0.25
    compensator.gains = gains
    assert efforts(compensator, state, UP, 1)[3] == pytest.approx(0.25 * whole[3])
    compensator.enable(['left_arm'])
    assert compensator.limiter.enabled.sum() == len(model.config.groups['left_arm'])
    compensator.enable([])
    assert compensator.limiter.enabled.all()
    with pytest.raises(UnknownNameError, match='wings'):
        compensator.enable(['wings'])


def moment_outside(contact, wrench):
    """Return normal force times distance of the centre of pressure outside the sole, N m."""
    _, _, fz, mx, my, _ = wrench
    return -fz * min(distances_inside(half_planes(contact.polygon), (-my / fz, mx / fz)))


def test_supports_whose_centre_of_pressure_leaves_the_sole_are_refused(model):
    rng = np.random.default_rng(3)
    compensator, results = GravityCompensator(model), set()
    tolerance = compensator.settings.cop_tolerance
    for _ in range(300):
        up = np.array([*rng.uniform(-0.2, 0.2, 2), 1.0])
        load = compensator.gravity_model.load(
            model.state(model.posture()), up / np.linalg.norm(up))
        support = load.on_contacts(rng.dirichlet((0.5, 0.5)))
        outside = max(map(moment_outside, compensator.gravity_model.contacts, support.wrenches))
        problem = support_problem(support, tolerance)
        if 'pull' in problem:
            continue
        is_refused = 'outside its sole' in problem
        assert is_refused is bool(outside > tolerance * compensator.gravity_model.weight)
        results.add(is_refused)
    assert results == {True, False}


def test_reasons(compensator, state, model):
    standing, weight = standing_wrenches(compensator), compensator.gravity_model.weight
    for number, (one, up, wrenches, error, words) in enumerate((
            (compensator, UP, np.zeros((2, 6)), InputError, 'in the air'),
            (compensator, -UP, standing, InputError, 'tilted'),
            (GravityCompensator(model), UP, (), ConfigurationError,
             'needs the measured wrenches'),
            (compensator, UP, 9.81 * standing, InputError, 'not plausible; check the units'))):
        compensator.reset()
        with pytest.raises(error, match=words):
            efforts(one, state, up, number, wrenches)
    compensator.reset()
    efforts(compensator, state, UP, 5, standing)
    with pytest.raises(UnknownNameError, match='tail'):
        compensator.configure(CompensationSettings(support='tail'))
    assert compensator.settings.support == 'auto'
    for shares in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]):
        with pytest.raises(InputError, match='planned shares'):
            compensator.plan_shares(np.array(shares), 0)
    load = compensator.gravity_model.load(state, UP)
    pulled = [wrench.tolist() for wrench in load.on_contacts([0.5, 0.5]).wrenches]
    pulled[1][2] -= weight
    assert "balance requires contact 'right' to pull with" in support_problem(
        ContactSolution(load, [0.5, 0.5], pulled), 1.0)


@pytest.mark.parametrize('value', (np.nan, np.inf, -np.inf))
def test_wrenches_that_are_not_finite_are_refused_and_do_not_last(compensator, state, value):
    good = standing_wrenches(compensator)
    expected = efforts(compensator, state, UP, 0, good)
    bad = good.copy()
    bad[1, 2] = value
    with pytest.raises(InputError, match='not plausible'):
        efforts(compensator, state, UP, 2_000_000, bad)
    np.testing.assert_allclose(efforts(compensator, state, UP, 4_000_000, good), expected)


def test_a_reset_clears_the_plan_and_a_jump_of_the_attitude(compensator, state):
    efforts(compensator, state, UP, 10_000_000_000, standing_wrenches(compensator))
    compensator.plan_shares(np.array([0.6, 0.4]), 10_000_000_000)
    with pytest.raises(InputError, match='jumped'):
        efforts(compensator, state, np.array([0.3, 0.0, 0.95]), 10_002_000_000)
    compensator.reset()  # the clock was set back
    efforts(compensator, state, UP, 1_000_000_000, standing_wrenches(compensator))
    assert compensator.sharing.values == pytest.approx([0.5, 0.5])


def test_shares_follow_when_all_feet_are_measured_at_an_instant(model):
    """As if the wrenches came together with the joint states."""
    early, late = GravityCompensator(model), GravityCompensator(model)
    state, step = model.state(model.posture()), 2_000_000
    for one in (early, late):
        efforts(one, state, UP, 0, standing_wrenches(one))
    load = early.gravity_model.load(state, UP)
    for i in range(1, 40):
        left, right = standing_wrenches(early, 0.7).tolist()
        early.update_wrench(0, left, i * step)
        before = early.sharing.values
        early.update_wrench(1, right, i * step)
        assert early.sharing.values != before or early.sharing.settled
        found = early.efforts(load, i * step)
        expected = efforts(late, state, UP, i * step, standing_wrenches(late, 0.7))
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert 0.6 < early.sharing.values[0] < 0.69  # rate limited, and under way


def test_wrenches_of_different_times_count_at_the_next_posture(standing, state):
    load = standing.gravity_model.load(state, UP)
    left, right = standing_wrenches(standing, 0.51).tolist()
    standing.update_wrench(0, left, 1_000_000)
    standing.update_wrench(1, right, 1_500_000)
    assert standing.sharing.values == pytest.approx([0.5, 0.5])
    standing.efforts(load, 10_000_000)
    assert standing.sharing.values == pytest.approx([0.51, 0.49], abs=0.01)


def test_joints_that_are_a_little_behind_the_feet_are_no_step_back_in_time(standing, state):
    """Else shares would jump to their targets without the rate limit."""
    load = standing.gravity_model.load(state, UP)
    for contact, wrench in enumerate(standing_wrenches(standing, 0.8).tolist()):
        standing.update_wrench(contact, wrench, 4_000_000)
    share, _ = standing.sharing.values
    assert 0.5 < share < 0.52 and not standing.sharing.settled
    standing.efforts(load, 3_000_000)
    assert standing.sharing.values[0] == share
    standing.efforts(load, 5_000_000)
    assert share < standing.sharing.values[0] < 0.52


def test_axes_of_an_old_posture_are_not_used(standing, state):
    """The robot may have moved since the last posture."""
    for contact, wrench in enumerate(standing_wrenches(standing, 0.8).tolist()):
        standing.update_wrench(contact, wrench, 200_000_000)
    assert standing.sharing.values == pytest.approx([0.5, 0.5])


def test_a_foot_sensor_that_stops_is_not_used(compensator, state, model):
    """It reads 0 N with fresh stamps, the other half of the weight: the weight is missing."""
    standing, ms = standing_wrenches(compensator), 1_000_000
    before = efforts(compensator, state, UP, 0, standing)
    dead = standing.copy()
    dead[1] = 0.0
    for i in range(1, 25):  # held, bit by bit, until it is certain
        np.testing.assert_array_equal(efforts(compensator, state, UP, 2 * i * ms, dead), before)
    with pytest.raises(InputError, match="sensor of 'right' is dead.*together 50 % of the weight"):
        for i in range(25, 40):
            efforts(compensator, state, UP, 2 * i * ms, dead)
    back = efforts(compensator, state, UP, 100 * ms, standing)
    np.testing.assert_allclose(back, before, atol=1e-9)
    trusting = GravityCompensator(model, CompensationSettings(
        balance=WeightBalanceSettings(missing=1.0), cop_tolerance=1.0))
    for i in range(400):
        found = efforts(trusting, state, UP, 2 * i * ms, dead if i else standing)
    assert trusting.mode == 'left' and np.abs(found - before).max() > 10.0


def test_forces_are_compared_with_calibrated_masses():
    """A robot that is twice as heavy as its URDF stands on both feet, and nothing is frozen."""
    model = RobotModel.load('talos')
    compensator = GravityCompensator(model)
    heavier = with_inertials(model.urdf, {
        name: NewInertial(2.0 * mass, com) for name, mass, com in zip(
            model.link_names, model.link_masses, model.link_coms_in_link)})
    model.use_inertials(heavier)
    compensator.use_inertials()
    state, wrenches = model.state(model.posture()), standing_wrenches(compensator)
    for i in range(50):
        assert efforts(compensator, state, UP, 20_000_000 * i, wrenches).any()
    assert not compensator.balance.doubtful


# ---- plausible attitudes


def up(tilt):
    """Return the vertical in a base that leans forward."""
    return [float(np.sin(tilt)), 0.0, float(np.cos(tilt))]


@pytest.mark.parametrize('tilts, words', (
    (((0.9, 0, True), (3.1, 0, False)), 'tilted by 178 deg'),
    (((0.0, 0, True), (0.01, 2, True), (0.3, 4, False), (0.3, 400, False), (0.3, 600, True)), ''),
    (((0.01, 2, True), (0.3, 4, False)), 'jumped by 16.6 deg'),
    (((math.nan, 0, False), (0.0, 2, True)), ''),
    (tuple((0.5 * math.sin(0.03 * k), 2 * k, True) for k in range(500)), '')))
def test_an_attitude_upside_down_or_that_jumps_is_not_plausible_until_it_settles(tilts, words):
    check = UprightCheck(1.0, 10.0, 0.5)
    for tilt, ms, is_plausible in tilts:
        if abs(tilt) > 3.0:
            check.reset()
        assert check.update(up(tilt), 1_000_000 * ms) is is_plausible
    assert words in check.problem
