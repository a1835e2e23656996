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
"""
The centre of mass: its velocity and divergent component, and its fusion with foot wrenches.

`fused` estimates what is wrong with the model and the foot sensors.
"""

from biped_com_ros.core.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {
    'ComEstimate': 'estimate',
    'FusedComEstimator': 'fused',
    'FusedComSettings': 'fused',
    'divergent_component': 'estimate',
    'natural_frequency': 'estimate',
})
