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
"""Means of samples between two instants."""

from biped_com_ros.core.signals.means import RecentMean
import numpy as np

MS = 1_000_000


def test_a_mean_is_of_the_samples_since_it_was_taken():
    mean = RecentMean(3)
    for k, value in enumerate((1.0, 3.0)):
        mean.add(k * MS, np.array((value, -value)), np.array((2.0,)))
    np.testing.assert_array_equal(mean.take(2 * MS), (2.0, -2.0, 2.0))
    mean.add(3 * MS, np.array((5.0, 6.0, 7.0)))
    np.testing.assert_array_equal(mean.take(3 * MS), (5.0, 6.0, 7.0))
    assert mean.take(4 * MS) is None  # nothing since


def test_a_mean_of_long_ago_is_none_and_does_not_enter_the_next_one():
    mean = RecentMean(1)
    assert mean.take(0) is None
    mean.add(0, np.array((9.0,)))
    assert mean.take(51 * MS) is None
    mean.add(60 * MS, np.array((1.0,)))
    assert mean.take(110 * MS) == 1.0  # at the limit
    mean.add(200 * MS, np.array((1.0,)))
    assert mean.take(149 * MS) is None  # of the future, as after the clock was set back
