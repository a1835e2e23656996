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
"""The fused CoM over gaps and restarts of the base."""

import math

from biped_com_ros.core.com.fusion import FusedCom
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pytest


@pytest.mark.parametrize('gap', [math.inf, 1.7e9, 0.0])
def test_a_restart_of_the_base_leaves_no_values_that_are_not_finite(gap):
    model = RobotModel.load('biped')
    fused, state = FusedCom(model), model.state(model.posture())
    still, wrenches = Twist(np.zeros(3), np.zeros(3)), np.zeros((2, 6))
    wrenches[:, 2] = 0.5 * 9.81 * model.mass
    for dt in (gap, *[0.002] * 30, gap, *[0.002] * 30):
        fused.update(dt, state, still, wrenches)
        assert np.isfinite(fused.now()).all()
    found = fused.filter
    assert np.isfinite(found.covariance).all() and (found.covariance.diagonal() >= 0.0).all()
    np.testing.assert_allclose(found.state[:3], state.com_in_base, atol=0.01)
    assert found.mass == pytest.approx(model.mass, rel=0.01)
