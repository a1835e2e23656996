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
"""Margins of postures on a floor that may be tilted."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions, PoseSafety
from biped_com_ros.core.identification.poses.stances import Stances
from biped_com_ros.core.model.robot import RobotModel
import pytest

FEET = ('left', 'right')


def test_a_tilted_floor_needs_a_margin_that_grows_with_the_height():
    """The weight's line leans by the tilt: at the height of the CoM that is so many mm."""
    model = RobotModel.load('talos')
    stances = Stances(model)
    stand = model.posture('stand')
    state = model.state(stand)
    height = state.com_in_base[2] - state.placements_in_base(model.soles)[:, 3, 2].mean()
    there = stances.stability_margin(stand, FEET)
    for share, is_safe in ((0.98, True), (1.02, False)):
        tilt = math.atan(share * (there - 0.03) / height)
        safety = PoseSafety(StaticsRegressor(model), stances,
                            DesignOptions(margin=0.03, floor_tilt=tilt))
        if is_safe:
            assert safety.check(stand, FEET)[1] == pytest.approx(there)
        else:
            with pytest.raises(InputError, match='too near the edge'):
                safety.check(stand, FEET)
        # On the way half of the margin is enough, but all of the tilt.
        assert safety.is_safe_on_path(stand, FEET)
        steep = math.atan((there - 0.014) / height)
        way = PoseSafety(StaticsRegressor(model), stances,
                         DesignOptions(margin=0.03, floor_tilt=steep))
        assert not way.is_safe_on_path(stand, FEET)
