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
"""Where a planned gait is in the world, and how far its CoM is off the model's."""

from __future__ import annotations

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose, yaw_of
from biped_com_ros.core.legs.gait import Gait
from biped_com_ros.core.model.robot_state import RobotState
import numpy as np


def heading_of(R_world_base: Array) -> Array:
    """Return the rotation (3, 3) about the vertical by the heading of the base."""
    return Pose.from_rpy((0.0, 0.0, yaw_of(R_world_base)), np.zeros(3)).rotation


def com_offset(R_world_base: Array, bias_in_world: Array, largest: float) -> Array:
    """
    Return the horizontal offset of the true CoM from the model's, in axes of the gait.

    Parameters
    ----------
    R_world_base
        Attitude of the base, shape (3, 3).
    bias_in_world
        Estimated error of the kinematic CoM, shape (3,), m.
    largest
        Largest offset that is accepted, m.

    Returns
    -------
    numpy.ndarray
        Forward and left, shape (2,), m.

    Raises
    ------
    InputError
        If the offset is larger.

    """
    offset: Array = (heading_of(R_world_base).T @ -bias_in_world)[:2]
    size = float(np.hypot(*offset))
    if size > largest:
        raise InputError(
            f'cannot walk: the measured CoM is {1e3 * size:.0f} mm from where the URDF has it '
            f'(max_com_offset {1e3 * largest:.0f} mm); calibrate, tare the sensors, or set '
            'use_fused_com to false')
    return offset


def gait_origin(state: RobotState, com_in_world: Array, gait: Gait) -> Pose:
    """
    Return the pose of a gait's frame in the world, from where the soles are in both.

    Parameters
    ----------
    state
        The robot with the attitude of its base in the world; its position is not used.
    com_in_world
        Its centre of mass, shape (3,), m.
    gait
        The gait, which begins with the soles where they are now.

    """
    R_world_base = state.base.rotation
    heading = heading_of(R_world_base)
    soles_from_com = state.placements_in_base(state.model.soles)[:, 3] - state.com_in_base
    middle_in_world = com_in_world + R_world_base @ soles_from_com.mean(axis=0)
    middle_in_gait = np.array((*gait.plan.soles(0.0)[:, :2].mean(axis=0), 0.0))
    return Pose(heading, middle_in_world - heading @ middle_in_gait)
