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
"""Errors of links and instruments: how they act; that the fused CoM covers them is elsewhere."""

from biped_com_ros.core.com.carrier import CarrierFrame
from biped_com_ros.core.com.foot_sensors import FootSensorErrors, PER_FOOT
from biped_com_ros.core.com.hidden_load import LoadWrench
from biped_com_ros.core.com.link_errors import LinkErrorEstimate, LinkErrors
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest
from support.known_motion import KnownMotion

DT = 0.004
ERRORS = {'torso_yaw': (0.09, (0.004, -0.003, 0.006)),
          'l_hip_pitch': (-0.05, (0.003, 0.002, -0.004)),
          'r_knee': (0.04, (-0.002, 0.004, 0.003))}
"""What thighs and torso weigh more than their URDF says, kg, and where, m."""


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.fixture(scope='module')
def robot(model):
    """Return a robot whose links are wrong; it sways."""
    true = model.pin_model.copy()
    for joint, (mass, shift) in ERRORS.items():
        its = true.inertias[true.getJointId(joint)]
        true.inertias[true.getJointId(joint)] = pin.Inertia(
            its.mass + mass, its.lever + shift, its.inertia)

    def q_at(t):
        q = model.configuration(model.posture())
        q[7:] += 0.05 * np.sin(4.0 * t + np.arange(len(q) - 7))
        q[:7] = pin.SE3ToXYZQUAT(pin.SE3(
            pin.rpy.rpyToMatrix(0.02 * np.sin(3.0 * t), 0.0, 0.3),
            np.array((0.03 * np.sin(6.0 * t), 0.03 * np.cos(5.0 * t), 0.4))))
        return q
    return KnownMotion(model, q_at, true)


def errors_of(robot, links):
    """Return (e, b) as `LinkErrors` orders them."""
    e, b = np.zeros(links.count), np.zeros((links.count, 3))
    changed = {robot.true.getJointId(name) for name in ERRORS}
    for i, joint in enumerate(links.frames.joints.tolist()):
        if joint in changed and links.weighed[i]:
            before, after = (pin_model.inertias[joint]
                             for pin_model in (robot.model.pin_model, robot.true))
            centre = links.frames.placement_in_joint[i, 3, :3]
            e[i] = after.mass - before.mass
            b[i] = after.mass * (after.lever - centre) - before.mass * (before.lever - centre)
    return np.concatenate((e, b.reshape(-1))) / robot.mass


def equations(robot, delay=0.0, late=0.0):
    links = LinkErrors(robot.model, 0.08, 0.005, 3.0)
    load = LoadWrench(robot.model, links=links, delay=delay)
    carrier, found = CarrierFrame(robot.model), []
    for i in range(500):
        state, twist = robot.located(i * DT)
        motion = carrier.motion(state, twist)
        equation = load.update(state, twist, motion, DT, robot.wrench(i * DT - late), np.zeros(3))
        if equation is not None:
            com = load.link_effects.com @ errors_of(robot, links)
            found.append((i * DT, state, motion, com, errors_of(robot, links), equation))
    return found


def test_errors_of_links_explain_moments_and_the_difference_of_the_centres_of_mass(model, robot):
    largest, share = 0.0, 1.0 - model.mass / robot.mass
    for t, state, carrier, com, errors, found in equations(robot):
        explained = share * (found.residual + found.rows[:, 3]) + found.links @ errors
        # The inertia of what is missing about its own body is left out by design.
        assert_allclose(explained, found.residual, atol=1.2e-4)
        largest = max(largest, np.abs(found.residual).max())
        change = share * (carrier.point - state.com_in_world) + com
        assert_allclose(state.com_in_world + change, robot.truth(t)[1], atol=2e-5)
    assert largest > 1e-3


def test_a_known_delay_is_undone_and_an_unknown_one_shows(robot):
    exact, undone, late = ([found for *_, found in equations(robot, delay, by)]
                           for delay, by in ((0.0, 0.0), (0.01, 0.01), (0.0, 0.01)))
    for truth, corrected, delayed in zip(exact, undone, late):
        assert_allclose(corrected.residual, truth.residual, atol=1e-4)
        assert_allclose(delayed.residual - 0.01 * delayed.late, truth.residual, atol=1e-4)
    assert max(np.abs(d.residual - t.residual).max() for d, t in zip(late, exact)) > 5e-4


@pytest.mark.parametrize('robot', ['biped', 'talos'])
def test_errors_of_foot_sensors_change_wrenches_as_a_wrong_mounting_does(robot):
    model, rng = RobotModel.load(robot), np.random.default_rng(2)
    wrenches = np.array([(20.0, -30.0, 400.0, 9.0, -7.0, 3.0), (5.0, 8.0, 300.0, -4.0, 6.0, 1.0)])
    small = 1e-5 * rng.standard_normal((2, PER_FOOT))
    changes = FootSensorErrors(model, 0.002, 0.003, 0.02).change(
        wrenches, np.tile(np.eye(3), (2, 1, 1)))
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
        found = np.concatenate([part[foot] for part in changes]) @ small[foot]
        assert_allclose(found, change, atol=1e-6)
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
    assert_allclose(lazy.crossed(), crossed, rtol=1e-9, atol=1e-12)
