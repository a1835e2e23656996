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
"""Laws of balance: signs, decay, limits."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.legs.balance import (
    BalanceSettings, bound_zmp, ComAdmittance, GroundTilt, MAX_SOLE_TURN, MAX_TILT_ACCELERATION,
    MAX_TILT_RATE, SoleAdmittance)
import numpy as np
import pytest

OMEGA, DT = 5.0, 0.005
SOLE = ((-0.05, -0.04), (0.1, -0.04), (0.1, 0.04), (-0.05, 0.04))


@pytest.mark.parametrize('gain, decays', ((2.0, True), (0.9, False)))
def test_the_desired_zmp_brings_the_dcm_back(gain, decays):
    """By xi' = omega (xi - p), with the reference at rest in the reference of the ZMP."""
    reference, dcm = np.array((0.02, -0.01)), np.array((0.03, -0.02))
    before = np.linalg.norm(dcm - reference)
    for _ in range(200):
        zmp = bound_zmp(reference, gain * (dcm - reference), SOLE, 0.005)
        dcm = dcm + DT * OMEGA * (dcm - zmp)
    after = np.linalg.norm(dcm - reference)
    assert (after < 0.01 * before) if decays else (after > before)


def test_the_desired_zmp_stays_inside_by_the_margin_and_in_the_direction_of_the_error():
    reference = np.array((0.02, 0.01))
    for angle in np.linspace(0.0, 6.0, 13):
        error = 0.3 * np.array((np.cos(angle), np.sin(angle)))
        x, y = bound_zmp(reference, 2.0 * error, SOLE, 0.01)
        assert -0.04 - 1e-12 <= x <= 0.09 + 1e-12 and abs(y) <= 0.03 + 1e-12
        assert max(abs(x - 0.025) - 0.065, abs(y) - 0.03) == pytest.approx(0.0, abs=1e-12)
        offset = np.array((x, y)) - reference
        assert offset @ error == pytest.approx(np.linalg.norm(offset) * 0.3)
    outside = np.array((0.2, 0.0))
    assert bound_zmp(outside, np.array((0.2, 0.0)), SOLE, 0.01) == pytest.approx(outside)


def pushed(com_gain):
    """Return ZMP and offset of a stiff robot that is pushed for 0.2 s, (N, 2)."""
    com, rows, rate = ComAdmittance(
        BalanceSettings(com_gain=com_gain, zmp_time=0.01), OMEGA), [], 0.0
    for k in range(800):
        push = 0.05 if 20 <= k < 60 else 0.0
        acceleration = (com.velocity[0] - rate) / DT
        rate = com.velocity[0]
        zmp = com.offset[0] - acceleration / OMEGA ** 2 + push
        dcm = com.offset + com.velocity / OMEGA
        goal = bound_zmp(np.zeros(2), 2.0 * dcm, SOLE, 0.01)
        com.update(DT, np.array((zmp, 0.0)) - goal)
        rows.append((zmp, com.offset[0]))
    return np.array(rows)


def test_a_robot_that_gives_way_has_its_zmp_nearer_to_the_reference_and_returns():
    stiff, soft = pushed(0.0), pushed(1.0)
    assert stiff[:, 0].max() == pytest.approx(0.05)
    assert soft[28:45, 0].max() < 0.045 and soft[20:60, 0].mean() < 0.041
    assert soft[:, 1].max() > 0.005  # along the push
    assert soft[-1] == pytest.approx((0.0, 0.0), abs=1e-4)


def test_the_shift_comes_to_rest_where_nothing_that_is_measured_counts():
    com = ComAdmittance(BalanceSettings(), OMEGA)
    for _ in range(10):
        com.update(DT, np.array((0.03, 0.0)))
    offset, velocity = com.offset[0], com.velocity[0]
    assert velocity > 0.02
    for _ in range(200):
        com.slow_down(0.001, 0.1)
    assert com.velocity[0] == pytest.approx(velocity * np.exp(-2.0))
    # The integral of the speed.
    assert com.offset[0] - offset == pytest.approx(
        0.1 * velocity * (1.0 - np.exp(-2.0)), rel=0.01)
    com.update(DT, np.zeros(2))  # no error is left from before
    assert com.velocity[0] == pytest.approx(velocity * np.exp(-2.0))


def test_shift_and_speed_of_the_centre_of_mass_are_limited_and_come_to_rest():
    settings = BalanceSettings()
    com = ComAdmittance(settings, OMEGA)
    for _ in range(1000):
        before = com.offset.copy()
        com.update(DT, np.array((0.3, -0.4)))
        assert np.linalg.norm(com.offset - before) <= DT * settings.max_com_speed + 1e-12
    assert com.offset == pytest.approx(settings.max_com_offset * np.array((0.6, -0.8)))
    assert com.velocity == pytest.approx((0.0, 0.0), abs=0.01)  # it is not wound up
    for _ in range(1000):
        com.fade(DT)
    assert com.offset == pytest.approx((0.0, 0.0), abs=1e-3)


def test_a_sole_gives_way_on_elastic_ground():
    """Lowering the toes (pitch) or the right edge (roll) moves the pressure there."""
    stiffness = 2.0
    sole, error = SoleAdmittance(BalanceSettings(sole_time=10.0)), np.array((0.03, 0.02))
    for _ in range(400):
        roll, pitch = sole.turn
        error = np.array((0.03 + stiffness * pitch, 0.02 - stiffness * roll))
        sole.update(0.01, error, 1.0)
    assert np.abs(error).max() < 0.005
    assert sole.rotation[2, 0] > 0.0 and sole.rotation[2, 1] > 0.0  # toes and left edge up
    for _ in range(2000):
        sole.update(0.01, np.array((1.0, 1.0)), 1.0)
    assert np.linalg.norm(sole.turn) == pytest.approx(MAX_SOLE_TURN)


@pytest.mark.parametrize('goal', ((0.0, 0.14), (-0.1, 0.05), (0.0, 0.01)))
def test_the_tilt_is_approached_smoothly_without_overshoot(goal):
    ground, goal = GroundTilt(BalanceSettings()), np.array(goal)
    rates = [np.zeros(2)]
    for _ in range(800):
        ground.update(DT, goal)
        rates.append(ground.rate.copy())
        assert ground.tilt @ goal <= 1.01 * (goal @ goal)
    assert np.linalg.norm(rates, axis=1).max() <= MAX_TILT_RATE + 1e-12
    changes = np.linalg.norm(np.diff(rates, axis=0), axis=1) / DT
    assert changes.max() <= MAX_TILT_ACCELERATION + 1e-9
    assert ground.tilt == pytest.approx(goal, abs=1e-3)


def test_small_tilts_can_count_as_level_and_large_ones_are_limited():
    ground = GroundTilt(BalanceSettings(tilt_tolerance=0.02))
    for _ in range(800):
        ground.update(DT, np.array((0.012, -0.012)))
    assert not ground.tilt.any()
    for _ in range(2000):
        ground.update(DT, np.array((3.0, 0.0)))
    assert ground.tilt == pytest.approx((0.2, 0.0))


def test_settings_are_checked():
    with pytest.raises(ConfigurationError, match='zmp_time'):
        BalanceSettings(zmp_time=0.0)
