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
Errors of the force of the environment as joint torques show it: of drives, learnt, and others.

Torques are measured at motors or by currents. Beside what the model needs they contain

    gain * torque + friction * sign(velocity) + offset

whose three numbers are constants of the joint. The force of the environment on a joint is what its
torque leaves unexplained, so they are taken for a force. They are unknowns with a prior, found by
recursive least squares with exponential forgetting. The wrenches of feet and hands are unknowns
beside them (they are marginalized, with their prior): what could be a wrench as well carries no
information. Until they are known their variance is part of that of the joint's force.

A joint that hardly moves may stick anywhere between both signs of friction. That is a variance.

:class:`RowErrors` are those beside the errors of drives. Errors of the masses and centres of mass
of links are in many rows at once, and follow posture and acceleration. What sensors measure at
feet and hands is in the rows of the root. A joint near its limit may rest on its stop, whose
torque is not that of its motor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.model.robot import position_limits, RobotModel, RobotState
from biped_com_ros.core.settings import gravity_setting, Settings
from biped_com_ros.core.wrench.dynamics import by_joint, ExternalForces
import numpy as np

#: Standard deviation of gains a priori: torque constants, gears, temperature.
_GAIN = 0.1
#: Speed at which three quarters of friction act by the model, rad/s or m/s: noise of velocities is
#: small beside it.
_SPEED = 0.05
#: Time constant of forgetting, s: temperature and load change gears.
_MEMORY = 20.0


class DriveErrors:
    """
    Errors of the torques of n joints.

    Parameters
    ----------
    deviations
        Of friction and offset a priori, (n, 2), N m or N.
    cutoff
        Of the low-pass that the forces have passed, Hz.
    learns
        Whether each joint's torque is measured, (n,).
    friction
        Of the model, (n,), N m or N: it may stick, too.

    Attributes
    ----------
    coefficients
        Gain, friction and offset of each joint beyond the model's, (n, 3).
    torques
        By how much the torques of now exceed the true ones, through the same low-pass, (n,).
    variance
        Of these, (n,).
    sticking
        What friction that is known contributes to it where joints may stick, (n,).

    """

    def __init__(self, deviations: Array, cutoff: float, learns: Array,
                 friction: Array | float = 0.0) -> None:
        self._cutoff, self._friction, count = cutoff, friction, len(learns)
        self._learns = learns.astype(float)[:, np.newaxis]
        priors = np.column_stack((np.full(count, _GAIN), deviations))
        self._prior = priors.reshape(-1) ** -2.0
        self._information = np.zeros((3 * count, 3 * count))
        self.coefficients = np.zeros((count, 3))
        self._covariances = np.zeros((count, 3, 3))
        self._covariances[:, range(3), range(3)] = priors ** 2
        self._columns = np.ones((count, 3))
        self.torques, self.variance, self.sticking = np.zeros((3, count))
        self.reset()

    def reset(self) -> None:
        """Begin anew after a gap; what has been learnt stays."""
        self._begins = True

    def update(self, dt: float, velocities: Array, efforts: Array) -> None:
        """Take velocities and torques of the joints, (n,) each, a time after the last ones, s."""
        columns = self._columns
        share = 1.0 if self._begins else -math.expm1(-2.0 * math.pi * self._cutoff * dt)
        self._begins = False
        columns[:, 0] += share * (efforts - columns[:, 0])
        columns[:, 1] += share * (np.tanh(velocities / _SPEED) - columns[:, 1])
        self.torques[:] = self.torques_by(self.coefficients)
        np.einsum('ij,ijk,ik->i', columns, self._covariances, columns, out=self.variance)
        signs, friction = columns[:, 1], self._friction + self.coefficients[:, 1]
        still = 1.0 - signs * signs
        np.multiply(friction ** 2, still, out=self.sticking)
        self.variance += self.sticking + self._covariances[:, 1, 1] * still

    @property
    def unlearnt_variance(self) -> Array:
        """Variance of the torques where nothing learnt counts, and all may stick, (n,)."""
        squares = self._columns ** 2
        squares[:, 1] = 1.0
        variance: Array = (squares / self._prior.reshape(-1, 3)).sum(axis=1)
        return variance + np.square(self._friction)

    def torques_by(self, coefficients: Array) -> Array:
        """Return what `torques` would be with other coefficients (n, 3)."""
        torques: Array = (self._columns * coefficients).sum(axis=1)
        return torques

    def learnt(self) -> tuple[Array, Array, Array]:
        """Return what has been learnt, for `restore`; the coefficients first."""
        return self.coefficients.copy(), self._covariances.copy(), self._information.copy()

    def restore(self, learnt: tuple[Array, Array, Array]) -> None:
        """Return to what was learnt at an earlier time."""
        self.coefficients, self._covariances, self._information = (x.copy() for x in learnt)

    def learn(self, information: Array, residual: Array, step: float) -> None:
        """
        Take what the wrenches leave unexplained.

        Parameters
        ----------
        information
            Of an error of each joint's force, the wrenches being unknown, (n, n).
        residual
            What is left of the forces, with :attr:`torques` added, times the inverse of its
            covariance, (n,).
        step
            Time that it stands for, s.

        """
        columns, count = self._columns * self._learns, len(self._prior)
        keep = math.exp(-step / _MEMORY)
        self._information *= keep
        self._information += np.einsum(
            'ia,ij,jb->iajb', columns, information, columns).reshape(count, count)
        total = self._information.copy()
        total.flat[::count + 1] += self._prior
        covariance = np.linalg.inv(total)
        # Forgetting returns to the prior as slowly as it loses information.
        change = -(columns * residual[:, np.newaxis]).reshape(-1) - (
            (1.0 - keep) * self._prior * self.coefficients.reshape(-1))
        self.coefficients += covariance.dot(change).reshape(-1, 3)
        blocks = covariance.reshape(-1, 3, len(self.coefficients), 3)
        joints = np.arange(len(self.coefficients))
        self._covariances[:] = blocks[joints, :, joints]


def drive_errors(model: RobotModel, forces: ExternalForces, shares: tuple[float, float],
                 cutoff: float) -> DriveErrors:
    """
    Return the errors of the joints of the rows of measured forces.

    Parameters
    ----------
    model
        The robot.
    forces
        Have the rows.
    shares
        Deviations of friction and of offset, as shares of the effort limit.
    cutoff
        Of the low-pass of the forces, Hz.

    """
    friction = by_joint(model.config.drives.friction, model.config.groups, forces.names)
    deviations = np.outer(forces.effort_scales, shares)
    return DriveErrors(deviations, cutoff, forces.measured[6:], friction)


#: Distance from a joint's limit at which it may rest on its stop, rad or m, and the deviation of
#: the stop's torque, as a share of the effort limit.
_STOP_MARGIN, _OF_STOPS = 0.01, 1.0


#: Standard deviation of the centre of mass of each link along each axis, m.
_LINK_COM = 0.005
#: Standard deviation of the sum of the measured contacts, as a share of body weight: gains,
#: offsets and places of sensors, tilt of the IMU.
_CONTACT_FORCE = 0.02
#: Standard deviation of the moment of the measured contacts, as a lever of body weight, m.
_CONTACT_LEVER = 0.005


@dataclass(frozen=True, kw_only=True)
class RowErrorSettings(Settings):
    """How wrong model and measurements may be, as standard deviations."""

    #: Standard deviation of the mass of each link, as a share of it.
    link_mass: float = 0.08
    gravity: float = gravity_setting()


class RowErrors:
    """
    Covariance of the errors of :class:`ExternalForces`.

    Parameters
    ----------
    model
        The robot.
    external
        Has the rows.
    settings
        Deviations.

    Attributes
    ----------
    deviations
        Of the rows by measured contacts, (m,), N and N m.

    """

    def __init__(self, model: RobotModel, external: ExternalForces,
                 settings: RowErrorSettings) -> None:
        self._model, self._external = model, external
        names, weight = external.names, model.mass * settings.gravity
        self._scales = external.effort_scales
        drives, groups = model.config.drives, model.config.groups
        self.deviations = np.concatenate((
            [_CONTACT_FORCE * weight] * 3, [_CONTACT_LEVER * weight] * 3,
            np.zeros(len(names))))
        # Not all drives have the viscous friction of the URDF.
        of_urdf = np.square(external.to_rows).dot(np.array(model.pin_model.damping))[6:]
        self._damping = np.abs(of_urdf - by_joint(drives.damping, groups, names))
        self._positions, self._lower, self._upper = self._position_limits(names)
        self._mass_factors = _mass_factors(model, settings.link_mass, _LINK_COM)

    def covariance(self, state: RobotState, ahead: float) -> Array:
        """
        Return the covariance of the rows at the last instant of the forces.

        Parameters
        ----------
        state
            The robot at that instant.
        ahead
            Time for which the result will be used, s: joints may reach their stops in it.

        Returns
        -------
        numpy.ndarray
            Shape (m, m), N and N m.

        """
        of_links = np.matmul(self._external.of_masses().transpose(1, 0, 2), self._mass_factors)
        factor = of_links.transpose(1, 0, 2).reshape(len(self.deviations), -1)
        speeds = state.v[self._external.rows[6:]]
        positions, change = state.q[self._positions], ahead * speeds
        # What a stop transmits is not in the torque of the motor.
        may_rest = (positions + np.minimum(change, 0.0) < self._lower) | (
            positions + np.maximum(change, 0.0) > self._upper)
        variances = self.deviations ** 2
        variances[6:] += may_rest * (_OF_STOPS * self._scales) ** 2
        variances[6:] += (self._damping * speeds) ** 2
        covariance: Array = factor.dot(factor.T)
        covariance.flat[::len(variances) + 1] += variances
        return covariance

    def _position_limits(self, names: Sequence[str]) -> tuple[IndexArray, Array, Array]:
        """Return where the joints are in q, and their limits beside a margin."""
        model = self._model
        limits = dict(zip(model.joint_names, zip(*position_limits(model))))
        lower, upper = np.array(
            [limits.get(name, (-np.inf, np.inf)) for name in names]).reshape(-1, 2).T
        joints = [model.pin_model.joints[model.pin_model.getJointId(name)] for name in names]
        turns = [joint.nq > 1 for joint in joints]  # a continuous joint is a point on a circle
        lower[turns], upper[turns] = -np.inf, np.inf
        index = np.array([joint.idx_q for joint in joints], dtype=np.intp)
        return index, lower + _STOP_MARGIN, upper - _STOP_MARGIN


def _mass_factors(model: RobotModel, mass: float, com: float) -> Array:
    """
    Return factors of the covariances of mass and first moment of the body of each joint.

    Parameters
    ----------
    model
        The robot.
    mass, com
        Standard deviations of the mass of each link, as a share, and of its centre, m.

    Returns
    -------
    numpy.ndarray
        Of Pinocchio's joints but the first, (joints - 1, 4, 4), whose product with its transpose
        is the covariance; kg and kg m, in the frame of the joint.

    """
    covariances = np.zeros((model.pin_model.njoints - 1, 4, 4))
    links = model.frames(model.link_names)
    for joint, pose, its_mass, centre in zip(
            links.joints, links.poses_in_joint(), model.link_masses, model.link_coms_in_link):
        by_mass = np.array([1.0, *pose.apply(centre)])
        added = (mass * its_mass) ** 2 * np.outer(by_mass, by_mass)
        added[range(1, 4), range(1, 4)] += (com * its_mass) ** 2
        covariances[int(joint) - 1] += added
    values, vectors = np.linalg.eigh(covariances)
    factors: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis]
    return factors
