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
"""
Gravity's efforts against Pinocchio's dynamics and MuJoCo's inverse statics, on random poses.

Pinocchio computes with the base somewhere in the world and turned anyhow, MuJoCo from the URDF as
the simulator reads it; neither shares a formula with ``core.gravity``.
"""

from __future__ import annotations

from functools import partial

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim.description import GRAVITY
from examples.static_robot import StaticRobot
import numpy as np
import pinocchio as pin
import pytest
from support.contact_balance import residual
from support.small_robot import random_rotation, small_robot

ROBOTS = ('biped', 'talos', 'g1', 'icub')
POSES = 200
UP = np.array([0.0, 0.0, 1.0])


class PinocchioStatics:
    """Pinocchio with the base frame anywhere in the world."""

    def __init__(self, model):
        self.model, self.pin = model, model.pin_model
        self.data = self.pin.createData()
        joints = np.eye(len(model.joint_names))
        zero = model.configuration(np.zeros(len(joints)))[7:]
        self.gears = np.array([model.configuration(row)[7:] - zero for row in joints])
        passive = model.config.passive_joints
        self.actuated = np.array([name not in passive for name in model.joint_names])

    def put(self, positions, base):
        """Set the configuration; returns generalized gravity of base and joints."""
        q = self.model.configuration(positions)
        root = pin.SE3(base.rotation, base.position) * pin.XYZQUATToSE3(q[:7])
        q[:7] = pin.SE3ToXYZQUAT(root)
        self.q = q
        pin.computeJointJacobians(self.pin, self.data, q)
        return pin.computeGeneralizedGravity(self.pin, self.data, q).copy()

    def sole_jacobian(self, foot):
        """Jacobian (6, nv) of a sole's origin in world axes."""
        soles = self.model.soles
        joint, row = int(soles.joints[foot]), soles.placement_in_joint[foot]
        frame = self.pin.addFrame(pin.Frame(
            f'oracle/{foot}', joint, 0, pin.SE3(row[:3, :3].T.copy(), row[3, :3].copy()),
            pin.FrameType.OP_FRAME), False)
        data = self.pin.createData()
        return pin.computeFrameJacobian(
            self.pin, data, self.q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)

    def measured(self, forces):
        """Efforts of measured joints from forces on all."""
        return (self.gears @ forces) * self.actuated


@pytest.fixture(scope='module', params=ROBOTS)
def model(request):
    """Return one of the robots."""
    return RobotModel.load(request.param)


def poses(model, count, seed=0):
    """Yield joint positions and base poses."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield (rng.uniform(-1.0, 1.0, len(model.joint_names)),
               Pose(random_rotation(rng), rng.uniform(-2.0, 2.0, 3)), rng)


def test_fixed_base_efforts_are_generalized_gravity(model):
    gravity, oracle = GravityModel(model), PinocchioStatics(model)
    for positions, base, _ in poses(model, POSES):
        expected = oracle.measured(oracle.put(positions, base)[6:])
        found = gravity.load(model.state(positions), base.rotation.T @ UP).fixed_base_efforts()
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)


def test_single_support_is_gravity_minus_contact(model):
    oracle = PinocchioStatics(model)
    gravity = GravityModel(model)
    for i, (positions, base, _) in enumerate(poses(model, POSES, 1)):
        g = oracle.put(positions, base)
        J = oracle.sole_jacobian(i % 2)
        wrench = np.linalg.solve(J[:, :6].T, g[:6])
        expected = oracle.measured(g[6:] - J[:, 6:].T @ wrench)
        load = gravity.load(model.state(positions), base.rotation.T @ UP)
        support = load.on_contacts(np.eye(2)[i % 2])
        np.testing.assert_allclose(support.efforts, expected, rtol=0.0, atol=1e-9)
        sole = model.state(positions).placements_in_base(model.soles)[i % 2]
        in_base = support.wrenches[i % 2].reshape(2, 3) @ sole[:3]
        in_world = (in_base @ base.rotation.T).ravel()
        np.testing.assert_allclose(in_world, wrench, atol=1e-8)


def test_single_support_is_newmans_jacobian_with_a_turning_base(model):
    oracle, gravity = PinocchioStatics(model), GravityModel(model)
    worst_frozen = 0.0
    for positions, base, _ in poses(model, 20, 2):
        g = oracle.put(positions, base)
        J = oracle.sole_jacobian(0)
        com = pin.jacobianCenterOfMass(model.pin_model, model.pin_model.createData(), oracle.q)
        turning = com[:, 6:] - com[:, :6] @ np.linalg.solve(J[:, :6], J[:, 6:])
        expected = oracle.measured(9.81 * model.mass * turning[2])
        load = gravity.load(model.state(positions), base.rotation.T @ UP)
        found = load.on_contacts(np.array([1.0, 0.0])).efforts
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
        worst_frozen = max(worst_frozen, np.abs(oracle.measured(g[6:]) - expected).max())
    assert worst_frozen > 0.05 * 9.81 * model.mass  # a fixed pelvis would be detected


def test_double_support_balances_the_whole_body(model):
    """Inverse dynamics with the wrenches as external forces: base at rest, joints as found."""
    oracle, gravity = PinocchioStatics(model), GravityModel(model)
    data, zero = model.pin_model.createData(), np.zeros(model.pin_model.nv)
    for positions, base, rng in poses(model, POSES, 3):
        oracle.put(positions, base)
        load = gravity.load(model.state(positions), base.rotation.T @ UP)
        support = load.on_contacts(rng.dirichlet((1.0, 1.0)))
        forces = pin.StdVec_Force()
        forces.extend(pin.Force.Zero() for _ in range(model.pin_model.njoints))
        for joint, placement, wrench in zip(
                model.soles.joints, model.soles.poses_in_joint(), support.wrenches):
            sole = pin.SE3(placement.rotation, placement.position)
            forces[int(joint)] = forces[int(joint)] + sole.act(pin.Force(wrench))
        torques = pin.rnea(model.pin_model, data, oracle.q, zero, zero, forces)
        np.testing.assert_allclose(torques[:6], 0.0, atol=1e-9)
        np.testing.assert_allclose(residual(support), 0.0, atol=1e-9)
        np.testing.assert_allclose(
            support.efforts, oracle.measured(torques[6:]), rtol=0.0, atol=1e-9)


def static_poses(model, count):
    """Yield a robot in MuJoCo, joint positions, tilt of its stance sole and `up` in the base."""
    truth = StaticRobot(model.config, model.urdf, {}, model.joint_names)
    rng = np.random.default_rng(5)
    for i in range(count):
        positions, tilt = rng.uniform(-1.0, 1.0, len(model.joint_names)), rng.uniform(-1, 1, 2)
        foot = tuple(model.config.feet)[i % 2]
        reading = truth.read(positions, (foot,), tuple(tilt))
        up_in_link = truth._data.body(f'link/{model.config.base_link}').xmat.reshape(3, 3)[2]
        base = Pose.from_rpy(model.config.base_rpy, np.zeros(3)).rotation
        yield truth, reading, positions, i % 2, base.T @ up_in_link


def test_single_support_against_mujoco(model):
    gravity, oracle = GravityModel(model, GRAVITY), PinocchioStatics(model)
    for _, reading, positions, foot, up in static_poses(model, POSES):
        found = gravity.load(model.state(positions), up).on_contacts(np.eye(2)[foot]).efforts
        np.testing.assert_allclose(
            found, reading.torques * oracle.actuated, rtol=0.0, atol=1e-5)


def test_double_support_against_mujoco(model):
    gravity, oracle = GravityModel(model, GRAVITY), PinocchioStatics(model)
    feet = tuple(model.config.feet)
    for truth, _, positions, _, up in static_poses(model, 50):
        support = gravity.load(model.state(positions), up).on_contacts(np.array([0.3, 0.7]))
        in_world = [
            (truth._data.site(f'sole/{name}').xmat.reshape(3, 3) @ wrench.reshape(2, 3).T).T
            for name, wrench in zip(feet, support.wrenches)]
        torques = truth._joint_torques(feet, np.array(in_world).reshape(-1, 6))
        np.testing.assert_allclose(
            support.efforts, torques * oracle.actuated, rtol=0.0, atol=1e-5)


def fixed_base_energy(gravity, up, positions):
    """Potential energy, J, with the base at rest."""
    return gravity.weight * up @ gravity.model.state(positions).com_in_base


def standing_energy(gravity, up_in_sole, positions):
    """Potential energy, J, with the second sole at rest."""
    state = gravity.model.state(positions)
    row = state.placements_in_base(gravity.model.soles)[1]
    return gravity.weight * up_in_sole @ (row[:3] @ (state.com_in_base - row[3]))


@pytest.mark.parametrize('make', (small_robot, lambda: RobotModel.load('talos')))
def test_virtual_work(make):
    """Efforts are what raises the centre of mass; mimicking joints move along."""
    model = make()
    gravity, actuated = GravityModel(model), PinocchioStatics(model).actuated
    for positions, base, _ in poses(model, 5, 7):
        up = base.rotation.T @ UP
        load = gravity.load(model.state(positions), up)
        sole = model.state(positions).placements_in_base(model.soles)[1]
        standing = load.on_contacts(np.array([0.0, 1.0])).efforts
        for energy, efforts in (
                (partial(fixed_base_energy, gravity, up), load.fixed_base_efforts()),
                (partial(standing_energy, gravity, sole[:3] @ up), standing)):
            expected = gradient(energy, positions) * actuated
            np.testing.assert_allclose(efforts, expected, atol=1e-5)


def gradient(function, at, step=1e-5):
    """Central differences."""
    steps = step * np.eye(len(at))
    return np.array([(function(at + s) - function(at - s)) / (2.0 * step) for s in steps])
