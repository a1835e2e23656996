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

from __future__ import annotations

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

    def publish(self, topic, message, until, ns=1_000_000_000, qos=10):
        """Publish until the view shows it; stamps go up."""
        publisher = self.robot.create_publisher(type(message), topic, qos)
        end = time.monotonic() + 10.0
        while not until():
            assert time.monotonic() < end, f'{topic} was not received'
            if hasattr(message, 'header'):
                ns += 1_000_000
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(ns, 10 ** 9)
            publisher.publish(message)
            time.sleep(0.02)
            self.inputs.update(self.now)
        self.robot.destroy_publisher(publisher)

    def close(self):
        """End both."""
        self.polled.destroy()
        self.robot.destroy_node()


def joint_state(names, positions, efforts):
    """Return a JointState."""
    return JointState(name=list(names), position=list(map(float, positions)),
                      velocity=[0.0] * len(names), effort=list(map(float, efforts)))
