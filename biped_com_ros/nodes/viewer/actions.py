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

"""What the buttons of the page do: commands -> services and topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import math
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.stamp import now_ns, stamp_to_msg
from biped_com_ros.viz.page import NEEDS, PUSHES
from geometry_msgs.msg import Vector3Stamped, WrenchStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

#: Commands that are a service without arguments, and under which controls the answer is told.
_TRIGGERS = {
    'tare': ('wrench_aggregator/tare', 'sensors'),
    'untare': ('wrench_aggregator/untare', 'sensors'),
    'reset': ('simulator/reset', 'push'),
    'step': ('gait_player/single_step', 'walk'),
    'walk': ('gait_player/walk', 'walk'),
    'stop': ('gait_player/stop', 'walk'),
    **{f'calibration/{name}': (f'com_calibrator/{name}', 'calibration')
       for name in ('start', 'reset', 'capture', 'skip', 'solve', 'publish')}}

#: Those that are a service which takes true or false.
_SWITCHES = {'freeze': ('torso_controller/freeze', 'torso'), 'hang': ('simulator/hang', 'push')}

Say = Callable[[str, str, 'bool | None'], None]


class PageActions:
    """
    Carries out commands of the page.

    Parameters
    ----------
    node
        Who calls and publishes.
    model
        The robot.
    say
        Called with (group of controls, words, whether it went well) when there is news.

    Attributes
    ----------
    feedforward_is_on : bool or None
        Whether gravity_compensation is active; None: not known.

    """

    def __init__(self, node: Node, model: RobotModel, say: Say) -> None:
        self._node, self._model, self._say = node, model, say
        self.feedforward_is_on: bool | None = None
        self._triggers = {name: node.create_client(Trigger, service)
                          for name, (service, _) in _TRIGGERS.items()}
        self._switches = {name: node.create_client(SetBool, service)
                          for name, (service, _) in _SWITCHES.items()}
        self._change = node.create_client(ChangeState, 'gravity_compensation/change_state')
        self._get = node.create_client(GetState, 'gravity_compensation/get_state')
        self._push = node.create_publisher(WrenchStamped, 'simulator/push', 10)
        self._target = node.create_publisher(Vector3Stamped, 'torso_controller/target', 10)
        self._pushed = model.link_names[int(np.argmax(model.link_masses))]
        self._asked: Any = None

    def carry_out(self, command: str, value: Any, yaw: float = 0.0) -> None:
        """
        Do what a control asks for; how it went is told later.

        Parameters
        ----------
        command, value
            As `biped_com_ros.viz.page.Page` gives them.
        yaw
            Where the robot faces in the world, rad.

        """
        if command in _TRIGGERS:
            self._call(command)
        elif command == 'push':
            direction, share = value
            self._send_push(direction, share, yaw)
        elif command == 'torso':
            self._send_target(*value)
        elif command in _SWITCHES:
            self._tell_later(self._switches[command].call_async(SetBool.Request(data=value)),
                             _SWITCHES[command][1])
        elif command == 'feedforward':
            self._switch_feedforward(value)

    def missing(self) -> dict[str, str]:
        """Return why commands cannot be carried out now, by command, and ask for states."""
        clients = {**self._triggers, **self._switches}
        ready = {name: client.service_is_ready() for name, client in clients.items()}
        # Of what listens to a topic only the services tell which node it is.
        ready['push'], ready['torso'] = ready['reset'], ready['freeze']
        ready['feedforward'] = self._get.service_is_ready() and self._change.service_is_ready()
        if ready['feedforward']:
            self._ask()
        else:
            self.feedforward_is_on, self._asked = None, None
        reasons = {name: f'{NEEDS[name]} does not run' for name, is_ready in ready.items()
                   if not is_ready}
        if self._model.config.torso is None:
            reasons['torso'] = reasons['freeze'] = (
                f'{self._model.config.name} has no tendon-driven torso')
        return reasons

    # -- services

    def _call(self, command: str) -> None:
        group = _TRIGGERS[command][1]
        client = self._triggers[command]
        if not client.service_is_ready():
            self._say(group, f'{NEEDS[command]} does not run', False)
            return
        self._say(group, f'asked {client.srv_name}', None)
        self._tell_later(client.call_async(Trigger.Request()), group)

    def _tell_later(self, future: Any, group: str) -> None:
        future.add_done_callback(partial(self._answered, group))

    def _answered(self, group: str, future: Any) -> None:
        answer = future.result()
        if answer is not None:
            self._say(group, answer.message or ('done' if answer.success else 'refused'),
                      answer.success)

    # -- feedforward

    def _ask(self) -> None:
        if self._asked is None or self._asked.done():
            self._asked = self._get.call_async(GetState.Request())
            self._asked.add_done_callback(self._got_state)

    def _got_state(self, future: Any) -> None:
        answer = future.result()
        if answer is not None:
            self._state = answer.current_state.id
            self.feedforward_is_on = self._state == State.PRIMARY_STATE_ACTIVE

    _state = State.PRIMARY_STATE_UNKNOWN

    def _switch_feedforward(self, on: bool) -> None:
        """Go through the states of the lifecycle, to active or to inactive."""
        if not on:
            self._transit(Transition.TRANSITION_DEACTIVATE)
        elif self._state == State.PRIMARY_STATE_UNCONFIGURED:
            self._transit(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        else:
            self._transit(Transition.TRANSITION_ACTIVATE)

    def _transit(self, transition: int, *later: int) -> None:
        future = self._change.call_async(ChangeState.Request(transition=Transition(id=transition)))
        future.add_done_callback(partial(self._transited, later))

    def _transited(self, later: tuple[int, ...], future: Any) -> None:
        answer = future.result()
        if answer is None or not answer.success:
            self._say('feedforward', 'gravity_compensation refuses; its log says why', False)
        elif later:
            self._transit(*later)
        else:
            self._ask()

    # -- topics

    def _send_push(self, direction: str, share: float, yaw: float) -> None:
        """Push the heaviest link along the robot's own directions."""
        forward, left = PUSHES[direction]
        force = share * self._model.mass * GRAVITY
        message = WrenchStamped()
        message.header.frame_id = self._pushed
        message.header.stamp = stamp_to_msg(now_ns(self._node))
        message.wrench.force.x = force * (forward * math.cos(yaw) - left * math.sin(yaw))
        message.wrench.force.y = force * (forward * math.sin(yaw) + left * math.cos(yaw))
        self._push.publish(message)
        self._say('push', f'pushed {direction} at {self._pushed} with {force:.1f} N', True)

    def _send_target(self, forward: float, left: float) -> None:
        """Bend the torso; `forward` and `left` in degrees, together the direction."""
        message = Vector3Stamped()
        message.header.stamp = stamp_to_msg(now_ns(self._node))
        message.vector.x = math.radians(math.hypot(forward, left))
        message.vector.y = math.atan2(left, forward)
        self._target.publish(message)
        self._say('torso', f'asked to bend by {math.hypot(forward, left):.1f} deg', True)
