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
"""``base_footprint`` of REP-120."""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import footprint_pose, Pose
import numpy as np
import pinocchio as pin
import pytest

SOLES = np.array([[0.4, 0.3, -0.7], [0.1, -0.2, -0.6]])


@pytest.mark.parametrize('in_contact, position', [
    ((True, True), (0.25, 0.05, -0.7)),
    ((True, False), (0.4, 0.3, -0.7)),
    ((False, True), (0.1, -0.2, -0.6)),
    ((False, False), (0.25, 0.05, -0.7)),
])
def test_position_is_on_the_floor_between_the_feet_that_touch_it(in_contact, position):
    pose = footprint_pose(Pose.identity(), SOLES, in_contact)
    np.testing.assert_allclose(pose.position, position)


def test_level_with_the_heading_of_the_base():
    base = Pose.from_rpy((0.2, -0.3, 2.1), np.array([1.0, 2.0, 0.8]))
    rotation = footprint_pose(base, SOLES, (True, True)).rotation
    np.testing.assert_allclose(rotation, pin.rpy.rpyToMatrix(0.0, 0.0, 2.1), atol=1e-15)


def test_the_input_is_left_alone():
    soles = SOLES.copy()
    footprint_pose(Pose.identity(), soles, (False, False))
    np.testing.assert_array_equal(soles, SOLES)
