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
"""
Subscriptions to whole messages, for what `Input` does not read: texts, diagnostics, trajectories.

A message arrives as bytes, so that its size is known before it costs anything: rclpy takes up to
seconds to convert a megabyte of short strings, and whoever keeps its fields keeps the megabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from biped_com_ros.ros.fast.codec import LONGEST_MESSAGE
from biped_com_ros.ros.node.callback_errors import log_exception, Throttle
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

#: Longest trajectory, bytes: ten seconds of twelve joints at 1 kHz, with accelerations, take 3 MB.
LONGEST_TRAJECTORY = 8 * 1024 ** 2


def installed_type(module: str, name: str) -> Any:
    """Return a type of messages; None where its package is not installed, or is too old."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return None


def subscribe(node: Node, message_type: type, topic: str, callback: Callable[[Any], None],
              qos: QoSProfile, *, longest: int = LONGEST_MESSAGE,
              **options: Any) -> Subscription:
    """
    Subscribe to whole messages of bounded size.

    Messages that are longer, or are none of this type, are logged once per 5 s and not used. An
    exception of the callback is logged, too, and the node keeps running.

    Parameters
    ----------
    node
        The rclpy node.
    message_type, topic, qos
        What to subscribe to.
    callback
        Called with the message.
    longest
        Size of the longest message that is used, bytes as serialized.
    options
        Of ``create_subscription``.

    """
    throttle = Throttle()

    def refuse(reason: str) -> None:
        if throttle(reason.partition(' ')[0]):
            node.get_logger().error(
                f"'{subscription.topic_name}': cannot be read: {reason} (message not used)")

    def on_bytes(raw: bytes) -> None:
        if len(raw) > longest:
            refuse(f'it has {len(raw)} bytes; limit {longest}')
            return
        try:
            message = deserialize_message(raw, message_type)
        except Exception:  # noqa: B902 - rclpy raises various types, which have no more in common
            refuse(f'its {len(raw)} bytes are no {message_type.__name__}')
            return
        try:
            callback(message)
        except Exception as error:  # noqa: B902 - no message may end the node
            log_exception(node, error)

    subscription = node.create_subscription(
        message_type, topic, on_bytes, qos, raw=True, **options)
    return subscription
