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
"""Parameters that several nodes have: dataclasses to inherit from."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.settings import setting, settings
from biped_com_ros.core.state.base import BaseSettings
from biped_com_ros.ros.node.parameters import read_only
from biped_com_ros.ros.topics import names


@dataclass(frozen=True)
class RobotChoice:
    """Parameters of a node that needs the robot's model."""

    robot: str = read_only('biped', 'Name of a robot of this package, or path of a YAML file')
    urdf: str = read_only(
        '', "Overrides the robot's URDF: a path, a package:// URI, or 'topic' for the topic "
        'robot_description')
    frame_prefix: str = read_only(
        '', 'Put before the name of every frame that the node publishes, as by '
        "robot_state_publisher, such as 'robot1/'; frames that it receives may have it")


@dataclass(frozen=True)
class RobotNodeParameters(RobotChoice):
    """Parameters of a node that also subscribes to stamped messages."""

    max_stamp_age: float = setting(
        1.0, "Largest difference between a message's stamp and the node's clock; messages beyond "
        'are refused; 0: no limit', 's', 0.0, 1e6)


@dataclass(frozen=True)
class EstimatorParameters(RobotNodeParameters):
    """Parameters of a node that estimates the pose of the base."""

    base: BaseSettings = settings(BaseSettings, 'base_{}')
    filter_odometry_topic: str = read_only(
        '', 'With base_source filter: topic (nav_msgs/Odometry) of the pose of base_link by a '
        'camera or a lidar, in any level frame; empty: none')
    world_frame: str = read_only('odom', 'World-fixed frame, z up, of the published quantities')
    marker_rate: float = setting(15.0, 'Rate of the markers; 0: off', 'Hz', 0.0, 10000.0)
    sensor_timeout: float = setting(
        0.5, 'Time without messages after which an input is stale', 's', 0.001, 60.0)


@dataclass(frozen=True)
class FootWrenchParameters(EstimatorParameters):
    """Parameters of an estimator that receives the wrenches of the feet, too."""

    wrench_topics: list[str] = read_only(
        [], 'Topics (geometry_msgs/WrenchStamped) of the wrench of the ground on each foot, in '
        "any frame fixed to the foot, in the order of the robot's feet; empty: "
        'wrench_aggregator/<foot>/wrench')


@dataclass(frozen=True)
class PayloadParameters(RobotNodeParameters):
    """Parameters of a node that adds the payload in a hand to its model."""

    payload_topic: str = read_only(
        names.PAYLOAD, 'Topic (geometry_msgs/InertiaStamped) of the payload in a '
        'hand, in the frame of a link; empty: none')


@dataclass(frozen=True)
class WeightParameters:
    """Parameters of a node that compares the measured weight with the model's."""

    weight_tolerance: float = setting(
        0.03, "Largest relative difference of the measured weight from the model's", '', 0.0, 1.0)


@dataclass(frozen=True)
class ManagedNodeParameters(RobotNodeParameters):
    """Parameters of a lifecycle node."""

    urdf: str = setting(
        '', "Overrides the robot's URDF: a path, a package:// URI, or 'topic' for the topic "
        'robot_description; read when the node is configured')
    autostart: bool = read_only(
        True, 'Whether the node configures and activates itself; false: a lifecycle manager does')
