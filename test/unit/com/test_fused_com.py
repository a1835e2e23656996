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
"""The fused CoM in the simulator, where links, instruments or the trunk are not as modelled."""

import functools

from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.model.robot import RobotModel
from examples.com_filter import (
    C, chi_square_bounds, EXACT_LINKS, EXACT_SENSORS, LOW_PASS, MOTIONS, NOISE, PUSH,
    push_estimate, Rig, SETTLED, V)
import numpy as np
import pytest

DT = 0.004
LEVEL, HEIGHT = slice(0, 2), slice(2, 3)
thorough = pytest.mark.thorough


@functools.cache
def made(world, robot, motion, seeds):
    """Return robots that have moved and their results."""
    rigs = [Rig(sensors=NOISE, seed=seed, dt=DT, world=world, robot=robot,
                tendons=motion == 'sway bent') for seed in seeds]
    return rigs, [rig.run(motion, MOTIONS[motion]) for rig in rigs]


def mean_nees(results):
    return np.mean([result.mean_nees() for result in results], axis=0)


def assert_better(result, *limits):
    """Compare fused errors with kinematic ones along some axes; a share limits each."""
    for axes, share in limits:
        assert result.rms('fused', axes) < share * result.rms('kinematic', axes), axes


MUCH_BETTER = (C, 0.2), (LEVEL, 0.2), (V, 0.5)


@pytest.mark.parametrize(('world', 'robot', 'motion', 'seeds', 'better'), [
    ('load', 'biped', 'push', (0, 1, 2), MUCH_BETTER),
    pytest.param('load', 'biped', 'sway', (0, 1, 2), MUCH_BETTER, marks=thorough),
    pytest.param('load', 'biped', 'step', (0, 1, 2), MUCH_BETTER, marks=thorough),
    # Weight on compliant soles feigned a push at first, and the feet an acceleration.
    *(pytest.param('load', robot, 'sway', (1, 2), [(C, 0.1)], marks=thorough)
      for robot in ('g1', 'sabian', 'talos')),
    pytest.param('links', 'biped', 'sway', (0, 1, 2), [(LEVEL, 1.0)], marks=thorough),
    pytest.param('real', 'biped', 'push', (0, 1, 2), [], marks=thorough),
    pytest.param('real', 'g1', 'sway', (0, 1), [], marks=thorough),
    pytest.param('all', 'g1', 'sway', (0, 1), [], marks=thorough)])
def test_it_is_as_uncertain_as_wrong_and_better_than_kinematics(
        world, robot, motion, seeds, better):
    """The mean normalised squared error lies within its 95 % bounds, the upper and the lower."""
    rigs, results = made(world, robot, motion, seeds)
    low, high = chi_square_bounds(len(seeds))
    nees = mean_nees(results)
    assert (nees > low).all() and (nees < high).all(), nees
    for rig, result in zip(rigs, results):
        assert_better(result, *better)
        if world == 'load' and robot == 'biped':
            assert result.rms('kinematic', C) > 0.015
        elif world == 'load':
            assert rig.fusion.filter.mass == pytest.approx(1.08 * rig.model.mass, rel=1e-3)


def test_a_push_is_found_within_a_tenth_in_03_s():
    for result in made('load', 'biped', 'push', (0, 1, 2))[1]:
        assert np.linalg.norm(push_estimate(result, 0.3) - PUSH) < 0.1 * np.linalg.norm(PUSH)


@thorough
def test_with_wrong_links_the_height_is_no_worse_than_that_of_the_model():
    rigs, results = made('links', 'biped', 'sway', (0, 1, 2))
    fused, kinematic = (np.sqrt(np.mean([r.rms(name, HEIGHT) ** 2 for r in results]))
                        for name in ('fused', 'kinematic'))
    assert fused < kinematic
    assert 0.001 < np.sqrt(rigs[0].fusion.filter.com_covariance[2, 2]) < 0.004


@thorough
def test_a_trunk_that_bends_is_as_uncertain_as_wrong():
    """
    A trunk that turns makes the height of its load observable at once.

    Neither its unknown moments of inertia, which are in phase, nor the small lag of the equations
    behind its orientation feign another.
    """
    _, results = made('load', 'talos', 'bend', (0, 1))
    assert (mean_nees(results) < chi_square_bounds(2)[1]).all()
    for result in results:
        assert_better(result, (LEVEL, 0.1), (HEIGHT, 0.1))


@thorough
def test_a_bent_torso_whose_joints_are_wrong_is_covered():
    """Its six virtual joints are 0.1 deg and 1.75 mm off, and every instrument is wrong."""
    rigs, results = made('all', 'biped', 'sway bent', (0, 1))
    assert mean_nees(results)[0] < chi_square_bounds(2)[1]
    assert np.mean([result.covered()[:3] for result in results]) > 0.9
    for rig, result in zip(rigs, results):
        torso = rig.model.joint_index(rig.model.config.torso.joints)
        bent = rig.plant.observation.joint_positions[torso]
        assert np.abs(bent[3:5]).min() > 0.08 and np.abs(rig._offsets[torso]).min() > 0.0
        assert (np.array(result.deviations)[-1, :3] < (0.006, 0.006, 0.015)).all()
        assert np.linalg.norm(result.errors('fused')[-1, :3]) < 0.012


@thorough
@pytest.mark.parametrize(('robot', 'seed'), [('biped', 5), ('g1', 21)])
def test_the_height_of_a_robot_that_stands_stays(robot, seed):
    """Noise of velocities and orientations must not look like what tells the height."""
    rig = Rig(sensors=NOISE, robot=robot, seed=seed, dt=DT)
    found = rig.run('stand', 10.0)
    assert np.ptp(found.errors('fused')[:, 2]) < 1e-3
    # Nobody knows it, and that is told.
    assert np.sqrt(rig.fusion.filter.com_covariance[2, 2]) > 0.014
    assert found.rms('fused', LEVEL, since=6.0) < 1.5e-4


def test_between_two_steps_of_the_filter_the_com_goes_on():
    """What is told is as new as the last instant: 22 ms would be 2.9 mm at 0.13 m/s."""
    rig = Rig(dt=0.002)
    result = rig.run('sway', 2.5)
    count = round((2.5 - SETTLED) / 0.002)
    assert count / 12 < rig.fusion.updates < count / 10
    errors = result.errors('fused', since=2.0)
    assert np.ptp(np.array(result.truth)[-250:, 1]) > 0.01
    assert np.abs(errors[:, 1] - errors[:, 1].mean()).max() < 1e-4


class Lossy(Rig):
    """Loses every third message of the feet for two seconds, as a busy computer does."""

    def _measure(self, observed, state, base):
        wrenches = super()._measure(observed, state, base)
        is_lost = observed.time < 2.6 and round(observed.time / self.plant.dt) % 3 == 0
        return None if is_lost else wrenches


@thorough
def test_no_force_is_missed_after_a_gap_of_the_feet():
    result = Lossy(dt=DT).run('sway', 4.5)
    worst = np.abs(result.errors('fused', 0.0)).max(axis=0)
    assert (worst[:3] < (0.005, 0.005, 0.03)).all(), "at first it is the model's"
    assert worst[V].max() < 0.01
    assert result.rms('fused', C, 4.0) < 1e-3
    assert_better(result, (V, 0.5))  # without noise, too


@thorough
def test_a_delay_is_estimated_and_one_that_is_ignored_contradicts_the_covariance():
    with_delay = ComFilterSettings(**EXACT_LINKS, **{**EXACT_SENSORS, 'delay_deviation': 0.003})
    found, ignored = (
        Rig(settings, seed=1, dt=DT, instruments={'delay': 0.006})
        for settings in (with_delay, ComFilterSettings(**EXACT_LINKS, **EXACT_SENSORS)))
    result, wrong = found.run('sway', 4.5), ignored.run('sway', 4.5)
    # That of the sampled low-pass; the simulator's velocities are half a step of physics late.
    low_pass = np.sqrt(2.0) * DT / (2.0 * np.tan(np.pi * LOW_PASS * DT))
    truth = low_pass + found.instruments.delay - 0.0005
    assert found.instruments.delay > 0.002
    assert found.fusion.filter.delay == pytest.approx(truth, abs=2e-4)
    assert result.mean_nees()[0] < 0.1 * wrong.mean_nees()[0]
    assert result.rms('fused', C) < 0.5 * wrong.rms('fused', C)
    assert_better(result, (V, 0.5))


def test_settings_may_exclude_errors():
    settings, biped = ComFilterSettings(**EXACT_LINKS, **EXACT_SENSORS), RobotModel.load('biped')
    assert settings.sensor_errors(biped) is None and settings.link_errors(biped) is None


def test_bounds_of_chi_square():
    """Tabulated: 2.700 and 19.023 for nine degrees of freedom."""
    np.testing.assert_allclose(chi_square_bounds(3), (0.900, 6.341), rtol=0.015)
