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
"""Sensor values in, efforts or a reason out."""

from __future__ import annotations

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.gravity.compensation import (
    CompensationSettings, GravityCompensator, support_problem)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope='module')
def model():
    """Return Talos."""
    return RobotModel.load('talos')


def standing_wrenches(compensator, left=0.5):
    """Vertical forces that share the weight."""
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = compensator.gravity_model.weight * np.array([left, 1.0 - left])
    return wrenches


def test_auto_follows_the_forces(model):
    compensator = GravityCompensator(model)
    state = model.state(model.posture())
    found = compensator.wanted(state, UP, 0, standing_wrenches(compensator, 0.52))
    load = compensator.gravity_model.load(state, UP)
    np.testing.assert_allclose(found, load.standing(np.array([0.52, 0.48])).efforts, atol=1e-9)
    assert compensator.mode == 'left, right'


def test_what_a_walk_plans_goes_before_what_the_feet_feel_as_long_as_it_holds(model):
    """The foot that lands feels nothing yet, and is to carry all the same."""
    compensator = GravityCompensator(model)
    state = model.state(model.posture())
    wrenches = standing_wrenches(compensator, 0.5)
    load = compensator.gravity_model.load(state, UP)
    compensator.wanted(state, UP, 0, wrenches)
    compensator.expect(np.array([0.6, 0.4]), 100_000_000)
    found = compensator.wanted(state, UP, 50_000_000, wrenches)
    np.testing.assert_allclose(found, load.standing(np.array([0.6, 0.4])).efforts, atol=1e-9)
    later = compensator.wanted(state, UP, 110_000_000, wrenches)  # 1.8/s for 60 ms
    np.testing.assert_allclose(later, load.standing(np.array([0.5, 0.5])).efforts, atol=1e-9)
    compensator.expect(np.array([0.6, 0.4]), 10_000_000_000)
    with pytest.raises(InputError, match='in the air'):
        compensator.wanted(state, UP, 200_000_000, 0.0 * wrenches)


@pytest.mark.parametrize('shares', ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]))
def test_shares_that_are_none_are_refused(model, shares):
    with pytest.raises(InputError, match='planned shares'):
        GravityCompensator(model).expect(np.array(shares), 0)


def test_forces_count_along_gravity_not_along_the_sole(model):
    """On a slope the sole's normal feels less than the foot carries."""
    settings = CompensationSettings(cop_tolerance=1.0)
    compensator, up = GravityCompensator(model, settings), np.array([0.2, 0.0, 1.0])
    up /= np.linalg.norm(up)
    state = model.state(model.posture())
    R_sole_base = state.placements_in_base(model.soles)[:, :3]
    wrenches = np.zeros((2, 6))
    wrenches[:, :3] = compensator.gravity_model.weight * np.array(
        [0.3, 0.7])[:, np.newaxis] * (R_sole_base @ up)
    compensator.wanted(state, up, 0, wrenches)
    np.testing.assert_allclose(compensator.sharing.shares, [0.3, 0.7], atol=1e-9)


def test_fixed_and_named_supports(model):
    state = model.state(model.posture())
    fixed = GravityCompensator(model, CompensationSettings(support='fixed'))
    load = fixed.gravity_model.load(state, UP)
    np.testing.assert_allclose(fixed.wanted(state, UP, 0), load.held)
    assert fixed.mode == 'fixed'
    left = GravityCompensator(model, CompensationSettings(support='left', cop_tolerance=1.0))
    np.testing.assert_allclose(
        left.wanted(state, UP, 0), load.standing(np.array([1.0, 0.0])).efforts, atol=1e-9)
    both = GravityCompensator(model, CompensationSettings(support='left, right'))
    every = GravityCompensator(model, CompensationSettings(support='all'))
    np.testing.assert_allclose(both.wanted(state, UP, 0), every.wanted(state, UP, 0))


def test_gains_and_groups(model):
    compensator = GravityCompensator(model, CompensationSettings(support='all'))
    state = model.state(model.posture())
    whole = compensator.wanted(state, UP, 0)
    gains = np.ones(len(model.joint_names))
    gains[3] = 0.25
    compensator.gains = gains
    with pytest.raises(ValueError, match='read-only'):
        compensator.gains[3] = 0.5
    assert compensator.wanted(state, UP, 1)[3] == pytest.approx(0.25 * whole[3])
    compensator.enable(['left_arm'])
    assert compensator.guard.enabled.sum() == len(model.config.groups['left_arm'])
    compensator.enable([])
    assert compensator.guard.enabled.all()
    with pytest.raises(UnknownNameError, match='wings'):
        compensator.enable(['wings'])


def test_what_is_plausible_is_what_no_words_are_found_against(model):
    rng = np.random.default_rng(3)
    compensator, verdicts = GravityCompensator(model), set()
    for _ in range(300):
        up = np.array([*rng.uniform(-0.2, 0.2, 2), 1.0])
        load = compensator.gravity_model.load(
            model.state(model.posture()), up / np.linalg.norm(up))
        support = load.standing(rng.dirichlet((0.5, 0.5)))
        words = support_problem(support, compensator.settings.cop_tolerance)
        assert compensator._is_plausible(support) is not bool(words)
        verdicts.add(words.partition('would')[2][:8])
    assert {'', ' have to'} <= verdicts


def test_reasons(model):
    compensator = GravityCompensator(model)
    state = model.state(model.posture())
    with pytest.raises(InputError, match='in the air'):
        compensator.wanted(state, UP, 0, np.zeros((2, 6)))
    with pytest.raises(InputError, match='tilted'):
        compensator.wanted(state, -UP, 1, standing_wrenches(compensator))
    with pytest.raises(ConfigurationError, match='needs the measured wrenches'):
        GravityCompensator(model).wanted(state, UP, 0)
    with pytest.raises(UnknownNameError, match='tail'):
        GravityCompensator(model, CompensationSettings(support='tail'))
    compensator.reset()
    compensator.wanted(state, UP, 2, standing_wrenches(compensator))


def test_settings_that_make_no_sense_leave_the_old_ones(model):
    compensator = GravityCompensator(model)
    with pytest.raises(UnknownNameError):
        compensator.configure(CompensationSettings(support='tail'))
    assert compensator.settings.support == 'auto'


def numbers(compensator, left):
    """Return the wrenches of both feet as plain numbers."""
    return standing_wrenches(compensator, left).tolist()


def test_shares_follow_when_all_feet_have_told_of_an_instant(model):
    """As they would if the feet told together with the joints."""
    early, late = GravityCompensator(model), GravityCompensator(model)
    state, step = model.state(model.posture()), 2_000_000
    for one in (early, late):
        one.wanted(state, UP, 0, standing_wrenches(one))
    load = early.gravity_model.load(state, UP)
    for i in range(1, 40):
        left, right = numbers(early, 0.7)
        early.feel(0, left, i * step)
        before = early.sharing.values
        early.feel(1, right, i * step)
        assert early.sharing.values != before or early.sharing.settled
        found = early.hold(load, i * step)
        expected = late.wanted(state, UP, i * step, standing_wrenches(late, 0.7))
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert 0.6 < early.sharing.values[0] < 0.69  # rate limited, and under way


def test_feet_that_tell_at_other_times_count_when_the_robot_is_held(model):
    compensator, state = GravityCompensator(model), model.state(model.posture())
    compensator.wanted(state, UP, 0, standing_wrenches(compensator))
    load, (left, right) = compensator.gravity_model.load(state, UP), numbers(compensator, 0.51)
    compensator.feel(0, left, 1_000_000)
    compensator.feel(1, right, 1_500_000)
    assert compensator.sharing.values == pytest.approx([0.5, 0.5])
    compensator.hold(load, 10_000_000)
    assert compensator.sharing.values == pytest.approx([0.51, 0.49], abs=0.01)


def test_joints_that_are_a_little_behind_the_feet_are_no_step_back_in_time(model):
    """Or shares would jump to where they should get to in time."""
    compensator, state = GravityCompensator(model), model.state(model.posture())
    compensator.wanted(state, UP, 0, standing_wrenches(compensator))
    load = compensator.gravity_model.load(state, UP)
    for contact, wrench in enumerate(numbers(compensator, 0.8)):
        compensator.feel(contact, wrench, 4_000_000)
    share, _ = compensator.sharing.values
    assert 0.5 < share < 0.52 and not compensator.sharing.settled
    compensator.hold(load, 3_000_000)
    assert compensator.sharing.values[0] == share
    compensator.hold(load, 5_000_000)
    assert share < compensator.sharing.values[0] < 0.52


def test_axes_of_long_ago_are_not_used(model):
    """A robot that was not held meanwhile may have moved."""
    compensator, state = GravityCompensator(model), model.state(model.posture())
    compensator.wanted(state, UP, 0, standing_wrenches(compensator))
    for contact, wrench in enumerate(numbers(compensator, 0.8)):
        compensator.feel(contact, wrench, 200_000_000)
    assert compensator.sharing.values == pytest.approx([0.5, 0.5])
