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
"""Who publishes a topic on which nothing arrives, and why: as diagnostics tell it."""

import re

from biped_com_ros.ros.topics.inputs import PointInput
from geometry_msgs.msg import PointStamped
import pytest
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data

RELIABILITY = 'qos_overrides./point.subscription.reliability'


@pytest.fixture
def add(rig):
    """Return a function that adds a node to the rig."""
    added = []

    def add(node):
        rig.executor.add_node(node)
        added.append(node)
        return node
    yield add
    for node in added:
        rig.executor.remove_node(node)
        node.destroy_node()


def silent_input(rig, publishers=1):
    source = PointInput(rig.node, 'point', 'odom', lambda *_: None)
    rig.until(lambda: rig.node.count_publishers('/point') == publishers, what='the publishers')
    return source


def until_reported(rig, source, text):
    rig.until(lambda: text in source.report()[1], what=f'{text} in {source.report()[1]}')


def test_an_active_publisher_is_named(rig, add):
    driver = add(Node('driver', namespace='/leg'))
    driver.create_publisher(PointStamped, '/point', 10)
    message = silent_input(rig).report()[1]
    assert message == (
        "no valid message on '/point' yet: /leg/driver publishes this topic, but nothing arrives; "
        'see its log, and try ros2 topic hz /point')


def test_several_publishers_are_named_and_many_are_counted(rig, add):
    for name in ('a', 'b', 'c', 'd', 'e'):
        add(Node(name)).create_publisher(PointStamped, '/point', 10)
    message = silent_input(rig, publishers=5).report()[1]
    assert re.search(
        "'/point' yet: (/[a-e], ){3}2 more publish this topic, but nothing arrives; see their "
        'logs, and try ros2 topic hz /point$', message)


def test_a_quality_of_service_that_does_not_fit_is_named_with_its_remedy(rig, add):
    add(Node('driver')).create_publisher(PointStamped, '/point', qos_profile_sensor_data)
    node = add(Node('picky', parameter_overrides=[Parameter(RELIABILITY, value='reliable')]))
    source = PointInput(node, '/point', 'odom', lambda *_: None)
    message = (
        "no valid message on '/point' yet: /driver publishes it as best effort, which a "
        f"reliable subscription does not receive: set '{RELIABILITY}' to 'best_effort'")
    rig.until(lambda: source.report()[1] == message, what='the report')


def test_a_lifecycle_node_that_is_not_active_is_named_with_the_command(rig, add):
    driver = add(LifecycleNode('driver', namespace='/leg'))
    driver.create_lifecycle_publisher(PointStamped, '/point', 10)
    source = silent_input(rig)
    until_reported(rig, source, 'yet: /leg/driver publishes it but is unconfigured: '
                   'ros2 lifecycle set /leg/driver configure')
    driver.trigger_configure()
    until_reported(rig, source, 'publishes it but is inactive: ros2 lifecycle set '
                   '/leg/driver activate')
    driver.trigger_activate()
    until_reported(rig, source, '/leg/driver publishes this topic, but nothing arrives')


def test_an_inactive_controller_is_found_by_its_manager(rig, add):
    """Controllers have no services of a lifecycle node, see support.effort_controller."""
    srv = pytest.importorskip('controller_manager_msgs.srv')
    msg = pytest.importorskip('controller_manager_msgs.msg')
    state = ['inactive']

    def respond(_, response):
        response.controller = [msg.ControllerState(name='broadcaster', state=state[0])]
        return response
    add(Node('broadcaster', namespace='/leg')).create_publisher(
        PointStamped, '/point', 10)
    manager = add(Node('controller_manager', namespace='/leg'))
    manager.create_service(srv.ListControllers, '~/list_controllers', respond)
    source = silent_input(rig)
    until_reported(rig, source, '/leg/broadcaster publishes it but is an inactive controller: '
                   'ros2 control switch_controllers --activate broadcaster')
    state[0] = 'active'
    until_reported(rig, source, '/leg/broadcaster publishes this topic, but nothing arrives')
