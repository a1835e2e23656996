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
The tendon-driven torso of Russo, Ceccarelli and Cafolla (Applied Sciences 2021, 11, 2607).

A *shape* is an array (4,): ``(theta cos phi, theta sin phi, psi, elongation)``, that is bend
times direction (rad), torsion (rad) and elongation of the backbone (m). Unlike bend and direction
themselves it is smooth where the backbone is straight.
"""

from biped_com_ros.core.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {
    'Backbone': 'constant_curvature',
    'ControllerOptions': 'options',
    'Joystick': 'reference',
    'Measurement': 'controller',
    'MotionLimits': 'reference',
    'Stiffness': 'statics',
    'TendonController': 'controller',
    'TendonDrive': 'options',
    'TensionLimits': 'tension',
    'TorsoBody': 'body',
    'TorsoStatics': 'statics',
    'Weight': 'statics',
    'Workspace': 'constant_curvature',
    'make_shape': 'constant_curvature',
})
