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
"""Access of a chapter to the robot: joints, services, topics, and the text on the screen."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.measurements import Measurements
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import Trigger

#: Time to wait for a service whose node may still be starting, simulated s.
SERVICE_TIMEOUT = 15.0
#: Joints with a smaller error are not moved, rad (or m).
_TOLERANCE = 1e-6
#: Longer steps of the stamps are jumps of a clock, s.
_LONGEST_STEP = 1.0
_FEEDFORWARD = 'gravity_compensation'
_RAMP_UP, _RAMP_DOWN = 2.2, 1.2  # s, a little more than the node's ramps take
Commands = Generator['Array | None', None, Any]


class ChapterFailed(BipedComError):
    """A chapter cannot continue; the message names what is missing or was not done."""


class Stage:
    """
    The robot as chapters use it.

    Parameters
    ----------
    node
        Node of the demo.
    model
        The robot of the URDF (not calibrated).
    measurements
        Compares the estimates with the true state.

    Attributes
    ----------
    positions
        Of the joints as measured, (n,), in the order of ``model.joint_names``.
    time
        Simulated, since the beginning, s.
    stamp_ns
        Of the last joint state, ns.
    commanded
        Last commanded positions (n,); None while another node commands.
    shared
        Results of chapters for later ones.
    activity
        What the robot does, such as 'settles'.

    """

    def __init__(self, node: Node, model: RobotModel, measurements: Measurements) -> None:
        self.node, self.model, self.measurements = node, model, measurements
        self.shared: dict[str, Any] = {}
        self.positions = model.posture()
        self.stamp_ns, self.time = 0, 0.0
        self.commanded: Array | None = model.posture()
        self.activity = 'settles'
        self._subscriptions: list[Any] = []
        self._clients: dict[str, Any] = {}

    def set_activity(self, activity: str) -> None:
        """Show what the robot does from now on."""
        self.activity = activity

    def advance_to(self, stamp_ns: int) -> None:
        """Use the stamp of joint states; when a clock jumps, no time has passed."""
        step = 1e-9 * (stamp_ns - self.stamp_ns)
        self.time += step if 0.0 < step <= _LONGEST_STEP else 0.0
        self.stamp_ns = stamp_ns

    # -- the robot

    @property
    def has_fallen(self) -> bool:
        """Whether the simulated robot has fallen."""
        return self.measurements.has_fallen

    def move_to(self, posture: Array, seconds: float) -> Commands:
        """Move all joints smoothly to positions (n,), from the last command."""
        start = self.positions.copy() if self.commanded is None else self.commanded
        begin = self.time
        while self.time < begin + seconds:
            yield start + minimum_jerk((self.time - begin) / seconds) * (posture - start)
        yield posture

    def follow(self, path: Sequence[Array] | Array, seconds: float) -> Commands:
        """Follow positions (n,), evenly spaced in time."""
        begin = self.time
        while self.time < begin + seconds:
            yield path[int((self.time - begin) / seconds * (len(path) - 1))]
        yield path[-1]

    def wait(self, seconds: float) -> Commands:
        """Hold the last command, or let another node command, for a time."""
        end = self.time + seconds
        while self.time < end:
            yield self.commanded

    def release(self) -> None:
        """Let another node command the robot from now on."""
        self.commanded = None

    def return_to_stand(self) -> Commands:
        """Move the robot to posture stand, after a reset if it has fallen."""
        posture = self.model.posture()
        if self.has_fallen:
            yield from self.reset_robot()
        index = self.model.joint_index(self.model.actuated_joint_names)
        start = self.positions if self.commanded is None else self.commanded
        if self.commanded is None or abs(start - posture)[index].max() > _TOLERANCE:
            yield from self.move_to(posture, 2.0)
            yield from self.wait(0.5)

    def reset_robot(self) -> Commands:
        """Let the simulator reset the robot: posture stand, feet side by side."""
        self.measurements.pause()  # without the fall and the reset
        self.commanded = None
        yield from self.wait(1.0)
        yield from self.trigger(names.SIMULATOR_RESET)
        self.commanded = self.model.posture()
        yield from self.wait(1.5)
        self.measurements.start(self.stamp_ns)

    # -- other nodes

    def wait_until(self, condition: Callable[[], bool], what: str, timeout: float) -> Commands:
        """
        Wait until a condition holds.

        Raises
        ------
        ChapterFailed
            If it does not hold within `timeout`, simulated s; `what` names it in the message.

        """
        end = self.time + timeout
        while not condition():
            if self.time > end:
                raise ChapterFailed(
                    f'no {what} within {timeout:.0f} s; see launch.log, whose path is in the '
                    'first line')
            yield self.commanded

    def call(self, service_type: Any, name: str,
             request: Any) -> Generator[Array | None, None, Any]:
        """
        Call a service and return its response.

        Raises
        ------
        ChapterFailed
            If the service is not available, or there is no response.

        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self.node.create_client(service_type, name)
        yield from self.wait_until(client.service_is_ready, f"service '{name}' (the node "
                                   f"{name.partition('/')[0]} is not running)", SERVICE_TIMEOUT)
        future = client.call_async(request)
        yield from self.wait_until(future.done, f"response of service '{name}'", 60.0)
        return future.result()

    def trigger(self, name: str) -> Generator[Array | None, None, str]:
        """
        Call a std_srvs/Trigger and return its message.

        Raises
        ------
        ChapterFailed
            If the service is not available, does not respond, or reports a failure.

        """
        response = yield from self.call(Trigger, name, Trigger.Request())
        if not response.success:
            raise ChapterFailed(f"'{name}' refused: {response.message}")
        return str(response.message)

    def change_state(self, node: str, transition: int) -> Commands:
        """
        Make a transition of a lifecycle node, one of ``lifecycle_msgs/Transition``.

        Raises
        ------
        ChapterFailed
            If the node is not running, or refuses.

        """
        response = yield from self.call(
            ChangeState, f'{node}/change_state',
            ChangeState.Request(transition=Transition(id=transition)))
        if not response.success:
            raise ChapterFailed(f'{node} refused a transition; the reason is in its log')

    def activate(self, node: str) -> Commands:
        """Configure and activate a lifecycle node; see :meth:`change_state`."""
        yield from self.change_state(node, Transition.TRANSITION_CONFIGURE)
        yield from self.change_state(node, Transition.TRANSITION_ACTIVATE)

    def ramp_up(self, urdf: str = '') -> Commands:
        """
        Ramp feedforward torques up, with the masses of a URDF; by default the robot's.

        Raises
        ------
        ChapterFailed
            If `gravity_compensation` is not running, or refuses.

        """
        yield from self.ramp_down()
        yield from self.set_parameters(_FEEDFORWARD, urdf=urdf)
        yield from self.activate(_FEEDFORWARD)
        yield from self.wait(_RAMP_UP)

    def ramp_down(self) -> Commands:
        """Ramp feedforward torques down, if there are any, and clean the node up."""
        response = yield from self.call(
            GetState, f'{_FEEDFORWARD}/get_state', GetState.Request())
        state = response.current_state.id
        if state == State.PRIMARY_STATE_ACTIVE:
            yield from self.change_state(_FEEDFORWARD, Transition.TRANSITION_DEACTIVATE)
            yield from self.wait(_RAMP_DOWN)
        if state != State.PRIMARY_STATE_UNCONFIGURED:
            yield from self.change_state(_FEEDFORWARD, Transition.TRANSITION_CLEANUP)

    def set_parameters(self, node: str, **values: Any) -> Commands:
        """Set parameters of another node."""
        request = SetParameters.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
        yield from self.call(SetParameters, f'{node}/set_parameters', request)

    def get_parameter(self, node: str, name: str) -> Generator[Array | None, None, Any]:
        """Return the value of a parameter of another node."""
        response = yield from self.call(
            GetParameters, f'{node}/get_parameters', GetParameters.Request(names=[name]))
        return parameter_value_to_python(response.values[0])

    def subscribe(self, message_type: Any, topic: str, callback: Callable[[Any], None],
                  qos: Any = STATE_OUTPUT) -> None:
        """Subscribe until the chapter ends."""
        self._subscriptions.append(
            self.node.create_subscription(message_type, topic, callback, qos))

    def unsubscribe(self) -> None:
        """End the subscriptions of the chapter."""
        while self._subscriptions:
            self.node.destroy_subscription(self._subscriptions.pop())
