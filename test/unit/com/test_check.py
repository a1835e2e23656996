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
START, PERIOD = 10_000_000_000, 10_000_000


@pytest.mark.parametrize(('x', 'y', 'force', 'plausible', 'distance', 'messages'), [
    (0.022, -0.011, 100.0, True, np.hypot(0.002, 0.001),
     ['within 2.2 mm (forward +2.0, left -1.0)']),
    (0.0, -0.01, 100.0, False, 0.02, ['forward -20.0', 'tare', 'calibration.launch.py']),
    (0.3, 0.0, 40.0, True, np.nan, ['carry less than half the weight'])],
    ids=['near', 'a difference has a remedy', 'a hanging robot is not compared'])
def test_the_pressure_is_below_the_com(x, y, force, plausible, distance, messages):
    wrench = np.array((0.0, 0.0, force, force * y, -force * x, 0.0))
    result = ComCheck(100.0, 0.8).result(wrench, COM)
    assert result.plausible == plausible
    assert result.values['distance [m]'] == pytest.approx(distance, nan_ok=True)
    for message in messages:
        assert message in result.message


@pytest.mark.parametrize(('height', 'plausible'), [(0.4, False), (1.0, True)])
def test_the_plausible_distance_grows_with_the_robot(height, plausible):
    """8 mm are 2 % of the height of a small robot's CoM, and 0.8 % of that of a large one."""
    wrench = np.array((0.0, 0.0, 100.0, 100.0 * COM[1], -100.0 * (COM[0] + 0.008), 0.0))
    assert ComCheck(100.0, height).result(wrench, COM).plausible == plausible


def test_after_a_calibration_no_calibration_is_the_remedy():
    wrench = np.array((0.0, 0.0, 100.0, 0.0, 0.0, 0.0))
    message = ComCheck(100.0, 0.8, is_calibrated=True).result(wrench, COM).message
    assert 'tare' in message and 'launch' not in message


@pytest.mark.parametrize(('velocity', 'late_ns', 'is_of_rest'), [
    ((0.0, 0.0, 0.0), 0, True), (None, 0, True), ((0.0, 0.0, 0.0), LATEST_NS, True),
    ((0.0, -0.02, 0.0), 0, False), ((0.0, 0.0, 0.0), LATEST_NS + 1, False),
    ((0.0, 0.0, 0.0), -LATEST_NS - 1, False)])
def test_who_moves_or_is_of_another_time_is_not_compared(velocity, late_ns, is_of_rest):
    located = SimpleNamespace(stamp_ns=10 ** 18 + late_ns)
    estimate = SimpleNamespace(velocity=velocity, located=located)
    assert ComCheck.is_of_rest(estimate, 10 ** 18) == is_of_rest


def means_of(values, moved_ns):
    """Return the means (time, value) of one number that is read every 10 ms from START on."""
    mean, found = RestMean(1), []
    for i, value in enumerate(values):
        ns = START + i * PERIOD
        if (got := mean.add(np.array([value]), ns, moved_ns(ns))) is not None:
            found.append((ns - START, float(got[0])))
    return found


def test_rest_is_averaged_once_per_window():
    found = means_of(np.arange(303.0 + CONFIRMING_NS // PERIOD), lambda ns: 0)
    assert [ns - CONFIRMING_NS for ns, _ in found] == [
        WINDOW_NS, 2 * WINDOW_NS + PERIOD, 3 * WINDOW_NS + 2 * PERIOD]
    np.testing.assert_allclose([mean for _, mean in found], [50.0, 151.0, 252.0])


def test_what_moves_or_has_just_moved_is_not_averaged():
    stopped = START + 40 * PERIOD
    found = means_of(np.arange(300.0), lambda ns: min(ns, stopped))
    first = (stopped - START + SETTLING_NS) // PERIOD
    assert found == [(first * PERIOD + WINDOW_NS + CONFIRMING_NS, first + 50.0)]
    assert not means_of(np.arange(250.0), lambda ns: ns - SETTLING_NS // 2)


def test_a_clock_that_is_set_back_begins_a_new_window():
    mean, one = RestMean(1), np.ones(1)
    for value, ns in ((5.0, 9 * WINDOW_NS), (1.0, WINDOW_NS), (1.0, 2 * WINDOW_NS)):
        assert mean.add(value * one, ns, -WINDOW_NS) is None
    assert mean.add(one, 2 * WINDOW_NS + CONFIRMING_NS, -WINDOW_NS) == pytest.approx(1.0)


def test_a_mean_after_which_something_moves_is_dropped():
    """What begins to move accelerates the robot before its joints count as moving."""
    begins = START + WINDOW_NS + CONFIRMING_NS // 2
    for late, count in ((0, 0), (CONFIRMING_NS, 1)):
        found = means_of(np.arange(250.0), lambda ns, at=begins + late: ns if ns >= at else 0)
        assert len(found) == count
