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
"""Forces on hands without sensors, from joint torques, and what is missing for them."""

from __future__ import annotations

from collections.abc import Iterator

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.wrench.aggregation import ContactBody, WrenchAggregation
from biped_com_ros.core.wrench.virtual_hands import VirtualHands
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import StampedArrayPublisher
import numpy as np


class VirtualHandOutputs:
    """
    Passes virtual forces on to the aggregation, publishes their covariance, and reports.

    Parameters
    ----------
    node, aggregation
        The node, and the bodies that get wrenches.

    Attributes
    ----------
    hands
        The estimator.

    Raises
    ------
    ConfigurationError
        As `VirtualHands`.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation) -> None:
        self._aggregation, self._bodies = aggregation, aggregation.virtual_hands
        self.restart(node.params)
        self._wrench, self._count = np.zeros(6), 0
        self._covariance = StampedArrayPublisher(
            node, '~/hand_covariance', 3 * len(self._bodies))

    def restart(self, params: WrenchAggregatorParameters) -> None:
        """Begin a new estimate, with these parameters and the masses that the model has now."""
        self.hands = VirtualHands(self._aggregation, params.virtual_hand)

    def publish(self) -> Iterator[ContactBody]:
        """Publish the covariance; go through the virtual hands, whose wrenches are set."""
        hands, stamp_ns = self.hands, self.hands.stamp_ns
        self._count += 1
        if self._covariance.has_subscribers:
            self._covariance.publish_matrix(hands.estimator.covariance, stamp_ns)
        for body, force in zip(self._bodies, hands.estimator.forces):
            self._wrench[:3] = force
            body.set_virtual(stamp_ns, self._wrench, False, 0.0)
            yield body

    def problem(self, joints: JointStateInput) -> str:
        """Return why there are no forces of virtual hands; empty if there is no reason."""
        if joints.stamp_ns is None or joints.efforts_measured:
            return ''
        return (f"'{joints.topic}' has no efforts, from which the hands' forces come: publish the "
                'joint torques, or torques computed from motor currents')

    def report(self, joints: JointStateInput) -> Report:
        """Return which hands touch, or why that is not known."""
        count, self._count = self._count, 0
        hands = self.hands
        if problem := self.problem(joints):
            return ERROR, f'not estimated: {problem}', {}
        if not count:
            return ERROR, ('not estimated: no joint states and IMU data of the same instant; '
                           'check both topics, and the clocks of their drivers'), {}
        estimator = hands.estimator
        values = {key: float(number) for name, force, deviation in zip(
            estimator.names, estimator.estimates, hands.deviations) for key, number in (
                (f'{name} force [N]', np.linalg.norm(force)),
                (f'{name} deviation [N]', np.linalg.norm(deviation)))}
        names = [name for name, touches in zip(estimator.names, estimator.touching) if touches]
        touching = f'touching: {", ".join(names)}' if names else 'no hand touches'
        if estimator.others and not hands.sensors_used:
            return WARN, (f'{touching}; from the arms alone, since no recent wrenches of '
                          f'{", ".join(estimator.others)} are there: see total wrench'), values
        return OK, touching, values


def make_virtual_hands(node: RobotNode[WrenchAggregatorParameters],
                       aggregation: WrenchAggregation) -> VirtualHandOutputs | None:
    """Return the virtual hands; None if there are none, or the robot cannot."""
    if not aggregation.virtual_hands:
        return None
    try:
        return VirtualHandOutputs(node, aggregation)
    except ConfigurationError as error:
        problem = f'no virtual hands: {error}'
        node.get_logger().error(problem)
        node.diagnostics.add('virtual hands', lambda: (ERROR, problem, {}))
        return None
