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

from functools import partial
import re
import threading
import time

from biped_com_ros.core.gravity.effort_guard import ACTIVE
from biped_com_ros.nodes.gravity_compensation.command_subscribers import CommandSubscribers
from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from support.effort_controller import ControllerManager, EffortController
from support.gravity_rig import largest_step


def test_another_publisher_of_commands_is_reported(rig):
    other = rig.peer.create_publisher(
        Float64MultiArray, 'gravity_compensation/commands', 10)
    rig.until(lambda: rig.has_error('1 other publisher', '/gravity_compensation/commands'),
              'diagnostics')
    rig.peer.destroy_publisher(other)
    rig.until(lambda: 'other publisher' not in rig.status()[1], 'its end')


def test_a_problem_of_timing_does_not_hide_another_publisher(rig):
    other = rig.peer.create_publisher(
        Float64MultiArray, 'gravity_compensation/commands', 10)
    rig.missing = {'joints'}
    rig.until(lambda: rig.has_error('1 other publisher', 'joint_states'), 'diagnostics')
    rig.peer.destroy_publisher(other)


def test_efforts_begin_at_zero_whenever_the_controller_is_activated(rig, talos):
    controller = EffortController(rig, list(talos.actuated_joint_names))
    controller.switch(on=True)
    controller.wait_for_efforts()
    controller.switch(on=False)
    rig.statuses.clear()
    rig.until(lambda: rig.has_error("effort_controller' is inactive"), 'diagnostics')
    assert not controller.efforts.any()
    count = len(controller.applied)
    rig.play(0.2)
    assert len(controller.applied) == count  # nothing is sent to it
    controller.switch(on=True)
    rig.until(lambda: len(controller.applied) > count + 5, 'efforts again')
    rig.until(rig.is_balanced, 'efforts')
    assert largest_step(rig, controller.applied[count:]) <= 1.0 + 1e-9
    controller.unload()


def test_the_log_names_each_reason_although_another_was_logged_just_before(rig, capfd):
    logged = ''

    def lines():
        nonlocal logged
        logged += capfd.readouterr().err
        return [line for line in logged.splitlines() if 'holding the last efforts' in line]

    def is_active():
        return rig.node.supervisor.state == ACTIVE and rig.is_balanced()
    rig.until(is_active, 'efforts')

    def names(reason):
        return any(reason in line for line in lines())
    for name, reason in (('imu', 'the IMU'), ('left', "'left'")):
        rig.missing = {name}
        rig.until(partial(names, reason), f'the line about {reason}')
        rig.missing = set()
        rig.until(is_active, 'efforts again')
    reasons = {re.sub('[0-9.]+', '', line) for line in lines()}
    assert len(reasons) == len(lines()), logged  # each once


def test_a_controller_that_comes_back_with_another_order_gets_nothing(rig, talos):
    order = list(talos.actuated_joint_names)
    first = EffortController(rig, order)
    first.switch(on=True)
    first.wait_for_efforts()
    first.unload()
    second = EffortController(rig, order[::-1])
    second.switch(on=True)
    rig.until(lambda: rig.has_error("/effort_controller' expects", 'at index 0'), 'diagnostics')
    rig.play(0.3)
    assert not [efforts for efforts in second.applied if efforts is not None]
    second.unload()
    third = EffortController(rig, order)
    third.switch(on=True)
    third.wait_for_efforts()
    third.unload()


def test_a_controller_of_positions_gets_nothing(rig, talos):
    controller = EffortController(rig, list(talos.actuated_joint_names), interface='position')
    controller.switch(on=True)
    rig.until(lambda: rig.has_error('takes commands of position, not of effort'), 'diagnostics')
    rig.play(0.3)
    assert not [values for values in controller.applied if values is not None]
    controller.unload()


def subscriber(rig, joints, received):
    """Return a controller that was there before the node under test, and announces nothing."""
    node = Node('effort_controller', namespace=rig.namespace)
    node.declare_parameter('joints', joints)
    node.create_subscription(
        Float64MultiArray, 'gravity_compensation/commands', received.append, 10)
    rig.executor.add_node(node)
    return node


def test_a_controller_manager_of_another_name_is_found_by_remapping(make, talos):
    rig = make(autostart=False, controller='effort_controller', remap=(
        'controller_manager/list_controllers:=left_arm_manager/list_controllers'))
    manager = ControllerManager(rig, 'left_arm_manager', effort_controller='inactive')
    received = []
    node = subscriber(rig, list(talos.actuated_joint_names), received)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    rig.play(0.5)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(lambda: rig.has_error("effort_controller' is inactive"), 'diagnostics')
    assert manager.count and not any(np.any(message.data) for message in received)
    manager.close()
    node.destroy_node()


@pytest.mark.parametrize('state', ['inactive', 'active'])
def test_controller_manager_is_called_for_controllers_that_announce_nothing(make, talos, state):
    rig, received = make(autostart=False), []
    manager = ControllerManager(rig, effort_controller=state, other='active')
    node = subscriber(rig, list(talos.actuated_joint_names), received)
    rig.play(1.0)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    rig.play(0.5)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    if state == 'active':
        rig.until(lambda: rig.is_balanced() and received, 'efforts')
    else:
        rig.until(lambda: rig.has_error("effort_controller' is inactive"), 'diagnostics')
        assert not received or not np.any(received[-1].data)
        rig.play(1.0)
        assert not any(np.any(message.data) for message in received)
    count = manager.count
    rig.play(2.5)
    assert manager.count == count  # it is asked once
    rig.executor.remove_node(node)
    node.destroy_node()
    manager.close()


def test_an_inactive_controller_beside_the_active_one_interrupts_nothing(make, talos):
    rig = make(input_timeout=1.0, hold_time=1.0)  # whatever else this machine does
    order = list(talos.actuated_joint_names)
    controller = EffortController(rig, order)
    controller.switch(on=True)
    controller.wait_for_efforts()
    count = len(controller.applied)
    other = EffortController(rig, order[::-1], 'other_controller')
    rig.play(2.5)  # it counts as active by default now, until it announces something
    other.switch(on=False)
    rig.until(lambda: len(controller.applied) > count + 20, 'commands')
    sums = np.array([np.abs(efforts).sum() for efforts in controller.applied[count:]])
    assert sums.min() > 0.95 * sums.max()
    rig.statuses.clear()
    other.switch(on=True)  # both apply what they get, in different orders
    rig.until(lambda: rig.has_error("/other_controller' expects", 'at index 0'), 'diagnostics')
    count = len(other.applied)  # commands that were on their way when it announced itself
    rig.play(0.3)
    assert len(other.applied) == count
    other.unload()
    controller.unload()


def test_a_recorder_of_the_commands_interrupts_nothing(make, talos):
    rig = make(input_timeout=1.0, hold_time=1.0)  # whatever else this machine does
    controller = EffortController(rig, list(talos.actuated_joint_names))
    controller.switch(on=True)
    controller.wait_for_efforts()
    count = len(rig.efforts)
    recorder = Node('recorder', namespace=rig.namespace)
    recorder.create_subscription(
        Float64MultiArray, 'gravity_compensation/commands', lambda m: None, 10)
    rig.executor.add_node(recorder)
    rig.play(1.5)
    sums = np.array([np.abs(message.effort).sum() for message in rig.efforts[count:]])
    assert sums.min() > 0.95 * sums.max()
    rig.executor.remove_node(recorder)
    recorder.destroy_node()
    controller.unload()


class LateNames:
    """Has a node discover the nodes behind new subscriptions `delay` seconds later than those."""

    def __init__(self, node, delay):
        self._find, self._delay, self._came_at = node.get_subscriptions_info_by_topic, delay, {}
        node.get_subscriptions_info_by_topic = self

    def __call__(self, topic, no_mangle=False):
        infos, now = self._find(topic, no_mangle), time.monotonic()
        for info in infos:
            if now < self._came_at.setdefault(bytes(info.endpoint_gid), now) + self._delay:
                info.node_name = '_NODE_NAME_UNKNOWN_'  # as rmw_fastrtps has it until then
                info.node_namespace = '_NODE_NAMESPACE_UNKNOWN_'
        return infos


def test_a_controller_whose_name_is_discovered_late_gets_no_step(make, talos):
    rig, received = make(input_timeout=1.0, hold_time=1.0), []
    LateNames(rig.node, 1.0)
    rig.missing = {'joints'}  # it waits, at zero
    rig.play(3.5)  # one that is found from now on may be inactive
    node = subscriber(rig, list(talos.actuated_joint_names), received)  # it is active
    rig.play(0.3)
    rig.missing = set()
    rig.until(lambda: received and rig.is_balanced(), 'efforts')
    rig.play(4.5)
    applied = [np.array(message.data) for message in received]
    sums = np.abs(applied).sum(axis=1)
    assert largest_step(rig, applied) <= 1.0 + 1e-9
    assert (np.diff(sums) > -0.05 * sums.max()).all()  # efforts begin once
    rig.executor.remove_node(node)
    node.destroy_node()


def test_a_subscriber_that_was_known_to_a_predecessor_did_not_come_now(rig):
    topic = f'/{rig.namespace}/gravity_compensation/commands'
    subscribers = CommandSubscribers(rig.node, topic, lambda: False)
    before = time.monotonic()
    found = subscribers.find('')
    peer = found[rig.peer.get_fully_qualified_name()]
    assert not subscribers.unrecognised and peer <= subscribers.ids
    assert before <= subscribers.came_at(peer) <= time.monotonic()
    assert not subscribers.any_in_step(peer)
    subscribers.note_predating(frozenset(peer))
    assert subscribers.came_at(peer) == float('-inf')
    subscribers.begin(peer)
    assert subscribers.any_in_step(peer)


def controller(rig, joints):
    """Start something with the parameters of an effort controller."""
    node = Node('effort_controller', namespace=rig.namespace)
    node.declare_parameter('joints', joints)
    rig.executor.add_node(node)
    return node


def test_controller_with_another_order_gets_nothing(make, talos):
    rig = make(controller='effort_controller')
    node = controller(rig, list(reversed(talos.actuated_joint_names)))
    rig.until(lambda: rig.has_error("/effort_controller' expects", 'at index 0'),
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


def test_a_controller_that_ends_without_a_response_is_called_again(make, talos):
    rig = make(controller='effort_controller')
    unresponsive = Node('effort_controller', namespace=rig.namespace)  # no executor serves it
    client = rig.peer.create_client(GetParameters, 'effort_controller/get_parameters')
    rig.until(client.service_is_ready, 'its service')
    rig.play(1.2)  # it is asked
    unresponsive.destroy_node()
    node = controller(rig, list(talos.actuated_joint_names))
    rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')
    node.destroy_node()


def test_a_controller_that_takes_longer_to_respond_than_between_questions_gets_commands(
        make, talos):
    """As on a busy computer; each question made the response to the one before worthless."""
    rig, order = make(controller='effort_controller'), list(talos.actuated_joint_names)

    def respond(_, response):
        time.sleep(1.5)
        response.values = [ParameterValue(
            type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=order)]
        return response
    slow = Node('effort_controller', namespace=rig.namespace, start_parameter_services=False)
    slow.create_service(GetParameters, 'effort_controller/get_parameters', respond,
                        callback_group=ReentrantCallbackGroup())
    executor = MultiThreadedExecutor(8)
    executor.add_node(slow)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    try:
        rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')
    finally:
        executor.shutdown()
        thread.join()
        slow.destroy_node()
