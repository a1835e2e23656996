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
"""Whether contact wrenches balance gravity."""

from __future__ import annotations

from biped_com_ros.core.geometry.wrench import sum_wrenches
import numpy as np


def residual(support):
    """Return the wrench missing to equilibrium about the base's origin, (6,), N and N m."""
    load = support.load
    total = sum_wrenches(support.wrenches_at_centres.tolist(), load.placement_values)
    return np.array((*load.force, *load.moment)) - total
