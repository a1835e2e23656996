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
Wang, Zhu and Han 2013: *Motion Modeling and Simulation of Biped Robot*, equation by equation.

Information Technology Journal. Its legs walk by :mod:`biped_com_ros.core.legs`.

=============== ===================================================================================
(1)             :meth:`Row.matrix`
(2)             :meth:`DenavitHartenberg.pose`; of the paper's leg :func:`wang_matrices`
(3)             inverses of :func:`wang_matrices`, where three are misprinted
theta_1-theta_6 :meth:`.Leg.inverse` of :func:`straight_chain`, in :func:`wang_angles`
(5)-(6)         :meth:`.Leg.jacobian_in_sole`
(7)             :func:`jacobian_column`
(8), (9)        :func:`zmp_by_links` of :func:`link_motion`; :func:`zmp_of_motion` about a foot
=============== ===================================================================================

What is printed wrong, in numbers: ``examples/wang_errata.py``. In (8) the paper prints "joint
thrusts" V_ix in x and V_iy in y. Correct is the rate of change of each link's angular momentum
about its own centre of mass, about the *other* axis: -L'_y in x and +L'_x in y. With these the
equation is exact; without them the links are point masses; (9) is the case of rest.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.geometry.wrench import cop_on_sole
from biped_com_ros.core.legs.kinematics import Chain
from biped_com_ros.core.model.frames import ROOT
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import ArrayLike
import pinocchio as pin

#: Order and signs of the paper's joints, which count from the foot; rolls and yaw are opposite.
ORDER = [5, 4, 3, 2, 1, 0]
SIGNS: Array = np.array((-1.0, 1.0, 1.0, 1.0, -1.0, -1.0))

_PARALLEL = 1e-9


# -- (1), (2): any chain of revolute joints


class Row(NamedTuple):
    """
    What stays constant of one joint.

    Attributes
    ----------
    offset, translation
        About and along the joint's axis: added to the joint's position, rad, and m.
    length, twist
        Along and about the common normal of this axis and the next one, m and rad.

    """

    offset: float
    translation: float
    length: float
    twist: float

    def matrix(self, position: float) -> Array:
        """Return the pose of the next frame in this one, (4, 4): Wang et al., (1)."""
        (c, s), (ct, st) = ((math.cos(a), math.sin(a))
                            for a in (position + self.offset, self.twist))
        return np.array(((c, -s * ct, s * st, self.length * c),
                         (s, c * ct, -c * st, self.length * s),
                         (0.0, st, ct, self.translation),
                         (0.0, 0.0, 0.0, 1.0)))


class Axis(NamedTuple):
    """Axis of a joint: a point on it, m, and its direction, in the root at zero positions."""

    point: Array
    direction: Array


class DenavitHartenberg:
    """
    The chain of joints from one link to another.

    A joint on the way up to the common ancestor turns the other way about its axis, which is
    counted the other way round instead: positions are those of the URDF throughout.

    Parameters
    ----------
    model
        The robot.
    start, end
        Links of its URDF.

    Attributes
    ----------
    joint_names
        From the start to the end.
    rows
        One for each joint.
    first_in_start, end_in_last
        Pose of the first frame in the start, of the end in the last frame.

    Raises
    ------
    UnknownNameError
        If the URDF has no such link.
    ConfigurationError
        If no joint is between them, or one that is not revolute.

    """

    def __init__(self, model: RobotModel, start: str, end: str) -> None:
        names, axes, start_pose, end_pose = _between(model, start, end)
        if not names:
            raise ConfigurationError(f"no joint is between links '{start}' and '{end}'")
        self.joint_names = names
        self.rows, first, last = _table(axes)
        self.first_in_start = start_pose.inverse() @ first
        self.end_in_last = last.inverse() @ end_pose

    def pose(self, positions: Sequence[float] | Array) -> Pose:
        """
        Return the pose of the end in the start: Wang et al., (2).

        Parameters
        ----------
        positions
            Of :attr:`joint_names`, shape (n,), rad.

        """
        if len(positions) != len(self.rows):
            raise ConfigurationError(
                f'{len(positions)} positions were given, {len(self.rows)} are needed: '
                f'{", ".join(self.joint_names)}')
        product = np.eye(4)
        for row, position in zip(self.rows, positions):
            product = product @ row.matrix(float(position))
        return self.first_in_start @ Pose(product[:3, :3], product[:3, 3]) @ self.end_in_last


def _between(model: RobotModel, start: str, end: str
             ) -> tuple[tuple[str, ...], list[Axis], Pose, Pose]:
    """
    Return the joints from one link to another and their axes, in the order of the way.

    Axes and the poses of both links are in the root, where the base need not be.
    """
    pin_model, links = model.pin_model, model.frames((start, end))
    up, down = (pin_model.supports[int(joint)].tolist() for joint in links.joints)
    common = sum(a == b for a, b in zip(up, down))
    data = pin_model.createData()
    pin.computeJointJacobians(pin_model, data, pin.neutral(pin_model))
    way = [(joint, -1.0) for joint in reversed(up[common:])] + [
        (joint, 1.0) for joint in down[common:]]
    names = tuple(str(pin_model.names[joint]) for joint, _ in way)
    placements = [data.oMi[int(joint)] for joint in links.joints]
    start_pose, end_pose = (Pose(placement.rotation, placement.translation) @ pose
                            for placement, pose in zip(placements, links.poses_in_joint()))
    return (names, [_axis(pin_model, data, joint, sign) for joint, sign in way],
            start_pose, end_pose)


def _axis(pin_model: pin.Model, data: pin.Data, joint: int, sign: float) -> Axis:
    columns = data.J[:, pin_model.joints[joint].idx_v:][:, :pin_model.joints[joint].nv]
    linear, angular = columns[:3, 0], columns[3:, 0]
    if columns.shape[1] != 1 or not math.isclose(float(angular @ angular), 1.0):
        raise ConfigurationError(f"joint '{pin_model.names[joint]}' is not revolute")
    # Velocity at the origin is -angular x point.
    return Axis(cross(angular, linear), sign * angular)


def _table(axes: list[Axis]) -> tuple[tuple[Row, ...], Pose, Pose]:
    """Return the rows, and the poses of the first and the last frame in the base."""
    origin, z = axes[0]
    x = _any_normal(z)
    if len(axes) > 1:
        x, origin, _ = _common_normal(axes[0], axes[1], origin, x)
    first, rows = _frame(x, z, origin), []
    for here, following in zip(axes, axes[1:]):
        normal, foot, next_foot = _common_normal(here, following, origin, x)
        z, next_z = here.direction, following.direction
        rows.append(Row(_angle(x, normal, z), float((foot - origin) @ z),
                        float((next_foot - foot) @ normal), _angle(z, next_z, normal)))
        x, origin = normal, next_foot
    rows.append(Row(0.0, 0.0, 0.0, 0.0))
    return tuple(rows), first, _frame(x, axes[-1].direction, origin)


def _common_normal(here: Axis, following: Axis, origin: Array, x: Array
                   ) -> tuple[Array, Array, Array]:
    """Return the direction of the common normal of two axes, and its ends on them."""
    across = cross(here.direction, following.direction)
    size, between = float(np.linalg.norm(across)), following.point - here.point
    if size < _PARALLEL:  # of many the one from where the frame is
        normal = following.point - origin
        normal = normal - (normal @ here.direction) * here.direction
        distance = float(np.linalg.norm(normal))
        return (normal / distance if distance > _PARALLEL else x), origin, origin + normal
    normal = across / size
    if float(between @ normal) < 0.0:
        normal = -normal
    along = float(cross(between, following.direction) @ across) / size ** 2
    along_next = float(cross(between, here.direction) @ across) / size ** 2
    return (normal, here.point + along * here.direction,
            following.point + along_next * following.direction)


def _any_normal(z: Array) -> Array:
    normal = cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    normal /= np.linalg.norm(normal)
    return normal


def _angle(a: Array, b: Array, axis: Array) -> float:
    """Return the angle from one direction to another about an axis across both, rad."""
    return math.atan2(float(cross(a, b) @ axis), float(a @ b))


def _frame(x: Array, z: Array, origin: Array) -> Pose:
    return Pose(np.column_stack((x, cross(z, x), z)), origin)


# -- (2), (3), (7): the paper's leg


class LegGeometry(NamedTuple):
    """
    Proportions of a leg.

    Attributes
    ----------
    ankle, shin, thigh, hip
        From the sole up to the ankle's axes, to the knee's, to the hip's centre and on to the
        joint of the hip yaw, m.

    """

    ankle: float
    shin: float
    thigh: float
    hip: float


WANG = LegGeometry(0.032, 0.075, 0.075, 0.030)
"""The paper's leg."""


def straight_chain(geometry: LegGeometry) -> Chain:
    """Return a leg of the paper's kind below a base at its hip yaw joint, without limits."""
    hip = np.array((0.0, 0.0, -geometry.hip))
    knee = hip - (0.0, 0.0, geometry.thigh)
    ankle = knee - (0.0, 0.0, geometry.shin)
    sole = Pose(np.eye(3), ankle - (0.0, 0.0, geometry.ankle))
    return Chain(hip, knee, ankle, sole, np.ones(6), np.full(6, -np.inf), np.full(6, np.inf))


def wang_angles(positions: Array) -> Array:
    """
    Return the paper's theta_1 to theta_6, from the foot, of joint positions from the base.

    Pitches are the same (the paper's x axis is -y of ROS and its chain has the opposite direction:
    two signs cancel), rolls and yaw are opposite. For axes along +z, +x, +y.
    """
    return SIGNS * positions[ORDER]


def positions_of_wang(theta: ArrayLike) -> Array:
    """Return the joint positions from the base, (6,), of the paper's theta_1 to theta_6."""
    return (SIGNS * np.asarray(theta, dtype=float))[ORDER]


def wang_matrices(theta: ArrayLike, geometry: LegGeometry = WANG) -> Array:
    """
    Return M_01 to M_56, of which (2) is the product: from the sole to the hip yaw, paper's axes.

    The inverses of the matrices in the corrected (3).

    Parameters
    ----------
    theta
        The paper's angles, shape (6,), rad.
    geometry
        Lengths, m.

    Returns
    -------
    numpy.ndarray
        Shape (6, 4, 4).

    """
    (c1, s1), (c2, s2), (c3, s3), (c4, s4), (c5, s5), (c6, s6) = (
        (math.cos(t), math.sin(t)) for t in np.asarray(theta, dtype=float).tolist())
    ankle, shin, thigh, hip = geometry
    end = (0.0, 0.0, 0.0, 1.0)
    return np.array((
        ((-c1, s1, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (s1, c1, 0.0, ankle), end),
        ((0.0, 0.0, -1.0, 0.0), (s2, c2, 0.0, 0.0), (c2, -s2, 0.0, 0.0), end),
        ((c3, -s3, 0.0, 0.0), (s3, c3, 0.0, shin), (0.0, 0.0, 1.0, 0.0), end),
        ((c4, -s4, 0.0, 0.0), (s4, c4, 0.0, thigh), (0.0, 0.0, 1.0, 0.0), end),
        ((0.0, 0.0, 1.0, 0.0), (s5, c5, 0.0, 0.0), (-c5, s5, 0.0, 0.0), end),
        ((-c6, s6, 0.0, 0.0), (0.0, 0.0, 1.0, hip), (s6, c6, 0.0, 0.0), end)))


def jacobian_column(transform: Array) -> Array:
    """
    Return a column of (7), (6,): velocity of the end along its axes for a unit rate of a joint.

    Parameters
    ----------
    transform
        ``[n o a p]`` of the end in a frame whose z axis is that of the joint, shape (4, 4).

    """
    rotation, p = transform[:3, :3], transform[:3, 3]
    return np.concatenate((rotation[1] * p[0] - rotation[0] * p[1], rotation[2]))


# -- (8), (9): the zero-moment point


def zmp_by_links(masses: ArrayLike, coms: ArrayLike, accelerations: ArrayLike | None = None,
                 momentum_rates: ArrayLike | None = None, height: float = 0.0,
                 gravity: float = GRAVITY, as_printed: bool = False) -> Array:
    """
    Return the zero-moment point on a level plane, Wang, Zhu and Han's equations (8) and (9).

    Parameters
    ----------
    masses
        Masses of the links, (n,), kg; (1,) for a single point mass.
    coms, accelerations
        Positions and accelerations of their centres of mass in a frame with z up, (n, 3), m and
        m/s^2. Without accelerations this is (9), the robot at rest.
    momentum_rates
        L'_i, rate of change of each link's angular momentum about its own centre of mass,
        (n, 3), N m; without them links are point masses.
    height
        Height of the plane, m.
    gravity
        m/s^2.
    as_printed
        Add the L'_i to the wrong axes, as (8) is printed; for reproducing the paper only.

    Returns
    -------
    array (3,)
        m; NaN where the ground would have to pull.

    """
    m, c = np.asarray(masses, dtype=float), np.asarray(coms, dtype=float)
    a = np.zeros_like(c) if accelerations is None else np.asarray(accelerations, dtype=float)
    rates = (np.zeros(3) if momentum_rates is None
             else np.asarray(momentum_rates, dtype=float).sum(axis=0))
    upward, z = m * (a[:, 2] + gravity), c[:, 2] - height
    force = upward.sum()
    if not force > 0.0:
        return np.full(3, np.nan)
    about = (rates[0], rates[1]) if as_printed else (-rates[1], rates[0])
    x = (upward @ c[:, 0] - (m * z) @ a[:, 0] + about[0]) / force
    y = (upward @ c[:, 1] - (m * z) @ a[:, 1] + about[1]) / force
    return np.array((x, y, height))


class LinkMotion(NamedTuple):
    """
    What :func:`zmp_by_links` needs of each moving body, in the frame of the base's pose.

    Attributes
    ----------
    masses
        Shape (n,), kg; what is fixed to a body counts to it.
    coms, accelerations
        Shape (n, 3), m and m/s^2.
    momentum_rates
        Shape (n, 3), N m.

    """

    masses: Array
    coms: Array
    accelerations: Array
    momentum_rates: Array


def link_motion(pin_model: pin.Model, q: Array, v: Array, a: Array) -> LinkMotion:
    """
    Return how each body of a Pinocchio model moves; for analysis, not for the loop.

    Parameters
    ----------
    pin_model
        With a floating base.
    q, v, a
        Configuration, velocity and acceleration, Pinocchio's.

    """
    data = pin.Data(pin_model)
    pin.forwardKinematics(pin_model, data, q, v, a)
    rows = []
    for joint in range(ROOT, pin_model.njoints):
        inertia, placement = pin_model.inertias[joint], data.oMi[joint]
        at_com = pin.SE3(np.eye(3), inertia.lever)
        twist, acceleration = at_com.actInv(data.v[joint]), at_com.actInv(data.a[joint])
        spin = twist.angular
        linear = acceleration.linear + np.cross(spin, twist.linear)
        rate = inertia.inertia @ acceleration.angular + np.cross(spin, inertia.inertia @ spin)
        rows.append((inertia.mass, placement.act(inertia.lever), placement.rotation @ linear,
                     placement.rotation @ rate))
    masses, coms, accelerations, rates = zip(*rows)
    return LinkMotion(*map(np.array, (masses, coms, accelerations, rates)))


def zmp_of_motion(model: RobotModel, positions: Array, velocities: Array, accelerations: Array,
                  stance: str, up: Array | None = None, gravity: float = GRAVITY) -> Array:
    """
    Return the zero-moment point that a motion about a fixed foot requires.

    Wang, Zhu and Han's equation (8), corrected, with all links' masses and inertias; exact. The
    motion of the base follows from the joints and the stance foot.

    Parameters
    ----------
    model
        The robot.
    positions, velocities, accelerations
        Of ``model.joint_names``, (n,); rad, rad/s, rad/s^2, or m.
    stance
        Name of the foot that stays where it is.
    up
        Unit vector against gravity in the sole's frame, (3,); default: the sole is level.
    gravity
        m/s^2.

    Returns
    -------
    array (3,)
        In the frame of the stance sole, on its plane z = 0, m. Under single support it must be
        inside the sole's polygon; of several soles it is on their common plane.

    Raises
    ------
    UnknownNameError
        If there is no such foot.
    InputError
        If values are missing, or the ground would have to pull.

    """
    direction = np.array((0.0, 0.0, 1.0)) if up is None else np.asarray(up, dtype=float)
    links = link_motion(model.pin_model, *_stance_motion(
        model, positions, velocities, accelerations, stance))
    forces = links.masses[:, np.newaxis] * (links.accelerations + gravity * direction)
    moment = (np.cross(links.coms, forces) + links.momentum_rates).sum(axis=0)
    force = forces.sum(axis=0)
    if not force[2] > 0.0:
        raise InputError(
            f'the motion requires {force[2]:.1f} N normal to the sole: the ground would have to '
            'pull, so there is no zero-moment point')
    return np.array((*cop_on_sole((*force, *moment)), 0.0))


def _stance_motion(model: RobotModel, positions: Array, velocities: Array, accelerations: Array,
                   stance: str) -> tuple[Array, Array, Array]:
    """
    Return Pinocchio's q, v and a of a robot with the world at its stance sole, which is at rest.

    The base's velocity and acceleration follow from ``J v = 0`` and ``J a + J' v = 0``.
    """
    pin_model, foot = model.pin_model, model.foot_index(stance)
    joint, in_joint = int(model.soles.joints[foot]), model.soles.poses_in_joint()[foot]
    sole_in_joint = pin.SE3(in_joint.rotation, in_joint.position)
    q, v, a = model.configuration(positions), model.velocity(velocities).copy(), model.velocity(
        accelerations).copy()
    data = pin.Data(pin_model)
    pin.forwardKinematics(pin_model, data, q)
    q[:7] = pin.SE3ToXYZQUAT((data.oMi[joint] * sole_in_joint).inverse() * data.oMi[ROOT])
    J = pin.computeJointJacobian(pin_model, data, q, joint)
    v[:6] = -np.linalg.solve(J[:, :6], J[:, 6:] @ v[6:])
    pin.forwardKinematics(pin_model, data, q, v, a)
    # The foot is at rest, so its spatial acceleration is its acceleration.
    a[:6] -= np.linalg.solve(J[:, :6], data.a[joint].vector)
    return q, v, a
