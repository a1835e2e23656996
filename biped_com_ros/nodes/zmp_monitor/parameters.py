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
"""Parameters of `zmp_monitor`."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.com.momentum import METHODS
from biped_com_ros.ros.node.common_parameters import (
    ContactParameters, FootWrenchParameters, gravity_parameter, PayloadParameters,
    WeightParameters)
from biped_com_ros.ros.node.parameters import parameter, read_only


@dataclass(frozen=True)
class ZmpMonitorParameters(
        FootWrenchParameters, ContactParameters, WeightParameters, PayloadParameters):
    """Parameters of `zmp_monitor`."""

    polygon_source: str = read_only(
        'configuration', "Outlines of the soles: from the robot's YAML, or from the collision "
        'geometry of its URDF', options=('configuration', 'collision'))
    hand_wrench_topics: list[str] = read_only(
        [], 'Topics (geometry_msgs/WrenchStamped) of the wrench of the environment on each hand '
        'that has wrench_sensors or source: virtual, in any frame fixed to it, in the order of '
        "the robot's hands; empty: wrench_aggregator/<hand>/wrench")
    foot_friction: float = parameter(
        0.7, 'Coefficient of friction of the soles, for the region of support on steps and with '
        'hands', '', 0.01, 10.0)
    hand_friction: float = parameter(
        0.5, 'Coefficient of friction of hands that lean', '', 0.01, 10.0)
    hand_force: float = parameter(
        0.3, 'Largest force of a hand, as a share of body weight', '', 0.001, 10.0)
    step_height: float = parameter(
        0.02, 'Distance of parallel soles from their mean plane above which they stand on steps',
        'm', 0.0, 10.0)
    edge_height: float = parameter(
        0.003, 'Height of a corner above the lowest corner of a rolling sole below which it still '
        'touches the ground, since sole and ground give way; 0: whole soles always touch', 'm',
        0.0, 0.1)
    model_method: str = parameter(
        'full', "How the model's ZMP is computed: with the whole angular momentum, with links as "
        'point masses, with one point mass, or statically', options=METHODS)
    model_cutoff: float = parameter(
        15.0, "Bandwidth of the model's ZMP; it is delayed by 0.225 / cutoff", 'Hz', 0.1, 1000.0)
    wrench_delay: float = parameter(
        0.0045, 'Delay of the wrenches of the feet, undone where they are compared with the '
        'model; 0.0045 is that of the low-pass of wrench_aggregator at its default (of second '
        'order: 0.225 / low_pass_cutoff)', 's', 0.0, 0.1)
    align_wrenches: bool = parameter(
        False, 'Whether wrenches are used with the joint states of wrench_delay before their '
        'stamps: ZMP, margins and contacts of a walking robot are then right for their stamps, '
        'but published wrench_delay later')
    margin_warning: float = parameter(
        0.01, 'Margin of ZMP or DCM below which the robot is marginal', 'm', 0.0, 1.0)
    tilt_unstable: float = parameter(
        0.35, 'Tilt of the base above which the robot is unstable', 'rad', 0.01, 3.0)
    tilt_fallen: float = parameter(
        1.0, 'Tilt of the base above which the robot has fallen', 'rad', 0.02, 3.1)
    lean_unstable: float = parameter(
        0.5, 'Lean above which the robot is unstable: the horizontal length of the unit vector '
        'along the z axis of the base, extrapolated by 0.3 s; at rest the sine of the tilt',
        '', 0.01, 3.0)
    level_dwell: float = parameter(
        0.01, 'How long a threshold has to be exceeded for a level to begin', 's', 0.0, 10.0)
    recovery_time: float = parameter(
        0.3, 'How long all values have to be back within the thresholds for a level to end', 's',
        0.0, 60.0)
    unevenness_warning: float = parameter(
        0.01, 'Distance of a sole from the plane of support above which soles are reported '
        'as uneven', 'm', 0.0, 10.0)
    difference_warning: float = parameter(
        0.03, "Root mean square difference of model's and measured ZMP above which a warning "
        'is given', 'm', 0.0, 10.0)
    gravity: float = gravity_parameter(read_only=False)
