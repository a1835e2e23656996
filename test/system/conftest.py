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
"""Launch files that run, and a node that listens to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
import time
from typing import Any

import pytest
from support.launch_process import Launched


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launched]]:
    started: list[Launched] = []

    def run(*words: str, prefix: str = '') -> Launched:
        started.append(Launched(tmp_path, list(words), prefix))
        return started[-1]

    yield run
    for launched in started:
        if launched.process.poll() is None:
            launched.process.terminate()
            launched.process.wait(timeout=20)


@pytest.fixture
def listener() -> Iterator[Any]:
    """Return a node that waits for the first message of a topic that is as expected."""
    rclpy = pytest.importorskip('rclpy')
    context = rclpy.Context()
    context.init()
    node = rclpy.create_node('listener', context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def wait_for(kind: Any, topic: str, launched: Launched, timeout: float = 30.0,
                 accepts: Callable[[Any], bool] = lambda message: True) -> Any:
        received: list[Any] = []

        def receive(message: Any) -> None:
            if accepts(message):
                received.append(message)
        qos = rclpy.qos.qos_profile_sensor_data
        if topic.endswith('robot_description'):
            qos = rclpy.qos.QoSProfile(
                depth=1, durability=rclpy.qos.DurabilityPolicy.TRANSIENT_LOCAL)
        subscription = node.create_subscription(kind, topic, receive, qos)
        deadline = time.monotonic() + timeout
        while not received:
            assert time.monotonic() < deadline, f'nothing on {topic}:\n{launched.output}'
            assert launched.process.poll() is None, launched.output
            executor.spin_once(timeout_sec=0.1)
        node.destroy_subscription(subscription)
        return received[0]

    def wait_for_state(lifecycle_node: str, state: str, launched: Launched) -> None:
        from lifecycle_msgs.srv import GetState
        client = node.create_client(GetState, f'{lifecycle_node}/get_state')
        deadline, label = time.monotonic() + 30.0, ''
        while label != state:
            assert time.monotonic() < deadline, f'{lifecycle_node} is {label!r}'
            if client.wait_for_service(0.5):
                future = client.call_async(GetState.Request())
                executor.spin_until_future_complete(future, 2.0)
                label = future.result().current_state.label if future.done() else ''
        node.destroy_client(client)

    wait_for.state = wait_for_state  # type: ignore[attr-defined]
    yield wait_for
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()
