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
"""Follows the ros2_control controllers that receive ~/commands: their joints, and their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from biped_com_ros.nodes.gravity_compensation.command_subscribers import CommandSubscribers
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.controller_states import ControllerStates
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from biped_com_ros.ros.topics.whole_messages import subscribe
from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future

_CHECK_PERIOD = 1.0  # s
#: While a subscriber is not discovered completely, s.
_RECOGNITION_PERIOD = 0.2
#: Discovery finds what already runs within this time after the start; a controller that is found
#: later was loaded since, and has not been active yet, s.
DISCOVERY_TIME = 3.0
#: Time for which it counts as inactive without an event, s.
_ACTIVATION_TIME = 2.0
_UNRECOGNISED = ('a subscriber of the commands is not completely discovered yet: waiting until it '
                 'is known whether it is a controller')


class JointOrder:
    """
    What an effort controller has to have: the same joints in the same order.

    And efforts as the interface, where it has a parameter for that: to a controller of the same
    kind whose commands are positions, efforts would be positions.
    """

    parameters: tuple[str, ...] = ('joints',)
    optional: tuple[str, ...] = ('interface_name',)

    def difference(self, name: str, values: Sequence[Any], ours: Sequence[str]) -> str:
        """Return what differs in a controller's values of the parameters, with a remedy, or ''."""
        expected = list(values[0].string_array_value)
        interface = values[1].string_value if len(values) > 1 else ''
        if interface not in ('', 'effort'):
            return (f"controller '{name}' takes commands of {interface}, not of effort: remap "
                    '~/commands to an effort controller')
        remedy = "set command_joints to its parameter 'joints'"
        for i, (their, our) in enumerate(zip(expected, ours)):
            if their != our:
                return (f"controller '{name}' expects '{their}' at index {i} of its commands, "
                        f"command_joints has '{our}': {remedy}")
        return '' if len(expected) == len(ours) else (
            f"controller '{name}' commands {len(expected)} joints, command_joints has "
            f'{len(ours)}: {remedy}')


class JointSet:
    """
    What a trajectory controller has to have: the same joints, in any order.

    It also must interpolate from what it commands: from measured positions, a sequence of short
    trajectories would pull the joints by a part of their position errors only. And it must command
    efforts: without, it refuses trajectories that have any.
    """

    parameters: tuple[str, ...] = (
        'joints', 'interpolate_from_desired_state', 'command_interfaces')
    optional: tuple[str, ...] = ()

    def difference(self, name: str, values: Sequence[Any], ours: Sequence[str]) -> str:
        """Return what differs in a controller's values of the parameters, with a remedy, or ''."""
        expected = list(values[0].string_array_value)
        if different := sorted(set(expected) ^ set(ours)):
            return (f"controller '{name}' and command_joints differ by {', '.join(different)}: "
                    "set command_joints to its parameter 'joints'")
        if not values[1].bool_value:
            return (f"controller '{name}' has interpolate_from_desired_state false: set it to "
                    'true, so that it can follow a sequence of trajectories')
        interfaces = values[2].string_array_value
        return '' if 'effort' in interfaces else (
            f"controller '{name}' commands {', '.join(interfaces) or 'nothing'} only, so it "
            'refuses trajectories with efforts: add effort to its parameter command_interfaces, '
            'or set trajectory_rate to 0 and use an effort controller')


class ControllerWatch:
    """
    Compares the order of commands with the parameter ``joints`` of each controller that gets them.

    A controller is a subscriber whose node has that parameter. All are compared whenever a
    subscriber comes or goes, since a controller may be loaded again with other joints. A
    controller that is inactive applies nothing, and begins anew when it is activated: it announces
    both on its topic ``transition_event``. Before that, controller_manager is called. Where it is
    not there, or its messages are not installed, a controller that was there before this node
    counts as active until it announces something, one that is loaded later as inactive for 2 s.
    Inactive ones do not count beside one that applies the commands.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic of commands.
    controller
        Name of a controller's node, relative to the node's namespace, that has to be there; empty:
        none.
    joints
        The order of commands.
    requirement
        How a controller's parameters are compared with it.
    is_near_zero
        Returns whether a controller that begins with the present commands makes no step.

    Attributes
    ----------
    problem
        Why no command may be sent; '' if it may.
    unknown
        Why no command should be begun yet; '' if it may. It must not interrupt commands: one that
        was there before this node may be recognised as a controller late, even in a last ramp.
    subscribers
        Who subscribes to the commands.
    applying
        Ids of the subscriptions of controllers, or of all where no controller is known.
    must_restart
        Whether a controller has come or was activated, so that it applies no effort yet and
        commands have to begin at zero; reset it then.

    """

    def __init__(self, node: Node, topic: str, controller: str, joints: Sequence[str],
                 requirement: JointOrder | JointSet, is_near_zero: Callable[[], bool]) -> None:
        self._node, self._joints = node, list(joints)
        self._requirement = requirement
        self._required = _full_name(node, controller) if controller else ''
        self._controllers: dict[str, _Controller] = {}
        self._timer = node.create_timer(_RECOGNITION_PERIOD, self._on_timer)
        self._started_at = self._checked_at = steady_time()
        self.subscribers = CommandSubscribers(node, topic, is_near_zero)
        self.applying: set[bytes] = set()
        self.must_restart = False
        self.problem = self.unknown = ''
        self._states = ControllerStates(node, self._on_state)
        self._check()

    @property
    def state(self) -> str:
        """Return what is known, for diagnostics."""
        compared = [c.name for c in self._controllers.values() if c.joints]
        return self.problem or (
            f'as in {", ".join(compared)}' if compared else 'no controller found')

    @property
    def applies_commands(self) -> bool:
        """Whether a controller applies the last command until another one comes."""
        return not self.must_restart and any(map(_applies, self._controllers.values()))

    def begin(self, subscriptions: set[bytes] | None = None) -> None:
        """Let those with these subscriptions, by default all, apply commands from now on."""
        self.subscribers.begin(subscriptions)
        self.must_restart = False

    def compare(self, _: object = None) -> None:
        """Compare again, such as when a subscriber of the commands came or went."""
        self._check(again=True)

    def destroy(self) -> None:
        """Destroy timer, clients and subscriptions."""
        self._node.destroy_timer(self._timer)
        self._remove(list(self._controllers))
        self._states.destroy()

    def _on_timer(self) -> None:
        is_due = steady_time() > self._checked_at + _CHECK_PERIOD
        if is_due or self.subscribers.unrecognised:
            self._check()

    def _check(self, again: bool = False) -> None:
        """Find the controllers, and request the joints that are not known, or all `again`."""
        self._checked_at = steady_time()
        found = self.subscribers.find(self._required)
        # One that has another subscription than before was started anew under its name.
        gone = [name for name, controller in self._controllers.items()
                if found.get(name) != controller.subscriptions]
        was_applied = any(_applies(self._controllers[name]) for name in gone)
        self._remove(gone)
        # Whatever comes in its place applies nothing yet.
        self.must_restart |= was_applied and not any(map(_applies, self._controllers.values()))
        for name in found.keys() - self._controllers.keys():
            came_at = self.subscribers.came_at(found[name])
            is_loaded_now = came_at > self._started_at + DISCOVERY_TIME
            self._controllers[name] = _Controller(
                self._node, name, found[name], self._requirement,
                came_at if is_loaded_now else None, self._on_joints, self._on_transition)
        for controller in self._controllers.values():
            if again or controller.joints is None:
                controller.request(again)
            if not controller.is_state_known and controller.joints != []:
                self._states.request(controller.name)
        self._update()

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._controllers.pop(name).destroy()

    def _on_joints(self, controller: _Controller, is_new: bool) -> None:
        """Commands begin at zero for a new controller that is the only one, and comes later."""
        self.must_restart |= is_new and not (
            self.subscribers.any_in_step(controller.subscriptions)
            or self._has_other(controller))
        self._update()

    def _on_transition(self, is_active: bool) -> None:
        """Commands begin at zero for a controller that was activated."""
        self.must_restart |= is_active
        self._update()

    def _on_state(self, name: str, is_active: bool) -> None:
        """Take from controller_manager the state of a controller that announced nothing yet."""
        controller = self._controllers.get(name)
        if controller is not None and not controller.is_state_known:
            controller.set_state(is_active)
            self._update()

    def _has_other(self, controller: _Controller) -> bool:
        """Return whether another controller applies the commands."""
        return any(_applies(other) and not self._difference(other)
                   for other in self._controllers.values() if other is not controller)

    def _difference(self, controller: _Controller) -> str:
        return self._requirement.difference(controller.name, controller.values, self._joints)

    def _update(self) -> None:
        """Find out whether commands may be sent, and who applies them."""
        applying: set[bytes] = set().union(*(
            controller.subscriptions for controller in self._controllers.values()
            if controller.joints)) or self.subscribers.ids
        if applying != self.applying:
            self.applying = applying
        problems = [self._problem_of(controller) for controller in self._controllers.values()]
        self.problem = next(filter(None, problems), '')
        self.unknown = next((_not_known(controller) for controller in self._controllers.values()
                             if self._is_unknown(controller)), '') or (
            _UNRECOGNISED if self.subscribers.unrecognised else '')

    def _is_unknown(self, controller: _Controller) -> bool:
        if not controller.is_active:
            return False
        return controller.joints is None or bool(
            controller.joints and controller.may_wait_for_state
            and self._states.is_service_ready(controller.name))

    def _problem_of(self, controller: _Controller) -> str:
        name, is_required = controller.name, controller.name == self._required
        if is_required and not controller.is_running:
            return (f"controller '{name}' does not run, so the order of its joints is not known: "
                    'start it, or set controller to an empty string')
        if controller.joints is None:
            # A newcomer beside a compared one: it is not active yet, if it is a controller at all.
            is_in_use = controller.is_active or self.applies_commands
            return '' if is_in_use and not is_required else _not_known(controller)
        if not controller.joints:
            return '' if not is_required else (
                f"controller '{name}' has no parameter 'joints': set controller to an effort "
                'controller, or to an empty string')
        if not (controller.is_active or is_required) and self._has_other(controller):
            return ''
        return self._difference(controller) or (
            '' if controller.is_active else f"controller '{name}' is inactive: activate it")


class _Controller:
    """What is known of one node that gets the commands."""

    def __init__(self, node: Node, name: str, subscriptions: set[bytes],
                 requirement: JointOrder | JointSet, loaded_at: float | None,
                 on_joints: Callable[[_Controller, bool], None],
                 on_activity: Callable[[bool], None]) -> None:
        self._node, self.name = node, name
        self._on_joints, self._on_activity = on_joints, on_activity
        self.subscriptions = subscriptions
        self.joints: list[str] | None = None  # empty: the node is no controller
        self.values: Sequence[Any] = ()  # of the parameters
        self._required = list(requirement.parameters)
        self._request = GetParameters.Request(names=[*self._required, *requirement.optional])
        self._loaded_at = loaded_at  # None: before this node
        self._is_active: bool | None = None  # until it is known
        #: Whether it has announced its state, or controller_manager has.
        self.is_state_known = False
        self._found_at, self._has_response, self._round = steady_time(), False, 0
        self._client: Client = node.create_client(GetParameters, f'{name}/get_parameters')
        self._subscription = subscribe(
            node, TransitionEvent, f'{name}/transition_event', self._on_transition, STATE_OUTPUT)

    @property
    def is_running(self) -> bool:
        """Whether its service is there."""
        return self._client.service_is_ready()

    @property
    def is_active(self) -> bool:
        """Whether it applies commands."""
        if self._is_active is None:
            return self._loaded_at is None or (steady_time() > self._loaded_at + _ACTIVATION_TIME)
        return self._is_active

    @property
    def may_wait_for_state(self) -> bool:
        """Whether the response with its state may still be in time."""
        return not self.is_state_known and (steady_time() < self._found_at + _ACTIVATION_TIME)

    def set_state(self, is_active: bool) -> None:
        """Note whether it is active."""
        self._is_active, self.is_state_known = is_active, True

    def request(self, again: bool) -> None:
        """
        Request the joints; a request to a node that has ended meanwhile gets no response.

        Requested `again`, they may be of another node, and earlier responses no longer count.
        Else the first one does, however many requests were sent since: a busy computer may take
        longer for one than there is between two of them.
        """
        self._round += again
        if self.is_running:
            self._client.call_async(self._request).add_done_callback(
                partial(self._on_response, self._round))

    def destroy(self) -> None:
        self._node.destroy_client(self._client)
        self._node.destroy_subscription(self._subscription)

    def _on_response(self, requested_in: int, future: Future) -> None:
        if requested_in != self._round:  # of a node that may have been replaced since
            return
        response: Any = future.result()
        values = response.values
        if not values and len(self._request.names) > len(self._required):
            # One of them is not declared: rclcpp then answers none.
            self._request = GetParameters.Request(names=self._required)
            self.request(again=True)
            return
        self.values = values
        is_new, self._has_response = not self._has_response, True
        self.joints = list(values[0].string_array_value) if values else []
        self._on_joints(self, is_new and bool(self.joints))

    def _on_transition(self, event: TransitionEvent) -> None:
        is_active = event.goal_state.id == State.PRIMARY_STATE_ACTIVE
        self.set_state(is_active)
        self._on_activity(is_active)


def _applies(controller: _Controller) -> bool:
    return bool(controller.joints) and controller.is_active


def _not_known(controller: _Controller) -> str:
    return f"the joints of '{controller.name}' are not known yet: wait for its response"


def _full_name(node: Node, name: str) -> str:
    return name if name.startswith('/') else f"{node.get_namespace().rstrip('/')}/{name}"
