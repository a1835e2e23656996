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
"""Parameters of the node wrench_aggregator."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.wrench.aggregation import AggregationSettings
from biped_com_ros.core.wrench.bias import BiasSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.core.wrench.tare import TareLimits
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandSettings
from biped_com_ros.ros.node.common_parameters import (
    ContactParameters, gravity_parameter, RobotNodeParameters, WeightParameters)
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from


#: Largest force of an offset for a tare, as a share of body weight: with more it stands.
_LARGEST_OFFSET = 0.3


@dataclass(frozen=True)
class WrenchAggregatorParameters(RobotNodeParameters, ContactParameters, WeightParameters):
    """Parameters of `wrench_aggregator`."""

    offsets_file: str = read_only(
        '', 'YAML file of the offsets of the sensors: read at start if it exists, written by tare '
        'and untare; empty: offsets are not saved')
    footprint_frame: str = read_only(
        'base_footprint', 'frame_id of the total wrench and of the line through the CoM')
    gravity: float = gravity_parameter(read_only=False)
    low_pass_cutoff: float = parameter(
        50.0, 'Cut-off frequency of the Butterworth low-pass of all readings; 0: off', 'Hz', 0.0,
        10000.0)
    cop_min_share: float = parameter(
        0.02, 'Smallest normal force, as a share of body weight, for which the CoP of a foot and '
        'the line through the CoM are published', '', 0.001, 0.9)
    tare_samples: int = parameter(
        500, 'Number of readings of a sensor that a tare averages', '', 10, 100000)
    tare_max_force_deviation: float = parameter(
        2.0, 'Largest standard deviation of a force for a tare', 'N', 0.0, 1000.0)
    tare_max_torque_deviation: float = parameter(
        0.2, 'Largest standard deviation of a torque for a tare', 'N m', 0.0, 100.0)
    tare_max_joint_speed: float = parameter(
        0.05, 'Largest speed of a joint for a tare', 'rad/s', 0.0, 10.0)
    weight_missing: float = parameter(
        0.25, 'Share of the body weight that may be missing while a foot on the ground measures '
        'almost nothing for 0.5 s; if more is, its sensor counts as dead, and its wrench is '
        'withheld; 1: never', '', 0.01, 1.0)
    bias_tracking: bool = parameter(
        True, 'Whether the offsets of the foot sensors follow their biases while feet swing or '
        'the robot hangs, never while they are loaded')
    bias_force: float = parameter(
        5.0, 'Standard deviation of the force bias of a sensor that was not tared', 'N', 0.001,
        1e4)
    bias_lift: float = parameter(
        0.01, 'Height of a sole above those that carry the robot from which on its foot swings',
        'm', 0.001, 1.0)
    state_timeout: float = parameter(
        0.1, 'Largest difference between the stamps of a reading and of the joint states or the '
        'IMU data used with it', 's', 0.0, 10.0)
    sensor_timeout: float = parameter(
        0.5, 'Time without messages after which a sensor is stale', 's', 0.001, 60.0)

    virtual_cutoff: float = parameter(
        65.0, 'Cut-off frequency of the low-pass of virtual wrenches, from joint torques; see the '
        "feet's 'source' in the robot's YAML", 'Hz', 1.0, 1000.0)
    virtual_hand_cutoff: float = parameter(
        20.0, "Cut-off frequency of the low-pass of the forces on virtual hands; see the hands' "
        "'source' in the robot's YAML", 'Hz', 1.0, 1000.0)
    virtual_hand_effort_deviation: float = parameter(
        0.03, 'Standard deviation of friction and offset of the torques of the arms, as a '
        'share of the effort limit, before they are learnt', '', 1e-6, 1.0)

    def aggregation_settings(self) -> AggregationSettings:
        """Return the settings of the aggregation."""
        return settings_from(
            self, AggregationSettings,
            thresholds=settings_from(self, ContactThresholds, 'contact_'))

    def bias_settings(self) -> BiasSettings:
        """Return how uncertain biases are."""
        return settings_from(self, BiasSettings, 'bias_')

    def virtual_hand_settings(self) -> VirtualHandSettings:
        """Return how forces on virtual hands are estimated."""
        return settings_from(self, VirtualHandSettings, 'virtual_hand_', gravity=self.gravity)

    def tare_limits(self, body_weight: float) -> TareLimits:
        """Return the limits of a tare for a robot of this weight, N."""
        return settings_from(self, TareLimits, 'tare_max_',
                             offset_force=_LARGEST_OFFSET * body_weight)
