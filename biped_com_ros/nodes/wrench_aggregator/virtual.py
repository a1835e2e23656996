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
Virtual foot sensors: wrenches of feet from joint torques and the IMU.

Published for all feet, whatever their source: the covariance of the wrenches, and the
probabilities of contact. Feet with ``source: virtual`` have no other wrench; those with ``source:
both`` are compared, and ``/diagnostics`` reports a sensor that disagrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from biped_com_ros.core.constants import SAME_INSTANT_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import ContactBody, WrenchAggregation
from biped_com_ros.core.wrench.virtual_feet import SensorComparison, VirtualFeet
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, WARN
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import (
    joint_state_publisher, StampedArrayPublisher, wrench_publisher)
import numpy as np


class VirtualFootOutputs:
    """
    Publishes virtual wrenches and hands them to the aggregation.

    Parameters
    ----------
    node, aggregation, feet
        The node, the bodies that get wrenches, and the estimator.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation, feet: VirtualFeet) -> None:
        self._model = aggregation.model
        self.feet, self._virtual = feet, aggregation.virtual_feet
        config, model = aggregation.model.config, aggregation.model
        names = tuple(config.feet)
        self._covariance = StampedArrayPublisher(node, '~/wrench_covariance', 6 * len(names))
        self._probabilities = joint_state_publisher(
            node, '~/contact_probabilities', names, ('position',))
        self._compared = []
        bodies = {body.name: body for body in aggregation.feet}
        for index, (name, foot) in enumerate(config.feet.items()):
            if foot.source != 'both':
                continue
            corners = np.array(foot.polygon)
            comparison = SensorComparison(
                foot.wrench_sensors, aggregation.body_weight, float(np.ptp(corners[:, 0])),
                force_z=bodies[name].has_force_z_only)
            output = wrench_publisher(
                node, f'~/{name}/virtual_wrench', model.config.sole_frame(name))
            self._compared.append((index, bodies[name], comparison, output))
            node.diagnostics.add(f'{name} foot', partial(_report, comparison))

    def restart(self, params: WrenchAggregatorParameters) -> None:
        """Begin a new estimate, with these parameters and the masses that the model has now."""
        self.feet = _estimator(self._model, params)

    def publish(self, contact_period_ns: int) -> Iterator[ContactBody]:
        """Publish the last estimate; go through the virtual feet, whose wrenches are set."""
        feet, stamp_ns = self.feet, self.feet.stamp_ns
        if self._covariance.has_subscribers:
            self._covariance.publish_matrix(feet.sensors.covariance, stamp_ns)
        if self._probabilities.has_subscribers:
            self._probabilities.fields['position'][...] = feet.contacts.probabilities
            self._probabilities.publish(stamp_ns)
        self._compare(stamp_ns)
        deviations = feet.deviations[:, 2].tolist()
        for index, body in self._virtual:
            body.set_virtual(stamp_ns, feet.sensors.wrenches[index],
                             feet.contacts.in_contact[index], deviations[index])
            yield body

    def problem(self, joints: JointStateInput) -> str:
        """Return why there are no virtual wrenches; empty if there is no reason."""
        if joints.stamp_ns is None or joints.efforts_measured:
            return ''
        return (f"'{joints.topic}' has no efforts, from which the feet's wrenches come: publish "
                'the joint torques, or torques computed from motor currents')

    def _compare(self, stamp_ns: int) -> None:
        sensors = self.feet.sensors
        for index, body, comparison, output in self._compared:
            output.publish_value(sensors.wrenches[index], stamp_ns)
            if abs(stamp_ns - body.stamp_ns) < SAME_INSTANT_NS:
                comparison.add(body.wrench, sensors.wrenches[index], self.feet.deviations[index])


def make_virtual_feet(node: RobotNode[WrenchAggregatorParameters],
                      aggregation: WrenchAggregation) -> VirtualFootOutputs | None:
    """Return the virtual foot sensors; None if no foot uses them, or the robot cannot."""
    model = aggregation.model
    if not any(foot.source in ('virtual', 'both') for foot in model.config.feet.values()):
        return None
    try:
        feet = _estimator(model, node.params)
    except ConfigurationError as error:
        problem = f'no virtual foot sensors: {error}'
        node.get_logger().error(problem)
        node.diagnostics.add('virtual feet', lambda: (ERROR, problem, {}))
        return None
    return VirtualFootOutputs(node, aggregation, feet)


def _estimator(model: RobotModel, params: WrenchAggregatorParameters) -> VirtualFeet:
    return VirtualFeet(model, params.virtual)


def _report(comparison: SensorComparison) -> Report:
    result = comparison.result()
    if result is None:
        return OK, 'not compared: no recent reading of a sensor or of joint torques', {}
    return (OK if result.plausible else WARN), result.message, {
        'Fz of sensors minus joint torques [N]': float(result.difference[2])}
