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
"""Parameters of `lowstate_bridge`."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.parameters import read_only


@dataclass(frozen=True)
class LowstateBridgeParameters(RobotChoice):
    """Parameters of `lowstate_bridge`."""

    robot: str = read_only(
        'g1_as_sold', 'Name of a robot of this package, or path of a YAML file; it has low_state')
    recording: str = read_only(
        '', 'Play this rosbag2 (directory, .mcap or .db3) instead of subscribing to the topic; '
        'the package of the message is not needed. Stamps are moved to the present')
    check_crc: bool = read_only(
        True, 'Whether to refuse messages with a wrong checksum; simulators leave it at 0')
    sensor_timeout: float = read_only(
        0.5, 'Time without messages after which the input is stale', 's', 0.001, 60.0)
