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
"""The noise of legs, learnt from innovations, and feet that slide."""

from biped_com_ros.core.state.feet import LEAST, LegNoise, SlipDetector
import numpy as np
import pytest


@pytest.mark.parametrize('dt', [0.002, 0.01])
def test_the_density_of_white_noise_is_learnt_whatever_the_rate(dt):
    rng, noise, density = np.random.default_rng(0), LegNoise(2), 1e-3
    found = []
    for _ in range(round(8.0 / dt)):
        # The prediction contributes as much as is told.
        innovation = (density / dt ** 0.5 * rng.normal(size=3) + 4e-3 * rng.normal(size=3))
        found.append(noise.variance(0, innovation, 3.0 * 4e-3 ** 2, dt))
    assert np.mean(found[-round(3.0 / dt):]) == pytest.approx(density ** 2 / dt, rel=0.25)
    assert noise.consistency == pytest.approx(1.0, abs=0.25)
    assert noise.deviations[1] == LegNoise(1).deviations[0]  # of the other foot nothing is known


def test_stiff_legs_end_at_the_least_density_and_one_outlier_counts_little():
    noise = LegNoise(1)
    for _ in range(2000):
        variance = noise.variance(0, np.zeros(3), 1e-8, 0.005)
    assert variance == pytest.approx(LEAST ** 2 / 0.005)
    after = noise.variance(0, np.array((0.1, 0.0, 0.0)), 1e-8, 0.005)
    assert after > 100.0 * variance  # it counts the less itself
    assert noise.deviations[0] < 1.1 * LEAST  # and the legs are hardly blamed


def test_bunches_of_stamps_do_not_count_as_many_measurements():
    together, apart = LegNoise(1), LegNoise(1)
    assert together.variance(0, np.zeros(3), 1e-8, 0.0) > 5.0 * apart.variance(
        0, np.zeros(3), 1e-8, 0.01)


def slides(foot_at, stamps=None, speed=0.1, seconds=3.0, deviation=0.005):
    """Return the detector after a robot has swayed on feet at places of the world, m."""
    detector, found = SlipDetector([0.2, 0.2], 0.7), []
    times = np.arange(0.0, seconds, 0.01)
    for t, stamp in zip(times, times if stamps is None else stamps):
        travel = np.array((0.0, speed * np.sin(2.0 * t), 0.0))  # by the IMU, at its stamp
        if stamps is not None:
            travel = np.array((0.0, speed * np.sin(2.0 * stamp), 0.0))
        soles = np.array((foot_at(t), (0.0, -0.1, 0.0))) - (0.0, speed * np.sin(2.0 * t), 0.8)
        found.append(detector.update(
            round(1e9 * stamp), travel, soles, (0.5, 0.5), (True, True), deviation))
    return detector, np.array(found)


@pytest.mark.parametrize('way', [(0.05, 0.0), (0.0, -0.05)])
def test_a_foot_that_slides_by_five_centimetres_is_found_within_a_tenth_of_a_second(way):
    def foot_at(t):
        return np.array((*(np.clip((t - 1.5) / 0.1, 0.0, 1.0) * np.array(way)), 0.0))
    detector, found = slides(foot_at)
    assert detector.count == 1 and not found[:, 1].any()
    times = 0.01 * np.flatnonzero(found[:, 0])
    assert 1.5 < times[0] < 1.6 and times[-1] < 1.8


def test_feet_at_rest_do_not_slide_however_messages_arrive():
    rng = np.random.default_rng(1)
    times = np.arange(0.0, 3.0, 0.01)
    late = np.maximum.accumulate(times + rng.choice((0.0, 0.004, 0.03), len(times), p=(
        0.7, 0.2, 0.1)))
    late[150:167] = times[167]  # a gap, and what has waited arrives at once
    for stamps in (None, late):
        detector, found = slides(lambda t: np.zeros(3), stamps)
        assert detector.count == 0 and not found.any()
        assert (detector.unevenness > 0.02) == (stamps is late)


def test_a_velocity_that_is_not_known_shows_no_slide():
    def foot_at(t):
        return np.array((np.clip((t - 1.5) / 0.1, 0.0, 1.0) * 0.05, 0.0, 0.0))
    assert slides(foot_at, deviation=0.2)[0].count == 0


def test_more_than_a_slide_per_second_and_foot_is_too_many():
    def detector_of(every):
        return slides(lambda t: np.array((0.04 * round(t / every), 0.0, 0.0)), seconds=8.0)[0]
    seldom, often = detector_of(2.0), detector_of(0.5)
    assert seldom.count > 2 and not seldom.is_frequent
    assert often.count > 8 and often.is_frequent
