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
"""Simulated time for nodes of one process: one subscription to /clock instead of one for each."""

from __future__ import annotations

from typing import Any

from rclpy.time_source import CLOCK_TOPIC, TimeSource


class SharedClock:
    """
    Sets the clocks of nodes that go by simulated time.

    Parameters
    ----------
    node
        The node that subscribes, once it is needed; it must not remap names.

    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._source: TimeSource | None = None

    def adopt(self, node: Any) -> None:
        """
        Set a node's clock from now on in place of the node itself.

        Does nothing to one that goes by the computer's clock, or by another topic. Whether it goes
        by simulated time, the node's own parameter ``use_sim_time`` still says.
        """
        clock = node.get_clock()
        if not clock.ros_time_is_active or node.resolve_topic_name(CLOCK_TOPIC) != CLOCK_TOPIC:
            return
        if self._source is None:
            self._source = TimeSource(node=self._node)
            self._source.ros_time_is_active = True
        for subscription in tuple(node.subscriptions):
            if subscription.topic_name == CLOCK_TOPIC:
                node.destroy_subscription(subscription)
        self._source.attach_clock(clock)
