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

"""Executes the commands of the page: services and topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import math
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.frames import frame_prefix
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import now_ns, stamp_to_msg
from biped_com_ros.ros.topics.whole_messages import subscribe
from biped_com_ros.viz.controls import checked, COMMANDS, permitted, PUSH_DIRECTIONS
from biped_com_ros.viz.view import chapter_of
from geometry_msgs.msg import Vector3Stamped, WrenchStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

_ALWAYS = ('tare', 'record')
"""Groups of controls that disturb no chapter of the demo."""

ShowNote = Callable[[str, str, 'bool | None'], None]


class PageActions:
    """
    Executes commands of the page.

    Parameters
    ----------
    node
        Node with the clients and publishers.
    model
        The robot.
    show_note
        Called with (group of controls, text, success or None) for each result.
    controls
        Groups of controls that may be used; see `permitted`.
    gravity
        By which pushes are shares of the weight, m/s^2.

    Attributes
    ----------
    feedforward_is_on : bool or None
        Whether gravity_compensation is active; None: unknown.

    """

    def __init__(self, node: Node, model: RobotModel, show_note: ShowNote,
                 controls: str = 'all', gravity: float = GRAVITY) -> None:
        self._weight = model.mass * gravity
        self._permitted = permitted(controls)
        self._node, self._model, self._show_note = node, model, show_note
        self.feedforward_is_on: bool | None = None
        self._clients = {
            name: node.create_client(SetBool if command.is_switch else Trigger,
                                     f'{command.node}/{command.service}')
            for name, command in COMMANDS.items() if command.service}
        self._change = node.create_client(ChangeState, 'gravity_compensation/change_state')
        self._get = node.create_client(GetState, 'gravity_compensation/get_state')
        self._push = node.create_publisher(WrenchStamped, names.PUSH, 10)
        self._target = node.create_publisher(Vector3Stamped, names.TORSO_TARGET, 10)
        self._heaviest_link = model.link_names[int(np.argmax(model.link_masses))]
        self._story = ''
        subscribe(node, String, names.DEMO_STORY, self._on_story, LATCHED)
        self._state_request: Any = None
        self._state = State.PRIMARY_STATE_UNKNOWN

    @property
    def is_discovered(self) -> bool:
        """Whether there are subscribers for pushes and for torso targets."""
        return bool(self._push.get_subscription_count()
                    and self._target.get_subscription_count())

    def execute(self, command: str, value: Any, yaw: float = 0.0) -> None:
        """
        Execute a command; the result is shown later.

        Parameters
        ----------
        command, value
            As `biped_com_ros.viz.page.Page` gives them.
        yaw
            Heading of the robot in the world, rad.

        """
        if command not in self._permitted:  # its button is disabled, but in the browser only
            self._node.get_logger().warning(
                f"command '{command}' refused: parameter controls does not permit it")
            return
        try:
            value = checked(command, value)
        except InputError as error:
            self._node.get_logger().warning(str(error))
            return
        if command in self._clients:
            self._call(command, value)
        elif command == 'push':
            direction, share = value
            self._send_push(direction, share, yaw)
        elif command == 'push_at':
            self._send_point_push(*value)
        elif command == 'torso':
            self._send_target(*value)
        elif command == 'feedforward':
            self._switch_feedforward(value)

    def unavailable(self) -> dict[str, str]:
        """Return the commands that cannot be executed now, and why."""
        ready = {name: client.service_is_ready() for name, client in self._clients.items()}
        # Subscribers are anonymous; the services of the same node are not.
        ready['push'] = ready['push_at'] = ready['reset']
        ready['torso'] = ready['freeze']
        ready['feedforward'] = self._can_switch_feedforward()
        reasons = {name: f'{COMMANDS[name].node} is not running'
                   for name, is_ready in ready.items() if not is_ready}
        if chapter := self._chapter():
            reasons = {name: f'wait until chapter {chapter} of the demo is over'
                       for name, command in COMMANDS.items()
                       if command.group not in _ALWAYS} | reasons
        return reasons | {name: 'turned off by parameter controls' for name in COMMANDS
                          if name not in self._permitted}

    def _chapter(self) -> str:
        """Return which chapter the demo runs, or ''; what is latched outlasts its publisher."""
        return chapter_of(self._story) if self._node.count_publishers(names.DEMO_STORY) else ''

    def _on_story(self, message: String) -> None:
        self._story = message.data

    def update_feedforward(self) -> None:
        """Request the state of gravity_compensation; :attr:`feedforward_is_on` follows."""
        if self._can_switch_feedforward():
            self._request_state()
        else:
            self.feedforward_is_on, self._state_request = None, None

    def _can_switch_feedforward(self) -> bool:
        return self._get.service_is_ready() and self._change.service_is_ready()

    # -- services

    def _call(self, command: str, value: Any) -> None:
        group, client = COMMANDS[command].note, self._clients[command]
        if not client.service_is_ready():
            self._show_note(group, f'{COMMANDS[command].node} is not running', False)
            return
        self._show_note(group, f'calling {client.srv_name}', None)
        is_switch = COMMANDS[command].is_switch
        request = SetBool.Request(data=value) if is_switch else Trigger.Request()
        client.call_async(request).add_done_callback(partial(self._on_response, group))

    def _on_response(self, group: str, future: Any) -> None:
        response = future.result()
        if response is not None:
            self._show_note(group, response.message or ('done' if response.success else 'refused'),
                            response.success)

    # -- feedforward

    def _request_state(self) -> None:
        if self._state_request is not None:  # without a response: that node may have ended
            self._get.remove_pending_request(self._state_request)
        self._state_request = self._get.call_async(GetState.Request())
        self._state_request.add_done_callback(self._on_state)

    def _on_state(self, future: Any) -> None:
        response = future.result()
        if response is not None:
            self._state = response.current_state.id
            self.feedforward_is_on = self._state == State.PRIMARY_STATE_ACTIVE

    def _switch_feedforward(self, on: bool) -> None:
        """Change the state of the lifecycle node, to active or to inactive."""
        if not on:
            self._request_transition(Transition.TRANSITION_DEACTIVATE)
        elif self._state == State.PRIMARY_STATE_UNCONFIGURED:
            self._request_transition(
                Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        else:
            self._request_transition(Transition.TRANSITION_ACTIVATE)

    def _request_transition(self, transition: int, *others: int) -> None:
        future = self._change.call_async(ChangeState.Request(transition=Transition(id=transition)))
        future.add_done_callback(partial(self._on_transition, others))

    def _on_transition(self, others: tuple[int, ...], future: Any) -> None:
        response = future.result()
        if response is None or not response.success:
            self._show_note('feedforward', 'gravity_compensation refused the transition; the '
                            'reason is in its log', False)
        elif others:
            self._request_transition(*others)
        else:
            self._request_state()

    # -- topics

    def _send_push(self, direction: str, share: float, yaw: float) -> None:
        """Push the heaviest link in a direction relative to the robot."""
        forward, left = PUSH_DIRECTIONS[direction]
        force = share * self._weight
        in_world = np.array((forward * math.cos(yaw) - left * math.sin(yaw),
                             forward * math.sin(yaw) + left * math.cos(yaw), 0.0))
        self._publish_push(self._heaviest_link, force * in_world, np.zeros(3))
        self._show_note(
            'push', f'{self._heaviest_link} pushed {direction} with {force:.1f} N', True)

    def _send_point_push(self, link: str, arm: Any, direction: Any, share: float) -> None:
        """Push a point of a link; `arm` from its centre of mass, m, both along world axes."""
        force = share * self._weight * np.array(direction)
        self._publish_push(link, force, np.cross(arm, force))
        self._show_note('push', f'{link} pushed where it was clicked with '
                        f'{np.linalg.norm(force):.1f} N', True)

    def _publish_push(self, link: str, force: Any, moment: Any) -> None:
        """Publish a push: force through the link's centre of mass and moment, in the world."""
        message = WrenchStamped()
        message.header.frame_id = frame_prefix(self._node) + link
        message.header.stamp = stamp_to_msg(now_ns(self._node))
        for field, values in ((message.wrench.force, force), (message.wrench.torque, moment)):
            field.x, field.y, field.z = map(float, values)
        self._push.publish(message)

    def _send_target(self, forward: float, left: float) -> None:
        """Bend the torso; components forward and to the left in degrees."""
        message = Vector3Stamped()
        message.header.stamp = stamp_to_msg(now_ns(self._node))
        message.vector.x = math.radians(math.hypot(forward, left))
        message.vector.y = math.atan2(left, forward)
        self._target.publish(message)
        self._show_note('torso', f'target: bend {math.hypot(forward, left):.1f} deg', True)
