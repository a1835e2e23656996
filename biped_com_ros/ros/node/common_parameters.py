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
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.ros.node.parameters import parameter


BASE_SOURCES = ('imu', 'odometry', 'tf', 'fixed')
"""Where the pose of the base may come from; see `base_sources`."""


def gravity_parameter(read_only: bool = True) -> Any:
    """Return the parameter `gravity`."""
    return parameter(
        GRAVITY, 'Gravitational acceleration', 'm/s2', 0.1, 30.0, read_only=read_only)


@dataclass(frozen=True)
class RobotChoice:
    """Of every node that needs the robot."""

    robot: str = parameter(
        'biped', 'Name of a robot of this package, or path of a YAML file', read_only=True)
    urdf: str = parameter(
        '', "Overrides the robot's URDF: a path, package:// URI, or 'topic'", read_only=True)


@dataclass(frozen=True)
class RobotNodeParameters(RobotChoice):
    """Of one that reads stamped messages, too."""

    max_stamp_age: float = parameter(
        1.0, "Messages with stamps further than this from the node's clock are refused; 0 accepts "
        'any', 's', 0.0, 1e6, read_only=True)


@dataclass(frozen=True)
class EstimatorParameters(RobotNodeParameters):
    """Of an estimator that knows where the base is."""

    base_source: str = parameter(
        'imu', 'Where the base is known from: orientation by IMU and position by the standing '
        'soles; the topic odom; TF; or the parameter fixed_base', options=BASE_SOURCES,
        read_only=True)
    world_frame: str = parameter(
        'odom', 'Frame, fixed in the world and z up, of all that is published', read_only=True)
    base_timeout: float = parameter(
        0.1, 'Largest difference between the stamps of joint_states and of IMU, odometry or TF',
        's', 0.0001, 60.0, read_only=True)
    fixed_base: list[float] = parameter(
        [0.0] * 6, 'Pose of base_link with base_source fixed: x, y, z (m), roll, pitch, yaw (rad)',
        read_only=True)
    marker_rate: float = parameter(
        15.0, 'How often markers are published while somebody listens, else once a second; 0 '
        'turns them off', 'Hz', 0.0, 10000.0)
    sensor_timeout: float = parameter(
        0.5, 'Silence after which an input counts as dead', 's', 0.001, 60.0, read_only=True)


@dataclass(frozen=True)
class ContactParameters:
    """Of a node that tells by forces which feet stand."""

    contact_engage: float = parameter(
        0.06, 'Normal force of a foot, as a share of body weight, above which a contact begins',
        '', 0.001, 0.9, read_only=True)
    contact_release: float = parameter(
        0.03, 'Normal force of a foot, as a share of body weight, below which a contact ends',
        '', 0.001, 0.9, read_only=True)
    contact_release_dwell: float = parameter(
        0.006, 'How long the force has to stay there for a contact to end', 's', 0.0, 1.0,
        read_only=True)


@dataclass(frozen=True)
class WeightParameters:
    """Of a node that compares the weight that is felt with the model's."""

    weight_tolerance: float = parameter(
        0.03, "Relative difference of the measured weight from the model's that is accepted",
        '', 0.0, 1.0, read_only=True)


@dataclass(frozen=True)
class ManagedNodeParameters(RobotNodeParameters):
    """Of a lifecycle node; see `lifecycle`."""

    urdf: str = parameter(
        '', "Overrides the robot's URDF: a path, package:// URI, or 'topic'; read when the node "
        'is configured')
    autostart: bool = parameter(
        True, 'Whether to configure and activate itself; turn it off where a lifecycle manager '
        'does', read_only=True)
