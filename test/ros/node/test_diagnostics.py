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

from __future__ import annotations

import gc

from biped_com_ros.core.errors import InputError
from biped_com_ros.ros.node.callback_errors import log_exception, Throttle
from biped_com_ros.ros.node.diagnostics import (
    Diagnostics, ERROR, is_in_namespace, OK, WARN)
from biped_com_ros.ros.node.executor import settle_memory
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger
from support.ros_rig import NodeRig


def statuses(rig, received):
    """Return the next statuses by name."""
    received.clear()
    rig.until(lambda: received, what='/diagnostics')
    return {status.name: status for status in received[-1].status}


def test_lines_carry_node_robot_and_values(rig):
    diagnostics = Diagnostics(rig.node, 'robby', period=0.05)
    diagnostics.add('weight', lambda: (OK, 'as modelled', {'measured [N]': 123.4567891, 'n': 2}))
    received = rig.collect(DiagnosticArray, '/diagnostics')
    line = statuses(rig, received)['node: weight']
    assert (line.level, line.message, line.hardware_id) == (OK, 'as modelled', 'robby')
    assert {v.key: v.value for v in line.values} == {'measured [N]': '123.457', 'n': '2'}
    diagnostics.remove('weight')
    assert 'node: weight' not in statuses(rig, received)


def test_lines_carry_the_namespace_as_robots_share_the_topic():
    rig = NodeRig(namespace='robot1')
    try:
        Diagnostics(rig.node, 'robby', period=0.05).add('weight', lambda: (OK, 'as modelled', {}))
        line = statuses(rig, rig.collect(DiagnosticArray, '/diagnostics'))['robot1/node: weight']
        assert line.hardware_id == 'robot1/robby'
        assert is_in_namespace(line, '/robot1') and not is_in_namespace(line, '/')
    finally:
        rig.close()


def test_a_broken_report_does_not_affect_the_others(rig):
    diagnostics = Diagnostics(rig.node, period=0.05)
    diagnostics.add('broken', lambda: 1 / 0)
    diagnostics.add('healthy', lambda: (OK, '', {}))
    lines = statuses(rig, rig.collect(DiagnosticArray, '/diagnostics'))
    assert lines['node: broken'].level == ERROR
    assert 'ZeroDivisionError' in lines['node: broken'].message
    assert lines['node: healthy'].level == OK


def test_a_second_node_of_the_name_is_reported_until_it_is_gone(rig):
    Diagnostics(rig.node, period=0.05)
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


def test_they_come_once_a_second_though_simulated_time_stands_still():
    rig = NodeRig(parameter_overrides=[Parameter('use_sim_time', value=True)])
    try:
        Diagnostics(rig.node)
        received = rig.collect(DiagnosticArray, '/diagnostics')
        rig.spin(2.3)
        assert 2 <= len(received) <= 3
    finally:
        rig.close()


def test_exceptions_are_logged_once_per_kind_and_counted(rig):
    log = []
    rig.node.get_logger().error = log.append
    Diagnostics(rig.node, period=0.05)
    received = rig.collect(DiagnosticArray, '/diagnostics')
    for _ in range(3):
        log_exception(rig.node, InputError('no torso'))
        log_exception(rig.node, KeyError('torso'))
    assert len(log) == 2 and log[0] == 'no torso' and "KeyError: 'torso'" in log[1]
    rig.until(lambda: statuses(rig, received)['node: callbacks'].level == ERROR)
    values = {value.key: value.value for value in received[-1].status[0].values}
    assert values == {'failed': '6', 'last': "KeyError: 'torso'"}


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

    def call(name, kind=Trigger, **request):
        return rig.call(rig.peer.create_client(kind, f'/node/{name}'), kind.Request(**request))
    response = call('tare')
    assert response.success and response.message == 'tared 2 sensors'
    assert call('untare').success
    response = call('capture')
    assert not response.success and response.message == 'the robot moves'
    assert call('hold', SetBool, data=True).success and switched == [True]


def test_the_garbage_collector_skips_what_was_set_up():
    kept = [object() for _ in range(100)]
    settle_memory()
    try:
        assert gc.get_freeze_count() > len(kept)
    finally:
        gc.unfreeze()
