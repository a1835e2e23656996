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
Identification of masses and centres of mass from foot wrenches and joint torques at rest.

``session`` is the procedure: ``poses`` plans, ``captures`` measures, ``equations`` and
``estimation`` solve, ``output`` writes. ``fleet`` compares many units of one robot. It extends the
idea of :mod:`biped_com_ros.papers.muscolo_2017` to any robot, any support and noisy sensors.
"""

from biped_com_ros.core.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {
    'CalibrationSession': 'session',
    'Capture': 'captures.capture',
    'DesignOptions': 'poses.pose_safety',
    'Estimator': 'estimation.estimator',
    'Identification': 'estimation.estimates',
    'PoseDesigner': 'poses.pose_design',
    'SensorNoise': 'captures.capture',
    'com_from_captures': 'estimation.two_poses',
    'moments_from_com': 'estimation.moments_from_com',
    'prior_of': 'estimation.prior',
    'rank_of': 'estimation.moments_from_com',
    'read_recording': 'captures.recordings',
    'with_inertials': 'output.urdf_inertials',
    'with_known_masses': 'estimation.prior',
})
