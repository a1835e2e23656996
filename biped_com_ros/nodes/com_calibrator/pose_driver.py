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
"""Brings a robot from pose to pose: trajectories to its controller, a switch to its hoist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.travel import travel
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
from rclpy.duration import Duration
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

#: The controller starts from where it was sent last, if the robot is that near to it, rad.
NEAR = 0.1


class PoseDriver:
    """
    Sends trajectories and lets a hoist lift.

    Parameters
    ----------
    node
        The rclpy node.
    model
        The robot.
    topic
        Where a joint trajectory controller listens.
    joints
        Names of the joints that it takes.
    hoist
        A std_srvs/SetBool that lifts the robot (true) and lets it down; '' for none.

    """

    def __init__(self, node: Any, model: RobotModel, topic: str, joints: Sequence[str],
                 hoist: str) -> None:
        self._node, self.joints = node, tuple(joints)
        self._index = model.joint_index(self.joints)
        self._trajectory = node.create_publisher(JointTrajectory, topic, 10)
        self._hoist = node.create_client(SetBool, hoist) if hoist else None
        self._asked: Any = None
        self._sent: Array | None = None

    @property
    def problem(self) -> str:
        """Return why trajectories would not be heard, or ''."""
        if self._trajectory.get_subscription_count():
            return ''
        return (f"nobody listens on '{self._trajectory.topic_name}': start a joint trajectory "
                'controller, or set move to false')

    def send(self, positions: Array, path: Array, speed: float, ramp: float) -> float:
        """
        Send a path.

        Parameters
        ----------
        positions
            Where the joints are, (n,), rad.
        path
            Positions to go through, (steps, n), rad.
        speed, ramp
            See :func:`travel`.

        Returns
        -------
        float
            How long it takes, s.

        """
        start = positions[self._index]
        if self._sent is not None and np.abs(self._sent - start).max() < NEAR:
            # Joints give way under their load: going on from where they are would be a jerk.
            start = self._sent
        way = travel(start, path[:, self._index], speed, ramp)
        message = JointTrajectory(joint_names=list(self.joints))
        for time, q, v in zip(way.times, way.positions, way.velocities):
            message.points.append(JointTrajectoryPoint(
                positions=q.tolist(), velocities=v.tolist(),
                time_from_start=Duration(seconds=float(time)).to_msg()))
        self._trajectory.publish(message)
        self._sent = way.positions[-1]
        return way.duration

    def hoist(self, up: bool) -> str:
        """Ask the hoist to lift or to let down, once; return what keeps it from it, or ''."""
        if self._hoist is None:
            return ''
        if self._asked is None:
            if not self._hoist.service_is_ready():
                return f"nobody offers the hoist '{self._hoist.srv_name}': do it by hand"
            self._asked = self._hoist.call_async(SetBool.Request(data=up))
        if not self._asked.done():
            return ''
        answer = self._asked.result()
        return '' if answer.success else f'the hoist says: {answer.message}'

    def hoisted(self) -> None:
        """Take what was asked of the hoist as done."""
        self._asked = None
