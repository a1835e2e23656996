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
"""Lifecycle, parameters, and the node as a process."""

from __future__ import annotations

import dataclasses
from pathlib import Path
import signal
import time

from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.gravity_compensation.parameters import GravityCompensationParameters
from biped_com_ros.ros.node.executor import make_executor
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import GetState
import pytest
from rclpy.node import Node
from support.gravity_rig import COUNTER
from support.messages import parameters as overrides
from support.node_process import call_until_response, start_node
import yaml

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'gravity_compensation.yaml'


def test_deactivation_while_loaded_and_restart(rig):
    assert rig.change(Transition.TRANSITION_DEACTIVATE)
    assert not rig.change(Transition.TRANSITION_CLEANUP)  # still ramping down
    rig.until(rig.is_zero, 'zero')
    count = len(rig.efforts)
    rig.play(0.2)
    assert len(rig.efforts) <= count + 1  # nothing more once it is zero
    assert rig.state() == 'inactive'
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.is_balanced, 'efforts again')
    assert rig.change(Transition.TRANSITION_DEACTIVATE)
    rig.until(rig.is_zero, 'zero')
    assert rig.change(Transition.TRANSITION_CLEANUP)
    rig.play(0.1)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.is_balanced, 'efforts again')


def test_impossible_transitions_are_refused(make):
    rig = make(autostart=False)
    assert not rig.change(Transition.TRANSITION_ACTIVATE)
    assert not rig.change(99)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert not rig.change(Transition.TRANSITION_CONFIGURE)


def test_waits_for_a_lifecycle_manager_without_autostart(make):
    rig = make(autostart=False)
    rig.play(0.3)
    assert rig.state() == 'unconfigured' and not rig.efforts
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    rig.play(0.2)
    assert not rig.efforts
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(rig.is_balanced, 'efforts')


@pytest.mark.parametrize(('module', 'arguments'), (
    ('gravity_compensation', ()),
    ('suite', ('-p', 'nodes:=[gravity_compensation, wrench_aggregator]'))))
def test_process_becomes_active_and_ends_cleanly(module, arguments):
    namespace = f'gravity_process_{next(COUNTER)}'
    process = start_node(module, '-r', f'__ns:=/{namespace}', '-p', 'robot:=talos', *arguments)
    peer = Node('peer', namespace=namespace)
    client = peer.create_client(GetState, 'gravity_compensation/get_state')
    executor = make_executor()
    executor.add_node(peer)
    try:
        assert client.wait_for_service(15.0)
        label, end = '', time.monotonic() + 30.0
        while label != 'active':  # the service may respond before the node is active
            assert time.monotonic() < end, label
            label = call_until_response(
                peer, client, GetState.Request(), executor).current_state.label
        process.send_signal(signal.SIGINT)
        assert process.wait(10.0) == 0, process.stdout.read()
    finally:
        process.kill()
        process.communicate()
        executor.shutdown()
        peer.destroy_node()


def test_the_parameter_file_has_every_parameter_with_its_default():
    text = yaml.safe_load(CONFIG.read_text())['/**/gravity_compensation']['ros__parameters']
    defaults = GravityCompensationParameters()
    assert text == {f.name: getattr(defaults, f.name)
                    for f in dataclasses.fields(GravityCompensationParameters)}


@pytest.mark.parametrize(('values', 'text'), (
    ({'support': 'tail'}, 'tail'), ({'groups': ['wings']}, 'wings'),
    ({'gains': [1.0]}, 'gain_joints'), ({'share_lift': 0.3}, 'lift'),
    ({'contacts': ['left', 'nose']}, 'nose')))
def test_invalid_parameters_end_the_node_at_once(values, text):
    with pytest.raises(Exception, match=text):
        GravityCompensation(
            namespace=f'gravity_{next(COUNTER)}',
            parameter_overrides=overrides(robot='talos', **values))
