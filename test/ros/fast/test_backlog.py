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
"""A process that is too slow for its messages."""

import subprocess
import sys
import time

from biped_com_ros.ros.fast import message_reader
from biped_com_ros.ros.fast.backlog import Backlog
from biped_com_ros.ros.fast.compat import make_executor
from biped_com_ros.ros.topics.inputs import BoolInput, PointInput
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from geometry_msgs.msg import PointStamped
import pytest
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Bool

#: Of the messages, s; and the time that one takes to process.
PERIOD, COST = 0.002, 0.004
TIME = 10.0
PUBLISHER = f"""
import time, rclpy
from geometry_msgs.msg import PointStamped
from rclpy.qos import qos_profile_sensor_data
rclpy.init()
node = rclpy.create_node('publisher')
publisher = node.create_publisher(PointStamped, 'fast', qos_profile_sensor_data)
message, begun, count = PointStamped(), time.monotonic(), 0
while time.monotonic() < begun + {TIME + 4.0}:
    message.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(message)
    count += 1
    time.sleep(max(0.0, begun + {PERIOD} * count - time.monotonic()))
"""


class SlowNode:
    """Reads messages faster than it can, and has a timer."""

    def __init__(self):
        self.node = Node('slow')
        self.count, self.gaps, self._called_at = 0, [], time.monotonic()
        self._input = PointInput(self.node, 'fast', '', self._on_point)
        self.node.create_timer(0.1, self._on_timer)

    def _on_point(self, stamp_ns, point):
        self.count += 1
        end = time.monotonic() + COST
        while time.monotonic() < end:
            pass

    def _on_timer(self):
        now = time.monotonic()
        self.gaps.append(now - self._called_at)
        self._called_at = now

    def spin(self, seconds):
        executor = make_executor()
        executor.add_node(self.node)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            executor.spin_until_future_complete(Future(), 0.5)
        self._on_timer()
        executor.shutdown()


@pytest.fixture
def backlog(monkeypatch):
    backlog = Backlog()
    monkeypatch.setattr(message_reader, 'BACKLOG', backlog)
    return backlog


def longest_gap(backlog):
    """Return the longest time between two calls of the timer of a slow node, s."""
    slow = SlowNode()
    if backlog is not None:
        backlog.watch(slow.node)
    process = subprocess.Popen([sys.executable, '-c', PUBLISHER])
    try:
        slow.spin(TIME + 2.0)
    finally:
        process.kill()
        process.wait()
        slow.node.destroy_node()
    assert slow.count > 100
    return max(slow.gaps)


def test_timers_do_not_wait_behind_messages_that_a_node_is_too_slow_for(backlog):
    """Without, the queue grows as long as it is too slow."""
    unwatched = longest_gap(None)
    watched = longest_gap(backlog)
    assert unwatched > 2.0 and watched < 0.6 * unwatched


@pytest.mark.parametrize(('delays', 'skips'), [
    ((0.05, 0.05, 0.05), False), ((0.2, 0.0, 0.2, 0.0), False), ((0.2, 0.2), True),
    ((0.35,), True), ((0.2, 0.2, 0.05), False)])
def test_it_skips_after_two_late_calls_or_one_that_is_very_late(backlog, delays, skips):
    node = Node('watched')
    backlog.watch(node)
    for delay in delays:
        backlog.update(delay)
    assert backlog.is_skipping is skips
    node.destroy_node()


def test_states_are_skipped_and_what_is_sent_reliably_is_not(backlog):
    got = []
    node = Node('reader')
    points = PointInput(node, 'point', '', lambda *_: got.append('point'))
    flags = BoolInput(node, 'flag', lambda *_: got.append('flag'), qos=COMMAND_INPUT)
    publishers = [node.create_publisher(PointStamped, 'point', 10),
                  node.create_publisher(Bool, 'flag', COMMAND_INPUT)]
    executor = make_executor()
    executor.add_node(node)

    def publish():
        got.clear()
        point = PointStamped()
        point.header.stamp = node.get_clock().now().to_msg()
        for publisher, message in zip(publishers, (point, Bool())):
            publisher.publish(message)
        executor.spin_until_future_complete(Future(), 0.3)
        return sorted(got)
    end = time.monotonic() + 10.0
    while publish() != ['flag', 'point'] and time.monotonic() < end:
        pass
    backlog.is_skipping = True
    assert publish() == ['flag']
    backlog.is_skipping = False
    assert publish() == ['flag', 'point']
    assert points.refused == flags.refused == {}
    executor.shutdown()
    node.destroy_node()
