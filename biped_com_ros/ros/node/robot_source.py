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
"""The robot of a node: from a file, or from the latched topic robot_description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.robot import RobotModel, SharedRobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report
from biped_com_ros.ros.node.timers import steady_clock
from biped_com_ros.ros.topics.qos import LATCHED
from std_msgs.msg import String

#: Value of the parameter `urdf` that asks for the topic.
TOPIC = 'topic'
#: Seconds between messages about waiting.
REMIND_PERIOD = 5.0


class _Models:
    """The models of nodes that share them; of those that do not, if `sharing` is False."""

    def __init__(self, sharing: bool) -> None:
        self._shared: list[SharedRobotModel] | None = [] if sharing else None

    def get(self, config: RobotConfig, urdf: str) -> RobotModel:
        """Return the model of a robot, if possible the one that another node has."""
        if self._shared is None:
            return RobotModel(config, urdf)
        for model in self._shared:
            if model.urdf == urdf and model.config == config:
                return model
        self._shared.append(SharedRobotModel(config, urdf))
        return self._shared[-1]


_models = _Models(sharing=False)


@contextmanager
def shared_models() -> Iterator[None]:
    """
    Let the nodes that are created meanwhile share the models of equal robots.

    For nodes of one thread: a model has one working memory, and keeps what it computed last.
    """
    global _models
    before, _models = _models, _Models(sharing=True)
    try:
        yield
    finally:
        _models = before


class RobotParameters(Protocol):
    """What every node's parameters have."""

    @property
    def robot(self) -> str:
        """Name of a robot of this package, or path of a YAML file."""

    @property
    def urdf(self) -> str:
        """Return what overrides the configuration's: a path, package:// URI, or ``topic``."""


class RobotSource:
    """
    Gets the robot's model and hands it over once.

    With a URDF file, `on_ready` is called before the constructor returns. Without one (neither
    the configuration nor the parameter `urdf` names it) or with ``urdf:=topic``, the latched
    topic ``robot_description`` is waited for; what is wrong with a description is logged, and
    waiting goes on.

    Parameters
    ----------
    node
        The rclpy node.
    params
        Has `robot` and `urdf`.
    on_ready
        Called with the RobotModel.
    diagnostics
        Where a line about the robot is added; its hardware_id becomes the robot's name.

    Raises
    ------
    BipedComError
        If the configuration or a URDF file is wrong.

    """

    def __init__(self, node: Any, params: RobotParameters,
                 on_ready: Callable[[RobotModel], None],
                 diagnostics: Diagnostics | None = None) -> None:
        self.model: RobotModel | None = None
        self.config = load_robot_config(params.robot)
        self._node, self._on_ready, self._models = node, on_ready, _models
        self._problem = ''
        if diagnostics is not None:
            diagnostics.hardware_id = self.config.name
            diagnostics.add('robot', self.report)
        if params.urdf == TOPIC or not (params.urdf or self.config.urdf):
            self._wait_for_topic()
        else:
            self._finish(self._models.get(self.config, load_urdf(self.config, params.urdf)))

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        if self.model is None:
            return ERROR, self._waiting(), {'robot': self.config.name}
        return OK, f'{self.config.name}, {self.model.mass:.3f} kg', {
            'robot': self.config.name, 'mass [kg]': self.model.mass,
            'joints': len(self.model.joint_names)}

    def _wait_for_topic(self) -> None:
        self._subscription = self._node.create_subscription(
            String, 'robot_description', self._described, LATCHED)
        self._timer = self._node.create_timer(
            REMIND_PERIOD, self._remind, clock=steady_clock())

    def _waiting(self) -> str:
        topic = self._subscription.topic_name
        if self._problem:
            return f"waiting for a usable URDF on '{topic}': {self._problem}"
        publishers = self._node.count_publishers(topic)
        hint = ('published, but not latched or not yet received' if publishers else
                'nobody publishes it; start robot_state_publisher or set the parameter urdf')
        return f"waiting for the URDF of '{self.config.name}' on '{topic}' ({hint})"

    def _remind(self) -> None:
        self._node.get_logger().warning(self._waiting())

    def _described(self, message: Any) -> None:
        if self.model is not None:
            if message.data != self.model.urdf:
                self._node.get_logger().warning(
                    'robot_description changed; restart the node to use the new one')
            return
        try:
            model = self._models.get(self.config, message.data)
        except BipedComError as error:
            self._problem = str(error)
            self._node.get_logger().error(f'robot_description cannot be used: {error}')
            return
        self._node.destroy_timer(self._timer)
        self._finish(model)

    def _finish(self, model: RobotModel) -> None:
        from biped_com_ros.ros.node.executor import settle_memory
        self.model = model
        self._on_ready(model)
        settle_memory()
