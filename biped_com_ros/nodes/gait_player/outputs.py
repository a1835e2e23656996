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
"""What `gait_player` publishes: trajectories, the reference of the ZMP, state and progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, float_publisher, point_publisher)
from biped_com_ros.ros.topics.qos import LATCHED, overridable, STATE_OUTPUT
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from builtin_interfaces.msg import Duration
import numpy as np
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


class TrajectoryPublisher:
    """
    Sends what joints will do to a joint_trajectory_controller.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.
    joints
        Of the controller, by name and in its order.

    Raises
    ------
    ConfigurationError
        If one is no actuated joint of the robot.

    """

    def __init__(self, node: Any, model: RobotModel, joints: Sequence[str]) -> None:
        unknown = [name for name in joints if name not in model.actuated_joint_names]
        if unknown:
            raise ConfigurationError(
                f"parameter 'joints': {', '.join(unknown)} cannot be moved; valid: "
                f'{", ".join(model.actuated_joint_names)}')
        self._node, self.joints = node, list(joints)
        self._index = model.joint_index(joints)
        self._publisher = node.create_publisher(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', STATE_OUTPUT,
            qos_overriding_options=overridable())
        self.topic: str = self._publisher.topic_name

    @property
    def is_heard(self) -> bool:
        """Whether a controller listens."""
        return bool(self._publisher.get_subscription_count())

    def send(self, stamp_ns: int, upcoming: RemainingMotion) -> None:
        """Publish what begins at a time."""
        message = JointTrajectory(joint_names=self.joints)
        message.header.stamp = stamp_to_msg(stamp_ns)
        columns = (values[:, self._index].tolist() for values in upcoming[1:])
        message.points = [
            JointTrajectoryPoint(time_from_start=_duration(time), positions=q, velocities=v,
                                 accelerations=a)
            for time, q, v, a in zip(upcoming.times.tolist(), *columns)]
        self._publisher.publish(message)

    def hold(self, positions: Array, after: float) -> None:
        """Let the joints come to rest at positions (n,), s from now."""
        message = JointTrajectory(joint_names=self.joints, points=[JointTrajectoryPoint(
            time_from_start=_duration(after), positions=positions[self._index].tolist(),
            velocities=[0.0] * len(self.joints))])
        self._publisher.publish(message)


class ProgressOutput:
    """
    Publishes state and progress as they change, the reference of the ZMP, shares of the weight.

    Parameters
    ----------
    node, feet
        The rclpy node, and the names of the feet.

    """

    def __init__(self, node: Any, feet: Sequence[str]) -> None:
        options = {'qos_overriding_options': overridable()}
        self._state = node.create_publisher(String, '~/state', LATCHED, **options)
        self._progress = float_publisher(node, '~/progress', qos=LATCHED)
        self._node, self._said, self._share = node, '', -1.0
        self._reference: Any = None
        self._shares = float_array_publisher(node, '~/shares', len(feet), labels=tuple(feet))

    def tell(self, state: str, progress: float) -> None:
        """Publish what has changed since the last time."""
        if state != self._said:
            self._said = state
            self._state.publish(String(data=state))
        if progress != self._share:
            self._share = progress
            self._progress.fields['data'][...] = progress
            self._progress.publish()

    def set_frame(self, frame_id: str) -> None:
        """Say in which frame the reference will be."""
        if self._reference is None:
            self._reference = point_publisher(self._node, '~/zmp_reference', frame_id)

    def refer(self, stamp_ns: int, zmp_reference: Array, shares: Array) -> None:
        """Publish the reference, (3,), in the frame set, and how the feet share the weight."""
        self._shares.fields['data'][...] = shares
        self._shares.publish()
        if self._reference is not None and self._reference.has_subscribers:
            self._reference.fields['point'][...] = zmp_reference
            self._reference.publish(stamp_ns)


class Deviation:
    """Root mean square of how far the actual ZMP is from the planned one, forward and sideways."""

    def __init__(self) -> None:
        self._sum, self._count = np.zeros(2), 0

    def add(self, difference: Array) -> None:
        """Take a difference (2,), m."""
        self._sum += difference ** 2
        self._count += 1

    @property
    def rms(self) -> Array | None:
        """Return it, (2,), m; None while nothing was measured."""
        return np.sqrt(self._sum / self._count) if self._count else None


def _duration(seconds: float) -> Duration:
    whole, rest = divmod(nanoseconds(seconds), SECOND_NS)
    return Duration(sec=whole, nanosec=rest)
