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
Joint efforts that balance gravity: with a fixed base, on one foot, on any contacts.

Newman (2013), equations (6), (10) and (12), and the double support that the note defers. The
potential energy is ``M g up . c(q)``, so the generalized gravity of the robot with a floating
base is weight times the vertical row of its CoM Jacobian, ``g = M g up^T J_com`` with
``J_com = sum m_i J_i / M`` (the masses are missing in the print of (6)). If the base is held,
the joint rows of g are the efforts. On the ground, contact wrenches f_k balance the base:

    sum J_kb^T f_k = g_b        efforts = g_a - sum J_ka^T f_k

On one foot f is determined, and the efforts are those of a base that turns when the joints of
the stance leg move, as (11)-(12) have it. On several contacts the internal forces are free;
:mod:`~biped_com_ros.core.gravity.contacts` and
:mod:`~biped_com_ros.core.gravity.support_qp` choose them.

Everything is computed in the axes of the base; of the world only the direction `up` enters, so
nothing depends on heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, cross, Vector
from biped_com_ros.core.geometry.wrench import about_origin
from biped_com_ros.core.gravity.attitude import MountedImu
from biped_com_ros.core.gravity.contacts import find_contacts, minimum_norm_wrenches
from biped_com_ros.core.model.efforts import effort_limits
from biped_com_ros.core.model.pinocchio_model import Kinematics
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.payload.carried import CarriedPayload
import numpy as np
import pinocchio as pin

#: Number of velocities of the floating base, the first ones in Pinocchio.
_BASE_DOF = 6
#: Largest sum of the squares of credible joint positions.
_ABSURD_SQUARED = 1e12
Shares: TypeAlias = 'Sequence[float] | Array'


class GravityModel:
    """
    Gravity's load on the joints of a robot.

    Parameters
    ----------
    model
        The robot.
    gravity
        m/s2.
    contacts
        Names of feet and hands that may be loaded, in the order of all shares and wrenches;
        default: the feet.
    lever
        Torque length L of feet, m: see :mod:`~biped_com_ros.core.gravity.contacts`. Hands
        transmit forces only.

    Attributes
    ----------
    contacts
        The contacts as :class:`~biped_com_ros.core.gravity.contacts.ContactPoint`.
    frames
        Their frames, moved to the centres of the contacts.
    weight
        N.
    joint_moves_contact
        Whether each moving joint (column) moves each contact (row): 1, else 0; (K, joints).
    payload
        A load in the hands; None: nothing.
    effort_limits
        Of the measured joints, shape (n,), N m or N; infinite where the URDF has no limit.

    Raises
    ------
    UnknownNameError
        If a contact is neither foot nor hand.

    """

    def __init__(self, model: RobotModel, gravity: float = GRAVITY,
                 contacts: Iterable[str] | None = None, lever: float = 0.1) -> None:
        self.model, self._gravity = model, gravity
        self.payload: CarriedPayload | None = None
        self.use_inertials()
        self.contacts, self.frames = find_contacts(model, contacts, lever)
        self.levers = [contact.lever for contact in self.contacts]
        self.effort_limits = effort_limits(model)
        self.joint_moves_contact = self._moves(self.frames.joints)
        self._payload_joint, self._joint_moves_payload = 0, np.zeros(0)
        self._ones = np.ones(len(self.contacts))
        self._kinematics = Kinematics(model.pin_model)
        # Views of Pinocchio's memory; getting them each time takes longer than their products.
        data = self._kinematics.data
        self._columns, self._com_rows = data.J[:, _BASE_DOF:], data.Jcom[:, _BASE_DOF:]
        joints = model.coupling.shape[0]
        #: None where every moving joint is measured, and follows no other one.
        self._coupling = (None if np.array_equal(model.coupling, np.eye(joints))
                          else model.coupling)
        passive = set(model.config.passive_joints)
        #: 0 for passive joints, else 1; None without any.
        self._actuated = None if passive.isdisjoint(model.joint_names) else np.array(
            [float(name not in passive) for name in model.joint_names])

    def use_inertials(self) -> None:
        """Recompute the weight after masses of the model or of the payload have changed."""
        payload = 0.0 if self.payload is None else self.payload.mass
        self.weight = (self.model.mass + payload) * self._gravity

    def load(self, state: RobotState, up_in_base: Array) -> GravityLoad:
        """
        Return gravity's load in one posture and attitude.

        Parameters
        ----------
        state
            The robot's kinematics.
        up_in_base
            Unit vector against gravity along the axes of the base, shape (3,).

        """
        return self._load(state.q, lambda _: up_in_base)

    def load_at(self, joint_positions: Array, imu: MountedImu) -> GravityLoad:
        """
        Return gravity's load in the posture and attitude that joints and an IMU measure.

        Parameters
        ----------
        joint_positions
            Shape (n,), rad or m, in the order of ``model.joint_names``.
        imu
            The IMU with its present orientation.

        Raises
        ------
        InputError
            If a position is not finite.

        """
        q = self.model.configuration(joint_positions)
        if not q.dot(q) < _ABSURD_SQUARED:
            self.model.state(joint_positions)  # raises, and names the joint
        return self._load(q, imu.up_in_base)

    def _load(self, q: Array, up_in_base: Callable[[Array], Array]) -> GravityLoad:
        """Return the load; `up_in_base` gets the placements of all joints (joints, 4, 3)."""
        # Fills the joint Jacobians as well, about the origin and along the axes of the base.
        pin.jacobianCenterOfMass(self.model.pin_model, self._kinematics.data, q, True)
        com, joints = self._kinematics.view_positions()
        placements = np.matmul(self.frames.placement_in_joint, joints.take(self.frames.joints, 0))
        up, columns = up_in_base(joints), self._columns.copy('F')
        forces = (self.model.mass * self._gravity * up).dot(self._com_rows)
        if self.payload is not None and self.payload.mass:
            com, added = self._with_payload(self.payload, com, joints, up, columns)
            forces += added
        return GravityLoad(self, com.tolist(), up.tolist(), placements, forces, columns)

    def _with_payload(self, payload: CarriedPayload, com: Array, joints: Array, up: Array,
                      columns: Array) -> tuple[Array, Array]:
        """Return the centre of mass with the payload, and what that adds to the joints."""
        moment, own = payload.moment(joints), self.model.mass
        if payload.joint != self._payload_joint:
            self._payload_joint = payload.joint
            self._joint_moves_payload = self._moves([payload.joint])[0]
        # The potential energy m g up . p has the gradient m g (up, p x up) J.
        gradient = self._gravity * np.concatenate((payload.mass * up, cross(moment, up)))
        return ((own * com + moment) / (own + payload.mass),
                gradient.dot(columns) * self._joint_moves_payload)

    def to_measured_joints(self, forces: Array) -> Array:
        """
        Return the efforts of measured joints (..., n) from forces on all joints (..., joints).

        The effort of a mimic joint, times its multiplier, is added to the joint that it follows.
        Passive joints are held by their springs: zero.
        """
        efforts = forces if self._coupling is None else forces.dot(self._coupling)
        return efforts if self._actuated is None else efforts * self._actuated

    def contact_efforts(self, wrenches: Array, joint_twists: Array) -> Array:
        """
        Return ``sum J^T f``: what contact wrenches exert on all moving joints, (joints,).

        Parameters
        ----------
        wrenches
            On the robot at each contact, about the base's origin, (K, 6), N and N m.
        joint_twists
            As in `GravityLoad`.

        """
        # A product with ones takes half the time of a sum.
        return self._ones.dot(wrenches.dot(joint_twists) * self.joint_moves_contact)

    def _moves(self, joints: Iterable[int]) -> Array:
        """Return whether each moving joint (column) moves each of `joints` (row): 1, else 0."""
        pin_model, joints = self.model.pin_model, tuple(joints)
        moves = np.zeros((len(joints), pin_model.nv - _BASE_DOF))
        for row, joint in zip(moves, joints):
            columns = [pin_model.joints[i].idx_v for i in pin_model.supports[int(joint)] if i > 1]
            row[np.array(columns, dtype=np.intp) - _BASE_DOF] = 1.0
        return moves


class GravityLoad:
    """
    Gravity's load in one posture and attitude; immutable.

    Parameters
    ----------
    gravity_model
        The robot and its contacts.
    com, up, placements, gravity_forces, joint_twists
        As the attributes.

    Attributes
    ----------
    com, up, force
        Centre of mass, m, unit vector against gravity, and the weight's reaction, N: (x, y, z)
        in the base, Python floats.
    gravity_forces
        Generalized gravity of all moving joints, mimicking and locked ones included, N m or N.
    joint_twists
        Twist of each such joint about the base's origin, linear velocity first, (6, joints).
    placements
        Centres of the contacts (K, 4, 3; as `RobotState.placements_in_base`), base.
    placement_values, points
        The same as Python floats, and the origins of these, m.

    """

    def __init__(self, gravity_model: GravityModel, com: list[float], up: list[float],
                 placements: Array, gravity_forces: Array, joint_twists: Array) -> None:
        self.gravity_model, self.com, self.up, self.placements = (
            gravity_model, com, up, placements)
        self.gravity_forces, self.joint_twists = gravity_forces, joint_twists
        self.placement_values: list[list[list[float]]] = placements.tolist()
        self.points = [placement[3] for placement in self.placement_values]
        (x, y, z), weight = up, gravity_model.weight
        self.force: Vector = (weight * x, weight * y, weight * z)

    @property
    def moment(self) -> Vector:
        """Moment of the weight's reaction about the base's origin, N m."""
        (fx, fy, fz), (x, y, z) = self.force, self.com
        return y * fz - z * fy, z * fx - x * fz, x * fy - y * fx

    def fixed_base_efforts(self) -> Array:
        """Return the efforts (n,) while something holds the base."""
        return self.gravity_model.to_measured_joints(self.gravity_forces)

    def efforts_on(self, wrench_values: Sequence[Sequence[float]]) -> Array:
        """
        Return the efforts (n,) while contact wrenches carry the robot: ``g_a - sum J^T f``.

        Parameters
        ----------
        wrench_values
            As for `ContactSolution`.

        """
        numbers: list[float] = []  # an array of nested sequences takes twice as long
        for wrench, point in zip(wrench_values, self.points):
            numbers += about_origin(wrench, point)
        about_base = np.array(numbers).reshape(-1, 6)
        model = self.gravity_model
        return model.to_measured_joints(
            self.gravity_forces - model.contact_efforts(about_base, self.joint_twists))

    def on_contacts(self, shares: Shares,
                    distribution: Distribution | None = None) -> ContactSolution:
        """
        Return wrenches and efforts on contacts.

        Parameters
        ----------
        shares
            Of the weight on each contact, shape (K,); scaled to sum 1.
        distribution
            Default: :func:`minimum_norm`.

        Raises
        ------
        InputError
            If no contact has a share, or they cannot balance the weight.

        """
        values = list(map(float, shares))
        total = sum(values)
        if len(values) != len(self.placements) or not (total > 0.0 and min(values) >= 0.0):
            names = ', '.join(contact.name for contact in self.gravity_model.contacts)
            raise InputError(f'shares {values} must be one number per contact ({names}), '
                             'none negative and not all zero')
        return (distribution or minimum_norm)(self, [value / total for value in values])


class ContactSolution:
    """
    Contact wrenches that carry the robot at rest, and the joint efforts on them.

    Parameters
    ----------
    load
        Gravity's load.
    shares
        Share of the weight on each contact, K numbers, sum 1.
    wrench_values
        On the robot at each contact's centre along the axes of the base, force first, (K, 6),
        Python floats, N and N m.

    Attributes
    ----------
    efforts
        Of the measured joints, (n,), N m or N; passive ones zero.

    """

    def __init__(self, load: GravityLoad, shares: Sequence[float],
                 wrench_values: Sequence[Sequence[float]]) -> None:
        self.load, self._shares, self.wrench_values = load, shares, wrench_values
        self.efforts = load.efforts_on(wrench_values)

    @property
    def shares(self) -> Array:
        """Share of the weight on each contact, (K,), sum 1."""
        return np.array(self._shares)

    @property
    def loaded(self) -> list[bool]:
        """Which contacts have a share of the weight."""
        return [share > 0.0 for share in self._shares]

    @property
    def wrenches_at_centres(self) -> Array:
        """On the robot at each contact's centre along the axes of the contact, (K, 6)."""
        # The rows 0-2 of a placement are R_contact_base.
        return np.matmul(
            np.reshape(self.wrench_values, (-1, 2, 3)),
            self.load.placements[:, :3].transpose(0, 2, 1)).reshape(-1, 6)

    @property
    def wrenches(self) -> Array:
        """On the robot at each contact's origin along the axes of the contact, (K, 6)."""
        return np.array([
            about_origin(wrench, (*contact.centre, 0.0)) for wrench, contact in zip(
                self.wrenches_at_centres.tolist(), self.load.gravity_model.contacts)
        ]).reshape(-1, 6)


#: Chooses the wrenches of contacts with shares, K numbers, none negative, sum 1; raises
#: InputError if they cannot balance the weight. Where the share is zero, so is the wrench.
Distribution: TypeAlias = Callable[[GravityLoad, Sequence[float]], ContactSolution]


def minimum_norm(load: GravityLoad, shares: Sequence[float]) -> ContactSolution:
    """Return the weighted minimum-norm contact wrenches, without limits."""
    return ContactSolution(load, shares, minimum_norm_wrenches(
        load.force, load.moment, load.points, shares, load.gravity_model.levers))
