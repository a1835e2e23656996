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
A robot in motion under known ground wrenches: what its motors and its IMU measure.

Made in the world with gravity, by forces on the feet's links, while the estimators work in the
IMU's frame without gravity.
"""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Pose
import numpy as np
import pinocchio as pin


@dataclass
class RobotInstant:
    """Two successive instants `dt` apart, of which the second has these measurements."""

    state_before: object
    state: object
    efforts: np.ndarray
    gyro_before: np.ndarray
    gyro: np.ndarray
    acceleration: np.ndarray
    R_world_imu: np.ndarray


def moving(model, wrenches_in_soles, seed=0, dt=0.002, speed=0.5, tilt=0.01, spread=0.01,
           posture=None, hands=(), motion=None):
    """
    Return what a robot measures that moves at random under wrenches (F, 6) on its soles.

    `speed` scales velocities and accelerations; `tilt` and `spread` of the joints are in rad, and
    the latter is about `posture`, by default the usual one. `hands` are forces at the frames of
    the hands and along their axes, N. `motion` are velocities and accelerations of the joints,
    (2, n), instead of random ones.
    """
    random = np.random.default_rng(seed)
    pin_model = model.pin_model.copy()
    data = pin_model.createData()
    n = len(model.joint_names)
    positions = (model.posture() if posture is None else posture) + (
        spread * random.uniform(-1, 1, n))
    q = model.configuration(positions)
    R_world_base = Pose.from_rpy((*(tilt * random.uniform(-1, 1, 2)), 0.7), np.zeros(3)).rotation
    root = Pose(R_world_base, np.zeros(3)) @ Pose.from_quaternion(q[3:7], q[:3])
    q_world = q.copy()
    q_world[:3], q_world[3:7] = root.position, root.quaternion
    joint_speeds = speed * random.uniform(-1, 1, n)
    rates = 10.0 * speed * random.uniform(-1, 1, n)
    if motion is not None:
        joint_speeds, rates = motion
    v = model.velocity(joint_speeds).copy()
    v[:6] = speed * random.uniform(-1, 1, 6)
    rate = model.velocity(rates).copy()
    forces = _on_joints(pin_model, model.soles, wrenches_in_soles)
    if len(hands):
        frames = model.frames(hand.frame for hand in model.config.hands.values())
        wrenches = np.column_stack((hands, np.zeros((len(hands), 3))))
        forces = [a + b for a, b in zip(forces, _on_joints(pin_model, frames, wrenches))]
    # The root accelerates such that nothing pushes it but the feet.
    pin_model.gravity.linear = np.array([0.0, 0.0, -9.81])
    mass = pin.crba(pin_model, data, q_world)
    mass = np.triu(mass) + np.triu(mass, 1).T
    rest = pin.rnea(pin_model, data, q_world, v, rate, forces)
    rate[:6] = np.linalg.solve(mass[:6, :6], -rest[:6])
    torques = pin.rnea(pin_model, data, q_world, v, rate, forces)
    assert np.abs(torques[:6]).max() < 1e-6
    imu = model.config.imu.frame
    pin.forwardKinematics(pin_model, data, q_world, v, rate)
    frame = pin_model.getFrameId(imu)
    pin.updateFramePlacements(pin_model, data)
    R_world_imu = data.oMf[frame].rotation.copy()
    local = pin.ReferenceFrame.LOCAL
    gyro = pin.getFrameVelocity(pin_model, data, frame, local).angular
    gyro_rate = pin.getFrameAcceleration(pin_model, data, frame, local).angular
    acceleration = pin.getFrameClassicalAcceleration(pin_model, data, frame, local).linear
    acceleration = acceleration + 9.81 * R_world_imu[2]
    # A motor does the work of all joints that move with its one.
    efforts = np.array([torques.dot(model.velocity(unit)) for unit in np.eye(n)])
    return RobotInstant(
        model.state(positions - dt * joint_speeds, joint_speeds - dt * rates),
        model.state(positions, joint_speeds), efforts, gyro - dt * gyro_rate, gyro, acceleration,
        R_world_imu)


def _on_joints(pin_model, frames, wrenches):
    forces = [pin.Force.Zero() for _ in range(pin_model.njoints)]
    for joint, pose, wrench in zip(
            frames.joints, frames.poses_in_joint(), wrenches):
        placed = pin.SE3(pose.rotation, pose.position)
        forces[int(joint)] += placed.act(pin.Force(np.array(wrench, dtype=float)))
    return forces
