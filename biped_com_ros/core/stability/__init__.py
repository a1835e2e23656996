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
Zero-moment point, support polygon, margins, and the level of stability.

`monitor` evaluates one instant with all of them.
"""

from biped_com_ros.core.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {
    'Level': 'levels',
    'MonitorSettings': 'monitor',
    'Soles': 'support',
    'StabilityMonitor': 'monitor',
    'StabilityReport': 'monitor',
    'StabilityThresholds': 'levels',
    'SupportPolygon': 'support',
    'com_region': 'contact_region',
    'grip_contact': 'contacts',
    'support_polygon': 'support',
    'surface_contact': 'contacts',
    'zmp_region': 'contact_region',
})
