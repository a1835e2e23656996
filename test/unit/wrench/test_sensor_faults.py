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
"""Dead, frozen and turned sensors, told from feet that are lifted."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.wrench.sensor_faults import (
    RepeatedReadings, WeightBalance, WeightBalanceSettings)
import numpy as np
import pytest

WEIGHT, MS = 900.0, 1_000_000


@pytest.fixture
def balance():
    return WeightBalance(('left', 'right'), WEIGHT)


def played(balance, forces, seconds=1.0, start=0.0, by_hands=0.0):
    """Feed constant forces (shares of the weight) at 500 Hz; return the time of the problem."""
    for i in range(round(500 * seconds)):
        balance.update([WEIGHT * share for share in forces], round(1e9 * (start + 0.002 * i)),
                       WEIGHT * by_hands)
        if balance.problem:
            return 0.002 * i
    return None


@pytest.mark.parametrize(('forces', 'by_hands'), [
    ((0.5, 0.5), 0.0), ((1.0, 0.0), 0.0), ((0.97, 0.03), 0.0), ((0.35, 0.35), 0.0),
    ((0.0, 0.0), 0.0), ((0.2, 0.0), 0.0), ((0.6, 0.0), 0.3)])
def test_feet_that_stand_hang_are_lifted_or_have_other_support_are_credible(
        balance, forces, by_hands):
    assert played(balance, forces, by_hands=by_hands) is None
    assert not balance.doubtful


def test_a_foot_that_measures_nothing_while_the_other_does_not_carry_all_is_dead(balance):
    played(balance, (0.5, 0.5), 0.1)
    balance.update([0.5 * WEIGHT, 0.0], 100 * MS)
    assert balance.doubtful and not balance.problem, 'at once doubtful, not yet dead'
    assert played(balance, (0.5, 0.0), start=0.1) == pytest.approx(0.05, abs=0.003)
    assert balance.suspect == 1
    assert "'right' is dead" in balance.problem and 'together 50 % of' in balance.problem
    balance.update([0.5 * WEIGHT, 0.5 * WEIGHT], 1100 * MS)
    assert not balance.doubtful and not balance.problem and balance.suspect == -1


def test_a_short_dip_and_a_landing_are_no_fault(balance):
    for start in range(5):
        for forces, seconds, after in (((0.7, 0.0), 0.04, 0.0), ((1.6, 0.4), 0.2, 0.04),
                                       ((0.5, 0.5), 0.1, 0.24)):
            assert played(balance, forces, seconds, start + after) is None


def test_a_foot_that_froze_with_its_load_measures_too_much_with_the_other(balance):
    assert played(balance, (0.5, 1.0)) == pytest.approx(0.3, abs=0.003)
    assert 'more than the weight' in balance.problem and balance.suspect == -1


def test_settings_that_make_no_sense():
    with pytest.raises(ConfigurationError) as refusal:
        WeightBalanceSettings(missing=0.0)
    assert str(refusal.value) == (
        "'missing' is 0.0; it must be 0.01 to 1")


def test_a_reading_that_repeats_exactly_is_detected_and_noise_is_not():
    rng, frozen = np.random.default_rng(0), RepeatedReadings()
    reading = rng.standard_normal(6)
    for i in range(200):
        assert not frozen.update(reading + 1e-9 * rng.standard_normal(6), 2 * MS * i)
    found = [frozen.update(reading, 400 * MS + 2 * MS * i) for i in range(100)]
    assert found.index(True) == 50 and all(found[50:])
    assert frozen.since_ns == 400 * MS
    assert not frozen.update(reading + 1e-9, 600 * MS)
    frozen.update(reading, 602 * MS)
    assert not frozen.update(reading, 20_000 * MS), 'a gap is no repetition'
