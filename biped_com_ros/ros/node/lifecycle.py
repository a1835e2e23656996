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
Base of the lifecycle nodes of a robot: for a lifecycle manager, or activating themselves.

``unconfigured``: no inputs and outputs. ``inactive``: receives and estimates. ``active``: sends
commands. A subclass implements the hooks of the transitions. What it creates in
:meth:`RobotNodeMixin.build` and passes to :meth:`ManagedNode.keep` is destroyed when the node is
cleaned up, or when configuring fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.ros.node.common_parameters import ManagedNodeParameters
from biped_com_ros.ros.node.executor import guard_callbacks
from biped_com_ros.ros.node.robot_node import RobotNodeMixin
from biped_com_ros.ros.node.robot_source import TOPIC
from biped_com_ros.ros.topics.input_base import Input
from rclpy.client import Client
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
_Part = TypeVar('_Part')
Parameters = TypeVar('Parameters', bound=ManagedNodeParameters)


class ManagedNode(RobotNodeMixin[Parameters], LifecycleNode):
    """
    A lifecycle node of a robot; see `RobotNodeMixin` for parameters and attributes.

    Its parameters are a subclass of `ManagedNodeParameters`. `build` is called when the node is
    configured.
    """

    def __init__(self, name: str, parameters_class: type[Parameters], **node_kwargs: Any) -> None:
        self._kept: list[Any] = []
        super().__init__(name, parameters_class, **node_kwargs)
        guard_callbacks(self)  # before it is configured: the services of its lifecycle

    # -- what a node implements

    def prepare(self, model: RobotModel) -> None:
        """
        Check the parameters against the robot; called before the node is configured.

        Raises
        ------
        BipedComError
            If the parameters do not fit the robot: the node does not start.

        """

    def start(self) -> None:
        """Start to send commands; called when the node is activated."""

    def stop(self) -> None:
        """Stop sending commands; called on deactivation and shutdown, also of an inactive node."""

    def busy(self) -> str:
        """Return why the node cannot be cleaned up now; '' if it can."""
        return ''

    def dismantle(self) -> None:
        """Release what `build` made and did not pass to `keep`."""

    # -- what it uses

    def keep(self, part: _Part) -> _Part:
        """Return a timer, subscription, service, input or output; it is destroyed by a cleanup."""
        self._kept.append(part)
        return part

    # -- transitions

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build the node; fails while the robot's description is missing."""
        if not self.has_model:
            self.get_logger().error(
                'cannot be configured: the robot description is missing; start '
                'robot_state_publisher or set the parameter urdf')
            return FAILURE
        try:
            self._read_changed_urdf()
            self.build(self.model)
            self.watch_required_inputs()
            self.is_built = True
        except BipedComError as error:
            self.get_logger().error(f'cannot be configured: {error}')
            self._destroy_parts()
            return FAILURE
        guard_callbacks(self)
        return SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to send commands."""
        self.start()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop sending commands."""
        self.stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy what was built; fails while the node is busy."""
        if reason := self.busy():
            self.get_logger().error(f'cannot be cleaned up now: {reason}; try again later')
            return FAILURE
        self._destroy_parts()
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop sending commands."""
        self.stop()
        return SUCCESS

    def _on_model(self, model: RobotModel) -> None:
        self.prepare(model)
        self.model, self.has_model = model, True
        if self.params.autostart and self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    def _read_changed_urdf(self) -> None:
        """Load the URDF again if the parameter `urdf` was changed."""
        urdf = self.params.urdf
        if urdf in (self._urdf_in_use, TOPIC):
            return
        model = RobotModel(self.model.config, load_urdf(self.model.config, urdf))
        self.prepare(model)
        self.model, self._urdf_in_use = model, urdf

    def watch_required_inputs(self) -> None:
        """Log when one of the inputs that are required now is missing or back."""
        if self._input_watch is not None:
            self._kept.remove(self._input_watch)
            self._input_watch.destroy()
            self._input_watch = None
        needed = {part.topic: part for part in self._kept
                  if isinstance(part, Input) and part.required}
        if needed:
            self.keep(self.watch_inputs(needed))

    def _destroy_parts(self) -> None:
        self.is_built, self._input_watch = False, None
        self.dismantle()
        while self._kept:
            self._destroy(self._kept.pop())

    def _destroy(self, part: Any) -> None:
        """Destroy a part; those that rclpy created are destroyed by the node."""
        destroyers: tuple[tuple[type, Callable[[Any], object]], ...] = (
            (Timer, self.destroy_timer), (Service, self.destroy_service),
            (Client, self.destroy_client), (Subscription, self.destroy_subscription))
        for kind, destroy in destroyers:
            if isinstance(part, kind):
                destroy(part)
                return
        if isinstance(part, Input):
            self.diagnostics.remove(f'input {part.topic}')
        part.destroy()
