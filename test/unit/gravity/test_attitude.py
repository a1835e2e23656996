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
"""The attitude from an IMU: not upside down, no jumps."""

from __future__ import annotations

from biped_com_ros.core.gravity.attitude import UprightCheck
import numpy as np


def up(tilt):
    """Return the vertical in a base that leans forward."""
    return [float(np.sin(tilt)), 0.0, float(np.cos(tilt))]


def test_upside_down_is_not_plausible():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert check.update(up(0.9), 0)
    check.reset()
    assert not check.update(up(3.1), 0)
    assert 'tilted by 178 deg' in check.problem


def test_a_jump_is_not_plausible_until_it_settles():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert check.update(up(0.0), 0)
    assert check.update(up(0.01), 2_000_000)
    assert not check.update(up(0.3), 4_000_000)
    assert 'jumped by 16.6 deg' in check.problem
    assert not check.update(up(0.3), 400_000_000)
    assert check.update(up(0.3), 600_000_000)


def test_fast_but_possible_motion_is_plausible():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert all(check.update(up(0.5 * np.sin(15.0 * 0.002 * i)), 2_000_000 * i)
               for i in range(500))


def test_a_vertical_that_is_not_finite_is_not_plausible():
    check = UprightCheck(1.0, 10.0, 0.5)
    assert not check.update([float('nan')] * 3, 0)
    assert check.update(up(0.0), 2_000_000)
