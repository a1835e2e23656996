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
"""Publishers of `gait_player`: trajectories, the reference of the ZMP, state and progress."""

from __future__ import annotations

from collections.abc import Sequence

from biped_com_ros.core.constants import nanoseconds, SECOND_NS
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, IndexArray
from biped_com_ros.core.legs.player import RemainingMotion
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.outputs import (
    float_array_publisher, float_publisher, point_publisher, TemplatePublisher)
from biped_com_ros.ros.topics.qos import LATCHED, overridable, STATE_OUTPUT
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from builtin_interfaces.msg import Duration
from rclpy.node import Node
from std_msgs.msg import Int32, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


class TrajectoryPublisher:
    """
    Publishes motions to a joint_trajectory_controller.

    Parameters
    ----------
    node, model
        The rclpy node and the robot.
    joints
        Of the controller, by name and in its order.

    Raises
    ------
    ConfigurationError
        If one is not an actuated joint of the robot.

    """

    def __init__(self, node: Node, model: RobotModel, joints: Sequence[str]) -> None:
        unknown = [name for name in joints if name not in model.actuated_joint_names]
        if unknown:
            raise ConfigurationError(
                f"parameter 'joints': {', '.join(unknown)} cannot be moved; valid: "
                f'{", ".join(model.actuated_joint_names)}')
        self.joints, self._names = list(joints), model.joint_names
        self._index = model.joint_index(joints)
        self._offsets = model.joint_offsets[self._index]
        self._publisher = node.create_publisher(
            JointTrajectory, names.JOINT_TRAJECTORY, STATE_OUTPUT,
            qos_overriding_options=overridable())
        self.topic: str = self._publisher.topic_name

    def require_moves(self, joints: IndexArray) -> None:
        """
        Check that the controller moves joints that a motion needs.

        Raises
        ------
        InputError
            If it does not, with the joints.

        """
        missing = sorted(set(joints.tolist()).difference(self._index.tolist()))
        if missing:
            found = ', '.join(self._names[i] for i in missing)
            raise InputError(f"{found} would have to move; add them to the parameter 'joints', "
                             'with a controller that moves them, too')

    @property
    def has_subscribers(self) -> bool:
        """Whether a controller subscribes."""
        return self._publisher.get_subscription_count() > 0

    def publish(self, stamp_ns: int, motion: RemainingMotion) -> None:
        """Publish a motion that begins at a stamp."""
        message = JointTrajectory(joint_names=self.joints)
        message.header.stamp = stamp_to_msg(stamp_ns)
        positions, velocities, accelerations = (values[:, self._index] for values in motion[1:])
        # A drive controls what its encoder measures.
        columns = (values.tolist() for values in (
            positions + self._offsets, velocities, accelerations))
        message.points = [
            JointTrajectoryPoint(time_from_start=_duration(time), positions=q, velocities=v,
                                 accelerations=a)
            for time, q, v, a in zip(motion.times.tolist(), *columns)]
        self._publisher.publish(message)

    def publish_hold(self, positions: Array, duration: float) -> None:
        """Publish a trajectory that brings the joints to rest at positions (n,), s from now."""
        message = JointTrajectory(joint_names=self.joints, points=[JointTrajectoryPoint(
            time_from_start=_duration(duration),
            positions=(positions[self._index] + self._offsets).tolist(),
            velocities=[0.0] * len(self.joints))])
        self._publisher.publish(message)


class ProgressPublisher:
    """
    Publishes state, progress and finished steps when they change, and what is planned.

    That is the ZMP reference and the feet's shares of the weight.

    Parameters
    ----------
    node, feet
        The rclpy node, and the names of the feet.

    """

    def __init__(self, node: Node, feet: Sequence[str]) -> None:
        self._state = node.create_publisher(
            String, '~/state', LATCHED, qos_overriding_options=overridable())
        self._progress = float_publisher(node, '~/progress', qos=LATCHED)
        self._steps_done = node.create_publisher(
            Int32, '~/steps_done', LATCHED, qos_overriding_options=overridable())
        self._node, self._last_state, self._last_progress = node, '', -1.0
        self._last_steps = -1
        self._reference: TemplatePublisher | None = None
        self._shares = float_array_publisher(node, '~/shares', len(feet), labels=tuple(feet))

    def publish_state(self, state: str, progress: float, steps_done: int) -> None:
        """Publish finished steps, state and progress, 0 to 1, if they have changed."""
        if steps_done != self._last_steps:  # before the state: whoever waits for that has both
            self._last_steps = steps_done
            self._steps_done.publish(Int32(data=steps_done))
        if state != self._last_state:
            self._last_state = state
            self._state.publish(String(data=state))
        if progress != self._last_progress:
            self._last_progress = progress
            self._progress.fields['data'][...] = progress
            self._progress.publish()

    def set_frame(self, frame_id: str) -> None:
        """Set the frame of the reference; the first one is kept."""
        if self._reference is None:
            self._reference = point_publisher(self._node, '~/zmp_reference', frame_id)

    def publish_reference(self, stamp_ns: int, zmp_reference: Array, shares: Array) -> None:
        """Publish the ZMP reference (3,), m, if its frame is known, and shares of the weight."""
        self._shares.fields['data'][...] = shares
        self._shares.publish()
        if self._reference is not None:
            self._reference.publish_value(zmp_reference, stamp_ns)


def _duration(seconds: float) -> Duration:
    whole, rest = divmod(nanoseconds(seconds), SECOND_NS)
    return Duration(sec=whole, nanosec=rest)
