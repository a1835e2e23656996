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
Publishes LowState by its real type beside `lowstate_bridge`; run by test_lowstate_package.py.

Prints what the bridge publishes as JSON.
"""

import json
import sys

from biped_com_ros.nodes.lowstate_bridge.node import LowstateBridge
import rclpy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from support.driven_time import DrivenTime
from support.messages import parameters
from support.ros_rig import NodeRig, ServedNodes


def main():
    """Publish the messages of a file, a serialized one in hex per line; report all."""
    from rclpy.serialization import deserialize_message
    from unitree_hg.msg import LowState
    with open(sys.argv[1]) as file:
        messages = [deserialize_message(bytes.fromhex(line), LowState) for line in file]
    rclpy.init()
    with DrivenTime() as ServedNodes.time:
        rig = NodeRig(node=LowstateBridge(parameter_overrides=parameters(robot='g1_as_sold')))
        joints = rig.collect(JointState, 'joint_states', 100)
        imus = rig.collect(Imu, 'imu', 100)
        rig.record_statuses()
        publisher = rig.publisher(LowState, 'lowstate')
        rig.spin(0.2)  # publishers look for subscribers ten times a second
        for message in messages:
            publisher.publish(message)
            rig.spin(0.02)
        rig.spin(2.0)
        print(json.dumps({
            'serialized': [bytes(serialize_message(message)).hex() for message in messages],
            'positions': [dict(zip(m.name, m.position)) for m in joints],
            'gyroscope': [m.angular_velocity.z for m in imus],
            'statuses': {name: text for name, (_, text) in rig.statuses.items()}}))
        rig.close()
    rclpy.shutdown()


if __name__ == '__main__':
    main()
