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
"""The reference motion of the bend: its limits, its end, and valid settings."""

import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.torso.reference import BendReference, MotionLimits
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

DT = 0.002


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3), st.floats(0.02, 0.6)),
                min_size=1, max_size=6))
def test_the_reference_stays_within_its_limits_and_arrives(targets):
    reference = BendReference(MotionLimits(speed=1.0, acceleration=20.0, smoothing=0.03))
    reference.reset(np.array((0.1, -0.05)))
    before = reference.velocity.copy()
    for x, y, seconds in (*targets, (*targets[-1][:2], 3.0)):
        for _ in range(round(seconds / DT)):
            reference.update(complex(x, y), DT)
            assert np.hypot(*reference.velocity) <= 1.0 + 1e-9
            assert np.hypot(*(reference.velocity - before)) / DT <= 20.0 + 1e-6
            before = reference.velocity.copy()
    np.testing.assert_allclose(reference.position, targets[-1][:2], atol=1e-6)


def test_a_motion_comes_to_an_end_and_the_next_begins_from_there():
    limits = MotionLimits(speed=1.5, acceleration=20.0, smoothing=0.03)
    ends = 0.2 + 0.1j, 0.05 - 0.2j
    reference, fresh = BendReference(limits), BendReference(limits)
    for _ in range(1000):
        reference.update(ends[0], DT)
        along, aside = reference.position @ ((0.2, -0.1), (0.1, 0.2))
        assert along <= 0.05 * 1.001 and abs(aside) < 1e-12  # it does not overshoot
    assert reference.motion == (ends[0], 0j, 0j)
    fresh.reset(np.array((ends[0].real, ends[0].imag)))
    for _ in range(100):
        reference.update(ends[1], DT)
        fresh.update(ends[1], DT)
        assert reference.motion == fresh.motion
    assert abs(reference.motion[1]) > 1.0


@pytest.mark.parametrize('change', [
    {'speed': 0.0}, {'acceleration': -1.0}, {'speed': math.nan}])
def test_motion_limits_make_sense(change):
    with pytest.raises(ConfigurationError, match='must be (0.0|at least 0)'):
        MotionLimits(**change)
