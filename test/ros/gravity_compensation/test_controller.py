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
"""The controller that gets the commands: its joints, and other publishers."""

from __future__ import annotations

import numpy as np
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray


def test_another_publisher_of_commands_is_reported(rig):
    other = rig.peer.create_publisher(
        Float64MultiArray, 'gravity_compensation/commands', 10)
    rig.until(lambda: rig.has_error('1 other publisher', '/gravity_compensation/commands'),
              'diagnostics')
    rig.peer.destroy_publisher(other)
    rig.until(lambda: 'other publisher' not in rig.status()[1], 'its end')


def controller(rig, joints):
    """Start something with the parameters of an effort controller."""
    node = Node('effort_controller', namespace=rig.namespace)
    node.declare_parameter('joints', joints)
    rig.executor.add_node(node)
    return node


def test_controller_with_another_order_gets_nothing(make, talos):
    rig = make(controller='effort_controller')
    node = controller(rig, list(reversed(talos.actuated_joint_names)))
    rig.until(lambda: rig.has_error("controller 'effort_controller' expects", 'at index 0'),
              'diagnostics')
    assert not rig.commands and not rig.last.any()
    node.destroy_node()


def test_controller_in_the_same_order_gets_commands(make, talos):
    order = list(reversed(talos.actuated_joint_names))
    rig = make(controller='effort_controller', command_joints=order)
    rig.play(0.3)
    assert not rig.commands  # no controller yet
    node = controller(rig, order)
    rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')
    rig.until(lambda: np.allclose(rig.commands[-1].data, rig.expected().efforts[::-1], atol=0.01),
              'commands')
    node.destroy_node()


def test_a_controller_that_ends_without_a_response_is_asked_again(make, talos):
    rig = make(controller='effort_controller')
    unresponsive = Node('effort_controller', namespace=rig.namespace)  # no executor serves it
    client = rig.peer.create_client(GetParameters, 'effort_controller/get_parameters')
    rig.until(client.service_is_ready, 'its service')
    rig.play(1.2)  # it is asked
    unresponsive.destroy_node()
    node = controller(rig, list(talos.actuated_joint_names))
    rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')
    node.destroy_node()
