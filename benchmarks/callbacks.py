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
What one callback costs, in process: serialized message in, all serialized outputs handed to rmw.

Nobody subscribes, so that the middleware's part is the same small one for all; our publishers,
which leave out what nobody wants, are told what is wanted. The targets were set with a prototype
that published three messages (CoM, a MarkerArray of 60 links, and one array with a value per
joint); so target 1 is measured with three outputs of the com_estimator of that size (CoM, markers,
link CoMs), and the complete set is listed beside it. All but the markers are published at every
call, these at up to 10 kHz, at every third or fourth one. The naive estimator publishes the
complete set and is compared with that. "Complete" is what follows from kinematics: the filter of
the fused CoM is off here and has a benchmark of its own (examples/com_filter.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
import os
import time
from typing import Any, NamedTuple

from benchmarks.common import alternate
from benchmarks.naive import NaiveEstimator, ROBOT
from benchmarks.subject import Relay
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes import NODES
from biped_com_ros.nodes.suite.node import load_class
from biped_com_ros.ros.fast.codec import Template
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.topics.outputs import TemplatePublisher
import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

#: Parameters by what is measured. The naive node does what the first one does, without TF.
NAIVE_THREE = 'naive, three outputs'
THREE = 'com_estimator, three outputs'
EVERYTHING = 'com_estimator, all outputs'
COMPLETE = ('com', 'com_velocity', 'dcm', 'link_coms', 'markers')

_PATIENCE = 10.0  # s


class Variant(NamedTuple):
    """A com_estimator: its parameters, and its topics that have subscribers (and /tf has)."""

    parameters: dict[str, float]
    topics: tuple[str, ...] = COMPLETE


VARIANTS = {
    THREE: Variant({'marker_rate': 1e4, 'tf_rate': 0.0}, ('com', 'link_coms', 'markers')),
    EVERYTHING: Variant({'marker_rate': 1e4}),
    'com_estimator, all and TF at every update': Variant({'marker_rate': 1e4, 'tf_rate': 1e4}),
    'com_estimator, all at default rates': Variant({})}


def measure(robot: str, rounds: int) -> dict[str, np.ndarray]:
    """Return times per call, s, of the relay, the naive and our estimator, taken in turns."""
    with prepared(robot) as calls:
        return alternate(calls, rounds, budget=2e-3)


@contextmanager
def prepared(robot: str) -> Iterator[dict[str, Callable[[], object]]]:
    """Make the relay, the naive and our estimator; gives the calls of their callbacks."""
    os.environ[ROBOT] = robot
    message = _Message(RobotModel.load(robot))
    nodes: dict[str, Node] = {
        'relay': Relay(), NAIVE_THREE: NaiveEstimator(complete=False), 'naive': NaiveEstimator(),
        **{name: _estimator(robot, i, variant.parameters)
           for i, (name, variant) in enumerate(VARIANTS.items())}}
    topics = {f'{nodes[name].get_fully_qualified_name()}/{topic}'
              for name, variant in VARIANTS.items() for topic in variant.topics}
    _wait_for_publishers(nodes.values(), topics)
    with subscribed({'/tf', *topics}):
        try:
            yield {name: _call(node, message) for name, node in nodes.items()}
        finally:
            for node in nodes.values():
                node.destroy_node()


def _wait_for_publishers(nodes: Iterable[Node], topics: Collection[str]) -> None:
    """Run timers until all topics have publishers: some are made a moment after the start."""
    executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    end = time.monotonic() + _PATIENCE
    while missing := set(topics) - {p.topic_name for node in nodes for p in node.publishers}:
        if time.monotonic() > end:
            raise RuntimeError(f'nothing publishes {", ".join(sorted(missing))}')
        executor.spin_once(timeout_sec=0.02)
    executor.shutdown()


def _estimator(robot: str, number: int, values: dict[str, Any]) -> Node:
    node_class = load_class(NODES['com_estimator'])
    values = {'robot': robot, 'base_source': 'fixed', 'fused_com': False, **values}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node: Node = node_class(
        parameter_overrides=overrides,
        cli_args=['--ros-args', '-r', f'__node:=com_estimator_{number}'])
    return node


class _Message:
    """A JointState as bytes, each time with a later stamp."""

    def __init__(self, robot: RobotModel) -> None:
        names = list(robot.joint_names)
        zeros = [0.0] * len(names)
        prototype = JointState(name=names, position=robot.posture('stand').tolist(),
                               velocity=list(zeros), effort=list(zeros))
        self._template = Template(prototype, {'velocity': 'velocity'})
        self._template.fields['velocity'][...] = 0.01

    def fresh(self) -> bytes:
        return self._template.serialize(time.time_ns())


def _call(node: Node, message: _Message) -> Callable[[], object]:
    """Return a call of the node's callback for joint states, as the executor makes it."""
    subscription = next(s for s in node.subscriptions if s.topic_name.endswith('joint_states'))
    callback = callback_of(subscription)
    if subscription.raw:
        return lambda: callback(message.fresh())
    return lambda: callback(deserialize_message(message.fresh(), JointState))


@contextmanager
def subscribed(topics: Collection[str]) -> Iterator[None]:
    """Let exactly those outputs have subscribers whose full topic name is among these."""
    class Known(dict[TemplatePublisher, bool]):

        def __missing__(self, output: TemplatePublisher) -> bool:
            found = self[output] = output.publisher.topic_name in topics
            return found

    saved = TemplatePublisher.has_subscribers
    TemplatePublisher.has_subscribers = property(Known().__getitem__)  # type: ignore
    try:
        yield
    finally:
        TemplatePublisher.has_subscribers = saved  # type: ignore
