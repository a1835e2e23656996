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
"""When a process that is too slow for its messages skips them, and which."""

from biped_com_ros.ros.fast import message_reader
from biped_com_ros.ros.fast.backlog import Backlog
from biped_com_ros.ros.topics.inputs import BoolInput, PointInput
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from geometry_msgs.msg import PointStamped
import pytest
from std_msgs.msg import Bool
from support.driven_time import run_ready


@pytest.fixture
def backlog(monkeypatch):
    backlog = Backlog()
    monkeypatch.setattr(message_reader, 'BACKLOG', backlog)
    return backlog


@pytest.mark.parametrize(('delays', 'skips'), [
    ((0.05, 0.05, 0.05), False), ((0.2, 0.0, 0.2, 0.0), False), ((0.2, 0.2), True),
    ((0.35,), True), ((0.2, 0.2, 0.05), False)])
def test_it_skips_after_two_late_calls_or_one_that_is_very_late(rig, backlog, delays, skips):
    backlog.watch(rig.node)
    for delay in delays:
        backlog.update(delay)
    assert backlog.is_skipping is skips


def test_states_are_skipped_and_what_is_sent_reliably_is_not(rig, backlog):
    got = []
    points = PointInput(rig.node, 'point', '', lambda *_: got.append('point'))
    flags = BoolInput(rig.node, 'flag', lambda *_: got.append('flag'), qos=COMMAND_INPUT)
    publishers = [rig.publisher(PointStamped, 'point'), rig.publisher(Bool, 'flag', COMMAND_INPUT)]
    for backlog.is_skipping in (False, True, False):
        rig.time.advance(1e-3)
        point = PointStamped()
        point.header.stamp = rig.node.get_clock().now().to_msg()
        for publisher, message in zip(publishers, (point, Bool())):
            publisher.publish(message)
        run_ready(rig.executor)
        got.append('')
    assert got == ['point', 'flag', '', 'flag', '', 'point', 'flag', '']
    assert points.refused == flags.refused == {}
