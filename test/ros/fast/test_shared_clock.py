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
"""One subscription to /clock sets the clocks of all nodes of a process that use simulated time."""

from __future__ import annotations

import struct

from biped_com_ros.nodes.suite.node import start_sharing
from biped_com_ros.ros.topics.stamp import now_ns, stamp_to_msg
import pytest
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

SIMULATED = [Parameter('use_sim_time', value=True)]


def subscriptions_to_clock(*nodes):
    return [s for node in nodes for s in node.subscriptions if s.topic_name.endswith('clock')]


@pytest.fixture
def ticking(rig):
    """Return what starts nodes in one process, and what sets simulated time."""
    started = []

    def start(*nodes):
        made = start_sharing('first_suite', '', lambda: list(nodes))
        for node in made:
            rig.executor.add_node(node)
        started.extend(made)
        return made

    def set_time(stamp_ns, publisher, clocks):
        def holds():
            publisher.publish(Clock(clock=stamp_to_msg(stamp_ns)))
            return all(now_ns(node) == stamp_ns for node in clocks)
        rig.until(holds, what='the clocks')

    yield start, set_time
    for node in started:
        rig.executor.remove_node(node)
        node.destroy_node()


def test_two_nodes_follow_one_subscription(rig, ticking, monkeypatch):
    monkeypatch.delenv('BIPED_COM_PLAIN', raising=False)
    start, set_time = ticking
    one, two = (Node(name, parameter_overrides=SIMULATED) for name in ('one', 'two'))
    other = Node('other')
    nodes = start(one, two, other)
    assert len(subscriptions_to_clock(*nodes)) == 1
    publisher = rig.peer.create_publisher(Clock, '/clock', 1)
    set_time(5_000_000_007, publisher, (one, two))
    set_time(3_000_000_000, publisher, (one, two))  # it may be set back
    assert now_ns(other) > 1e18, 'a node without simulated time keeps its clock'
    two.set_parameters([Parameter('use_sim_time', value=False)])
    set_time(4_000_000_000, publisher, (one,))
    assert now_ns(two) > 1e18
    two.set_parameters(SIMULATED)
    set_time(6_000_000_000, publisher, (one, two))


@pytest.mark.parametrize('raw', [
    b'\0\1\0\0\x05\0\0\0', b'\0\1\0\0' + struct.pack('<iI', -7, 5),
    b'\0\1\0\0' + struct.pack('<iI', 9, 4_000_000_000),
    b'\0\0\0\0' + struct.pack('>iI', 9, 0)],
    ids=['truncated', 'negative', 'nanoseconds', 'big endian'])
def test_bytes_that_are_no_time_leave_the_clock_alone(rig, ticking, monkeypatch, raw):
    monkeypatch.delenv('BIPED_COM_PLAIN', raising=False)
    start, set_time = ticking
    node, _ = start(Node('one', parameter_overrides=SIMULATED))
    publisher = rig.peer.create_publisher(Clock, '/clock', 1)
    set_time(5_000_000_007, publisher, (node,))
    logged = []
    monkeypatch.setattr(RcutilsLogger, 'error', lambda _, text, **options: logged.append(text))
    publisher.publish(raw)
    rig.until(lambda: logged, what='the error')
    assert now_ns(node) == 5_000_000_007 and 'message not used' in logged[0]
    set_time(6_000_000_000, publisher, (node,))


def test_a_node_with_a_clock_of_its_own_keeps_it(rig, ticking, monkeypatch):
    monkeypatch.delenv('BIPED_COM_PLAIN', raising=False)
    start, set_time = ticking
    usual = Node('usual', parameter_overrides=SIMULATED)
    remapped = Node('remapped', parameter_overrides=SIMULATED,
                    cli_args=['--ros-args', '-r', '/clock:=/other/clock'])
    start(usual, remapped)
    assert len(subscriptions_to_clock(remapped)) == 1
    set_time(5_000_000_000, rig.peer.create_publisher(Clock, '/clock', 1), (usual,))
    set_time(7_000_000_000, rig.peer.create_publisher(Clock, '/other/clock', 1), (remapped,))
    assert now_ns(usual) == 5_000_000_000


def test_without_optimizations_each_node_subscribes(ticking, monkeypatch):
    monkeypatch.setenv('BIPED_COM_PLAIN', '1')
    start, _ = ticking
    one, two = (Node(name, parameter_overrides=SIMULATED) for name in ('one', 'two'))
    assert len(subscriptions_to_clock(*start(one, two))) == 2
