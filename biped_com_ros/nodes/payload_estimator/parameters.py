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

from biped_com_ros.ros.node.common_parameters import gravity_parameter, RobotNodeParameters
from biped_com_ros.ros.node.parameters import parameter, read_only


@dataclass(frozen=True)
class PayloadEstimatorParameters(RobotNodeParameters):
    """Parameters of `payload_estimator`; those of the estimate are those of `PayloadSettings`."""

    rate: float = parameter(
        50.0, 'Rate of the estimate and of ~/payload; sensors are averaged in between', 'Hz', 5.0,
        500.0)
    sensor_timeout: float = parameter(
        0.5, 'Time without messages after which an input is stale', 's', 0.001, 60.0)
    least_mass: float = read_only(0.3, 'Least mass of a payload', 'kg', 0.01, 100.0)
    largest_mass: float = read_only(10.0, 'Largest mass of a payload', 'kg', 0.1, 100.0)
    smoothing: float = read_only(
        0.08, 'Time constant of the low-pass of the residuals', 's', 0.01, 5.0)
    force_deviation: float = read_only(
        0.001, 'Standard deviation of the sum of the foot forces, as a share of body weight', '',
        1e-5, 1.0)
    effort_deviation: float = read_only(
        0.02, 'Standard deviation of the torque of a joint, friction included, as a share of its '
        'effort limit', '', 1e-4, 1.0)
    gravity: float = gravity_parameter()
