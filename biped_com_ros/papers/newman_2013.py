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
Newman 2013: *Computation of Gravity Loading*, equation by equation.

The node computes the same faster, for all supports at once: :mod:`biped_com_ros.core.gravity`.

=============== ===================================================================================
control law     its droop without feedforward: :func:`droop`
(1)-(4)         :class:`LinkGroup`: mass, centre of mass, potential energy
(5), (7)-(10)   :func:`fixed_base_efforts`; online :meth:`.GravityLoad.fixed_base_efforts`
(6)             :func:`com_jacobian`
(11)-(12)       :func:`single_support_efforts`; online :meth:`.GravityLoad.on_contacts`
last section    the shift of the CoM over a foot: :mod:`biped_com_ros.core.legs.com_shift`
=============== ===================================================================================

In print the masses are missing in (6), ``J_c = sum m_i J_i / M``. In (11)-(12) the pelvis turns
when joints of the stance leg move; to freeze its orientation is wrong by up to hundreds of N m.
Double support, which the note leaves open: :mod:`biped_com_ros.core.gravity.contacts`.
"""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.robot import RobotModel, RobotState
import numpy as np
import pinocchio as pin


class LinkGroup:
    """
    The links that the joints of a group move, or all links.

    Parameters
    ----------
    model
        The robot.
    group
        Name of a group in its configuration; '' for the whole robot.

    Attributes
    ----------
    link_names
        Of the links with mass that any joint of the group moves.
    mass
        Their mass, kg; equation (1).

    Raises
    ------
    UnknownNameError
        If there is no such group.
    InputError
        If its joints move no mass.

    """

    def __init__(self, model: RobotModel, group: str = '') -> None:
        config, moved = model.config, set(model.link_names)
        if group:
            if group not in config.groups:
                raise UnknownNameError('group', group, config.groups, config.name)
            # Joints that follow another one belong to it, wherever they are.
            moves: BoolArray = np.any(model.coupling[:, model.group_index(group)], axis=1)
            joints = {str(name) for name, own in zip(
                list(model.pin_model.names)[2:], moves) if own}
            moved = {link for children in model.children_of_links.values()
                     for joint, child in children if joint in joints
                     for link in model.subtree(child)}
        self.model = model
        self._indices = np.array(
            [i for i, name in enumerate(model.link_names) if name in moved], np.intp)
        self.link_names = tuple(model.link_names[i] for i in self._indices)
        masses = model.link_masses[self._indices]
        self.mass = float(masses.sum())
        if not self.mass > 0.0:
            raise InputError(f"the joints of group '{group}' of {config.name} move no mass")
        self._shares = masses / self.mass

    def com_in_base(self, state: RobotState) -> Array:
        """Return the centre of mass of the group in the base, (3,), m; equations (2), (3)."""
        com: Array = self._shares @ state.link_coms_in_base[self._indices]
        return com

    def com_in_world(self, state: RobotState) -> Array:
        """Return the centre of mass of the group in the world, (3,), m; equation (3)."""
        com: Array = self._shares @ state.link_coms_in_world[self._indices]
        return com

    def potential_energy(self, state: RobotState, up_in_base: Array,
                         gravity: float = GRAVITY) -> float:
        """
        Return the potential energy of the group, J; equation (4).

        Parameters
        ----------
        state
            The robot.
        up_in_base
            Unit vector against gravity in the base, shape (3,).
        gravity
            m/s^2.

        Returns
        -------
        float
            Zero where the group's centre of mass is level with the origin of the base.

        """
        return self.mass * gravity * float(up_in_base @ self.com_in_base(state))

    def point_jacobians(self, positions: Array) -> Array:
        """Return J_i of (6): of each link's centre of mass, the base may move, (links, 3, nv)."""
        model, data = self.model.pin_model, pin.Data(self.model.pin_model)
        pin.computeJointJacobians(model, data, self.model.configuration(positions))
        coms, found = self.model.state(positions).link_coms_in_base[self._indices], []
        for joint, com in zip(self.model.frames(self.link_names).joints.tolist(), coms):
            jacobian = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)
            arm = com - data.oMi[joint].translation
            found.append(jacobian[:3] - skew(arm) @ jacobian[3:])
        return np.array(found)


def com_jacobian(group: LinkGroup, positions: Array, stance: str = '') -> Array:
    """
    Return the Jacobian of a group's centre of mass, (3, n), along the axes of the base; (6).

    Parameters
    ----------
    group
        The links.
    positions
        Of ``model.joint_names``, (n,), rad or m.
    stance
        Foot that stands: the base moves with the joints of its leg, (11). '': the base is held.

    """
    model, pin_model = group.model, group.model.pin_model
    links = group.model.link_masses[[model.link_names.index(name) for name in group.link_names]]
    jacobian = np.tensordot(links / group.mass, group.point_jacobians(positions), 1)
    if stance:
        data = pin.Data(pin_model)
        pin.computeJointJacobians(pin_model, data, model.configuration(positions))
        foot = int(model.soles.joints[model.foot_index(stance)])
        of_foot = pin.getJointJacobian(pin_model, data, foot, pin.LOCAL_WORLD_ALIGNED)
        jacobian = jacobian - jacobian[:, :6] @ np.linalg.solve(of_foot[:, :6], of_foot)
    of_joints: Array = jacobian[:, 6:] @ group.model.coupling
    return of_joints


def fixed_base_efforts(group: LinkGroup, positions: Array, up_in_base: Array,
                       gravity: float = GRAVITY) -> Array:
    """
    Return the efforts that hold a group while the base is held, (10): (n,), N m or N.

    Parameters
    ----------
    group, positions
        As for :func:`com_jacobian`.
    up_in_base
        Unit vector against gravity in the base, shape (3,).
    gravity
        m/s^2.

    """
    return group.mass * gravity * up_in_base @ com_jacobian(group, positions)


def single_support_efforts(model: RobotModel, positions: Array, up_in_base: Array, stance: str,
                           gravity: float = GRAVITY) -> Array:
    """
    Return the efforts of all joints while the robot stands on one foot, (12): (n,), N m or N.

    Parameters
    ----------
    model
        The robot.
    positions, up_in_base, gravity
        As for :func:`fixed_base_efforts`.
    stance
        The foot.

    """
    robot = LinkGroup(model)
    return robot.mass * gravity * up_in_base @ com_jacobian(robot, positions, stance)


def droop(efforts: Array, stiffness: Array | float) -> Array:
    """
    Return ``q_desired - q_actual`` of joints under position control without feedforward, rad.

    Parameters
    ----------
    efforts
        That gravity needs, (n,), N m.
    stiffness
        Gain K_p of the position controllers, N m/rad.

    """
    return np.asarray(efforts / np.asarray(stiffness))
