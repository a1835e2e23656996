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
"""A robot for `gait_player` that stands on a slope, and whose soles have wrench sensors."""

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import quaternion_from_rotation, rotation_about
from geometry_msgs.msg import WrenchStamped
import numpy as np
from support.gait_rig import GaitRig, YAW
from support.messages import stamp_of, wrench_stamped

SLOPE = 0.06
"""Pitch of the ground, rad."""

DOWNHILL = rotation_about(2, YAW) @ rotation_about(1, SLOPE)
"""Attitude of a base that leans forward with its soles."""


class SlopeRig(GaitRig):
    """
    The robot stands on a slope, and its soles have wrench sensors.

    Parameters
    ----------
    model
        The robot.
    is_stiff
        Whether its base leans with the ground whatever the joints do; else its soles stay flat.
    parameters : Any
        Of the node.

    Attributes
    ----------
    silent
        'wrenches': those are not published; see GaitRig, too.

    """

    def __init__(self, model, is_stiff=True, **parameters):
        self._is_stiff = is_stiff
        super().__init__(model, **{'feedback_timeout': 8.0, 'follow_tolerance': 1.0, **parameters})
        self._wrenches = [
            self.peer.create_publisher(WrenchStamped, f'wrench_aggregator/{foot}/wrench', 10)
            for foot in model.config.feet]

    def _step(self):
        super()._step()
        force = 0.5 * GRAVITY * self.model.mass
        for publisher in self._wrenches if 'wrenches' not in self.silent else ():
            publisher.publish(wrench_stamped(
                stamp_of(round(1e9 * self.now)), 'sole', (0.0, 0.0, force, 0.0, 0.0, 0.0)))

    def attitude(self):
        """Return what the IMU measures, (x, y, z, w)."""
        return quaternion_from_rotation(self._rotation())

    def _rotation(self):
        if self._is_stiff:
            return DOWNHILL
        return DOWNHILL @ rotation_about(1, -self._sole_pitch(self.positions))

    @property
    def lean(self):
        """Return the pitch of the base, rad."""
        R_world_base = rotation_about(2, -YAW) @ self._rotation()
        return np.arctan2(R_world_base[0, 2], R_world_base[2, 2])

    def pitches(self, trajectory):
        """Return pitches of the left sole in the base at the points of a trajectory, rad."""
        return np.array([self._sole_pitch(q) for q in self.postures(trajectory)])

    def _sole_pitch(self, positions):
        row = self.model.state(positions).placements_in_base(self.model.soles)[0]
        return np.arctan2(row[2, 0], row[2, 2])
