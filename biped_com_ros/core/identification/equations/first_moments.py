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
Measurements of a robot at rest as linear equations in the masses and first moments of its links.

Cut the robot anywhere: the part beyond the cut is at rest, so the wrench through the cut balances
its weight and its contacts. Three kinds of cuts give equations:

- none: contacts and the weight of the whole robot add up to zero (6 rows, base frame);
- at a joint: the motor's torque is the wrench through the cut, about the joint's axis (1 row);
- at a wrench sensor: the reading is the wrench through the cut (6 rows, sensor frame).

A standing foot's sensor is itself the contact: the part below it, usually the foot, drops out of
all equations above it (the paper's m2 is the mass that the sensor carries). The same sensor in the
air weighs the foot.

With ``g`` the gravity vector in the base, a link of mass m and first moment ``h = m c`` (in the
link's axes) at pose (R, p) has the weight wrench ``(m g, (m p + R h) x g)``: linear in (m, h).
Muscolo et al. 2017, equation (26), ``t_i m_w = sum s_iv m_iv``, needs these rotations to hold in a
robot whose links turn: ``sum m_v (p_v(q) + R_v s_v)``.

Parameters are always in the order m, h_x, h_y, h_z of each of ``model.link_names``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, BoolArray, IndexArray
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures.capture import Capture, check_capture, SensorNoise
from biped_com_ros.core.identification.equations.statics_kinematics import (
    RegressorLayout, StaticsKinematics, StaticsPoses, StaticsTopology)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

TYPICAL_NOISE = SensorNoise()
DEVIATION_ARM = 0.1
"""Moments of a sensor with a `deviation` may differ by that times this, m."""
CONTACT_ARM = 0.1
"""Heights of soles differ by how much these are tilted times this, m."""
STEP = 1e-6  # of the differences that propagate noise, rad


def parameters_of(model: RobotModel) -> Array:
    """Return the URDF's masses and first moments, shape (L, 4), kg and kg m."""
    masses = np.asarray(model.link_masses)[:, np.newaxis]
    return np.concatenate((masses, masses * model.link_coms_in_link), axis=1)


class InputSlices(NamedTuple):
    """
    Where each kind of measurement is among all that enter the equations of a capture.

    Attributes
    ----------
    positions, torques
        Of the joints, n each.
    up
        A rotation vector of the direction of gravity in its frame, 3.
    readings
        Of wrench sensors, six each.
    soles
        How soles stand (:mod:`soles`), three per foot.

    """

    positions: slice
    up: slice
    readings: slice
    soles: slice
    torques: slice

    @property
    def size(self) -> int:
        """Return the number of all of them."""
        return int(self.torques.stop)

    @staticmethod
    def of(model: RobotModel) -> InputSlices:
        """Return those of a robot."""
        n, config = len(model.joint_names), model.config
        ends = np.cumsum((n, 3, 6 * len(config.wrench_sensors), 3 * len(config.feet), n)).tolist()
        return InputSlices(*map(slice, (0, *ends[:-1]), ends))


@dataclass(frozen=True, kw_only=True)
class Equations:
    """
    Equations of one capture, ``A theta + b = noise``.

    Attributes
    ----------
    A
        Shape (rows, 4 L).
    b
        Shape (rows,).
    rows
        Which equations: 0-5 the whole, then joints in ``model.joint_names``, then six per sensor.
    J
        Derivatives of the residual by what was measured, (rows, inputs).
    J_ground
        Derivatives by the floor's tilt and the soles' placement, (rows, 2 + 3 feet).
    variances
        Of the noise of what was measured, (inputs,).
    inputs
        What the columns of J are.

    """

    A: Array
    b: Array
    rows: IndexArray
    J: Array
    J_ground: Array
    variances: Array
    inputs: InputSlices

    @property
    def covariance(self) -> Array:
        """Return the covariance of the residual's noise, (rows, rows)."""
        return np.asarray((self.J * self.variances) @ self.J.T)

    def residual(self, theta: Array) -> Array:
        """Return ``A theta + b``, shape (rows,), N, N m."""
        return self.A @ theta.ravel() + self.b


class StaticsRegressor:
    """
    Equations of a robot at rest.

    Parameters
    ----------
    model
        The robot; only its geometry is used.

    Attributes
    ----------
    is_prismatic
        Which of ``model.joint_names`` slide, shape (n,).
    inputs
        What is measured in a capture.

    """

    def __init__(self, model: RobotModel) -> None:
        self.model, self.inputs = model, InputSlices.of(model)
        self._kinematics = StaticsKinematics(model)
        self._topology = StaticsTopology(model, self._kinematics.joint_names)
        sensors = model.config.wrench_sensors.values()
        self._sensor_count = len(sensors)
        self._deviations = np.array([s.deviation for s in sensors]).reshape(-1, 1) * np.repeat(
            (1.0, DEVIATION_ARM), 3)
        # Torque at a measured joint is its own and its followers' as they are geared to it.
        self._gearing = model.coupling.T
        names = self._kinematics.joint_names
        self.is_prismatic = np.array(
            [self._kinematics.is_prismatic[names.index(name)] for name in model.joint_names])

    def com_matrix(self, positions: Array) -> Array:
        """
        Return C (3, 4 L) with ``C theta`` = mass times centre of mass in the base, kg m.

        The rows of a centre of mass that is known otherwise (the paper's bypass).
        """
        links = self._kinematics.links(positions)
        return np.concatenate((links[:, 3, :, np.newaxis], links[:, :3].transpose(0, 2, 1)),
                              axis=2).transpose(1, 0, 2).reshape(3, -1)

    def com_derivative(self, positions: Array, theta: Array) -> Array:
        """
        Return the derivative (3, 4 L) of the total centre of mass in the base by the parameters.

        Parameters
        ----------
        positions
            Shape (n,).
        theta
            Masses and first moments (L, 4) at which it is taken.

        """
        C, mass = self.com_matrix(positions), theta[:, 0].sum()
        # The total mass changes too, and is in the denominator.
        C[:, ::4] -= (C @ theta.ravel() / mass)[:, np.newaxis]
        return C / mass

    def torque_matrix(self, positions: Array, up: Array) -> Array:
        """
        Return T (n, 4 L) with ``T theta`` = joint torques that hold the links, N m.

        Parameters
        ----------
        positions
            Shape (n,).
        up
            Unit vector against gravity in the base, shape (3,).

        Notes
        -----
        Of the weight alone; contacts add ``-J^T f``.

        """
        n, none = len(self.model.joint_names), np.zeros(self._sensor_count, dtype=bool)
        poses = self._kinematics.poses(positions[np.newaxis], up, '')
        A = self._matrix(poses, self._topology.layout(none))
        return A[6:6 + n]

    def equations(self, capture: Capture, theta: Array,
                  noise: SensorNoise = TYPICAL_NOISE) -> Equations:
        """
        Return the equations of a capture.

        Parameters
        ----------
        capture
            What was measured.
        theta
            Parameters (L, 4) at which noise is propagated, as good as they are known.
        noise
            Of the sensors.

        Raises
        ------
        InputError
            If the capture cannot be used (:func:`captures.check_capture`).

        """
        check_capture(self.model, capture)
        return self.linearised(capture, theta, noise)

    def linearised(self, capture: Capture, theta: Array, noise: SensorNoise) -> Equations:
        """Return the same as `equations`, of a capture that needs no check: an estimated one."""
        here, layout, keep, readings, measured = self._rows_of(capture)
        A = self._matrix(here, layout)
        contacts = self._reading_matrix(here, layout)
        b = contacts @ readings.ravel() - measured
        n, inputs = len(self.model.joint_names), self.inputs
        J = np.zeros((len(A), inputs.size))
        J[:, inputs.positions], J[:, inputs.up] = self._noise_jacobians(
            capture, layout, readings, theta)
        J[:, inputs.readings] = contacts
        # By the measurement to which a row belongs.
        J[6:6 + n, inputs.torques] = -np.eye(n)
        J[6 + n:, inputs.readings] -= np.eye(len(A) - 6 - n)
        return Equations(
            A=A[keep], b=b[keep], rows=keep, J=J[keep], inputs=inputs,
            J_ground=np.zeros((len(keep), 2 + 3 * len(self.model.config.feet))),
            variances=self.variances(capture, noise))

    def residual(self, capture: Capture, theta: Array) -> tuple[IndexArray, Array]:
        """Return the rows that a capture gives and ``A theta + b``, without the derivatives."""
        here, layout, keep, readings, measured = self._rows_of(capture)
        predicted = self._predictions(here, layout, readings, theta)[0]
        return keep, (predicted - measured)[keep]

    def with_fitted_contacts(self, capture: Capture, theta: Array) -> Capture:
        """
        Return a capture whose readings of contacts are those that explain it best.

        Only sensors with a `deviation` are fitted, by least squares over the rows of the whole
        and of joint torques; see :mod:`virtual_contacts`. Without such a sensor below a standing
        foot the capture is returned as it is.
        """
        contact = self._topology.contact_sensors(capture)
        fitted = np.flatnonzero(contact & (self._deviations[:, 0] > 0.0))
        if not len(fitted):
            return capture
        here, layout, keep, readings, measured = self._rows_of(capture)
        readings[fitted] = 0.0
        contacts = self._reading_matrix(here, layout)
        columns = (6 * fitted[:, np.newaxis] + np.arange(6)).ravel()
        rest = (self._matrix(here, layout) @ theta.ravel() + contacts @ readings.ravel()
                - measured)[keep]
        wrenches = np.array(capture.wrenches)
        wrenches[fitted] = np.linalg.lstsq(
            contacts[keep][:, columns], -rest, rcond=None)[0].reshape(-1, 6)
        return replace(capture, wrenches=wrenches)

    def _rows_of(self, capture: Capture) -> tuple[
            StaticsPoses, RegressorLayout, IndexArray, Array, Array]:
        layout = self._topology.layout(self._topology.contact_sensors(capture))
        measured = np.concatenate((np.zeros(6), capture.torques, np.ravel(capture.wrenches)))
        known = np.isfinite(measured)
        keep = layout.rows[known[layout.rows]]
        readings = np.where(layout.contact[:, np.newaxis], capture.wrenches, 0.0)
        here = self._poses(capture)
        return here, layout, keep, readings, np.where(known, measured, 0.0)

    def readings(self, capture: Capture, contacts: Mapping[str, Array], theta: Array) -> Array:
        """
        Return the readings of all wrench sensors, (S, 6), given the ground's wrench on each foot.

        Parameters
        ----------
        capture
            Its positions, `up` and `in_contact` are used.
        contacts
            Wrench (6,) of each standing foot, about the base's origin and along its axes.
        theta
            Masses and first moments (L, 4).

        """
        config, L = self.model.config, len(self.model.link_names)
        k = self._poses(capture)
        through = self._topology.beyond_sensors[:, :L] @ self._weights(k, theta)[0]
        for foot, wrench in contacts.items():
            own = [list(config.wrench_sensors).index(n) for n in config.feet[foot].wrench_sensors]
            share = np.zeros(len(config.wrench_sensors))
            share[own] = 1.0 / max(len(own), 1)
            # A sensor further up carries what those below it carry.
            nested = np.minimum(self._topology.beyond_sensors[:, L:], 1.0)
            through += np.outer(nested @ share, wrench)
        return np.einsum('srk,sk->sr', self._kinematics.projections(k)[1][0], through)

    def torques(self, capture: Capture, readings: Array, theta: Array) -> Array:
        """Return joint torques, shape (n,), N m; NaN beyond contact sensors."""
        layout = self._topology.layout(self._topology.contact_sensors(capture))
        k = self._poses(capture)
        loads = np.where(layout.contact[:, np.newaxis], readings, 0.0)
        n = len(self.model.joint_names)
        torques = np.full(n, np.nan)
        rows = layout.rows[(layout.rows >= 6) & (layout.rows < 6 + n)]
        torques[rows - 6] = self._predictions(k, layout, loads, theta)[0, rows]
        return torques

    def total_contact(self, capture: Capture) -> Array:
        """Return the sum of the standing feet's sensors in the base, (6,), N and N m."""
        layout = self._topology.layout(self._topology.contact_sensors(capture))
        readings = np.where(layout.contact[:, np.newaxis], capture.wrenches, 0.0)
        here = self._poses(capture)
        return self._reading_matrix(here, layout)[:6] @ readings.ravel()

    def carried_links(self, capture: Capture) -> BoolArray:
        """Return which links the sensors of standing feet carry, shape (L,)."""
        layout = self._topology.layout(self._topology.contact_sensors(capture))
        return layout.through[0, :len(self.model.link_names)] > 0.0

    def up_in_base(self, capture: Capture) -> Array:
        """Return the unit vector against gravity in the base, shape (3,)."""
        here = self._poses(capture)
        return np.asarray(-here.gravity[0] / GRAVITY)

    def _poses(self, capture: Capture) -> StaticsPoses:
        return self._kinematics.poses(capture.positions[np.newaxis], capture.up, capture.up_frame)

    # -- content of the rows

    def _stack(self, joints: Array, sensors: Array, whole: Array) -> Array:
        """Put rows together: whole (N, 6, ...), joints (N, J, ...), sensors (N, S, 6, ...)."""
        measured = np.einsum('mj,nj...->nm...', self._gearing, joints)
        flat = sensors.reshape(len(whole), -1, *sensors.shape[3:])
        return np.concatenate((whole, measured, flat), axis=1)

    def _matrix(self, k: StaticsPoses, layout: RegressorLayout) -> Array:
        """Return A of the first configuration, shape (6 + n + 6 S, 4 L)."""
        g, R_T, p = k.gravity[0], k.links[0, :, :3], k.links[0, :, 3]
        B = np.zeros((len(p), 6, 4))
        B[:, :3, 0], B[:, 3:, 0] = g, np.cross(p, g)
        B[:, 3:, 1:] = -skew(g) @ R_T.transpose(0, 2, 1)
        return self._rows_through(k, layout.through[:, :len(p)], B)

    def _reading_matrix(self, k: StaticsPoses, layout: RegressorLayout) -> Array:
        """Return how contact readings enter the rows, shape (6 + n + 6 S, 6 S)."""
        through = layout.through[:, len(self.model.link_names):]
        return self._rows_through(k, through, k.sensor_adjoints()[0])

    def _rows_through(self, k: StaticsPoses, through: Array, wrenches: Array) -> Array:
        """Project wrenches (X, 6, c), which pass `through` (cuts, X), on what is measured."""
        J = len(self._kinematics.joint_names)
        joints, sensors = self._kinematics.projections(k)
        on_joints = (np.einsum('jk,xkc->jxc', joints[0], wrenches)
                     * through[1:1 + J, :, np.newaxis])
        on_sensors = (np.einsum('srk,xkc->srxc', sensors[0], wrenches)
                      * through[1 + J:, np.newaxis, :, np.newaxis])
        whole = wrenches.transpose(1, 0, 2) * through[0][:, np.newaxis]
        stacked = self._stack(on_joints[np.newaxis], on_sensors[np.newaxis], whole[np.newaxis])
        return stacked[0].reshape(stacked.shape[1], -1)

    def _predictions(self, k: StaticsPoses, layout: RegressorLayout, readings: Array,
                     theta: Array) -> Array:
        """Return predicted measurements, the sum for the whole, in N configurations (N, rows)."""
        J, weights = len(self._kinematics.joint_names), self._weights(k, theta)
        contacts = np.einsum('nsrc,sc->nsr', k.sensor_adjoints(), readings)
        through = layout.through @ np.concatenate((weights, contacts), axis=1)
        joints, sensors = self._kinematics.projections(k)
        return self._stack(np.einsum('njk,njk->nj', joints, through[:, 1:1 + J]),
                           np.einsum('nsrk,nsk->nsr', sensors, through[:, 1 + J:]),
                           through[:, 0])

    def _weights(self, k: StaticsPoses, theta: Array) -> Array:
        """Return the weight wrench of each link in N configurations, (N, L, 6), base frame."""
        m, h = theta[:, :1], theta[:, 1:]
        first = m * k.links[:, :, 3] + np.einsum('lk,nlki->nli', h, k.links[:, :, :3])
        g = k.gravity[:, np.newaxis]
        return np.concatenate((m * np.broadcast_to(g, first.shape), np.cross(first, g)), axis=2)

    # -- noise

    def _noise_jacobians(self, capture: Capture, layout: RegressorLayout, readings: Array,
                         theta: Array) -> tuple[Array, Array]:
        n = len(self.model.joint_names)
        positions = np.tile(capture.positions, (n + 4, 1))
        positions[1 + np.arange(n), np.arange(n)] += STEP
        turns = np.tile(np.eye(3), (n + 4, 1, 1))
        turns[n + 1:] += STEP * skew(np.eye(3))
        k = self._kinematics.poses(positions, capture.up, capture.up_frame, turns)
        predictions = self._predictions(k, layout, readings, theta)
        jacobian = (predictions[1:] - predictions[0]).T / STEP
        return jacobian[:, :n], jacobian[:, n:]

    def variances(self, capture: Capture, noise: SensorNoise) -> Array:
        """Return those of the noise of what was measured, (inputs,): stated and measured."""
        n, inputs = len(self.is_prismatic), self.inputs
        sole = noise.sole_contact * np.array((1.0, 1.0, CONTACT_ARM))
        wrench = np.repeat((noise.force, noise.moment), 3) ** 2 + self._deviations ** 2
        variances = np.concatenate((
            np.where(self.is_prismatic, noise.slide, noise.encoder) ** 2,
            np.full(3, noise.tilt ** 2), wrench.ravel(),
            np.tile(sole ** 2, len(self.model.config.feet)), np.full(n, noise.torque ** 2)))
        for where, measured in ((inputs.positions, capture.position_variance),
                                (inputs.readings, capture.wrench_variance),
                                (inputs.torques, capture.torque_variance)):
            if measured is not None:
                variances[where] += np.ravel(measured)
        return variances


UP = np.array((0.0, 0.0, 1.0))


def predict_capture(regressor: StaticsRegressor, positions: Array, standing: Sequence[str],
                    theta: Array, name: str = '') -> Capture:
    """
    Return the predicted capture of a robot at rest on level soles.

    Parameters
    ----------
    regressor
        Of the robot.
    positions
        Of its joints, shape (n,), rad or m.
    standing
        Names of the feet on the ground, the first sole is level; none: hanging, the base is level.
    theta
        Masses and first moments (L, 4), kg and kg m.
    name
        Of the capture.

    Notes
    -----
    Statics does not determine how several feet share the weight; here the share grows with the
    nearness to the centre of mass.

    """
    model, feet = regressor.model, list(regressor.model.config.feet)
    rows = model.state(positions).placements_in_base(model.soles)
    chosen = [feet.index(foot) for foot in standing]
    up = rows[chosen[0], 2] if chosen else UP  # third column of R_base_sole
    up_frame = model.config.feet[standing[0]].sole if chosen else ''
    R_base_link = model.state(positions).pose_in_base(up_frame).rotation if chosen else np.eye(3)
    draft = Capture(
        positions=positions, wrenches=np.zeros((len(model.config.wrench_sensors), 6)),
        in_contact=np.array([foot in standing for foot in feet]), up=R_base_link.T @ up,
        up_frame=up_frame, torques=np.full(len(model.joint_names), np.nan), name=name)
    wrenches = _contacts(regressor, positions, rows[chosen, 3], up, theta) if chosen else ()
    readings = regressor.readings(draft, dict(zip(standing, wrenches)), theta)
    torques = regressor.torques(draft, readings, theta)
    return replace(draft, wrenches=readings, torques=torques)


def _contacts(regressor: StaticsRegressor, positions: Array, soles: Array, up: Array,
              theta: Array) -> Array:
    """Return wrenches (feet, 6) about the base's origin, base axes, that carry the weight."""
    mass = float(theta[:, 0].sum())
    com = regressor.com_matrix(positions) @ theta.ravel() / mass
    weight = mass * GRAVITY * up
    offsets = soles - com
    level = offsets - np.outer(offsets @ up, up)
    nearness = 1.0 / (np.linalg.norm(level, axis=1) + 0.05)
    shares = nearness / nearness.sum()
    wrenches = np.zeros((len(soles), 6))
    wrenches[:, :3] = np.outer(shares, weight)
    wrenches[:, 3:] = np.cross(soles, wrenches[:, :3])
    missing = np.cross(com, weight) - wrenches[:, 3:].sum(axis=0)
    wrenches[:, 3:] += np.outer(shares, missing)
    return wrenches
