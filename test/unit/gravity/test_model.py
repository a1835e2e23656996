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
"""Gravity's efforts: wrench distribution, passive joints, and inputs that are refused."""

from __future__ import annotations

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.core.geometry.wrench import skew, wrench_adjoint
from biped_com_ros.core.gravity.attitude import MountedImu
from biped_com_ros.core.gravity.contacts import minimum_norm_wrenches
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest
from support.contact_balance import residual
from support.small_robot import random_rotation, small_robot

UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture
def load(talos):
    """Return the load of a robot that stands."""
    return GravityModel(talos).load(talos.state(talos.posture()), UP)


def wrenches_of(*arguments):
    """Return the weighted least wrenches as an array."""
    return np.array(minimum_norm_wrenches(*arguments))


def as_printed(force, moment, points, shares, levers):
    """Return W^-1 A^T (A W^-1 A^T)^-1 w as the literature has it, with dense matrices."""
    grasp = np.hstack([np.block([
        [np.eye(3), np.zeros((3, 3))], [skew(p), np.eye(3)]]) for p in points])
    inverse = np.diag(np.concatenate([
        share * np.array([1.0, 1.0, 1.0, *[lever ** 2] * 3])
        for share, lever in zip(shares, levers)]))
    inner = grasp @ inverse @ grasp.T
    wrench = np.concatenate((force, moment))
    return (inverse @ grasp.T @ np.linalg.solve(inner, wrench)).reshape(-1, 6)


@pytest.mark.parametrize('count', (1, 2, 3, 4))
def test_closed_form_is_the_weighted_pseudoinverse(count):
    """A contact with share zero has no wrench."""
    rng = np.random.default_rng(count)
    for k in range(50):
        points, shares = rng.normal(size=(count, 3)), rng.dirichlet(np.ones(count))
        if count > 2 and k < 10:
            shares[0] = 0.0
            shares /= shares.sum()
        levers = rng.uniform(0.05, 0.3, count)
        force, moment = rng.normal(size=3) * 100.0, rng.normal(size=3) * 30.0
        found = wrenches_of(force, moment, points, shares, levers)
        np.testing.assert_allclose(
            found, as_printed(force, moment, points, shares, levers), rtol=1e-7, atol=1e-7)
        assert found[shares > 0.0].any(axis=1).all() and not found[shares == 0.0].any()
        adjoints = wrench_adjoint(np.broadcast_to(np.eye(3), (count, 3, 3)), points)
        np.testing.assert_allclose(
            (adjoints @ found[..., None])[..., 0].sum(axis=0), [*force, *moment], atol=1e-9)


def test_three_points_balance_a_moment_and_two_do_not():
    points = np.array([[0.3, 0.1, 0.0], [-0.2, 0.3, 0.1], [0.0, -0.4, 0.05]])
    force, moment = np.array([0.0, 0.0, 50.0]), np.array([1.0, -2.0, 0.5])
    found = wrenches_of(force, moment, points, np.full(3, 1.0 / 3.0), np.zeros(3))
    assert not found[:, 3:].any()
    np.testing.assert_allclose(np.cross(points, found[:, :3]).sum(axis=0), moment, atol=1e-9)
    with pytest.raises(InputError, match='line'):
        wrenches_of(force, moment, points[:2], np.array([0.5, 0.5]), np.zeros(2))


def test_wrenches_are_continuous_to_share_zero(load):
    alone = load.on_contacts(np.array([1.0, 0.0])).efforts
    jump = [np.abs(load.on_contacts(np.array([1.0 - a, a])).efforts - alone).max()
            for a in (1e-2, 1e-3, 1e-5)]
    assert jump[0] > 5.0 * jump[1] > 100.0 * jump[2]
    assert jump[2] < 0.01


def test_measured_shares_come_back_as_forces(load, talos):
    """On feet at one height, shares that put the mean under the CoM need no ankle torque."""
    y, (left, right) = load.com[1], load.placements[:, 3, 1]
    share = (y - right) / (left - right)
    support, weight = load.on_contacts(np.array([share, 1.0 - share])), load.gravity_model.weight
    np.testing.assert_allclose(
        support.wrenches[:, 2], weight * support.shares, rtol=1e-6)
    np.testing.assert_allclose(support.wrenches[:, 3], 0.0, atol=1e-6 * weight)
    # They do not change when the next load is computed.
    before = support.efforts.copy()
    load.gravity_model.load(talos.state(talos.posture('arms_out')), UP)
    np.testing.assert_array_equal(load.on_contacts(support.shares).efforts, before)


def test_heading_changes_nothing():
    model, rng = small_robot(), np.random.default_rng(4)
    gravity, imu = GravityModel(model), model.frames(('imu_link',))
    state = model.state(rng.uniform(-1.0, 1.0, len(model.joint_names)))
    R_world_base, efforts = random_rotation(rng), []
    for yaw in (0.0, 1.0, 2.5):
        turn = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
        R_world_imu = turn @ R_world_base @ state.placements_in_base(imu)[0, :3].T
        quaternion = Pose(R_world_imu, np.zeros(3)).quaternion
        up = rotation_from_quaternion(quaternion)[2] @ state.placements_in_base(imu)[0, :3]
        np.testing.assert_allclose(up, R_world_base[2], atol=1e-12)
        load = gravity.load(state, up)
        efforts.append([load.fixed_base_efforts(), load.on_contacts(np.array([0.2, 0.8])).efforts])
    np.testing.assert_allclose(efforts[1], efforts[0], atol=1e-9)
    np.testing.assert_allclose(efforts[2], efforts[0], atol=1e-9)


def test_passive_joints_get_no_effort_and_unlimited_joints_no_limit():
    model = small_robot()
    gravity = GravityModel(model)
    load = gravity.load(model.state(model.posture()), UP)
    neck, waist = (model.joint_names.index(name) for name in ('neck', 'waist'))
    assert load.fixed_base_efforts()[neck] == load.on_contacts([0.5, 0.5]).efforts[neck] == 0.0
    assert gravity.effort_limits[neck] == gravity.effort_limits[waist] == np.inf
    for shares in ([0.0, 0.0], [1.0, -0.5], [1.0], [np.nan, 1.0]):
        with pytest.raises(InputError, match='left, right'):
            load.on_contacts(np.array(shares))
    with pytest.raises(UnknownNameError, match='tail'):
        GravityModel(model, contacts=('left', 'tail'))


def test_hands_are_contacts_without_torque(talos, load):
    held = GravityModel(talos, contacts=('left', 'right', 'left_hand')).load(
        talos.state(talos.posture()), UP)
    support = held.on_contacts(np.array([0.4, 0.4, 0.2]))
    assert not support.wrenches[2, 3:].any()
    assert np.abs(support.wrenches[2, :3]).max() > 1.0
    np.testing.assert_allclose(residual(support), 0.0, atol=1e-9)
    feet = held.on_contacts(np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(
        feet.efforts, load.on_contacts(np.array([0.5, 0.5])).efforts, atol=1e-9)


@pytest.mark.parametrize('on_base', (True, False))
def test_the_load_at_positions_and_imu_is_that_of_a_state(talos, on_base):
    """Wherever the IMU sits; where it is on another link than the base, the joints turn it."""
    model, gravity, rng = talos, GravityModel(talos), np.random.default_rng(5)
    frame = model.config.imu.frame if on_base else 'head_2_link'
    imu, positions = MountedImu(model, frame), model.posture()
    for _ in range(5):
        positions = positions + rng.uniform(-0.3, 0.3, len(positions))
        quaternion = rng.normal(size=4)
        state = model.state(positions)
        up = rotation_from_quaternion(quaternion)[2] @ state.placements_in_base(
            model.frames((frame,)))[0, :3]
        expected = gravity.load(state, up).on_contacts([0.3, 0.7])
        imu.update(quaternion)
        found = gravity.load_at(positions, imu).on_contacts([0.3, 0.7])
        np.testing.assert_allclose(found.load.up, up, atol=1e-12)
        np.testing.assert_allclose(found.efforts, expected.efforts, atol=1e-9)
    positions[4] = np.nan
    with pytest.raises(InputError, match=model.joint_names[4]):
        gravity.load_at(positions, imu)
    with pytest.raises(InputError, match='quaternion'):
        imu.update(np.zeros(4))


def test_a_flat_sole_has_its_centre_of_pressure_at_its_centroid():
    """Of two feet side by side, each has its centre of pressure in the middle of its area."""
    model = RobotModel.load('icub')  # its soles' frames are 5 mm beside the middle
    gravity = GravityModel(model)
    load = gravity.load(model.state(model.posture()), UP)
    for wrench, contact in zip(load.on_contacts([0.5, 0.5]).wrenches, gravity.contacts):
        middle = np.mean(contact.polygon, axis=0)  # of a rectangle
        assert abs(middle[1]) > 4e-3
        assert abs(wrench[3] / wrench[2] - middle[1]) < 1e-4
    np.testing.assert_allclose(contact.centre, middle, atol=1e-12)
