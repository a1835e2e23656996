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
"""Parameters that the nodes of a robot share: dataclasses to inherit from."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.ros.parameters import parameter


@dataclass(frozen=True)
class RobotNodeParameters:
    """Of every node that needs the robot and reads stamped messages."""

    robot: str = parameter(
        'biped', 'Name of a robot of this package, or path of a YAML file', read_only=True)
    urdf: str = parameter(
        '', "Overrides the robot's URDF: a path, package:// URI, or 'topic'", read_only=True)
    max_stamp_age: float = parameter(
        1.0, "Messages with stamps further than this from the node's clock are refused; 0 accepts "
        'any', 's', 0.0, 1e6, read_only=True)


@dataclass(frozen=True)
class ManagedNodeParameters(RobotNodeParameters):
    """Of a lifecycle node; see `lifecycle`."""

    urdf: str = parameter(
        '', "Overrides the robot's URDF: a path, package:// URI, or 'topic'; read when the node "
        'is configured')
    autostart: bool = parameter(
        True, 'Whether to configure and activate itself; turn it off where a lifecycle manager '
        'does', read_only=True)
