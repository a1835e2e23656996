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
The package's own nodes, as processes that benchmarks/latency.py measures.

::

    python -m benchmarks.own com_estimator --ros-args -r __ns:=/bench -p robot:=talos

Apart from `subject`, since the first import has to be that of the nodes, as in their executables:
it prepares the process before NumPy comes.
"""

from __future__ import annotations

from collections.abc import Callable
import sys
from typing import Any

from benchmarks.measured import announce, run_measured
from biped_com_ros.nodes import NODES

FIVE = 5


def ours(name: str, count: int = 1, unheard: bool = False) -> Callable[..., int]:
    """
    Return a node of the package, `count` times in one process, loaded and run as by the suite.

    With `unheard` it publishes its main topics even without subscribers.
    """
    def run(arguments: list[str]) -> int:
        from biped_com_ros.nodes.suite.node import load_class, start_sharing
        from biped_com_ros.ros.node import executor

        def make() -> list[Any]:
            node_class = load_class(NODES[name])
            if unheard:
                node_class = publishing_all(node_class)
            if count == 1:
                return [announce(node_class())]
            return start_sharing(f'{name}_suite', '', lambda: [announce(node_class()), *(
                node_class(cli_args=['--ros-args', '-r', f'__node:={name}_{i}'])
                for i in range(1, count))])
        return executor.run(make, [name, *arguments])
    return run


def publishing_all(node_class: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory of nodes that publish as if each of their main topics had a subscriber."""
    from biped_com_ros.ros.topics.outputs import TemplatePublisher
    has_subscribers: Any = TemplatePublisher.has_subscribers
    names = ('/com', '/com_velocity', '/dcm', '/link_coms', '/markers', '/tf')
    chosen: dict[TemplatePublisher, bool] = {}

    def is_subscribed(output: TemplatePublisher) -> bool:
        if output not in chosen:
            chosen[output] = output.publisher.topic_name.endswith(names)
        actual = has_subscribers.fget(output)  # looked up as ever
        return chosen[output] or bool(actual)

    def make(**options: Any) -> Any:
        setattr(TemplatePublisher, 'has_subscribers', property(is_subscribed))  # noqa: B010
        return node_class(**options)
    return make


OWN = {
    'com_estimator': ours('com_estimator'),
    'com_estimator_unheard': ours('com_estimator', unheard=True),
    'wrench_aggregator': ours('wrench_aggregator'),
    'five': ours('com_estimator', FIVE),
}

if __name__ == '__main__':
    sys.exit(run_measured(OWN))
