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

from biped_com_ros.core.model.robot import RobotModel
import pytest
from support.slope_rig import SlopeRig


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
