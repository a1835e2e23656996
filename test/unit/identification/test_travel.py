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
"""Paths in time: gentle, complete, never too fast."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.poses.transfer import travel
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

LINE = np.linspace(0.0, 1.0, 11)[1:, np.newaxis] * np.array(((1.0, -0.5),))
START = np.zeros(2)


def finely(way, start):
    """Positions and velocities every 2 ms, joined as a joint trajectory controller does."""
    times = np.concatenate(((0.0,), way.times))
    spline = CubicHermiteSpline(
        times, np.concatenate((start[np.newaxis], way.positions)),
        np.concatenate((np.zeros((1, way.positions.shape[1])), way.velocities)))
    t = np.arange(0.0, way.duration, 0.002)
    return t, spline(t), spline(t, 1)


def test_it_starts_and_ends_at_rest_and_keeps_the_speed():
    way = travel(START, LINE, 0.4, ramp=1.0)
    _, positions, velocities = finely(way, START)
    np.testing.assert_allclose(way.positions[-1], LINE[-1], atol=1e-12)
    np.testing.assert_allclose(way.velocities[-1], 0.0, atol=1e-12)
    assert 0.39 < np.abs(velocities).max() < 0.41
    assert way.duration == pytest.approx(1.0 / 0.4 + 1.0)
    # On the line all the time.
    np.testing.assert_allclose(positions[:, 1], -0.5 * positions[:, 0], atol=1e-9)


def test_it_does_not_jerk():
    """A raised cosine accelerates by at most pi / 2 times speed over ramp."""
    t, _, velocities = finely(travel(START, LINE, 0.4, ramp=1.0), START)
    acceleration = np.abs(np.diff(velocities, axis=0)) / (t[1] - t[0])
    assert acceleration.max() < 1.3 * 0.5 * np.pi * 0.4


def test_it_stops_at_corners():
    there_and_back = np.concatenate((LINE, LINE[-2::-1], START[np.newaxis]))
    way = travel(START, there_and_back, 0.4)
    corner = int(np.argmax(way.positions[:, 0]))
    np.testing.assert_allclose(way.positions[corner], LINE[-1], atol=1e-12)
    np.testing.assert_allclose(way.velocities[corner], 0.0, atol=1e-12)
    assert (np.diff(way.times) > 0.0).all()


def test_short_ways_never_get_fast():
    way = travel(START, np.array(((0.01, 0.0),)), 0.4, ramp=1.0)
    assert np.abs(way.velocities).max() < 0.08
    np.testing.assert_allclose(way.positions[-1], (0.01, 0.0), atol=1e-12)


def test_a_way_to_where_it_is_stays_there():
    way = travel(START, np.zeros((3, 2)), 0.4)
    np.testing.assert_array_equal(way.positions, np.zeros((1, 2)))
    assert way.duration > 0.0


def test_nonsense_is_refused():
    with pytest.raises(ConfigurationError, match='above zero'):
        travel(START, LINE, 0.0)
