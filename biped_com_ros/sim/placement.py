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
"""Puts the simulated robot on its soles."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

from biped_com_ros.core.model.config import FootConfig
from biped_com_ros.sim.frames import Array, quaternion_wxyz
import mujoco
import numpy as np

Place = tuple[float, float, float]
"""x and y of the centre of the soles, m, and the heading of the base, rad."""


def put_on_soles(model: Any, data: Any, feet: Mapping[str, FootConfig], height: float,
                 place: Place, R_world_floor: Array, floor_point: Array) -> None:
    """
    Move the robot's root so that its soles are parallel to the floor on average.

    Parameters
    ----------
    model, data
        MuJoCo's; the joints are where they should be.
    feet
        Configuration by name.
    height
        Of the lowest corner of a sole above the floor, m.
    place
        Centre of the soles, and heading.
    R_world_floor, floor_point
        Orientation of the floor, (3, 3), and a point of it, (3,), m.

    """
    x, y, yaw = place
    data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    mujoco.mj_kinematics(model, data)
    data.qpos[3:7] = quaternion_wxyz(_level_rotation(data, feet, yaw))
    mujoco.mj_kinematics(model, data)
    data.qpos[:2] += (x, y) - sole_centre(data, feet)[:2]
    data.qpos[2] += height - lowest_corner(data, feet)
    from_point = data.qpos[:3] - (*floor_point[:2], 0.0)
    data.qpos[:3] = floor_point + R_world_floor @ from_point
    mujoco.mju_mulQuat(data.qpos[3:7], quaternion_wxyz(R_world_floor), data.qpos[3:7].copy())
    mujoco.mj_forward(model, data)


def place_of(data: Any, feet: Mapping[str, FootConfig]) -> Place:
    """Return where the robot is."""
    x, y, _ = sole_centre(data, feet).tolist()
    forward = data.site('base').xmat.reshape(3, 3)[:, 0]
    return x, y, math.atan2(forward[1], forward[0])


def lowest_corner(data: Any, feet: Mapping[str, FootConfig]) -> float:
    """Return the height of the lowest corner of the soles above the floor, m."""
    lowest = math.inf
    for name, foot in feet.items():
        site = data.site(f'sole/{name}')
        for corner in foot.polygon:
            lowest = min(lowest, site.xpos[2] + site.xmat.reshape(3, 3)[2, :2] @ corner)
    return lowest


def sole_centre(data: Any, feet: Mapping[str, FootConfig]) -> Array:
    """Return the mean of the origins of the soles, (3,), m."""
    return np.asarray(np.mean([data.site(f'sole/{name}').xpos for name in feet], axis=0))


def _level_rotation(data: Any, feet: Mapping[str, FootConfig], yaw: float) -> Array:
    """Return the root's rotation (3, 3) with level soles and the base heading to `yaw`."""
    base = data.site('base').xmat.reshape(3, 3)
    up = np.sum([data.site(f'sole/{name}').xmat.reshape(3, 3)[:, 2] for name in feet], axis=0)
    up /= np.linalg.norm(up)
    forward = base[:, 0] - up * (up @ base[:, 0])
    forward /= np.linalg.norm(forward)
    ahead, left = (math.cos(yaw), math.sin(yaw), 0.0), (-math.sin(yaw), math.cos(yaw), 0.0)
    return np.asarray(np.array((ahead, left, (0.0, 0.0, 1.0))).T @ np.array((
        forward, np.cross(up, forward), up)))
