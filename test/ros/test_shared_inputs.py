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
"""Inputs of several nodes in one process: a message that they all get is read once."""

from __future__ import annotations

from biped_com_ros.ros import codec
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.inputs import JointStateInput
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

JOINTS = ('hip', 'knee', 'ankle')
NAN = float('nan')


class Listener:
    """A node with an input, and what it got; messages are handed over as the executor does."""

    def __init__(self, context, name, joints=JOINTS, **options):
        self.node, self.got = Node(name, context=context), []
        self.source = JointStateInput(
            self.node, joints, lambda stamp, *arrays: self.got.append(
                (stamp, *(array.tolist() for array in arrays))), **options)

    def take(self, raw):
        self.source.subscription.callback(raw)


@pytest.fixture
def listeners():
    """Return a function that makes listeners."""
    context, made = rclpy.Context(), []
    context.init()

    def make(*arguments, **options):
        made.append(Listener(context, f'listener_{len(made)}', *arguments, **options))
        return made[-1]
    yield make
    for listener in made:
        listener.node.destroy_node()
    context.shutdown()


@pytest.fixture
def read(monkeypatch):
    """Return a list of all messages that were read."""
    read, gather = [], codec.Plan.gather

    def counted(plan, raw, out):
        read.append(raw)
        gather(plan, raw, out)
    monkeypatch.setattr(codec.Plan, 'gather', counted)
    return read


class Robot:
    """Sends joint states, each a millisecond after the other."""

    def __init__(self, node):
        self._ns = node.get_clock().now().nanoseconds

    def message(self, value=0.0, velocity=2.0):
        self._ns += 1_000_000
        message = JointState(name=list(JOINTS), position=[value, value + 1.0, value + 2.0],
                             velocity=[velocity] * 3, effort=[3.0] * 3)
        message.header.stamp = Stamp.from_ns(self._ns).to_msg()
        return bytes(serialize_message(message))


def test_a_message_is_read_once_for_all(listeners, read):
    nodes = [listeners() for _ in range(3)]
    robot = Robot(nodes[0].node)
    for node in nodes:
        node.take(first := robot.message())  # each learns how it is built
    del read[:]
    for value in (1.0, 2.0, 3.0):
        raw = robot.message(value)
        for node in nodes:
            node.take(bytes(bytearray(raw)))  # each takes a copy of its own
    assert len(read) == 3 and first not in read
    for node in nodes:
        assert [got[1] for got in node.got[1:]] == [
            [value, value + 1.0, value + 2.0] for value in (1.0, 2.0, 3.0)]
        assert node.got == [*node.got[:1], *nodes[0].got[1:]], 'and with the same stamps'


def test_who_wants_other_joints_gets_them(listeners):
    forward, backward = listeners(), listeners(JOINTS[::-1])
    robot = Robot(forward.node)
    for value in (1.0, 2.0):
        raw = robot.message(value)
        for node in (forward, backward, forward, backward):
            node.take(raw)
        assert forward.got[-1][1] == backward.got[-1][1][::-1] == [value, value + 1.0, value + 2.0]
    assert forward.source.refused == backward.source.refused == {'repeated stamp': 2}


def test_each_judges_for_itself(listeners):
    """What is no measurement to one that never saw a number is an error to the other."""
    experienced, new = listeners(), listeners()
    robot = Robot(new.node)
    experienced.take(robot.message(1.0))
    raw = robot.message(2.0, velocity=NAN)
    for node in (new, experienced, new):
        node.take(raw)
    assert experienced.source.refused == {'not finite': 1} and len(experienced.got) == 1
    assert new.source.refused == {'repeated stamp': 1} and new.got[0][2] == [0.0, 0.0, 0.0]
    good = robot.message(3.0)
    for node in (experienced, new):
        node.take(good)
        np.testing.assert_array_equal(node.got[-1][1], (3.0, 4.0, 5.0))


def test_what_one_finds_stale_another_may_use(listeners):
    strict, patient = listeners(), listeners(max_age=0.0)
    robot = Robot(strict.node)
    for node in (strict, patient):
        node.take(robot.message())
    robot._ns -= 3_000_000_000
    patient.source._forget()
    raw = robot.message(5.0)
    for node in (strict, patient, strict):
        node.take(raw)
    assert strict.source.refused == {'stale stamp': 2} and len(strict.got) == 1
    assert patient.got[-1][1] == [5.0, 6.0, 7.0]
