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
"""The robot's model of a node: from a file, or from the latched topic robot_description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.robot import RobotModel, SharedRobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.ros.node.clock import steady_clock
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, Report, WARN
from biped_com_ros.ros.topics.qos import LATCHED
from rclpy.node import Node
from std_msgs.msg import String

#: Value of the parameter `urdf` that selects the topic.
TOPIC = 'topic'
#: Latched topic of a URDF whose inertials running nodes take over.
CALIBRATED_TOPIC = 'calibrated_description'
#: Period of the log message about a missing description, s.
REMINDER_PERIOD = 5.0


_shared_models: list[SharedRobotModel] | None = None
"""Models of the nodes that share them; None outside of `shared_models`."""


@contextmanager
def shared_models() -> Iterator[None]:
    """
    Let the nodes that are created meanwhile share the models of equal robots.

    For nodes of one thread: a model has one working memory, and caches its last results.
    """
    global _shared_models
    before, _shared_models = _shared_models, []
    try:
        yield
    finally:
        _shared_models = before


def _make_model(config: RobotConfig, urdf: str,
                shared: list[SharedRobotModel] | None) -> RobotModel:
    """Return a model; an equal one of `shared` if there is one."""
    if shared is None:
        return RobotModel(config, urdf)
    for model in shared:
        if model.urdf == urdf and model.config == config:
            return model
    shared.append(SharedRobotModel(config, urdf))
    return shared[-1]


class RobotSource:
    """
    Gets the robot's model and passes it on once.

    With a URDF file, `on_ready` is called before the constructor returns. Without one (neither
    the configuration nor the parameter `urdf` names it), or with ``urdf:=topic``, the node waits
    for the latched topic ``robot_description``. An invalid description is logged, and the node
    keeps waiting.

    Parameters
    ----------
    node
        The rclpy node.
    params
        Parameters of the node.
    on_ready
        Called with the RobotModel.
    diagnostics
        Where a status of the robot is added; its hardware_id becomes the robot's name.
    on_inertials
        Called when the model has taken over other inertials, which the latched topic
        ``calibrated_description`` brings, or ``robot_description`` where the URDF came from it.
        Without it a change is only logged.

    Raises
    ------
    BipedComError
        If the configuration or a URDF file is wrong.

    """

    def __init__(self, node: Node, params: RobotChoice,
                 on_ready: Callable[[RobotModel], None],
                 diagnostics: Diagnostics | None = None,
                 on_inertials: Callable[[], None] | None = None) -> None:
        self.model: RobotModel | None = None
        self.config = load_robot_config(params.robot)
        self._node, self._on_ready, self._on_inertials = node, on_ready, on_inertials
        self._shared_models = _shared_models
        self.waiting_inertials = self._inertials_of = ''
        self._described, self._is_calibrated = '', False
        self._problem = ''
        if diagnostics is not None:
            diagnostics.hardware_id = self.config.name
            diagnostics.add('robot', self.report)
        if params.urdf == TOPIC or not (params.urdf or self.config.urdf):
            self._wait_for_topic()
        else:
            urdf = load_urdf(self.config, params.urdf)
            self._finish(_make_model(self.config, urdf, self._shared_models))
        if on_inertials is not None:
            node.create_subscription(String, CALIBRATED_TOPIC, self._on_calibrated, LATCHED)

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        if self.model is None:
            return ERROR, self._describe_wait(), {'robot': self.config.name}
        warnings = self.model.warnings
        text = warnings[0] if warnings else f'{self.config.name}, {self.model.mass:.3f} kg'
        return (WARN if warnings else OK), text, {
            'robot': self.config.name, 'mass [kg]': self.model.mass,
            'joints': len(self.model.joint_names),
            **{f'warning {i}': text for i, text in enumerate(warnings[1:], 2)}}

    def _wait_for_topic(self) -> None:
        self._subscription = self._node.create_subscription(
            String, 'robot_description', self._on_description, LATCHED)
        self._timer = self._node.create_timer(REMINDER_PERIOD, self._remind, clock=steady_clock())

    def _describe_wait(self) -> str:
        topic = self._subscription.topic_name
        if self._problem:
            return f"waiting for a usable URDF on '{topic}': {self._problem}"
        publishers = self._node.count_publishers(topic)
        hint = ('it is published, but was not received yet; if this stays, make its publisher '
                'latched (transient local)' if publishers else
                'it has no publisher; start robot_state_publisher or set the parameter urdf')
        return f"waiting for the URDF of '{self.config.name}' on '{topic}': {hint}"

    def _remind(self) -> None:
        self._node.get_logger().warning(self._describe_wait())

    def _on_description(self, message: String) -> None:
        if self.model is not None:
            if self._is_calibrated and message.data == self._described:
                self._node.get_logger().warning(
                    'robot_description was published again; keeping the inertials of '
                    f"'{CALIBRATED_TOPIC}': restart the node to use others")
            elif self._on_inertials is not None:
                self._take_over(message.data)
            elif message.data != self.model.urdf:
                self._node.get_logger().warning(
                    'robot_description changed; restart the node to use the new one')
            return
        try:
            model = _make_model(self.config, message.data, self._shared_models)
        except BipedComError as error:
            if str(error) != self._problem:
                self._node.get_logger().error(f'robot_description cannot be used: {error}')
            self._problem = str(error)
            return
        self._node.destroy_timer(self._timer)
        self._finish(model)

    def _on_calibrated(self, message: String) -> None:
        if self.model is None:
            self.waiting_inertials = message.data  # used when the robot is known
        elif self._take_over(message.data):
            self._is_calibrated = True

    def _take_over(self, urdf: str) -> bool:
        """
        Take over the inertials of a URDF, in this node's model or the one it shares.

        Returns whether they are in use.
        """
        model, logger = self.model, self._node.get_logger()
        if model is None or self._on_inertials is None or urdf == self._inertials_of:
            return urdf == self._inertials_of
        before = ''  # another node of this process may have replaced them already
        try:
            if urdf != model.urdf:
                before = f'{model.mass:.3f} -> '
                model.use_inertials(urdf)
        except BipedComError as error:
            if str(error) != self._problem:  # a flood of them would fill the log
                logger.error(f'keeping the inertials in use: {error}')
            self._problem = str(error)
            return False
        self._inertials_of, self._problem = urdf, ''
        self._on_inertials()
        logger.info(f'inertials of the calibrated URDF in use: {before}{model.mass:.3f} kg')
        return True

    def _finish(self, model: RobotModel) -> None:
        from biped_com_ros.ros.node.executor import settle_memory
        self.model, self._inertials_of, self._described = model, model.urdf, model.urdf
        for warning in model.warnings:
            self._node.get_logger().warning(f"robot '{model.config.name}': {warning}")
        self._on_ready(model)
        if self.waiting_inertials:
            self._on_calibrated(String(data=self.waiting_inertials))
        settle_memory()
