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
"""Parameters of `com_estimator`."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.com.fused import FusedComSettings
from biped_com_ros.core.settings import gravity_setting, setting, settings
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.ros.node.common_parameters import (
    FootWrenchParameters, PayloadParameters, WeightParameters)
from biped_com_ros.ros.node.parameters import read_only


@dataclass(frozen=True)
class ComEstimatorParameters(FootWrenchParameters, WeightParameters, PayloadParameters):
    """Parameters of `com_estimator`."""

    com_frame: str = read_only('com', 'TF frame at the centre of mass')
    footprint_frame: str = read_only(
        'base_footprint', 'TF frame on the ground between the soles in contact (REP-120)')
    publish_base_tf: bool = read_only(
        True, 'Whether to send world_frame -> root link of the URDF (usually base_link) and '
        'base_link -> footprint_frame; turn it off where another node does')
    publish_link_tf: bool = read_only(
        True, 'Whether to send a frame <link>_com at the centre of mass of each link')
    publish_contact_tf: bool = read_only(
        False, 'Whether to send root link -> link of each foot and hand; only where no '
        'robot_state_publisher does, since a frame has one parent')
    tf_rate: float = setting(30.0, 'Rate of transforms; 0: off', 'Hz', 0.0, 10000.0)
    gravity: float = gravity_setting()
    contact: ContactThresholds = settings(ContactThresholds, engage_dwell=0.0)
    fused_com: bool = read_only(
        True, 'Whether ~/com_fused, ~/com_bias and ~/external_force are estimated; that takes '
        'about as much CPU time as the rest of the node')
    load_link: str = setting(
        '', 'For com_fused: link to which the unknown load is fixed; empty: the heaviest one '
        'above the base that is not part of a leg')
    fusion: FusedComSettings = settings(FusedComSettings, 'fusion_{}')
