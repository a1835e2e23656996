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
"""Muscolo et al. 2017: one leg in its plane, two poses, what is printed, and Table 1."""

import math
from pathlib import Path
import subprocess
import sys

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.wrench import com_line, ComLine
from biped_com_ros.papers.muscolo_2017 import (
    AnkleLink, com_from_two_poses, com_line_as_printed, leaning_com, LineNoise, LinkComs,
    solve_reduced, solve_two_link, standard_deviations, two_link_from_lines, TwoLinkLeg)
import numpy as np
import pytest

THETA = math.radians(10.0)
LEG = TwoLinkLeg(6.72, 0.95, 2.1, 0.1, 0.4, 0.0, 0.02632)
TRUE = LinkComs(0.0, 0.2, 0.0, 0.25)
EXAMPLE = Path(__file__).resolve().parents[3] / 'examples' / 'table_1.py'


def as_array(links):
    return np.array((links.r_b, links.l_b, links.r_c, links.l_c))


def test_poses_of_the_paper():
    com = {angles: LEG.com(TRUE, *angles) for angles in ((0, 0), (THETA, 0), (0, THETA))}
    np.testing.assert_allclose(1e3 * np.array(list(com.values())), (
        (0.0, 208.482129), (27.637965, 206.064120), (9.331146, 207.665760)), atol=1e-6)
    z_b, z_c = com[THETA, 0][1], com[0, THETA][1]  # as in the listing
    np.testing.assert_allclose(solve_reduced(LEG, z_b, z_c, THETA, THETA), (0.2, 0.25), atol=1e-9)


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


@pytest.mark.parametrize(('solve', 'arguments', 'problem'), [
    (solve_two_link, (LEG.com(TRUE, THETA, 0), LEG.com(TRUE, THETA, 0), THETA, 0.0),
     'bend ankle and knee further'),
    (solve_reduced, (0.2, 0.2, THETA, 1e-9), 'bend ankle and knee further'),
    (two_link_from_lines, ([0.1] * 5, [0.2] * 5, [ComLine(0.0, 0.0, 0.0, 0.0)] * 5),
     'bend ankle and knee further'),
    (two_link_from_lines, ([0.1], [0.2], [ComLine(0.0, 0.0, 0.0, 0.0)]),
     'four unknowns need as many poses')])
def test_poses_without_information_are_refused(solve, arguments, problem):
    with pytest.raises(InputError, match=problem):
        solve(LEG, *arguments)


def test_the_example_prints_the_papers_table():
    result = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True,
                            timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    for figure in ('27.637965   206.064120', '208.482129', '0.12093105', '30.52', '-0.02984808'):
        assert figure.split()[-1] in result.stdout
    assert '(38) corrected' in result.stdout


def table_1_leg():
    """Return ankle link, mass, and lines of the paper's poses a and b (one leg, 10 deg)."""
    lines = [ComLine(x / 1000.0, 0.0, 0.2, 0.0) for x in (0.0, 27.637965)]
    return AnkleLink(6.72, 0.0, 0.02632, 0.1), 9.77, lines, math.radians(10.0)


def random_body(rng):
    """Return ankle link, leaning mass, and its centre of mass from the ankle (r, l)."""
    ankle = AnkleLink(rng.uniform(1, 9), rng.uniform(-0.1, 0.1), rng.uniform(0.01, 0.1), 0.12)
    return ankle, rng.uniform(20, 60), rng.uniform(-0.1, 0.1), rng.uniform(0.3, 0.9)


def truth(ankle, m_w, r, height, tilt):
    """Return the total centre of mass (x, z), by rotating the leaning part about the ankle."""
    c, s = math.cos(tilt), math.sin(tilt)
    leaning = np.array(((c, s), (-s, c))) @ (r, height) + (0.0, ankle.height)
    return (ankle.mass * np.array((ankle.r, ankle.l)) + m_w * leaning) / (ankle.mass + m_w)


def test_table_1():
    ankle, mass, lines, tilt = table_1_leg()
    found = com_from_two_poses(*lines, tilt, mass, ankle)
    np.testing.assert_allclose(1e3 * found.com_a, (0.0, 200.0, 208.482129), atol=1e-5)
    np.testing.assert_allclose(1e3 * found.com_b, (27.637965, 200.0, 206.064120), atol=1e-5)
    assert found.r_w == pytest.approx(0.0, abs=1e-8)
    assert leaning_com(found.com_a[0], found.com_a[2], mass, ankle) == pytest.approx(
        (found.r_w, found.l_w), abs=1e-12)
    assert found.l_w == pytest.approx((0.95 * 0.2 + 2.1 * 0.65) / 3.05, abs=1e-8)


@pytest.mark.parametrize('seed', range(10))
def test_random_bodies_on_sloping_frames(seed):
    """The lines have slopes, as in a frame that is not along gravity; level_ground is off."""
    rng = np.random.default_rng(seed)
    ankle, m_w, r, height = random_body(rng)
    tilt = rng.choice((-1, 1)) * rng.uniform(0.1, 0.5)
    lines, coms = [], []
    for angle in (0.0, tilt):
        x, z = truth(ankle, m_w, r, height, angle)
        beta, delta = rng.uniform(-0.05, 0.05, 2)
        lines.append(ComLine(x - beta * z, beta, 0.3 - delta * z, delta))
        coms.append((x, 0.3, z))
    found = com_from_two_poses(*lines, tilt, m_w + ankle.mass, ankle, level_ground=False)
    np.testing.assert_allclose((found.com_a, found.com_b), coms, atol=1e-9)
    assert (found.r_w, found.l_w) == pytest.approx((r, height))
    biased = com_from_two_poses(*lines, tilt, m_w + ankle.mass, ankle)
    assert abs(biased.l_w - height) > 1e-4  # the slopes do matter


def test_forcing_beta_to_zero_pays():
    """0.5 N and 0.02 N m at 10 deg, a 64 kg robot: several times less uncertain."""
    ankle, tilt = AnkleLink(4.0, 0.02, 0.05, 0.12), math.radians(10.0)
    lines = [ComLine(truth(ankle, 60.0, 0.01, 0.75, angle)[0], 0.0, 0.0, 0.0)
             for angle in (0.0, tilt)]
    noise = LineNoise.of_sensors(0.5, 0.02, 9.81 * 64.0)
    free, level = (standard_deviations(*lines, tilt, 64.0, ankle, noise, level_ground)[1]
                   for level_ground in (False, True))
    assert 0.005 < free < 0.010 and level < 0.0015 and free > 5.0 * level


def test_standard_deviations_are_those_of_samples():
    ankle, mass, lines, tilt = table_1_leg()
    noise = LineNoise(2e-4, 1e-3, math.radians(0.1))
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(4000):
        draws = rng.normal(size=9) * ([noise.alpha, noise.beta] * 4 + [noise.tilt])
        noisy = [ComLine(*(np.array(line) + draw))
                 for line, draw in zip(lines, (draws[:4], draws[4:8]))]
        found = com_from_two_poses(*noisy, tilt + draws[8], mass, ankle, level_ground=False)
        samples.append((found.r_w, found.l_w, *found.com_a, *found.com_b))
    expected = standard_deviations(*lines, tilt, mass, ankle, noise, level_ground=False)
    np.testing.assert_allclose(np.std(samples, axis=0), expected, rtol=0.06)


@pytest.mark.parametrize(('tilt', 'mass', 'problem'), [
    *((tilt, 9.77, 'lean further about the ankles') for tilt in (0.0, 1e-3, -0.01, math.nan)),
    (math.radians(10.0), 6.0, 'must be above that of the ankle link')])
def test_what_has_no_solution_is_an_error_not_a_number(tilt, mass, problem):
    ankle, _, lines, _ = table_1_leg()
    with pytest.raises(InputError, match=problem):
        com_from_two_poses(*lines, tilt, mass, ankle)


def test_joint_torques_as_printed_bias_the_line():
    wrench = [0.0, 0.0, 500.0, 5.0, -10.0, 0.0]
    as_printed = com_line_as_printed(wrench, [15.0, 20.0, 3.0])
    assert as_printed.alpha - com_line(wrench).alpha == pytest.approx(-20.0 / 500.0)
    assert as_printed.gamma - com_line(wrench).gamma == pytest.approx(15.0 / 500.0)
