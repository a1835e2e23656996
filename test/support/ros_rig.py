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
"""A node under test and its peer on one executor, over real DDS."""

from __future__ import annotations

import time

from biped_com_ros.ros.node.executor import make_executor
from rclpy.node import Node


class Served:
    """
    Serves the nodes of its `executor` while something is waited for.

    Attributes
    ----------
    executor, node, peer
        The executor, the node under test, and the rest of the robot; whoever derives makes them.

    """

    def until(self, condition, timeout=30.0, what='condition'):
        """Serve callbacks until the condition holds; fails when it does not."""
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f'waited in vain for {what}'
            self.executor.spin_once(timeout_sec=0.02)

    def spin(self, seconds):
        """Serve callbacks for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=left)

    def close(self):
        """End both."""
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()


class Rig(Served):
    """
    Two nodes that are served while something is waited for.

    Attributes
    ----------
    node, peer
        The one under test, and the rest of the robot.

    """

    def __init__(self, name='node', node=None, **options):
        self.executor = make_executor()
        self.node, self.peer = node or Node(name, **options), Node('peer')
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)

    def publisher(self, message_type, topic, qos=10):
        """Return a publisher of the peer that has found its subscriber."""
        publisher = self.peer.create_publisher(message_type, topic, qos)
        self.until(lambda: publisher.get_subscription_count() > 0, what=f'subscriber of {topic}')
        return publisher

    def listen(self, message_type, topic, qos=10, publishers=1):
        """Return a list that fills with what is published on a topic."""
        messages = []
        self.peer.create_subscription(message_type, topic, messages.append, qos)
        self.until(lambda: self.peer.count_publishers(topic) >= publishers,
                   what=f'publisher of {topic}')
        return messages

    def call(self, client, request):
        """Call a service and return its answer."""
        self.until(client.service_is_ready, what=client.srv_name)
        future = client.call_async(request)
        self.until(future.done, what=f'answer of {client.srv_name}')
        return future.result()
