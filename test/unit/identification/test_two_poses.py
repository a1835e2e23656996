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
"""Muscolo's procedures for captures of any robot: two poses, and the rank of n + 1."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.moments_from_com import rank_of
from biped_com_ros.core.identification.estimation.two_poses import best_pair, com_from_captures
import numpy as np
import pytest
from support.statics_data import NOISE, total_com, TrueRobot

THETA = math.radians(10.0)
FEET = ('left', 'right')


def lean(model, angle):
    """Return posture a with both ankles bent; everything above leans."""
    ankles = [name for name in model.joint_names if name.endswith('ankle_pitch')]
    return model.positions(dict.fromkeys(ankles, angle))


@pytest.fixture(scope='module')
def three_link():
    """Return the paper's robot, whose masses differ from the URDF except for the feet."""
    true = TrueRobot('three_link', seed=3, extra=0.0, com_sigma=0.0)
    return true, StaticsRegressor(true.model)


@pytest.mark.parametrize('angle', (THETA, -THETA, np.radians(5.0)))
def test_the_papers_robot_with_exact_sensors(three_link, angle):
    true, regressor = three_link
    captures = [true.capture(FEET, positions=lean(true.model, a)) for a in (0.0, angle)]
    found = com_from_captures(regressor, *captures, NOISE)
    assert found.tilt == pytest.approx(abs(angle), abs=1e-9)
    assert found.mass == pytest.approx(true.static.mass, rel=1e-9)
    for com, capture in zip(found.com_in_base, captures):
        expected = total_com(regressor, true.theta, capture.positions)
        np.testing.assert_allclose(com, expected, atol=1e-5)  # 0.01 mm
    assert found.heights[0] > found.heights[1]
    distance, angle_of = found.polar
    assert distance * np.cos(angle_of) == pytest.approx(found.l_w)


@pytest.mark.parametrize(('name', 'feet', 'expected'), [
    ('three_link', ('left',), 2 * 4 + 2), ('g1', ('left',), 2 * 29 + 2),
    ('g1', ('left', 'right'), 2 * 29 + 3)])
def test_rank_of_poses(name, feet, expected):
    """The paper's n + 1 poses on one foot suffice; one more combination on alternating feet."""
    true = TrueRobot(name, seed=1)
    regressor, n = StaticsRegressor(true.model), len(true.model.joint_names)
    captures = [true.capture((feet[i % len(feet)],)) for i in range(n + 8)]
    whole = rank_of(regressor, captures)
    assert (whole.rank, whole.possible) == (expected, expected)
    assert 'poses suffice' in whole.describe()
    few = rank_of(regressor, captures[:2 * len(feet)])
    assert few.rank <= 4 * len(feet) < few.possible == expected
    assert 'more poses are needed' in few.describe()


def test_what_cannot_be_solved_is_named(three_link):
    true, regressor = three_link
    a, near = (true.capture(FEET, positions=lean(true.model, angle)) for angle in (0.0, 0.005))
    b = true.capture(FEET, positions=lean(true.model, 0.1))
    with pytest.raises(InputError, match='a lean of 0.29 deg: lean further about the ankles'):
        com_from_captures(regressor, a, near, NOISE)
    left = true.capture(('left',), positions=lean(true.model, 0.0))
    with pytest.raises(InputError, match='on the same feet'):
        com_from_captures(regressor, a, left, NOISE)
    with pytest.raises(InputError, match='no two poses differ by a lean'):
        best_pair(regressor, [a, near], NOISE)
    first, second, found = best_pair(regressor, [a, near, b], NOISE)
    assert (first, second) in ((a, b), (near, b)) and 'r_w = ' in found.describe()
