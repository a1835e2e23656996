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
Subscriptions that are polled, in place of a callback at every message.

A display needs the latest message twenty times per second, while sensors send five hundred: with
a queue of one, the middleware drops the others before they cost anything in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from biped_com_ros.ros.fast.codec import LONGEST_MESSAGE
from biped_com_ros.ros.topics.qos import SENSOR_INPUT
from biped_com_ros.ros.topics.whole_messages import subscribe
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.qos import QoSProfile


class PolledNode:
    """
    A node whose callbacks run in `poll`.

    Parameters
    ----------
    name, context
        Of the node; remappings and namespace of the command line hold for it.
    frame_prefix
        Frames of messages may have this before their names.

    Attributes
    ----------
    node : rclpy.node.Node
        Where `Input` and subscriptions are created; used by one thread only, the one that polls.

    """

    def __init__(self, name: str, context: Context | None = None,
                 frame_prefix: str = '') -> None:
        self.node = Node(name, context=context, enable_rosout=False,
                         start_parameter_services=False)
        self.node.declare_parameter('frame_prefix', frame_prefix, ignore_override=True)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)

    def poll(self) -> int:
        """Run the callbacks of all messages that wait; return how many there were."""
        count = 0
        while True:
            try:
                task, *_ = self._executor.wait_for_ready_callbacks(timeout_sec=0.0)
            except TimeoutException:
                return count
            task()
            if (error := task.exception()) is not None:
                raise error
            count += 1

    def subscribe(self, message_type: type, topic: str, callback: Callable[[Any], None],
                  qos: QoSProfile, longest: int = LONGEST_MESSAGE) -> None:
        """Subscribe to whole messages of at most `longest` bytes."""
        subscribe(self.node, message_type, topic, callback, qos, longest=longest)

    def unsubscribe(self) -> None:
        """Unsubscribe from everything."""
        for subscription in tuple(self.node.subscriptions):
            self.node.destroy_subscription(subscription)

    def destroy(self) -> None:
        """Destroy the node."""
        self._executor.shutdown()
        self.node.destroy_node()


def latest(profile: QoSProfile = SENSOR_INPUT, depth: int = 1) -> QoSProfile:
    """Return a profile of which only the last messages are kept."""
    short = copy(profile)
    short.depth = depth
    return short
