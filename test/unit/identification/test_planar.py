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
"""The planar two-link leg: the paper's figures, random legs, what is printed wrong."""

import math
from pathlib import Path
import subprocess
import sys

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.wrench import ComLine
from biped_com_ros.core.identification.paper.planar import (
    LinkComs, reduced_determinant, solve_reduced, solve_two_link, two_link_from_lines,
    two_link_matrix, TwoLinkLeg)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

THETA = math.radians(10.0)
LEG = TwoLinkLeg(6.72, 0.95, 2.1, 0.1, 0.4, 0.0, 0.02632)
TRUE = LinkComs(0.0, 0.2, 0.0, 0.25)
EXAMPLE = Path(__file__).resolve().parents[3] / 'examples' / 'table_1.py'


def as_array(links):
    return np.array((links.r_b, links.l_b, links.r_c, links.l_c))


def test_poses_of_the_paper():
    np.testing.assert_allclose(1e3 * LEG.com(TRUE, 0, 0), (0.0, 208.482129), atol=1e-6)
    np.testing.assert_allclose(1e3 * LEG.com(TRUE, THETA, 0), (27.637965, 206.064120), atol=1e-6)
    np.testing.assert_allclose(1e3 * LEG.com(TRUE, 0, THETA), (9.331146, 207.665760), atol=1e-6)


def test_the_same_poses_in_the_robot_of_table_1():
    """The URDF has the waist at its true height, so l_c is 361.9 mm for one leg."""
    model = RobotModel.load('three_link')
    leg = TwoLinkLeg(13.44, 1.9, 3.26, 0.1, 0.4, 0.0, 0.02632)
    lumped = (2 * 1.16 * 0.25 + 0.94 * 0.5) / 3.26
    links = LinkComs(0.0, 0.2, 0.0, lumped)
    for posture, angles in (('a', (0, 0)), ('b', (THETA, 0)), ('c', (0, THETA))):
        state = model.state(model.posture(posture))
        sole = state.pose_in_base('l_sole')
        x, _, z = sole.inverse().apply(state.com_in_base)
        np.testing.assert_allclose((x, z), leg.com(links, *angles), atol=1e-9)
    one_leg = (1.16 * 0.25 + 0.94 * 0.5) / 2.1
    assert one_leg == pytest.approx(0.3619, abs=1e-4)


def test_determinants_and_condition():
    A = two_link_matrix(LEG, THETA, THETA)
    assert np.linalg.det(A) == pytest.approx(0.12093105, abs=1e-8)
    assert np.linalg.det(A) == pytest.approx(2 * 0.95**2 * 2.1**2 * (1 - math.cos(THETA)))
    assert np.linalg.cond(A) == pytest.approx(30.52, abs=0.01)
    assert reduced_determinant(LEG, THETA, THETA) == pytest.approx(-0.02984808, abs=1e-8)
    wrong = two_link_matrix(LEG, THETA, THETA, as_printed=True)
    assert np.linalg.det(wrong) != pytest.approx(np.linalg.det(A), rel=0.5)


@pytest.mark.parametrize('seed', range(10))
def test_random_legs(seed):
    rng = np.random.default_rng(seed)
    leg = TwoLinkLeg(*rng.uniform(0.5, 7.0, 3), 0.1, 0.4, 0.03, 0.02)
    links = LinkComs(*rng.uniform(-0.3, 0.3, 4))
    b, c = rng.uniform(0.1, 1.0, 2)
    com_b, com_c = leg.com(links, b, 0.0), leg.com(links, 0.0, c)
    found = solve_two_link(leg, com_b, com_c, b, c)
    np.testing.assert_allclose(as_array(found), as_array(links), atol=1e-9)
    printed = solve_two_link(leg, com_b, com_c, b, c, as_printed=True)
    assert np.abs(as_array(printed) - as_array(links)).max() > 1e-3


def test_the_listing():
    z_b, z_c = LEG.com(TRUE, THETA, 0)[1], LEG.com(TRUE, 0, THETA)[1]
    np.testing.assert_allclose(solve_reduced(LEG, z_b, z_c, THETA, THETA), (0.2, 0.25), atol=1e-9)


@pytest.mark.parametrize('seed', range(5))
def test_from_foot_wrenches_alone(seed):
    rng = np.random.default_rng(seed)
    links = LinkComs(*rng.uniform(-0.3, 0.3, 4))
    angles, lines = rng.uniform(-0.6, 0.6, (6, 2)), []
    for ankle, knee in angles:
        (x, z), beta = LEG.com(links, ankle, knee), rng.uniform(-0.05, 0.05)
        lines.append(ComLine(x - beta * z, beta, 0.0, 0.0))
    found = two_link_from_lines(LEG, *angles.T, lines)
    np.testing.assert_allclose(as_array(found), as_array(links), atol=1e-8)


def test_poses_without_information_are_refused():
    com = LEG.com(TRUE, THETA, 0)
    with pytest.raises(InputError, match='bend ankle and knee further'):
        solve_two_link(LEG, com, com, THETA, 0.0)
    with pytest.raises(InputError, match='bend ankle and knee further'):
        solve_reduced(LEG, 0.2, 0.2, THETA, 1e-9)
    with pytest.raises(InputError, match='bend ankle and knee further'):
        two_link_from_lines(LEG, [0.1] * 5, [0.2] * 5, [ComLine(0.0, 0.0, 0.0, 0.0)] * 5)
    with pytest.raises(InputError, match='four unknowns need as many poses'):
        two_link_from_lines(LEG, [0.1], [0.2], [ComLine(0.0, 0.0, 0.0, 0.0)])


def test_the_example_prints_the_papers_table():
    result = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True,
                            timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    for figure in ('27.637965   206.064120', '208.482129', '0.12093105', '30.52', '-0.02984808'):
        assert figure.split()[-1] in result.stdout
    assert '(38) corrected' in result.stdout
