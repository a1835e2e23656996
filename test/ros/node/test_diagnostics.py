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
"""Diagnostics and services over DDS."""

import gc

from biped_com_ros.core.errors import InputError
from biped_com_ros.ros.node.callback_errors import log_exception, Throttle
from biped_com_ros.ros.node.diagnostics import (
    Diagnostics, ERROR, is_in_namespace, OK, WARN)
from biped_com_ros.ros.node.executor import settle_memory
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from diagnostic_msgs.msg import DiagnosticArray
import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from std_srvs.srv import SetBool
from support.messages import parameters
from support.ros_rig import NodeRig


def statuses(rig, received):
    """Return the next statuses by name."""
    received.clear()
    rig.until(lambda: received, what='/diagnostics')
    return {status.name: status for status in received[-1].status}


@pytest.mark.parametrize(('namespace', 'prefix'), [('', ''), ('robot1', 'robot1/')])
def test_lines_carry_namespace_node_robot_and_values_once_a_second(namespace, prefix, closing):
    """Though simulated time stands still; a broken report does not affect the others."""
    rig = closing(NodeRig(namespace=namespace, parameter_overrides=parameters(use_sim_time=True)))
    diagnostics = Diagnostics(rig.node, 'robby')
    diagnostics.add('broken', lambda: 1 / 0)
    diagnostics.add('weight', lambda: (OK, 'fine', {'measured [N]': 123.4567891, 'n': 2}))
    received = rig.collect(DiagnosticArray, '/diagnostics')
    received.clear()
    rig.spin(2.0)
    assert len(received) == 2
    lines = {status.name: status for status in received[-1].status}
    line, broken = (lines[f'{prefix}node: {name}'] for name in ('weight', 'broken'))
    assert (line.level, line.message, line.hardware_id) == (OK, 'fine', f'{prefix}robby')
    assert {v.key: v.value for v in line.values} == {'measured [N]': '123.457', 'n': '2'}
    assert broken.level == ERROR and 'ZeroDivisionError' in broken.message
    assert is_in_namespace(line, '/robot1') is bool(namespace)
    assert is_in_namespace(line, '/') is not bool(namespace)
    diagnostics.remove('weight')
    rig.spin(1.0)
    assert all('weight' not in status.name for status in received[-1].status)


def test_a_second_node_of_the_name_is_reported_until_it_is_gone(rig):
    Diagnostics(rig.node)
    received = rig.collect(DiagnosticArray, '/diagnostics')
    assert 'node: name' not in statuses(rig, received)
    context = Context()
    rclpy.init(context=context)  # as another process has it
    other = Node('node', context=context)
    rig.until(lambda: 'node: name' in statuses(rig, received), what='the second node')
    line = statuses(rig, received)['node: name']
    assert line.level == WARN and "2 nodes are called '/node'" in line.message
    assert 'stop all but one' in line.message
    other.destroy_node()
    rclpy.shutdown(context=context)
    rig.until(lambda: statuses(rig, received)['node: name'].level == OK, what='OK again')


def test_exceptions_are_logged_once_per_kind_and_counted(rig):
    log = []
    rig.node.get_logger().error = log.append
    diagnostics = Diagnostics(rig.node)
    for _ in range(3):
        log_exception(rig.node, InputError('no torso'))
        log_exception(rig.node, KeyError('torso'))
    assert len(log) == 2 and log[0] == 'no torso' and "KeyError: 'torso'" in log[1]
    line = diagnostics.status('callbacks')
    assert line.level == ERROR
    assert {value.key: value.value for value in line.values} == {
        'failed': '6', 'last': "KeyError: 'torso'"}


def test_throttle_is_per_key():
    throttle = Throttle(60.0)
    assert [throttle('a'), throttle('a'), throttle('b'), throttle('b')] == [1, 0, 1, 0]
    throttle = Throttle(0.0)
    assert throttle() and throttle()


def test_services_respond_with_a_message(rig):
    def fail():
        raise InputError('the robot moves')
    switched = []
    trigger_service(rig.node, '~/tare', lambda: 'tared 2 sensors')
    trigger_service(rig.node, '~/untare', lambda: None)
    trigger_service(rig.node, '~/capture', fail)
    switch_service(rig.node, '~/hold', switched.append)
    response = rig.trigger('/node/tare')
    assert response.success and response.message == 'tared 2 sensors'
    assert rig.trigger('/node/untare').success
    response = rig.trigger('/node/capture')
    assert not response.success and response.message == 'the robot moves'
    client = rig.peer.create_client(SetBool, '/node/hold')
    assert rig.call(client, SetBool.Request(data=True)).success and switched == [True]


def test_the_garbage_collector_skips_what_was_set_up():
    kept = [object() for _ in range(100)]
    settle_memory()
    try:
        assert gc.get_freeze_count() > len(kept)
    finally:
        gc.unfreeze()
