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

from dataclasses import dataclass, replace

from biped_com_ros.core.settings import gravity_setting, setting, settings, wrench_delay_setting
from biped_com_ros.core.stability.monitor import MonitorSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.ros.node.common_parameters import (
    FootWrenchParameters, PayloadParameters, WeightParameters)
from biped_com_ros.ros.node.parameters import read_only


@dataclass(frozen=True)
class ZmpMonitorParameters(FootWrenchParameters, WeightParameters, PayloadParameters):
    """Parameters of `zmp_monitor`."""

    polygon_source: str = read_only(
        'configuration', "Outlines of the soles: from the robot's YAML, or from the collision "
        'geometry of its URDF', options=('configuration', 'collision'))
    hand_wrench_topics: list[str] = read_only(
        [], 'Topics (geometry_msgs/WrenchStamped) of the wrench of the environment on each hand '
        'that has wrench_sensors or source: virtual, in any frame fixed to it, in the order of '
        "the robot's hands; empty: wrench_aggregator/<hand>/wrench")
    gravity: float = gravity_setting()
    # A landing foot affects the ZMP at once.
    contact: ContactThresholds = settings(ContactThresholds, engage_dwell=0.0)
    monitor: MonitorSettings = settings(MonitorSettings)
    wrench_delay: float = wrench_delay_setting()
    align_wrenches: bool = setting(
        False, 'Whether wrenches are used with the joint states of wrench_delay before their '
        'stamps: ZMP, margins and contacts of a walking robot are then right for their stamps, '
        'but published wrench_delay later')
    unevenness_warning: float = setting(
        0.01, 'Distance of a sole from the plane of support above which soles are reported '
        'as uneven', 'm', 0.0, 10.0)
    difference_warning: float = setting(
        0.03, "Root mean square difference of model's and measured ZMP above which a warning "
        'is given', 'm', 0.0, 10.0)

    @property
    def aligned_delay(self) -> float:
        """Return by how much wrenches are older than the joints they are paired with, s."""
        return self.wrench_delay if self.align_wrenches else 0.0

    def monitor_settings(self) -> MonitorSettings:
        """Return the settings of the monitor, with the delay that is not aligned."""
        return replace(self.monitor, wrench_delay=self.wrench_delay - self.aligned_delay)
