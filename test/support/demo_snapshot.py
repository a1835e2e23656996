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
"""Measurements as the demo shows them."""

from biped_com_ros.demo.terminal import Snapshot
import numpy as np


def snapshot(**changes):
    """Return measurements of a robot that sways, with some of them changed."""
    values = {
        'time': 12.34, 'activity': 'sways to the left',
        'com_error': np.array([3e-3, -4e-3, 12e-3]),
        'com_error_largest': 0.0141, 'base_drift': 0.033, 'weight': 36.0, 'model_weight': 35.316,
        'contacts': {'left': (20.5, True), 'right': (0.4, False)},
        'rates': {'joint_states': 500.0, 'com': 0.0}, 'real_time_factor': 0.98,
        'health': (0, 'all 12 checks well')}
    return Snapshot(**{**values, **changes})
