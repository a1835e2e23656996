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
"""Quality of service: what the package's topics use, and how users override it."""

from __future__ import annotations

from copy import copy
from enum import Enum
from typing import Any

from biped_com_ros.core.errors import UnknownNameError
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

#: Sensor data in: best effort matches every publisher; at 1 kHz a depth below 10 loses messages.
SENSOR_INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

#: Commands in: reliable, because each one counts.
COMMAND_INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)

#: Estimates out: reliable, which both reliable and best effort subscribers match.
STATE_OUTPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)

#: Published once, for late subscribers too: robot description, offsets, static transforms.
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

_OVERRIDABLE = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY,
                QoSPolicyKind.DURABILITY)


def copy_of(profile: QoSProfile) -> QoSProfile:
    """
    Return a copy that overriding parameters may change.

    rclpy writes the overrides of a topic into the profile it is given: with a shared one they
    would spread to every topic created later.
    """
    return copy(profile)


def overridable() -> QoSOverridingOptions:
    """Let parameters ``qos_overrides.<topic>.<publisher|subscription>...`` change the QoS."""
    return QoSOverridingOptions(_OVERRIDABLE)


def overridden(node: Node, topic: str, profile: QoSProfile) -> tuple[str, QoSProfile]:
    """
    Return the full name of a topic and a profile as a subscription of the node would have them.

    For subscriptions of a `SubscriptionPool`: declares the parameters
    ``qos_overrides.<topic>.subscription.*`` as rclpy does and uses their values.

    Raises
    ------
    ConfigurationError
        If a parameter has no valid value.

    """
    name, chosen = node.resolve_topic_name(topic), copy_of(profile)
    for kind in _OVERRIDABLE:
        policy = kind.name.lower()
        default = getattr(chosen, policy)
        value = _declared(node, f'qos_overrides.{name}.subscription.{policy}', default)
        setattr(chosen, policy, value)
    return name, chosen


def _declared(node: Node, name: str, default: Any) -> Any:
    is_choice = isinstance(default, Enum)
    if not node.has_parameter(name):
        node.declare_parameter(name, default.name.lower() if is_choice else default,
                               ParameterDescriptor(read_only=True))
    value = node.get_parameter(name).value
    if not is_choice:
        return value
    choices = type(default).__members__
    if value.upper() not in choices:
        raise UnknownNameError('quality of service', value, map(str.lower, choices), name)
    return choices[value.upper()]
