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
"""The frames of a robot that its states place: links, soles, IMU, and centres of mass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from biped_com_ros.core.errors import UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.config import FootConfig, RobotConfig
from biped_com_ros.core.model.frames import FrameSet, PointSet
from biped_com_ros.core.model.pinocchio_model import parent_joint, pose_of
from biped_com_ros.core.model.urdf import LinkInertial
import numpy as np
import pinocchio as pin


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
    link_coms_in_link
        Their centres of mass, shape (L, 3), m.
    soles
        The soles as a :class:`FrameSet`, in the order of ``config.feet``.
    stance_frames
        The soles, then the link of the IMU that gives the base's orientation, if there is one:
        what locating the base needs.
    points
        The links' centres of mass, then the soles' origins, as a :class:`PointSet`.

    """

    def __init__(self, config: RobotConfig, pin_model: Any,
                 inertials: tuple[LinkInertial, ...]) -> None:
        self.config, self.pin_model = config, pin_model
        self.link_names = tuple(inertial.link for inertial in inertials)
        self.link_masses = np.array([inertial.mass for inertial in inertials])
        self.link_masses.setflags(write=False)
        self.link_coms_in_link = np.array([inertial.com_in_link for inertial in inertials])
        self.soles = self._make_soles()
        self.stance_frames = (
            self.soles + self.frames((config.imu.frame,)) if config.imus else self.soles)
        self.points = self._make_points()

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
                raise UnknownNameError(
                    'frame', name, self.frame_names, f"the URDF '{model.name}'")
        found = [model.frames[model.getFrameId(name, pin.FrameType.BODY)] for name in names]
        return FrameSet(
            names, map(parent_joint, found), [pose_of(f.placement) for f in found])

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
