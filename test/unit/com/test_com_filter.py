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
"""The fused CoM: where the model is wrong, when pushed, in the air, after losing its sensors."""

import functools

from biped_com_ros.core.com.carrier import Carrier
from biped_com_ros.core.com.com_filter import ComFilter, H, KinematicCom, S
from biped_com_ros.core.com.hidden_load import LoadEquation
from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.errors import ConfigurationError
from examples.com_filter import (
    C, chi_square_bounds, MOTIONS, NOISE, PUSH, push_estimate, Rig, SETTLED, V)
import numpy as np
import pytest

DT, MASS, G = 0.004, 50.0, 9.81
LOAD, AT = 3.0, np.array((0.10, -0.08, 0.15))
"""kg, and where it is from the carrier's centre of mass, m."""


class PointMassRobot:
    """
    A point mass that carries a load on a swinging link; its kinematics do not know the load.

    It accelerates as it likes; the feet feel what that takes.
    """

    def __init__(self, heading=0.0, uncertainty=0.0):
        self.uncertainty = uncertainty
        self.filter = ComFilter(MASS, ComFilterSettings(wrench_delay=0.0))
        self.t, self.heading = 0.0, heading

    def model_com(self, t):
        return np.array((5.0 + 0.04 * np.sin(5 * t), -3.0 + 0.03 * np.cos(4 * t), 1.0))

    def carrier(self, t):
        """Return orientation and position of the link, which nods while the robot moves."""
        pitch, c, s = 0.1 * np.sin(3.0 * t), np.cos(self.heading), np.sin(self.heading)
        turn = np.array(((c, -s, 0), (s, c, 0), (0, 0, 1.0)))
        nod = np.array(((np.cos(pitch), 0, np.sin(pitch)), (0, 1, 0),
                        (-np.sin(pitch), 0, np.cos(pitch))))
        return turn @ nod, self.model_com(t) + (0.0, 0.02 * np.sin(2.0 * t), 0.3)

    def com(self, t=None):
        """Return the true centre of mass."""
        t = self.t if t is None else t
        rotation, point = self.carrier(t)
        return (MASS * self.model_com(t) + LOAD * (point + rotation @ AT)) / (MASS + LOAD)

    def rate(self, of, order=1, h=1e-4):
        """Differentiate a function of time at the present."""
        if order == 1:
            return (of(self.t + h) - of(self.t - h)) / (2 * h)
        return (of(self.t + h) - 2 * of(self.t) + of(self.t - h)) / h ** 2

    def velocity(self):
        return self.rate(self.com)

    def step(self, external=(0.0, 0.0, 0.0), dt=DT, with_wrenches=True, with_kinematics=True,
             jolt=0.0):
        """Let time pass; the external force acts somewhere, a jolt makes the moments wrong, m."""
        self.t += dt
        rotation, point = self.carrier(self.t)
        turning = self.rate(lambda t: self.carrier(t)[0])
        force = (MASS + LOAD) * (self.rate(self.com, 2) + (0, 0, G)) - external
        residual, rows = self.load_moment(rotation, point, force[2])
        kinematic = KinematicCom(
            self.model_com(self.t), self.rate(self.model_com),
            Carrier(rotation, turning, point, self.rate(lambda t: self.carrier(t)[1])))
        self.filter.update(
            dt, kinematic if with_kinematics else None, force if with_wrenches else None,
            LoadEquation(
                residual + jolt, rows, rotation[2], np.abs(external).max() / force[2], 0.0,
                np.zeros((2, 3)), dt, 0.1 / dt, (rows[:, :3] @ rotation.T)[:, 2], 0.0, 0.0,
                np.zeros(2), *np.zeros((2, 2, 0)), self.uncertainty)
            if with_wrenches and with_kinematics else None)

    def load_moment(self, rotation, point, upward):
        """Return the moment of the load about the model's CoM, and that of unit loads."""
        arm = point - self.model_com(self.t)
        pull = self.rate(lambda t: self.carrier(t)[1], 2) + (0, 0, G)
        swings = self.rate(lambda t: self.carrier(t)[0], 2)
        columns = [np.cross(rotation[:, i], pull) + np.cross(arm, swings[:, i])
                   for i in range(3)]
        rows = np.column_stack((*columns, np.cross(arm, pull)))[:2] * MASS / upward
        return rows @ np.append(LOAD * AT, LOAD) / MASS, rows

    def run(self, seconds, **options):
        for _ in range(round(seconds / DT)):
            self.step(**options)


@pytest.mark.parametrize('heading', [0.0, 2.2])
def test_the_load_is_found_on_the_link_that_carries_it(heading):
    robot = PointMassRobot(heading=heading)
    robot.run(4.0)
    found = robot.filter
    assert found.mass == pytest.approx(MASS + LOAD, abs=0.02)
    expected = LOAD * AT / (MASS + LOAD)
    np.testing.assert_allclose(found.state[H][:2], expected[:2], atol=2e-4)
    assert found.state[H][2] == pytest.approx(expected[2], abs=1e-3)
    assert np.linalg.norm((found.com - robot.com())[:2]) < 5e-4
    assert np.linalg.norm(found.velocity - robot.velocity()) < 2e-3
    np.testing.assert_allclose(
        found.bias, robot.model_com(robot.t) - found.com, atol=1e-3)
    assert np.linalg.norm(found.external_force) < 1.0


def test_the_load_is_known_no_better_than_the_wrenches():
    """The ZMP by joint torques is uncertain by 10 mm, from one equation to the next."""
    certain, uncertain = PointMassRobot(), PointMassRobot(uncertainty=1e-4)
    for robot in (certain, uncertain):
        robot.run(2.0)
    deviations = [np.sqrt(robot.filter.covariance.diagonal()[H][:2])
                  for robot in (certain, uncertain)]
    assert (deviations[1] > 5.0 * deviations[0]).all()


def test_a_push_is_estimated_and_decays():
    robot = PointMassRobot()
    robot.run(3.0)
    push = np.array((40.0, -25.0, 0.0))
    robot.run(0.3, external=push)
    np.testing.assert_allclose(
        robot.filter.external_force, push, atol=0.1 * np.linalg.norm(push))
    robot.run(0.5)
    assert np.linalg.norm(robot.filter.external_force) < 3.0
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 1e-3


def test_a_jolt_in_the_moments_counts_little():
    """Taken at its word, 8 mm for 0.1 s would move the load by 1.4 to 4 mm."""
    robot, calm = PointMassRobot(), PointMassRobot()
    robot.run(4.0)
    robot.run(0.1, jolt=0.008)
    robot.run(0.2)
    calm.run(4.3)
    assert np.abs(robot.filter.state[H] - calm.filter.state[H]).max() < 2e-5


def test_without_foot_forces_the_known_load_still_helps():
    robot = PointMassRobot()
    robot.run(3.0)
    robot.run(1.0, with_wrenches=False)
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 2e-3
    before = np.trace(robot.filter.velocity_covariance)
    robot.run(0.2)
    assert np.trace(robot.filter.velocity_covariance) < before


def test_in_the_air_it_flies():
    robot = PointMassRobot()
    robot.run(2.0)
    found = robot.filter
    com, velocity = found.com.copy(), found.velocity.copy()
    for _ in range(50):
        found.update(DT, None, np.zeros(3))
    np.testing.assert_allclose(found.velocity - velocity, (0, 0, -0.2 * G), atol=0.02)
    fallen = com + 0.2 * velocity - (0, 0, 0.5 * G * 0.04)
    np.testing.assert_allclose(found.com, fallen, atol=2e-3)


def test_after_a_long_silence_it_begins_anew_but_keeps_the_load():
    robot = PointMassRobot()
    robot.run(4.0)
    load = robot.filter.state[[6, 7, 8, S]].copy()
    robot.step(dt=3.0)
    np.testing.assert_allclose(robot.filter.state[[6, 7, 8, S]], load, atol=1e-3)
    assert np.linalg.norm((robot.filter.com - robot.com())[:2]) < 2e-3
    robot.filter.reset()
    assert not robot.filter.is_started and not robot.filter.state.any()
    assert robot.filter.covariance[6, 6] == pytest.approx(0.015 ** 2)


def test_the_covariance_stays_symmetric_and_positive():
    robot = PointMassRobot()
    for i in range(500):
        robot.step(external=np.array((30.0, 0, 0)) * (i % 175 < 25), with_wrenches=i % 125 > 8)
    P = robot.filter.covariance
    np.testing.assert_array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0.0


def test_nothing_is_estimated_before_kinematics_arrive():
    found = ComFilter(MASS)
    found.update(DT, None, np.array((0.0, 0.0, MASS * G)))
    assert not found.is_started


def test_settings_that_make_no_sense():
    problem = 'the CoM filter: moment must be positive, not -1'
    with pytest.raises(ConfigurationError, match=problem):
        ComFilterSettings(moment=-1)


SEEDS = range(3)


@functools.cache
def loaded_robots(motion):
    """Return robots that move, each with 8 % of its mass hidden elsewhere on the torso."""
    return [Rig(sensors=NOISE, seed=seed, dt=0.004).run(motion, MOTIONS[motion])
            for seed in SEEDS]


in_every_motion = pytest.mark.parametrize('motion', ['sway', 'step', 'push'])


@in_every_motion
def test_position_error_is_at_most_a_fifth_of_the_kinematic_one(motion):
    for result in loaded_robots(motion):
        assert result.rms('kinematic', C) > 0.015
        assert result.rms('fused', C) < 0.2 * result.rms('kinematic', C)
        level = slice(0, 2)
        assert result.rms('fused', level) < 0.2 * result.rms('kinematic', level)


@in_every_motion
def test_velocity_error_is_at_most_half_of_the_kinematic_one(motion):
    for result in loaded_robots(motion):
        assert result.rms('fused', V) < 0.5 * result.rms('kinematic', V)


@in_every_motion
def test_it_is_as_uncertain_as_it_is_wrong(motion):
    """The mean normalised squared error lies within its 95 % bounds, the upper and the lower."""
    low, high = chi_square_bounds(len(SEEDS))
    nees = np.mean([result.mean_nees() for result in loaded_robots(motion)], axis=0)
    assert (nees > low).all() and (nees < high).all(), nees


def test_a_trunk_that_bends_is_as_uncertain_as_wrong():
    """
    A trunk that turns makes the height of its load observable at once.

    Neither its unknown moments of inertia, which are in phase, nor the small lag of the equations
    behind its orientation feign another.
    """
    rigs = [Rig(sensors=NOISE, robot='talos', seed=seed, dt=0.004) for seed in (0, 1)]
    results = [rig.run('bend', MOTIONS['bend']) for rig in rigs]
    nees = np.mean([result.mean_nees() for result in results], axis=0)
    assert (nees < chi_square_bounds(len(results))[1]).all(), nees
    for result in results:
        assert result.rms('fused', slice(0, 2)) < 0.1 * result.rms('kinematic', slice(0, 2))
        assert result.rms('fused', slice(2, 3)) < 0.1 * result.rms('kinematic', slice(2, 3))


@pytest.mark.parametrize('robot', ['g1', 'sabian', 'talos'])
def test_heavy_robots_that_sway_are_as_uncertain_as_wrong(robot):
    """Their weight on compliant soles feigned a push at first, and their feet an acceleration."""
    rigs = [Rig(sensors=NOISE, robot=robot, seed=seed, dt=0.004) for seed in (1, 2)]
    results = [rig.run('sway', MOTIONS['sway']) for rig in rigs]
    low, high = chi_square_bounds(len(results))
    nees = np.mean([result.mean_nees() for result in results], axis=0)
    assert (nees > low).all() and (nees < high).all(), nees
    for rig, result in zip(rigs, results):
        assert result.rms('fused', C) < 0.1 * result.rms('kinematic', C)
        assert rig.fusion.filter.mass == pytest.approx(1.08 * rig.model.mass, rel=1e-3)


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


def test_no_force_is_missed_after_a_gap_of_the_feet():
    result = Lossy(dt=0.004).run('sway', 4.5)
    worst = np.abs(result.errors('fused', 0.0)).max(axis=0)
    assert (worst[:3] < (0.005, 0.005, 0.03)).all(), "at first it is the model's"
    assert worst[V].max() < 0.01
    assert result.rms('fused', C, 4.0) < 1e-3


def test_a_push_is_found_within_a_tenth_in_03_s():
    for result in loaded_robots('push'):
        found = push_estimate(result, 0.3)
        assert np.linalg.norm(found - PUSH) < 0.1 * np.linalg.norm(PUSH)


@pytest.mark.parametrize('motion', ['sway', 'push'])
def test_with_exact_sensors_it_is_no_worse(motion):
    result = Rig(dt=0.004).run(motion, MOTIONS[motion])
    assert result.rms('fused', C) < 0.2 * result.rms('kinematic', C)
    assert result.rms('fused', V) < 0.5 * result.rms('kinematic', V)


@pytest.mark.parametrize(('robot', 'seed'), [('biped', 5), ('g1', 21)])
def test_the_height_of_a_robot_that_stands_stays(robot, seed):
    """Noise of velocities and orientations must not look like what tells the height."""
    rig = Rig(sensors=NOISE, robot=robot, seed=seed, dt=0.004)
    found = rig.run('stand', 10.0)
    assert np.ptp(found.errors('fused')[:, 2]) < 1e-3
    # Nobody knows it, and that is told.
    assert np.sqrt(rig.fusion.filter.com_covariance[2, 2]) > 0.014
    assert found.rms('fused', slice(0, 2), since=6.0) < 1.5e-4


def test_bounds_of_chi_square():
    """Tabulated: 2.700 and 19.023 for nine degrees of freedom."""
    np.testing.assert_allclose(chi_square_bounds(3), (0.900, 6.341), rtol=0.015)
