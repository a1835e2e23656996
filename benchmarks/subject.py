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
What the package's nodes are compared with: processes that benchmarks/latency.py measures.

::

    python -m benchmarks.subject relay --ros-args -r __ns:=/bench/relay

"""

from __future__ import annotations

from collections.abc import Callable
import importlib
import sys
from typing import Any

from benchmarks.measured import announce, run_measured
from geometry_msgs.msg import PointStamped
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState

INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class Relay(Node):
    """Does nothing: a JointState comes in, a PointStamped with its stamp goes out."""

    def __init__(self, **node_kwargs: Any) -> None:
        super().__init__('relay', **node_kwargs)
        self.create_subscription(JointState, 'joint_states', self._on_joints, INPUT)
        self._out = self.create_publisher(PointStamped, '~/com', 10)

    def _on_joints(self, message: JointState) -> None:
        out = PointStamped()
        out.header.stamp = message.header.stamp
        self._out.publish(out)


def plain(make: Callable[[], Node], make_executor: Callable[[], Any]) -> Callable[..., int]:
    """Return a subject as somebody writes it who uses rclpy as the tutorials do."""
    def run(arguments: list[str]) -> int:
        rclpy.init(args=arguments)
        executor = make_executor()
        executor.add_node(announce(make()))
        try:
            while rclpy.ok():
                # EventsExecutor.spin() may hang at full load; this does not.
                executor.spin_until_future_complete(Future(), 1e7)
        except (KeyboardInterrupt, ExternalShutdownException):
            pass
        return 0
    return run


def naive() -> Node:
    from benchmarks.naive import NaiveEstimator
    return NaiveEstimator()


def events_executor() -> Any:
    from biped_com_ros.ros.fast.compat import is_events_executor, make_executor
    executor = make_executor()
    if not is_events_executor(executor):
        raise RuntimeError('this rclpy has no EventsExecutor, or BIPED_COM_PLAIN is set')
    return executor


def message_class(name: str) -> Any:
    """Return the class of a name like ``geometry_msgs/msg/PointStamped``."""
    package, _, message = name.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), message)


def sink(arguments: list[str]) -> int:
    """Subscribe to topics given as ``type=topic``, look at nothing."""
    rclpy.init()
    node = Node('sink')
    for pair in arguments:
        type_name, _, topic = pair.partition('=')
        node.create_subscription(
            message_class(type_name), topic, lambda raw: None, qos_profile_sensor_data, raw=True)
    executor = events_executor()
    executor.add_node(announce(node))
    try:
        while rclpy.ok():
            executor.spin_until_future_complete(Future(), 1e7)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    return 0


SUBJECTS = {
    'bare': plain(lambda: Node('bare'), SingleThreadedExecutor),
    'relay': plain(Relay, SingleThreadedExecutor),
    'relay_events': plain(Relay, events_executor),
    'naive': plain(naive, SingleThreadedExecutor),
    'sink': sink,
}

if __name__ == '__main__':
    sys.exit(run_measured(SUBJECTS))
