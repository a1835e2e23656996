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
"""Captures of robots whose truth is known, read from MuJoCo's inverse statics."""

from dataclasses import replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.equations.instruments import InstrumentCalibration
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.model.robot import RobotModel
from examples.static_robot import hidden_lumps, StaticRobot
import numpy as np

NOISE = SensorNoise()

PERFECT = dict.fromkeys((
    'encoder_offset', 'slide_offset', 'force_bias', 'moment_bias', 'torque_bias', 'tilt_bias',
    'recording_gain', 'wrench_gain', 'cross_talk', 'force_drift', 'moment_drift',
    'sensor_shift', 'sensor_turn', 'torque_gain', 'friction', 'floor_tilt', 'sole_turn',
    'sole_height', 'sole_contact'), 0.0)
"""Keywords of `SensorNoise` for instruments that are known to be without errors."""


TRIES = 500
"""Random poses on two feet that are tried; a robot whose legs have few joints reaches none."""


class TrueRobot:
    """A robot that differs from its URDF, and captures of it."""

    def __init__(self, name, seed=0, **lumps):
        self.model = RobotModel.load(name)
        self.rng = np.random.default_rng(1000 + seed)
        model = self.model
        self.errors = hidden_lumps(
            dict(zip(model.link_names, model.link_masses.tolist())), seed, **lumps)
        self.static = StaticRobot(model.config, model.urdf, self.errors, model.joint_names)
        self._ik = PostureIk(model, model.posture('stand'))

    @property
    def theta(self):
        """Return the true masses and first moments."""
        masses = [self.static.link_masses[name] for name in self.model.link_names]
        coms = np.array([self.static.link_coms[name] for name in self.model.link_names])
        return np.column_stack((masses, np.array(masses)[:, np.newaxis] * coms))

    def positions(self, standing, spread=0.5):
        """Random joint positions; over two feet the legs keep them where they are."""
        model, torso = self.model, self.model.config.torso
        q = model.posture('stand')
        q = q + self.rng.uniform(-spread, spread, len(q))
        if torso is not None:
            bend = model.joint_index(torso.joints)
            q[bend] = 0.0
            q[bend[3:5]] = self.rng.uniform(-0.2, 0.2, 2)
        if len(standing) > 1:
            q[self._ik.joints] = self._legs()[self._ik.joints]
        return q

    def _legs(self):
        """Return random positions with which the legs stand on both feet."""
        for _ in range(TRIES):
            turn = Pose.from_rpy(self.rng.uniform(-0.15, 0.15, 3), np.zeros(3)).rotation
            try:
                return self._ik.positions(Pose(turn, self.rng.uniform(-0.03, 0.03, 3)))
            except InputError as error:
                problem = str(error)
        raise InputError(f'{self.model.config.name} cannot stand on both feet in {TRIES} random '
                         f'poses: {problem}')

    def capture(self, standing, noise=None, positions=None, tilt=(0.0, 0.0), name=''):
        """Take a pose; without `noise`, as it truly is."""
        model, rng = self.model, self.rng
        q = self.positions(standing) if positions is None else positions
        reading = self.static.read(q, standing, tilt, rng.normal(size=6))
        if noise is not None:
            reading = reading.noisy(rng, noise.force, noise.moment, noise.torque, noise.tilt)
            q = q + rng.normal(size=len(q)) * self._encoder_sigma(noise)
        contact = np.array([foot in standing for foot in model.config.feet])
        return Capture(
            positions=q, wrenches=reading.wrenches, in_contact=contact, up=reading.up,
            up_frame=model.config.imu.frame, torques=reading.torques, name=name)

    def _encoder_sigma(self, noise):
        sigma, torso = np.full(len(self.model.joint_names), noise.encoder), self.model.config.torso
        if torso is not None:
            sigma[self.model.joint_index(torso.joints[:3])] = noise.slide
        return sigma

    def captures(self, count, noise=NOISE):
        """Take poses on the left foot, on the right foot and on both in turns."""
        feet = (('left',), ('right',), ('left', 'right'))
        return [self.capture(feet[i % 3], noise, name=str(i)) for i in range(count)]


def total_com(regressor, theta, q):
    """Return the total centre of mass in the base, m."""
    return regressor.com_matrix(q) @ theta.ravel() / theta[:, 0].sum()


def com_error(true, estimator, theta, poses):
    """Root mean square of the total centre of mass's horizontal error over poses, m."""
    squares = []
    for q in poses:
        apart = (total_com(estimator.regressor, theta, q)
                 - total_com(estimator.regressor, true.theta, q))
        sole = true.model.state(q).pose_in_base(true.model.config.feet['left'].sole)
        squares.append(((sole.rotation.T @ apart)[:2] ** 2).sum())
    return np.sqrt(np.mean(squares))


def without_torques(captures):
    """Return the captures of a robot that measures no joint torques."""
    return [replace(c, torques=np.full_like(c.torques, np.nan)) for c in captures]


def perfect_instruments(model):
    """Return the errors of perfect instruments."""
    return InstrumentCalibration().errors(
        model.joint_names, tuple(model.config.wrench_sensors))


def instrument_errors(found, model):
    """Return the estimated errors of the instruments."""
    return found.instruments.errors(model.joint_names, tuple(model.config.wrench_sensors))


def measure(capture, errors, when):
    """Return what instruments with these errors measure, by Rodrigues' formula and levers."""
    wrenches = []
    for i, wrench in enumerate(capture.wrenches):
        R = rodrigues(errors.turns[i])
        force = R.T @ wrench[:3]
        moment = R.T @ (wrench[3:] - np.cross(errors.shifts[i], wrench[:3]))
        own = np.concatenate((force, moment))
        wrenches.append(own + errors.wrench_matrices[i] @ own + errors.wrench_biases[i]
                        + when * errors.wrench_drifts[i])
    return replace(
        capture, positions=capture.positions + errors.positions, wrenches=np.array(wrenches),
        up=rodrigues(errors.tilts[capture.up_frame]) @ capture.up,
        torques=(capture.torques * (1.0 + errors.torque_gains) + errors.torque_offsets
                 + errors.friction * capture.approach))


def rodrigues(vector):
    """Return the rotation matrix of a rotation vector."""
    angle = np.linalg.norm(vector)
    x, y, z = vector / angle if angle else vector
    K = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
