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
What the nodes of a robot have in common: parameters, diagnostics, model, options of inputs.

A node declares its parameters, makes inputs and outputs for the robot in `build`, and uses changed
parameters in `apply_parameters`. Lifecycle nodes share this base, see `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, Generic, TypeVar

from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.node.common_parameters import RobotChoice, RobotNodeParameters
from biped_com_ros.ros.node.diagnostics import Diagnostics
from biped_com_ros.ros.node.input_watch import InputWatch
from biped_com_ros.ros.node.parameters import declare_parameters
from biped_com_ros.ros.node.robot_source import RobotSource
from biped_com_ros.ros.topics.input_base import Input, inputs_of
from rclpy.node import Node

Parameters = TypeVar('Parameters', bound=RobotChoice)
_Stamped = TypeVar('_Stamped', bound=RobotNodeParameters)


class RobotNodeMixin(Generic[Parameters]):
    """
    Common part of `RobotNode` and `ManagedNode`; comes before rclpy's class among the bases.

    Parameters
    ----------
    name
        Name of the node.
    parameters_class
        Frozen dataclass of its parameters.
    **node_kwargs
        Passed on to rclpy's class.

    Attributes
    ----------
    params
        Values of the parameters.
    diagnostics
        Its lines on /diagnostics.
    model
        The robot; set before `build` is called.
    has_model, is_built
        Whether `model` is there, and whether `build` is done.

    Raises
    ------
    BipedComError
        If a parameter, the robot's configuration or its URDF file is wrong.

    """

    params: Parameters
    diagnostics: Diagnostics
    model: RobotModel
    takes_inertials = True
    """Whether the node uses inertials that are calibrated while it runs."""

    def __init__(self, name: str, parameters_class: type[Parameters], **node_kwargs: Any) -> None:
        super().__init__(name, **node_kwargs)  # type: ignore[call-arg]  # the one of rclpy
        self.has_model = self.is_built = False
        self._input_watch: InputWatch | None = None
        node = cast(Node, self)
        self.params = declare_parameters(
            node, parameters_class, self._on_parameters, self._check_change)
        self.diagnostics = Diagnostics(node)
        self._urdf_in_use = self.params.urdf
        self._source = RobotSource(
            node, self.params, self._on_model, self.diagnostics,
            self._on_inertials if self.takes_inertials else None)

    # -- what a node implements

    def build(self, model: RobotModel) -> None:
        """
        Make the inputs, outputs, services and diagnostics for this robot.

        Raises
        ------
        BipedComError
            If the parameters do not fit the robot.

        """
        raise NotImplementedError

    def check_parameters(self, params: Parameters) -> None:
        """
        Check parameters before they are changed at run time; called once the model is there.

        Raises
        ------
        BipedComError
            If they do not go together, or do not fit the robot: the change is rejected with it.

        """

    def apply_parameters(self, params: Parameters) -> None:
        """
        Use parameters that were changed after `build`; `self.params` has the old ones.

        Raises
        ------
        ConfigurationError
            If they do not go together, where `check_parameters` accepts them because they can
            only be changed one by one: it is logged, and the old ones stay in use until they do.

        """

    def use_inertials(self) -> None:
        """
        Compute again what follows from masses: those of `self.model` were calibrated.

        A lifecycle node may not be configured then.
        """

    # -- what it uses

    @property
    def robot_config(self) -> RobotConfig:
        """Return the robot's YAML, which is there before its model may be."""
        return self._source.config

    def input_options(self: RobotNodeMixin[_Stamped], timeout: float = 0.5) -> dict[str, Any]:
        """Return what all inputs of the node have in common; `timeout` in s, see `Input`."""
        return {'diagnostics': self.diagnostics, 'timeout': timeout,
                'max_age': self.params.max_stamp_age}

    def watch_inputs(self, inputs: Mapping[str, Input]) -> InputWatch:
        """Log when one of these inputs, by name, is missing or back; see `missing_inputs`."""
        self._input_watch = InputWatch(cast(Node, self), dict(inputs))
        return self._input_watch

    @property
    def missing_inputs(self) -> tuple[str, ...]:
        """Names of the watched inputs that never arrived or are stale."""
        return () if self._input_watch is None else self._input_watch.missing

    # -- what calls it

    def _on_model(self, model: RobotModel) -> None:
        self.model, self.has_model = model, True
        self.build(model)
        self.is_built = True

    def _on_inertials(self) -> None:
        if self.has_model:
            self.use_inertials()

    def _check_change(self, params: Parameters) -> None:
        if self.has_model:
            self.check_parameters(params)

    def _on_parameters(self, params: Parameters) -> None:
        if self.is_built:
            self.apply_parameters(params)
        self.params = params
        if isinstance(params, RobotNodeParameters):
            for source in list(inputs_of(cast(Node, self))):
                source.max_age = params.max_stamp_age


class RobotNode(RobotNodeMixin[Parameters], Node):
    """A node of a robot: `build` is called once, as soon as the robot's model is known."""
