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
"""Errors of links and instruments: how they act, and that the fused CoM covers them."""

import functools

from biped_com_ros.core.com.carrier import CarrierFrame
from biped_com_ros.core.com.foot_sensors import FootSensorErrors, PER_FOOT
from biped_com_ros.core.com.hidden_load import LoadWrench
from biped_com_ros.core.com.link_errors import LinkErrorEstimate, LinkErrors
from biped_com_ros.core.com.settings import ComFilterSettings
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.stance import Twist
from examples.com_filter import (
    C, chi_square_bounds, EXACT_LINKS, EXACT_SENSORS, LOW_PASS, MOTIONS, NOISE, Rig, V)
import numpy as np
import pinocchio as pin
import pytest

DT = 0.004


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


class Wrong:
    """A robot whose thighs and torso weigh something else than its URDF says; it sways."""

    ERRORS = {'torso_yaw': (0.09, (0.004, -0.003, 0.006)),
              'l_hip_pitch': (-0.05, (0.003, 0.002, -0.004)),
              'r_knee': (0.04, (-0.002, 0.004, 0.003))}

    def __init__(self, model):
        self.model = model
        self.true = model.pin_model.copy()
        names = list(model.pin_model.names)
        self.changed = {}
        for joint, (mass, shift) in self.ERRORS.items():
            index = names.index(joint)
            inertia = pin.Inertia(self.true.inertias[index])
            changed = pin.Inertia(inertia.mass + mass, inertia.lever + shift, inertia.inertia)
            self.changed[index] = (inertia, changed)
            self.true.inertias[index] = changed
        self.data = self.true.createData()
        self.mass = pin.computeTotalMass(self.true)

    def errors(self, links):
        """Return (e, b) as `LinkErrors` orders them."""
        e, b = np.zeros(links.count), np.zeros((links.count, 3))
        for i, joint in enumerate(links.frames.joints.tolist()):
            if joint in self.changed and links.weighed[i]:
                before, after = self.changed[joint]
                centre = links.frames.placement_in_joint[i, 3, :3]
                e[i] = after.mass - before.mass
                b[i] = (after.mass * (after.lever - centre)
                        - before.mass * (before.lever - centre))
        return np.concatenate((e, b.reshape(-1))) / self.mass

    def q(self, t):
        q = self.model.configuration(self.model.posture())
        q[7:] += 0.05 * np.sin(4.0 * t + np.arange(len(q) - 7))
        base = pin.SE3(pin.rpy.rpyToMatrix(0.02 * np.sin(3.0 * t), 0.0, 0.3), np.array(
            (0.03 * np.sin(6.0 * t), 0.03 * np.cos(5.0 * t), 0.4)))
        q[:7] = pin.SE3ToXYZQUAT(base)
        return q

    def v(self, t, h=1e-5):
        return pin.difference(self.true, self.q(t - h), self.q(t + h)) / (2.0 * h)

    def wrench(self, t, h=1e-4):
        """Return what the ground has to give, about the origin of the world, (6,)."""
        a = (self.v(t + h) - self.v(t - h)) / (2.0 * h)
        force = pin.Force(pin.rnea(self.true, self.data, self.q(t), self.v(t), a)[:6])
        return pin.XYZQUATToSE3(self.q(t)[:7]).act(force).vector

    def state_at(self, t):
        q, v = self.q(t), self.v(t)
        root = pin.XYZQUATToSE3(self.model.configuration(self.model.posture())[:7])
        base = pin.XYZQUATToSE3(q[:7]) * root.inverse()
        twist = root.act(pin.Motion(v[:6]))
        state = self.model.state(q[7:], v[6:]).in_world(
            Pose(base.rotation.copy(), base.translation.copy()))
        return state, Twist(twist.linear.copy(), twist.angular.copy())


def equations(model, robot, seconds=2.0, delay=0.0, late=0.0):
    links = LinkErrors(model, 0.08, 0.005, 3.0)
    load, carrier = LoadWrench(model, links=links, delay=delay), CarrierFrame(model)
    for i in range(round(seconds / DT)):
        t = i * DT
        state, twist = robot.state_at(t)
        motion = carrier.motion(state, twist)
        found = load.update(state, twist, motion, DT, robot.wrench(t - late), np.zeros(3))
        if found is not None:
            yield t, state, load.link_effects, links, found


def test_errors_of_links_explain_the_moments_of_the_feet(model):
    robot = Wrong(model)
    largest = 0.0
    for _, _, _, links, found in equations(model, robot):
        errors = robot.errors(links)
        share = 1.0 - model.mass / robot.mass
        explained = share * (found.residual + found.rows[:, 3]) + found.links @ errors
        # The inertia of what is missing about its own body is left out by design.
        np.testing.assert_allclose(explained, found.residual, atol=1.2e-4)
        largest = max(largest, np.abs(found.residual).max())
    assert largest > 1e-3


def test_their_effect_is_the_difference_of_the_centres_of_mass(model):
    robot = Wrong(model)
    for t, state, effects, links, _ in equations(model, robot, 1.0):
        true = pin.centerOfMass(robot.true, robot.data, robot.q(t))
        carrier = CarrierFrame(model).motion(*robot.state_at(t)).point
        share = 1.0 - model.mass / robot.mass
        change = share * (carrier - state.com_in_world) + effects.com @ robot.errors(links)
        np.testing.assert_allclose(state.com_in_world + change, true, atol=2e-5)


def test_a_known_delay_is_undone_and_an_unknown_one_shows(model):
    robot = Wrong(model)
    exact, undone, late = (
        [found for *_, found in equations(model, robot, delay=delay, late=by)]
        for delay, by in ((0.0, 0.0), (0.01, 0.01), (0.0, 0.01)))
    for truth, corrected, delayed in zip(exact, undone, late):
        np.testing.assert_allclose(corrected.residual, truth.residual, atol=1e-4)
        np.testing.assert_allclose(
            delayed.residual - 0.01 * delayed.late, truth.residual, atol=1e-4)
    assert max(np.abs(d.residual - t.residual).max() for d, t in zip(late, exact)) > 5e-4


@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_errors_of_foot_sensors_change_wrenches_as_a_wrong_mounting_does(robot):
    model, rng = RobotModel.load(robot), np.random.default_rng(2)
    errors = FootSensorErrors(model, 0.002, 0.003, 0.02)
    wrenches = np.array([(20.0, -30.0, 400.0, 9.0, -7.0, 3.0), (5.0, 8.0, 300.0, -4.0, 6.0, 1.0)])
    small = 1e-5 * rng.standard_normal((2, PER_FOOT))
    turn = np.tile(np.eye(3), (2, 1, 1))
    force, moment = errors.change(wrenches, turn)
    for foot, name in enumerate(model.config.feet):
        sensor = model.config.wrench_sensors[model.config.feet[name].wrench_sensors[0]].frame
        placed = (model.soles.poses_in_joint()[foot].inverse()
                  @ model.frames((sensor,)).poses_in_joint()[0])
        to_sole = pin.SE3(placed.rotation, placed.position)
        rx, ry, dx, dy, *gains = small[foot]
        true = to_sole.actInv(pin.Force(wrenches[foot])).vector
        wrong = pin.SE3(pin.exp3(np.array((rx, ry, 0))), np.array((dx, dy, 0)))
        read = wrong.act(pin.Force(true * (1.0 + np.array((*gains, 0.0))))).vector
        change = to_sole.act(pin.Force(read)).vector - wrenches[foot]
        found = np.concatenate((force[foot], moment[foot])) @ small[foot]
        np.testing.assert_allclose(found, change, atol=1e-6)
        assert np.abs(change).max() > 1e-3


def test_what_happens_in_between_is_applied_as_if_at_once(model):
    """Of products of matrices, only the order of multiplication differs."""
    rng, links = np.random.default_rng(5), LinkErrors(model, 0.08, 0.005, 3.0)
    lazy, size = LinkErrorEstimate(14, links), 14
    assert lazy.reset(12) == pytest.approx(
        links.covariance[:links.count, :links.count].dot(links.weighed).dot(links.weighed))
    crossed = lazy.crossed().copy()
    for _ in range(4):
        A, gain = rng.standard_normal((2, size, size))
        rows = rng.standard_normal((6, size))
        lazy.propagate(A)
        lazy.correct_others(gain[:, :6], rows)
        crossed = A @ crossed
        crossed -= gain[:, :6] @ (rows @ crossed)
    np.testing.assert_allclose(lazy.crossed(), crossed, rtol=1e-9, atol=1e-12)


@functools.cache
def rigs(world, robot, motion, seeds=3):
    made = [Rig(sensors=NOISE, seed=seed, dt=DT, world=world, robot=robot,
                tendons=motion == 'sway bent') for seed in range(seeds)]
    return made, [rig.run(motion, MOTIONS[motion]) for rig in made]


@pytest.mark.parametrize(('world', 'robot', 'motion'), [
    ('links', 'biped', 'sway'), ('real', 'biped', 'push'), ('real', 'g1', 'sway'),
    ('all', 'g1', 'sway')])
def test_where_everything_is_wrong_the_covariance_covers_it(world, robot, motion):
    seeds = 3 if robot == 'biped' else 2
    _, results = rigs(world, robot, motion, seeds)
    low, high = chi_square_bounds(seeds)
    nees = np.mean([result.mean_nees() for result in results], axis=0)
    assert (nees > low).all() and (nees < high).all(), nees


def test_a_bent_torso_whose_joints_are_wrong_is_covered():
    """Its six virtual joints are 0.1 deg and 1.75 mm off, and every instrument is wrong."""
    made, results = rigs('all', 'biped', 'sway bent', 2)
    _, high = chi_square_bounds(2)
    assert np.mean([result.mean_nees()[0] for result in results]) < high
    assert np.mean([result.covered()[:3] for result in results]) > 0.9
    for rig, result in zip(made, results):
        torso = rig.model.joint_index(rig.model.config.torso.joints)
        bent = rig.plant.observation.joint_positions[torso]
        assert np.abs(bent[3:5]).min() > 0.08 and np.abs(rig._offsets[torso]).min() > 0.0
        stated = np.array(result.deviations)[-1, :3]
        assert (stated < (0.006, 0.006, 0.015)).all()
        assert np.linalg.norm(result.errors('fused')[-1, :3]) < 0.012


def test_with_wrong_links_the_height_is_no_worse_than_that_of_the_model():
    made, results = rigs('links', 'biped', 'sway')
    fused, kinematic = (np.sqrt(np.mean([r.rms(name, slice(2, 3)) ** 2 for r in results]))
                        for name in ('fused', 'kinematic'))
    assert fused < kinematic
    level = slice(0, 2)
    assert all(r.rms('fused', level) < r.rms('kinematic', level) for r in results)
    assert 0.001 < np.sqrt(made[0].fusion.filter.com_covariance[2, 2]) < 0.004


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
    assert result.rms('fused', V) < 0.5 * result.rms('kinematic', V)


def test_settings_may_exclude_errors_but_not_be_negative():
    settings = ComFilterSettings(**EXACT_LINKS, **EXACT_SENSORS)
    biped = RobotModel.load('biped')
    assert settings.sensor_errors(biped) is None and settings.link_errors(biped) is None
    with pytest.raises(ConfigurationError, match='link_mass must be positive or zero, not -1'):
        ComFilterSettings(link_mass=-1)
