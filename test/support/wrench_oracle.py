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
What the sensors of ``data/wrench_robot.urdf`` read under known contact forces.

Made from first principles, force by force and link by link in world axes, with a kinematic model
of its own; shares no code with the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

DATA = Path(__file__).resolve().parents[1] / 'data'
URDF, YAML = DATA / 'wrench_robot.urdf', DATA / 'wrench_robot.yaml'
GRAVITY = np.array([0.0, 0.0, -9.81])

# By sensor: frame it measures in, sign of what it reports, links that hang on it.
SENSORS = {
    'left_toe': ('l_toe', 1.0, ('l_toe',)),
    'left_heel': ('l_heel', 1.0, ('l_heel',)),
    'right_foot': ('r_ft', -1.0, ('r_foot',)),
    'left_hand': ('palm', 1.0, ('palm', 'finger')),
}
FEET = {'left': ('l_sole', ('left_toe', 'left_heel')), 'right': ('r_sole', ('right_foot',))}
BASE_IN_PELVIS = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 0.7), np.zeros(3))


@dataclass
class OracleContact:
    """A force (3,) at a point (3,) with a free torque (3,), all in the world, N, m, N m."""

    force: np.ndarray
    point: np.ndarray
    torque: np.ndarray = field(default_factory=lambda: np.zeros(3))


class TiltedRobot:
    """The robot in one posture, somewhere in the world, tilted."""

    def __init__(self, joints, pelvis):
        model = pin.buildModelFromUrdf(str(URDF), pin.JointModelFreeFlyer())
        data = model.createData()
        self.joint_names = list(model.names)[2:]
        q = pin.neutral(model)
        q[:7] = pin.SE3ToXYZQUAT(pelvis)
        for name, value in joints.items():
            q[model.joints[model.getJointId(name)].idx_q] = value
        pin.framesForwardKinematics(model, data, q)
        self.joints = q[7:].copy()
        self.frames = {f.name: data.oMf[i] for i, f in enumerate(model.frames)}
        self.base = pelvis * BASE_IN_PELVIS
        self.links = {link.get('name'): _inertial(link)
                      for link in ElementTree.parse(URDF).findall('link')
                      if link.find('inertial') is not None}
        self.mass = sum(mass for mass, _ in self.links.values())

    @classmethod
    def somewhere(cls, seed):
        """Return a robot in a random posture and place, tilted by up to about 15 deg."""
        rng = np.random.default_rng(seed)
        pelvis = pin.SE3(pin.rpy.rpyToMatrix(*rng.uniform(-0.25, 0.25, 2), rng.uniform(-3, 3)),
                         rng.uniform(-2.0, 2.0, 3))
        names = ('l_hip', 'l_ankle_pitch', 'r_hip', 'r_ankle_pitch', 'elbow', 'knuckle')
        return cls(dict(zip(names, rng.uniform(-0.4, 0.4, 6))), pelvis)

    @property
    def com(self):
        """Centre of mass in the world, m."""
        return sum(m * self.frames[link].act(c) for link, (m, c) in self.links.items()) / self.mass

    def imu_quaternion(self, heading_error=0.0):
        """Orientation (x, y, z, w) that an IMU of unknown heading reports."""
        drift = pin.rpy.rpyToMatrix(0.0, 0.0, heading_error)
        return pin.Quaternion(drift @ self.frames['imu_link'].rotation).coeffs()

    def imu_acceleration(self):
        """Specific force that an IMU at rest measures along its axes, (3,), m/s^2."""
        return -self.frames['imu_link'].rotation.T @ GRAVITY

    def forces_on(self, sensor, contacts):
        """All forces on what hangs on a sensor: contacts and weights."""
        weights = [OracleContact(self.links[link][0] * GRAVITY, self.frames[link].act(
            self.links[link][1])) for link in SENSORS[sensor][2]]
        return [*contacts.get(sensor, ()), *weights]

    def reading(self, sensor, contacts, offset=0.0):
        """Return what a sensor reports (6,) with an offset of its own."""
        frame, sign, _ = SENSORS[sensor]
        return sign * (wrench_in(self.frames[frame], self.forces_on(sensor, contacts)) + offset)

    def foot_wrench(self, foot, contacts):
        """Return what the ground does to a foot (6,), in its sole frame."""
        sole, sensors = FEET[foot]
        return wrench_in(self.frames[sole], [c for s in sensors for c in contacts.get(s, ())])

    def hand_wrench(self, sensor, frame, contacts):
        """Return what is done to a hand with one sensor (6,), in a frame of the hand."""
        return wrench_in(self.frames[frame], contacts.get(sensor, ()))

    def footprint(self, feet=('left', 'right')):
        """Return the placement of base_footprint with these feet on the ground."""
        soles = np.array([self.frames[FEET[foot][0]].translation for foot in feet])
        x_axis = self.base.rotation[:, 0]
        return pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, np.arctan2(x_axis[1], x_axis[0])),
                       np.array([*soles[:, :2].mean(axis=0), soles[:, 2].min()]))

    def total_wrench(self, contacts, feet=('left', 'right')):
        """Return what the environment does to the robot (6,), in base_footprint."""
        return wrench_in(self.footprint(feet), [c for cs in contacts.values() for c in cs])

    def standing(self, seed=0, pull_by_hand=True):
        """
        Return contacts by sensor that hold the robot at rest, with friction and free torques.

        Forces are random except for the one under the right foot, which balances the rest.
        """
        rng = np.random.default_rng(seed)
        contacts = {
            'left_toe': [self._push(rng, 'l_toe', 30.0), self._push(rng, 'l_toe', 10.0)],
            'left_heel': [self._push(rng, 'l_heel', 20.0)]}
        if pull_by_hand:
            contacts['left_hand'] = [self._push(rng, 'finger', 6.0)]
        given = [c for cs in contacts.values() for c in cs]
        weight = self.mass * GRAVITY
        force = -weight - sum(c.force for c in given)
        point = self.frames['r_sole'].act(rng.uniform(-0.05, 0.05, 3))
        moment = np.cross(self.com, weight) + sum(
            c.torque + np.cross(c.point, c.force) for c in given)
        contacts['right_foot'] = [OracleContact(force, point, -moment - np.cross(point, force))]
        return contacts

    def _push(self, rng, link, size):
        force = np.array([*rng.uniform(-0.3, 0.3, 2), 1.0]) * size
        return OracleContact(force, self.frames[link].act(rng.uniform(-0.1, 0.1, 3)),
                             rng.uniform(-0.5, 0.5, 3))


def wrench_in(frame, forces):
    """Return the wrench (6,) of forces in the world, as felt at the origin of a frame."""
    force, moment = np.zeros(3), np.zeros(3)
    for c in forces:
        force += c.force
        moment += c.torque + np.cross(c.point - frame.translation, c.force)
    return np.concatenate([frame.rotation.T @ force, frame.rotation.T @ moment])


def _inertial(link):
    inertial = link.find('inertial')
    return (float(inertial.find('mass').get('value')),
            np.array([float(v) for v in inertial.find('origin').get('xyz').split()]))
