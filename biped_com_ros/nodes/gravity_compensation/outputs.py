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
"""Publishes what gravity compensation commands, and what it assumes to get there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import GravityCompensator
from biped_com_ros.core.gravity.model import GravityModel, Support
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.outputs import Pace
from biped_com_ros.ros.topics.markers import arrow, marker_array, ORANGE
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, marker_array_publisher, TemplatePublisher,
    wrench_publisher)
from biped_com_ros.ros.topics.qos import COMMAND_INPUT, LATCHED
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


#: How often it is asked whether anybody listens to anything but the mode, ns.
_ASK_EVERY_NS = 100_000_000
#: A stamp that is further back than joint states can be late is one of a clock that was set, ns.
_LATEST_NS = 500_000_000


def _order(model: RobotModel, joints: Sequence[str]) -> Any:
    """Return what picks the joints out of all of them; that all are meant costs least."""
    return slice(None) if tuple(joints) == model.joint_names else model.joint_index(joints)


class EffortOutput:
    """
    Publishes efforts as JointState and, in the controller's order, as commands.

    Parameters
    ----------
    node, model
        Where, and whose joints.
    command_joints
        Joints of ``~/commands`` in their order; empty: the actuated ones.

    Attributes
    ----------
    command_joints
        In the order in which they are sent.

    Raises
    ------
    UnknownNameError
        If the robot has no such joint.

    """

    def __init__(self, node: Any, model: RobotModel, command_joints: Sequence[str]) -> None:
        self.command_joints = tuple(command_joints) or model.actuated_joint_names
        self._node, self._order = node, _order(model, self.command_joints)
        self._actuated = _order(model, model.actuated_joint_names)
        self._effort = joint_state_publisher(
            node, '~/effort', model.actuated_joint_names, ('effort',))
        self._commands = float_array_publisher(
            node, '~/commands', len(self.command_joints), self.command_joints)
        self._last_ns = 0

    def publish(self, stamp_ns: int, efforts: Array, commands: bool) -> None:
        """Publish the efforts of all joints (n,); `commands`: also to the controller."""
        if commands:
            self._commands.fields['data'][...] = efforts[self._order]
            self._commands.publish()
        ns = stamp_ns
        # What the watchdog stamped while joint states were late is not followed by older ones.
        is_new = not 0 <= self._last_ns - ns < _LATEST_NS
        if is_new and self._effort.has_subscribers:
            self._last_ns = ns
            self._effort.fields['effort'][...] = efforts[self._actuated]
            self._effort.publish(stamp_ns)

    def rivals(self) -> str:
        """Return what is wrong if somebody else commands the same controller; '' if not."""
        topic = self._commands.publisher.topic_name
        others = self._node.count_publishers(topic) - 1
        return '' if others < 1 else (
            f"{others} more on '{topic}': the controller takes now these efforts, now those; end "
            'who else publishes it')

    def destroy(self) -> None:
        """Withdraw the topics."""
        self._effort.destroy()
        self._commands.destroy()


class TrajectoryOutput:
    """
    Publishes the efforts as one-point trajectories, for controllers that take both.

    Parameters
    ----------
    node, model
        Where, and whose joints.
    joints
        In the order of the message.
    rate
        Hz; zero: never.

    """

    def __init__(self, node: Any, model: RobotModel, joints: Sequence[str], rate: float) -> None:
        self._node, self._model, self._pace = node, model, Pace(rate)
        self._order = model.joint_index(joints)
        self._reference: Array | None = None
        self._publisher: Any = None
        self._subscription: Any = None
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
        """Hold the next positions that are measured, until a reference says otherwise."""
        self._reference = None

    def publish(self, stamp_ns: int, positions: Array | None, efforts: Array) -> None:
        """Publish the reference and efforts (n,); `positions`: as measured, if they are."""
        if self._publisher is None or not self._pace.is_due(stamp_ns):
            return
        if self._reference is None:
            if positions is None:
                return
            self._reference = positions.copy()
        self._publisher.fields['positions'][...] = self._reference.take(self._order)
        self._publisher.fields['effort'][...] = efforts.take(self._order)
        self._publisher.publish(None)

    def _on_reference(self, message: Any) -> None:
        positions = np.array(message.position)
        if len(message.name) != len(positions) or not np.isfinite(positions).all():
            raise InputError('~/reference must hold one finite position per name')
        index = self._model.joint_index(message.name)
        if self._reference is not None:
            self._reference[index] = positions

    def destroy(self) -> None:
        """Withdraw the topics."""
        if self._publisher is not None:
            self._publisher.destroy()
            self._node.destroy_subscription(self._subscription)


class SupportOutput:
    """
    Publishes the assumed support: its name, the shares, the wrenches, arrows for people.

    Parameters
    ----------
    node, gravity_model
        Where, and the contacts.
    frames
        frame_id of each contact.
    marker_rate
        Hz; zero: no markers.
    force_scale
        Length of an arrow per force, m/N.

    """

    def __init__(self, node: Any, gravity_model: GravityModel, frames: Sequence[str],
                 marker_rate: float, force_scale: float) -> None:
        self._node, self._scale = node, force_scale
        #: Which contacts carried when it was said last.
        self._said: list[bool] | None = None
        self._are_wanted, self._asked_ns = False, 0
        names = [contact.name for contact in gravity_model.contacts]
        self._mode = node.create_publisher(String, '~/support', LATCHED)
        self._shares = float_array_publisher(node, '~/shares', len(names), names)
        self._wrenches = [wrench_publisher(node, f'~/{name}/wrench', frame)
                          for name, frame in zip(names, frames)]
        prototype = marker_array(*(
            arrow(frame, 'assumed_forces', i, ORANGE) for i, frame in enumerate(frames)))
        self._markers = marker_array_publisher(
            node, '~/markers', prototype, {'heads': 'markers[*].points[1]'})
        self._pace = Pace(marker_rate)

    def publish(self, stamp_ns: int, compensation: GravityCompensator) -> None:
        """Publish on what the robot stands."""
        support = compensation.support
        carrying = [] if support is None else support.carrying
        if carrying != self._said:
            self._said = carrying
            self._mode.publish(String(data=compensation.mode))
        if not 0 <= stamp_ns - self._asked_ns < _ASK_EVERY_NS:
            self._asked_ns = stamp_ns
            self._are_wanted = any(
                out.has_subscribers for out in (self._shares, self._markers, *self._wrenches))
        if self._are_wanted:
            self._publish_wrenches(stamp_ns, support)

    def _publish_wrenches(self, stamp_ns: int, support: Support | None) -> None:
        """Publish the support; None: the torso is held, nothing else carries."""
        wrenches = np.zeros((len(self._wrenches), 6)) if support is None else support.wrenches
        if self._shares.has_subscribers:
            self._shares.fields['data'][...] = 0.0 if support is None else support.shares
            self._shares.publish()
        for publisher, wrench in zip(self._wrenches, wrenches):
            if publisher.has_subscribers:
                publisher.fields['wrench'][...] = wrench
                publisher.publish(stamp_ns)
        if self._pace.is_due(stamp_ns) and self._markers.has_subscribers:
            self._markers.fields['heads'][...] = self._scale * wrenches[:, :3]
            self._markers.publish(stamp_ns)

    def destroy(self) -> None:
        """Withdraw the topics."""
        self._node.destroy_publisher(self._mode)
        for publisher in (self._shares, self._markers, *self._wrenches):
            publisher.destroy()
