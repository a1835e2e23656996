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
"""Rotations and frames, computed by MuJoCo: this is an oracle of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Transform:
    """Pose of a frame B in a frame A: rotation ``R_A_B`` (3, 3), position (3,) in m."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))

    @staticmethod
    def of_body(data: Any, body: int) -> Transform:
        """Return the pose of a body in the world."""
        return Transform(data.xmat[body].reshape(3, 3), data.xpos[body])

    def __matmul__(self, other: Transform) -> Transform:
        """Chain: (B in A) @ (C in B) is C in A."""
        return Transform(self.rotation @ other.rotation,
                         self.rotation @ other.position + self.position)

    def inverse(self) -> Transform:
        """Return the pose of A in B."""
        return Transform(self.rotation.T, -self.rotation.T @ self.position)

    def to_mujoco(self) -> dict[str, Array]:
        """Return `pos` and `quat` of MuJoCo's elements."""
        return {'pos': self.position, 'quat': quaternion_wxyz(self.rotation)}


def rotation_from_rpy(rpy: Any) -> Array:
    """Return ``Rz(yaw) Ry(pitch) Rx(roll)``, shape (3, 3)."""
    quaternion = np.empty(4)
    mujoco.mju_euler2Quat(quaternion, np.array(rpy, dtype=float), 'XYZ')
    return _matrix(quaternion)


def rotation_about(axis: Array, angle: float) -> Array:
    """Return the rotation (3, 3) by `angle` (rad) about a unit axis."""
    quaternion = np.empty(4)
    mujoco.mju_axisAngle2Quat(quaternion, axis, angle)
    return _matrix(quaternion)


def quaternion_wxyz(rotation: Array) -> Array:
    """Return the quaternion (w, x, y, z), MuJoCo's order, of a rotation (3, 3)."""
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion if quaternion[0] >= 0.0 else -quaternion


def relative(data: Any, first: int, second: int) -> Transform:
    """Return the pose of the second of two bodies in the first one."""
    return Transform.of_body(data, first).inverse() @ Transform.of_body(data, second)


def joints_between(model: Any, first: int, second: int) -> list[int]:
    """Return the joints between two bodies: up from the first one, then down to the second."""
    up, down = ancestors(model, first), ancestors(model, second)
    bodies = [*(body for body in up if body not in down),
              *(body for body in reversed(down) if body not in up)]
    return [int(model.body_jntadr[body]) for body in bodies if model.body_jntnum[body]]


def ancestors(model: Any, body: int) -> list[int]:
    """Return a body and all bodies above it, the world last."""
    chain = [body]
    while chain[-1]:
        chain.append(int(model.body_parentid[chain[-1]]))
    return chain


def _matrix(quaternion: Array) -> Array:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)
