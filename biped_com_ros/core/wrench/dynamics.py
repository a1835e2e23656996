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
The generalized force of the environment, from joint torques, joint motion and an IMU.

In the frame of the root link, with gravity zero and the *proper* acceleration as that of the
root, the equations of motion need neither attitude nor velocity of the robot:

    RNEA(q, (0, omega, dq), (a, domega, ddq)) - (0, tau) = sum_k J_k^T f_k

Accelerations of joints and the angular one are differences of one step. With a first-order
low-pass of cut-off f after them, the result is that of a generalized momentum observer (De Luca et
al. 2006) with gain 2 pi f.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import math

from biped_com_ros.core.geometry.pose import Array, cross, IndexArray
from biped_com_ros.core.model.config import DrivesConfig
from biped_com_ros.core.model.efforts import effort_scales
from biped_com_ros.core.model.frames import FrameSet, ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
import numpy as np
import pinocchio as pin

#: Speed above which Coulomb friction acts almost fully, rad/s or m/s.
_BREAKAWAY_SPEED = 0.02
#: Share of the variance of successive differences that is noise of the low-passed estimate: about
#: 0.4 if the velocities are noisy, 0.9 if the efforts are.
_NOISE_SHARE = 0.6
OUTLIER = 3.0
"""Largest error from which a variance is learnt, in standard deviations: impacts are not noise."""


class ExternalForces:
    """
    Measures the generalized force of the environment on the root and on the legs, or the arms.

    Parameters
    ----------
    model
        The robot, which has an IMU.
    cutoff
        Cut-off of the low-pass, Hz; not needed where only :attr:`raw` is used.
    ends
        Frames at the ends of the limbs; default: the soles.

    Attributes
    ----------
    rows
        Indices into Pinocchio's v of the m rows: the six of the root, then the measured joints
        that move the limbs. The force of a row is that on its joint and on those that follow it.
    names
        Names of these joints.
    to_rows
        Velocities of Pinocchio's v per velocity of each row, transposed, (m, nv).
    measured
        Whether each of them is known from measurements, (m,): not where a joint is passive.
    required
        What the motion of the model requires, without the motors' torques, (m,), N and N m.
    raw, value, delayed
        The force of the last step, (m,), N and N m, in the axes of the root: as computed, after
        the low-pass, and after the same low-pass once more.
    efforts
        Torques of the motors of the limbs' joints at the last step, (m - 6,), N m or N.
    rate
        Pinocchio's acceleration, whose first six numbers are the proper acceleration of the root's
        origin and its angular acceleration, all along its axes.

    Raises
    ------
    ConfigurationError
        If there is no IMU.

    """

    def __init__(self, model: RobotModel, cutoff: float = 0.0,
                 ends: FrameSet | None = None) -> None:
        self._model, self._cutoff, self._ends = model, cutoff, ends or model.soles
        self._dynamics = pin.Model(model.pin_model)
        self._dynamics.gravity = pin.Motion.Zero()
        self._data = pin.Data(self._dynamics)
        self._imu = _ImuInRoot(model)
        self._set_rows()
        self._set_drives(model.config.drives)
        self.raw, self.value, self.delayed, self.required = (
            np.zeros(len(self.rows)) for _ in range(4))
        self.rate = np.zeros(self._dynamics.nv)
        self.efforts = np.zeros(len(self.names))
        self._v, self._v_before = np.zeros(self._dynamics.nv), np.zeros(self._dynamics.nv)
        self._q = pin.neutral(self._dynamics)
        self.reset()

    def reset(self) -> None:
        """Drop what came before: the next step only begins."""
        self._steps = 0
        self._imu.reset()

    def update(self, dt: float, state: RobotState, efforts: Array, angular_velocity: Array,
               acceleration: Array, known: Array | None = None) -> bool:
        """
        Take one instant.

        Parameters
        ----------
        dt
            Time since the one before, s.
        state
            Of the robot in its base, with velocities.
        efforts
            Torques of the motors, (n,), in the order of ``model.joint_names``, N m or N.
        angular_velocity, acceleration
            Of the IMU in its frame, (3,), rad/s and proper m/s^2.
        known
            What is known of the force, (m,), N and N m; subtracted before the low-pass.

        Returns
        -------
        bool
            Whether :attr:`value` is there: from the second instant on.

        """
        v, before = self._v, self._v_before
        before[:] = v
        v[:] = state.v
        imu = self._imu.update(state, dt)
        v[3:6] = omega = imu.rotation.dot(angular_velocity) - imu.angular_velocity
        self._steps += 1
        if self._steps == 1:
            return False
        rate = (v - before) / dt
        rate[:3] = imu.rotation.dot(acceleration) - imu.additional_acceleration(omega, rate[3:6])
        force = pin.rnea(self._dynamics, self._data, state.q, v, rate)
        self.to_rows.dot(force, out=self.raw)
        self.required[:] = self.raw
        self.rate, self._q = rate, state.q
        self._add_drives(v, rate, efforts)
        if known is not None:
            self.raw -= known
        self._filter(dt)
        return True

    def place(self, q: Array) -> None:
        """
        Place the joints, for :meth:`jacobians` and :meth:`of_added_body` of this instant.

        Parameters
        ----------
        q
            Pinocchio's configuration, (nq,), with the base frame at the origin.

        """
        pin.computeJointJacobians(self._dynamics, self._data, q)

    def jacobians(self, moves: Array) -> Array:
        """
        Return the Jacobians of frames, about the origin of the base, (frames, 6, m).

        Their columns are the twists, linear first, along the axes of the base, that the rows'
        velocities give to the frames.

        Parameters
        ----------
        moves
            Of the frames, see :meth:`moves`.

        """
        found: Array = self._data.J.dot(moves).transpose(1, 0, 2)
        return found

    def of_added_body(self, joint: int) -> tuple[Array, Array]:
        """
        Return what a body that is fixed to a joint adds, by its mass and first moment.

        Call :meth:`place` before.

        Parameters
        ----------
        joint
            Pinocchio's index.

        Returns
        -------
        tuple of numpy.ndarray
            Columns of mass, kg, and first moment in the joint's frame, kg m: its wrench on the
            joint at and along the axes of the joint, (6, 4), and what it adds to :attr:`raw`,
            (m, 4).

        """
        data = self._data
        wrench = -pin.bodyRegressor(data.v[joint], data.a_gf[joint])[:, :4]
        J = pin.getJointJacobian(self._dynamics, data, joint, pin.ReferenceFrame.LOCAL)
        return wrench, self.to_rows.dot(J.T).dot(wrench)

    def moves(self, frames: FrameSet) -> Array:
        """
        Return the velocities of the joints below frames per velocity of each row.

        Parameters
        ----------
        frames
            Of links.

        Returns
        -------
        numpy.ndarray
            Shape (frames, nv, m); zero for joints that do not move the frame.

        """
        found = np.zeros((len(frames.names), *self.to_rows.T.shape))
        for moves, joint in zip(found, frames.joints.tolist()):
            below = [*range(6), *(i + 4 for i in self._model.pin_model.supports[joint]
                                  if i > ROOT)]
            moves[below] = self.to_rows.T[below]
        return found

    @property
    def effort_scales(self) -> Array:
        """Return what shares of the torques of the limbs refer to, (m - 6,), N m or N."""
        return effort_scales(self._model)[self._model.joint_index(self.names)]

    def of_masses(self) -> Array:
        """
        Return what the bodies of all joints add to :attr:`raw`, by their masses and first moments.

        Returns
        -------
        numpy.ndarray
            Columns of mass, kg, and first moment in the joint's frame, kg m, of each of
            Pinocchio's joints but the first, (m, joints - 1, 4).

        """
        all_rows = pin.computeJointTorqueRegressor(
            self._dynamics, self._data, self._q, self._v, self.rate)
        of_bodies: Array = self.to_rows.dot(all_rows).reshape(len(self.rows), -1, 10)
        return of_bodies[:, :, :4]

    def _add_drives(self, v: Array, rate: Array, efforts: Array) -> None:
        """Add what the drives' inertia and friction take, subtract the torques of the motors."""
        limbs, rows = self.raw[6:], self.rows[6:]
        self.efforts = self._efforts_to_rows.dot(efforts)
        limbs -= self.efforts
        if self._has_drives:
            speed = v[rows]
            limbs += self._inertia * rate[rows] + self._viscous * speed
            limbs += self._coulomb * np.tanh(speed / _BREAKAWAY_SPEED)

    def _filter(self, dt: float) -> None:
        if self._steps == 2:
            self.value[:] = self.delayed[:] = self.raw
        share = 1.0 - math.exp(-2.0 * math.pi * self._cutoff * dt)
        self.value += share * (self.raw - self.value)
        self.delayed += share * (self.value - self.delayed)

    def _set_rows(self) -> None:
        model, pin_model = self._model, self._model.pin_model
        supports = {int(i) for joint in self._ends.joints for i in pin_model.supports[int(joint)]}
        coupling = model.coupling
        limbs = [i - 2 for i in sorted(supports) if i > ROOT]
        own = np.flatnonzero(coupling[limbs].any(axis=0))
        self.names = [model.joint_names[i] for i in own]
        self.rows: IndexArray = np.array([*range(6), *(
            pin_model.joints[pin_model.getJointId(name)].idx_v for name in self.names)], np.intp)
        self.to_rows: Array = np.zeros((len(self.rows), pin_model.nv))
        self.to_rows[:6, :6], self.to_rows[6:, 6:] = np.eye(6), coupling.T[own]
        is_actuated = np.isin(self.names, model.actuated_joint_names)
        self.measured = np.concatenate((np.ones(6, dtype=bool), is_actuated))
        self._efforts_to_rows = np.zeros((len(own), len(model.joint_names)))
        self._efforts_to_rows[np.arange(len(own)), own] = is_actuated

    def _set_drives(self, drives: DrivesConfig) -> None:
        groups = self._model.config.groups
        self._inertia, self._coulomb, self._viscous = (
            by_joint(values, groups, self.names)
            for values in (drives.rotor_inertia, drives.friction, drives.damping))
        self._has_drives = any(
            values.any() for values in (self._inertia, self._coulomb, self._viscous))


class EstimateErrors:
    """
    Errors that the low-pass leaves in what is estimated from the rows: its delay, and noise.

    Parameters
    ----------
    rows, size
        Number of rows and of estimated numbers.
    time
        Time constant of the variance of noise, s.

    Attributes
    ----------
    columns
        Forces of now, by how much the low-pass delays them, and by how much they have changed
        since the last instant, (m, 3).
    begins
        Whether nothing came before; the caller sets it.

    """

    def __init__(self, rows: int, size: int, time: float) -> None:
        self._time, self.columns, self._noise = time, np.zeros((rows, 3)), np.zeros(size)
        self.begins = True

    def set_columns(self, forces: ExternalForces, value: Array) -> None:
        """Arrange what :attr:`columns` says; `value` are the forces of now, (m,)."""
        columns = self.columns
        np.subtract(value, value if self.begins else columns[:, 0], columns[:, 2])
        np.subtract(forces.value, forces.delayed, columns[:, 1])
        columns[:, 0] = value

    def add_to(self, covariance: Array, lag: Array, difference: Array, dt: float, first: Array,
               least: Array | float) -> None:
        """
        Add the covariance of delay and noise.

        Parameters
        ----------
        covariance
            Of the estimate without these, (n, n).
        lag, difference
            What the second and third of :attr:`columns` give, (n,).
        dt
            Time since the last instant, s.
        first
            Variance of noise at the first instant, (n,).
        least
            Of a change that is limited, beside the noise so far.

        """
        if self.begins:
            self._noise[:] = first
        else:
            limit = OUTLIER ** 2 * self._noise + least
            self._noise += min(1.0, dt / self._time) * (
                np.minimum(difference * difference, limit) - self._noise)
        # Outer product: the low-pass delays all of the estimate together.
        covariance += np.outer(lag, lag)
        covariance.flat[::len(lag) + 1] += _NOISE_SHARE * self._noise


class _ImuInRoot:
    """
    Pose and motion of the IMU relative to the root link, along the axes of the root.

    Attributes
    ----------
    rotation
        ``R_root_imu``, (3, 3).
    angular_velocity
        Of the IMU's link relative to the root, (3,), rad/s.

    """

    def __init__(self, model: RobotModel) -> None:
        self._stance, link = model.stance_frames, model.config.imu.frame
        self._is_fixed = bool(model.frames((link,)).joints[0] == ROOT)
        root = model.frames(model.frame_names[:1])
        state = model.state(np.zeros(len(model.joint_names)))
        self._root = state.placements_in_base(root)[0]
        self._velocity, self._relative = np.zeros(3), np.zeros(3)
        self.angular_velocity = np.zeros(3)
        self._place(state)
        self.reset()

    def reset(self) -> None:
        """Drop what came before."""
        self._known = False

    def update(self, state: RobotState, dt: float) -> _ImuInRoot:
        """Take the next instant; `dt` after the last one, s."""
        if not self._is_fixed:
            placements = self._place(state)
            R_root_base = self._root[:3]
            linear, angular = state.twists_in_base(self._stance, placements)[-1]
            velocity = R_root_base.dot(linear)
            self.angular_velocity = R_root_base.dot(angular)
            self._relative = (velocity - self._velocity) / dt if self._known else np.zeros(3)
            self._velocity, self._known = velocity, True
        return self

    def additional_acceleration(self, omega: Array, angular: Array) -> Array:
        """
        Return by how much the IMU accelerates more than the root's origin, (3,), m/s^2.

        Parameters
        ----------
        omega, angular
            Angular velocity and acceleration of the root, (3,), rad/s and rad/s^2.

        """
        added = cross(angular, self._lever) + cross(omega, cross(omega, self._lever))
        if not self._is_fixed:
            added += 2.0 * cross(omega, self._velocity) + self._relative
        return added

    def _place(self, state: RobotState) -> Array:
        placements = state.placements_in_base(self._stance)
        R_root_base = self._root[:3]
        self.rotation = R_root_base.dot(placements[-1, :3].T)
        self._lever = R_root_base.dot(placements[-1, 3] - self._root[3])
        return placements


def by_joint(values: Mapping[str, float], groups: Mapping[str, Sequence[str]],
             joints: Sequence[str]) -> Array:
    """Return values, given by joint or group of joints, for `joints`; 0 where none is given."""
    of_group = {joint: values[group] for group, members in groups.items() if group in values
                for joint in members}
    return np.array([values.get(joint, of_group.get(joint, 0.0)) for joint in joints])
