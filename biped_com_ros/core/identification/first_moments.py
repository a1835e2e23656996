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
What a robot at rest measures, as linear equations in the masses and first moments of its links.

Cut the robot anywhere: what is beyond the cut is at rest, so what passes through the cut carries
its weight and its contacts. Three kinds of cuts give equations,

- none at all: contacts and the weight of the whole robot add up to zero (6 rows, base frame);
- at a joint: the motor's torque is what passes through, about its axis (1 row);
- at a wrench sensor: its reading is what passes through (6 rows, sensor frame).

A standing foot's sensor is itself the contact: what hangs below it, mostly the foot, drops out of
all equations above it (the paper's m2 is what the sensor carries). The same sensor in the air
weighs the foot.

With ``g`` the gravity vector in the base, a link of mass m and first moment ``h = m c`` (in the
link's axes) at pose (R, p) has the weight wrench ``(m g, (m p + R h) x g)``: linear in (m, h).
Muscolo et al. 2017, equation (26), ``t_i m_w = sum s_iv m_iv``, needs these rotations to hold in a
robot whose links turn: ``sum m_v (p_v(q) + R_v s_v)``.

Parameters are always in the order m, h_x, h_y, h_z of each of ``model.link_names``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.identification.captures import Capture, check_capture, SensorNoise
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.robot import FrameSet, RobotModel
import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

TYPICAL_NOISE = SensorNoise()
STEP = 1e-6  # of the differences that propagate noise, rad


def parameters_of(model: RobotModel) -> Array:
    """Return the URDF's masses and first moments, shape (L, 4), kg and kg m."""
    masses = np.asarray(model.link_masses)[:, np.newaxis]
    return np.concatenate((masses, masses * model.link_coms_in_link), axis=1)


@dataclass(frozen=True)
class RegressorLayout:
    """
    Which rows a capture gives; the same for all captures with the same contacts and sensors.

    Attributes
    ----------
    through
        Which links and then sensors pass through each cut, shape (1 + joints + sensors,
        links + sensors).
    rows
        Indices of the rows that are kept, of all 6 + joints + 6 sensors.
    contact
        Which sensors are contacts, shape (sensors,).

    """

    through: Array
    rows: NDArray[np.intp]
    contact: NDArray[np.bool_]


@dataclass(frozen=True)
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
        Of what: 0-5 the whole, then joints in ``model.joint_names``, then six per sensor.
    J_position, J_up, J_reading
        Derivatives of the residual by joint positions (rows, n), by a rotation vector of `up` in
        its frame (rows, 3), and by the contact sensors' readings (rows, 6 sensors).
    covariance
        Of the noise, shape (rows, rows).

    """

    A: Array
    b: Array
    rows: NDArray[np.intp]
    J_position: Array
    J_up: Array
    J_reading: Array
    covariance: Array

    def residual(self, theta: Array) -> Array:
        """Return ``A theta + b``, shape (rows,), N, N m."""
        residual: Array = self.A @ theta.ravel() + self.b
        return residual


@dataclass(frozen=True)
class _Kinematics:
    """Poses of everything in the base for N configurations; rotations transposed."""

    links: Array  # (N, L, 4, 3)
    axes: Array  # (N, J, 3)
    origins: Array  # (N, J, 3)
    sensors: Array  # (N, S, 4, 3)
    gravity: Array  # (N, 3)


class StaticsRegressor:
    """
    Equations of a robot at rest.

    Parameters
    ----------
    model
        The robot; only its geometry is used.

    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        pin_model = model.pin_model
        self._joint_count = pin_model.njoints - 2
        sensors = model.config.wrench_sensors
        self._sensor_frames = [s.frame for s in sensors.values()]
        self._sensor_links = [s.link or s.frame for s in sensors.values()]
        joints = range(2, pin_model.njoints)
        self._joints = FrameSet((pin_model.names[i] for i in joints), joints,
                                [Pose.identity()] * self._joint_count)
        self._frames = (model.frames(model.link_names) + self._joints
                        + model.frames(self._sensor_frames))
        self._axes, self._is_sliding = _joint_axes(pin_model)
        # Torque at a measured joint is its own and its followers' as they are geared to it.
        n = len(model.joint_names)
        self._gearing = np.array([model.velocity(e)[6:] for e in np.eye(n)]).reshape(n, -1)
        self._layouts: dict[bytes, RegressorLayout] = {}

    @property
    def row_count(self) -> int:
        """Return the number of rows before those that cannot be used are left out."""
        return 6 + len(self.model.joint_names) + 6 * len(self._sensor_frames)

    @cached_property
    def sliding(self) -> NDArray[np.bool_]:
        """Which of ``model.joint_names`` are prismatic, shape (n,)."""
        names = list(self._joints.names)
        return np.array([self._is_sliding[names.index(n)] for n in self.model.joint_names])

    def com_matrix(self, positions: Array) -> Array:
        """
        Return C (3, 4 L) with ``C theta`` = mass times centre of mass in the base, kg m.

        The rows of a centre of mass that is known otherwise (the paper's bypass).
        """
        links = self.model.state(positions).placements_in_base(self._link_frames)
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
        derivative: Array = C / mass
        return derivative

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
        n, none = len(self.model.joint_names), np.zeros(len(self._sensor_frames), dtype=bool)
        kinematics = self._kinematics(positions[np.newaxis], up, '')
        A = self._matrix(kinematics, self._layout(none))
        rows: Array = A[6:6 + n]
        return rows

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
        here, layout, keep, readings, measured = self._rows_of(capture)
        A = self._matrix(here, layout)
        J_reading = self._reading_matrix(here, layout)
        b = J_reading @ readings.ravel() - measured
        J_position, J_up = self._noise_jacobians(capture, layout, readings, theta)
        covariance = self._covariance(capture, noise, J_position, J_up, J_reading)
        return Equations(A[keep], b[keep], keep, J_position[keep], J_up[keep], J_reading[keep],
                         covariance[np.ix_(keep, keep)])

    def residual(self, capture: Capture, theta: Array) -> tuple[NDArray[np.intp], Array]:
        """Return which rows a capture gives and ``A theta + b``, without all the rest."""
        here, layout, keep, readings, measured = self._rows_of(capture)
        predicted = self._predictions(here, layout, readings, theta)[0]
        return keep, (predicted - measured)[keep]

    def _rows_of(self, capture: Capture) -> tuple[
            _Kinematics, RegressorLayout, NDArray[np.intp], Array, Array]:
        layout = self._layout(self._contact_sensors(capture))
        measured = self._measured(capture)
        known = np.isfinite(measured)
        keep = layout.rows[known[layout.rows]]
        readings = np.where(layout.contact[:, np.newaxis], capture.wrenches, 0.0)
        here = self._kinematics(capture.positions[np.newaxis], capture.up, capture.up_frame)
        return here, layout, keep, readings, np.where(known, measured, 0.0)

    def readings(self, capture: Capture, contacts: Mapping[str, Array], theta: Array) -> Array:
        """
        Return what all wrench sensors read, (S, 6), given the ground's wrench on each foot.

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
        k = self._kinematics(capture.positions[np.newaxis], capture.up, capture.up_frame)
        through = self._beyond_sensors[:, :L] @ self._weights(k, theta)[0]
        for foot, wrench in contacts.items():
            own = [list(config.wrench_sensors).index(n) for n in config.feet[foot].wrench_sensors]
            share = np.zeros(len(config.wrench_sensors))
            share[own] = 1.0 / max(len(own), 1)
            # A sensor further up feels all that those below it feel.
            nested = np.minimum(self._beyond_sensors[:, L:], 1.0)
            through += np.outer(nested @ share, wrench)
        readings: Array = np.einsum('srk,sk->sr', self._projections(k)[1][0], through)
        return readings

    def torques(self, capture: Capture, readings: Array, theta: Array) -> Array:
        """Return the joints' (n,) for such readings; NaN where the capture does not tell."""
        layout = self._layout(self._contact_sensors(capture))
        k = self._kinematics(capture.positions[np.newaxis], capture.up, capture.up_frame)
        felt = np.where(layout.contact[:, np.newaxis], readings, 0.0)
        n = len(self.model.joint_names)
        torques = np.full(n, np.nan)
        rows = layout.rows[(layout.rows >= 6) & (layout.rows < 6 + n)]
        torques[rows - 6] = self._predictions(k, layout, felt, theta)[0, rows]
        return torques

    def total_contact(self, capture: Capture) -> Array:
        """Return what the standing feet's sensors read together, in the base frame, (6,)."""
        layout = self._layout(self._contact_sensors(capture))
        readings = np.where(layout.contact[:, np.newaxis], capture.wrenches, 0.0)
        here = self._kinematics(capture.positions[np.newaxis], capture.up, capture.up_frame)
        total: Array = self._reading_matrix(here, layout)[:6] @ readings.ravel()
        return total

    def carried_links(self, capture: Capture) -> NDArray[np.bool_]:
        """Return which links the standing feet's sensors carry, shape (L,)."""
        layout = self._layout(self._contact_sensors(capture))
        return layout.through[0, :len(self.model.link_names)] > 0.0

    def up_in_base(self, capture: Capture) -> Array:
        """Return the unit vector against gravity in the base, shape (3,)."""
        here = self._kinematics(capture.positions[np.newaxis], capture.up, capture.up_frame)
        return np.asarray(-here.gravity[0] / GRAVITY)

    # -- which rows

    @cached_property
    def _link_frames(self) -> FrameSet:
        return self.model.frames(self.model.link_names)

    @cached_property
    def _beyond_joints(self) -> Array:
        """Which links, then sensors, are beyond each moving joint, (J, L + S)."""
        child = {joint: link for pairs in _children(self.model).values() for joint, link in pairs}
        return np.array([self._beyond(child[name]) for name in self._joints.names])

    @cached_property
    def _beyond_sensors(self) -> Array:
        """Which links, then sensors, are beyond each sensor, itself included, (S, L + S)."""
        rows = [self._beyond(link) for link in self._sensor_links]
        return np.array(rows).reshape(-1, len(self.model.link_names) + len(rows))

    def _beyond(self, link: str) -> Array:
        model = self.model
        found = np.zeros(len(model.link_names) + len(self._sensor_links))
        found[model.subtree_links(link)] = 1.0
        inside = _all_below(model, link)
        for i, sensor in enumerate(self._sensor_links):
            found[len(model.link_names) + i] = sensor in inside
        return found

    def _contact_sensors(self, capture: Capture) -> NDArray[np.bool_]:
        """Return which sensors are those of standing feet, shape (S,)."""
        config = self.model.config
        standing = {sensor for foot, stands in zip(config.feet.values(), capture.in_contact)
                    if stands for sensor in foot.wrench_sensors}
        return np.array([name in standing for name in config.wrench_sensors], dtype=bool)

    def _layout(self, contact: NDArray[np.bool_]) -> RegressorLayout:
        key = contact.tobytes()
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(contact)
        return self._layouts[key]

    def _make_layout(self, contact: NDArray[np.bool_]) -> RegressorLayout:
        L = len(self.model.link_names)
        whole = np.ones((1, L + len(contact)))
        through = np.concatenate((whole, self._beyond_joints, self._beyond_sensors))
        through[:, L:] *= contact
        hidden = (self._beyond_sensors[contact, :L].any(axis=0) if contact.any()
                  else np.zeros(L, dtype=bool))
        through[:, :L][:, hidden] = 0.0
        return RegressorLayout(through, self._usable_rows(contact), contact)

    def _usable_rows(self, contact: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Leave out what the ground touches beyond a contact sensor, which nobody measures."""
        model, names = self.model, self.model.joint_names
        below: set[str] = set()
        for link in (link for link, stands in zip(self._sensor_links, contact) if stands):
            below |= _joints_below(model, link)
        joints = [name in model.actuated_joint_names and name not in below for name in names]
        # An unloaded sensor below a contact sensor would feel the ground as well.
        S = len(contact)
        nested = self._beyond_sensors[:, -S:] if S else np.zeros((0, 0))
        under = nested[contact].any(axis=0) if contact.any() else np.zeros(S, dtype=bool)
        usable = np.concatenate((np.full(6, contact.any()), joints,
                                 np.repeat(~(contact | under), 6)))
        return np.flatnonzero(usable)

    # -- their content

    def _kinematics(self, positions: Array, up: Array, up_frame: str,
                    up_rotations: Array | None = None) -> _Kinematics:
        """Run the kinematics of configurations (N, n); `up_rotations` (N, 3, 3) turn `up`."""
        frames = self._frames
        if up_frame:
            frames = self._with_up(up_frame)
        L, J = len(self.model.link_names), self._joint_count
        rows = np.array([self.model.state(q).placements_in_base(frames) for q in positions])
        joints, S = rows[:, L:L + J], len(self._sensor_frames)
        axes = np.einsum('jk,njki->nji', self._axes, joints[:, :, :3])
        ups = np.broadcast_to(up / np.linalg.norm(up), (len(rows), 3))
        if up_rotations is not None:
            ups = np.einsum('nij,nj->ni', up_rotations, ups)
        if up_frame:
            ups = np.einsum('nk,nki->ni', ups, rows[:, -1, :3])
        return _Kinematics(rows[:, :L], axes, joints[:, :, 3],
                           rows[:, L + J:L + J + S], -GRAVITY * ups)

    def _with_up(self, frame: str) -> FrameSet:
        cache = self.__dict__.setdefault('_frames_with_up', {})
        if frame not in cache:
            cache[frame] = self._frames + self.model.frames((frame,))
        found: FrameSet = cache[frame]
        return found

    def _projections(self, k: _Kinematics) -> tuple[Array, Array]:
        """Return what turns the wrench through each cut, base frame, into what is measured."""
        # A joint's torque is minus the component, about its axis, of what is beyond.
        moment = -np.where(self._is_sliding[:, np.newaxis], 0.0, k.axes)
        force = np.where(self._is_sliding[:, np.newaxis], -k.axes, np.cross(k.axes, k.origins))
        joints = np.concatenate((force, moment), axis=2)
        R_T, p = k.sensors[:, :, :3], k.sensors[:, :, 3]
        sensors = np.zeros((*p.shape[:2], 6, 6))
        sensors[:, :, :3, :3] = sensors[:, :, 3:, 3:] = R_T
        sensors[:, :, 3:, :3] = -R_T @ skew(p)
        return joints, sensors

    def _stack(self, joints: Array, sensors: Array, whole: Array) -> Array:
        """Put rows together: whole (N, 6, ...), joints (N, J, ...), sensors (N, S, 6, ...)."""
        measured = np.einsum('mj,nj...->nm...', self._gearing, joints)
        flat = sensors.reshape(len(whole), -1, *sensors.shape[3:])
        stacked: Array = np.concatenate((whole, measured, flat), axis=1)
        return stacked

    def _matrix(self, k: _Kinematics, layout: RegressorLayout) -> Array:
        """Return A of the first configuration, shape (row_count, 4 L)."""
        L, J = len(self.model.link_names), self._joint_count
        g, R_T, p = k.gravity[0], k.links[0, :, :3], k.links[0, :, 3]
        B = np.zeros((L, 6, 4))
        B[:, :3, 0], B[:, 3:, 0] = g, np.cross(p, g)
        B[:, 3:, 1:] = -skew(g) @ R_T.transpose(0, 2, 1)
        joints, sensors = self._projections(k)
        through = layout.through[:, :L]
        on_joints = np.einsum('jk,lkc->jlc', joints[0], B) * through[1:1 + J, :, np.newaxis]
        on_sensors = (np.einsum('srk,lkc->srlc', sensors[0], B)
                      * through[1 + J:, np.newaxis, :, np.newaxis])
        whole = B.transpose(1, 0, 2) * through[0][:, np.newaxis]
        stacked = self._stack(on_joints[np.newaxis], on_sensors[np.newaxis], whole[np.newaxis])
        return stacked[0].reshape(self.row_count, -1)

    def _reading_matrix(self, k: _Kinematics, layout: RegressorLayout) -> Array:
        """Return how contact readings enter the rows, shape (row_count, 6 S)."""
        L, J = len(self.model.link_names), self._joint_count
        to_base = _to_base(k)[0]
        joints, sensors = self._projections(k)
        through = layout.through[:, L:]
        on_joints = np.einsum('jk,skc->jsc', joints[0], to_base) * through[1:1 + J, :, np.newaxis]
        on_sensors = (np.einsum('trk,skc->trsc', sensors[0], to_base)
                      * through[1 + J:, np.newaxis, :, np.newaxis])
        whole = to_base.transpose(1, 0, 2) * through[0][:, np.newaxis]
        stacked = self._stack(on_joints[np.newaxis], on_sensors[np.newaxis], whole[np.newaxis])
        return stacked[0].reshape(self.row_count, -1)

    def _predictions(self, k: _Kinematics, layout: RegressorLayout, readings: Array,
                     theta: Array) -> Array:
        """Return what is measured, or zero for the whole, in N configurations (N, rows)."""
        J, weights = self._joint_count, self._weights(k, theta)
        contacts = np.einsum('nsrc,sc->nsr', _to_base(k), readings)
        through = layout.through @ np.concatenate((weights, contacts), axis=1)
        joints, sensors = self._projections(k)
        return self._stack(np.einsum('njk,njk->nj', joints, through[:, 1:1 + J]),
                           np.einsum('nsrk,nsk->nsr', sensors, through[:, 1 + J:]),
                           through[:, 0])

    def _weights(self, k: _Kinematics, theta: Array) -> Array:
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
        k = self._kinematics(positions, capture.up, capture.up_frame, turns)
        predictions = self._predictions(k, layout, readings, theta)
        jacobian = (predictions[1:] - predictions[0]).T / STEP
        return jacobian[:, :n], jacobian[:, n:]

    def _covariance(self, capture: Capture, noise: SensorNoise, J_position: Array, J_up: Array,
                    J_reading: Array) -> Array:
        position = np.where(self.sliding, noise.slide, noise.encoder) ** 2
        wrench = np.tile([noise.force ** 2] * 3 + [noise.moment ** 2] * 3,
                         (len(self._sensor_frames), 1))
        torque = np.full(len(position), noise.torque ** 2)
        position, wrench, torque = (
            nominal if measured is None else nominal + measured for nominal, measured in (
                (position, capture.position_variance), (wrench, capture.wrench_variance),
                (torque, capture.torque_variance)))
        inputs = np.concatenate((position, np.full(3, noise.tilt ** 2), wrench.ravel()))
        J = np.concatenate((J_position, J_up, J_reading), axis=1)
        covariance: Array = (J * inputs) @ J.T
        direct = np.concatenate((np.zeros(6), torque, wrench.ravel()))
        covariance[np.diag_indices_from(covariance)] += direct
        return covariance

    def _measured(self, capture: Capture) -> Array:
        return np.concatenate((np.zeros(6), capture.torques, np.ravel(capture.wrenches)))


def stack_equations(regressor: StaticsRegressor, captures: Sequence[Capture], theta: Array,
                    noise: SensorNoise) -> list[Equations]:
    """Return the equations of all captures; InputError if there is none."""
    if not captures:
        raise InputError('there is no capture; take at least two poses at rest')
    return [regressor.equations(capture, theta, noise) for capture in captures]


def _to_base(k: _Kinematics) -> Array:
    """Return what takes wrenches from the sensors to the base, shape (N, S, 6, 6)."""
    R, p = k.sensors[:, :, :3].swapaxes(2, 3), k.sensors[:, :, 3]
    X = np.zeros((*p.shape[:2], 6, 6))
    X[:, :, :3, :3] = X[:, :, 3:, 3:] = R
    X[:, :, 3:, :3] = skew(p) @ R
    return X


def _joint_axes(pin_model: pin.Model) -> tuple[Array, NDArray[np.bool_]]:
    """Return the axis of each moving joint in its own frame (J, 3), and which ones slide."""
    data = pin.Data(pin_model)
    pin.computeJointJacobians(pin_model, data, pin.neutral(pin_model))
    axes, sliding = [], []
    for i in range(2, pin_model.njoints):
        J = pin.getJointJacobian(pin_model, data, i, pin.ReferenceFrame.LOCAL)
        motion = J[:, pin_model.joints[i].idx_v]
        sliding.append(bool(np.linalg.norm(motion[3:]) < 0.5))
        axes.append(motion[:3] if sliding[-1] else motion[3:])
    return np.array(axes).reshape(-1, 3), np.array(sliding, dtype=bool)


def _all_below(model: RobotModel, link: str) -> set[str]:
    """Return the names of `link` and of all links, with or without mass, that hang on it."""
    pending, found = [link], set()
    children = _children(model)
    while pending:
        name = pending.pop()
        found.add(name)
        pending.extend(child for _, child in children.get(name, ()))
    return found


def _joints_below(model: RobotModel, link: str) -> set[str]:
    children = _children(model)
    return {joint for name in _all_below(model, link) for joint, _ in children.get(name, ())}


def _children(model: RobotModel) -> dict[str, list[tuple[str, str]]]:
    children: dict[str, list[tuple[str, str]]] = {}
    for joint in urdf_tools.parse_urdf(model.urdf).findall('joint'):
        parent, child = joint.find('parent'), joint.find('child')
        if parent is not None and child is not None:
            children.setdefault(str(parent.get('link')), []).append(
                (str(joint.get('name')), str(child.get('link'))))
    return children
