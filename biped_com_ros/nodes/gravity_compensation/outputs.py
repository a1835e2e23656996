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

from collections.abc import Sequence

from biped_com_ros.core.constants import SET_BACK_NS
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import GravityCompensator
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.signals.synchronizer import StampThrottle
from biped_com_ros.ros.topics.markers import arrow, marker_publisher, rgba
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, joint_state_publisher, TemplatePublisher, wrench_publisher)
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.viz.palette import FORCE
import numpy as np
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from std_msgs.msg import String

COMMAND_TOPIC = '~/commands'


class EffortOutput:
    """
    Publishes the efforts as JointState.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.

    """

    def __init__(self, node: Node, model: RobotModel) -> None:
        self._index = model.joint_index(model.actuated_joint_names)
        self._effort = joint_state_publisher(
            node, '~/effort', model.actuated_joint_names, ('effort',))
        self._last_ns = 0

    def publish(self, stamp_ns: int, efforts: Array) -> None:
        """Publish the efforts of all joints, (n,), N m or N."""
        # While joint states are late, efforts have the present time: stamps do not go back then,
        # and none is left out, which would be a step for those who apply them.
        if 0 <= self._last_ns - stamp_ns < SET_BACK_NS:
            stamp_ns = self._last_ns + 1
        self._last_ns = stamp_ns
        self._effort.publish_value(efforts.take(self._index), stamp_ns)

    def destroy(self) -> None:
        """Destroy the publisher."""
        self._effort.destroy()


class ControllerOutput:
    """
    Base of what sends efforts to controllers.

    Parameters
    ----------
    model, joints
        The robot, and the joints in the order of the message.

    Attributes
    ----------
    publisher
        Of the messages.
    joints
        As above.
    remedy
        What other publishers of the topic do, and what to do about it.
    restriction
        What limits motions although the URDF does not; '' if nothing.

    """

    publisher: TemplatePublisher
    remedy: str
    restriction = ''

    def __init__(self, model: RobotModel, joints: Sequence[str]) -> None:
        self.joints, self._index = tuple(joints), model.joint_index(joints)
        self._joint_count, self._had_subscribers = len(model.joint_names), False

    def begins(self) -> bool:
        """
        Return whether the first subscriber of the commands has come since the last call.

        It applies nothing yet. Who else subscribes to the efforts, as the page does, does not
        matter: a controller that gets all of them at once would let the robot jump.
        """
        had, self._had_subscribers = self._had_subscribers, (
            self.publisher.publisher.get_subscription_count() > 0)
        return self._had_subscribers and not had

    def continue_commands(self) -> None:
        """Take the subscribers for such as apply commands already."""
        self._had_subscribers = True

    def of_all_joints(self, commands: Array) -> Array:
        """Return the efforts of all joints (n,) that commands are a part of; others are zero."""
        efforts = np.zeros(self._joint_count)
        efforts[self._index] = commands
        return efforts

    def publish(self, stamp_ns: int, efforts: Array, record: Array, *measured: Array) -> None:
        """
        Publish efforts.

        Parameters
        ----------
        stamp_ns
            The present time, ns.
        efforts
            Of all joints, (n,), N m or N.
        record
            Gets what is published, (k,), in the order of the joints.
        measured
            Positions and velocities of all joints, (n,) each; none where they are late.

        """
        raise NotImplementedError

    # -- what only motion needs

    def start(self) -> None:
        """Begin; called on activation."""

    def stop(self) -> None:
        """End; called on deactivation, before efforts ramp to zero."""

    def interrupt(self, reason: str) -> None:
        """Note that nothing is commanded now, and why."""

    def cancel_other_goals(self) -> None:
        """Cancel motions that interfere, if efforts are commanded."""

    def awaited(self) -> str:
        """Return what is needed before commands begin, and comes soon; '' if nothing."""
        return ''

    def conflict(self) -> str:
        """Return which motion interferes; '' if none."""
        return ''

    def report(self) -> str:
        """Return what was refused last, or interfered, for diagnostics; '' if nothing."""
        return ''

    def destroy(self) -> None:
        """Destroy the publisher."""
        self.publisher.destroy()


class CommandOutput(ControllerOutput):
    """
    Publishes efforts in the order of an effort controller.

    Parameters
    ----------
    node, model, joints
        The rclpy node, the robot, the joints in the order of the message.
    events
        What to call when a subscriber comes or goes.

    """

    remedy = 'the controller alternates between their efforts; stop all but one'

    def __init__(self, node: Node, model: RobotModel, joints: Sequence[str],
                 events: PublisherEventCallbacks) -> None:
        super().__init__(model, joints)
        self.publisher = float_array_publisher(
            node, COMMAND_TOPIC, len(joints), joints, event_callbacks=events)

    def publish(self, stamp_ns: int, efforts: Array, record: Array, *measured: Array) -> None:
        """Publish; see `ControllerOutput`."""
        record[...] = efforts.take(self._index)
        self.publisher.fields['data'][...] = record
        self.publisher.publish()


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
        arrows = [arrow(frame, 'assumed_forces', i, rgba(FORCE, 0.5))
                  for i, frame in enumerate(frames)]
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
        self._shares.publish_value(0.0 if support is None else support.shares)
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
