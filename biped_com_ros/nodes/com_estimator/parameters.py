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

from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.ros.node.common_parameters import (
    ContactParameters, ContactTopicParameters, FootWrenchParameters, gravity_parameter,
    PayloadParameters, WeightParameters)
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from


@dataclass(frozen=True)
class FusionParameters:
    """Parameters of the fused CoM; see `FusedComSettings`."""

    fused_com: bool = read_only(
        True, 'Whether ~/com_fused, ~/com_bias and ~/external_force are estimated; that takes '
        'about as much CPU time as the rest of the node')

    load_link: str = parameter(
        '', 'For com_fused: link to which the unknown load is fixed; empty: the heaviest one '
        'above the base that is not part of a leg')
    fusion_link_mass: float = parameter(
        0.08, 'Standard deviation of the mass of each link of the URDF, as a share of it; a '
        'smaller one in the deviations of the robot file, which a calibration writes, is used '
        'instead', '', 0.0, 1.0)
    fusion_link_com: float = parameter(
        0.005, 'Standard deviation of the centre of mass of each link of the URDF, per axis; the '
        'same holds for it and for those of sensors', 'm', 0.0, 1.0)
    fusion_wrench_delay: float = parameter(
        0.0045, 'Delay of the wrenches of the feet by filters and drivers; 0.0045 is that of the '
        'low-pass of wrench_aggregator at its default (of second order: 0.225 / low_pass_cutoff)',
        's', 0.0, 0.1)
    fusion_delay_deviation: float = parameter(
        0.003, 'Standard deviation of fusion_wrench_delay, whose error is estimated; 0: the delay '
        'is known', 's', 0.0, 0.1)


@dataclass(frozen=True)
class ComEstimatorParameters(FootWrenchParameters, ContactTopicParameters, ContactParameters,
                             WeightParameters, PayloadParameters, FusionParameters):
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
    tf_rate: float = parameter(30.0, 'Rate of transforms; 0: off', 'Hz', 0.0, 10000.0)
    com_tolerance: float = parameter(
        0.005, "Largest distance of the centre of pressure from the model's centre of mass, at "
        'rest', 'm', 0.0, 1.0)
    gravity: float = gravity_parameter(read_only=False)

    def contact_thresholds(self) -> ContactThresholds:
        """Return when the foot wrenches show a contact, for what is estimated from them."""
        return settings_from(self, ContactThresholds, 'contact_')
