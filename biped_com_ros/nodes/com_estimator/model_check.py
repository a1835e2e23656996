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
Compares the model of `com_estimator` with the foot wrenches: weight, and horizontal CoM.

`wrench_aggregator` publishes the mean wrench once per second while the robot rests, so that this
costs nothing while it moves.
"""

from __future__ import annotations

from collections.abc import Callable

from biped_com_ros.core.com.check import ComCheck
from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.geometry.pose import Array, footprint_pose
from biped_com_ros.core.wrench.weight_check import UPRIGHT, WeightCheck
from biped_com_ros.nodes.com_estimator.parameters import ComEstimatorParameters
from biped_com_ros.ros.node.diagnostics import OK, Report, report_of
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import WrenchInput
import numpy as np

_TIMEOUT = 2.5
"""A result is reported for this long after the last mean; they come once per second, s."""
_NO_FEET = np.zeros(0)


class ModelCheck:
    """
    Reports ``weight`` and ``centre of mass`` on ``/diagnostics``, with the remedy.

    A robot without wrench sensors, or with sensors of the vertical force alone, has neither line:
    there is no total wrench, and what its joint torques imply for the feet
    depends on the model.

    Parameters
    ----------
    node
        The node, whose parameters are those above, `gravity` and `footprint_frame`.
    latest
        Returns the latest estimate; None before the first.

    """

    def __init__(self, node: RobotNode[ComEstimatorParameters],
                 latest: Callable[[], ComEstimate | None]) -> None:
        self._node = node
        self._input: WrenchInput | None = None
        self.use_inertials()
        config = node.model.config
        if config.feet_with_force_z or not any(
                foot.used_sensors for foot in config.feet.values()):
            return
        self._latest = latest
        self._input = WrenchInput(
            node, names.RESTING_WRENCH, node.params.footprint_frame, self._on_rest, required=False,
            **node.input_options(node.params.sensor_timeout) | {'diagnostics': None})
        node.diagnostics.add('weight', lambda: self._current(self._weight))
        node.diagnostics.add('centre of mass', lambda: self._current(self._com))

    def use_inertials(self) -> None:
        """Compare with other masses: what was found with those before does not count."""
        self._weight: Report = OK, '', {}
        self._com: Report = OK, '', {}
        self.configure()

    def configure(self) -> None:
        """Compare by the masses and the parameters that there are now."""
        node = self._node
        weight = node.model.mass * node.params.gravity
        is_calibrated = node.model.is_calibrated
        self._weight_check = WeightCheck(
            weight, {}, node.params.weight_tolerance, '', window_ns=0)
        self._weight_check.use_weight(weight, is_calibrated=is_calibrated)
        self._com_check = ComCheck(weight, node.model.com_height, is_calibrated)
        if self._input is not None:
            self._input.timeout = node.params.sensor_timeout

    def _on_rest(self, stamp_ns: int, total: Array) -> None:
        """Compare the mean total of the last second, in ``base_footprint``, with the model."""
        estimate = self._latest()
        if estimate is None or not self._com_check.is_of_rest(estimate, stamp_ns):
            return
        located, load = estimate.located, estimate.load
        self._weight_check.body_weight = self._node.params.gravity * (
            self._node.model.mass + (0.0 if load is None else load.mass))
        stance = located.stance
        footprint = footprint_pose(
            located.state.base, stance.soles_in_world, stance.in_contact)
        self._com = report_of(self._com_check.result(
            total, footprint.inverse().apply(np.array(estimate.position))))
        uprightness = located.state.uprightness
        if uprightness < UPRIGHT:
            self._com = OK, 'not compared: the robot does not stand upright (see weight)', {}
        self._weight_check.add(
            stamp_ns, total.item(2), _NO_FEET, any(stance.in_contact), uprightness)
        weight = self._weight_check.result()
        if weight is not None:
            self._weight = report_of(weight)

    def _current(self, report: Report) -> Report:
        """Return a report if it is recent, else why there is none."""
        assert self._input is not None
        if report[1] and not self._input.stale(_TIMEOUT):
            return report
        topic = self._input.topic
        if not self._node.count_publishers(topic):
            return OK, f"not compared: '{topic}' has no publisher; start wrench_aggregator", {}
        return OK, ('not compared: the robot moves, or an input of wrench_aggregator is missing '
                    '(see its diagnostics)'), {}
