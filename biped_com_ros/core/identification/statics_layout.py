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
"""Which links and sensors are beyond each cut of a robot, and which equations a capture gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures import Capture
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from numpy.typing import NDArray


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
        Indices of the rows that are used, of all 6 + joints + 6 sensors.
    contact
        Which sensors are contacts, shape (sensors,).

    """

    through: Array
    rows: NDArray[np.intp]
    contact: NDArray[np.bool_]


class StaticsTopology:
    """
    What is beyond the joints and the sensors of a robot.

    Parameters
    ----------
    model
        The robot.
    joints
        Names of all joints that move, measured or not.

    Attributes
    ----------
    beyond_sensors
        Which links, then sensors, are beyond each sensor, itself included, (S, L + S).

    """

    def __init__(self, model: RobotModel, joints: Sequence[str]) -> None:
        self._model = model
        self._sensor_links = [s.link or s.frame for s in model.config.wrench_sensors.values()]
        self._children = _children(model)
        child = {joint: link for pairs in self._children.values() for joint, link in pairs}
        self._beyond_joints = np.array([self._beyond(child[name]) for name in joints])
        size = len(model.link_names) + len(self._sensor_links)
        self.beyond_sensors: Array = np.array(
            [self._beyond(link) for link in self._sensor_links]).reshape(-1, size)
        self._layouts: dict[bytes, RegressorLayout] = {}

    def contact_sensors(self, capture: Capture) -> NDArray[np.bool_]:
        """Return which sensors are those of standing feet, shape (S,)."""
        config = self._model.config
        standing = {sensor for foot, stands in zip(config.feet.values(), capture.in_contact)
                    if stands for sensor in foot.wrench_sensors}
        return np.array([name in standing for name in config.wrench_sensors], dtype=bool)

    def layout(self, contact: NDArray[np.bool_]) -> RegressorLayout:
        """Return the layout of captures in which these sensors (S,) are contacts."""
        key = contact.tobytes()
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(contact)
        return self._layouts[key]

    def _make_layout(self, contact: NDArray[np.bool_]) -> RegressorLayout:
        L = len(self._model.link_names)
        whole = np.ones((1, L + len(contact)))
        through = np.concatenate((whole, self._beyond_joints, self.beyond_sensors))
        through[:, L:] *= contact
        hidden = self.beyond_sensors[contact, :L].any(axis=0)
        through[:, :L][:, hidden] = 0.0
        return RegressorLayout(through, self._usable_rows(contact), contact)

    def _usable_rows(self, contact: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Leave out what the ground touches beyond a contact sensor: that is not measured."""
        model, L = self._model, len(self._model.link_names)
        below = {joint for link, stands in zip(self._sensor_links, contact) if stands
                 for name in self._subtree(link) for joint, _ in self._children.get(name, ())}
        joints = [name in model.actuated_joint_names and name not in below
                  for name in model.joint_names]
        # An unloaded sensor below a contact sensor would measure the ground as well.
        under = self.beyond_sensors[contact, L:].any(axis=0)
        usable = np.concatenate((np.full(6, contact.any()), joints,
                                 np.repeat(~(contact | under), 6)))
        return np.flatnonzero(usable)

    def _beyond(self, link: str) -> Array:
        L, subtree = len(self._model.link_names), self._subtree(link)
        beyond = np.zeros(L + len(self._sensor_links))
        beyond[self._model.subtree_links(link)] = 1.0
        beyond[L:] = [sensor in subtree for sensor in self._sensor_links]
        return beyond

    def _subtree(self, link: str) -> set[str]:
        """Return the names of `link` and of all links, with or without mass, below it."""
        pending, subtree = [link], set()
        while pending:
            name = pending.pop()
            subtree.add(name)
            pending.extend(child for _, child in self._children.get(name, ()))
        return subtree


def _children(model: RobotModel) -> dict[str, list[tuple[str, str]]]:
    """Return joints and links below each link of the URDF."""
    children: dict[str, list[tuple[str, str]]] = {}
    for joint in urdf_tools.parse_urdf(model.urdf).findall('joint'):
        parent, child = joint.find('parent'), joint.find('child')
        if parent is not None and child is not None:
            children.setdefault(str(parent.get('link')), []).append(
                (str(joint.get('name')), str(child.get('link'))))
    return children
