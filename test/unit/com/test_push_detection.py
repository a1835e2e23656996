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

from biped_com_ros.core.com.push_detection import PushDetector
from biped_com_ros.core.com.settings import ComFilterSettings
import numpy as np
import pytest

DT, SETTINGS = 0.002, ComFilterSettings()
NOISE, EXPECTED = 1e-6, 4e-6  # m^2/s^2
BOUND = SETTINGS.push_sigmas * np.sqrt(NOISE + EXPECTED)


def detector(by_force=0.0, mean=0.0):
    """Return one whose thresholds are set."""
    made = PushDetector(SETTINGS)
    made.set_thresholds(np.full(3, mean), np.full(3, EXPECTED), np.full(3, NOISE),
                        np.full(3, by_force), DT, 1)
    return made


@pytest.mark.parametrize('axis', range(3))
@pytest.mark.parametrize('sign', (-1.0, 1.0))
def test_one_sample_beyond_its_threshold_is_a_push(axis, sign):
    for share in (0.99, 1.01):
        difference = np.where(np.arange(3) == axis, sign * share * 1.5 * BOUND, 0.0)
        assert detector().update(DT, tuple(difference.tolist())) == (share > 1.0)


def test_smaller_differences_are_a_push_when_they_last():
    made, each = detector(), 0.95 * BOUND
    first = [made.update(DT, (0.0, each, 0.0)) for _ in range(60)].index(True)
    assert 1 <= first <= 2.0 * 3.0 * SETTINGS.push_delay / DT
    # The same difference with changing signs, as noise has it, is none.
    made = detector()
    assert not any(made.update(DT, (0.0, sign * each, 0.0)) for sign in (1.0, -1.0) * 30)


def test_the_expected_mean_and_anything_without_thresholds_is_no_push():
    mean = 2.0 * BOUND
    assert detector().update(DT, (mean, mean, mean))
    made = detector(mean=mean)
    assert not made.update(DT, (mean, mean, mean))
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
    assert pushed(detector(), 0.0, 0.0, 0.0) == {}
    assert pushed(detector(), 0.0, -2.0 * BOUND, 0.0) == {
        0: 0.0, 1: pytest.approx((2.0 * BOUND) ** 2)}
    assert pushed(detector(), 0.0, 0.0, 2.0 * BOUND).keys() == {2}


def test_a_lasting_push_has_the_size_of_the_mean_innovation():
    made, each = detector(), 1.2 * BOUND
    for _ in range(200):
        made.update(DT, (each, 0.0, 0.0))
    assert pushed(made, 0.0, 0.0, 0.0)[0] == pytest.approx(each ** 2, rel=0.05)
    made.restart_mean()
    assert pushed(made, 0.0, 0.0, 0.0) == {}
