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
Poses, rotations, wrenches and their sums, and the footprint on the ground.

NumPy only; everything else in `core` stands on this.
"""

from biped_com_ros.core.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {
    'Plane': 'plane',
    'Pose': 'pose',
    'centre_of_pressure': 'wrench',
    'com_line': 'wrench',
    'convex_hull': 'polygon',
    'sum_wrenches': 'wrench',
    'wrench_adjoint': 'wrench',
})
