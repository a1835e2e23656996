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
"""Poses of links, joints and sensors in the base, and which links are beyond each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, BoolArray, IndexArray, Pose
from biped_com_ros.core.geometry.wrench import inverse_wrench_adjoint, wrench_adjoint
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.model.frames import FrameSet
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin


@dataclass(frozen=True)
class StaticsPoses:
    """
    Poses in the base for N configurations.

    Attributes
    ----------
    links, sensors
        Transposed rotation above position, (N, L, 4, 3) and (N, S, 4, 3), m.
    axes, origins
        Of the joints, (N, J, 3).
    gravity
        (N, 3), m/s^2.

    """

    links: Array
    axes: Array
    origins: Array
    sensors: Array
    gravity: Array

    def sensor_adjoints(self) -> Array:
        """Return what moves wrenches from the sensors to the base, (N, S, 6, 6)."""
        return wrench_adjoint(self.sensors[:, :, :3].swapaxes(2, 3), self.sensors[:, :, 3])


class StaticsKinematics:
    """
    Computes the poses of a robot.

    Parameters
    ----------
    model
        The robot.

    Attributes
    ----------
    joint_names
        Of all joints that move, measured or not.
    is_prismatic
        Which of them slide, (J,).

    """

    def __init__(self, model: RobotModel) -> None:
        self._model, pin_model = model, model.pin_model
        joints = range(2, pin_model.njoints)
        self.joint_names = tuple(pin_model.names[i] for i in joints)
        self._axes, self.is_prismatic = _joint_axes(pin_model)
        self._links = model.frames(model.link_names)
        self._sensor_frames = [s.frame for s in model.config.wrench_sensors.values()]
        self._frames = (
            self._links + FrameSet(self.joint_names, joints, [Pose.identity()] * len(joints))
            + model.frames(self._sensor_frames))
        self._frames_with: dict[str, FrameSet] = {'': self._frames}

    def links(self, positions: Array) -> Array:
        """Return the poses of the links, (L, 4, 3): transposed rotation above position."""
        return self._model.state(positions).placements_in_base(self._links)

    def poses(self, positions: Array, up: Array, up_frame: str,
              up_rotations: Array | None = None) -> StaticsPoses:
        """
        Return the poses in configurations.

        Parameters
        ----------
        positions
            Shape (N, n), rad or m.
        up
            Unit vector against gravity in `up_frame`, '' for the base, (3,).
        up_frame
            Link of the URDF.
        up_rotations
            Turn `up`, (N, 3, 3).

        """
        if up_frame not in self._frames_with:
            self._frames_with[up_frame] = self._frames + self._model.frames((up_frame,))
        frames = self._frames_with[up_frame]
        rows = np.array([self._model.state(q).placements_in_base(frames) for q in positions])
        L, J, S = len(self._model.link_names), len(self.joint_names), len(self._sensor_frames)
        joints = rows[:, L:L + J]
        ups = np.broadcast_to(up / np.linalg.norm(up), (len(rows), 3))
        if up_rotations is not None:
            ups = np.einsum('nij,nj->ni', up_rotations, ups)
        if up_frame:
            ups = np.einsum('nk,nki->ni', ups, rows[:, -1, :3])
        return StaticsPoses(
            links=rows[:, :L], axes=np.einsum('jk,njki->nji', self._axes, joints[:, :, :3]),
            origins=joints[:, :, 3], sensors=rows[:, L + J:L + J + S], gravity=-GRAVITY * ups)

    def projections(self, poses: StaticsPoses) -> tuple[Array, Array]:
        """Return what projects wrenches in the base on joints (N, J, 6), sensors (N, S, 6, 6)."""
        # A joint's torque is minus the component, about its axis, of what is beyond.
        is_prismatic = self.is_prismatic[:, np.newaxis]
        moment = -np.where(is_prismatic, 0.0, poses.axes)
        force = np.where(is_prismatic, -poses.axes, np.cross(poses.axes, poses.origins))
        to_sensors = inverse_wrench_adjoint(poses.sensor_adjoints())
        return np.concatenate((force, moment), axis=2), to_sensors


def _joint_axes(pin_model: pin.Model) -> tuple[Array, BoolArray]:
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
        IndexArray of the rows that are used, of all 6 + joints + 6 sensors.
    contact
        Which sensors are contacts, shape (sensors,).

    """

    through: Array
    rows: IndexArray
    contact: BoolArray


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
        child = {joint: link for pairs in model.children_of_links.values()
                 for joint, link in pairs}
        self._beyond_joints = np.array([self._beyond(child[name]) for name in joints])
        size = len(model.link_names) + len(self._sensor_links)
        self.beyond_sensors: Array = np.array(
            [self._beyond(link) for link in self._sensor_links]).reshape(-1, size)
        self._layouts: dict[bytes, RegressorLayout] = {}

    def contact_sensors(self, capture: Capture) -> BoolArray:
        """Return which sensors are those of standing feet, shape (S,)."""
        config = self._model.config
        standing = {sensor for foot, stands in zip(config.feet.values(), capture.in_contact)
                    if stands for sensor in foot.wrench_sensors}
        return np.array([name in standing for name in config.wrench_sensors], dtype=bool)

    def layout(self, contact: BoolArray) -> RegressorLayout:
        """Return the layout of captures in which these sensors (S,) are contacts."""
        key = contact.tobytes()
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(contact)
        return self._layouts[key]

    def _make_layout(self, contact: BoolArray) -> RegressorLayout:
        L = len(self._model.link_names)
        whole = np.ones((1, L + len(contact)))
        through = np.concatenate((whole, self._beyond_joints, self.beyond_sensors))
        through[:, L:] *= contact
        hidden = self.beyond_sensors[contact, :L].any(axis=0)
        through[:, :L][:, hidden] = 0.0
        return RegressorLayout(through, self._usable_rows(contact), contact)

    def _usable_rows(self, contact: BoolArray) -> IndexArray:
        """Leave out what the ground touches beyond a contact sensor: that is not measured."""
        model, L = self._model, len(self._model.link_names)
        below = {joint for link, stands in zip(self._sensor_links, contact) if stands
                 for name in model.subtree(link)
                 for joint, _ in model.children_of_links.get(name, ())}
        joints = [name in model.actuated_joint_names and name not in below
                  for name in model.joint_names]
        # An unloaded sensor below a contact sensor would measure the ground as well.
        under = self.beyond_sensors[contact, L:].any(axis=0)
        usable = np.concatenate((np.full(6, contact.any()), joints,
                                 np.repeat(~(contact | under), 6)))
        return np.flatnonzero(usable)

    def _beyond(self, link: str) -> Array:
        L, subtree = len(self._model.link_names), self._model.subtree(link)
        beyond = np.zeros(L + len(self._sensor_links))
        beyond[self._model.subtree_links(link)] = 1.0
        beyond[L:] = [sensor in subtree for sensor in self._sensor_links]
        return beyond
