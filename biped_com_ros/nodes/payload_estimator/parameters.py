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
"""Parameters of `payload_estimator`."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.payload.estimator import PayloadSettings
from biped_com_ros.core.settings import setting, settings
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters


@dataclass(frozen=True)
class PayloadEstimatorParameters(RobotNodeParameters):
    """Parameters of `payload_estimator`."""

    rate: float = setting(
        50.0, 'Rate of the estimate and of ~/payload; sensors are averaged in between', 'Hz', 5.0,
        500.0)
    sensor_timeout: float = setting(
        0.5, 'Time without messages after which an input is stale', 's', 0.001, 60.0)
    payload: PayloadSettings = settings(PayloadSettings)
