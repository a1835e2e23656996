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
which leave out what nobody wants, are told that everything is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import os
import time
from typing import Any

from benchmarks.common import alternate
from benchmarks.naive import NaiveEstimator, ROBOT
from benchmarks.subject import Relay
from biped_com_ros.core.robot import RobotModel
from biped_com_ros.nodes import NODES
from biped_com_ros.nodes.suite import load_class
from biped_com_ros.ros.codec import Template
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.outputs import TemplatePublisher
import numpy as np
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

#: Parameters by what is measured. The naive node does what the first one does, without TF.
ESTIMATORS = {
    'com_estimator': {'marker_rate': 1e4},
    'com_estimator, TF at every update': {'marker_rate': 1e4, 'tf_rate': 1e4},
    'com_estimator, default rates': {}}


def measure(robot: str, rounds: int) -> dict[str, np.ndarray]:
    """Return times per call, s, of the relay, the naive and our estimator, taken in turns."""
    os.environ[ROBOT] = robot
    message = _Message(RobotModel.load(robot))
    with _all_wanted():
        nodes: dict[str, Node] = {
            'relay': Relay(), 'naive': NaiveEstimator(),
            **{name: _estimator(robot, i, values)
               for i, (name, values) in enumerate(ESTIMATORS.items())}}
        try:
            calls = {name: _call(node, message) for name, node in nodes.items()}
            return alternate(calls, rounds, budget=5e-3)
        finally:
            for node in nodes.values():
                node.destroy_node()


def _estimator(robot: str, number: int, values: dict[str, Any]) -> Node:
    node_class = load_class(NODES['com_estimator'])
    overrides = [Parameter(name, value=value)
                 for name, value in {'robot': robot, 'base_source': 'fixed', **values}.items()]
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
        return self._template.serialize(Stamp.from_ns(time.time_ns()))


def _call(node: Node, message: _Message) -> Callable[[], object]:
    """Return a call of the node's callback for joint states, as the executor makes it."""
    subscription = next(s for s in node.subscriptions if s.topic_name.endswith('joint_states'))
    callback = subscription.callback
    if subscription.raw:
        return lambda: callback(message.fresh())
    return lambda: callback(deserialize_message(message.fresh(), JointState))


@contextmanager
def _all_wanted() -> Iterator[None]:
    saved = TemplatePublisher.wanted
    TemplatePublisher.wanted = property(lambda self: True)  # type: ignore[assignment]
    try:
        yield
    finally:
        TemplatePublisher.wanted = saved  # type: ignore[method-assign]
