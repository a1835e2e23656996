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

from __future__ import annotations

import time

from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.ros.node import waiting
import pytest
from rclpy.parameter import Parameter
from support.ros_rig import Rig


class Source:
    """An input that nothing arrives on."""

    topic, silent = '/imu', True

    def stale(self):
        return self.silent

    def report(self):
        return 2, 'nobody publishes it', {}


class Listener:
    """A node that keeps what it logs, and whose timer is turned by hand."""

    def __init__(self, name):
        self.name, self.said = name, []
        self.warning = self.info = self.said.append

    def get_fully_qualified_name(self):
        return self.name

    def get_logger(self):
        return self

    def create_timer(self, period, callback, clock=None):
        self.look = callback


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, 'monotonic', lambda: now[0])
    waiting.Waiting._last.clear()
    yield now
    waiting.Waiting._last.clear()


def pass_time(clock, nodes, seconds):
    for _ in range(int(2 * seconds)):
        clock[0] += 0.5
        for node in nodes:
            node.look()


def test_reminders_become_rare_and_its_coming_is_said_once(clock):
    node, source = Listener('a'), Source()
    waiting.Waiting(node, {'orientation': source})
    pass_time(clock, [node], 300.0)
    assert [words.split(' s:')[0].rsplit(' ', 1)[1] for words in node.said] == [
        '5', '10', '20', '40', '80', '140', '200', '260']
    assert node.said[0] == 'waiting for orientation for 5 s: nobody publishes it'
    node.said.clear()
    source.silent = False
    pass_time(clock, [node], 5.0)
    assert node.said == ["got orientation on '/imu'"]
    source.silent = True
    pass_time(clock, [node], 1.0)
    assert len(node.said) == 2, 'and its falling silent at once'


def test_what_several_nodes_of_a_process_wait_for_is_said_once(clock):
    one, other, source = Listener('a'), Listener('b'), Source()
    waiting.Waiting(one, {'orientation': source})
    waiting.Waiting(other, {'/imu': source})
    pass_time(clock, [one, other], 30.0)
    assert len(one.said) == 3 and not other.said
    source.silent = False
    pass_time(clock, [one, other], 1.0)
    assert other.said == ["got messages on '/imu'"]


@pytest.mark.parametrize('node_class', [WrenchAggregator, GravityCompensation])
def test_nodes_say_what_they_wait_for(node_class, monkeypatch, capfd):
    monkeypatch.setattr(waiting, '_REMIND', 0.6)
    rig = Rig(node=node_class(namespace='/waits', parameter_overrides=[
        Parameter('robot', value='biped')]))
    told = ''

    def is_said(*words):
        nonlocal told
        told += capfd.readouterr().err
        return all(word in told for word in words)
    try:
        rig.until(lambda: is_said("on '/waits/joint_states' yet: nobody publishes it",
                                  "on '/waits/imu' yet"))
    finally:
        rig.close()
