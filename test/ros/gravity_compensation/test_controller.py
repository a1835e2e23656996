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
The controller that gets the commands: its joints, its states, how it is discovered, a kill.

The stand-in checks that no effort that it applies is a jump, beginning at zero.
"""

import re

from biped_com_ros.core.gravity.effort_limiter import ACTIVE
from biped_com_ros.nodes.gravity_compensation.command_subscribers import CommandSubscribers
from biped_com_ros.ros.node.clock import steady_time
from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Float64MultiArray
from support.driven_time import run_ready
from support.effort_controller import ControllerManager, EffortController


@pytest.fixture
def load(talos):
    """Return a function that loads a controller."""
    controllers = []

    def _load(rig, joints=talos.actuated_joint_names, **options):
        controllers.append(EffortController(rig, joints, **options))
        return controllers[-1]
    yield _load
    for controller in controllers:
        controller.unload()


@pytest.fixture
def joint_order(talos):
    return list(talos.actuated_joint_names)


def smallest_part(applied):
    """Return the ratio of the smallest to the largest sum of efforts."""
    sums = np.abs(applied).sum(axis=1)
    return sums.min() / sums.max()


def test_efforts_begin_at_zero_whenever_the_controller_is_activated(rig, load):
    controller = load(rig).activate()
    controller.switch(on=False)
    rig.statuses.clear()
    rig.reports("effort_controller' is inactive")
    assert not controller.efforts.any()
    count = len(controller.applied)
    rig.play(0.2)
    assert len(controller.applied) == count  # nothing is sent to it
    controller.activate()
    assert len(controller.applied) > count + 5


def test_the_log_names_each_reason_although_another_was_logged_just_before(make, capfd):
    rig, logged = make(), ''

    def lines():
        nonlocal logged
        logged += capfd.readouterr().err
        return [line for line in logged.splitlines() if 'holding the last efforts' in line]

    def is_active():
        return rig.node.supervisor.limiter.state == ACTIVE and rig.is_balanced()
    rig.until(is_active, 'efforts')
    for name, reason in (('imu', 'the IMU'), ('left', "'left'")):
        rig.stand(missing={name})
        rig.until(lambda reason=reason: any(reason in line for line in lines()), reason)
        rig.stand()
        rig.until(is_active, 'efforts again')
    reasons = {re.sub('[0-9.]+', '', line) for line in lines()}
    assert len(reasons) == len(lines()), logged  # each once


@pytest.mark.parametrize(('options', 'is_reversed', 'texts'), (
    ({}, True, ("/effort_controller' expects", 'at index 0')),
    ({'interface': 'position'}, False, ('takes commands of position, not of effort',))))
def test_a_controller_that_comes_back_as_another_one_gets_nothing(
        rig, load, joint_order, options, is_reversed, texts):
    load(rig).activate().unload()
    second = load(rig, joint_order[::-1] if is_reversed else joint_order, **options)
    second.switch(on=True)
    rig.reports(*texts)
    rig.play(0.3)
    assert second.got_nothing
    second.unload()
    load(rig).activate()


@pytest.mark.parametrize(('state', 'name'), (
    ('inactive', 'controller_manager'),
    pytest.param('active', 'controller_manager', marks=pytest.mark.thorough),
    pytest.param('inactive', 'left_arm_manager', marks=pytest.mark.thorough)))
def test_controller_manager_is_called_for_controllers_that_announce_nothing(
        make, load, state, name):
    """Also one of another name, by remapping."""
    rig = make(autostart=False, remap=(
        f'controller_manager/list_controllers:={name}/list_controllers'))
    manager = ControllerManager(rig, name, effort_controller=state, other='active')
    controller = load(rig, is_active=True)  # there before the node under test
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    rig.play(0.5)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    if state == 'active':
        rig.until(lambda: rig.is_balanced() and controller.applied, 'efforts')
    else:
        rig.reports("effort_controller' is inactive")
        rig.play(1.0)
        assert not np.any(controller.applied)
    count = manager.count
    rig.play(2.5, 0.02)
    assert manager.count == count > 0  # it is asked once
    manager.close()


def test_an_inactive_controller_beside_the_active_one_interrupts_nothing(rig, load, joint_order):
    controller = load(rig).activate()
    count = len(controller.applied)
    other = load(rig, joint_order[::-1], name='other_controller')
    rig.play(2.5)  # it counts as active by default now, until it announces something
    other.switch(on=False)
    rig.play(0.2)
    assert len(controller.applied) > count + 20
    assert smallest_part(controller.applied[count:]) > 0.95
    rig.statuses.clear()
    other.switch(on=True)  # both apply what they get, in different orders
    rig.reports("/other_controller' expects", 'at index 0')
    count = len(other.applied)  # commands that were on their way when it announced itself
    rig.play(0.3)
    assert len(other.applied) == count


def test_a_recorder_of_the_commands_interrupts_nothing(rig, load):
    load(rig).activate()
    count = len(rig.efforts)
    recorder = Node('recorder', namespace=rig.namespace)
    recorder.create_subscription(
        Float64MultiArray, 'gravity_compensation/commands', lambda m: None, 10)
    rig.executor.add_node(recorder)
    rig.play(1.5)
    assert smallest_part([message.effort for message in rig.efforts[count:]]) > 0.95
    rig.executor.remove_node(recorder)
    recorder.destroy_node()


class LateNames:
    """Has a node discover the nodes behind new subscriptions `delay` seconds later than those."""

    def __init__(self, node, delay):
        self._find, self._delay, self._came_at = node.get_subscriptions_info_by_topic, delay, {}
        node.get_subscriptions_info_by_topic = self

    def __call__(self, topic, no_mangle=False):
        infos, now = self._find(topic, no_mangle), steady_time()
        for info in infos:
            if now < self._came_at.setdefault(bytes(info.endpoint_gid), now) + self._delay:
                info.node_name = '_NODE_NAME_UNKNOWN_'  # as rmw_fastrtps has it until then
                info.node_namespace = '_NODE_NAMESPACE_UNKNOWN_'
        return infos


@pytest.mark.thorough
def test_a_controller_whose_name_is_discovered_late_gets_no_step(make, load):
    rig = make()
    LateNames(rig.node, 1.0)
    rig.stand(missing={'joints'})  # it waits, at zero
    rig.settle()
    rig.play(0.5, 0.02)  # one that is found from now on may be inactive
    controller = load(rig, is_active=True)
    rig.play(0.3)
    rig.stand()
    rig.until(lambda: controller.applied and rig.is_balanced(), 'efforts')
    rig.play(4.5, 0.02)
    sums = np.abs(controller.applied).sum(axis=1)
    assert (np.diff(sums) > -0.05 * sums.max()).all()  # efforts begin once


def test_a_subscriber_that_was_known_to_a_predecessor_did_not_come_now(rig):
    topic = f'/{rig.namespace}/gravity_compensation/commands'
    subscribers, now = CommandSubscribers(rig.node, topic, lambda: False), steady_time()
    peer = subscribers.find('')[rig.peer.get_fully_qualified_name()]
    assert not subscribers.unrecognised and peer <= subscribers.ids
    assert subscribers.came_at(peer) == now
    assert not subscribers.any_in_step(peer)
    subscribers.note_predating(frozenset(peer))
    assert subscribers.came_at(peer) == float('-inf')
    subscribers.begin(peer)
    assert subscribers.any_in_step(peer)


def test_a_required_controller_gets_commands_only_in_the_same_order(make, load, joint_order):
    rig = make(controller='effort_controller', command_joints=joint_order[::-1])
    rig.play(0.3)
    assert not rig.commands  # no controller yet
    other = load(rig, joint_order, is_active=True)
    rig.reports("/effort_controller' expects", 'at index 0')
    assert not rig.commands and not rig.last.any()
    other.unload()
    load(rig, joint_order[::-1], is_active=True)
    rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')
    rig.until(lambda: np.allclose(rig.commands[-1].data, rig.expected().efforts[::-1], atol=0.01),
              'commands')


def test_a_controller_that_ends_without_a_response_is_called_again(make, load):
    rig = make(controller='effort_controller')
    unresponsive = Node('effort_controller', namespace=rig.namespace)  # no executor serves it
    client = rig.peer.create_client(GetParameters, 'effort_controller/get_parameters')
    rig.until(client.service_is_ready, 'its service')
    rig.play(1.2)  # it is asked
    unresponsive.destroy_node()
    load(rig, is_active=True)
    rig.until(lambda: rig.commands and rig.is_balanced(), 'commands')


def test_a_controller_that_takes_longer_to_respond_than_between_questions_gets_commands(
        make, joint_order):
    """As on a busy computer; each question made the response to the one before worthless."""
    rig = make(controller='effort_controller')
    slow = Node('effort_controller', namespace=rig.namespace, start_parameter_services=False)

    async def respond(_, response):
        later = Future()
        slow.create_timer(1.5, lambda: later.done() or later.set_result(None))
        await later
        response.values = [ParameterValue(
            type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=joint_order)]
        return response
    slow.create_service(GetParameters, 'effort_controller/get_parameters', respond,
                        callback_group=ReentrantCallbackGroup())
    executor = SingleThreadedExecutor()
    executor.add_node(slow)
    rig.until(lambda: run_ready(executor) or (rig.commands and rig.is_balanced()), 'commands')
    executor.shutdown()
    slow.destroy_node()


@pytest.fixture
def killed(make, load):
    """Return a rig whose node was killed while a controller applies its efforts, and both."""
    rig = make()
    controller = load(rig, is_active=True)
    rig.until(lambda: np.any(controller.efforts) and rig.is_balanced(), 'efforts')
    rig.kill()
    rig.play(0.3)
    return rig, controller


def test_a_restarted_node_begins_with_the_efforts_that_are_applied(killed):
    rig, controller = killed
    count, applied = len(controller.applied), np.abs(controller.efforts).sum()
    rig.restart()
    rig.until(lambda: len(controller.applied) > count, 'its first command')
    assert np.abs(controller.applied[count]).sum() > 0.9 * applied
    rig.until(rig.is_balanced, 'efforts')


def test_a_controller_that_was_restarted_meanwhile_begins_at_zero(killed, load):
    rig, controller = killed
    controller.unload()
    controller = load(rig, is_active=True)
    rig.restart()
    rig.until(lambda: np.any(controller.efforts) and rig.is_balanced(), 'efforts')


def test_a_restarted_node_without_sensors_ramps_to_zero(killed):
    rig, controller = killed
    rig.stand(missing={'joints', 'imu'})
    rig.restart()
    rig.until(lambda: not controller.efforts.any(), 'zero')
