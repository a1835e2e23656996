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
"""Total centre of mass from two poses: the paper's figures, random bodies, and its refusals."""

import math

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.wrench import com_line, ComLine
from biped_com_ros.core.identification.paper.two_pose import (
    AnkleLink, com_from_two_poses, LineNoise, standard_deviations)
import numpy as np
import pytest


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


def test_from_wrenches_of_two_feet():
    """The paper's foot positions (0, -l, 0), (0, l, 0), forces shared unevenly."""
    ankle, mass, _, tilt = table_1_leg()
    wrenches = []
    for x in (0.0, 0.027637965):
        weight = 9.81 * mass
        left, right = 0.7 * weight, 0.3 * weight
        wrenches.append((0, 0, weight, 0.2 * (left - right), -x * weight, 0))
    found = com_from_two_poses(*map(com_line, wrenches), tilt, mass, ankle)
    np.testing.assert_allclose(found.com_a, (0.0, 0.08, 0.208482129), atol=1e-8)


def test_joint_torques_as_printed_bias_x():
    """The paper adds the sum of joint torques M2 in (3), (8)-(10): X moves by -M_Y2 / F_Z."""
    wrench, M2 = (0, 0, 600.0, 3.0, -12.0, 0), (0.0, 30.0, 0.0)
    moved = com_line(wrench, M2).at_height(0.8) - com_line(wrench).at_height(0.8)
    np.testing.assert_allclose(moved, (-30.0 / 600.0, 0.0, 0.0), atol=1e-12)


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


def test_error_of_the_tilt_dominates_as_in_the_formula():
    ankle, mass, lines, tilt = table_1_leg()
    sd = standard_deviations(*lines, tilt, mass, ankle, LineNoise(0.0, 0.0, 0.01))
    l_w = (0.95 * 0.2 + 2.1 * 0.65) / 3.05
    assert sd[1] == pytest.approx(l_w * 0.01 / math.tan(tilt), rel=1e-4)


@pytest.mark.parametrize('tilt', (0.0, 1e-3, -0.01, math.nan))
def test_no_tilt_is_an_error_not_a_number(tilt):
    ankle, mass, lines, _ = table_1_leg()
    with pytest.raises(InputError, match='lean further about the ankles'):
        com_from_two_poses(*lines, tilt, mass, ankle)


def test_a_mass_below_the_ankle_link_is_refused():
    ankle, _, lines, tilt = table_1_leg()
    with pytest.raises(InputError, match='must be above that of the ankle link'):
        com_from_two_poses(*lines, tilt, 6.0, ankle)
