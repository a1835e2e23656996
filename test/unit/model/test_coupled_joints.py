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
"""Every capability on a robot with coupled joints, against its twin without couplings."""

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, predict_capture, StaticsRegressor)
from biped_com_ros.core.legs.gait import zmp_of_motion
from biped_com_ros.core.model.efforts import needed_efforts
from biped_com_ros.core.model.robot import velocity_limits
from biped_com_ros.core.payload.estimator import PayloadEstimator, PayloadSettings
from biped_com_ros.core.payload.residuals import PayloadMeasurement
from biped_com_ros.core.wrench.drive_errors import RowErrors
from biped_com_ros.core.wrench.dynamics import ExternalForces
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
from biped_com_ros.papers.newman_2013 import com_jacobian, LinkGroup
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.spatial.transform import Rotation
from support.coupled_robot import gains, MIMICS, twins
from support.gripping_robot import with_virtual_hands
from support.moving_robot import moving

MS = 1_000_000


class Twins:
    """The two robots, and random postures and motions of both."""

    def __init__(self, make=lambda model: model):
        self.coupled, self.twin = map(make, twins())
        self.gains, self.offsets = gains(self.coupled, self.twin)

    def of_twin(self, positions):
        return self.gains @ positions + self.offsets

    def posture(self, rng, size=0.3):
        positions = rng.uniform(-size, size, len(self.coupled.joint_names))
        return positions, self.of_twin(positions)

    def states(self, rng):
        positions, of_twin = self.posture(rng)
        return self.coupled.state(positions), self.twin.state(of_twin)


@pytest.fixture(scope='module')
def pair():
    return Twins()


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_only_leaders_are_measured_and_followers_have_their_multipliers(pair):
    coupled, twin = pair.coupled, pair.twin
    assert set(twin.joint_names) - set(coupled.joint_names) == set(MIMICS)
    joints = list(coupled.pin_model.names)[2:]
    order = [twin.joint_names.index(name) for name in joints]
    assert_allclose(coupled.coupling, pair.gains[order])


def test_centre_of_mass_and_its_jacobian(pair, rng):
    (one, other), h = pair.states(rng), 1e-6
    assert_allclose(one.com_in_base, other.com_in_base, atol=1e-12)
    positions, of_twin = pair.posture(rng)
    found = com_jacobian(LinkGroup(pair.coupled), positions)
    assert_allclose(found, com_jacobian(LinkGroup(pair.twin), of_twin) @ pair.gains, atol=1e-12)
    unit = np.eye(len(positions))[pair.coupled.joint_names.index('l_shoulder_pitch')]
    ahead, behind = (pair.coupled.state(positions + s * h * unit).com_in_base for s in (1, -1))
    assert_allclose(found @ unit, (ahead - behind) / (2.0 * h), atol=1e-8)


@pytest.mark.parametrize('shares', [(1.0, 0.0), (0.4, 0.6)])
def test_torques_against_gravity(pair, rng, shares):
    up = Rotation.from_rotvec((0.1, -0.2, 0.0)).as_matrix()[2]
    loads = [GravityModel(state.model, contacts=('left', 'right')).load(state, up)
             for state in pair.states(rng)]
    one, other = (load.fixed_base_efforts() for load in loads)
    assert_allclose(one, pair.gains.T @ other, atol=1e-10)
    one, other = (load.on_contacts(shares).efforts for load in loads)
    assert_allclose(one, pair.gains.T @ other, atol=1e-9)


def test_link_groups_have_the_followers_wherever_they_are(pair, rng):
    one, other = pair.states(rng)
    for group, followers in (('left_arm', ('l_elbow', 'neck_yaw', 'r_shoulder_roll')),
                             ('left_leg', ('l_ankle_pitch', 'r_hip_yaw'))):
        found = LinkGroup(pair.coupled, group)
        model = Twins().twin
        joints = (*pair.coupled.config.groups[group], *followers)
        model.config.groups[group] = joints
        expected = LinkGroup(model, group)
        assert found.link_names == expected.link_names
        assert_allclose(found.com_in_base(one), expected.com_in_base(other), atol=1e-12)


def test_regressor_of_the_calibration(pair, rng):
    positions, of_twin = pair.posture(rng)
    up = Rotation.from_rotvec((0.1, -0.2, 0.0)).as_matrix()[2]
    one, other = (StaticsRegressor(model) for model in (pair.coupled, pair.twin))
    theta = parameters_of(pair.coupled)
    assert_allclose(theta, parameters_of(pair.twin))
    assert_allclose(one.torque_matrix(positions, up),
                    pair.gains.T @ other.torque_matrix(of_twin, up), atol=1e-9)
    captures = [predict_capture(regressor, q, ['left', 'right'], theta)
                for regressor, q in ((one, positions), (other, of_twin))]
    # Torques of two standing feet are shared in another way; their sum is not.
    for regressor, capture in zip((one, other), captures):
        residual = regressor.equations(capture, theta).residual(theta)
        assert_allclose(residual, 0.0, atol=1e-8)


def test_torques_that_are_needed_and_velocities_that_are_possible(pair):
    one, other = needed_efforts(pair.coupled), needed_efforts(Twins().twin)
    index = {name: i for i, name in enumerate(pair.coupled.joint_names)}
    twin = {name: i for i, name in enumerate(pair.twin.joint_names)}
    leader = one[index['l_shoulder_pitch']]
    assert leader > other[twin['l_shoulder_pitch']] + 0.5 * other[twin['l_elbow']]
    one, other = velocity_limits(pair.coupled), velocity_limits(pair.twin)
    leader = one[index['l_shoulder_pitch']]
    assert leader == pytest.approx(min(
        other[twin['l_shoulder_pitch']], other[twin['l_elbow']] / 0.7,
        other[twin['neck_yaw']] / 1.05))


def test_zero_moment_point_of_a_motion(pair, rng):
    positions, of_twin = pair.posture(rng)
    rates = rng.uniform(-1.0, 1.0, (2, len(positions)))
    base = rng.uniform(-0.1, 0.1, (3, 4))
    base[0, 2] = 0.4
    knots = [np.concatenate((joints, base), axis=1)[np.newaxis] for joints in (
        np.vstack((positions, rates)), np.vstack((of_twin, rates @ pair.gains.T)))]
    one, other = (zmp_of_motion(model, rows) for model, rows in zip(
        (pair.coupled, pair.twin), knots))
    assert_allclose(one, other, atol=1e-9)


class TwinInstant:
    """What motors and IMU of the coupled robot measure, by the motion of its twin."""

    def __init__(self, pair, seed, wrenches, speed=0.5, hands=()):
        rng = np.random.default_rng(seed)
        positions, of_twin = pair.posture(rng)
        motion = speed * rng.uniform(-1.0, 1.0, (2, len(positions)))
        found = moving(pair.twin, wrenches, seed=seed, spread=0.0, speed=speed, posture=of_twin,
                       motion=motion @ pair.gains.T, hands=hands)
        self.efforts = pair.gains.T @ found.efforts
        self.states = [pair.coupled.state(positions - dt * motion[0], motion[0] - dt * motion[1])
                       for dt in (0.002, 0.0)]
        self.gyros = found.gyro_before, found.gyro
        self.acceleration, self.R_world_imu = found.acceleration, found.R_world_imu


def on_feet(model):
    weight = 9.81 * model.mass
    return weight * np.array([[0.06, 0.03, 0.6, 0.008, -0.012, 0.004],
                              [-0.05, 0.04, 0.45, -0.006, 0.010, -0.003]])


@pytest.mark.parametrize('speed', [0.0, 0.5])
def test_external_forces_are_those_of_the_ground(pair, speed):
    wrenches = on_feet(pair.coupled)
    instant, forces = TwinInstant(pair, 3, wrenches, speed), ExternalForces(pair.coupled, 1e6)
    for state, gyro in zip(instant.states, instant.gyros):
        forces.update(0.002, state, instant.efforts, gyro, instant.acceleration)
    model = pair.coupled
    forces.place(instant.states[1].q)
    jacobians = forces.jacobians(forces.moves(model.soles))
    expected = np.zeros(len(forces.rows))
    for row, jacobian, wrench in zip(
            instant.states[1].placements_in_base(model.soles), jacobians, wrenches):
        force, moment = row[:3].T @ wrench[:3], row[:3].T @ wrench[3:]
        expected += jacobian.T @ np.concatenate((force, moment + np.cross(row[3], force)))
    assert_allclose(forces.raw[forces.measured], expected[forces.measured],
                    atol=2e-4 * 9.81 * model.mass)
    assert forces.measured.all()
    assert {'l_hip_yaw', 'l_knee', 'r_knee'} < set(forces.names)


@pytest.mark.parametrize('foot', [0, 1])
def test_virtual_feet(pair, foot):
    weight, wrenches = 9.81 * pair.coupled.mass, np.zeros((2, 6))
    wrenches[foot] = weight * np.array((0.05, -0.04, 1.1, 0.009, -0.015, 0.005))
    instant = TwinInstant(pair, 1 + foot, wrenches)
    sensors = VirtualFootWrenches(pair.coupled, VirtualWrenchSettings())
    for k, (state, gyro) in enumerate(zip(instant.states, instant.gyros)):
        sensors.update(10 ** 9 + 2 * k * MS, state, instant.efforts, gyro, instant.acceleration,
                       instant.R_world_imu)
    error = (sensors.wrenches - wrenches).reshape(-1)
    assert np.abs(error.reshape(2, 6)[:, :3]).max() < 0.02 * weight
    assert np.abs(error).max() < 0.02 * weight and error @ np.linalg.solve(
        sensors.covariance, error) < 25.0


def test_virtual_hands():
    pair = Twins(with_virtual_hands)
    weight = 9.81 * pair.coupled.mass
    forces = weight * np.array([[0.05, 0.1, -0.08], [-0.06, 0.04, 0.1]])
    wrenches = on_feet(pair.coupled)
    instant = TwinInstant(pair, 5, wrenches, hands=forces)
    hands = VirtualHandForces(pair.coupled, VirtualHandSettings(cutoff=200.0))
    for k, (state, gyro) in enumerate(zip(instant.states, instant.gyros)):
        hands.update(10 ** 9 + 2 * k * MS, state, instant.efforts, gyro, instant.acceleration,
                     wrenches)
    error = (hands.estimates - forces).reshape(-1)
    assert np.sqrt(error @ np.linalg.solve(hands.covariance, error)) < 4.0
    assert np.abs(error).max() < 0.03 * weight
    covariance = RowErrors(pair.coupled, hands.external, VirtualHandSettings()).covariance(
        instant.states[1], 0.1)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


@pytest.mark.parametrize('has_feet', [True, False])
def test_a_payload_has_its_mass_and_place(pair, rng, has_feet):
    """Of a motor that moves several joints, the torque has the payload's part by all of them."""
    mass, com = 1.5, np.array((0.02, 0.01, -0.05))
    estimator, stamp_ns = PayloadEstimator(pair.coupled, PayloadSettings()), 0
    up, imu = np.array((0.0, 0.0, 1.0)), pair.coupled.config.imu.frame
    for carried, count in ((0.0, 200), (mass, 400)):
        positions, of_twin = pair.posture(rng)
        efforts, wrenches = held_with(pair.twin, of_twin, 9.81 * carried, com)
        state = pair.coupled.state(positions, np.zeros(len(positions)))
        acceleration = state.pose_in_base(imu).rotation.T @ (9.81 * up)
        for _ in range(count):
            stamp_ns += 20 * MS
            estimator.update(stamp_ns, PayloadMeasurement(
                state, pair.gains.T @ efforts, np.zeros(3), acceleration,
                wrenches if has_feet else None, None))
    payload = estimator.payload
    assert payload is not None and payload.hand == 'left'
    assert payload.mass == pytest.approx(mass, rel=0.05)


def held_with(model, positions, weight, com):
    """Return efforts (n,) and wrenches on the soles (2, 6), with a weight in the left hand, N."""
    up, hand = np.array((0.0, 0.0, 1.0)), model.config.hands['left'].frame
    state = model.state(positions)
    own = GravityModel(model, contacts=('left', 'right')).load(state, up).on_contacts((0.4, 0.6))
    efforts, wrenches = own.efforts.copy(), np.array(own.wrenches)
    # It is on the left sole alone, and held by virtual work with that sole where it is.
    sole, point = state.placements_in_base(model.soles)[0], state.pose_in_base(hand).apply(com)
    force = weight * up
    wrenches[0] += np.concatenate((sole[:3] @ force, sole[:3] @ np.cross(point - sole[3], force)))
    h, up_in_sole = 1e-6, sole[:3] @ up
    for i, unit in enumerate(np.eye(len(positions))):
        heights = []
        for sign in (1.0, -1.0):
            moved = model.state(positions + sign * h * unit)
            foot = moved.pose_in_base(model.config.feet['left'].sole).inverse()
            heights.append(up_in_sole @ foot.apply(moved.pose_in_base(hand).apply(com)))
        efforts[i] += weight * (heights[0] - heights[1]) / (2.0 * h)
    return efforts, wrenches
