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
"""Detection of pushes by innovations of the velocity."""

from __future__ import annotations

from biped_com_ros.core.com.push_detection import PushDetector
from biped_com_ros.core.com.settings import ComFilterSettings
import numpy as np
import pytest

DT, SETTINGS = 0.002, ComFilterSettings()
NOISE, EXPECTED = 1e-6, 4e-6  # m^2/s^2
SIGMA = np.sqrt(NOISE + EXPECTED)


def detector(by_force=0.0, mean=0.0):
    """Return one whose thresholds are set."""
    made = PushDetector(SETTINGS)
    made.set_thresholds(np.full(3, mean), np.full(3, EXPECTED), np.full(3, NOISE),
                        np.full(3, by_force), DT, 1)
    return made


def differences(axis, value):
    """Return a difference of velocities along one axis."""
    found = [0.0, 0.0, 0.0]
    found[axis] = value
    return tuple(found)


@pytest.mark.parametrize('axis', range(3))
@pytest.mark.parametrize('sign', (-1.0, 1.0))
def test_one_sample_beyond_its_threshold_is_a_push(axis, sign):
    limit = 1.5 * SETTINGS.push_sigmas * SIGMA
    assert not detector().update(DT, differences(axis, sign * 0.99 * limit))
    assert detector().update(DT, differences(axis, sign * 1.01 * limit))


def test_smaller_differences_are_a_push_when_they_last():
    made, each = detector(), differences(1, 0.95 * SETTINGS.push_sigmas * SIGMA)
    found = [made.update(DT, each) for _ in range(60)]
    first = found.index(True)
    assert 1 <= first <= 2.0 * 3.0 * SETTINGS.push_delay / DT
    # The same difference with changing signs, as noise has it, is none.
    made = detector()
    assert not any(made.update(DT, differences(1, sign * each[1])) for sign in (1.0, -1.0) * 30)


def test_the_expected_mean_is_no_push():
    mean = 2.0 * SETTINGS.push_sigmas * SIGMA
    assert detector().update(DT, (mean, mean, mean))
    assert not detector(mean=mean).update(DT, (mean, mean, mean))


def test_nothing_is_a_push_without_thresholds():
    made = detector()
    made.clear_thresholds()
    assert not made.update(DT, (100.0, 100.0, 100.0))


def test_every_sample_counts_while_an_unknown_force_exceeds_noise():
    at = (DT / 0.01) ** 2 * NOISE
    assert not detector(by_force=0.9 * at).update(DT, (0.0, 0.0, 0.0))
    assert detector(by_force=1.1 * at).update(DT, (0.0, 0.0, 0.0))


def test_the_velocity_change_follows_the_gain_of_the_filter():
    made = detector()
    made.update(DT, (0.001, 0.0, -0.002))
    gain = EXPECTED / (EXPECTED + NOISE)
    assert made.velocity_change == pytest.approx([0.001 * gain, 0.0, -0.002 * gain])


def pushed(made, *innovation):
    """Return the axes that are pushed, with the squared error."""
    return dict(made.pushed_axes(
        np.array(innovation), np.full(3, EXPECTED), np.full(3, NOISE), DT, 1))


def test_a_horizontal_push_counts_along_both_axes_and_not_upwards():
    large = 2.0 * SETTINGS.push_sigmas * SIGMA
    assert pushed(detector(), 0.0, 0.0, 0.0) == {}
    found = pushed(detector(), 0.0, -large, 0.0)
    assert found.keys() == {0, 1} and found[1] == pytest.approx(large ** 2)
    assert found[0] == 0.0
    assert pushed(detector(), 0.0, 0.0, large).keys() == {2}


def test_a_lasting_push_has_the_size_of_the_mean_innovation():
    made, each = detector(), 1.2 * SETTINGS.push_sigmas * SIGMA
    for _ in range(200):
        made.update(DT, (each, 0.0, 0.0))
    assert pushed(made, 0.0, 0.0, 0.0)[0] == pytest.approx(each ** 2, rel=0.05)
    made.restart_mean()
    assert pushed(made, 0.0, 0.0, 0.0) == {}
