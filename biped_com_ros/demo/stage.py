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
"""What a chapter of the demo plays on: the robot's joints, services, topics, words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Skipped
from biped_com_ros.demo.measurements import Measurements
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from rclpy.node import Node
from std_srvs.srv import Trigger

#: How long a node that may still be starting is waited for, simulated s.
PATIENCE = 15.0
#: Joints that are nearer to where they should be need not move there, rad (or m).
_THERE = 1e-6
Commands = Generator['Array | None', None, Any]


class Stage:
    """
    What a chapter gets.

    Parameters
    ----------
    node
        The demo's rclpy node.
    model
        The robot by its URDF (not calibrated).
    measurements
        Estimates against the truth.
    hidden
        What the simulator hides: none, masses or real.

    Attributes
    ----------
    positions, velocities
        Of the joints as measured, (n,), in the order of ``model.joint_names``.
    time, stamp_ns
        Simulated, of the last joint state; s and ns.
    commanded
        Positions (n,) that were commanded last; None while others command.
    shared
        What chapters leave to later ones.
    doing
        What the robot does, in words.

    """

    def __init__(self, node: Node, model: RobotModel, measurements: Measurements,
                 hidden: str) -> None:
        self.node, self.model, self.measurements = node, model, measurements
        self.hidden = hidden
        self.shared: dict[str, Any] = {}
        self.positions = self.velocities = model.posture()
        self.stamp_ns, self.time = 0, 0.0
        self.commanded: Array | None = model.posture()
        self.doing = 'settles'
        self._subscriptions: list[Any] = []
        self._clients: dict[str, Any] = {}

    # -- words

    def say(self, words: str) -> None:
        """Tell the viewer what the robot does from now on."""
        self.doing = words

    # -- the robot

    @property
    def has_fallen(self) -> bool:
        """Tell whether the simulated robot lies on the floor."""
        return self.measurements.has_fallen

    def move_to(self, posture: Array, seconds: float) -> Commands:
        """Move all joints to positions (n,), smoothly, from where they are commanded."""
        start = self.positions.copy() if self.commanded is None else self.commanded
        begin = self.time
        while self.time < begin + seconds:
            yield start + minimum_jerk((self.time - begin) / seconds) * (posture - start)
        yield posture

    def follow(self, path: Sequence[Array] | Array, seconds: float) -> Commands:
        """Go through positions (n,), evenly spaced in time."""
        begin = self.time
        while self.time < begin + seconds:
            yield path[int((self.time - begin) / seconds * (len(path) - 1))]
        yield path[-1]

    def wait(self, seconds: float) -> Commands:
        """Hold what is commanded, or let others command, for a while."""
        end = self.time + seconds
        while self.time < end:
            yield self.commanded

    def release(self) -> None:
        """Command nothing from now on: another node does."""
        self.commanded = None

    def stand(self) -> Commands:
        """Bring the robot back to posture stand, on its feet, whatever happened to it."""
        posture = self.model.posture()
        if self.has_fallen:
            yield from self.put_down()
        index = self.model.joint_index(self.model.actuated_joint_names)
        start = self.positions if self.commanded is None else self.commanded
        if self.commanded is None or abs(start - posture)[index].max() > _THERE:
            yield from self.move_to(posture, 2.0)
            yield from self.wait(0.5)

    def put_down(self) -> Commands:
        """Have the simulator put the robot down: in posture stand, its feet side by side."""
        self.commanded = None
        yield from self.wait(1.0)
        yield from self.trigger('simulator/reset')
        self.commanded = self.model.posture()
        yield from self.wait(1.5)

    # -- other nodes

    def until(self, condition: Callable[[], bool], what: str, timeout: float) -> Commands:
        """
        Wait for something.

        Raises
        ------
        Skipped
            If it does not happen within `timeout`, simulated s; `what` says what it was.

        """
        end = self.time + timeout
        while not condition():
            if self.time > end:
                raise Skipped(f'waited {timeout:.0f} s in vain for {what}')
            yield self.commanded

    def call(self, service_type: Any, name: str, request: Any,
             timeout: float = 60.0) -> Generator[Array | None, None, Any]:
        """
        Call a service and return its response.

        Raises
        ------
        Skipped
            If nobody offers it, or no answer comes.

        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self.node.create_client(service_type, name)
        yield from self.until(client.service_is_ready, f"service '{name}': the node "
                              f"{name.partition('/')[0]} does not run", PATIENCE)
        future = client.call_async(request)
        yield from self.until(future.done, f"an answer of service '{name}'", timeout)
        return future.result()

    def trigger(self, name: str, timeout: float = 60.0) -> Generator[Array | None, None, str]:
        """
        Call a std_srvs/Trigger and return its message.

        Raises
        ------
        Skipped
            If nobody offers it, no answer comes, or it says no.

        """
        response = yield from self.call(Trigger, name, Trigger.Request(), timeout)
        if not response.success:
            raise Skipped(f"'{name}' refused: {response.message}")
        return str(response.message)

    def listen(self, message_type: Any, topic: str, callback: Callable[[Any], None],
               qos: Any = STATE_OUTPUT) -> None:
        """Subscribe until the chapter ends."""
        self._subscriptions.append(
            self.node.create_subscription(message_type, topic, callback, qos))

    def clear(self) -> None:
        """Take away what the chapter listened to."""
        while self._subscriptions:
            self.node.destroy_subscription(self._subscriptions.pop())
