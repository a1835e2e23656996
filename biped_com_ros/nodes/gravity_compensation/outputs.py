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
"""Publishers of the efforts, and of the support that they assume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import GravityCompensator
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.ros.topics.markers import arrow, marker_publisher, ORANGE
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, TemplatePublisher, wrench_publisher)
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

#: A stamp further back than joint states can be late is one of a clock that was set back, ns.
_LATEST_NS = nanoseconds(0.5)


class EffortOutput:
    """
    Publishes efforts as JointState and, in the controller's order, as commands.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.
    command_joints
        Joints of ``~/commands`` in their order; empty: the actuated ones.

    Attributes
    ----------
    command_joints
        In the order in which they are sent.
    on_matched
        Called when a subscriber of the commands comes or goes, with the status of the event.

    Raises
    ------
    UnknownNameError
        If the robot has no such joint.

    """

    def __init__(self, node: Node, model: RobotModel, command_joints: Sequence[str]) -> None:
        self.command_joints = tuple(command_joints) or model.actuated_joint_names
        self.on_matched: Callable[[Any], None] | None = None
        self._node, self._command_index = node, model.joint_index(self.command_joints)
        self._effort_index = model.joint_index(model.actuated_joint_names)
        self._effort = joint_state_publisher(
            node, '~/effort', model.actuated_joint_names, ('effort',))
        self._commands = float_array_publisher(
            node, '~/commands', len(self.command_joints), self.command_joints,
            event_callbacks=PublisherEventCallbacks(matched=self._on_matched))
        self._last_ns = 0

    @property
    def commands_topic(self) -> str:
        """Full name of the topic of commands."""
        return self._commands.topic

    def _on_matched(self, status: Any) -> None:
        if self.on_matched is not None:
            self.on_matched(status)

    def publish(self, stamp_ns: int, efforts: Array, commands: bool) -> None:
        """Publish the efforts of all joints (n,); `commands`: also to the controller."""
        if commands:
            self._commands.fields['data'][...] = efforts.take(self._command_index)
            self._commands.publish()
        # While joint states are late, efforts have the present time; older ones do not follow.
        if 0 <= self._last_ns - stamp_ns < _LATEST_NS:
            return
        self._last_ns = stamp_ns
        if self._effort.has_subscribers:
            self._effort.fields['effort'][...] = efforts.take(self._effort_index)
            self._effort.publish(stamp_ns)

    def conflict(self) -> str:
        """Return the problem if other nodes publish to the same controller; '' if not."""
        topic = self._commands.publisher.topic_name
        others = self._node.count_publishers(topic) - 1
        return '' if others < 1 else (
            f"{others} other publisher(s) on '{topic}': the controller alternates between their "
            'efforts; stop all but one')

    def destroy(self) -> None:
        """Destroy the publishers."""
        self._effort.destroy()
        self._commands.destroy()


class TrajectoryOutput:
    """
    Publishes efforts as one-point trajectories, for controllers of positions and efforts.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.
    joints
        In the order of the message.
    rate
        Hz; zero: never.

    """

    def __init__(self, node: Node, model: RobotModel, joints: Sequence[str], rate: float) -> None:
        self._node, self._model, self._pace = node, model, StampThrottle(rate)
        self._index = model.joint_index(joints)
        self._offsets = model.joint_offsets[self._index]
        self._reference: Array | None = None
        self._publisher: TemplatePublisher | None = None
        self._subscription: Subscription | None = None
        if rate > 0.0:
            zeros = [0.0] * len(joints)
            point = JointTrajectoryPoint(positions=zeros, velocities=zeros, effort=zeros)
            point.time_from_start.nanosec = nanoseconds(min(2.0 / rate, 0.999))
            self._publisher = TemplatePublisher(
                node, '~/joint_trajectory', JointTrajectory(
                    joint_names=list(joints), points=[point]),
                {'positions': 'points[0].positions', 'effort': 'points[0].effort'})
            self._subscription = node.create_subscription(
                JointState, '~/reference', self._on_reference, COMMAND_INPUT)

    def start(self) -> None:
        """Hold the next measured positions until a reference is received."""
        self._reference = None

    def publish(self, stamp_ns: int, positions: Array | None, efforts: Array) -> None:
        """Publish the reference and efforts (n,); `positions`: measured ones, (n,), if any."""
        if self._publisher is None or not self._pace.is_due(stamp_ns):
            return
        if self._reference is None:
            if positions is None:
                return
            self._reference = positions.copy()
        # A drive controls what its encoder measures.
        self._publisher.fields['positions'][...] = (
            self._reference.take(self._index) + self._offsets)
        self._publisher.fields['effort'][...] = efforts.take(self._index)
        self._publisher.publish(None)

    def _on_reference(self, message: JointState) -> None:
        positions = np.array(message.position)
        if len(message.name) != len(positions) or not np.isfinite(positions).all():
            raise InputError('~/reference must have one finite position per name')
        index = self._model.joint_index(message.name)
        if self._reference is not None:
            self._reference[index] = positions

    def destroy(self) -> None:
        """Destroy publisher and subscription."""
        if self._publisher is not None and self._subscription is not None:
            self._publisher.destroy()
            self._node.destroy_subscription(self._subscription)


class SupportOutput:
    """
    Publishes the assumed support: contacts, shares, wrenches, and their arrows.

    Parameters
    ----------
    node
        The rclpy node.
    contacts, frames
        Name and frame_id of each contact.
    marker_rate
        Hz; zero: no markers.
    force_scale
        Length of an arrow per force, m/N.

    """

    def __init__(self, node: Node, contacts: Sequence[str], frames: Sequence[str],
                 marker_rate: float, force_scale: float) -> None:
        self._node, self._scale = node, force_scale
        #: Which contacts had a share in the last message of `~/support`; None: none was sent.
        self._published: list[bool] | None = None
        self._mode = node.create_publisher(String, '~/support', LATCHED)
        self._shares = float_array_publisher(node, '~/shares', len(contacts), contacts)
        self._wrenches = [wrench_publisher(node, f'~/{contact}/wrench', frame)
                          for contact, frame in zip(contacts, frames)]
        arrows = [arrow(frame, 'assumed_forces', i, ORANGE) for i, frame in enumerate(frames)]
        self._markers = marker_publisher(node, arrows, {'heads': 'markers[*].points[1]'})
        self._pace = StampThrottle(marker_rate)

    def publish(self, stamp_ns: int, compensator: GravityCompensator) -> None:
        """Publish the support of the last efforts."""
        support = compensator.support
        loaded = [] if support is None else support.loaded
        if loaded != self._published:
            self._published = loaded
            self._mode.publish(String(data=compensator.mode))
        # Which instants have markers does not depend on subscribers.
        is_marked = self._pace.is_due(stamp_ns) and self._markers.has_subscribers
        if self._shares.has_subscribers:
            self._shares.fields['data'][...] = 0.0 if support is None else support.shares
            self._shares.publish()
        subscribed = [output.has_subscribers for output in self._wrenches]
        if not (is_marked or any(subscribed)):
            return
        wrenches = np.zeros((len(self._wrenches), 6)) if support is None else support.wrenches
        for output, wrench, is_subscribed in zip(self._wrenches, wrenches, subscribed):
            if is_subscribed:
                output.fields['wrench'][...] = wrench
                output.publish(stamp_ns)
        if is_marked:
            self._markers.fields['heads'][...] = self._scale * wrenches[:, :3]
            self._markers.publish(stamp_ns)

    def destroy(self) -> None:
        """Destroy the publishers."""
        self._node.destroy_publisher(self._mode)
        for publisher in (self._shares, self._markers, *self._wrenches):
            publisher.destroy()
