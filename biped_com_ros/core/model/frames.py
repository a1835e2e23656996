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
"""Sets of frames and points, and those of a robot that its states place: links, soles, IMU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.geometry.pose import Array, IndexArray, Pose
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.model.config import FootConfig, RobotConfig
from biped_com_ros.core.model.pinocchio_model import parent_joint, pose_of
from biped_com_ros.core.model.urdf import LinkInertial
import numpy as np
import pinocchio as pin

ROOT = 1  # Pinocchio numbers the universe 0 and the floating base 1.


class FrameSet:
    """
    Frames looked up once, so that all their poses come out of one array operation.

    Attributes
    ----------
    names
        Their names, for messages.
    joints
        Index of the joint that carries each frame, shape (F,).
    placement_in_joint
        Shape (F, 4, 4): transposed homogeneous pose of each frame in its joint.
    twist_transfer
        Shape (F, 6, 6): a joint's twist (linear, angular) along its axes times this is the
        twist of the frame along the axes of the frame.

    """

    def __init__(self, names: Iterable[str], joints: Iterable[int],
                 poses_in_joint: Iterable[Pose]) -> None:
        self.names = tuple(names)
        self.joints: IndexArray = np.array(list(joints), dtype=np.intp)
        self.placement_in_joint = np.zeros((len(self.names), 4, 4))
        self.placement_in_joint[:, 3, 3] = 1.0
        for row, pose in zip(self.placement_in_joint, poses_in_joint):
            row[:3, :3] = pose.rotation.T
            row[3, :3] = pose.position
        R_joint_frame = self.placement_in_joint[:, :3, :3].transpose(0, 2, 1)
        # v + w x r, as a row times a matrix, is what the adjoint of wrenches does to columns.
        self.twist_transfer = wrench_adjoint(R_joint_frame, self.placement_in_joint[:, 3, :3])

    def __add__(self, other: FrameSet) -> FrameSet:
        """Return these frames followed by those of `other`."""
        return FrameSet(self.names + other.names, (*self.joints, *other.joints),
                        self.poses_in_joint() + other.poses_in_joint())

    def poses_in_joint(self) -> list[Pose]:
        """Return the pose of each frame in the joint that carries it."""
        return [Pose(row[:3, :3].T, row[3, :3]) for row in self.placement_in_joint]


class PointSet:
    """
    Points fixed to joints, so that all their positions come out of one array operation.

    Parameters
    ----------
    joints
        Index of the joint that carries each point, shape (P,).
    in_joints
        Position of each point in its joint, shape (P, 3), m.

    """

    def __init__(self, joints: IndexArray, in_joints: Array) -> None:
        self._joints = joints
        # Tiny products, one per point, take longer than all of it written out: each homogeneous
        # point times the row of its joint, entry by entry, and then one matrix that adds up x, y
        # and z; four columns multiply faster than three.
        homogeneous = np.concatenate((in_joints, np.ones((len(in_joints), 1))), axis=1)
        self._factors = np.repeat(homogeneous, 3, axis=1)  # (P, 12)
        self._terms = np.empty_like(self._factors)
        self._rows = self._terms.reshape(-1, 4, 3)  # the same memory
        self._sums = np.tile(np.eye(3, 4), (4, 1))

    def in_base(self, placements: Array) -> Array:
        """
        Return the points in the base from the joints' placements (joints, 4, 3).

        Returns
        -------
        numpy.ndarray
            Shape (P, 4): position, m, and a zero.

        """
        terms = self._terms
        # With 'clip' it writes there without a buffer; there is nothing to clip.
        placements.take(self._joints, 0, self._rows, 'clip')
        terms *= self._factors
        return terms.dot(self._sums)


class RobotFrames:
    """
    The frames of a robot, looked up once.

    Parameters
    ----------
    config
        The robot's configuration.
    pin_model
        Pinocchio's model.
    inertials
        The links with mass.

    Attributes
    ----------
    config, pin_model
        The same.
    link_names, link_masses
        URDF links with mass, also those behind fixed joints, and their masses, shape (L,), kg.
    mass
        Total mass, kg.
    link_coms_in_link
        Their centres of mass, shape (L, 3), m.
    soles
        The soles as a :class:`FrameSet`, in the order of ``config.feet``.
    stance_frames
        The soles, then the link of the IMU that gives the base's orientation, if there is one:
        what locating the base needs.
    points
        The links' centres of mass, then the soles' origins, as a :class:`PointSet`.
    com_part
        Index of the former among the points, without the fourth column.

    """

    def __init__(self, config: RobotConfig, pin_model: Any,
                 inertials: tuple[LinkInertial, ...]) -> None:
        self.config, self.pin_model = config, pin_model
        self.link_names = tuple(inertial.link for inertial in inertials)
        self.link_masses = np.array([inertial.mass for inertial in inertials])
        self.link_masses.setflags(write=False)
        self.mass = float(self.link_masses.sum())
        self.link_coms_in_link = np.array([inertial.com_in_link for inertial in inertials])
        self.soles = self._make_soles()
        self.stance_frames = (
            self.soles + self.frames((config.imu.frame,)) if config.imus else self.soles)
        self.points = self._make_points()
        self.com_part = np.s_[:len(self.link_names), :3]

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the URDF links."""
        return tuple(f.name for f in self.pin_model.frames if f.type == pin.FrameType.BODY)

    def frames(self, names: Iterable[str]) -> FrameSet:
        """
        Look up frames, which are URDF links, by name.

        Raises
        ------
        UnknownNameError
            If the URDF has no such link.

        """
        names, model = tuple(names), self.pin_model
        for name in names:
            if not model.existFrame(name, pin.FrameType.BODY):
                raise UnknownNameError('frame', name, self.frame_names, f"the URDF '{model.name}'")
        found = [model.frames[model.getFrameId(name, pin.FrameType.BODY)] for name in names]
        return FrameSet(names, map(parent_joint, found), [pose_of(f.placement) for f in found])

    def _make_soles(self) -> FrameSet:
        feet = self.config.feet
        links = self.frames(foot.sole for foot in feet.values())
        poses = [pose @ sole_in_link(foot)
                 for pose, foot in zip(links.poses_in_joint(), feet.values())]
        return FrameSet(feet, links.joints, poses)

    def _make_points(self) -> PointSet:
        links = self.frames(self.link_names)
        coms = [pose.apply(com) for pose, com in zip(
            links.poses_in_joint(), self.link_coms_in_link)]
        soles = [pose.position for pose in self.soles.poses_in_joint()]
        return PointSet(np.concatenate((links.joints, self.soles.joints)), np.array(coms + soles))


def sole_in_link(foot: FootConfig) -> Pose:
    """Return the pose of a foot's sole frame in the frame of link `sole`."""
    return Pose.from_rpy(foot.sole_rpy, np.array(foot.sole_origin))
