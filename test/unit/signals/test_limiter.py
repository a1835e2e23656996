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
"""The last step before a command."""

from biped_com_ros.core.signals.filters import limited_step
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np

VALUES = arrays(float, 3, elements=st.floats(-1e3, 1e3))
SIZES = arrays(float, 3, elements=st.floats(0.0, 1e3))


@given(VALUES, VALUES, SIZES, VALUES, SIZES)
def test_no_command_leaves_its_range_and_within_it_none_steps(
        target, previous, largest, low, width):
    high = low + width
    command = limited_step(target, previous, largest, low, high)
    assert (low <= command).all() and (command <= high).all()
    inside = (low <= previous) & (previous <= high)
    assert (np.abs(command - previous)[inside] <= largest[inside] * (1.0 + 1e-12) + 1e-9).all()
    # What is permitted is what is commanded.
    allowed = inside & (low <= target) & (target <= high) & (np.abs(target - previous) < largest)
    np.testing.assert_array_equal(command[allowed], target[allowed])
