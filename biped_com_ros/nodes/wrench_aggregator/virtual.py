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
Feet and hands without sensors: their wrenches from joint torques and the IMU.

Published for all feet, whatever their source: the covariance of the wrenches, and the
probabilities of contact. Feet with ``source: virtual`` have no other wrench; those with ``source:
both`` are compared, and ``/diagnostics`` reports a sensor that disagrees. Of virtual hands the
covariance of their forces is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from biped_com_ros.core.constants import SAME_INSTANT_NS, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotState
from biped_com_ros.core.signals.age import age_of, is_recent
from biped_com_ros.core.signals.synchronizer import Synchronizer
from biped_com_ros.core.wrench.aggregation import ContactBody, WrenchAggregation
from biped_com_ros.core.wrench.virtual_feet import SensorComparison, VirtualFeet
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces
from biped_com_ros.nodes.wrench_aggregator.parameters import WrenchAggregatorParameters
from biped_com_ros.ros.node.diagnostics import ERROR, OK, Report, report_of, WARN
from biped_com_ros.ros.node.robot_node import RobotNode
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import (
    joint_state_publisher, StampedArrayPublisher, wrench_publisher)
from biped_com_ros.ros.topics.stamp import now_ns
import numpy as np

#: Share of its weight on the feet below which a robot that something else carries hangs.
_HANGS = 0.3


class VirtualContacts:
    """
    Pairs joint states with samples of the IMU, and sets the wrenches of virtual feet and hands.

    Parameters
    ----------
    node, aggregation
        The node, and the bodies that get wrenches.
    has_fault
        Whether a sensor is faulty now, so that their wrenches must not be used.

    Attributes
    ----------
    feet, hands
        What estimates their wrenches and publishes; None where nothing needs it, or the robot
        cannot.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation, has_fault: Callable[[], bool]) -> None:
        self._has_fault, self._pairs = has_fault, Synchronizer(2, node.params.max_stamp_age)
        self.feet: VirtualFootOutputs | None = None
        self.hands: VirtualHandOutputs | None = None
        with _reported(node, 'virtual feet', 'no virtual foot sensors'):
            if any(foot.source in ('virtual', 'both')
                   for foot in aggregation.model.config.feet.values()):
                self.feet = VirtualFootOutputs(node, aggregation)
        with _reported(node, 'virtual hands', 'no virtual hands'):
            if aggregation.virtual_hands:
                self.hands = VirtualHandOutputs(node, aggregation)

    def set_max_age(self, max_age: float) -> None:
        """Let samples be as late as stamps may be old, s."""
        self._pairs.set_max_age(max_age)

    def reset(self, params: WrenchAggregatorParameters) -> None:
        """Begin new estimates, with the masses that the model has now."""
        for outputs in (self.feet, self.hands):
            if outputs is not None:
                outputs.reset(params)

    def add_joints(self, stamp_ns: int, state: RobotState, efforts: Array,
                   ) -> Iterator[tuple[int, ContactBody]]:
        """Take the robot in its base and the torques of its motors (n,), N m; see `add_imu`."""
        return self._add(0, stamp_ns, (stamp_ns, state, efforts.copy()))

    def add_imu(self, stamp_ns: int, R_world_imu: Array, angular_velocity: Array,
                acceleration: Array) -> Iterator[tuple[int, ContactBody]]:
        """
        Take a sample of the IMU.

        Returns
        -------
        iterator
            The hands and feet whose wrenches are set, after the stamp of the joint state, ns.

        """
        return self._add(1, stamp_ns, (angular_velocity.copy(), acceleration.copy(), R_world_imu))

    def problem(self, joints: JointStateInput) -> str:
        """Return why there are no virtual wrenches; empty if there is no reason."""
        if joints.stamp_ns is None or joints.efforts_measured or not (self.feet or self.hands):
            return ''
        what = "the feet's wrenches" if self.feet else "the hands' forces"
        return (f"'{joints.topic}' has no efforts, from which {what} come: publish the joint "
                'torques, or torques computed from motor currents')

    def report_hands(self, joints: JointStateInput) -> Report:
        """Return which hands touch, or why that is not known."""
        assert self.hands is not None
        if problem := self.problem(joints):
            return ERROR, f'not estimated: {problem}', {}
        return self.hands.report(self._pairs.describe_lateness(('joint_states', 'the IMU')))

    def _add(self, source: int, stamp_ns: int,
             sample: tuple[Any, ...]) -> Iterator[tuple[int, ContactBody]]:
        if not (self.feet or self.hands):
            return
        for _, (joints, imu) in self._pairs.add(source, stamp_ns, sample):
            if self.hands is not None and self.hands.update(
                    *joints, *imu[:2], sensors_usable=not self._has_fault()):
                yield from self.hands.publish(joints[0])
            if self.feet is None:
                continue
            if self.hands is not None:  # what hands carry is not a force of the feet
                self.feet.estimator.sensors.set_others(*self.hands.estimator.on_root())
            if self.feet.estimator.update(*joints, *imu):
                yield from self.feet.publish(joints[0])


class VirtualFootOutputs:
    """
    Estimates virtual wrenches of feet, publishes them and hands them to the aggregation.

    Parameters
    ----------
    node, aggregation
        The node, and the bodies that get wrenches.

    Attributes
    ----------
    estimator
        Of wrenches and contacts.

    Raises
    ------
    ConfigurationError
        As `VirtualFeet`.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation) -> None:
        self._node = node
        self._model, self._virtual = aggregation.model, aggregation.virtual_feet
        self.reset(node.params)
        config = self._model.config
        names = tuple(config.feet)
        self._covariance = StampedArrayPublisher(node, '~/wrench_covariance', 6 * len(names))
        self._probabilities = joint_state_publisher(
            node, '~/contact_probabilities', names, ('position',))
        node.diagnostics.add('virtual feet', self._report)
        self._compared = []
        bodies = {body.name: body for body in aggregation.feet}
        for index, (name, foot) in enumerate(config.feet.items()):
            if foot.source != 'both':
                continue
            comparison = SensorComparison(
                foot.wrench_sensors, aggregation.body_weight,
                float(np.ptp(np.array(foot.polygon)[:, 0])),
                force_z=bodies[name].has_force_z_only)
            output = wrench_publisher(node, f'~/{name}/virtual_wrench', config.sole_frame(name))
            self._compared.append((index, bodies[name], comparison, output))
            node.diagnostics.add(f'{name} foot', partial(_report, comparison))

    def reset(self, params: WrenchAggregatorParameters) -> None:
        """Begin a new estimate, with these parameters and the masses that the model has now."""
        self.estimator = VirtualFeet(self._model, params.virtual)

    def _report(self) -> Report:
        sensors = self.estimator.sensors
        share = round(100.0 * sensors.share)
        values: dict[str, Any] = {
            'feet by joint torques alone [%]': share, 'hoists': sensors.hoists}
        if sensors.hoists:
            values['time since the last one began [s]'] = age_of(
                sensors.carried_ns, now_ns(self._node.get_clock())) / SECOND_NS
        if not sensors.is_carried:
            return OK, 'the feet carry the robot', values
        text = f'by joint torques the feet carry {share} % of what the IMU shows: '
        if sensors.share < _HANGS:
            return OK, text + 'the robot hangs', values
        return WARN, text + (
            'something else carries the robot, a hoist or a hand; if nothing does, check the '
            "joints' torques and the drives' friction in the robot's YAML"), values

    def publish(self, stamp_ns: int) -> Iterator[tuple[int, ContactBody]]:
        """Publish the estimate; go through the virtual feet, whose wrenches are set."""
        sensors, contacts = self.estimator.sensors, self.estimator.contacts
        deviations = self.estimator.deviations
        if self._covariance.has_subscribers:
            self._covariance.publish_matrix(sensors.covariance, stamp_ns)
        if self._probabilities.has_subscribers:
            self._probabilities.fields['position'][...] = contacts.probabilities
            self._probabilities.publish(stamp_ns)
        for index, body, comparison, output in self._compared:
            output.publish_value(sensors.wrenches[index], stamp_ns)
            if is_recent(body.stamp_ns, stamp_ns, SAME_INSTANT_NS):
                comparison.add(body.wrench, sensors.wrenches[index], deviations[index])
        for index, body in self._virtual:
            body.set_virtual(stamp_ns, sensors.wrenches[index], contacts.in_contact[index],
                             deviations.item(index, 2))
            yield stamp_ns, body


class VirtualHandOutputs:
    """
    Estimates forces on virtual hands, publishes their covariance, and hands them on.

    Parameters
    ----------
    node, aggregation
        The node, and the bodies that get wrenches.

    Attributes
    ----------
    estimator
        Of the forces.

    Raises
    ------
    ConfigurationError
        As `VirtualHandForces`.

    """

    def __init__(self, node: RobotNode[WrenchAggregatorParameters],
                 aggregation: WrenchAggregation) -> None:
        self._aggregation = aggregation
        self.reset(node.params)
        self._wrench, self._count, self._uses_sensors = np.zeros(6), 0, False
        self._covariance = StampedArrayPublisher(
            node, '~/hand_covariance', 3 * len(aggregation.virtual_hands))

    def reset(self, params: WrenchAggregatorParameters) -> None:
        """Begin a new estimate, with these parameters and the masses that the model has now."""
        self.estimator = VirtualHandForces(self._aggregation.model, params.virtual_hand)

    def update(self, stamp_ns: int, state: RobotState, efforts: Array, angular_velocity: Array,
               acceleration: Array, *, sensors_usable: bool) -> bool:
        """Estimate at an instant, see `VirtualHandForces.update`, with the sensors if usable."""
        others = self._aggregation.measured_at(
            stamp_ns, self.estimator.uses_feet) if sensors_usable else None
        self._uses_sensors = others is not None
        return self.estimator.update(
            stamp_ns, state, efforts, angular_velocity, acceleration, others)

    def publish(self, stamp_ns: int) -> Iterator[tuple[int, ContactBody]]:
        """Publish the covariance; go through the virtual hands, whose wrenches are set."""
        self._count += 1
        if self._covariance.has_subscribers:
            self._covariance.publish_matrix(self.estimator.covariance, stamp_ns)
        for body, force in zip(self._aggregation.virtual_hands, self.estimator.forces):
            self._wrench[:3] = force
            body.set_virtual(stamp_ns, self._wrench, False, 0.0)
            yield stamp_ns, body

    def report(self, lateness: str) -> Report:
        """Return which hands touch, or by how much inputs are late if nothing was estimated."""
        count, self._count = self._count, 0
        if not count:
            return ERROR, ('not estimated: no joint states and IMU data of the same instant; '
                           f'check both topics, and the clocks of their drivers ({lateness})'), {}
        estimator = self.estimator
        values = {key: float(number) for name, force, deviation in zip(
            estimator.names, estimator.estimates, estimator.deviations) for key, number in (
                (f'{name} force [N]', np.linalg.norm(force)),
                (f'{name} deviation [N]', np.linalg.norm(deviation)))}
        names = [name for name, touches in zip(estimator.names, estimator.touching) if touches]
        touching = f'touching: {", ".join(names)}' if names else 'no hand touches'
        if estimator.others and not self._uses_sensors:
            return WARN, (f'{touching}; from the arms alone, since no recent wrenches of '
                          f'{", ".join(estimator.others)} are there: see total wrench'), values
        return OK, touching, values


@contextmanager
def _reported(node: RobotNode[WrenchAggregatorParameters], name: str,
              consequence: str) -> Iterator[None]:
    """Log and report what a robot lacks, and go on without it."""
    try:
        yield
    except ConfigurationError as error:
        problem = f'{consequence}: {error}'
        node.get_logger().error(problem)
        node.diagnostics.add(name, lambda: (ERROR, problem, {}))


def _report(comparison: SensorComparison) -> Report:
    result = comparison.result()
    if result is None:
        return OK, 'not compared: no recent reading of a sensor or of joint torques', {}
    return report_of(result)
