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
"""Page inputs and what publishes for them."""

import time

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.viewer.inputs import PageInputs
from biped_com_ros.nodes.viewer.polled_node import PolledNode
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

MODEL = RobotModel.load('biped')
LATCHED = QoSProfile(depth=5, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Polling:
    """Page inputs and the node that publishes for them."""

    def __init__(self, model=MODEL):
        self.polled, self.robot = PolledNode('viewer_inputs'), Node('robot')
        self.inputs = PageInputs(self.polled, model)
        self.now = 0.0

    @property
    def view(self):
        """Return the received data."""
        return self.inputs.view

    def publish(self, topic, message, is_shown, ns=1_000_000_000, qos=10):
        """Publish a message, with a stamp if it has one; the view has to show it."""
        publisher = self.publisher(type(message), topic, qos)
        if hasattr(message, 'header'):
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(ns, 10 ** 9)
        publisher.publish(message)
        self.inputs.update(self.now)
        assert is_shown(), topic
        self.robot.destroy_publisher(publisher)

    def publisher(self, kind, topic, qos=10):
        """Return a publisher that has found the page."""
        publisher = self.robot.create_publisher(kind, topic, qos)
        end = time.monotonic() + 20.0
        while not publisher.get_subscription_count():
            assert time.monotonic() < end, f'nobody subscribes to {topic}'
            time.sleep(0.002)
        return publisher

    def close(self):
        """End both."""
        self.polled.destroy()
        self.robot.destroy_node()


def joint_state(names, positions, efforts):
    """Return a JointState."""
    return JointState(name=list(names), position=list(map(float, positions)),
                      velocity=[0.0] * len(names), effort=list(map(float, efforts)))
