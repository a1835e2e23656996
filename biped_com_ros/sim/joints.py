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
"""Where the positions of a robot's joints are in MuJoCo's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from biped_com_ros.sim.description import Description
from biped_com_ros.sim.frames import Array
import numpy as np


class Follower(NamedTuple):
    """A joint at ``gain * leader + offset``; `leader` is an index, None for a locked joint."""

    qpos: int
    dof: int
    leader: int | None
    gain: float
    offset: float


class ModelJoints:
    """
    Maps joint positions to MuJoCo's ``qpos``, with the joints that mimic others.

    Parameters
    ----------
    model
        MuJoCo's.
    robot
        Robot with these joints.
    names
        Joints, in the order of the positions.
    locked
        Positions of locked joints, which MuJoCo's model does not have, by name.

    Attributes
    ----------
    qpos, dofs
        Addresses of the joints' positions and velocities, shape (n,).
    followers
        Joints that mimic others.

    """

    def __init__(self, model: Any, robot: Description, names: tuple[str, ...],
                 locked: Mapping[str, float]) -> None:
        joints = [model.joint(f'joint/{name}') for name in names]
        self.qpos = np.array([joint.qposadr[0] for joint in joints], dtype=int)
        self.dofs = np.array([joint.dofadr[0] for joint in joints], dtype=int)
        self.followers = []
        for name, (leader, gain, offset) in robot.mimics.items():
            if name not in locked:
                joint = model.joint(f'joint/{name}')
                self.followers.append(Follower(
                    joint.qposadr[0], joint.dofadr[0],
                    names.index(leader) if leader in names else None, gain,
                    offset + gain * locked.get(leader, 0.0)))

    def write(self, qpos: Array, positions: Array) -> None:
        """Write joint positions (n,), and those of the followers, to `qpos`."""
        qpos[self.qpos] = positions
        for follower in self.followers:
            leader = 0.0 if follower.leader is None else positions[follower.leader]
            qpos[follower.qpos] = follower.offset + follower.gain * leader
