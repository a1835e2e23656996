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
"""Samples of the IMU between instants of the joints."""

from biped_com_ros.core.state.imu_readings import ImuReadings
import numpy as np
import pytest

MS = 1_000_000
LEVEL = np.array((0.0, 0.0, 0.0, 1.0))


def test_intervals_cover_the_time_once_also_where_a_sample_is_late():
    rng = np.random.default_rng(3)
    readings, duration, angle = ImuReadings(), 0.0, 0.0
    stamps = np.sort(rng.integers(0, 1000 * MS, 400))
    late = set(rng.choice(400, 60, replace=False).tolist())
    arrivals = sorted((ns + (15 * MS if i in late else 0), ns) for i, ns in enumerate(stamps))
    for instant in range(0, 1000 * MS, 4 * MS):
        while arrivals and arrivals[0][0] <= instant:
            ns = arrivals.pop(0)[1]
            readings.add(ns, np.full(6, 1e-9 * ns), LEVEL)  # a rate of t
        for mean, dt, _ in readings.advance(instant):
            duration, angle = duration + dt, angle + mean[0] * dt
    assert duration == pytest.approx(0.996, abs=1e-9)
    assert angle == pytest.approx(0.5 * 0.996 ** 2, abs=0.01)


def test_a_clock_that_is_set_back_begins_anew():
    readings = ImuReadings()
    readings.add(0, np.ones(6), LEVEL)
    readings.advance(5000 * MS)
    readings.add(1000 * MS, np.full(6, 2.0), LEVEL)
    assert readings.advance(1000 * MS) == []
    (mean, dt, _), = readings.advance(1010 * MS)
    assert mean.tolist() == [2.0] * 6 and dt == pytest.approx(0.01)


@pytest.mark.parametrize('ms', [2, 10])
def test_what_happens_between_two_samples_is_as_uncertain_as_they_differ(ms):
    """A ninth of the squared difference for as long as it takes; nothing where none differs."""
    readings, rest = ImuReadings(), np.array((0.0, 0.0, 0.1, 0.0, 0.0, 9.8))
    found = []
    for k, change in enumerate((0.0, 0.0, 1.0, 1.0)):
        readings.add(k * ms * MS, rest + change * np.array((0.3, 0.0, 0.4, 0.0, 6.0, 8.0)), LEVEL)
        found += readings.advance(k * ms * MS)
    dt = 1e-3 * ms
    assert [dt for _, dt, _ in found] == pytest.approx([dt] * 3)
    assert [unknown for *_, unknown in found] == [
        (0.0, 0.0), pytest.approx((0.25 * dt / 9.0, 100.0 * dt / 9.0)), (0.0, 0.0)]


def test_samples_that_wait_for_more_than_two_seconds_are_dropped_and_counted():
    readings = ImuReadings()
    for k in range(300):
        readings.add(10 * k * MS, np.full(6, float(k)), LEVEL)
    assert readings.dropped == 99 and readings.latest[0] == 299.0
    assert readings.advance(3000 * MS)[0][0][0] >= 99.0
