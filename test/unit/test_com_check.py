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
"""Centre of pressure against the model's centre of mass, at rest."""

from biped_com_ros.core.com_check import ComCheck
import numpy as np
import pytest

COM = np.array((0.02, -0.01, 0.8))


def pressing_at(x, y, force=100.0):
    return np.array((0.0, 0.0, force, force * y, -force * x, 0.0))


def test_what_is_near_is_plausible():
    verdict = ComCheck(100.0, 0.005).verdict(pressing_at(0.022, -0.011), COM, True)
    assert verdict.plausible and verdict.distance == pytest.approx(np.hypot(0.002, 0.001))
    assert 'within 2.2 mm (forward +2.0, left -1.0)' in verdict.message


def test_what_is_off_is_told_with_the_remedy():
    verdict = ComCheck(100.0, 0.005).verdict(pressing_at(0.0, -0.01), COM, True)
    assert not verdict.plausible and verdict.distance == pytest.approx(0.02)
    assert 'forward -20.0' in verdict.message and 'tare' in verdict.message
    assert 'calibration.launch.xml' in verdict.message


@pytest.mark.parametrize(('total', 'still', 'words'), (
    (pressing_at(0.3, 0.0), False, 'the robot moves'),
    (pressing_at(0.3, 0.0, 40.0), True, 'do not carry')))
def test_nothing_is_said_of_a_robot_that_moves_or_hangs(total, still, words):
    verdict = ComCheck(100.0, 0.005).verdict(total, COM, still)
    assert verdict.plausible and words in verdict.message and np.isnan(verdict.distance)
