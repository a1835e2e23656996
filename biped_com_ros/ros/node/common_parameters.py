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
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.ros.node.parameters import parameter, read_only


BASE_SOURCES = ('imu', 'filter', 'odometry', 'tf', 'fixed')
"""Sources of the pose of the base."""


def gravity_parameter(read_only: bool = True) -> Any:
    """Return the parameter `gravity`."""
    return parameter(
        GRAVITY, 'Gravitational acceleration', 'm/s2', 0.1, 30.0, read_only=read_only)


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

    max_stamp_age: float = parameter(
        1.0, "Largest difference between a message's stamp and the node's clock; messages beyond "
        'are refused; 0: no limit', 's', 0.0, 1e6)


@dataclass(frozen=True)
class FilterParameters(RobotNodeParameters):
    """Parameters of ``base_source: filter``; see `FilterSettings`."""

    filter_floor_deviation: float = parameter(
        0.005, 'With base_source filter: standard deviation of the height of the floor; 0: it is '
        'not level, as on stairs and slopes', 'm', 0.0, 1.0)
    filter_odometry_topic: str = read_only(
        '', 'With base_source filter: topic (nav_msgs/Odometry) of the pose of base_link by a '
        'camera or a lidar, in any level frame; empty: none')
    filter_odometry_deviation: float = parameter(
        0.02, 'Standard deviation of the positions on filter_odometry_topic', 'm', 1e-4, 10.0)
    filter_odometry_delay: float = parameter(
        0.1, 'Time after its stamp at which a message on filter_odometry_topic is used: the '
        'longest that messages take to arrive', 's', 0.0, 2.0)


@dataclass(frozen=True)
class EstimatorParameters(FilterParameters):
    """Parameters of a node that estimates the pose of the base."""

    base_source: str = read_only(
        'imu', 'Source of the pose of base_link: imu (orientation from the IMU, position from the '
        'soles in contact), filter (gyroscope, accelerometer and foot wrenches), odometry (topic '
        'odom), tf, or fixed (parameter fixed_base)',
        options=BASE_SOURCES)
    world_frame: str = read_only('odom', 'World-fixed frame, z up, of the published quantities')
    base_timeout: float = parameter(
        0.1, 'Largest difference between the stamps of joint_states and of IMU, odometry or TF',
        's', 0.0001, 60.0)
    fixed_base: list[float] = read_only(
        [0.0] * 6, 'Pose of base_link with base_source fixed: x, y, z (m), roll, pitch, yaw (rad)')
    contact_tolerance: float = parameter(
        0.01, 'Where contacts are not measured: height above the lowest sole below which a sole '
        'is assumed to be in contact', 'm', 0.0, 1.0)
    marker_rate: float = parameter(15.0, 'Rate of the markers; 0: off', 'Hz', 0.0, 10000.0)
    sensor_timeout: float = parameter(
        0.5, 'Time without messages after which an input is stale', 's', 0.001, 60.0)


@dataclass(frozen=True)
class FootWrenchParameters(EstimatorParameters):
    """Parameters of an estimator that receives the wrenches of the feet, too."""

    wrench_topics: list[str] = read_only(
        [], 'Topics (geometry_msgs/WrenchStamped) of the wrench of the ground on each foot, in '
        "any frame fixed to the foot, in the order of the robot's feet; empty: "
        'wrench_aggregator/<foot>/wrench')


@dataclass(frozen=True)
class ContactTopicParameters(EstimatorParameters):
    """Parameters of an estimator that receives the contacts from another node."""

    contact_topics: list[str] = read_only(
        [], "Topics (std_msgs/Bool) of the contact of each foot, in the order of the robot's "
        'feet; empty: wrench_aggregator/contacts, which has stamps')
    contact_timeout: float = parameter(
        0.5, 'Age of the contacts after which the lowest soles are assumed to be in contact', 's',
        0.001, 60.0)


@dataclass(frozen=True)
class ContactParameters:
    """Parameters of a node that detects by forces which feet are in contact."""

    contact_engage: float = parameter(
        0.06, 'Normal force of a foot, as a share of body weight, above which contact begins', '',
        0.001, 0.9)
    contact_release: float = parameter(
        0.03, 'Normal force of a foot, as a share of body weight, below which contact ends', '',
        0.001, 0.9)


@dataclass(frozen=True)
class PayloadParameters(RobotNodeParameters):
    """Parameters of a node that adds the payload in a hand to its model."""

    payload_topic: str = read_only(
        'payload_estimator/payload', 'Topic (geometry_msgs/InertiaStamped) of the payload in a '
        'hand, in the frame of a link; empty: none')
    payload_rate: float = parameter(
        5.0, 'Fastest change of the mass of the payload', 'kg/s', 0.01, 1000.0)
    payload_timeout: float = parameter(
        1.0, 'Time without messages after which the payload fades out', 's', 0.01, 60.0)


@dataclass(frozen=True)
class WeightParameters:
    """Parameters of a node that compares the measured weight with the model's."""

    weight_tolerance: float = parameter(
        0.03, "Largest relative difference of the measured weight from the model's", '', 0.0, 1.0)


@dataclass(frozen=True)
class ManagedNodeParameters(RobotNodeParameters):
    """Parameters of a lifecycle node."""

    urdf: str = parameter(
        '', "Overrides the robot's URDF: a path, a package:// URI, or 'topic' for the topic "
        'robot_description; read when the node is configured')
    autostart: bool = read_only(
        True, 'Whether the node configures and activates itself; false: a lifecycle manager does')
