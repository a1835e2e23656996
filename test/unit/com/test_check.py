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

from types import SimpleNamespace

from biped_com_ros.core.com.check import (
    ComCheck, CONFIRMING_NS, LATEST_NS, RestMean, SETTLING_NS, WINDOW_NS)
import numpy as np
import pytest

COM = np.array((0.02, -0.01, 0.8))


def pressing_at(x, y, force=100.0):
    return np.array((0.0, 0.0, force, force * y, -force * x, 0.0))


def test_what_is_near_is_plausible():
    result = ComCheck(100.0, 0.005).result(pressing_at(0.022, -0.011), COM)
    assert result.plausible and result.distance == pytest.approx(np.hypot(0.002, 0.001))
    assert 'within 2.2 mm (forward +2.0, left -1.0)' in result.message


def test_a_difference_is_reported_with_the_remedy():
    result = ComCheck(100.0, 0.005).result(pressing_at(0.0, -0.01), COM)
    assert not result.plausible and result.distance == pytest.approx(0.02)
    assert 'forward -20.0' in result.message and 'tare' in result.message
    assert 'calibration.launch.xml' in result.message


@pytest.mark.parametrize(('velocity', 'late_ns', 'is_of_rest'), [
    ((0.0, 0.0, 0.0), 0, True), (None, 0, True), ((0.0, 0.0, 0.0), LATEST_NS, True),
    ((0.0, -0.02, 0.0), 0, False), ((0.0, 0.0, 0.0), LATEST_NS + 1, False),
    ((0.0, 0.0, 0.0), -LATEST_NS - 1, False)])
def test_who_moves_or_is_of_another_time_is_not_compared(velocity, late_ns, is_of_rest):
    mean_ns = 10 ** 18
    estimate = SimpleNamespace(
        velocity=velocity, located=SimpleNamespace(stamp_ns=mean_ns + late_ns))
    assert ComCheck.is_of_rest(estimate, mean_ns) == is_of_rest


def test_a_hanging_robot_is_not_compared():
    result = ComCheck(100.0, 0.005).result(pressing_at(0.3, 0.0, 40.0), COM)
    assert result.plausible and np.isnan(result.distance)
    assert 'carry less than half the weight' in result.message


def means_of(values, moved_ns, period_ns=10_000_000):
    """Return the means (time, value) of one number that is read every 10 ms from 10 s on."""
    mean, found = RestMean(1), []
    for i, value in enumerate(values):
        ns = 10_000_000_000 + i * period_ns
        if (got := mean.add(np.array([value]), ns, moved_ns(ns))) is not None:
            found.append((ns - 10_000_000_000, float(got[0])))
    return found


def test_rest_is_averaged_once_per_window():
    values = np.arange(303.0 + CONFIRMING_NS // 10_000_000)
    found = means_of(values, lambda ns: 0)
    assert [ns - CONFIRMING_NS for ns, _ in found] == [
        WINDOW_NS, 2 * WINDOW_NS + 10_000_000, 3 * WINDOW_NS + 20_000_000]
    np.testing.assert_allclose([mean for _, mean in found], [50.0, 151.0, 252.0])


def test_what_moves_or_has_just_moved_is_not_averaged():
    stopped = 10_400_000_000
    found = means_of(np.arange(300.0), lambda ns: min(ns, stopped))
    first = (stopped - 10_000_000_000 + SETTLING_NS) // 10_000_000
    assert found == [(first * 10_000_000 + WINDOW_NS + CONFIRMING_NS, first + 50.0)]
    assert not means_of(np.arange(250.0), lambda ns: ns - SETTLING_NS // 2)


def test_a_clock_that_is_set_back_begins_a_new_window():
    mean, one = RestMean(1), np.ones(1)
    assert mean.add(5.0 * one, 9 * WINDOW_NS, -WINDOW_NS) is None
    assert mean.add(one, WINDOW_NS, -WINDOW_NS) is None
    assert mean.add(one, 2 * WINDOW_NS, -WINDOW_NS) is None
    assert mean.add(one, 2 * WINDOW_NS + CONFIRMING_NS, -WINDOW_NS) == pytest.approx(1.0)


def test_a_mean_after_which_something_moves_is_dropped():
    """What begins to move accelerates the robot before its joints count as moving."""
    begins = 10_000_000_000 + WINDOW_NS + CONFIRMING_NS // 2
    assert not means_of(np.arange(250.0), lambda ns: ns if ns >= begins else 0)
    late = begins + CONFIRMING_NS
    assert len(means_of(np.arange(250.0), lambda ns: ns if ns >= late else 0)) == 1
