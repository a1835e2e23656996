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
Virtual foot sensors: the wrench on each sole with its covariance, without force sensors.

The force of the environment on the root and on the joints of the legs
(:class:`~biped_com_ros.core.wrench.dynamics.ExternalForces`) is explained by the wrenches f of all
feet at once, by weighted least squares with a prior:

    min |x - J^T f|^2_S + |f|^2_P

The rows of the root give what the feet carry together (centroidal dynamics), those of a leg what
its foot carries. What they cannot determine, as the internal forces of two feet, is left to the
prior: a foot that carries much may transmit much, and its CoP is inside the sole, on the lowest
edge if the sole is tilted.

Where joint torques alone give clearly less than what the root needs for 0.3 s, something else
carries the robot, as a hoist does: the rows of the root then count for nothing. On recorded walks
it is so for 0.11 s at most, with 2 N m of friction that the model does not know.

S is learned while the robot moves (expectation maximization): noise and wrong masses appear as
residuals, above all in swing, and widen the covariance. Gains, friction and offsets of the drives
are learned by :mod:`biped_com_ros.core.wrench.drive_errors`.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import set_twist_adjoint
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import gravity_setting, Settings
from biped_com_ros.core.wrench.drive_errors import drive_errors
from biped_com_ros.core.wrench.dynamics import EstimateErrors, ExternalForces, OUTLIER
import eigenpy  # comes with Pinocchio; its decomposition takes a fifth of NumPy's inverse
import numpy as np

#: Variance of rows that are not measured, (N m)^2.
_UNKNOWN = 1e12
#: How many instants go by between two updates of the learned variances.
_LEARNING_STEP = 4
#: How often the first instant is solved, whose prior does not know yet what each foot carries.
_FIRST_ROUNDS = 4
#: Share of the weight from which on a foot carries, and what remains of its prior's information
#: about drives then.
_CARRIES, _LASTING = 0.1, 1e-4
#: Time for which errors of the rows last, s: instants within it are not new evidence on drives.
_CORRELATION_TIME = 0.025
#: Share of the force on the root that the legs carry at most once something else carries the
#: robot, and so many standard deviations less than all of it. Nothing does from halfway between
#: the smallest share meanwhile and all of it, or from the second share. For how long, s.
_ELSEWHERE, _CLEARLY, _ON_FEET, _SURE_TIME = 0.75, 3.0, 0.8, 0.3
#: Deviation of the wrench of what else carries the robot: share of the weight, and its lever as a
#: share of the height of the CoM.
_ANY_FORCE, _ANY_LEVER = 1.0, 0.7
#: Prior of CoP and torsion: shares of the half sole, flat and on an edge, and m.
_FLAT, _EDGE, _TORSION = 0.7, 0.25, 0.03
#: How far towards the edge the centre of the prior moves, as a share of the half sole.
_TO_EDGE = 0.9
#: Time constant of the variance of noise, s.
_NOISE_TIME = 0.1


#: Least standard deviation of the total force, as a share of body weight.
_FORCE_DEVIATION = 0.01
#: Standard deviation of the total torque, as a lever of body weight, m.
_TORQUE_DEVIATION = 0.003
#: Standard deviation of a joint's torque, as such a lever, m.
_EFFORT_DEVIATION = 0.001
#: Deviation of the friction of a joint's torque from the model's, as a share of its effort limit.
_FRICTION = 0.05
#: Deviation of the offset of a joint's torque from the model's, as such a share.
_OFFSET = 0.01
#: Friction coefficient of the ground: prior of horizontal forces over vertical ones.
_FRICTION_COEFFICIENT = 0.7
#: Share of body weight that every foot may carry by the prior.
_LEAST_LOAD = 0.02
#: Tilt of a sole from level from which it is expected to stand on its edge, rad.
_EDGE_TILT = math.radians(4.0)


@dataclass(frozen=True, kw_only=True)
class VirtualWrenchSettings(Settings):
    """How foot wrenches are estimated from joint torques."""

    #: Cut-off frequency of the low-pass of virtual wrenches (gain of the momentum observer over
    #: 2 pi), Hz.
    cutoff: float = 65.0
    #: Time constant of the learned deviations, s.
    learning_time: float = 1.0
    gravity: float = gravity_setting()


class VirtualFootWrenches:
    """
    Estimates the wrench of the ground on each foot from joint torques, joint motion and an IMU.

    Parameters
    ----------
    model
        The robot.
    settings
        How.

    Attributes
    ----------
    wrenches
        Of the environment on the robot at and along the soles, (F, 6), N and N m.
    covariance
        Of all of them, foot by foot, (6 F, 6 F); its blocks beside the diagonal are what is
        common to two feet.
    forces
        The measured external forces.
    drives
        Errors of the torques of the legs.
    is_carried
        Whether something other than the feet and `set_others` carries the robot.
    share
        What the feet carry by joint torques alone, over the force on the root.
    carried_ns, hoists
        Stamp at which `is_carried` began last, :data:`NEVER_NS` before; how often it did.

    Raises
    ------
    ConfigurationError
        If the robot has no IMU at its root, or no motor moves a leg.

    """

    def __init__(self, model: RobotModel, settings: VirtualWrenchSettings) -> None:
        self._model, self._settings = model, settings
        self.forces = ExternalForces(model, settings.cutoff)
        if not self.forces.measured[6:].any():
            raise ConfigurationError(
                f"no joint of the legs of '{model.config.name}' has a motor, so their torques "
                'give no foot wrenches: use real sensors')
        self._weight, self._feet = model.mass * settings.gravity, len(model.soles.names)
        self.drives = drive_errors(
            model, self.forces, (_FRICTION, _OFFSET), settings.cutoff)
        self._prepare_soles()
        self._prepare_variances()
        self._decomposition = eigenpy.LLT(6 * self._feet)
        self._identity = np.eye(6 * self._feet)
        self.wrenches = np.zeros((self._feet, 6))
        self.covariance = np.zeros((6 * self._feet, 6 * self._feet))
        self._on_root, self._root_variances = np.zeros(6), np.zeros(6)
        self._any_root = (self._weight * np.repeat((
            _ANY_FORCE, _ANY_LEVER * model.com_height), 3)) ** 2
        self._last_ns, self._count = NEVER_NS, 0
        self.carried_ns, self.hoists = NEVER_NS, 0
        self.reset()

    def reset(self) -> None:
        """Begin anew after a gap; what has been learned stays."""
        self.forces.reset()
        self.drives.reset()
        self._loads = [self._weight / self._feet] * self._feet
        self._errors.begins = True
        self.is_carried, self._is_doubtful = False, False
        self._contradicted, self._least_share, self.share = 0.0, 1.0, 1.0
        self._learnt, self._learnt_time = [self.drives.learnt()] * 2, 0.0

    def set_others(self, on_root: Array, variances: Array) -> None:
        """
        Set what other contacts, such as hands, contribute at the next instant.

        Parameters
        ----------
        on_root, variances
            Their wrench at the origin of the root and along its axes, and its variances, (6,)
            each, N and N m.

        """
        self._on_root[:], self._root_variances[:] = on_root, variances

    def update(self, stamp_ns: int, state: RobotState, efforts: Array, angular_velocity: Array,
               acceleration: Array, R_world_imu: Array) -> bool:
        """
        Estimate the wrenches of one instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        state
            The robot in its base, with joint velocities.
        efforts
            Torques of the motors, (n,), N m or N, in the order of ``model.joint_names``.
        angular_velocity, acceleration
            Of the IMU in its frame, (3,), rad/s and proper m/s^2.
        R_world_imu
            Its orientation, (3, 3); its heading does not matter.

        Returns
        -------
        bool
            Whether there is an estimate: not at the first instant after a gap.

        """
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        if not 0 < step_ns < LONGEST_STEP_NS:
            self.reset()
        dt = 1e-9 * step_ns
        if not self.forces.update(dt, state, efforts, angular_velocity, acceleration):
            return False
        self.drives.update(dt, state.v[self.forces.rows[6:]], self.forces.efforts)
        rows, ups = self._place_soles(state, R_world_imu)
        self._set_columns()
        for _ in range(_FIRST_ROUNDS if self._errors.begins else 1):
            lag, difference = self._solve(rows, self._prior(ups, self._loads))
        self._count += 1
        if self._count % _LEARNING_STEP == 0:
            self._look_for_a_hoist(rows, ups, _LEARNING_STEP * dt)
            if not self.is_carried and not self._is_doubtful:
                self._learn(rows, dt)
        self.covariance = self._posterior.copy()
        self._errors.add_to(self.covariance, lag, difference, dt, difference * difference,
                            1e-9 * self._weight ** 2)
        self._errors.begins = False
        return True

    # -- set-up

    def _prepare_soles(self) -> None:
        model, rows = self._model, self.forces.rows
        corners = [np.array(foot.polygon) for foot in model.config.feet.values()]
        self._centres = np.array([(c.max(0) + c.min(0)) / 2 for c in corners])
        self._halves = np.array([(c.max(0) - c.min(0)) / 2 for c in corners])
        self._per_tilt = 1.0 / math.sin(_EDGE_TILT)
        self._moves = self.forces.moves(model.soles)
        self._errors = EstimateErrors(len(rows), 6 * self._feet, _NOISE_TIME)
        self._information = np.zeros((6 * self._feet, 6 * self._feet))
        self._adjoints = np.tile(np.eye(6), (self._feet, 1, 1))
        lateral = _FRICTION_COEFFICIENT ** -2.0
        self._precisions = np.tile(
            (lateral, lateral, 1.0, 0.0, 0.0, _TORSION ** -2.0), (self._feet, 1))
        self._twists_to_soles = np.zeros((self._feet, 6, 6))

    def _prepare_variances(self) -> None:
        count = len(self.forces.rows)
        shares = np.full(count, _EFFORT_DEVIATION)
        shares[:3], shares[3:6] = _FORCE_DEVIATION, _TORQUE_DEVIATION
        self._least = (self._weight * shares) ** 2
        self._learns = self.forces.measured
        #: Noise of joints is unknown at first; the rows of the root depend on the model only.
        first = np.where(np.arange(count) < 6, self._least, 9.0 * self._least)
        self._variances = np.where(self._learns, first, _UNKNOWN)
        #: With that of joints which may stick.
        self._all_variances = self._variances.copy()

    # -- every instant

    def _place_soles(self, state: RobotState, R_world_imu: Array) -> tuple[Array, Array]:
        """Return the Jacobian of the soles' twists, transposed, and the soles in the world."""
        placements = state.placements_in_base(self._model.stance_frames)
        count = self._feet
        self.forces.place(state.q)
        jacobians = self.forces.jacobians(self._moves)
        axes = placements[:count, :3]
        set_twist_adjoint(self._twists_to_soles, placements[:count])
        rows = np.matmul(self._twists_to_soles, jacobians).reshape(6 * count, -1)
        R_world_base = R_world_imu.dot(placements[-1, :3])
        return rows, axes.dot(R_world_base[2])

    def _prior(self, ups: Array, loads: list[float]) -> Array:
        """
        Return the information of the prior, (6 F, 6 F).

        Parameters
        ----------
        ups
            Vertical axis of the world in each sole, (F, 3).
        loads
            Deviation of the vertical force on each foot, N.

        """
        towards = np.clip(-self._per_tilt * ups[:, :2], -1.0, 1.0)
        points = self._centres + _TO_EDGE * towards * self._halves
        x_reach, y_reach = (self._halves * np.maximum(_FLAT * (1.0 - np.abs(towards)), _EDGE)).T
        # Independent forces, and moments m - r x f about the point where the CoP is expected.
        adjoints, precisions = self._adjoints, self._precisions
        adjoints[:, 5, 0], adjoints[:, 5, 1] = points[:, 1], -points[:, 0]
        adjoints[:, 3, 2], adjoints[:, 4, 2] = -points[:, 1], points[:, 0]
        precisions[:, 3], precisions[:, 4] = y_reach ** -2.0, x_reach ** -2.0
        weights = precisions / np.square(loads)[:, np.newaxis]
        feet = np.arange(self._feet)
        blocks = self._information.reshape(self._feet, 6, self._feet, 6)
        blocks[feet, :, feet] = np.matmul(
            adjoints.transpose(0, 2, 1), weights[:, :, np.newaxis] * adjoints)
        return self._information

    def _set_columns(self) -> None:
        """Arrange forces, how late the low-pass makes them, and their change of one instant."""
        value = self.forces.value.copy()
        value[6:] += self.drives.torques
        value[:6] -= self._on_root
        np.add(self._variances[6:], self.drives.sticking, out=self._all_variances[6:])
        np.add(self._variances[:6], self._root_variances, out=self._all_variances[:6])
        if self.is_carried:  # friction that held the robot before may hold the legs now
            self._all_variances[:6] += self._any_root
            self._all_variances[6:] += self.drives.unlearnt_variance
        self._errors.set_columns(self.forces, value)

    def _solve(self, rows: Array, prior: Array) -> tuple[Array, Array]:
        """
        Find the wrenches, their covariance without delay and noise, and the next prior.

        Returns
        -------
        tuple of numpy.ndarray
            How much the low-pass delays the wrenches, and how much they change from instant to
            instant with the gain of now, (6 F,) each.

        """
        weighted = rows / self._all_variances
        self._decomposition.compute(weighted.dot(rows.T) + prior)
        self._posterior: Array = self._decomposition.solve(self._identity)
        found, lag, difference = self._posterior.dot(weighted.dot(self._errors.columns)).T
        self.wrenches = found.reshape(-1, 6)
        least = _LEAST_LOAD * self._weight
        self._loads = [max(abs(force), least) for force in found[2::6].tolist()]
        return lag, difference

    def _look_for_a_hoist(self, rows: Array, ups: Array, step: float) -> None:
        """
        Compare what the legs carry by their torques alone with the force on the root.

        What the drives learnt within the time of the decision does not count: they would explain
        a hoist, too.
        """
        self._learnt_time += step
        if self._learnt_time > _SURE_TIME and not self._is_doubtful and not self.is_carried:
            self._learnt, self._learnt_time = [self._learnt[1], self.drives.learnt()], 0.0
        forces = self._errors.columns[:, 0].copy()
        forces[6:] += self.drives.torques_by(self._learnt[0][0]) - self.drives.torques
        variances = np.concatenate((
            self._variances[:6] + self._root_variances + self._any_root,
            self._variances[6:] + self.drives.sticking))
        weighted = rows / variances
        prior = self._prior(ups, [self._weight / self._feet] * self._feet)
        covariance = np.linalg.inv(weighted.dot(rows.T) + prior)
        found = covariance.dot(weighted.dot(forces))
        total, needed = float(found[2::6].sum()), float(np.linalg.norm(forces[:3]))
        deviation = math.sqrt(covariance[2::6, 2::6].sum())
        self.share = share = total / max(needed, _LEAST_LOAD * self._weight)
        self._is_doubtful = share < _ELSEWHERE and needed - total > _CLEARLY * deviation
        self._least_share = min(share, self._least_share) if self.is_carried else 1.0
        contradicts = self._is_doubtful
        if self.is_carried:
            contradicts = share > min(0.5 * (1.0 + self._least_share), _ON_FEET)
        self._contradicted = self._contradicted + step if contradicts else 0.0
        if self._contradicted > _SURE_TIME:
            self.is_carried, self._contradicted = not self.is_carried, 0.0
            self.drives.restore(self._learnt[0])
            if self.is_carried:
                self.carried_ns, self.hoists = self._last_ns, self.hoists + 1

    def _learn(self, rows: Array, dt: float) -> None:
        """Update the drives, and the variances of the rows by expectation, given the wrenches."""
        step = _LEARNING_STEP * dt
        residual = self._errors.columns[:, 0] - self.wrenches.reshape(-1).dot(rows)
        self._learn_drives(rows, step)
        squares = np.minimum(residual * residual, OUTLIER ** 2 * self._variances)
        expected = squares + (self._posterior.dot(rows) * rows).sum(axis=0)
        expected[6:] -= self.drives.sticking
        expected[:6] -= self._root_variances
        share = min(1.0, step / self._settings.learning_time)
        learned = np.maximum(self._variances + share * (expected - self._variances), self._least)
        np.copyto(self._variances, learned, where=self._learns)

    def _learn_drives(self, rows: Array, step: float) -> None:
        variances = self._all_variances
        weighted = rows / variances
        # What a foot carries lasts, so at each instant its prior is no new evidence on gains and
        # offsets; that nothing loads a foot in the air is.
        loads = np.array(self._loads) > _CARRIES * self._weight
        prior = self._information * np.repeat(np.where(loads, _LASTING, 1.0), 6)
        # The inverse of the rows' covariance, in which the wrenches are unknowns.
        unknown = np.linalg.inv(weighted.dot(rows.T) + prior)
        information = -weighted.T.dot(unknown).dot(weighted)
        information.flat[::len(variances) + 1] += 1.0 / variances
        residual = information.dot(self._errors.columns[:, 0])
        share = min(1.0, step / _CORRELATION_TIME)
        self.drives.learn(share * information[6:, 6:], share * residual[6:], step)
