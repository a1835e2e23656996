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

from biped_com_ros.core.settings import gravity_setting, setting, settings
from biped_com_ros.core.wrench.aggregation import AggregationSettings
from biped_com_ros.core.wrench.bias import BiasSettings
from biped_com_ros.core.wrench.sensor_faults import WeightBalanceSettings
from biped_com_ros.core.wrench.tare import TareLimits
from biped_com_ros.core.wrench.virtual_foot_wrenches import VirtualWrenchSettings
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandSettings
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters, WeightParameters
from biped_com_ros.ros.node.parameters import read_only

#: Smallest normal force, as a share of body weight, for which the CoP of a foot and the line
#: through the CoM are published.
LEAST_COP_SHARE = 0.02
_LASTING = 0.5
"""Forces contradict the weight for less than this in a step or a jump, s."""


@dataclass(frozen=True)
class WrenchAggregatorParameters(RobotNodeParameters, WeightParameters):
    """Parameters of `wrench_aggregator`."""

    offsets_file: str = read_only(
        '', 'YAML file of the offsets of the sensors: read at start if it exists, written by tare '
        'and untare; empty: offsets are not saved')
    footprint_frame: str = read_only(
        'base_footprint', 'frame_id of the total wrench and of the line through the CoM')
    gravity: float = gravity_setting()
    aggregation: AggregationSettings = settings(AggregationSettings)
    tare_duration: float = setting(
        1.0, 'Time over which a tare averages the readings of a sensor', 's', 0.02, 100.0)
    tare: TareLimits = settings(TareLimits, 'tare_max_{}')
    balance: WeightBalanceSettings = settings(
        WeightBalanceSettings, 'weight_{}', missing_time=_LASTING, excess_time=_LASTING)
    bias_tracking: bool = setting(
        True, 'Whether the offsets of the foot sensors follow their biases while feet swing or '
        'the robot hangs, never while they are loaded')
    bias: BiasSettings = settings(BiasSettings, 'bias_{}')
    state_timeout: float = setting(
        0.1, 'Largest difference between the stamps of a reading and of the joint states or the '
        'IMU data used with it', 's', 0.0, 10.0)
    sensor_timeout: float = setting(
        0.5, 'Time without messages after which a sensor is stale', 's', 0.001, 60.0)
    virtual: VirtualWrenchSettings = settings(VirtualWrenchSettings, 'virtual_{}')
    virtual_hand: VirtualHandSettings = settings(VirtualHandSettings, 'virtual_hand_{}')
