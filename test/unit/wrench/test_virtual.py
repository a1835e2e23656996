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
"""Foot wrenches from joint torques and an IMU, against forces that are known."""

from dataclasses import replace

from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.config import DrivesConfig, ImuConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.dynamics import by_joint
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
import numpy as np
from numpy.testing import assert_allclose
import pytest
from support.moving_robot import moving

MS = 1_000_000


@pytest.fixture(scope='module')
def weight(model):
    return 9.81 * model.mass


def estimate(model, instant, sign=1.0, efforts=0.0, sensors=None, stamp_ns=10**9):
    """Return the virtual sensors after the two instants; `efforts` are added."""
    sensors = sensors or VirtualFootWrenches(model, VirtualWrenchSettings())
    measured = sign * instant.efforts + efforts
    assert not sensors.update(stamp_ns, instant.state_before, measured, instant.gyro_before,
                              instant.acceleration, instant.R_world_imu)
    assert sensors.update(stamp_ns + 2 * MS, instant.state, measured, instant.gyro,
                          instant.acceleration, instant.R_world_imu)
    return sensors


def both(weight):
    """Return wrenches on both soles that differ in everything, N and N m."""
    return weight * np.array([[0.06, 0.03, 0.6, 0.008, -0.012, 0.004],
                              [-0.05, 0.04, 0.45, -0.006, 0.010, -0.003]])


@pytest.mark.parametrize(('speed', 'frame', 'accuracy'), [
    (0.0, None, 2e-5), (1.0, None, 2e-5),
    (0.5, 'l_forearm', 0.02)])  # differences of one step see what is of second order in it
def test_measured_forces_are_those_of_the_ground_by_an_imu_on_any_link(
        model, weight, speed, frame, accuracy):
    """On a forearm its motion relative to the root is taken off."""
    if frame is not None:
        imus = {'base': ImuConfig(frame, 'imu')}
        model = RobotModel(replace(model.config, imus=imus), model.urdf)
    wrenches = both(weight)
    instant = moving(model, wrenches, seed=3, speed=speed)
    sensors = estimate(model, instant)
    rows, _ = sensors._place_soles(instant.state, instant.R_world_imu)
    measured = sensors.forces.measured
    assert_allclose(sensors.forces.value[measured], (wrenches.reshape(-1) @ rows)[measured],
                    atol=accuracy * weight)
    if frame is not None:
        assert np.abs(sensors.forces._imu.additional_acceleration(
            np.zeros(3), np.zeros(3))).max() > 1.0


@pytest.mark.parametrize('foot', [0, 1])
@pytest.mark.parametrize('seed', [1, 2])
def test_a_stance_foot_carries_what_it_carries_while_the_robot_moves(model, weight, foot, seed):
    wrenches = np.zeros((2, 6))
    wrenches[foot] = weight * np.array((0.05, -0.04, 1.1, 0.009, -0.015, 0.005))
    instant = moving(model, wrenches, seed=seed, speed=1.0)
    found = estimate(model, instant).wrenches
    assert_allclose(found[:, :3], wrenches[:, :3], atol=0.02 * weight)
    assert_allclose(found[:, 3:], wrenches[:, 3:], atol=0.002 * weight)
    wrong = estimate(model, instant, sign=-1.0).wrenches
    assert np.abs(wrong - wrenches).max() > 0.1 * weight


def test_the_sum_is_known_better_than_what_the_feet_share(model, weight):
    wrenches = both(weight)
    sensors = estimate(model, moving(model, wrenches, seed=5))
    found, covariance = sensors.wrenches, sensors.covariance
    assert_allclose(found[:, :3].sum(0), wrenches[:, :3].sum(0), atol=0.02 * weight)
    together, against = np.zeros((2, 12))
    together[[1, 7]], against[[1, 7]] = 0.5, (0.5, -0.5)
    assert against @ covariance @ against > 3.0 * (together @ covariance @ together)


def test_without_contact_nothing_is_found(model, weight):
    sensors = estimate(model, moving(model, np.zeros((2, 6)), seed=7, speed=1.0))
    assert np.abs(sensors.wrenches).max() < 0.003 * weight


def test_errors_stay_within_the_covariance(model, weight):
    """Noise, unknown friction, and internal forces are covered after some steps of learning."""
    random = np.random.default_rng(0)
    sensors = VirtualFootWrenches(model, VirtualWrenchSettings(learning_time=0.1))
    covered, internal = [], []
    direction = np.zeros(12)
    direction[[1, 7]] = 0.5, -0.5
    for k in range(150):
        wrenches = both(weight) * random.uniform(0.7, 1.1, (2, 1))
        if k % 3:
            wrenches[k % 3 - 1] = 0.0  # in the air
        instant = moving(model, wrenches, seed=k, speed=0.5)
        friction = 0.003 * weight * random.choice((-1.0, 1.0), len(instant.efforts))
        for _ in range(6):  # learning sees the same motion for some instants
            noise = friction + 0.0005 * weight * random.standard_normal(len(friction))
            estimate(model, instant, efforts=noise, sensors=sensors, stamp_ns=(k + 1) * 10**9)
        error = (sensors.wrenches - wrenches).reshape(-1)
        if k > 30:
            covered.append(np.abs(error) < 1.96 * np.sqrt(sensors.covariance.diagonal()))
        if k > 30 and k % 3 == 0:
            internal.append(abs(direction @ error) < 1.96 * np.sqrt(
                direction @ sensors.covariance @ direction))
    assert 0.9 < np.mean(covered) < 0.995
    assert np.mean(internal) > 0.85
    # Not by saying nothing: the vertical forces are known to some percent.
    assert np.sqrt(sensors.covariance.diagonal()[[2, 8]]).max() < 0.2 * weight


def test_friction_that_the_model_lacks_is_learned_and_makes_wrenches_right(model, weight):
    random = np.random.default_rng(4)
    sensors = VirtualFootWrenches(model, VirtualWrenchSettings())
    joints = [model.joint_names.index(name) for name in sensors.forces.names]
    friction = np.zeros(len(model.joint_names))
    friction[joints] = weight * random.uniform(0.002, 0.006, len(joints))

    def dragged(instant):
        return friction * np.sign(speeds_of(model, instant.state.v))
    for k in range(60):
        wrenches = both(weight) * random.uniform(0.7, 1.1, (2, 1))
        wrenches[k % 2] = 0.0
        instant = moving(model, wrenches, seed=k, speed=1.0)
        for _ in range(8):
            estimate(model, instant, efforts=dragged(instant), sensors=sensors,
                     stamp_ns=(k + 1) * 10**9)
    assert_allclose(sensors.drives.coefficients[:, 1], friction[joints], atol=0.001 * weight)
    instant = moving(model, both(weight), seed=200, speed=1.0)
    unaware, learned = (estimate(model, instant, efforts=dragged(instant), sensors=each,
                                 stamp_ns=10**12).wrenches for each in (None, sensors))
    errors = [np.abs(found - both(weight))[:, 3:].max() for found in (unaware, learned)]
    assert errors[1] < 0.4 * errors[0]


def speeds_of(model, v):
    """Return Pinocchio's velocity of the joints in their sequence in the model."""
    pin_model = model.pin_model
    return v[[pin_model.joints[pin_model.getJointId(name)].idx_v for name in model.joint_names]]


def test_rotor_inertia_and_friction_of_the_drives_are_used(model, weight):
    wrenches = both(weight)
    instant = moving(model, wrenches, seed=9, speed=1.0)
    config = replace(model.config, drives=DrivesConfig(
        rotor_inertia={'left_leg': 0.03}, friction={'right_leg': 0.5}))
    drives = RobotModel(config, model.urdf)
    legs, groups = model.joint_names, config.groups
    before, now = (speeds_of(model, each.v) for each in (instant.state_before, instant.state))
    extra = (by_joint(config.drives.rotor_inertia, groups, legs) * (now - before) / 0.002
             + by_joint(config.drives.friction, groups, legs) * np.sign(now))
    unknown = estimate(model, instant, efforts=extra).wrenches
    known = estimate(drives, instant, efforts=extra).wrenches
    exact = estimate(model, instant).wrenches
    assert np.abs(known - exact).max() < 0.01 * weight
    assert np.abs(unknown - exact).max() > 3.0 * np.abs(known - exact).max()


def test_a_tilted_sole_stands_on_its_lowest_edge(model, weight):
    """The prior expects the CoP on the edge that is lowest, here the toe."""
    sensors = VirtualFootWrenches(model, VirtualWrenchSettings())
    toe_down = np.array([[-np.sin(0.2), 0.0, np.cos(0.2)]] * 2)  # of the vertical, in the sole
    corners = np.array(model.config.feet['left'].polygon)
    information = -sensors._prior(toe_down, 2 * [0.5 * weight])[:6, :6]
    # Of all CoPs that carry one newton, the prior finds one near the toe the most likely.
    x = np.linspace(corners[:, 0].min(), corners[:, 0].max(), 50)
    likelihood = [w @ information @ w for w in (
        np.array([0.0, 0.0, 1.0, 0.0, -value, 0.0]) for value in x)]
    length = corners[:, 0].max() - corners[:, 0].min()
    assert x[int(np.argmax(likelihood))] > corners[:, 0].max() - 0.1 * length


def test_the_prior_is_that_of_independent_forces_and_moments_about_a_point_of_the_sole(model):
    sensors = VirtualFootWrenches(model, VirtualWrenchSettings())
    ups = np.array([[-0.1, 0.05, 0.9], [0.02, -0.2, 0.9]])
    information = sensors._prior(ups / np.linalg.norm(ups, axis=1)[:, None], [10.0, 20.0])
    assert not information[:6, 6:].any() and not information[6:, :6].any()
    for foot, corners in zip((0, 6), (each.polygon for each in model.config.feet.values())):
        block = information[foot:foot + 6, foot:foot + 6]
        x, y = block[2, 4] / block[4, 4], -block[2, 3] / block[3, 3]
        assert (np.min(corners, axis=0) < (x, y)).all() and (
            (x, y) < np.max(corners, axis=0)).all()
        assert min(abs(x), abs(y)) > 5e-4
        to_sole = wrench_adjoint(np.eye(3), np.array([x, y, 0.0]))
        precisions = to_sole.T @ block @ to_sole
        assert (precisions.diagonal() > 0.0).all()
        assert_allclose(precisions, np.diag(precisions.diagonal()), atol=1e-12 * precisions.max())
