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
Joint efforts that hold a robot against gravity: torso held, on one foot, on any contacts.

Newman (2013), equations (6), (10) and (12), and the double support that the note defers. The
potential energy is ``M g up . c(q)``, so the generalized gravity of the robot with a floating
base is weight times the vertical row of its CoM Jacobian, ``g = M g up^T J_com`` with
``J_com = sum m_i J_i / M`` (the masses are missing in the print of (6)). Its rows of a group of
joints are the efforts that hold this group while the torso is held. On the ground, contact
wrenches f_k carry the base as well:

    sum J_kb^T f_k = g_b        efforts = g_a - sum J_ka^T f_k

On one foot f is determined, and the efforts are those of a base that turns when the joints of
the stance leg move, as (11)-(12) have it. On several contacts the internal forces are free; here
the weighted least ``sum (|force|^2 + |torque|^2 / L_k^2) / share_k`` is taken, in closed form
about the mean p of the contacts p_k weighted by their shares (r_k = p_k - p):

    force_k = share_k (F + mu x r_k)    torque_k = share_k L_k^2 mu    D mu = m
    D = sum share_k (L_k^2 + |r_k|^2 - r_k r_k^T)

where F and m are force and moment about p that carry the weight. A contact with share zero
carries exactly nothing, and wrenches are continuous in the shares.

Everything is computed in the axes of the base; of the world only the direction `up` enters, so
nothing depends on heading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from struct import Struct
from typing import Protocol, TypeAlias

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import (
    Array, combined, cross, Pose, rotation_from_quaternion)
from biped_com_ros.core.model.robot import FrameSet, Kinematics, RobotModel, RobotState, ROOT
import numpy as np
import pinocchio as pin

#: Of the floating base in Pinocchio's velocity.
_BASE_DOF = 6
#: What stands for a missing limit, N m or N.
_UNLIMITED = 1e9
#: Joint positions whose squares add up to more make no sense.
_ABSURD_SQUARED = 1e12
_ON_ONE_LINE = ('the contacts are points on one line and carry no moment about it; give one of '
                'them a lever, or add a contact')
Shares: TypeAlias = 'Sequence[float] | Array'
#: A wrench of a contact as plain numbers, force first.
Wrench: TypeAlias = 'Sequence[float]'


@dataclass(frozen=True)
class ContactPoint:
    """
    Where the robot may touch its environment.

    Attributes
    ----------
    name
        Of a foot or hand in the robot's configuration.
    polygon
        Corners (x, y) of the contact area in the contact's frame, counter-clockwise, m; empty
        for a hand.
    lever
        L_k, m: a torque of 1 N m weighs as much as a force of 1/L_k N. Zero: no torque at all.

    """

    name: str
    polygon: tuple[tuple[float, float], ...]
    lever: float

    @cached_property
    def centre(self) -> tuple[float, float]:
        """
        Centroid (x, y) of the area, m; the origin for a hand.

        Torques count about it: a sole that rests on all of its area presses there.
        """
        corners = self.polygon
        area = x = y = 0.0
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
            cross_product = x0 * y1 - x1 * y0
            area += cross_product
            x += (x0 + x1) * cross_product
            y += (y0 + y1) * cross_product
        return (x / (3.0 * area), y / (3.0 * area)) if corners else (0.0, 0.0)

    @property
    def polygon_about_centre(self) -> tuple[tuple[float, float], ...]:
        """Return the corners seen from the centre."""
        x, y = self.centre
        return tuple((px - x, py - y) for px, py in self.polygon)


class WrenchDistribution(Protocol):
    """Chooses among the contact wrenches that carry the weight."""

    def support(self, load: GravityLoad, shares: list[float]) -> Support:
        """
        Return the robot on the wrenches that were chosen.

        Parameters
        ----------
        load
            What has to be carried, and where the contacts are.
        shares
            K numbers, not negative, sum 1. Where the share is zero, so is the wrench.

        Raises
        ------
        InputError
            If the contacts cannot carry the weight.

        """


class GravityModel:
    """
    What gravity asks of the joints of a robot.

    Parameters
    ----------
    model
        The robot.
    gravity
        m/s2.
    contacts
        Names of feet and hands that may carry, in the order of all shares and wrenches;
        default: the feet.
    lever, hand_lever
        L of feet and of hands, m.

    Attributes
    ----------
    contacts
        The contacts as :class:`ContactPoint`.
    frames
        Their frames, moved to the centres of the contacts.
    weight
        N.
    supports
        Which moving joint (column) moves which contact (row): 1, else 0.
    effort_limits
        Of the measured joints, shape (n,), N m or N; infinite where the URDF has none.

    Raises
    ------
    UnknownNameError
        If a contact is neither foot nor hand.

    """

    def __init__(self, model: RobotModel, gravity: float = GRAVITY,
                 contacts: Iterable[str] | None = None, lever: float = 0.1,
                 hand_lever: float = 0.0) -> None:
        self.model = model
        self.weight = model.mass * gravity
        self.contacts, self.frames = _find_contacts(model, contacts, lever, hand_lever)
        self.levers = [contact.lever for contact in self.contacts]
        self._kinematics = Kinematics(model.pin_model)
        # Views of Pinocchio's memory; asking for them anew takes longer than their products.
        data = self._kinematics.data
        self._columns, self._com_rows = data.J[:, _BASE_DOF:], data.Jcom[:, _BASE_DOF:]
        self.supports = self._find_supports()
        self._prepare_placing()
        self._prepare_carrying()
        self._prepare_folding()
        self.effort_limits = self._find_limits()

    @staticmethod
    def up_in_base(state: RobotState, imu: FrameSet, R_world_imu: Array) -> Array:
        """
        Return the unit vector against gravity in the base, (3,), from an IMU's orientation.

        Parameters
        ----------
        state
            The robot's kinematics; the IMU may sit on any link.
        imu
            The IMU's frame, alone.
        R_world_imu
            Its orientation (3, 3), z up; the heading does not matter.

        """
        R_imu_base = state.placements_in_base(imu)[0, :3]
        up: Array = R_world_imu[2].dot(R_imu_base)
        return up

    def load(self, state: RobotState, up_in_base: Array) -> GravityLoad:
        """
        Weigh the robot in one posture and attitude.

        Parameters
        ----------
        state
            Its kinematics.
        up_in_base
            Unit vector against gravity along the axes of the base, shape (3,).

        """
        com, placements, _ = self._pass(state.q)
        return GravityLoad(self, com, placements, up_in_base.tolist())

    def weigh(self, joint_positions: Array, imu: MountedImu) -> GravityLoad:
        """
        Weigh the robot where joints and an IMU say it is, with one pass for all of it.

        Parameters
        ----------
        joint_positions
            Shape (n,), rad or m, in the order of ``model.joint_names``.
        imu
            The IMU, turned as it is now.

        Raises
        ------
        InputError
            If a position is not finite.

        """
        q = self.model.configuration(joint_positions)
        if not q.dot(q) < _ABSURD_SQUARED:
            self.model.state(joint_positions)  # says which one it is
        com, placements, joints = self._pass(q)
        return GravityLoad(self, com, placements, imu.up_along_base(joints))

    def _pass(self, q: Array) -> tuple[list[float], Array, Array]:
        """
        Return centre of mass, placements of the contacts, and until the next pass of all joints.

        The Jacobians are in the views.
        """
        # Fills the joint Jacobians as well, about the origin and along the axes of the base.
        pin.jacobianCenterOfMass(self.model.pin_model, self._kinematics.data, q, True)
        com, joints = self._kinematics.view_positions()
        placements = self._placing.dot(joints.reshape(-1, 3).take(self._placed, 0))
        return com.tolist(), placements.reshape(-1, 4, 3), joints

    def _forces_under(self, load: GravityLoad, wrenches: Sequence[Wrench]) -> Array:
        """Return the forces on all moving joints that balance contact wrenches, base axes."""
        burdens: list[float] = []  # about the base's origin, turned about
        for (fx, fy, fz, mx, my, mz), (x, y, z) in zip(wrenches, load.points):
            burdens += (-fx, -fy, -fz,
                        z * fy - y * fz - mx, x * fz - z * fx - my, y * fx - x * fy - mz)
        for members in self._shared:
            burdens += [sum([burdens[6 * i + axis] for i in members]) for axis in range(6)]
        self._write_burdens(*burdens)
        # Every burden on all joints; of that, each joint's own.
        forces: Array = self._burdens.dot(load.columns).take(self._own)
        forces += load.gravity_forces
        return forces

    def fold(self, forces: Array) -> Array:
        """
        Return the efforts of measured joints (n,) from forces on all joints.

        A leader moves its mimicking joints along, geared, and so carries their share. Passive
        joints are held by their springs: zero.
        """
        efforts: Array = forces if self._gears is None else self._gears.dot(forces)
        return efforts if self._is_driven else efforts * self._actuated

    def fold_rows(self, rows: Array) -> Array:
        """Return :meth:`fold` of each row of (R, joints)."""
        folded = rows if self._gears is None else rows @ self._gears.T
        actuated: Array = folded * self._actuated
        return actuated

    def shares_of(self, names: Iterable[str]) -> Array:
        """Return equal shares (K,) of the named contacts."""
        index = {contact.name: i for i, contact in enumerate(self.contacts)}
        shares = np.zeros(len(self.contacts))
        for name in names:
            if name not in index:
                raise UnknownNameError('contact', name, index, self.model.config.name)
            shares[index[name]] = 1.0
        return np.divide(shares, max(float(shares.sum()), 1.0))

    def _find_supports(self) -> Array:
        """Return which joint (column) moves which contact (row)."""
        pin_model = self.model.pin_model
        supports = np.zeros((len(self.contacts), pin_model.nv - _BASE_DOF))
        for row, joint in zip(supports, self.frames.joints):
            columns = [pin_model.joints[i].idx_v for i in pin_model.supports[int(joint)]
                       if i > 1]
            row[np.array(columns, dtype=np.intp) - _BASE_DOF] = 1.0
        return supports

    def _prepare_placing(self) -> None:
        """Prepare one product that places all contacts: joints' rows in, contacts' rows out."""
        in_joint = self.frames.placement_in_joint
        self._placing = np.zeros((4 * len(in_joint), 4 * len(in_joint)))
        for i, block in enumerate(in_joint):
            self._placing[4 * i:4 * i + 4, 4 * i:4 * i + 4] = block
        self._placed = (4 * self.frames.joints[:, np.newaxis] + np.arange(4)).ravel()

    def _prepare_carrying(self) -> None:
        """Note what each joint has to carry: a contact's wrench, or several, or none."""
        contacts, joints = self.supports.shape
        moved = [tuple(np.flatnonzero(column).tolist()) for column in self.supports.T]
        #: Which contacts are moved together by some joint.
        self._shared = sorted({members for members in moved if len(members) > 1})
        kinds = [*((i,) for i in range(contacts)), *self._shared, ()]
        self._own = np.array([
            joints * kinds.index(members) + joint for joint, members in enumerate(moved)], np.intp)
        # The last one, that of joints that move no contact, stays zero.
        self._burdens, self._force = np.zeros((len(kinds), 6)), np.zeros(3)
        self._write_burdens = partial(
            Struct(f'{6 * (len(kinds) - 1)}d').pack_into, self._burdens.data, 0)
        self._write_force = partial(Struct('3d').pack_into, self._force.data, 0)

    def _prepare_folding(self) -> None:
        model = self.model
        names = tuple(model.pin_model.names)[2:]
        zero = model.configuration(np.zeros(len(model.joint_names)))[7:]
        gears = np.zeros((len(model.joint_names), len(names)))
        for i in range(len(model.joint_names)):
            positions = np.zeros(len(model.joint_names))
            positions[i] = 1.0
            gears[i] = model.configuration(positions)[7:] - zero
        self._gears: Array | None = gears
        if model.joint_names == names:
            self._gears = None
        passive = set(model.config.passive_joints)
        self._actuated = np.array([float(name not in passive) for name in model.joint_names])
        self._is_driven = bool(self._actuated.all())

    def _find_limits(self) -> Array:
        pin_model = self.model.pin_model
        limits = np.array([
            pin_model.effortLimit[pin_model.joints[pin_model.getJointId(name)].idx_v]
            for name in self.model.joint_names])
        limits[(limits <= 0.0) | (limits >= _UNLIMITED)] = np.inf
        return limits


class MountedImu:
    """
    An IMU on the base or on any other link, and where it says that up is.

    Parameters
    ----------
    model, frame
        The robot, and the frame of the IMU.

    """

    def __init__(self, model: RobotModel, frame: str) -> None:
        frames = model.frames((frame,))
        self._joint, self._in_joint = int(frames.joints[0]), frames.placement_in_joint[0, :3]
        state = model.state(np.zeros(len(model.joint_names)))
        self._is_along_base = self._joint == ROOT and bool(np.allclose(
            state.placements_in_base(frames)[0, :3], np.eye(3), rtol=0.0, atol=1e-12))
        self.turn(np.array((0.0, 0.0, 0.0, 1.0)))

    def turn(self, quaternion: Array) -> None:
        """
        Take the IMU's orientation in the world (x, y, z, w), z up; the heading does not matter.

        Raises
        ------
        InputError
            If this is no rotation; the one before then stays.

        """
        self._up: list[float] = rotation_from_quaternion(quaternion)[2].tolist()

    def up_along_base(self, joints: Array) -> list[float]:
        """
        Return the unit vector against gravity along the axes of the base, three plain numbers.

        Parameters
        ----------
        joints
            Placements of all joints in the base, (joints, 4, 3).

        """
        if self._is_along_base:
            return self._up
        return list(combined(self._in_joint.dot(joints[self._joint]).tolist(), *self._up))


class GravityLoad:
    """
    A robot's weight in one posture: immutable; ask it for the efforts of any support.

    Attributes
    ----------
    up_parts
        Unit vector against gravity, base axes, as three plain numbers.
    force
        What carries the weight, base axes, as three plain numbers, N.
    gravity_forces
        Generalized gravity of all moving joints, mimicking and locked ones included, N m or N.
    columns
        Motion of each such joint as a twist about the base's origin, (6, joints).
    com_parts
        Centre of mass, base, as three plain numbers, m.
    placements
        Centres of the contacts (K, 4, 3; as `RobotState.placements_in_base`), base.
    rows
        The same as plain numbers.
    points
        Of these, where the centres are.

    """

    def __init__(self, gravity_model: GravityModel, com_parts: list[float], placements: Array,
                 up_parts: list[float]) -> None:
        self.gravity_model, self.up_parts, self.com_parts = gravity_model, up_parts, com_parts
        self.placements = placements
        self.rows: list[list[list[float]]] = placements.tolist()
        self.points: list[list[float]] = placements[:, 3].tolist()
        (x, y, z), weight = up_parts, gravity_model.weight
        self.force = weight * x, weight * y, weight * z
        gravity_model._write_force(*self.force)
        self.gravity_forces: Array = gravity_model._force.dot(gravity_model._com_rows)
        self.columns = gravity_model._columns.copy('F')

    @cached_property
    def up(self) -> Array:
        """Return the unit vector against gravity, base axes, (3,)."""
        return np.array(self.up_parts)

    @cached_property
    def com(self) -> Array:
        """Return the centre of mass, base, (3,), m."""
        return np.array(self.com_parts)

    @cached_property
    def held(self) -> Array:
        """Efforts (n,) that hold every joint while something holds the torso."""
        return self.gravity_model.fold(self.gravity_forces)

    def standing(self, shares: Shares, distribution: WrenchDistribution | None = None) -> Support:
        """
        Return the efforts on contacts.

        Parameters
        ----------
        shares
            How the contacts share the weight, shape (K,); scaled to sum 1.
        distribution
            Default: :class:`MinimumNorm`.

        Raises
        ------
        InputError
            If no contact has a share, or they cannot carry the weight.

        """
        values: list[float] = shares if isinstance(shares, list) else list(map(float, shares))
        total = sum(values)
        if len(values) != len(self.rows) or not (total > 0.0 and min(values) >= 0.0):
            names = ', '.join(contact.name for contact in self.gravity_model.contacts)
            raise InputError(f'shares {values} must be one number per contact ({names}), '
                             'none negative and not all zero')
        if total != 1.0:
            values = [value / total for value in values]
        return (distribution or MINIMUM_NORM).support(self, values)


class Support:
    """
    A robot on contacts at rest.

    Attributes
    ----------
    load
        What is carried.
    rows
        :attr:`wrenches_in_base` as plain numbers.
    efforts
        Of the measured joints, (n,), N m or N; passive ones zero.

    """

    def __init__(self, load: GravityLoad, shares: list[float], rows: Sequence[Wrench]) -> None:
        self.load, self._shares, self.rows = load, shares, rows
        model = load.gravity_model
        self.efforts = model.fold(model._forces_under(load, rows))

    @cached_property
    def wrenches_in_base(self) -> Array:
        """On the robot at each contact's centre along the axes of the base, (K, 6)."""
        return np.array(self.rows)

    @property
    def shares(self) -> Array:
        """How the contacts share the weight, (K,), sum 1."""
        return np.array(self._shares)

    @property
    def carrying(self) -> list[bool]:
        """Which contacts carry anything."""
        return list(map(bool, self._shares))  # none is negative

    @cached_property
    def wrenches_at_centres(self) -> Array:
        """On the robot at each contact's centre along the axes of the contact, (K, 6)."""
        return in_contact_axes(self.wrenches_in_base, self.load.placements)

    @property
    def wrenches(self) -> Array:
        """On the robot at each contact's origin along the axes of the contact, (K, 6)."""
        wrenches = self.wrenches_at_centres.copy()
        for wrench, contact in zip(wrenches, self.load.gravity_model.contacts):
            wrench[3:] += cross(np.array((*contact.centre, 0.0)), wrench[:3])
        return wrenches

    @property
    def residual(self) -> Array:
        """Wrench missing to equilibrium about the base's origin, (6,), N and N m."""
        force, moment = _weight_about_base(self.load)
        sum_of_forces = self.wrenches_in_base[:, :3].sum(axis=0)
        sum_of_moments = self.wrenches_in_base[:, 3:].sum(axis=0) + np.cross(
            self.load.placements[:, 3], self.wrenches_in_base[:, :3]).sum(axis=0)
        return np.concatenate((force - sum_of_forces, moment - sum_of_moments))


class MinimumNorm:
    """The weighted least wrenches in closed form, without limits; see the module."""

    def support(self, load: GravityLoad, shares: list[float]) -> Support:
        """Return the robot on these wrenches; see :class:`WrenchDistribution`."""
        (fx, fy, fz), (x, y, z) = load.force, load.com_parts
        return Support(load, shares, _carry(
            load.force, (y * fz - z * fy, z * fx - x * fz, x * fy - y * fx),
            load.points, shares, load.gravity_model.levers))


MINIMUM_NORM = MinimumNorm()


def carry(force: Array, moment: Array, points: Array, shares: Array, levers: Array) -> Array:
    """
    Return the weighted least wrenches that add up to a force and a moment.

    Parameters
    ----------
    force, moment
        Their sum (3,), N, and its moment (3,) about the origin, N m.
    points
        Where they act, (K, 3), m.
    shares, levers
        Weights (K,), sum 1, and L_k (K,), m.

    Raises
    ------
    InputError
        If all that carry are points on one line, about which nothing holds.

    """
    return np.array(_carry(force.tolist(), moment.tolist(), points.tolist(), shares.tolist(),
                           levers.tolist()))


def _carry(force: Sequence[float], moment: Sequence[float], points: Sequence[Sequence[float]],
           shares: Shares, levers: Sequence[float]) -> list[Wrench]:
    # Plain numbers: with so few contacts, a third of the time of arrays.
    if len(points) == 2:
        return _carry_on_two(force, moment, points, shares, levers)
    px = py = pz = 0.0
    for a, (x, y, z) in zip(shares, points):
        px += a * x
        py += a * y
        pz += a * z
    rows = []
    xx = yy = zz = xy = xz = yz = 0.0  # of D
    for a, (x, y, z), lever in zip(shares, points, levers):
        x, y, z, torque = x - px, y - py, z - pz, a * lever * lever
        ax, ay, az = a * x, a * y, a * z
        xx += torque + ay * y + az * z
        yy += torque + ax * x + az * z
        zz += torque + ax * x + ay * y
        xy -= ax * y
        xz -= ax * z
        yz -= ay * z
        rows.append((a, x, y, z, torque))
    (fx, fy, fz), (mx, my, mz) = force, moment
    ux, uy, uz = _solve_symmetric(
        (xx, yy, zz, xy, xz, yz),
        (mx - py * fz + pz * fy, my - pz * fx + px * fz, mz - px * fy + py * fx))
    return [(a * (fx + uy * z - uz * y), a * (fy + uz * x - ux * z),
             a * (fz + ux * y - uy * x), torque * ux, torque * uy, torque * uz)
            for a, x, y, z, torque in rows]


def _carry_on_two(force: Sequence[float], moment: Sequence[float],
                  points: Sequence[Sequence[float]], shares: Shares,
                  levers: Sequence[float]) -> list[Wrench]:
    """
    Do the same for two contacts, where D can be inverted by hand.

    With d from the first to the second, ``r_1 = -share_2 d``, ``r_2 = share_1 d``, L^2 the mean
    of L_k^2 and ``c = share_1 share_2``: ``D = (L^2 + c |d|^2) - c d d^T``, and so
    ``mu = (m + c d (d . m) / L^2) / (L^2 + c |d|^2)``.
    """
    (fx, fy, fz), (mx, my, mz), (a, b) = force, moment, shares
    (x, y, z), (dx, dy, dz) = points
    first, second = a * levers[0] * levers[0], b * levers[1] * levers[1]
    dx, dy, dz = dx - x, dy - y, dz - z
    x, y, z = x + b * dx, y + b * dy, z + b * dz
    both, lever = a * b, first + second
    stiffness = lever + both * (dx * dx + dy * dy + dz * dz)
    if not lever > 1e-12 * stiffness:
        raise InputError(_ON_ONE_LINE)
    mx, my, mz = mx - y * fz + z * fy, my - z * fx + x * fz, mz - x * fy + y * fx
    along = (dx * mx + dy * my + dz * mz) * both / lever
    ux, uy, uz = ((mx + along * dx) / stiffness, (my + along * dy) / stiffness,
                  (mz + along * dz) / stiffness)
    hx, hy, hz = (both * (uy * dz - uz * dy), both * (uz * dx - ux * dz),
                  both * (ux * dy - uy * dx))
    return [(a * fx - hx, a * fy - hy, a * fz - hz, first * ux, first * uy, first * uz),
            (b * fx + hx, b * fy + hy, b * fz + hz, second * ux, second * uy, second * uz)]


def _solve_symmetric(matrix: tuple[float, float, float, float, float, float],
                     rhs: tuple[float, float, float]) -> tuple[float, float, float]:
    """Solve D u = rhs by cofactors."""
    (xx, yy, zz, xy, xz, yz), (a, b, c) = matrix, rhs
    c00, c01, c02 = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    c11, c12, c22 = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    det = xx * c00 + xy * c01 + xz * c02
    if not det > 1e-12 * max(xx, yy, zz) ** 3:
        raise InputError(_ON_ONE_LINE)
    return ((c00 * a + c01 * b + c02 * c) / det, (c01 * a + c11 * b + c12 * c) / det,
            (c02 * a + c12 * b + c22 * c) / det)


def in_contact_axes(wrenches: Array, placements: Array) -> Array:
    """Turn wrenches (K, 6) from the axes of the base to those of contacts (K, 4, 3)."""
    # The rows 0-2 of a placement are R_contact_base.
    turned: Array = np.matmul(
        wrenches.reshape(-1, 2, 3), placements[:, :3].transpose(0, 2, 1)).reshape(-1, 6)
    return turned


def _weight_about_base(load: GravityLoad) -> tuple[Array, Array]:
    """Return force and moment about the base's origin that hold the weight."""
    force = np.array(load.force)
    return force, cross(load.com, force)


def _find_contacts(model: RobotModel, names: Iterable[str] | None, lever: float,
                   hand_lever: float) -> tuple[tuple[ContactPoint, ...], FrameSet]:
    config = model.config
    feet = [ContactPoint(name, foot.polygon, lever) for name, foot in config.feet.items()]
    # A hand may have the name of a foot ('left'): then it is 'left_hand'.
    hands = [ContactPoint(f'{name}_hand' if name in config.feet else name, (), hand_lever)
             for name in config.hands]
    frames = model.soles + model.frames(hand.frame for hand in config.hands.values())
    known = {contact.name: i for i, contact in enumerate([*feet, *hands])}
    wanted = tuple(config.feet) if names is None else tuple(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError('contact', name, known, config.name)
    chosen = [known[name] for name in wanted]
    contacts = tuple([*feet, *hands][i] for i in chosen)
    poses = [frames.poses_in_joint()[i] @ Pose(np.eye(3), np.array((*contact.centre, 0.0)))
             for i, contact in zip(chosen, contacts)]
    return contacts, FrameSet(wanted, [int(frames.joints[i]) for i in chosen], poses)
