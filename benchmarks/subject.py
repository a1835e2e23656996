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
The processes that benchmarks/latency.py measures, one kind each.

::

    python -m benchmarks.subject relay --ros-args -r __ns:=/bench/relay

Prints ``ready`` once its executor serves callbacks. Where ``BENCHMARK_REPORT`` names a file, the
pauses of the garbage collector after the warm-up are written there at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
import gc
import importlib
import json
import os
from pathlib import Path
import sys
import time
from typing import Any

from geometry_msgs.msg import PointStamped
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState

WARM_UP = 3.0  # s
FIVE = 5
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


def main() -> int:
    """Run the subject that the first argument names."""
    pauses = watch_collector()
    kind, arguments = sys.argv[1], sys.argv[2:]
    code = SUBJECTS[kind](arguments)
    if 'BENCHMARK_REPORT' in os.environ:
        Path(os.environ['BENCHMARK_REPORT']).write_text(json.dumps({'pauses': pauses}))
    return code


def watch_collector() -> list[float]:
    """Return a list to which every later pause of the garbage collector is added, s."""
    pauses: list[float] = []
    begun = time.monotonic()
    started = [0.0]

    def on_collection(phase: str, _: Any) -> None:
        if phase == 'start':
            started[0] = time.perf_counter()
        elif time.monotonic() - begun > WARM_UP:
            pauses.append(time.perf_counter() - started[0])

    gc.callbacks.append(on_collection)
    return pauses


def announce(node: Node) -> Node:
    """Let the node say when its first callback is served."""
    timers: list[Any] = []

    def ready() -> None:
        timers[0].cancel()
        print('ready', flush=True)

    timers.append(node.create_timer(0.001, ready))
    return node


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


def ours(name: str, count: int = 1, unheard: bool = False) -> Callable[..., int]:
    """
    Return a node of the package, `count` times in one process, loaded and run as by the suite.

    With `unheard` it publishes even what nobody listens to and it would leave out; not the outputs
    of its parts, like the fused CoM.
    """
    def run(arguments: list[str]) -> int:
        from biped_com_ros.nodes import NODES
        from biped_com_ros.nodes.suite import load_class
        from biped_com_ros.ros import executor

        def make() -> list[Node]:
            from biped_com_ros.ros.robot import shared_models
            node_class = load_class(NODES[name])
            if unheard:
                node_class = speaking_out(node_class)
            with shared_models() if count > 1 else nullcontext():  # as the suite does
                return [announce(node_class()), *(
                    node_class(cli_args=['--ros-args', '-r', f'__node:={name}_{i}'])
                    for i in range(1, count))]
        return executor.run(make, [name, *arguments])
    return run


def speaking_out(node_class: Callable[..., Node]) -> Callable[..., Node]:
    """Return a factory of nodes that publish as if somebody listened to each of their topics."""
    from biped_com_ros.ros.outputs import Audience

    def make(**options: Any) -> Node:
        node = node_class(**options)
        own = {node._frames.bundle, *(
            part for part in vars(node).values() if isinstance(part, Audience))}
        Audience.wanted = property(lambda self: self in own)  # type: ignore[assignment]
        return node
    return make


def naive() -> Node:
    from benchmarks.naive import NaiveEstimator
    return NaiveEstimator()


def events_executor() -> Any:
    from rclpy.experimental import EventsExecutor
    return EventsExecutor()


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
    'com_estimator': ours('com_estimator'),
    'com_estimator_unheard': ours('com_estimator', unheard=True),
    'wrench_aggregator': ours('wrench_aggregator'),
    'five': ours('com_estimator', FIVE),
    'sink': sink,
}

if __name__ == '__main__':
    sys.exit(main())
