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
"""A process that is too slow for its messages: its timers do not wait behind them."""

from threading import Thread
import time

from biped_com_ros.ros.fast import message_reader
from biped_com_ros.ros.fast.backlog import Backlog
from biped_com_ros.ros.topics.inputs import PointInput
from geometry_msgs.msg import PointStamped
import pytest
from rclpy.qos import qos_profile_sensor_data
from rclpy.task import Future
from support.ros_rig import NodeRig

PERIOD, COST = 0.002, 0.004
TIME = 6.0


def longest_gap(backlog):
    """Return the longest time between two calls of the timer of a slow node, s."""
    rig, points, calls = NodeRig('slow'), [], [time.monotonic()]
    rig.node.create_timer(0.1, lambda: calls.append(time.monotonic()))
    PointInput(rig.node, 'fast', '', lambda *_: points.append(time.sleep(COST)))
    publisher = rig.publisher(PointStamped, 'fast', qos_profile_sensor_data)
    if backlog:
        backlog.watch(rig.node)

    def publish():
        message, begun = PointStamped(), time.monotonic()
        for i in range(round(TIME / PERIOD)):
            message.header.stamp = rig.peer.get_clock().now().to_msg()
            publisher.publish(message)
            time.sleep(max(0.0, begun + PERIOD * i - time.monotonic()))
    (thread := Thread(target=publish)).start()
    while thread.is_alive():
        rig.executor.spin_until_future_complete(Future(), 0.5)
    thread.join()
    calls.append(time.monotonic())
    rig.close()
    assert len(points) > 100
    return max(after - before for before, after in zip(calls, calls[1:]))


@pytest.mark.thorough
def test_timers_do_not_wait_behind_messages_that_a_node_is_too_slow_for(monkeypatch):
    """Without, the queue grows as long as it is too slow."""
    unwatched = longest_gap(None)
    monkeypatch.setattr(message_reader, 'BACKLOG', Backlog())
    watched = longest_gap(message_reader.BACKLOG)
    assert unwatched > 2.0 and watched < 0.6 * unwatched, (unwatched, watched)
