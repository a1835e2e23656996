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
"""What wrench_aggregator publishes."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.com.check import RestMean
from biped_com_ros.core.constants import CERTAIN
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import centre_of_pressure, com_line
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import Synchronizer
from biped_com_ros.core.wrench.aggregation import ContactBody, FORCE_Z
from biped_com_ros.ros.topics.outputs import (
    bool_publisher, joint_state_publisher, point_publisher, vector_publisher, wrench_publisher)
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import now_ns
from biped_com_ros.ros.topics.tf import publish_static_transforms
import numpy as np
from rclpy.node import Node


class WrenchOutputs:
    """All outputs of the aggregation: of each foot and hand, of all contacts, of the total."""

    def __init__(self, node: Node, model: RobotModel, feet: Sequence[ContactBody],
                 hands: Sequence[ContactBody], footprint_frame: str) -> None:
        publish_sole_frames(node, model)
        config = model.config
        self._hands = {hand.index: wrench_publisher(
            node, f'~/{config.hand_label(hand.name)}/wrench', config.hands[hand.name].frame)
            for hand in hands}
        self._feet = {foot.index: FootOutput(node, foot, model.config.sole_frame(foot.name))
                      for foot in feet}
        self.contacts = ContactsOutput(node, feet)
        self.total = TotalOutput(node, footprint_frame)

    def publish_body(self, body: ContactBody, stamp_ns: int, min_force: float,
                     contact_period_ns: int) -> None:
        """
        Publish the wrench of a body; of a foot see `FootOutput` and `ContactsOutput`, too.

        Parameters
        ----------
        body
            A foot or hand with a new wrench.
        stamp_ns
            Stamp of the wrench, ns.
        min_force
            Smallest normal force for a CoP, N.
        contact_period_ns
            Longest time between two messages of a contact, ns.

        """
        foot = self._feet.get(body.index)
        if foot is not None:
            foot.publish(stamp_ns, min_force, contact_period_ns)
            self.contacts.update(body, stamp_ns, contact_period_ns)
        else:
            self._hands[body.index].publish_value(body.wrench, stamp_ns)


def publish_sole_frames(node: Node, model: RobotModel) -> None:
    """Publish the frames of soles that the URDF does not have on /tf_static."""
    feet = {name: foot for name, foot in model.config.feet.items() if not foot.sole_is_link}
    if not feet:
        return
    publish_static_transforms(node, now_ns(node), [
        (foot.sole, model.config.sole_frame(name), sole_in_link(foot))
        for name, foot in feet.items()])


class Repeater:
    """Decides when to publish a value: when it changes, and otherwise once per period."""

    def __init__(self) -> None:
        self._value: object = None
        self._stamp_ns = 0

    def is_due(self, value: object, stamp_ns: int, period_ns: int) -> bool:
        """Return whether to publish the value now; it counts as published then."""
        if value == self._value and abs(stamp_ns - self._stamp_ns) < period_ns:
            return False
        self._value, self._stamp_ns = value, stamp_ns
        return True


class FootOutput:
    """Publishes wrench, CoP (in contact) and contact of one foot."""

    def __init__(self, node: Node, foot: ContactBody, frame_id: str) -> None:
        self._foot = foot
        self._wrench = wrench_publisher(node, f'~/{foot.name}/wrench', frame_id)
        self._cop = point_publisher(node, f'~/{foot.name}/cop', frame_id)
        self._contact = bool_publisher(node, f'~/{foot.name}/contact', qos=LATCHED)
        self._contact_repeater = Repeater()

    def publish(self, stamp_ns: int, min_force: float, contact_period_ns: int) -> None:
        """
        Publish wrench, CoP and, if it is due, contact.

        There is a CoP above `min_force`, N, and above what an uncertain force may be by error;
        none of a foot of which the vertical force alone is measured.
        """
        foot = self._foot
        wrench = foot.wrench
        if foot.has_force_z_only:  # what is not measured is NaN, as in ros2_control, never zero
            wrench = np.where(FORCE_Z, wrench, np.nan)
        self._wrench.publish_value(wrench, stamp_ns)
        in_contact = foot.in_contact
        if in_contact and self._cop.has_subscribers and not foot.has_force_z_only:
            point = centre_of_pressure(foot.wrench_values, minimum_force=max(
                min_force, CERTAIN * foot.force_deviation))
            if point is not None:
                self._cop.publish_value(point, stamp_ns)
        if self._contact_repeater.is_due(in_contact, stamp_ns, contact_period_ns):
            self._contact.fields['data'][...] = in_contact
            self._contact.publish()


class ContactsOutput:
    """Publishes the contacts of all feet, with the stamp of the instant they belong to."""

    def __init__(self, node: Node, feet: Sequence[ContactBody]) -> None:
        self._index = {foot.index: i for i, foot in enumerate(feet)}
        self._contacts = joint_state_publisher(
            node, '~/contacts', [foot.name for foot in feet], ('position', 'effort'))
        self.synchronizer, self._repeater = Synchronizer(len(feet)), Repeater()

    def update(self, foot: ContactBody, stamp_ns: int, period_ns: int) -> None:
        """Add a foot with a new wrench; publish when all feet have one, and it is due."""
        for at_ns, samples in self.synchronizer.add(
                self._index[foot.index], stamp_ns, (foot.in_contact, foot.wrench_values[2])):
            in_contact, loads = zip(*samples)
            if self._repeater.is_due(in_contact, at_ns, period_ns):
                self._contacts.fields['position'][...] = in_contact
                self._contacts.fields['effort'][...] = loads
                self._contacts.publish(at_ns)


class TotalOutput:
    """Publishes the total wrench, its mean at rest, and the line through the CoM at rest."""

    def __init__(self, node: Node, frame_id: str) -> None:
        self._wrench = wrench_publisher(node, '~/wrench', frame_id)
        self._point = point_publisher(node, '~/line/point', frame_id)
        self._direction = vector_publisher(node, '~/line/direction', frame_id)
        self._resting = wrench_publisher(node, '~/resting_wrench', frame_id)
        self._mean = RestMean(6)

    def publish(self, stamp_ns: int, total: Array, min_force: float, moved_ns: int) -> None:
        """
        Publish the total.

        Parameters
        ----------
        stamp_ns
            Stamp of the readings, ns.
        total
            Total wrench, shape (6,), N and N m.
        min_force
            Smallest vertical force for the line, N.
        moved_ns
            When the robot moved last, ns: the mean is published once per second of rest.

        """
        self._wrench.publish_value(total, stamp_ns)
        if total[2] > min_force and (
                self._point.has_subscribers or self._direction.has_subscribers):
            line = com_line(total)
            self._point.fields['point'][:2] = line.alpha, line.gamma
            self._direction.fields['vector'][...] = line.beta, line.delta, 1.0
            self._point.publish(stamp_ns)
            self._direction.publish(stamp_ns)
        mean = self._mean.add(total, stamp_ns, moved_ns)
        if mean is not None:
            self._resting.publish_value(mean, stamp_ns)
