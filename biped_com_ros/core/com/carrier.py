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
"""The link to which the unknown load is fixed."""

from __future__ import annotations

from typing import NamedTuple

from biped_com_ros.core.geometry.pose import Array, cross, Pose
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.model.frames import FrameSet, ROOT
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.state.stance import Twist
import numpy as np


class Carrier(NamedTuple):
    """
    Motion of the carrier in the world.

    Attributes
    ----------
    rotation, turning
        R_world_carrier, and its rate of change, 1/s, shape (3, 3).
    point, velocity
        Its centre of mass by the model, m, and the velocity of that, m/s; shape (3,).

    """

    rotation: Array
    turning: Array
    point: Array
    velocity: Array


class CarrierFrame:
    """
    Computes the motion of a link.

    Parameters
    ----------
    model
        The robot.
    link
        Its name; '' for the heaviest one above the base that is not part of a leg.

    Attributes
    ----------
    frames
        At its centre of mass.

    Raises
    ------
    UnknownNameError
        If there is no such link.

    """

    def __init__(self, model: RobotModel, link: str = '') -> None:
        name = link or trunk(model)
        frames = model.frames((name,))
        pose = frames.poses_in_joint()[0]
        if name in model.link_names:
            state = model.state(np.zeros(len(model.joint_names)))
            row = state.placements_in_base(frames)[0]
            com = state.link_coms_in_base[model.link_names.index(name)]
            pose = pose @ Pose(np.eye(3), row[:3].dot(com - row[3]))
        self.frames = FrameSet((name,), frames.joints.tolist(), (pose,))

    def motion(self, state: RobotState, twist: Twist) -> Carrier:
        """Return the motion of the link; `twist` is that of the base of `state` in the world."""
        placements = state.placements_in_base(self.frames)
        linear, angular = state.twists_in_base(self.frames, placements)[0]
        rows, R_world_base = placements[0], state.base.rotation
        velocity = cross(twist.angular, rows[3])
        velocity += twist.linear
        velocity += linear
        rotation = R_world_base.dot(rows[:3].T)
        turning = skew(R_world_base.dot(twist.angular + angular)).dot(rotation)
        return Carrier(rotation, turning, state.base.apply(rows[3]), R_world_base.dot(velocity))


def trunk(model: RobotModel) -> str:
    """Return the heaviest link that is not part of a leg, beyond the base if there is one."""
    leg_joints = {joint for sole in model.soles.joints.tolist()
                  for joint in model.pin_model.supports[sole].tolist() if joint > ROOT}
    joints = model.frames(model.link_names).joints.tolist()
    candidates = [
        (joint != ROOT, mass, name) for name, joint, mass in zip(
            model.link_names, joints, model.link_masses.tolist())
        if not leg_joints & set(model.pin_model.supports[joint].tolist())]
    return max(candidates)[2]
