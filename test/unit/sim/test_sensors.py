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
"""Noise and delay lines."""

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.sim.sensors import Delay, Noise, steps_of
from hypothesis import given, strategies as st
import numpy as np
import pytest


@given(st.integers(0, 7), st.integers(1, 25))
def test_a_delay_gives_back_what_went_in_so_many_steps_ago(steps, calls):
    delay = Delay(steps, 2)
    for i in range(calls):
        out = delay.push(np.array((i, -10.0 * i)))
        expected = max(i - steps, 0)
        assert out.tolist() == [expected, -10.0 * expected]
    assert delay.steps == steps


def test_a_cleared_delay_starts_anew():
    delay = Delay(3, 1)
    for i in range(5):
        delay.push(np.array((float(i),)))
    delay.clear()
    assert delay.push(np.array((42.0,)))[0] == 42.0
    assert delay.push(np.array((43.0,)))[0] == 42.0


def test_noise_has_its_sigma_and_is_reproducible():
    samples = np.zeros((2, 4000, 3))
    for run in samples:
        noise = Noise((1.0, 0.0, 3.0), (3,), seed=5)
        for row in run:
            noise.add_to(row)
    np.testing.assert_array_equal(samples[0], samples[1])
    np.testing.assert_allclose(samples[0].std(axis=0), (1.0, 0.0, 3.0), rtol=0.05)
    np.testing.assert_allclose(samples[0].mean(axis=0), 0.0, atol=0.15)


def test_bad_values_are_refused():
    with pytest.raises(ConfigurationError, match='not negative'):
        Noise(-1.0, (3,), seed=0)
    with pytest.raises(ConfigurationError, match='noise must be finite'):
        Noise(float('nan'), (3,), seed=0)
    with pytest.raises(ConfigurationError, match='imu_delay must be between'):
        steps_of(float('nan'), 0.002, 'imu_delay')
    with pytest.raises(ConfigurationError, match='-1 steps'):
        Delay(-1, 3)


def test_delays_round_to_whole_steps():
    assert steps_of(0.0079, 0.002, 'delay') == 4
    assert steps_of(0.0, 0.002, 'delay') == 0
