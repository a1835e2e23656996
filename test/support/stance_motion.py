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
Synthetic motion of the small robot whose base pose is known.

A sole is nailed to the world in some pose, the joints move along smooth curves, and the base is
where that puts it; the IMU's reading follows from the same poses by differences.
"""

from biped_com_ros.core.geometry.pose import Pose
import numpy as np
from scipy.spatial.transform import Rotation
from support.small_robot import small_robot

LEFT, RIGHT, BOTH, NONE = (True, False), (False, True), (True, True), (False, False)
H = 1e-6


class SwayingMotion:
    """The small robot on one nailed sole, its joints on sines; `stance` may change."""

    def __init__(self, seed, imu='imu_link', **changes):
        self.model = small_robot(**changes)
        self.imu = imu
        rng = np.random.default_rng(seed)
        count = len(self.model.joint_names)
        self.amplitude, self.rate = rng.uniform(0.1, 0.5, count), rng.uniform(0.5, 3.0, count)
        self.phase = rng.uniform(0.0, 6.0, count)
        self.nail(0, Pose(Rotation.from_euler('ZYX', (1.9, 0.05, -0.1)).as_matrix(),
                          np.array([0.7, -0.4, 0.3])))

    def joints(self, t):
        angle = self.rate * t + self.phase
        return (self.amplitude * np.sin(angle), self.amplitude * self.rate * np.cos(angle))

    def state(self, t):
        return self.model.state(*self.joints(t))

    def sole_in_base(self, t, foot):
        row = self.state(t).placements_in_base(self.model.soles)[foot]
        return Pose(row[:3].T, row[3])

    def nail(self, foot, sole_in_world):
        self.foot, self.sole_in_world = foot, sole_in_world

    def step_onto(self, foot, t):
        """Nail the other foot where it is at time t."""
        self.nail(foot, self.base(t) @ self.sole_in_base(t, foot))

    def base(self, t):
        return self.sole_in_world @ self.sole_in_base(t, self.foot).inverse()

    def R_world_imu(self, t):
        return (self.base(t) @ self.state(t).pose_in_base(self.imu)).rotation

    def gyro(self, t):
        turn = self.R_world_imu(t - H).T @ self.R_world_imu(t + H)
        return Rotation.from_matrix(turn).as_rotvec() / (2.0 * H)

    def base_twist(self, t):
        """Twist of the base along its own axes, by differences of its pose."""
        before, here, after = self.base(t - H), self.base(t), self.base(t + H)
        linear = here.rotation.T @ (after.position - before.position) / (2.0 * H)
        turn = Rotation.from_matrix(before.rotation.T @ after.rotation).as_rotvec()
        return np.array((linear, turn / (2.0 * H)))
