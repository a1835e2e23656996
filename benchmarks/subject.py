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
What the package's nodes are compared with, as processes of their own.

::

    python -m benchmarks.subject relay --ros-args -r __ns:=/bench/relay

"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from biped_com_ros.ros.fast.compat import is_events_executor, make_executor
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


class Sink(Node):
    """Subscribes to topics given as ``type=topic``, and looks at nothing."""

    def __init__(self, pairs: list[str]) -> None:
        super().__init__('sink')
        for pair in pairs:
            type_name, _, topic = pair.partition('=')
            package, _, message = type_name.split('/')
            kind = getattr(importlib.import_module(f'{package}.msg'), message)
            self.create_subscription(
                kind, topic, lambda raw: None, qos_profile_sensor_data, raw=True)


def events_executor() -> Any:
    """Return rclpy's EventsExecutor."""
    executor = make_executor()
    if not is_events_executor(executor):
        raise RuntimeError('this rclpy has no EventsExecutor, or BIPED_COM_PLAIN is set')
    return executor


def main(kind: str, *arguments: str) -> int:
    """Run a relay on the stock or the EventsExecutor, or a sink."""
    rclpy.init(args=list(arguments) if kind != 'sink' else None)
    executor = SingleThreadedExecutor() if kind == 'relay' else events_executor()
    executor.add_node(Sink(list(arguments)) if kind == 'sink' else Relay())
    try:
        while rclpy.ok():
            # EventsExecutor.spin() may hang at full load; this does not.
            executor.spin_until_future_complete(Future(), 1e7)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
