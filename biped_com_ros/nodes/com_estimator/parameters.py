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
    """Parameters of the fused CoM; those of the filter have the names of `ComFilterSettings`."""

    fused_com: bool = read_only(
        True, 'Whether ~/com_fused, ~/com_bias and ~/external_force are estimated; that takes '
        'about as much CPU time as the rest of the node')

    load_link: str = parameter(
        '', 'For com_fused: link to which the unknown load is fixed; empty: the heaviest one '
        'above the base that is not part of a leg')
    fusion_kinematic_position: float = parameter(
        0.00001, 'Smallest standard deviation of the kinematic CoM; measured noise is added', 'm',
        1e-6, 1.0)
    fusion_kinematic_velocity: float = parameter(
        0.0001, 'Smallest standard deviation of the velocity of the kinematic CoM; measured noise '
        'is added', 'm/s', 1e-6, 10.0)
    fusion_acceleration: float = parameter(
        0.02, 'Smallest standard deviation of the acceleration by the foot forces, as a mean over '
        '10 ms; measured noise is added', 'm/s2', 1e-4, 100.0)
    fusion_moment: float = parameter(
        0.00001, 'Smallest standard deviation of the horizontal CoM that is computed from the '
        'filtered moments of the feet; measured noise is added', 'm', 1e-6, 1.0)
    fusion_momentum: float = parameter(
        0.005, "Relative error of the model's rate of angular momentum", '', 1e-4, 10.0)
    fusion_load_cutoff: float = parameter(
        3.0, 'Cut-off frequency of the low-pass of the moments of the feet from which the load is '
        'estimated; choose it above the frequency of the motion', 'Hz', 0.1, 100.0)
    fusion_initial_moment: float = parameter(
        0.015, 'Initial standard deviation of the first moment of the unknown load about the '
        "centre of mass of its link, over the robot's mass", 'm', 1e-6, 1.0)
    fusion_moment_drift: float = parameter(
        0.00001, 'Random walk of the first moment of the unknown load, over the mass of the '
        'robot', 'm/sqrt(s)', 1e-7, 1.0)
    fusion_initial_mass: float = parameter(
        0.1, "Initial standard deviation of the unknown mass, as a share of the robot's", '', 1e-6,
        1.0)
    fusion_mass_drift: float = parameter(
        0.0003, "Random walk of the unknown mass, as a share of the robot's", '1/sqrt(s)', 1e-7,
        1.0)
    fusion_push_sigmas: float = parameter(
        3.8, 'A push is detected where the velocity differs by so many standard deviations from '
        'what the known forces explain', '', 1.0, 100.0)
    fusion_push_force: float = parameter(
        0.1, 'Standard deviation of a push, as a share of the weight', '', 1e-4, 10.0)
    fusion_push_lever: float = parameter(
        0.3, 'Standard deviation of the distance of the push from the CoM', 'm', 1e-3, 10.0)
    fusion_least_acceleration: float = parameter(
        0.02, 'Horizontal acceleration above which the height of the load is estimated, if it '
        'exceeds measured noise, too', 'm/s2', 1e-4, 100.0)
    fusion_force_time: float = parameter(
        10.0, 'Time constant with which a lasting external force decays', 's', 0.1, 1e4)
    fusion_unknown_acceleration: float = parameter(
        3.0, 'Standard deviation of the acceleration while the foot forces are unknown', 'm/s2',
        1e-3, 100.0)
    fusion_longest_gap: float = parameter(
        0.5, 'Gap in the inputs after which position and velocity are initialized again; the '
        'estimated load is kept', 's', 0.01, 60.0)
    fusion_wrench_delay: float = parameter(
        0.0045, 'Delay of the wrenches of the feet by filters and drivers; 0.0045 is that of the '
        'low-pass of wrench_aggregator at its default (of second order: 0.225 / low_pass_cutoff)',
        's', 0.0, 0.1)
    fusion_delay_deviation: float = parameter(
        0.003, 'Standard deviation of fusion_wrench_delay, whose error is estimated; 0: the delay '
        'is known', 's', 0.0, 0.1)
    fusion_sensor_rotation: float = parameter(
        0.002, 'Standard deviation of the orientation of each foot sensor', 'rad', 0.0, 0.1)
    fusion_sensor_frame: float = parameter(
        0.003, 'Standard deviation of the place of each foot sensor', 'm', 0.0, 0.1)
    fusion_sensor_gain: float = parameter(
        0.02, 'Standard deviation of the gain of each axis of a foot sensor', '', 0.0, 0.5)
    fusion_link_mass: float = parameter(
        0.08, 'Standard deviation of the mass of each link of the URDF, as a share of it; with a '
        'calibrated URDF that of its report', '', 0.0, 1.0)
    fusion_link_com: float = parameter(
        0.005, 'Standard deviation of the centre of mass of each link of the URDF, per axis', 'm',
        0.0, 1.0)


@dataclass(frozen=True)
class ComEstimatorParameters(FootWrenchParameters, ContactTopicParameters, ContactParameters,
                             WeightParameters, PayloadParameters, FusionParameters):
    """Parameters of `com_estimator`."""

    contact_engage_dwell: float = parameter(
        0.002, 'Time the force has to stay above contact_engage for contact to begin', 's', 0.0,
        1.0)
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
    marker_density: float = read_only(
        8000.0, 'Each link is shown as a sphere of its mass and this density', 'kg/m3', 1.0, 1e6)
    com_tolerance: float = parameter(
        0.005, "Largest distance of the centre of pressure from the model's centre of mass, at "
        'rest', 'm', 0.0, 1.0)
    gravity: float = gravity_parameter(read_only=False)

    def contact_thresholds(self) -> ContactThresholds:
        """Return when the foot wrenches show a contact, for what is estimated from them."""
        return settings_from(self, ContactThresholds, 'contact_')
