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
Whether the model of `com_estimator` agrees with the feet: in weight, and in where the CoM is.

It hears of the feet once per second, and only while the robot rests: what keeps up with every
message pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from biped_com_ros.core.com.check import ComCheck
from biped_com_ros.core.geometry.footprint import footprint_pose
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.weight_check import WeightCheck
from biped_com_ros.nodes.com_estimator.outputs import Instant
from biped_com_ros.ros.node.common_parameters import WeightParameters
from biped_com_ros.ros.node.diagnostics import Diagnostics, OK, Report, WARN
from biped_com_ros.ros.node.parameters import parameter
from biped_com_ros.ros.topics.inputs import WrenchInput
import numpy as np

TOPIC = 'wrench_aggregator/resting_wrench'

_SILENCE = 2.5
"""A verdict is told for so long: means come once per second, s."""
_NO_FEET = np.zeros(0)


@dataclass(frozen=True)
class ModelCheckParameters(WeightParameters):
    """Parameters of the comparison."""

    com_tolerance: float = parameter(
        0.005, "Distance of the centre of pressure from the model's centre of mass, at rest, that "
        'is accepted', 'm', 0.0, 1.0, read_only=True)


class ModelCheck:
    """
    Reports ``weight`` and ``centre of mass`` on ``/diagnostics``, with the remedy.

    A robot without wrench sensors has neither line.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, and the node's parameters: those above and `gravity`.
    latest
        Returns what is known now, or None.
    diagnostics
        Where it is reported.
    options
        For the input; see `inputs.Input`.

    """

    def __init__(self, node: Any, model: RobotModel, params: Any,
                 latest: Callable[[], Instant | None], diagnostics: Diagnostics,
                 **options: Any) -> None:
        if not model.config.wrench_sensors:
            return
        self._node, self._latest = node, latest
        weight = model.mass * params.gravity
        self._weight_check = WeightCheck(weight, {}, params.weight_tolerance, '')
        self._com_check = ComCheck(weight, params.com_tolerance)
        self._weight: Report = OK, '', {}
        self._com: Report = OK, '', {}
        self._listen = partial(
            WrenchInput, node, TOPIC, params.footprint_frame, self._on_rest, **options)
        self._input: WrenchInput | None = None
        diagnostics.add('weight', lambda: self._told(self._weight))
        diagnostics.add('centre of mass', lambda: self._told(self._com))

    def _on_rest(self, stamp_ns: int, total: Array) -> None:
        """Compare the mean total of the last second, in ``base_footprint``, with the model."""
        instant = self._latest()
        if instant is None:
            return
        stance = instant.stance
        footprint = footprint_pose(instant.state.base, stance.soles_in_world, stance.in_contact)
        com = self._com_check.verdict(total, footprint.inverse().apply(instant.com))
        self._com = _level(com.plausible), com.message, {'distance [m]': com.distance}
        self._weight_check.add(total.item(2), _NO_FEET, any(stance.in_contact))
        weight = self._weight_check.verdict()
        if weight is not None:
            self._weight = _level(weight.plausible), weight.message, {'ratio': weight.ratio}

    def _told(self, report: Report) -> Report:
        if self._input is None:  # with the first report: nobody's start waits for it
            self._input = self._listen()
        if report[1] and not self._input.stale(_SILENCE):
            return report
        topic = self._input.topic
        if not self._node.count_publishers(topic):
            return OK, (f"not compared: nobody tells on '{topic}' what the feet carry: start "
                        'wrench_aggregator'), {}
        return OK, ('not compared: the robot moves, or wrench_aggregator lacks an input (see '
                    'there)'), {}


def _level(plausible: bool) -> bytes:
    return OK if plausible else WARN
