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
"""Feedback of gait_player over DDS: from IMU and wrenches to trajectories, on and off."""

from __future__ import annotations


from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import quaternion_from_rotation, rotation_about
from biped_com_ros.core.model.robot import RobotModel
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rclpy.time import Time
from support.gait_rig import GaitRig, YAW
from support.messages import imu, wrench_stamped

DOWNHILL = rotation_about(2, YAW) @ rotation_about(1, 0.06)
"""Attitude of a base that leans forward with its soles."""


class SlopeRig(GaitRig):
    """The robot stands on a slope, and its soles have wrench sensors."""

    def __init__(self, model, **parameters):
        self._wrenches = []
        super().__init__(model, feedback_timeout=8.0, follow_tolerance=1.0, **parameters)
        self._wrenches = [
            self.peer.create_publisher(WrenchStamped, f'wrench_aggregator/{foot}/wrench', 10)
            for foot in model.config.feet]
        self._imu, self._level_imu = _Discarding(), self._imu

    def _step(self):
        super()._step()
        stamp = Time(nanoseconds=round(1e9 * self.now())).to_msg()
        force = 0.5 * GRAVITY * self.model.mass
        for publisher in self._wrenches:
            publisher.publish(wrench_stamped(stamp, 'sole', (0.0, 0.0, force, 0.0, 0.0, 0.0)))
        if self._wrenches:
            self._level_imu.publish(imu(
                stamp, self.model.config.imu.frame, quaternion_from_rotation(DOWNHILL)))

    def pitches(self, trajectory):
        """Return pitches of the left sole in the base at the points of a trajectory, rad."""
        found = []
        for point in trajectory.points:
            positions = self.model.posture()
            positions[self.model.joint_index(trajectory.joint_names)] = point.positions
            row = self.model.state(positions).placements_in_base(self.model.soles)[0]
            found.append(np.arctan2(row[2, 0], row[2, 2]))
        return np.array(found)


class _Discarding:
    """Takes the place of the publisher of the level attitude."""

    def publish(self, message):
        """Publish nothing."""


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.mark.parametrize('feedback', (True, False))
def test_feedback_turns_the_soles_to_the_slope_and_ends_where_the_plan_ends(model, feedback):
    rig = SlopeRig(model, feedback=feedback)
    try:
        rig.stand()
        rig.until_it_may()
        rig.request('single_step')
        rig.state_is('walking')
        rig.pace = 1.0
        if not feedback:
            rig.until(lambda: rig.progress[-1] > 0.3, what='progress')
            assert len(rig.trajectories) == 1
            assert rig.pitches(rig.trajectories[0]) == pytest.approx(0.0, abs=1e-6)
            return
        rig.until(lambda: len(rig.trajectories) > 3 and rig.pitches(
            rig.trajectories[-1])[0] > 0.02, 40.0, 'soles that are turned to the ground')
        assert rig.pitches(rig.trajectories[-1])[-1] == pytest.approx(0.0, abs=1e-6)
    finally:
        rig.close()
