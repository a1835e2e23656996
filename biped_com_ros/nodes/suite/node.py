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
r"""
Runs several nodes of the package in one process on one executor.

Five nodes in one process cost less than half of five processes: they share the executor, the
robot's model and its kinematics, and the subscriptions, which belong to an additional node,
``<first node>_suite``. Each node keeps its name, so remappings and parameters are
addressed as usual::

    suite --ros-args -p nodes:="[wrench_aggregator, com_estimator]" \
        -r com_estimator:odom:=/robot/odom --params-file robot.yaml
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import importlib
import sys
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError, UnknownNameError
from biped_com_ros.nodes import NODES
from biped_com_ros.ros.node.executor import run
from biped_com_ros.ros.node.parameters import declare_parameters, read_only
from rclpy.node import Node


@dataclass(frozen=True)
class SuiteParameters:
    """Parameters of `suite`."""

    nodes: list[str] = read_only([], 'Names of the nodes to run in this process')


def compose(registry: dict[str, str] = NODES) -> list[Node]:
    """
    Start the nodes that the parameter `nodes` of the node ``suite`` names.

    Raises
    ------
    UnknownNameError
        If there is no such node.
    ConfigurationError
        If no node is named, or one twice, or a node cannot start.

    """
    reader = Node('suite', start_parameter_services=False)
    try:
        _check_own_name(reader.get_name())
        names = declare_parameters(reader, SuiteParameters).nodes
        namespace = reader.get_namespace()
    finally:
        reader.destroy_node()
    _check_names(names, registry)
    if len(names) == 1:
        return _start_all(names, registry)
    # Named after the first node, so that two suites have nodes of different names.
    return start_sharing(f'{names[0]}_suite', namespace, lambda: _start_all(names, registry))


def start_sharing(name: str, namespace: str, start: Callable[[], list[Node]]) -> list[Node]:
    """
    Start nodes that share models and subscriptions.

    Parameters
    ----------
    name, namespace
        Of the node that owns the subscriptions.
    start
        Creates and returns the nodes.

    Returns
    -------
    list of Node
        The nodes and that node, all for one executor.

    """
    # Like the nodes' modules, not before `run` has turned the garbage collector off.
    from biped_com_ros.ros.fast.subscription_pool import shared_subscriptions, SubscriptionPool
    from biped_com_ros.ros.node.robot_source import shared_models
    # It gets names that the nodes have resolved.
    inputs = Node(name, namespace=namespace, use_global_arguments=False, enable_rosout=False,
                  start_parameter_services=False)
    pool = SubscriptionPool(inputs)
    try:
        with shared_models(), shared_subscriptions(pool):
            nodes = start()
    except BaseException:
        inputs.destroy_node()
        raise
    for node in nodes:
        pool.add_node(node)
    return [*nodes, inputs]


def _check_own_name(name: str) -> None:
    if name != 'suite':
        raise ConfigurationError(
            f"the suite was renamed to '{name}', which would rename all its nodes: leave out "
            '__node:= (`name` in a launch file), or address one node, as in '
            'com_estimator:__node:=other')


def _check_names(names: Sequence[str], registry: dict[str, str]) -> None:
    if not names:
        raise ConfigurationError(
            "parameter 'nodes' is empty; give e.g. -p nodes:=\"[com_estimator]\" (valid: "
            f'{", ".join(sorted(registry))})')
    for name in names:
        if name not in registry:
            raise UnknownNameError('node', name, registry, "parameter 'nodes'")
        if names.count(name) > 1:
            raise ConfigurationError(f"parameter 'nodes' names '{name}' more than once")


def _start_all(names: Sequence[str], registry: dict[str, str]) -> list[Node]:
    """Start all or none: a part of a suite would look healthy and publish nothing."""
    started: list[Node] = []
    try:
        for name in names:
            started.append(_start(name, registry[name]))
    except BaseException:
        for node in reversed(started):
            node.destroy_node()
        raise
    return started


def _start(name: str, location: str) -> Node:
    try:
        return load_class(location)()
    except BipedComError as error:
        raise ConfigurationError(f"node '{name}' cannot start: {error}") from error
    except SystemExit:  # an optional one, which logged why
        raise ConfigurationError(
            f"this robot does not need the node '{name}': leave it out of the parameter 'nodes'"
        ) from None


def load_class(location: str) -> Callable[..., Any]:
    """Return the class at 'module:class'."""
    module, name = location.split(':')
    return getattr(importlib.import_module(module), name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite."""
    return run(compose, argv)


if __name__ == '__main__':
    sys.exit(main())
