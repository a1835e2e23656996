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
Mass, centre of mass and potential energy of a group of joints' links, such as an arm.

Newman (2013), equations (3) and (4). Their derivatives by the joints of the group are the efforts
that hold it against gravity while the base rests, (5) to (10).
"""

from __future__ import annotations

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel, RobotState
import numpy as np


class LinkGroup:
    """
    The links that the joints of a group move.

    Parameters
    ----------
    model
        The robot.
    group
        Name of a group in its configuration.

    Attributes
    ----------
    link_names
        Of the links with mass that any joint of the group moves.
    mass
        Their mass, kg.

    Raises
    ------
    UnknownNameError
        If there is no such group.
    InputError
        If its joints move no mass.

    """

    def __init__(self, model: RobotModel, group: str) -> None:
        config = model.config
        if group not in config.groups:
            raise UnknownNameError('group', group, config.groups, config.name)
        joints = set(config.groups[group])
        moved = {link for children in model.children_of_links.values()
                 for joint, child in children if joint in joints for link in model.subtree(child)}
        self._indices = np.array(
            [i for i, name in enumerate(model.link_names) if name in moved], np.intp)
        self.link_names = tuple(model.link_names[i] for i in self._indices)
        masses = model.link_masses[self._indices]
        self.mass = float(masses.sum())
        if not self.mass > 0.0:
            raise InputError(f"the joints of group '{group}' of {config.name} move no mass")
        self._shares = masses / self.mass

    def com_in_base(self, state: RobotState) -> Array:
        """Return the centre of mass of the group in the base, shape (3,), m; equation (3)."""
        com: Array = self._shares @ state.link_coms_in_base[self._indices]
        return com

    def com_in_world(self, state: RobotState) -> Array:
        """Return the centre of mass of the group in the world, shape (3,), m; equation (3)."""
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
            m/s2.

        Returns
        -------
        float
            Zero where the group's centre of mass is level with the origin of the base.

        """
        return self.mass * gravity * float(up_in_base @ self.com_in_base(state))
